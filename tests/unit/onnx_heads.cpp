// SPDX-License-Identifier: Apache-2.0
// Models of one ONNX file with several inputs and outputs, and losses of their own.
#include <tenon/gradcheck.h>
#include <tenon/npy.h>
#include <tenon/predictor.h>
#include <tenon/training_run.h>

#include <algorithm>

#include "onnx_testing.h"
#include "train/prediction_text.h"
#include "train_testing.h"

using namespace tenon;
using namespace tenon::test;

namespace {

/// h = tanh(a wa + b wb); scores = softmax(h ws) of 3 classes, value = h wv.
onnx::ModelRecord two_heads() {
  return test::model(onnx_graph({node("MatMul", {"a", "wa"}, {"ha"}), node("MatMul", {"b", "wb"}, {"hb"}),
                                 node("Add", {"ha", "hb"}, {"sum"}), node("Tanh", {"sum"}, {"h"}), node("MatMul", {"h", "ws"}, {"logits"}),
                                 node("Softmax", {"logits"}, {"scores"}, {integer("axis", -1)}), node("MatMul", {"h", "wv"}, {"value"})},
                                {f32("a", {-1, 3}), f32("b", {-1, 2})}, {f32("scores", {-1, 3}), f32("value", {-1, 1})},
                                {test::floats("wa", numbers(12), {3, 4}), test::floats("wb", numbers(8, 3), {2, 4}),
                                 test::floats("ws", numbers(12, 5), {4, 3}), test::floats("wv", numbers(4), {4, 1})}));
}

const NamedTensors inputs{{"a", Tensor::of(numbers(15), {5, 3})}, {"b", Tensor::of(numbers(10, 9), {5, 2})}};
const NamedTensors targets{{"scores", Tensor::of<std::int64_t>({0, 2, 1, 1, 0}, {5})},
                           {"value", Tensor::of<float>({1, 0, -1, 2, 0.5}, {5, 1})}};

OutputLoss of_scores(double weight = 1) {
  OutputLoss loss{.output = "scores", .weight = weight, .metrics = {Metric::accuracy}};
  loss.loss.loss = Loss::sparse_categorical_crossentropy;
  return loss;
}
OutputLoss of_value(double weight = 1) {
  return {.output = "value", .weight = weight, .metrics = {Metric::mae}};
}

CompileOptions both(double of_first = 1, double of_second = 1) {
  return {.optimizer = {.kind = OptimizerDefinition::Kind::sgd, .learning_rate = 0.1},
          .losses = {of_scores(of_first), of_value(of_second)}};
}

struct TwoHeads : OnReference {
  Model model(const CompileOptions& options = both(), layers::Onnx layer = {}) const {
    layer.file = path;
    return compiled(context, {layer}, options);
  }
  std::string message(const CompileOptions& options, const layers::Onnx& layer = {}) const {
    std::string text = message_of([&] { model(options, layer); });
    for (std::size_t at = text.find(path); at != std::string::npos; at = text.find(path)) text.replace(at, path.size(), "FILE");
    return text;
  }
  OnnxFiles files;
  const std::string path = files.write(two_heads());
};

std::vector<std::string> names_of(const Logs& logs) {
  std::vector<std::string> names;
  for (const auto& [name, value] : logs) names.push_back(name);
  return names;
}
double value_of(const Logs& logs, const std::string& name) {
  const auto found = std::ranges::find(logs, name, &Logs::value_type::first);
  return found == logs.end() ? -1e9 : found->second;
}

/// Samples in another order than the file has its inputs and outputs.
std::shared_ptr<const ArrayDataset> samples(std::int64_t count = 40) {
  const auto n = static_cast<std::size_t>(count);
  const std::vector<float> a = numbers(3 * n), b = numbers(2 * n, 9);
  Tensor value = Tensor::zeros(DType::f32, {count, 1}), scores = Tensor::zeros(DType::i64, {count});
  for (std::size_t i = 0; i < n; ++i) {
    value.data<float>()[i] = a[3 * i] - b[2 * i];
    scores.data<std::int64_t>()[i] = a[3 * i + 1] > 0 ? 2 : b[2 * i + 1] > 0 ? 1 : 0;
  }
  return std::make_shared<ArrayDataset>(std::vector<NamedTensor>{{"b", Tensor::of(b, {count, 2})}, {"a", Tensor::of(a, {count, 3})}},
                                        std::vector<NamedTensor>{{"value", value}, {"scores", scores}}, ArrayOptions{.name = "pairs"});
}

}  // namespace

TEST_CASE_FIXTURE(TwoHeads, "onnx heads: gradients of two weighted losses agree with finite differences") {
  ModelDefinition definition;
  definition.layers = {layers::Onnx{.file = path}};
  const GradientReport report = check_gradients(context, definition, {of_scores(0.5), of_value(2)}, inputs, targets);
  INFO(report.str());
  CHECK(report.passed());
  CHECK(report.parameters.size() == 4);
}

TEST_CASE_FIXTURE(TwoHeads, "onnx heads: loss, logs and gradients are those of the graph written by hand") {
  Graph graph;
  const auto input = [&](const char* name, const Tensor& t) { return graph.input(name, t.dtype(), t.shape()); };
  const auto parameter = [&](const char* name, const Shape& shape) { return graph.parameter(name, DType::f32, shape); };
  const Value a = input("a", inputs.at("a")), b = input("b", inputs.at("b")), t = input("t", targets.at("scores")),
              v = input("v", targets.at("value"));
  const std::vector<Value> weights{parameter("wa", {3, 4}), parameter("wb", {2, 4}), parameter("ws", {4, 3}), parameter("wv", {4, 1})};
  const Value h = ops::tanh(ops::add(ops::matmul(a, weights[0]), ops::matmul(b, weights[1])));
  const Value first = ops::softmax_cross_entropy(ops::matmul(h, weights[2]), t), second = ops::mse(ops::matmul(h, weights[3]), v);
  const Value loss = ops::add(ops::mul(first, 0.5), ops::mul(second, 3));
  for (const Value value : {loss, first, second}) graph.output("output" + std::to_string(graph.outputs().size()), value);
  for (const Value gradient : gradients(loss, weights)) graph.output("output" + std::to_string(graph.outputs().size()), gradient);

  Model model = this->model(both(0.5, 3));
  const BatchResult result = model.backward(inputs, targets);
  CHECK(names_of(result.logs) == std::vector<std::string>{"loss", "scores_loss", "value_loss", "scores_accuracy", "value_mae"});
  Program by_hand(context, graph, {.device = {}, .parameters = std::make_shared<ParameterStore>()});
  ParameterStore& store = *by_hand.parameters();
  for (const char* name : {"wa", "wb", "ws", "wv"}) store.set(name, model.parameters().get(name));
  const std::vector<Tensor> expected = by_hand.run({inputs.at("a"), inputs.at("b"), targets.at("scores"), targets.at("value")});
  for (std::size_t i = 0; i < 3; ++i) CHECK(result.logs[i].second == doctest::Approx(expected[i].to_host().item()).epsilon(1e-6));
  const char* const names[] = {"wa", "wb", "ws", "wv"};
  for (std::size_t i = 0; i < 4; ++i) {
    const std::vector<float> got = floats(model.gradient(names[i])), right = floats(expected[3 + i]);
    for (std::size_t k = 0; k < right.size(); ++k) CHECK(got[k] == doctest::Approx(right[k]).epsilon(1e-5));
  }
  CHECK(model.apply());
  CHECK(result.loss() == doctest::Approx(0.5 * result.logs[1].second + 3 * result.logs[2].second));
}

TEST_CASE_FIXTURE(TwoHeads, "onnx heads: data is bound by name, and fit, evaluate and predict see both outputs") {
  const auto data = samples();
  Model model = this->model();
  CHECK(model.inputs()[1].name == "b");
  CHECK(model.outputs()[0].shape == Shape{3});
  const Logs before = model.evaluate(data);
  const History history = model.fit(data, {.batch_size = 8, .epochs = 30, .validation_split = 0.2});
  const Logs after = model.evaluate(data);
  CHECK(value_of(after, "scores_loss") < value_of(before, "scores_loss") - 0.05);
  CHECK(value_of(after, "value_loss") < value_of(before, "value_loss") / 2);
  CHECK(value_of(after, "loss") == doctest::Approx(value_of(after, "scores_loss") + value_of(after, "value_loss")).epsilon(1e-5));
  CHECK(value_of(history.back().logs, "val_scores_accuracy") >= 0);

  const NamedTensors outputs = model.predict(inputs, 2);
  CHECK(outputs.at("scores").shape() == Shape{5, 3});
  CHECK(outputs.at("value").shape() == Shape{5, 1});
  Program frozen = model.freeze(5);
  const std::vector<float> of_program = floats(frozen.run({inputs.at("a"), inputs.at("b")})[0]),
                           scores = floats(model.forward(inputs).at("scores"));
  for (std::size_t i = 0; i < scores.size(); ++i) CHECK(of_program[i] == doctest::Approx(scores[i]).epsilon(1e-5));
  CHECK(model.predict_probabilities(inputs).at("scores").shape() == Shape{5, 3});
  CHECK(contains(model.summary(4), " Inputs: a, b\n Outputs: scores (3), value (1)\n Loss of scores: sparse_categorical_crossentropy\n"));
  CHECK(model.explain(4).moved() == 0);

  // A checkpoint has the shapes of both inputs.
  model.save(files.folder.path(), "kept");
  Model again = this->model();
  again.load(files.folder.file("kept.yaml"));
  CHECK(again.evaluate(data) == after);

  // The exported file has all names and computes the same.
  model.export_onnx(files.folder.file("again.onnx"));
  onnx::Model exported = onnx::Model::load(files.folder.file("again.onnx"), context);
  const std::vector<Tensor>& results = exported.run(inputs);
  CHECK(exported.outputs()[1].name == "value");
  for (std::size_t i = 0; i < 5; ++i) CHECK(floats(results[1])[i] == doctest::Approx(floats(outputs.at("value"))[i]).epsilon(1e-5));
}

TEST_CASE_FIXTURE(TwoHeads, "onnx heads: accumulated batches and parallel devices end where one step does") {
  Config config = test_config();
  config.virtual_devices = {{.of = "reference:0", .count = 2}};
  const Context two(config);
  CompileOptions options = both(0.5, 2);
  const auto data = samples(16);
  const auto trained = [&](const Context& on, const FitOptions& fit) {
    Model model = compiled(on, {layers::Onnx{.file = path}}, options);
    model.fit(data, fit);
    return floats(model.parameters().get("wa"));
  };
  const std::vector<float> whole = trained(context, {.batch_size = 16, .shuffle = false});
  const std::vector<float> parts = trained(context, {.batch_size = 4, .shuffle = false, .accumulate = 4});
  options.parallel.devices = {"reference:0", "reference:1"};
  const std::vector<float> shared = trained(two, {.batch_size = 16, .shuffle = false});
  for (std::size_t i = 0; i < whole.size(); ++i) {
    CHECK(parts[i] == doctest::Approx(whole[i]).epsilon(1e-5));
    CHECK(shared[i] == doctest::Approx(whole[i]).epsilon(1e-5));
  }
}

TEST_CASE_FIXTURE(TwoHeads, "onnx heads: an output without a loss is only predicted, and a weight of 0 leaves the other loss") {
  Model one = model({.losses = {of_value()}}), zero = model(both(0, 1));
  const auto value_alone = NamedTensors{{"value", targets.at("value")}};
  const double loss = one.backward(inputs, value_alone).loss();
  CHECK(loss == doctest::Approx(zero.backward(inputs, targets).loss()));
  CHECK(floats(one.gradient("ws")) == std::vector<float>(12, 0));
  CHECK(floats(one.gradient("wa")) == floats(zero.gradient("wa")));
  CHECK(one.predict(inputs).size() == 2);

  // The target may have another name; an only target needs none.
  OutputLoss renamed = of_value();
  renamed.target = "price";
  Model other = model({.losses = {renamed}}), only = model({.losses = {of_value()}});
  CHECK(other.test_batch(inputs, {{"price", targets.at("value")}, {"unused", targets.at("value")}}).loss() == doctest::Approx(loss));
  CHECK(only.test_batch(inputs, {{"anything", targets.at("value")}}).loss() == doctest::Approx(loss));

  // Sample weights count for all losses.
  const Tensor weights = Tensor::of<float>({2, 0, 0, 0, 0}, {5});
  Model weighted = model();
  const BatchResult of_first = weighted.test_batch(inputs, targets, weights);
  CHECK(of_first.weight == 2);
  const auto first = [](const NamedTensors& all) {
    NamedTensors rows;
    for (const auto& [name, tensor] : all) rows[name] = tensor.slice(0, 0, 1);
    return rows;
  };
  CHECK(of_first.loss() == doctest::Approx(weighted.test_batch(first(inputs), first(targets)).loss()));

  // Without losses it predicts.
  Model predicting = model({});
  CHECK(predicting.predict(inputs).size() == 2);
  CHECK_ERROR(
      "the model has the outputs scores, value: expected a loss for at least one of them, by name (`losses` in a train.yaml, "
      "CompileOptions::losses), got none",
      predicting.fit(samples()));
}

TEST_CASE_FIXTURE(TwoHeads, "onnx heads: outputs are chosen, and the inputs are those that they depend on") {
  Model value = model({.loss = {.loss = Loss::mse}}, {.outputs = {"value"}});
  CHECK(value.predict(inputs).size() == 1);
  CHECK(value.built());
  CHECK_FALSE(value.parameters().has("ws"));
  Model first = model({.loss = {.loss = Loss::mse}}, {.output = "ha"});
  CHECK(first.predict(Tensor::zeros(DType::f32, {2, 3})).shape() == Shape{2, 4});
  Model constant = model(both(), {.constants = {{"b", 0.5}}});
  CHECK(constant.predict({{"any", inputs.at("a")}}).at("value").shape() == Shape{5, 1});
  CHECK(message({}, {.output = "value", .outputs = {"scores"}}) == "layer onnx: FILE: expected one of `output` and `outputs`, got both");
  CHECK(message({}, {.outputs = {"value", "scorse"}}) ==
        "layer onnx: FILE: outputs: expected the name of a value that a node of the graph computes, got 'scorse'; did you mean 'scores'?");
  CHECK(message({}, {.outputs = {"value", "value"}}) == "layer onnx: FILE: outputs: 'value' is given twice");
}

TEST_CASE_FIXTURE(TwoHeads, "onnx heads: losses and data that do not fit the model are refused by name") {
  OutputLoss unknown = of_value();
  unknown.output = "valeu";
  CHECK(message({.losses = {unknown}}) == "losses: expected an output of the model (scores, value), got 'valeu'; did you mean 'value'?");
  CHECK(message({.losses = {of_value(), of_value()}}) == "losses: expected one loss for each output, got two for 'value'");
  CHECK(message({.losses = {of_value(-1)}}) == "losses: value: weight is -1, expected a finite number of at least 0");
  CHECK(message({.metrics = {Metric::mae}, .losses = {of_value()}}) ==
        "losses: expected the metrics of each of them in OutputLoss::metrics, got CompileOptions::metrics, too");

  Model model = this->model();
  NamedTensors without = inputs, more = inputs, short_b = inputs;
  without.erase("b");
  more["c"] = inputs.at("a");
  short_b["b"] = inputs.at("b").slice(0, 0, 4);
  CHECK_ERROR("predict: expected the inputs a, b, got a; 'b' is missing", model.predict(without));
  CHECK_ERROR("predict: expected the inputs a, b, got a, b, c; the model has no 'c'", model.predict(more));
  CHECK_ERROR("predict: expected inputs of as many samples, got a f32(5,3) and b f32(4,2)", model.predict(short_b));
  CHECK_ERROR_CONTAINS("expects inputs of one batch size, got 'a' (5,3) and 'b' (4,2)", model.train_batch(short_b, targets));
  CHECK_ERROR(
      "train_batch: expected a target 'value', with which the loss of the output 'value' compares, got scores, valu; did you mean "
      "'valu'?",
      model.train_batch(inputs, {{"scores", targets.at("scores")}, {"valu", targets.at("value")}}));
  CHECK_ERROR(
      "predict: expected a model with one input and one output, got the inputs a, b and the outputs scores, value; give tensors by "
      "name",
      model.predict(inputs.at("a")));
  CHECK_ERROR_CONTAINS("output 'value': loss mse: expected targets of the shape of the output, (5,1), got (5,2)",
                       model.train_batch(inputs, {{"scores", targets.at("scores")}, {"value", inputs.at("b")}}));
  const auto x_only = std::make_shared<ArrayDataset>(inputs.at("a"), targets.at("value"));
  CHECK_ERROR("array: expected the inputs a, b, got x; 'a' is missing", model.fit(x_only));
  CHECK_ERROR("confusion matrix: expected a model with one output, got scores, value", model.confusion_matrix(samples()));

  // A model of more layers has one input and one output.
  CHECK_ERROR_CONTAINS("expected one output, got scores, value; choose with `output`",
                       Model({layers::Onnx{.file = path}, layers::Dense{.units = 2}}));
  CHECK_ERROR_CONTAINS("expected one input that 'h' depends on, got a, b; choose with `input`",
                       Model({layers::Onnx{.file = path, .output = "h"}, layers::Dense{.units = 2}}));
}

TEST_CASE_FIXTURE(TwoHeads, "onnx heads: a train.yaml trains, evaluates and predicts a file with arrays of other names") {
  const auto data = samples(30);
  save_npz(files.folder.file("data.npz"), {{"first_train", data->input_arrays()[1].tensor},
                                           {"second_train", data->input_arrays()[0].tensor},
                                           {"labels_train", data->target_arrays()[1].tensor},
                                           {"prices_train", data->target_arrays()[0].tensor}});
  const std::string text =
      "model: {onnx: model.onnx}\n"
      "data:\n  source: npz\n  directory: data.npz\n  test_split: 0.2\n  validation_split: 0.1\n"
      "  inputs: {a: first, b: second}\n  targets: {scores: labels, price: prices}\n"
      "losses:\n  scores: {name: sparse_categorical_crossentropy, weight: 0.5, metrics: [accuracy]}\n  value: {name: mse, target: price}\n"
      "optimizer: {name: adam, learning_rate: 0.02}\nbatch_size: 6\nepochs: 40\nverbose: 0\ncheckpoint: {directory: run}\n";
  TrainingRun run(load_definition(files.folder.write("train.yaml", text), {{"losses.value.weight", "2"}}), context);
  CHECK(run.definition().losses[1].weight == 2);
  const DataSplits splits = run.load_data();
  CHECK(splits.train->size() == 21);
  const Logs before = run.evaluate(splits);
  run.fit(splits);
  const Logs after = run.evaluate(splits);
  CHECK(names_of(after) == std::vector<std::string>{"loss", "scores_loss", "value_loss", "scores_accuracy"});
  CHECK(value_of(after, "loss") < value_of(before, "loss") / 2);

  Predictor predictor(std::move(run), splits.preprocessing);
  const std::vector<Prediction> all = predictor.predict_test(splits, 2);
  REQUIRE(all.size() == 4);
  CHECK(all[0].output_name == "scores");
  CHECK(all[0].classes.size() == 3);
  CHECK(all[0].expected.defined());
  CHECK(all[3].output_name == "value");
  CHECK(all[3].input == "1");
  CHECK(all[3].expected.shape() == Shape{1});
  CHECK(contains(train::PredictionText{}.line(all[1]), "0: value: "));
  CHECK(contains(train::PredictionText{}.json(all[1], 0), "\"output_name\":\"value\""));
  CHECK_ERROR_CONTAINS("expected a model with one input for samples in files, got 2 inputs", predictor.predict_files("a.npy"));

  const auto message = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    return message_of([&] {
      TrainingRun other(load_definition(files.folder.write("other.yaml", changed)), context);
      other.fit(other.load_data());
    });
  };
  CHECK(contains(message("second}", "third}"), "data.npz: expected an array 'third_train', got first_train"));
  CHECK(contains(message("a: first", "aa: first"), "data.npz train: expected the inputs a, b, got aa, b; 'a' is missing"));
  CHECK(contains(message("  value: {", "  valve: {"), "losses: expected an output of the model (scores, value), got 'valve'"));
  CHECK(contains(message("  value: {", "  valve: {"), "other.yaml:11:10: "));
  CHECK(
      contains(message("target: price", "target: prize"), "expected a target 'prize', with which the loss of the output 'value' compares"));
  CHECK(contains(message("losses:", "loss: mse\nmetrics: [mae]\nx_losses:"), "unknown key 'x_losses'"));
}

TEST_CASE_FIXTURE(TwoHeads, "onnx heads: sizes that the file leaves open follow from input.shape or from the data") {
  const auto sums =
      test::model(onnx_graph({node("Add", {"a", "b"}, {"sum"}), node("MatMul", {"sum", "w"}, {"h"}),
                              node("ReduceMean", {"h"}, {"y"}, {integers("axes", {1}), integer("keepdims", 0)})},
                             {f32("a", {-1, -1, 3}), f32("b", {-1, -1, 3})}, {f32("y", {-1, 2})}, {test::floats("w", numbers(6), {3, 2})}));
  const std::string file = files.write(sums, "sums.onnx");
  const auto summary = [&](const std::string& input) {
    const std::string yaml = files.folder.write("sums.yaml", input + "onnx: sums.onnx\n");
    return TrainingRun(load_definition(yaml), context).model().summary(2);
  };
  CHECK(contains(summary("input: {shape: {a: [4, 3], b: [4, 3]}}\n"), " Inputs: a, b\n"));
  CHECK_ERROR_CONTAINS("the shape of a sample is not known yet", summary(""));
  CHECK_ERROR_CONTAINS("input.shape: expected the name of an input (a, b), got 'c'", summary("input: {shape: {a: [4, 3], c: [4, 3]}}\n"));
  CHECK_ERROR_CONTAINS("input.shape: expected a map with a shape for each of a, b, got one shape", summary("input: {shape: [4, 3]}\n"));
  Model model = compiled(context, {layers::Onnx{.file = file}}, {.loss = {.loss = Loss::mse}});
  const Tensor x = Tensor::full(DType::f32, {6, 4, 3}, 0.5), y = Tensor::zeros(DType::f32, {6, 2});
  const auto data = std::make_shared<ArrayDataset>(std::vector<NamedTensor>{{"b", x}, {"a", x}}, std::vector<NamedTensor>{{"any", y}});
  const double before = model.evaluate(data)[0].second;
  CHECK(names_of(model.fit(data, {.epochs = 3})[0].logs) == std::vector<std::string>{"loss"});
  CHECK(model.evaluate(data)[0].second < before);
}

TEST_CASE_FIXTURE(TwoHeads, "onnx heads: a model.yaml without a loss gets one that fits how each output ends") {
  const std::string whole = files.folder.write("model.yaml", "onnx: model.onnx\n");
  const TrainDefinition both_outputs = load_definition(whole);
  REQUIRE(both_outputs.losses.size() == 2);
  CHECK(both_outputs.losses[0].loss.loss == Loss::sparse_categorical_crossentropy);
  CHECK(both_outputs.losses[0].metrics == std::vector<MetricDefinition>{Metric::accuracy});
  CHECK(both_outputs.losses[1].output == "value");
  CHECK(both_outputs.losses[1].loss.loss == Loss::mse);
  const TrainDefinition one = load_definition(files.folder.write("one.yaml", "onnx: {file: model.onnx, outputs: [scores]}\n"));
  CHECK(one.losses.empty());
  CHECK(one.loss.loss == Loss::sparse_categorical_crossentropy);
  const auto sigmoid = test::model(onnx_graph({node("MatMul", {"x", "w"}, {"h"}), node("Sigmoid", {"h"}, {"y"})}, {f32("x", {-1, 3})},
                                              {f32("y", {-1, 1})}, {test::floats("w", numbers(3), {3, 1})}));
  files.write(sigmoid, "sigmoid.onnx");
  CHECK(load_definition(files.folder.write("s.yaml", "onnx: sigmoid.onnx\n")).loss.loss == Loss::binary_crossentropy);
}

TEST_CASE_FIXTURE(TwoHeads, "replace_head: a file is cut at a value, and weights that stay are those that were trained") {
  const auto data = samples();
  Model model = this->model();
  model.fit(data, {.epochs = 2});
  const std::vector<float> wa = floats(model.parameters().get("wa")), before = floats(model.parameters().get("wb"));
  layers::Onnx body{.file = path, .output = "h", .constants = {{"b", 0.5}}};
  Model single = compiled(context, {body, layers::Dense{.units = 2, .activation = Activation::tanh}, layers::Dense{.units = 1}},
                          {.loss = {.loss = Loss::mse}});
  const Tensor x = inputs.at("a"), y = targets.at("value");
  single.train_batch(x, y);
  const std::vector<float> kernel = floats(single.parameters().get("dense/kernel")), trained = floats(single.parameters().get("onnx/wa"));
  CHECK(trained != floats(Tensor::of(numbers(12), {3, 4})));
  const std::vector<float> features = floats(compiled(context, {body}, {.loss = {.loss = Loss::mse}}).predict(x));

  single.replace_head("dense", {layers::Dense{.units = 3, .activation = Activation::softmax}});
  single.compile(context, classification());
  CHECK(single.predict(x).shape() == Shape{5, 3});
  CHECK(floats(single.parameters().get("dense/kernel")) == kernel);
  CHECK(floats(single.parameters().get("onnx/wa")) == trained);
  CHECK(single.parameters().get("dense_1/kernel").shape() == Shape{2, 3});
  CHECK(single.step() == 0);
  single.replace_head("ha", {layers::Dense{.units = 4, .activation = Activation::softmax}});
  single.compile(context, classification());
  CHECK(single.predict(x).shape() == Shape{5, 4});
  CHECK(single.parameters().get("dense/kernel").shape() == Shape{4, 4});
  CHECK(floats(single.parameters().get("onnx/wa")) == trained);

  // A model of the file alone keeps both inputs if nothing follows, and its names change once something does.
  model.replace_head("value", {});
  model.compile(context, {.loss = {.loss = Loss::mse}});
  CHECK(model.predict(inputs).size() == 1);
  CHECK(floats(model.parameters().get("wa")) == wa);
  model.replace_head("ha", {layers::Dense{.units = 1}});
  model.compile(context, {.loss = {.loss = Loss::mse}});
  model.build({3});
  CHECK(floats(model.parameters().get("onnx/wa")) == wa);
  CHECK_FALSE(model.parameters().has("wb"));
  CHECK_ERROR_CONTAINS(
      "replace_head: expected the name of a layer (onnx, dense), or of a value in the file of a layer onnx, got 'dens'; did "
      "you mean 'dense'?",
      model.replace_head("dens", {}));
}
