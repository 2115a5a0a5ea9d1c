// SPDX-License-Identifier: Apache-2.0
// The C API: models, their training and their files.
#include "capi_testing.h"

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <thread>

#include "temporary_folder.h"

using namespace tenon::test;
using nlohmann::json;

namespace {

const char* const classifier =
    "{name: small, input: {shape: [28, 28]}, layers: [flatten, {dense: {units: 16, activation: relu}}, {dense: {units: 10, activation: "
    "softmax, name: scores}}]}";
const char* const classification =
    "{loss: sparse_categorical_crossentropy, optimizer: {name: adam, learning_rate: 0.01}, metrics: [accuracy]}";

Owned<TenonData> load(const char* definition, std::uint32_t part = TENON_DATA_TRAIN) {
  Owned<TenonData> data;
  REQUIRE_OK(tenon_data_load(definition, part, data.out()));
  return data;
}
Owned<TenonData> digits(std::uint32_t part = TENON_DATA_TRAIN) {
  return load("{source: digits, train_count: 300, test_count: 100}", part);
}

Owned<TenonModel> compiled(const TenonContext* context, const char* definition = classifier, const char* with = classification) {
  Owned<TenonModel> model;
  REQUIRE_OK(tenon_model_create(definition, model.out()));
  REQUIRE_OK(tenon_model_compile(model, context, with));
  return model;
}

json evaluated(TenonModel* model, const TenonData* data) {
  char* text = nullptr;
  REQUIRE_OK(tenon_model_evaluate(model, data, 0, nullptr, &text));
  return parsed(text);
}

json described(const TenonModel* model) {
  char* text = nullptr;
  REQUIRE_OK(tenon_model_describe(model, &text));
  return parsed(text);
}

}  // namespace

TEST_CASE("C API: a model learns, is evaluated and predicts") {
  const NoLeaks none;
  const Owned<TenonContext> context = make_context("openblas:0");
  const Owned<TenonModel> model = compiled(context);
  const Owned<TenonData> train = digits(), test = digits(TENON_DATA_TEST);
  char* text = nullptr;
  REQUIRE_OK(tenon_model_fit(model, train, test, "{epochs: 3, batch_size: 20}", nullptr, nullptr, &text));
  const json history = parsed(text);
  CHECK(history["end"] == "finished");
  REQUIRE(history["epochs"].size() == 3);
  CHECK(history["epochs"][2]["samples"] == 300);
  CHECK(history["epochs"][2]["logs"]["loss"] < history["epochs"][0]["logs"]["loss"]);
  const json result = evaluated(model, test);
  CHECK(result["accuracy"] > 0.5);
  CHECK(result["loss"].get<double>() == doctest::Approx(history["epochs"][2]["logs"]["val_loss"].get<double>()));

  const json about = described(model);
  CHECK(about["built"] == true);
  CHECK(about["epochs"] == 3);
  CHECK(about["step"] == 45);
  CHECK(about["layers"].size() == 3);
  CHECK(about["layers"][2]["name"] == "scores");
  CHECK(about["layers"][2]["parameters"] == 170);
  CHECK(about["inputs"][0]["shape"] == json({28, 28}));
  REQUIRE_OK(tenon_model_summary(model, 0, &text));
  CHECK(taken(text).find("scores") != std::string::npos);
  REQUIRE_OK(tenon_model_explain(model, 8, &text));
  CHECK(parsed(text)["nodes"].size() > 3);

  const std::int64_t indices[] = {3, 1};
  TenonTensor *x = nullptr, *y = nullptr, *scores = nullptr;
  REQUIRE_OK(tenon_data_gather(test, indices, 2, &x, 1, &y, 1));
  const Owned<TenonTensor> inputs(x), labels(y);
  const TenonTensor* given[] = {inputs};
  REQUIRE_OK(tenon_model_predict(model, nullptr, given, 1, 0, TENON_PREDICT_PROBABILITIES, nullptr, &scores, 1));
  const Owned<TenonTensor> probabilities(scores);
  CHECK(shape_of(probabilities) == std::vector<std::int64_t>{2, 10});
  float sum = 0;
  for (const float p : values_of(probabilities)) sum += p;
  CHECK(sum == doctest::Approx(2));
  Owned<TenonTensor> matrix;
  REQUIRE_OK(tenon_model_confusion_matrix(model, test, 0, matrix.out()));
  std::int64_t right = 0, all = 0;
  const auto counts = values_of<std::int64_t>(matrix);
  for (std::size_t i = 0; i < counts.size(); ++i) all += counts[i], right += i % 11 == 0 ? counts[i] : 0;
  CHECK(all == 100);
  CHECK(static_cast<double>(right) / 100 == doctest::Approx(result["accuracy"].get<double>()));

  Owned<TenonProgram> frozen;
  REQUIRE_OK(tenon_model_freeze(model, 2, frozen.out()));
  TenonTensor* output = nullptr;
  REQUIRE_OK(tenon_program_run(frozen, given, 1, &output, 1, nullptr));
  const Owned<TenonTensor> of_frozen(output);
  CHECK(values_of(of_frozen)[5] == doctest::Approx(values_of(probabilities)[5]));
}

TEST_CASE("C API: a model without a loss predicts, is explained and saved, and asks for a loss when it is trained") {
  const NoLeaks none;
  const Owned<TenonContext> context = make_context();
  Owned<TenonModel> model;
  REQUIRE_OK(tenon_model_create("{input: {shape: [2]}, layers: [{dense: {units: 1, kernel_initializer: ones}}]}", model.out()));
  REQUIRE_OK(tenon_model_compile(model, context, nullptr));
  const Owned<TenonTensor> x = make_tensor({1, 2, 3, 4}, {2, 2});
  const TenonTensor* inputs[] = {x};
  TenonTensor *y = nullptr, *probabilities = nullptr;
  REQUIRE_OK(tenon_model_predict(model, nullptr, inputs, 1, 0, 0, nullptr, &y, 1));
  REQUIRE_OK(tenon_model_predict(model, nullptr, inputs, 1, 0, TENON_PREDICT_PROBABILITIES, nullptr, &probabilities, 1));
  const Owned<TenonTensor> output(y), as_is(probabilities);
  CHECK(values_of(output) == std::vector<float>{3, 7});
  CHECK(values_of(as_is) == std::vector<float>{3, 7});
  char* text = nullptr;
  REQUIRE_OK(tenon_model_explain(model, 2, &text));
  const json placement = parsed(text);
  CHECK(placement["nodes"].size() > 0);
  for (const json& node : placement["nodes"]) CHECK(node["op"] != "AdamStep");
  REQUIRE_OK(tenon_model_summary(model, 2, &text));
  const std::string summary = taken(text);
  CHECK_MESSAGE(summary.find("optimizer") == std::string::npos, summary);
  CHECK_MESSAGE(summary.find("not known") == std::string::npos, summary);
  Owned<TenonData> data;
  REQUIRE_OK(tenon_data_arrays(nullptr, inputs, 1, nullptr, inputs, 1, nullptr, nullptr, data.out()));
  const std::string expected = "expected a loss, got a model that was compiled without one, to predict; call compile() with a loss first";
  CHECK_FAILS_WITH(expected, tenon_model_fit(model, data, nullptr, nullptr, nullptr, nullptr, nullptr));
  CHECK_FAILS_WITH(expected, tenon_model_evaluate(model, data, 0, nullptr, &text));
  CHECK_FAILS_WITH(expected, tenon_model_test_batch(model, nullptr, inputs, 1, nullptr, inputs, 1, nullptr, &text));
  const TemporaryFolder folder;
  REQUIRE_OK(tenon_model_save(model, folder.path().c_str()));
  // With a loss it learns, from the weights that it has.
  REQUIRE_OK(tenon_model_compile(model, context, "{loss: mse, optimizer: {name: sgd, learning_rate: 0}}"));
  const Owned<TenonTensor> targets = make_tensor({3, 7}, {2, 1});
  const TenonTensor* labels[] = {targets};
  REQUIRE_OK(tenon_model_test_batch(model, nullptr, inputs, 1, nullptr, labels, 1, nullptr, &text));
  CHECK(parsed(text)["loss"] == 0.0);
}

TEST_CASE("C API: epochs are those of a fit, counted from initial_epoch, and a schedule goes on over all of them") {
  const NoLeaks none;
  const Owned<TenonContext> context = make_context();
  const Owned<TenonModel> model = compiled(context, classifier,
                                           "{loss: sparse_categorical_crossentropy, optimizer: {name: sgd, learning_rate: {schedule: "
                                           "step, initial: 0.125, every: 1, factor: 0.5, per: epoch}}}");
  const Owned<TenonData> train = digits();
  const auto epochs_of = [&](const char* options) {
    char* text = nullptr;
    REQUIRE_OK(tenon_model_fit(model, train, nullptr, options, nullptr, nullptr, &text));
    std::string found;
    const json history = parsed(text);
    for (const json& epoch : history["epochs"]) found += epoch["epoch"].dump() + ": " + epoch["learning_rate"].dump() + " ";
    return found;
  };
  CHECK(epochs_of("{epochs: 2, batch_size: 300}") == "0: 0.125 1: 0.0625 ");
  CHECK(epochs_of("{epochs: 1, batch_size: 300}") == "0: 0.03125 ");
  CHECK(epochs_of("{epochs: 5, initial_epoch: 3, batch_size: 300}") == "3: 0.015625 4: 0.0078125 ");
  CHECK(epochs_of("{epochs: 2, initial_epoch: 3}").empty());
  CHECK(described(model)["epochs"] == 5);
  CHECK_FAILS_WITH("initial_epoch", tenon_model_fit(model, train, nullptr, "initial_epoch: -1", nullptr, nullptr, nullptr));
}

TEST_CASE("C API: batches one by one: the loss of a linear model is what is computed by hand") {
  const NoLeaks none;
  const Owned<TenonContext> context = make_context();
  const Owned<TenonModel> model = compiled(context, "layers: [{dense: {units: 1, kernel_initializer: zeros}}]",
                                           "{loss: mse, optimizer: {name: sgd, learning_rate: 0.5}}");
  const Owned<TenonTensor> x = make_tensor({1, 2}, {2, 1}), y = make_tensor({2, 4}, {2, 1}), w = make_tensor({1, 3}, {2});
  const TenonTensor *inputs[] = {x}, *targets[] = {y};
  char* text = nullptr;
  REQUIRE_OK(tenon_model_test_batch(model, nullptr, inputs, 1, nullptr, targets, 1, nullptr, &text));
  CHECK(parsed(text)["loss"] == 10.0);  // (4 + 16) / 2
  REQUIRE_OK(tenon_model_test_batch(model, nullptr, inputs, 1, nullptr, targets, 1, w, &text));
  CHECK(parsed(text)["loss"] == 13.0);  // (4 + 3 * 16) / 4
  REQUIRE_OK(tenon_model_train_batch(model, nullptr, inputs, 1, nullptr, targets, 1, nullptr, nullptr, &text));
  CHECK(parsed(text)["loss"] == 10.0);
  Owned<TenonParameters> parameters;
  REQUIRE_OK(tenon_model_parameters(model, parameters.out()));
  Owned<TenonTensor> kernel;
  REQUIRE_OK(tenon_parameters_get(parameters, "dense/kernel", kernel.out()));
  CHECK(values_of(kernel) == std::vector<float>{5});  // 0.5 * 2 * mean of x y = 0.5 * 2 * (2 + 8) / 2
  REQUIRE_OK(tenon_model_set_learning_rate(model, 0.25));
  CHECK(described(model)["learning_rate"] == 0.25);
}

namespace {

struct Watch {
  TenonModel* model = nullptr;
  std::vector<std::string> calls;
  std::int64_t stop_at = -1, fail_at = -1;
  double loss = 0;
  json last_epoch;

  TenonFitCallbacks callbacks() {
    TenonFitCallbacks c{};
    c.struct_size = sizeof c;
    c.user = this;
    c.train_begin = [](void* user, std::int64_t epochs, std::int64_t batches) -> TenonError* {
      static_cast<Watch*>(user)->calls.push_back("begin " + std::to_string(epochs) + " " + std::to_string(batches));
      return nullptr;
    };
    c.epoch_begin = [](void* user, std::int64_t epoch) -> TenonError* {
      static_cast<Watch*>(user)->calls.push_back("epoch " + std::to_string(epoch));
      return nullptr;
    };
    c.batch_end = [](void* user, const TenonBatchEnd* batch) -> TenonError* {
      Watch& w = *static_cast<Watch*>(user);
      w.calls.push_back("batch " + std::to_string(batch->batch));
      CHECK(batch->count == 2);
      CHECK(std::string(batch->names[1]) == "accuracy");
      CHECK(batch->step_taken == 1);
      w.loss = batch->values[0];
      if (batch->batch == w.stop_at) return tenon_model_stop(w.model, "seen enough");
      return batch->batch == w.fail_at ? tenon_error_create(TENON_VENDOR_ERROR, "the caller's reason") : nullptr;
    };
    c.epoch_end = [](void* user, const char* text) -> TenonError* {
      static_cast<Watch*>(user)->last_epoch = json::parse(text);
      static_cast<Watch*>(user)->calls.push_back("epoch end");
      return nullptr;
    };
    c.train_end = [](void* user) -> TenonError* {
      static_cast<Watch*>(user)->calls.push_back("end");
      return nullptr;
    };
    return c;
  }
};

}  // namespace

TEST_CASE("C API: callbacks of a fit are called in order, stop it, and end it by their errors") {
  const NoLeaks none;
  const Owned<TenonContext> context = make_context("openblas:0");
  const Owned<TenonModel> model = compiled(context);
  const Owned<TenonData> train = digits();
  Watch watch;
  watch.model = model;
  TenonFitCallbacks callbacks = watch.callbacks();
  REQUIRE_OK(tenon_model_fit(model, train, nullptr, "{batch_size: 150}", &callbacks, nullptr, nullptr));
  CHECK(watch.calls == std::vector<std::string>{"begin 1 2", "epoch 0", "batch 0", "batch 1", "epoch end", "end"});
  CHECK(watch.loss > 0);
  CHECK(watch.last_epoch["logs"].contains("accuracy"));

  watch.stop_at = 1;
  char* text = nullptr;
  REQUIRE_OK(tenon_model_fit(model, train, nullptr, "{batch_size: 50, epochs: 5}", &callbacks, nullptr, &text));
  const json history = parsed(text);
  CHECK(history["end"] == "stopped");
  CHECK(history["reason"] == "seen enough");
  CHECK(history["epochs"].empty());
  watch.stop_at = -1;
  watch.fail_at = 3;
  watch.calls.clear();
  CHECK_FAILS_WITH("VENDOR_ERROR: callback of the caller, after a batch: the caller's reason; the model is at epoch 2, step",
                   tenon_model_fit(model, train, nullptr, "{batch_size: 50, epochs: 5}", &callbacks, nullptr, nullptr));
  // Callbacks that the options name, and those that are left out.
  callbacks = {};
  callbacks.struct_size = sizeof callbacks;
  REQUIRE_OK(tenon_model_fit(model, train, nullptr, "{epochs: 2, callbacks: [terminate_on_nan]}", &callbacks, nullptr, nullptr));
}

TEST_CASE("C API: a fit and a prediction are cancelled from another thread") {
  const NoLeaks none;
  const Owned<TenonContext> context = make_context();
  const Owned<TenonModel> model = compiled(context);
  const Owned<TenonData> train = digits();
  Owned<TenonCancellation> cancellation;
  REQUIRE_OK(tenon_cancellation_create(cancellation.out()));
  TenonRunOptions run{};
  run.struct_size = sizeof run;
  run.cancellation = cancellation;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    tenon_release(tenon_cancel(cancellation));
  });
  char* text = nullptr;
  REQUIRE_OK(tenon_model_fit(model, train, nullptr, "{epochs: 100000}", nullptr, &run, &text));
  other.join();
  const json history = parsed(text);
  CHECK(history["end"] == "interrupted");
  CHECK(history["reason"].get<std::string>().find("stopped by request") != std::string::npos);
  const std::int64_t shape[] = {4, 28, 28};
  Owned<TenonTensor> x;
  REQUIRE_OK(tenon_tensor_full(nullptr, TENON_DTYPE_F32, 3, shape, 0, x.out()));
  const TenonTensor* inputs[] = {x};
  TenonTensor* y = nullptr;
  CHECK_FAILS_WITH("CANCELLED: ", tenon_model_predict(model, nullptr, inputs, 1, 2, 0, &run, &y, 1));
  CHECK_FAILS_WITH("CANCELLED: ", tenon_model_evaluate(model, train, 0, &run, &text));
  REQUIRE_OK(tenon_model_predict(model, nullptr, inputs, 1, 2, 0, nullptr, &y, 1));
  tenon_release(y);
}

TEST_CASE("C API: a saved folder is the model again, and goes on learning where it was") {
  const NoLeaks none;
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/saved";
  const Owned<TenonContext> context = make_context("openblas:0");
  const Owned<TenonData> train = digits(), test = digits(TENON_DATA_TEST);
  const Owned<TenonModel> model = compiled(context);
  REQUIRE_OK(tenon_model_fit(model, train, nullptr, "{epochs: 1}", nullptr, nullptr, nullptr));
  REQUIRE_OK(tenon_model_save(model, path.c_str()));
  Owned<TenonModel> again;
  REQUIRE_OK(tenon_model_load(context, path.c_str(), nullptr, again.out()));
  CHECK(evaluated(again, test) == evaluated(model, test));
  CHECK(described(again)["step"] == described(model)["step"]);
  for (TenonModel* each : {static_cast<TenonModel*>(model), static_cast<TenonModel*>(again)})
    REQUIRE_OK(tenon_model_fit(each, train, nullptr, "{epochs: 2}", nullptr, nullptr, nullptr));
  CHECK(evaluated(again, test) == evaluated(model, test));
  char* text = nullptr;
  REQUIRE_OK(tenon_model_yaml(again, &text));
  const std::string yaml = taken(text);
  REQUIRE_OK(tenon_model_yaml(model, &text));
  CHECK(taken(text) == yaml);

  const std::string other = folder.path() + "/other";
  REQUIRE_OK(tenon_model_save_checkpoint(model, other.c_str(), "c"));
  const Owned<TenonModel> fresh = compiled(context);
  REQUIRE_OK(tenon_model_load_checkpoint(fresh, other.c_str(), 1));
  CHECK(evaluated(fresh, test) == evaluated(model, test));
  CHECK_FAILS_WITH("expected a folder that Model.save (tenon_model_save in C) wrote, with the file model.yaml",
                   tenon_model_load(context, other.c_str(), nullptr, again.out()));
  CHECK_FAILS_WITH("/nowhere", tenon_model_load(context, "/nowhere/model.yaml", nullptr, again.out()));
  CHECK_FAILS_WITH("/nowhere", tenon_model_load_checkpoint(fresh, "/nowhere", 0));
}

TEST_CASE("C API: a folder that a model is saved to again has nothing of the model before") {
  const NoLeaks none;
  const TemporaryFolder folder;
  const Owned<TenonContext> context = make_context();
  const Owned<TenonTensor> x = make_tensor({1, 2, 3, 4}, {2, 2});
  const TenonTensor* inputs[] = {x};
  const auto save = [&](const char* definition, const char* with) {
    const Owned<TenonModel> model = compiled(context, definition, with);
    TenonTensor* y = nullptr;
    REQUIRE_OK(tenon_model_predict(model, nullptr, inputs, 1, 0, 0, nullptr, &y, 1));
    tenon_release(y);
    REQUIRE_OK(tenon_model_save(model, folder.path().c_str()));
  };
  save("{input: {shape: [2]}, layers: [{dense: {units: 3}}]}", "{loss: mse, optimizer: adam}");
  save("{input: {shape: [2]}, layers: [{dense: {units: 1}}]}", nullptr);
  Owned<TenonModel> again;
  REQUIRE_OK(tenon_model_load(context, folder.path().c_str(), nullptr, again.out()));
  CHECK_FALSE(std::filesystem::exists(folder.file("compile.yaml")));
}

TEST_CASE("C API: a model.yaml of the tree is loaded with the defaults of its last layer") {
  const Owned<TenonContext> context = make_context("openblas:0");
  Owned<TenonModel> model;
  REQUIRE_OK(tenon_model_load(context, TENON_SOURCE_DIRECTORY "/models/mnist_mlp/model.yaml", nullptr, model.out()));
  const Owned<TenonData> test = digits(TENON_DATA_TEST);
  CHECK(evaluated(model, test).contains("accuracy"));
}

TEST_CASE("C API: a model of a train.yaml is saved with its optimizer") {
  const TemporaryFolder folder;
  const Owned<TenonContext> context = make_context("openblas:0");
  const Owned<TenonData> train = digits();
  Owned<TenonModel> model, again;
  REQUIRE_OK(tenon_model_load(context, TENON_SOURCE_DIRECTORY "/models/mnist_mlp/train.yaml", nullptr, model.out()));
  REQUIRE_OK(tenon_model_fit(model, train, nullptr, "{epochs: 1}", nullptr, nullptr, nullptr));
  REQUIRE_OK(tenon_model_save(model, folder.path().c_str()));
  REQUIRE_OK(tenon_model_load(context, folder.path().c_str(), nullptr, again.out()));
  for (TenonModel* each : {static_cast<TenonModel*>(model), static_cast<TenonModel*>(again)})
    REQUIRE_OK(tenon_model_fit(each, train, nullptr, "{epochs: 2}", nullptr, nullptr, nullptr));
  CHECK(evaluated(again, train) == evaluated(model, train));
}

TEST_CASE("C API: weights go to safetensors and back, and models to ONNX and back") {
  const NoLeaks none;
  const TemporaryFolder folder;
  const Owned<TenonContext> context = make_context();
  const Owned<TenonModel> model = compiled(context), other = compiled(context);
  const std::int64_t sample[] = {28, 28}, batch[] = {2, 28, 28};
  REQUIRE_OK(tenon_model_build(model, 2, sample));
  REQUIRE_OK(tenon_model_build(other, 2, sample));
  Owned<TenonParameters> to_change;
  REQUIRE_OK(tenon_model_parameters(model, to_change.out()));
  const Owned<TenonTensor> bias = make_tensor(std::vector<float>(10, 0.5), {10});
  REQUIRE_OK(tenon_parameters_set(to_change, "scores/bias", bias));
  const std::string weights = folder.path() + "/w.safetensors", onnx = folder.path() + "/m.onnx";
  REQUIRE_OK(tenon_model_export_weights(model, weights.c_str(), nullptr, 0));
  char* text = nullptr;
  REQUIRE_OK(tenon_model_import_weights(other, weights.c_str(), nullptr, 0, &text));
  const json report = parsed(text);
  CHECK(report["matched"].size() == 4);
  CHECK(report["missing"].empty());
  Owned<TenonParameters> changed;
  REQUIRE_OK(tenon_model_parameters(other, changed.out()));
  Owned<TenonTensor> now;
  REQUIRE_OK(tenon_parameters_get(changed, "scores/bias", now.out()));
  CHECK(values_of(now) == std::vector<float>(10, 0.5));
  CHECK_FAILS_WITH("flags: expected TENON_WEIGHTS_* flags, got 64", tenon_model_export_weights(model, weights.c_str(), nullptr, 64));

  REQUIRE_OK(tenon_model_export_onnx(model, onnx.c_str(), "{opset: 18, inputs: [image], metadata: {by: test}}"));
  Owned<TenonTensor> x;
  REQUIRE_OK(tenon_tensor_full(nullptr, TENON_DTYPE_F32, 3, batch, 0.25, x.out()));
  const TenonTensor* inputs[] = {x};
  TenonTensor *a = nullptr, *b = nullptr, *c = nullptr;
  REQUIRE_OK(tenon_model_predict(model, nullptr, inputs, 1, 0, 0, nullptr, &a, 1));
  const Owned<TenonTensor> expected(a);
  Owned<TenonOnnx> file;
  REQUIRE_OK(tenon_onnx_load(context, onnx.c_str(), nullptr, file.out()));
  const char* names[] = {"image"};
  REQUIRE_OK(tenon_onnx_run(file, names, inputs, 1, &b, 1, nullptr));
  const Owned<TenonTensor> of_file(b);
  const Owned<TenonModel> as_layers = compiled(context, ("onnx: " + onnx).c_str());
  REQUIRE_OK(tenon_model_predict(as_layers, nullptr, inputs, 1, 0, 0, nullptr, &c, 1));
  const Owned<TenonTensor> of_model(c);
  for (std::size_t i = 0; i < 20; ++i) {
    CHECK(values_of(of_file)[i] == doctest::Approx(values_of(expected)[i]));
    CHECK(values_of(of_model)[i] == doctest::Approx(values_of(expected)[i]));
  }
  CHECK_FAILS_WITH("unknown key 'opst'; did you mean 'opset'?", tenon_model_export_onnx(model, onnx.c_str(), "opst: 3"));

  REQUIRE_OK(tenon_model_replace_head(model, "dense", "layers: [{dense: {units: 3}}]"));
  REQUIRE_OK(tenon_model_yaml(model, &text));
  CHECK(taken(text).find("units: 3") != std::string::npos);
}

TEST_CASE("C API: parts of definitions are checked by the readers of whole ones") {
  const NoLeaks none;
  CHECK_OK(tenon_definition_check("layer", "dense:\n  units: 3\n  activation: relu\n"));
  CHECK_OK(tenon_definition_check("layer", "flatten"));
  CHECK_OK(tenon_definition_check("initializer", "{name: normal, stddev: 0.1}"));
  CHECK_OK(tenon_definition_check("loss", "{name: huber, delta: 2}"));
  CHECK_OK(tenon_definition_check("optimizer", "{name: adam, learning_rate: 0.01}"));
  CHECK_OK(tenon_definition_check("schedule", "{schedule: cosine, initial: 0.01}"));
  CHECK_OK(tenon_definition_check("callback", "{early_stopping: {patience: 2}}"));
  CHECK_FAILS_WITH("dense: key 'activation': expected one of linear, relu",
                   tenon_definition_check("layer", "dense: {units: 3, activation: rleu}"));
  CHECK_FAILS_WITH("did you mean 'relu'?", tenon_definition_check("layer", "dense: {units: 3, activation: rleu}"));
  CHECK_FAILS_WITH("key 'units'", tenon_definition_check("layer", "{dense: {units: none}}"));
  CHECK_FAILS_WITH("key 'loss': expected one of", tenon_definition_check("loss", "mean_square"));
  CHECK_FAILS_WITH("did you mean 'patience'?", tenon_definition_check("callback", "{early_stopping: {patence: 2}}"));
  CHECK_FAILS_WITH("schedule", tenon_definition_check("schedule", "{schedule: cosinus}"));
  CHECK_FAILS_WITH("kind: expected one of layer, initializer, loss", tenon_definition_check("layers", "flatten"));
  CHECK_FAILS_WITH("definition: expected an address, got NULL", tenon_definition_check("layer", nullptr));
}

TEST_CASE("C API: wrong definitions, data and calls of models are errors") {
  const NoLeaks none;
  const Owned<TenonContext> context = make_context();
  TenonModel* refused = nullptr;
  char* text = nullptr;
  CHECK_FAILS_WITH("<model>:1:21: layers[0] dense: unknown key 'unit'; did you mean 'units'?",
                   tenon_model_create("layers: [{dense:   {unit: 3}}]", &refused));
  CHECK_FAILS_WITH("definition: expected an address, got NULL", tenon_model_create(nullptr, &refused));
  CHECK_FAILS_WITH("nowhere.onnx: file not found", tenon_model_create("onnx: /nowhere.onnx", &refused));
  CHECK(refused == nullptr);
  Owned<TenonModel> model;
  REQUIRE_OK(tenon_model_create(classifier, model.out()));
  const Owned<TenonData> train = digits();
  CHECK_FAILS_WITH("compile", tenon_model_fit(model, train, nullptr, nullptr, nullptr, nullptr, nullptr));
  CHECK_FAILS_WITH("<compile>:1:8: key 'loss': expected one of", tenon_model_compile(model, context, "{loss: none_such}"));
  REQUIRE_OK(tenon_model_compile(model, context, classification));
  CHECK_FAILS_WITH("<options>:1:1: unknown key 'epoch'; did you mean 'epochs'?",
                   tenon_model_fit(model, train, nullptr, "epoch: 3", nullptr, nullptr, nullptr));
  CHECK_FAILS_WITH("data: expected data, got NULL", tenon_model_fit(model, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr));
  const Owned<TenonTensor> x = make_tensor({1, 2}, {1, 2});
  const TenonTensor* inputs[] = {x, x};
  TenonTensor* y = nullptr;
  CHECK_FAILS_WITH("(28,28)", tenon_model_predict(model, nullptr, inputs, 1, 0, 0, nullptr, &y, 1));
  CHECK_FAILS_WITH("names: expected names for 2 tensors, got NULL", tenon_model_predict(model, nullptr, inputs, 2, 0, 0, nullptr, &y, 1));
  CHECK_FAILS_WITH("flags: expected TENON_PREDICT_PROBABILITIES or 0, got 8",
                   tenon_model_predict(model, nullptr, inputs, 1, 0, 8, nullptr, &y, 1));
  CHECK_FAILS_WITH("head", tenon_model_replace_head(model, "nothing", "layers: [flatten]"));
  CHECK_FAILS_WITH("model: expected a model, got NULL", tenon_model_summary(nullptr, 0, &text));
  const Owned<TenonModel> diverging =
      compiled(context, "layers: [{dense: {units: 1}}]", "{loss: mse, optimizer: {name: sgd, learning_rate: 1.0e30}}");
  const Owned<TenonTensor> big = make_tensor({1e20F, 1}, {2, 1});
  const TenonTensor* arrays[] = {big};
  Owned<TenonData> data;
  REQUIRE_OK(tenon_data_arrays(nullptr, arrays, 1, nullptr, arrays, 1, nullptr, nullptr, data.out()));
  CHECK_FAILS_WITH("the loss is", tenon_model_fit(diverging, data, nullptr, "epochs: 3", nullptr, nullptr, nullptr));
}
