// SPDX-License-Identifier: Apache-2.0
// Dynamic batching in the C API.
#include <tenon/batcher.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>

#include "c/data.h"
#include "c/model.h"
#include "c/onnx.h"
#include "c/run.h"
#include "serve/batcher_options.h"
#include "yaml/reader.h"

struct TenonBatcher final : tenon::c::Object {
  static constexpr tenon::c::Kind kind_of = tenon::c::Kind::batcher;
  TenonBatcher(tenon::Batcher::Function function, const tenon::BatcherOptions& options, std::string only_input,
               std::vector<std::string> output_names)
      : Object(kind_of), input(std::move(only_input)), outputs(std::move(output_names)), value(std::move(function), options) {}
  std::string input;                 ///< the name of an only one
  std::vector<std::string> outputs;  ///< in the order of the model
  tenon::Batcher value;
};

struct TenonRequest final : tenon::c::Object {
  static constexpr tenon::c::Kind kind_of = tenon::c::Kind::request;
  TenonRequest(std::future<tenon::NamedTensors> result, std::vector<std::string> names)
      : Object(kind_of), outputs(std::move(names)), value(std::move(result)) {}
  std::vector<std::string> outputs;
  std::shared_future<tenon::NamedTensors> value;
};

using namespace tenon;
using namespace tenon::c;

namespace {

using Clock = std::chrono::steady_clock;

BatcherOptions batcher_options(const char* options) {
  BatcherOptions chosen;
  if (options == nullptr) return chosen;
  constexpr std::int64_t max_count = std::int64_t{1} << 40;
  const std::vector<yaml::Choice<BatchPadding>> paddings = {{"last_row", BatchPadding::last_row}, {"zeros", BatchPadding::zeros}};
  const yaml::Node tree = yaml::parse(options, std::make_shared<yaml::Source>(yaml::Source{"<options>", "", Origin::Kind::api}));
  yaml::Section top(tree);
  chosen.max_batch = top.get<std::int64_t>("max_batch", chosen.max_batch, {1, max_count});
  chosen.max_delay_us = top.get<std::int64_t>("max_delay_us", chosen.max_delay_us, {0, 1'000'000'000});
  chosen.max_queue =
      static_cast<std::size_t>(top.get<std::int64_t>("max_queue", static_cast<std::int64_t>(chosen.max_queue), {1, max_count}));
  if (const auto sizes = top.find("batch_sizes", "a list of sizes"); sizes && !sizes->is_null()) {
    for (const yaml::Value& size : sizes->items()) chosen.batch_sizes.push_back(size.as_integer({1, max_count}));
  }
  chosen.padding = top.choice("padding", chosen.padding, paddings);
  top.finish();
  return chosen;
}

/// A reference to an object of the API.
template <class T>
std::shared_ptr<T> retained(T* object) {
  object->retain();
  return {object, [](T* kept) { kept->release(); }};
}

void give_results(const TenonRequest& request, TenonTensor** out_outputs, std::uint64_t output_count) {
  const std::shared_future<NamedTensors> result = request.value;  // a copy for each thread that waits
  const NamedTensors& results = result.get();
  if (output_count != request.outputs.size())
    throw BadArgument("output_count: expected " + std::to_string(request.outputs.size()) + ", got " + std::to_string(output_count));
  std::vector<Tensor> in_order;
  for (const std::string& name : request.outputs) in_order.push_back(results.at(name));
  give(in_order, out_outputs, output_count, "out_outputs");
}

/// So long a time is as good as no limit, and does not overflow the clock.
std::chrono::microseconds within_a_year(std::int64_t microseconds) {
  return std::min<std::chrono::microseconds>(std::chrono::microseconds(microseconds), std::chrono::hours(24 * 365));
}

std::unique_ptr<TenonRequest> submit(const TenonBatcher* batcher, const char* const* names, const TenonTensor* const* inputs,
                                     std::uint64_t input_count, const TenonRequestOptions* options) {
  TenonBatcher& own = get(batcher, "batcher");
  const TenonRequestOptions given = options_of(options, "options");
  if ((given.flags & ~std::uint32_t{TENON_REQUEST_DO_NOT_WAIT}) != 0)
    throw BadArgument("options.flags: expected TENON_REQUEST_DO_NOT_WAIT or 0, got " + std::to_string(given.flags));
  RequestOptions request;
  if (given.timeout_us < 0) throw BadArgument("options.timeout_us: expected 0 or more, got " + std::to_string(given.timeout_us));
  if (given.timeout_us > 0) request.deadline = Clock::now() + within_a_year(given.timeout_us);
  if (given.cancellation != nullptr) request.stop = get(given.cancellation, "options.cancellation").source.get_token();
  NamedTensors tensors;
  for (NamedTensor& tensor : named_tensors(names, inputs, input_count, own.input.c_str())) {
    if (!tensors.emplace(tensor.name, tensor.tensor).second) throw BadArgument("names: '" + tensor.name + "' is given twice");
  }
  std::future<NamedTensors> result;
  if ((given.flags & TENON_REQUEST_DO_NOT_WAIT) != 0) {
    auto accepted = own.value.try_submit(std::move(tensors), request);
    if (!accepted)
      throw Error(Status::not_ready, "batcher: the queue is full: try again later, or submit without TENON_REQUEST_DO_NOT_WAIT");
    result = std::move(*accepted);
  } else {
    result = own.value.submit(std::move(tensors), request);
  }
  return std::make_unique<TenonRequest>(std::move(result), own.outputs);
}

}  // namespace

TenonError* tenon_batcher_of_onnx(TenonOnnx* onnx, const char* options, const TenonRunOptions* run, TenonBatcher** out_batcher) {
  return guard(__func__, [&] {
    required(out_batcher, "out_batcher");
    const std::shared_ptr<TenonOnnx> own = retained(&get(onnx, "onnx"));
    const BatcherOptions chosen = batcher_options(options);
    serve::check_batch_axis(own->value, serve::checked(chosen).batch_sizes);
    std::vector<std::string> names;
    for (const onnx::ValueType& output : own->value.outputs()) names.push_back(output.name);
    const auto function = [own, names, with = run_options(run)](const NamedTensors& inputs) {
      const std::vector<Tensor>& results = own->value.run(inputs, with);
      NamedTensors outputs;
      for (std::size_t i = 0; i < results.size(); ++i) outputs.emplace(names[i], results[i]);
      return outputs;
    };
    const std::vector<onnx::ValueType>& inputs = own->value.inputs();
    *out_batcher = new TenonBatcher(function, chosen, inputs.size() == 1 ? inputs[0].name : "", names);
  });
}

TenonError* tenon_batcher_of_model(TenonModel* model, const char* options, const TenonRunOptions* run, TenonBatcher** out_batcher) {
  return guard(__func__, [&] {
    required(out_batcher, "out_batcher");
    const std::shared_ptr<Model> own = get(model, "model").value;
    if (!own->built())
      throw BadArgument("model: expected one whose parameters exist: call tenon_model_build or tenon_model_predict before");
    std::vector<std::string> names;
    for (const SampleType& output : own->outputs()) names.push_back(output.name);
    const auto function = [own, with = run_options(run)](const NamedTensors& inputs) {
      return own->predict(inputs, inputs.begin()->second.shape()[0], with);
    };
    *out_batcher = new TenonBatcher(function, batcher_options(options), "x", names);
  });
}

TenonError* tenon_batcher_submit(const TenonBatcher* batcher, const char* const* names, const TenonTensor* const* inputs,
                                 uint64_t input_count, const TenonRequestOptions* options, TenonRequest** out_request) {
  return guard(__func__, [&] {
    required(out_request, "out_request");
    *out_request = submit(batcher, names, inputs, input_count, options).release();
  });
}

TenonError* tenon_batcher_run(const TenonBatcher* batcher, const char* const* names, const TenonTensor* const* inputs, uint64_t input_count,
                              const TenonRequestOptions* options, TenonTensor** out_outputs, uint64_t output_count) {
  return guard(__func__, [&] { give_results(*submit(batcher, names, inputs, input_count, options), out_outputs, output_count); });
}

TenonError* tenon_batcher_close(const TenonBatcher* batcher) {
  return guard(__func__, [&] { get(batcher, "batcher").value.close(); });
}

TenonError* tenon_batcher_describe(const TenonBatcher* batcher, char** out_json) {
  return guard(__func__, [&] {
    required(out_json, "out_json");
    const TenonBatcher& own = get(batcher, "batcher");
    const BatcherOptions& options = own.value.options();
    const BatcherCounts counts = own.value.counts();
    *out_json = new_json({{"max_batch", options.max_batch},
                          {"max_delay_us", options.max_delay_us},
                          {"max_queue", options.max_queue},
                          {"batch_sizes", options.batch_sizes},
                          {"outputs", own.outputs},
                          {"requests", counts.requests},
                          {"completed", counts.completed},
                          {"failed", counts.failed},
                          {"rejected", counts.rejected},
                          {"expired", counts.expired},
                          {"cancelled", counts.cancelled},
                          {"batches", counts.batches},
                          {"samples", counts.samples},
                          {"padding", counts.padding},
                          {"split_batches", counts.split_batches},
                          {"queued", counts.queued},
                          {"mean_batch", counts.mean_batch()},
                          {"wait_p50_us", counts.wait_p50_us},
                          {"wait_p90_us", counts.wait_p90_us},
                          {"wait_p99_us", counts.wait_p99_us},
                          {"wait_max_us", counts.wait_max_us}});
  });
}

TenonError* tenon_request_wait(const TenonRequest* request, int64_t timeout_us, uint32_t* out_ready) {
  return guard(__func__, [&] {
    required(out_ready, "out_ready");
    const std::shared_future<NamedTensors> result = get(request, "request").value;
    if (timeout_us < 0) {
      result.wait();
      *out_ready = 1;
    } else {
      *out_ready = result.wait_for(within_a_year(timeout_us)) == std::future_status::ready ? 1 : 0;
    }
  });
}

TenonError* tenon_request_results(const TenonRequest* request, TenonTensor** out_outputs, uint64_t output_count) {
  return guard(__func__, [&] { give_results(get(request, "request"), out_outputs, output_count); });
}
