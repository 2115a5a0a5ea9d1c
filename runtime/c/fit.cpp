// SPDX-License-Identifier: Apache-2.0
// Training and prediction of models in the C API.
#include <cmath>

#include <tenon/definition_text.h>

#include "c/data.h"
#include "c/json.h"
#include "c/model.h"
#include "c/run.h"

using namespace tenon;
using namespace tenon::c;

namespace {

constexpr std::int64_t usual_batch_size = 32;

Json json_of(double value) {
  return std::isfinite(value) ? Json(value) : Json();
}

Json json_of(const Logs& logs) {
  Json json = Json::object();
  for (const auto& [name, value] : logs) json[name] = json_of(value);
  return json;
}

Json json_of(const EpochLogs& epoch) {
  return {{"epoch", epoch.epoch},
          {"logs", json_of(epoch.logs)},
          {"seconds", epoch.seconds},
          {"samples", epoch.samples},
          {"learning_rate", json_of(epoch.learning_rate)}};
}

const char* name_of(FitEnd end) {
  switch (end) {
    case FitEnd::finished:
      return "finished";
    case FitEnd::stopped:
      return "stopped";
    case FitEnd::interrupted:
      return "interrupted";
  }
  return "?";
}

/// The caller's functions as a callback of fit.
class CallerCallback final : public Callback {
 public:
  explicit CallerCallback(const TenonFitCallbacks& given) : given_(given) {}
  std::string name() const override { return "of the caller"; }
  bool allows_late_batch_end() const override { return given_.batch_end == nullptr || given_.late_batch_end != 0; }
  void train_begin(std::int64_t epochs, std::int64_t batches) override {
    if (given_.train_begin != nullptr) raise(given_.train_begin(given_.user, epochs, batches));
  }
  void epoch_begin(std::int64_t epoch) override {
    if (given_.epoch_begin != nullptr) raise(given_.epoch_begin(given_.user, epoch));
  }
  void batch_end(std::int64_t batch, const Logs& logs, const BatchResult& result) override {
    if (given_.batch_end == nullptr) return;
    names_.clear(), means_.clear(), values_.clear();
    for (const auto& [name, value] : logs) names_.push_back(name.c_str()), means_.push_back(value);
    for (const auto& entry : result.logs) values_.push_back(entry.second);
    TenonBatchEnd end{};
    end.struct_size = sizeof end;
    end.step_taken = result.step_taken ? 1 : 0;
    end.batch = batch;
    end.count = names_.size();
    end.names = names_.data();
    end.means = means_.data();
    end.values = values_.data();
    end.weight = result.weight;
    raise(given_.batch_end(given_.user, &end));
  }
  void epoch_end(const EpochLogs& logs) override {
    if (given_.epoch_end != nullptr) raise(given_.epoch_end(given_.user, json_text(json_of(logs)).c_str()));
  }
  void train_end() override {
    if (given_.train_end != nullptr) raise(given_.train_end(given_.user));
  }

 private:
  TenonFitCallbacks given_;
  std::vector<const char*> names_;
  std::vector<double> means_, values_;
};

std::int64_t batch_size_or_usual(std::int64_t batch_size) {
  return batch_size == 0 ? usual_batch_size : batch_size;
}

NamedTensors map_of(const std::vector<NamedTensor>& tensors) {
  NamedTensors map;
  for (const NamedTensor& tensor : tensors) {
    if (!map.emplace(tensor.name, tensor.tensor).second) throw BadArgument("names: '" + tensor.name + "' is given twice");
  }
  return map;
}

Tensor optional_tensor(const TenonTensor* tensor, const char* argument) {
  return tensor == nullptr ? Tensor() : get(tensor, argument).value;
}

}  // namespace

TenonError* tenon_model_fit(TenonModel* model, const TenonData* data, const TenonData* validation, const char* options,
                            const TenonFitCallbacks* callbacks, const TenonRunOptions* run, char** out_history) {
  return guard(__func__, [&] {
    TenonModel& own = get(model, "model");
    const TenonData& from = get(data, "data");
    FitDefinition definition = fit_from_yaml(optional_text(options), "<options>");
    FitOptions& fit = definition.options;
    fit.initial_epoch = fit.initial_epoch.value_or(0);
    CallerCallback of_caller(options_of(callbacks, "callbacks"));
    std::vector<std::unique_ptr<Callback>> made;
    for (const auto* list : {&definition.callbacks, &own.of_optimizer}) {
      for (const CallbackDefinition& callback : *list) made.push_back(make_callback(callback));
    }
    for (const auto& callback : made) fit.callbacks.push_back(callback.get());
    if (callbacks != nullptr) fit.callbacks.push_back(&of_caller);
    if (validation != nullptr) {
      const TenonData& with = get(validation, "validation");
      fit.validation = with.samples;
      fit.validation_batches = with.batches.get();
    }
    fit.run = run_options(run);
    const std::shared_ptr<Model> kept = own.value;
    const History history = from.samples != nullptr ? kept->fit(from.samples, fit) : kept->fit(*from.batches, fit);
    if (out_history == nullptr) return;
    Json epochs = Json::array();
    for (const EpochLogs& epoch : history) epochs.push_back(json_of(epoch));
    *out_history = new_json({{"epochs", epochs}, {"end", name_of(kept->fit_end())}, {"reason", kept->stop_reason()}});
  });
}

TenonError* tenon_model_stop(TenonModel* model, const char* reason) {
  return guard(__func__, [&] { get(model, "model").value->stop(optional_text(reason)); });
}

TenonError* tenon_model_evaluate(TenonModel* model, const TenonData* data, int64_t batch_size, const TenonRunOptions* run,
                                 char** out_json) {
  return guard(__func__, [&] {
    required(out_json, "out_json");
    Model& own = *get(model, "model").value;
    const TenonData& from = get(data, "data");
    const RunOptions options = run_options(run);
    const Logs logs = from.samples != nullptr ? own.evaluate(from.samples, batch_size_or_usual(batch_size), options)
                                              : own.evaluate(*from.batches, options);
    *out_json = new_json(json_of(logs));
  });
}

TenonError* tenon_model_predict(TenonModel* model, const char* const* names, const TenonTensor* const* inputs, uint64_t input_count,
                                int64_t batch_size, uint32_t flags, const TenonRunOptions* run, TenonTensor** out_outputs,
                                uint64_t output_count) {
  return guard(__func__, [&] {
    Model& own = *get(model, "model").value;
    if ((flags & ~std::uint32_t{TENON_PREDICT_PROBABILITIES}) != 0)
      throw BadArgument("flags: expected TENON_PREDICT_PROBABILITIES or 0, got " + std::to_string(flags));
    const NamedTensors given = map_of(named_tensors(names, inputs, input_count, "x"));
    const std::int64_t size = batch_size_or_usual(batch_size);
    NamedTensors results =
        (flags & TENON_PREDICT_PROBABILITIES) != 0 ? own.predict_probabilities(given, size) : own.predict(given, size, run_options(run));
    std::vector<Tensor> in_order;
    for (const SampleType& output : own.outputs()) in_order.push_back(results.at(output.name));
    if (output_count != in_order.size()) {
      throw BadArgument("output_count: expected " + std::to_string(in_order.size()) + ", got " + std::to_string(output_count));
    }
    give(in_order, out_outputs, output_count, "out_outputs");
  });
}

TenonError* tenon_model_train_batch(TenonModel* model, const char* const* input_names, const TenonTensor* const* inputs,
                                    uint64_t input_count, const char* const* target_names, const TenonTensor* const* targets,
                                    uint64_t target_count, const TenonTensor* sample_weights, const TenonRunOptions* run, char** out_json) {
  return guard(__func__, [&] {
    Model& own = *get(model, "model").value;
    const BatchResult result = own.train_batch(map_of(named_tensors(input_names, inputs, input_count, "x")),
                                               map_of(named_tensors(target_names, targets, target_count, "y")),
                                               optional_tensor(sample_weights, "sample_weights"), run_options(run));
    if (out_json != nullptr) *out_json = new_json(json_of(result.logs));
  });
}

TenonError* tenon_model_test_batch(TenonModel* model, const char* const* input_names, const TenonTensor* const* inputs,
                                   uint64_t input_count, const char* const* target_names, const TenonTensor* const* targets,
                                   uint64_t target_count, const TenonTensor* sample_weights, char** out_json) {
  return guard(__func__, [&] {
    required(out_json, "out_json");
    Model& own = *get(model, "model").value;
    const BatchResult result =
        own.test_batch(map_of(named_tensors(input_names, inputs, input_count, "x")),
                       map_of(named_tensors(target_names, targets, target_count, "y")), optional_tensor(sample_weights, "sample_weights"));
    *out_json = new_json(json_of(result.logs));
  });
}

TenonError* tenon_model_confusion_matrix(TenonModel* model, const TenonData* data, int64_t batch_size, TenonTensor** out_matrix) {
  return guard(__func__, [&] {
    required(out_matrix, "out_matrix");
    const TenonData& from = get(data, "data");
    if (from.samples == nullptr) throw BadArgument("data: expected numbered samples, got batches");
    *out_matrix = new TenonTensor(get(model, "model").value->confusion_matrix(from.samples, batch_size_or_usual(batch_size)));
  });
}
