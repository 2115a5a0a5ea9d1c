// SPDX-License-Identifier: Apache-2.0
// Models that learn whose layers are ONNX files.
#include <tenon/gradcheck.h>
#include <tenon/training_run.h>

#include <cmath>
#include <numeric>

#include "onnx_testing.h"
#include "train/run_record.h"
#include "train_testing.h"

using namespace tenon;
using namespace tenon::test;

namespace {

/// A net with batch normalisation and without kinks.
std::vector<LayerDefinition> convnet() {
  return {layers::Reshape{.shape = {1, 28, 28}},
          layers::Conv2D{.filters = 4, .kernel_size = {5}, .strides = {3}},
          layers::BatchNorm{},
          layers::Activation{Activation::tanh},
          layers::Flatten{},
          LayerDefinition(layers::Dense{.units = 10, .activation = Activation::softmax}, "head")};
}

/// A model and the file that it is exported to.
struct Exported : Deterministic {
  Exported() : path(folder.file("net.onnx")) {
    Model model = original();
    model.build({28, 28});
    model.export_onnx(path);
  }
  Model original(const CompileOptions& options = classification()) const { return compiled(context, convnet(), options); }
  Model imported(const CompileOptions& options = classification(), layers::Onnx layer = {}) const {
    layer.file = path;
    return compiled(context, {layer}, options);
  }

  const TemporaryFolder folder;
  const std::string path;
};

/// The largest difference of parameters of equal names, relative to 1.
double difference(Model& a, Model& b) {
  double largest = 0;
  for (const auto& [name, tensor] : a.parameters().all()) {
    const std::vector<float> left = floats(tensor), right = floats(b.parameters().get(name));
    for (std::size_t i = 0; i < left.size(); ++i) largest = std::max(largest, std::fabs(static_cast<double>(left[i]) - right[i]));
  }
  return largest;
}

void train_steps(Model& model, std::int64_t steps) {
  model.fit(digits(), {.batch_size = 16, .epochs = 1, .steps_per_epoch = steps});
}

/// y = BatchNormalization(x w + b) v, of 3 features, 4 hidden ones and 1 result.
onnx::ModelRecord regression() {
  return test::model(
      onnx_graph({node("Gemm", {"x", "w", "b"}, {"hidden"}),
                  node("BatchNormalization", {"hidden", "scale", "shift", "mean", "var"}, {"n"}, {number("momentum", 0.75F)}),
                  node("Tanh", {"n"}, {"t"}), node("Gemm", {"t", "v", "c"}, {"y"})},
                 {f32("x", {-1, 3})}, {f32("y", {-1, 1})},
                 {test::floats("w", numbers(12), {3, 4}), test::floats("b", numbers(4), {4}), test::floats("scale", {1, 2, 0.5, 1}, {4}),
                  test::floats("shift", numbers(4), {4}), test::floats("mean", {0, 0.5, 0, 0}, {4}), test::floats("var", {1, 1, 2, 1}, {4}),
                  test::floats("v", numbers(4), {4, 1}), test::floats("c", {0.25}, {1})}));
}

Tensor samples(std::int64_t n, std::int64_t features) {
  return Tensor::of(numbers(static_cast<std::size_t>(n * features)), {n, features});
}

CompileOptions mean_square(double rate = 0.1) {
  return {.optimizer = {.kind = OptimizerDefinition::Kind::sgd, .learning_rate = rate}, .loss = {.loss = Loss::mse}};
}

/// A model of one file, on the reference.
struct Imported : OnReference {
  Model of(const onnx::ModelRecord& record, layers::Onnx layer = {}, const CompileOptions& options = mean_square()) const {
    layer.file = path = files.write(record, std::to_string(++written) + ".onnx");
    return compiled(context, {layer}, options);
  }
  /// The error of making it, without the path.
  std::string message(const onnx::ModelRecord& record, const layers::Onnx& layer = {}, const Shape& sample = {3}) const {
    std::string text = message_of([&] { of(record, layer).build(sample); });
    for (std::size_t at = text.find(path); at != std::string::npos; at = text.find(path)) text.replace(at, path.size(), "FILE");
    return text;
  }
  OnnxFiles files;
  mutable std::string path;  ///< of the last file
  mutable int written = 0;
};

std::vector<std::string> names(Model& model) {
  std::vector<std::string> all;
  for (const auto& [name, tensor] : model.parameters().all()) all.push_back(name);
  return all;
}

}  // namespace

TEST_CASE_FIXTURE(Imported, "onnx learn: gradients of an imported model agree with finite differences, also of weights of one element") {
  ModelDefinition definition;
  definition.layers = {layers::Onnx{.file = files.write(regression())}};
  const GradientReport report = check_gradients(context, definition, {.loss = Loss::mse}, samples(5, 3).to(DType::f64),
                                                Tensor::of(std::vector<double>{1, 0, -1, 2, 0.5}, {5, 1}));
  INFO(report.str());
  CHECK(report.passed());
  REQUIRE(report.parameters.size() == 6);  // without the statistics
  CHECK(report.parameters[5].name == "c");
  CHECK(report.parameters[5].checked == 1);
}

TEST_CASE_FIXTURE(Exported, "onnx learn: five steps of an exported and imported model end at the parameters of the original") {
  OptimizerDefinition sgd{.kind = OptimizerDefinition::Kind::sgd, .learning_rate = 0.05};
  sgd.momentum = 0.9;
  for (const OptimizerDefinition& optimizer : {sgd, OptimizerDefinition{.kind = OptimizerDefinition::Kind::adam}}) {
    Model before = original(classification(optimizer)), after = imported(classification(optimizer));
    train_steps(before, 5);
    train_steps(after, 5);
    CHECK(names(before) == names(after));
    CHECK(difference(before, after) < 1e-5);  // sums of other orders, in f32
    CHECK(before.step() == after.step());
    const double loss = before.evaluate(digits())[0].second;
    CHECK(after.evaluate(digits())[0].second == doctest::Approx(loss).epsilon(1e-5));
  }
  CHECK(contains(imported().summary(), "onnx (Onnx net.onnx)  (None, 10)"));
  CHECK(contains(imported().summary(), "Non-trainable params: 8 "));  // running mean and variance of 4 channels
}

TEST_CASE_FIXTURE(Exported, "onnx learn: parallel devices share the parameters of the file") {
  Config config = deterministic();
  config.virtual_devices = {{.of = "openblas:0", .count = 2}};
  const Context two(config);
  CompileOptions options = classification();
  options.parallel.devices = {"openblas:0", "openblas:1"};
  Model layers_model = compiled(two, convnet(), options), file_model = compiled(two, {layers::Onnx{.file = path}}, options);
  train_steps(layers_model, 3);
  train_steps(file_model, 3);
  CHECK(difference(layers_model, file_model) < 1e-5);
}

TEST_CASE_FIXTURE(Imported,
                  "onnx learn: batch normalisation updates its statistics by the momentum of its node, and keeps them when frozen") {
  const Tensor x = samples(4, 3), y = Tensor::of<float>({1, 0, -1, 2}, {4, 1});
  Model model = of(regression());
  model.build({3});
  const std::vector<float> w = floats(model.parameters().get("w")), b = floats(model.parameters().get("b")), v = floats(x);
  model.train_batch(x, y);
  for (std::size_t c = 0; c < 4; ++c) {
    std::vector<double> h;
    for (std::size_t n = 0; n < 4; ++n) h.push_back(b[c] + v[3 * n] * w[c] + v[3 * n + 1] * w[4 + c] + v[3 * n + 2] * w[8 + c]);
    const double mean = std::accumulate(h.begin(), h.end(), 0.0) / 4;
    const double squares =
        std::accumulate(h.begin(), h.end(), 0.0, [&](double sum, double value) { return sum + (value - mean) * (value - mean); });
    const double means[] = {0, 0.5, 0, 0}, variances[] = {1, 1, 2, 1};
    CHECK(floats(model.parameters().get("mean"))[c] == doctest::Approx(0.75 * means[c] + 0.25 * mean));
    CHECK(floats(model.parameters().get("var"))[c] == doctest::Approx(0.75 * variances[c] + 0.25 * squares / 3));  // unbiased
  }

  CompileOptions options = mean_square();
  options.frozen = {"scale", "shift"};
  for (const bool by_layer : {true, false}) {
    Model frozen = by_layer ? of(regression(), {.frozen = {"s*"}}) : of(regression(), {}, options);
    frozen.build({3});
    CHECK(frozen.backward(x, y).loss() == doctest::Approx(frozen.test_batch(x, y).loss()));
    frozen.apply();
    CHECK(floats(frozen.parameters().get("mean")) == std::vector<float>{0, 0.5, 0, 0});
    CHECK(floats(frozen.parameters().get("scale")) == std::vector<float>{1, 2, 0.5, 1});
    CHECK(floats(frozen.parameters().get("w")) != w);
  }
}

TEST_CASE_FIXTURE(Imported, "onnx learn: the mode of a node does not matter, and batch norms that share statistics update them in turn") {
  const auto net = [](bool training_mode) {
    std::vector<onnx::AttributeRecord> attributes;
    if (training_mode) attributes.push_back(integer("training_mode", 1));
    return test::model(onnx_graph({node("BatchNormalization", {"x", "s", "b", "mean", "var"}, {"h"}, attributes),
                                   node("BatchNormalization", {"h", "s", "b", "mean", "var"}, {"y"}, attributes)},
                                  {f32("x", {-1, 2})}, {f32("y", {-1, 2})},
                                  {test::floats("s", {2, 2}, {2}), test::floats("b", {1, 1}, {2}), test::floats("mean", {0, 0}, {2}),
                                   test::floats("var", {1, 1}, {2})}));
  };
  const Tensor x = Tensor::of<float>({1, 4, 3, 0}, {2, 2}), y = Tensor::zeros(DType::f32, {2, 2});
  Model stated = of(net(true)), inference = of(net(false));
  stated.build({2});
  const std::vector<float> predicted = floats(stated.predict(x));
  CHECK(predicted[0] == doctest::Approx(2 * (2 * 1 + 1) + 1).epsilon(1e-4));
  CHECK(predicted == floats(inference.predict(x)));
  stated.train_batch(x, y);
  // First mean 2, then that of the normalised batch, 1: 0.9 (0.9 * 0 + 0.1 * 2) + 0.1 * 1.
  CHECK(floats(stated.parameters().get("mean"))[0] == doctest::Approx(0.28));
}

TEST_CASE_FIXTURE(Imported, "onnx learn: dropout drops in training steps only, with other masks in each, unless nothing learns") {
  for (const std::int64_t opset : {7, 12, 17}) {
    std::vector<onnx::AttributeRecord> ratio;
    if (opset < 12) ratio.push_back(number("ratio", 0.5F));
    std::vector<std::string_view> inputs{"h"};
    if (opset >= 12) inputs.emplace_back("ratio");
    onnx::ModelRecord record = test::model(
        onnx_graph({node("MatMul", {"x", "w"}, {"h"}), node("Dropout", inputs, {"y"}, ratio)}, {f32("x", {-1, 3})}, {f32("y", {-1, 64})},
                   {test::floats("w", std::vector<float>(192, 1), {3, 64}), test::floats("ratio", {0.5}, {})}),
        opset);
    Model model = of(record);
    const Tensor x = Tensor::full(DType::f32, {2, 3}, 1);
    CHECK(floats(model.predict(x)) == std::vector<float>(128, 3));
    model.set_training(true);
    const std::vector<float> first = floats(model.forward(x));
    CHECK(std::ranges::count(first, 0.0F) > 32);
    CHECK(std::ranges::count(first, 0.0F) + std::ranges::count(first, 6.0F) == 128);
    model.train_batch(x, Tensor::full(DType::f32, {2, 64}, 3));
    CHECK(floats(model.forward(x)) != first);
    Model frozen = of(record, {.frozen = {"*"}});
    frozen.set_training(true);
    CHECK(floats(frozen.forward(x)) == std::vector<float>(128, 3));
  }
}

TEST_CASE_FIXTURE(Exported, "onnx learn: the body of a file gets another head, prefixed names, and learns with it or is frozen") {
  // The value before the head's product: the result of Flatten.
  std::string bytes = folder.read("net.onnx");
  const onnx::ModelRecord record = onnx::parse_model("net.onnx", bytes);
  std::string body;
  for (const onnx::NodeRecord& node : record.graph.nodes) {
    if (node.op == "MatMul") body = node.inputs[0];
  }
  const auto layers_of = [&](std::vector<std::string> frozen) {
    return std::vector<LayerDefinition>{LayerDefinition(layers::Onnx{.file = path, .output = body, .frozen = std::move(frozen)}, "body"),
                                        layers::Dense{.units = 10, .activation = Activation::softmax}};
  };
  Model model = compiled(context, layers_of({}));
  CHECK(names(model) == std::vector<std::string>{"body/batch_norm/beta", "body/batch_norm/gamma", "body/batch_norm/running_mean",
                                                 "body/batch_norm/running_variance", "body/conv2d/bias", "body/conv2d/kernel", "dense/bias",
                                                 "dense/kernel"});
  const auto of_body = [](const std::string& name, const Tensor&) { return name.starts_with("body/"); };
  const auto before = weights(model, of_body);
  const double loss = model.evaluate(digits())[0].second;
  model.fit(digits(), {.epochs = 2});
  CHECK(weights(model, of_body) != before);
  CHECK(model.evaluate(digits())[0].second < loss);

  Model frozen = compiled(context, layers_of({"*"}));
  CHECK(contains(frozen.summary(), "of these frozen: 112 "));
  frozen.fit(digits(), {.epochs = 2});
  CHECK(weights(frozen, of_body) == before);
  CHECK(frozen.evaluate(digits())[0].second < loss);

  Model part = compiled(context, layers_of({"conv2d/*"}));
  part.fit(digits(), {.epochs = 1});
  CHECK(weights(part, of_body).at("body/conv2d/kernel") == before.at("body/conv2d/kernel"));
  CHECK(weights(part, of_body).at("body/batch_norm/gamma") != before.at("body/batch_norm/gamma"));
}

TEST_CASE_FIXTURE(Exported, "onnx learn: checkpoints hold all parameters, and a resumed fit ends where an uninterrupted one does") {
  Model whole = imported(), half = imported();
  whole.fit(digits(), {.epochs = 2});
  half.fit(digits(), {.epochs = 1});
  half.save(folder.path(), "half");
  Model resumed = imported();
  resumed.load(folder.file("half.yaml"));
  CHECK(weights(resumed) == weights(half));
  resumed.fit(digits(), {.epochs = 2});
  CHECK(weights(resumed) == weights(whole));

  // Names and shapes are those of the model that the file was exported from.
  Model layers_model = original();
  CHECK_NOTHROW(layers_model.load(folder.file("half.yaml")));
  CHECK(layers_model.evaluate(digits())[0].second == doctest::Approx(half.evaluate(digits())[0].second));
}

TEST_CASE_FIXTURE(Exported, "onnx learn: a trained model is exported again, with its names, and predicts the same") {
  Model model = imported();
  model.fit(digits(), {.epochs = 1});
  model.export_onnx(folder.file("again.onnx"));
  Model again = compiled(context, {layers::Onnx{.file = folder.file("again.onnx")}});
  again.build({28, 28});
  const auto is_weight = [](const std::string& name, const Tensor&) { return !is_training_state(name); };
  CHECK(weights(again) == weights(model, is_weight));
  std::vector<float> values(3 * 28 * 28);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 13) / 13;
  const Tensor x = Tensor::of(values, {3, 28, 28});
  const std::vector<float> expected = floats(model.predict(x)), got = floats(again.predict(x));
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == doctest::Approx(expected[i]).epsilon(1e-5));
}

TEST_CASE_FIXTURE(Imported, "onnx learn: tied weights are one parameter, labels stay integers, and other inputs are numbers") {
  // scores = (table[ids] * mask) table^T
  const onnx::ModelRecord record =
      test::model(onnx_graph({node("Gather", {"table", "ids"}, {"rows"}), node("Cast", {"mask"}, {"m"}, {integer("to", 1)}),
                              node("Unsqueeze", {"m", "last"}, {"m3"}), node("Mul", {"rows", "m3"}, {"kept"}),
                              node("Transpose", {"table"}, {"head"}), node("MatMul", {"kept", "head"}, {"scores"})},
                             {value("ids", onnx::ElementType::i64, {-1, 4}), value("mask", onnx::ElementType::i64, {-1, 4})},
                             {f32("scores", {-1, 4, 5})}, {test::floats("table", numbers(15), {5, 3}), indices("last", {-1})}));
  const CompileOptions options{.optimizer = {.kind = OptimizerDefinition::Kind::sgd, .learning_rate = 0.5},
                               .loss = {.loss = Loss::sparse_categorical_crossentropy, .from_logits = true}};
  Model model = of(record, {.input = "ids", .constants = {{"mask", 1}}}, options);
  CHECK(model.definition().input_dtype == DType::i64);
  CHECK(model.sample_shape() == Shape{4});
  CHECK(names(model) == std::vector<std::string>{"table"});
  const Tensor ids = Tensor::of<std::int64_t>({0, 1, 2, 3, 4, 0, 1, 2}, {2, 4});
  const double before = model.test_batch(ids, ids).loss();
  for (int step = 0; step < 300; ++step) model.train_batch(ids, ids);
  CHECK(model.test_batch(ids, ids).loss() < before / 2);
  CHECK(message(record, {}, {4}) == "model: expected the shapes of samples of the inputs ids, mask, got 1 shape");
}

TEST_CASE_FIXTURE(Imported, "onnx learn: weights of f16 are parameters of the model's dtype, those of f64 need a model of f64") {
  const auto product = [&](onnx::ElementType type) {
    return test::model(
        onnx_graph({node("Cast", {"x"}, {"h"}, {integer("to", static_cast<std::int64_t>(type))}),
                    node("Cast", {"w"}, {"v"}, {integer("to", static_cast<std::int64_t>(type))}), node("MatMul", {"h", "v"}, {"y"})},
                   {f32("x", {-1, 2})}, {value("y", type, {-1, 2})}, {test::floats("w", {0.1F, 0.2F, 0.3F, 0.4F}, {2, 2})}));
  };
  Model narrow = of(product(onnx::ElementType::f16));
  const Tensor x = Tensor::of<float>({1, 0}, {1, 2});
  CHECK(floats(narrow.predict(x)) == std::vector<float>{0.1F, 0.2F});  // computed in f32
  narrow.train_batch(x, Tensor::zeros(DType::f32, {1, 2}));
  CHECK(narrow.parameters().get("w").dtype() == DType::f32);

  onnx::ModelRecord wide = product(onnx::ElementType::f64);
  wide.graph.initializers[0].type = onnx::ElementType::f64;
  wide.graph.initializers[0].floats.clear();
  wide.graph.initializers[0].doubles = {0.1, 0.2, 0.3, 0.4};
  CHECK(message(wide, {}, {2}) == "FILE: weight 'w' is f64, more than the f32 of the model; set `dtype: float64`");
  ModelDefinition definition;
  definition.dtype = DType::f64;
  definition.layers = {layers::Onnx{.file = path}};
  Model model(definition);
  model.compile(context, mean_square());
  model.build({2});
  CHECK(model.parameters().get("w").dtype() == DType::f64);
}

TEST_CASE_FIXTURE(Imported, "onnx learn: weights in Constant nodes are the same parameters in all programs") {
  onnx::AttributeRecord list;
  list.name = "value_floats";
  list.type = onnx::AttributeRecord::Type::floats;
  list.numbers = {1, 2, 3};
  Model model = of(test::model(onnx_graph({node("Constant", {}, {"c"}, {list}), node("Mul", {"x", "c"}, {"result"})}, {f32("x", {-1, 3})},
                                          {f32("result", {-1, 3})})));
  for (const std::int64_t batch : {1, 2, 3}) {
    model.train_batch(samples(batch, 3), samples(batch, 3));
    model.predict(samples(batch, 3));
  }
  CHECK(names(model) == std::vector<std::string>{"c"});
  CHECK(floats(model.parameters().get("c")) != std::vector<float>{1, 2, 3});
}

TEST_CASE_FIXTURE(Imported, "onnx learn: a file of a fixed batch is built for others if it can be, else the error says how to export it") {
  onnx::ModelRecord fits = regression();
  fits.graph.inputs = {f32("x", {1, 3})};
  Model model = of(fits);
  CHECK(model.predict(samples(5, 3)).shape() == Shape{5, 1});
  onnx::ModelRecord fixed =
      test::model(onnx_graph({node("Reshape", {"x", "shape"}, {"h"}), node("MatMul", {"h", "w"}, {"y"})}, {f32("x", {1, 2, 3})},
                             {f32("y", {1, 1})}, {indices("shape", {1, 6}), test::floats("w", numbers(6), {6, 1})}));
  Model one = of(fixed);
  CHECK(one.predict(samples(1, 6).reshape(Shape{1, 2, 3})).shape() == Shape{1, 1});
  const std::string text = message_of([&] { one.predict(samples(2, 6).reshape(Shape{2, 2, 3})); });
  CHECK(contains(text, "whose input x f32(1,2,3) is fixed to a batch of 1, and cannot be built for one of 2 ("));
  CHECK(contains(text, "; export it with an open first axis (dynamic_axes or dynamic_shapes in PyTorch)"));
}

TEST_CASE_FIXTURE(Imported, "onnx learn: errors name the file, what it has and what chooses") {
  CHECK(contains(message_of([&] { compiled(context, {layers::Onnx{.file = "/no/such.onnx"}}); }), "/no/such.onnx"));
  CHECK(message(regression(), {.output = "hiden"}) ==
        "layer onnx: FILE: output: expected the name of a value that a node of the graph computes, got 'hiden'; did you mean 'hidden'?");
  CHECK(message(regression(), {.input = "z"}) == "layer onnx: FILE: input: expected an input that 'y' depends on (x), got 'z'");
  CHECK(message(regression(), {.frozen = {"encoder.*"}}) ==
        "layer onnx: 'onnx' has `frozen: encoder.*`, which matches no weight of FILE; expected a glob of w, b, scale, shift, mean, var, v, "
        "c");
  CHECK_ERROR_CONTAINS("'onnx' expects its input x f32(n,3), got f32(1,4)",
                       compiled(context, {layers::Flatten{}, layers::Onnx{.file = files.write(regression())}}, mean_square()).build({4}));
  CHECK_ERROR_CONTAINS("expected (4), the shape of the data's samples, got (3)", of(regression()).build({4}));

  const auto argmax = test::model(onnx_graph({node("MatMul", {"x", "w"}, {"h"}), node("ArgMax", {"h"}, {"y"}, {integer("axis", 1)})},
                                             {f32("x", {-1, 3})}, {i64("y", {-1, 1})}, {test::floats("w", numbers(6), {3, 2})}));
  CHECK(contains(message(argmax),
                 "whose output 'y' is i64(1,1): expected floats, such as the scores of classes; choose an earlier value with `output`"));
  CHECK_NOTHROW(of(argmax, {.output = "h"}).build({3}));

  const auto two = test::model(onnx_graph({node("MatMul", {"x", "w"}, {"a"}), node("Neg", {"a"}, {"b"})}, {f32("x", {-1, 3})},
                                          {f32("a", {-1, 2}), f32("b", {-1, 2})}, {test::floats("w", numbers(6), {3, 2})}));
  CHECK(of(two).outputs().size() == 2);
  CHECK_NOTHROW(of(two, {.output = "a"}).build({3}));

  const auto summed = test::model(onnx_graph({node("MatMul", {"x", "w"}, {"h"}), node("ReduceSum", {"h"}, {"y"}, {integer("keepdims", 0)})},
                                             {f32("x", {-1, 3})}, {f32("y", {})}, {test::floats("w", numbers(6), {3, 2})}));
  CHECK(contains(message(summed), "whose output 'y' is f32(): expected the batch of 1 as its first axis"));

  // Names that programs use otherwise get that of the layer.
  const auto named = [](std::string_view name) {
    return test::model(onnx_graph({node("MatMul", {"x", name}, {"result"})}, {f32("x", {-1, 3})}, {f32("result", {-1, 2})},
                                  {test::floats(name, numbers(6), {3, 2})}));
  };
  for (const char* name : {"optimizer/w", "y", "step"}) {
    Model model = of(named(name));
    model.train_batch(samples(2, 3), samples(2, 2));
    CHECK(names(model).back() == std::string("onnx/") + name);
  }

  // A head that cannot be imported does not matter where it is left out.
  onnx::ModelRecord unknown = two;
  unknown.graph.nodes[1].op = "NoSuchOperator";
  CHECK(contains(message(unknown, {.output = "b"}), "Tenon has no such operator"));
  CHECK_NOTHROW(of(unknown, {.output = "a"}).build({3}));
}

TEST_CASE_FIXTURE(Exported, "onnx learn: YAML names the file relative to itself, as the model, as a layer, with globs that are frozen") {
  const std::string rest =
      "data: {source: digits, train_count: 64, test_count: 32}\nloss: sparse_categorical_crossentropy\nmetrics: [accuracy]\nverbose: 0\n";
  const auto run_of = [&](const std::string& text, const std::vector<ConfigOverride>& overrides = {}) {
    return TrainingRun(load_definition(folder.write("train.yaml", text + rest), overrides), context);
  };
  TrainingRun whole = run_of("model: {onnx: net.onnx}\nfrozen: [conv2d/*]\n");
  CHECK(whole.definition().model.input_shape == std::vector<std::int64_t>{28, 28});
  CHECK(contains(whole.model().summary(), "of these frozen: 104 "));
  whole.fit(whole.load_data());
  CHECK(whole.evaluate(whole.load_data())[0].second < 3);
  CHECK_THROWS_WITH_AS(run_of("model: {onnx: net.onnx}\n", {{"frozen", "[\"encoder.*\"]"}}),
                       doctest::Contains("frozen 'encoder.*': matches no parameter of the model; expected a glob of conv2d/kernel"), Error);

  // The description of a run keeps the file that replaced the definition's.
  TrainingRun replaced = run_of("model: {onnx: no.onnx}\ncheckpoint: {directory: run}\n", {{"model.onnx", path}});
  replaced.fit(replaced.load_data());
  const train::SavedRun saved = train::find_run(folder.file("run"), "");
  REQUIRE(saved.overrides.size() == 1);
  CHECK(saved.overrides[0].value == path);

  TrainingRun layered =
      run_of("model:\n  layers:\n    - onnx: {file: net.onnx, frozen: true, name: net}\n    - dense: {units: 10}\n    - softmax\n");
  CHECK(layered.model().parameters().has("net/head/kernel"));
  CHECK(contains(layered.model().summary(), "Trainable params: 110 "));
  CHECK(run_of("model: {layers: [onnx: net.onnx]}\n").model().parameters().has("head/kernel"));

  folder.write("model.yaml", "onnx: {file: net.onnx, frozen: [\"*/bias\"]}\n");
  CHECK(contains(load_model(folder.file("model.yaml")).summary(), "of these frozen: 14 "));
  const auto message = [&](const std::string& text) { return message_of([&] { run_of(text); }); };
  CHECK(contains(message("model: {onnx: no.onnx}\n"), "train.yaml:1:15: onnx: "));
  CHECK(contains(message("model: {onnx: no.onnx}\n"), folder.file("no.onnx")));
  CHECK(contains(message("model: {onnx: net.onnx, layers: [flatten]}\n"),
                 "key 'onnx': expected one of onnx and layers, got both; a layer of the list may be `onnx: {file: ...}`"));
  CHECK(contains(message("model: {onnx: {fil: net.onnx}}\n"), "unknown key 'fil'; did you mean 'file'?"));
}
