// SPDX-License-Identifier: Apache-2.0
// Mixed precision training: 16-bit products with f32 weights, and loss scaling.
#include <cmath>
#include <limits>

#include "reel_device.h"
#include "temporary_folder.h"
#include "train_testing.h"

namespace tenon::test {
namespace {

constexpr const char* scale_name = "optimizer/loss_scale";
constexpr const char* good_steps_name = "optimizer/loss_scale/good_steps";
constexpr const char* skipped_name = "optimizer/loss_scale/skipped";

Config with(Precision precision, const std::string& device = "openblas:0") {
  Config config = deterministic(device);
  config.precision = precision;
  return config;
}

CompileOptions fast(OptimizerDefinition::Kind optimizer = OptimizerDefinition::Kind::adam) {
  return classification({.kind = optimizer, .learning_rate = 0.005});
}

std::vector<LayerDefinition> perceptron() {
  return {layers::Flatten{}, layers::Dense{32, Activation::relu}, layers::Dense{10, Activation::softmax}};
}
std::vector<LayerDefinition> convolutions() {
  return {layers::Reshape{{1, 28, 28}}, layers::Conv2D{8, 3, 2}, layers::BatchNorm{},  layers::Activation{Activation::relu},
          layers::MaxPooling2D{2},      layers::Flatten{},       layers::Dropout{0.1}, layers::Dense{10, Activation::softmax}};
}
std::vector<LayerDefinition> recurrent() {
  return {layers::LSTM{16}, layers::Dense{10, Activation::softmax}};
}
std::vector<LayerDefinition> attentive() {
  return {layers::LayerNorm{}, layers::Attention{.heads = 4}, layers::Flatten{}, layers::Dense{10, Activation::softmax}};
}

Model make_model(const Context& context, const std::vector<LayerDefinition>& layers, const CompileOptions& options = fast()) {
  return compiled(context, layers, options);
}

std::map<std::string, std::vector<float>> f32_weights(Model& model) {
  return weights(model, [](const std::string& name, const Tensor& tensor) { return tensor.dtype() == DType::f32 && name != scale_name; });
}

double scalar_parameter(Model& model, const char* name) {
  return model.parameters().get(name).to_host().item();
}

/// Identical samples and their labels.
Tensor images(float value, std::int64_t count = 8) {
  Tensor x = Tensor::full(DType::f32, {count, 28, 28}, 0.1);
  for (std::int64_t i = 0; i < x.count(); i += 3) x.data<float>()[i] = value;
  return x;
}
Tensor labels(std::int64_t count = 8) {
  Tensor y = Tensor::zeros(DType::i64, {count});
  for (std::int64_t i = 0; i < count; ++i) y.data<std::int64_t>()[i] = i % 10;
  return y;
}

/// |a - b| / |b| over all elements.
double distance(const Tensor& a, const Tensor& b) {
  const std::vector<float> x = floats(a), y = floats(b);
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    difference += std::pow(static_cast<double>(x[i]) - static_cast<double>(y[i]), 2);
    size += std::pow(static_cast<double>(y[i]), 2);
  }
  return std::sqrt(difference / size);
}

TEST_CASE("mixed precision: gradients are those of f32 up to the rounding of 16 bits") {
  const Tensor x = images(0.7F), y = labels();
  for (const auto& net : {perceptron(), convolutions(), recurrent(), attentive()}) {
    Model exact = make_model(Context(with(Precision::float32)), net);
    const double loss = exact.backward(x, y).loss();
    for (const Precision precision : {Precision::mixed_bfloat16, Precision::mixed_float16}) {
      // sixteen successive roundings in one direction
      const double tolerance = 16 * (precision == Precision::mixed_float16 ? 0x1p-11 : 0x1p-9);
      Model model = make_model(Context(with(precision)), net);
      CHECK(model.backward(x, y).loss() == doctest::Approx(loss).epsilon(tolerance));
      for (const auto& entry : exact.parameters().all()) {
        const std::string& name = entry.first;
        if (is_training_state(name) || name.find("running") != std::string::npos) continue;
        const Tensor gradient = model.gradient(name), expected = exact.gradient(name);
        CHECK(gradient.dtype() == DType::f32);
        CAPTURE(name);
        CAPTURE(name_of(precision));
        // some are zero except for rounding: the bias of an attention's keys
        if (distance(expected, Tensor::full(DType::f32, expected.shape(), 0x1p-30)) > 1e3) CHECK(distance(gradient, expected) < tolerance);
      }
    }
  }
}

TEST_CASE("mixed precision: nets learn as in f32, on both backends") {
  struct Case {
    std::vector<LayerDefinition> net;
    std::int64_t samples, epochs;
  };
  for (const std::string device : {"openblas:0", "reference:0"}) {
    for (const Case& c : {Case{perceptron(), 200, 4}, Case{convolutions(), 100, 3}, Case{recurrent(), 100, 3}}) {
      const auto loss_of = [&](Precision precision) {
        Model model = make_model(Context(with(precision, device)), c.net);
        return model.fit(digits(c.samples), {.batch_size = 20, .epochs = small_sizes() ? 1 : c.epochs}).back().logs[0].second;
      };
      const double exact = loss_of(Precision::float32);
      CAPTURE(device);
      CHECK(loss_of(Precision::mixed_bfloat16) == doctest::Approx(exact).epsilon(0.05));
      CHECK(loss_of(Precision::mixed_float16) == doctest::Approx(exact).epsilon(0.05));
    }
  }
}

TEST_CASE("mixed precision: weights, outputs and saved tensors are f32, and the report has the dtypes") {
  Model model = make_model(Context(with(Precision::mixed_bfloat16)), convolutions());
  CHECK(model.predict(images(0.5F)).dtype() == DType::f32);
  CHECK(!model.parameters().has(scale_name));
  for (const auto& [name, tensor] : model.parameters().all()) CHECK(tensor.dtype() == DType::f32);
  const PlacementReport report = model.explain(8);
  std::map<DType, std::size_t> counts;
  for (const auto& [dtype, count] : report.nodes_by_dtype()) counts[dtype] = count;
  CHECK(counts[DType::bf16] > 10);
  CHECK(contains(report.str(), "in bf16"));
  CHECK(contains(model.summary(), " Precision: mixed_bfloat16, weights f32\n"));
  Model scaled = make_model(Context(with(Precision::mixed_float16)), convolutions());
  scaled.build({28, 28});
  CHECK(contains(scaled.summary(), " Precision: mixed_float16, weights f32, loss scale 32768\n"));
}

TEST_CASE("mixed precision: a frozen program has its weights in 16 bits and predicts the same") {
  const Context context(with(Precision::mixed_bfloat16));
  Model model = make_model(context, convolutions());
  const Tensor x = images(0.5F);
  const Tensor expected = model.predict(x);
  Program frozen = model.freeze(8);
  const Tensor got = frozen.run({x}).front();
  CHECK(got.dtype() == DType::f32);
  CHECK(distance(got, expected) < 1e-6);
  for (const NodeInfo& node : frozen.graph().nodes()) {
    if (node.op == TENON_OP_Cast) CHECK(frozen.graph().info(node.inputs[0]).kind != ValueKind::constant);
  }
}

TEST_CASE("mixed precision: a model of f64 is rejected") {
  ModelDefinition definition;
  definition.dtype = DType::f64;
  definition.layers = perceptron();
  Model model(definition);
  const Context context(with(Precision::mixed_bfloat16));
  CHECK_ERROR_CONTAINS("expects parameters of f32, got f64; use dtype: float32 or precision: float32", model.compile(context, fast()));
}

TEST_CASE("loss scale: a step that overflows changes nothing but the scale") {
  for (const std::string device : {"openblas:0", "reference:0"}) {
    for (const auto kind : {OptimizerDefinition::Kind::adam, OptimizerDefinition::Kind::sgd, OptimizerDefinition::Kind::rmsprop}) {
      Model model = make_model(Context(with(Precision::mixed_float16, device)), convolutions(), fast(kind));
      CHECK(model.train_batch(images(0.5F), labels()).step_taken);
      CHECK(scalar_parameter(model, scale_name) == 32768);
      CHECK(scalar_parameter(model, good_steps_name) == 1);
      const auto before = f32_weights(model);
      CHECK(!model.train_batch(images(1e30F), labels()).step_taken);
      CHECK(f32_weights(model) == before);
      CHECK(scalar_parameter(model, scale_name) == 16384);
      CHECK(scalar_parameter(model, good_steps_name) == 0);
      CHECK(scalar_parameter(model, skipped_name) == 1);
      CHECK(model.step() == 2);
      model.train_batch(images(0.5F), labels());
      CHECK(f32_weights(model) != before);
      CHECK(scalar_parameter(model, good_steps_name) == 1);
    }
  }
}

TEST_CASE("loss scale: a skipped step does not change the optimizer's state") {
  Model straight = make_model(Context(with(Precision::mixed_float16)), perceptron());
  straight.train_batch(images(0.5F), labels());
  Model late = make_model(Context(with(Precision::mixed_float16)), perceptron());
  late.train_batch(images(1e30F), labels());
  late.train_batch(images(0.5F), labels());
  // Adam's bias correction counts applied steps: the first one has its usual length
  CHECK(distance(late.parameters().get("dense_1/kernel"), straight.parameters().get("dense_1/kernel")) < 1e-3);
  Model untouched = make_model(Context(with(Precision::mixed_float16)), perceptron());
  untouched.build({28, 28});
  CHECK(distance(untouched.parameters().get("dense_1/kernel"), straight.parameters().get("dense_1/kernel")) > 1e-2);
}

TEST_CASE("loss scale: it doubles after 2000 good steps in a row") {
  Model model = make_model(Context(with(Precision::mixed_float16)), perceptron());
  model.train_batch(images(0.5F), labels());
  model.parameters().set(good_steps_name, Tensor::scalar<std::int64_t>(1998));
  model.train_batch(images(0.5F), labels());
  CHECK(scalar_parameter(model, scale_name) == 32768);
  CHECK(scalar_parameter(model, good_steps_name) == 1999);
  model.train_batch(images(0.5F), labels());
  CHECK(scalar_parameter(model, scale_name) == 65536);
  CHECK(scalar_parameter(model, good_steps_name) == 0);
}

TEST_CASE("loss scale: at its minimum an overflow is an error with step and remedy, and the weights are intact") {
  Model model = make_model(Context(with(Precision::mixed_float16)), perceptron());
  model.train_batch(images(0.5F), labels());
  const auto before = f32_weights(model);
  int steps = 0;
  std::string text = "no error";
  while (text == "no error" && steps < 40) {
    text = message_of([&] { model.train_batch(images(1e30F), labels()); });
    ++steps;
  }
  CHECK(steps == 16);  // 2^15 to 1, and once more
  CHECK(contains(text, "step 17: gradients are not finite even with the smallest loss scale, 1"));
  CHECK(contains(text, "use precision: mixed_bfloat16 or float32"));
  CHECK(f32_weights(model) == before);
  CHECK(scalar_parameter(model, scale_name) == 1);
}

TEST_CASE("loss scale: fit continues after an overflow and excludes it from the means") {
  Tensor x = Tensor::zeros(DType::f32, {40, 28, 28});
  for (std::int64_t i = 0; i < 10 * 28 * 28; ++i) x.data<float>()[i] = 1e30F;
  const auto data = std::make_shared<ArrayDataset>(x, labels(40));
  for (const std::int64_t accumulate : {1, 2}) {
    Model model = make_model(Context(with(Precision::mixed_float16)), perceptron());
    const History history = model.fit(data, {.batch_size = 10, .shuffle = false, .accumulate = accumulate});
    CHECK(std::isfinite(history[0].logs[0].second));
    CHECK(scalar_parameter(model, skipped_name) == 1);
    CHECK(scalar_parameter(model, good_steps_name) == (accumulate == 1 ? 3 : 1));
  }
  const auto infinite = std::make_shared<ArrayDataset>(images(std::numeric_limits<float>::infinity()), labels());
  Model plain = make_model(Context(with(Precision::mixed_bfloat16)), perceptron());
  CHECK_ERROR_CONTAINS("the loss is", plain.fit(infinite, {}));
}

TEST_CASE("loss scale: steps of accumulated gradients are scaled, and reported gradients are unscaled") {
  Model once = make_model(Context(with(Precision::mixed_float16)), perceptron());
  Model gathered = make_model(Context(with(Precision::mixed_float16)), perceptron());
  once.train_batch(images(0.5F), labels());
  gathered.backward(images(0.5F), labels());
  CHECK(gathered.apply());
  CHECK(scalar_parameter(gathered, good_steps_name) == 1);
  CHECK(distance(gathered.parameters().get("dense/kernel"), once.parameters().get("dense/kernel")) < 1e-5);
  const auto before = f32_weights(gathered);
  gathered.backward(images(0.5F), labels());
  gathered.backward(images(1e30F), labels());
  CHECK(!gathered.apply());
  CHECK(scalar_parameter(gathered, skipped_name) == 1);
  CHECK(floats(gathered.parameters().get("dense/kernel")) == before.at("dense/kernel"));
}

TEST_CASE_FIXTURE(InFolder, "loss scale: a resumed run continues with it, bit for bit") {
  const Context context(with(Precision::mixed_float16));
  FitOptions options{.epochs = 4};
  Model straight = make_model(context, convolutions());
  straight.fit(digits(), options);
  Model first = make_model(context, convolutions());
  options.epochs = 2;
  first.train_batch(images(1e30F), labels());
  first.train_batch(images(0.5F), labels());
  first.save(folder.path(), "scaled");
  Model second = make_model(context, convolutions());
  second.load(folder.path() + "/scaled.yaml");
  for (const char* name : {scale_name, good_steps_name, skipped_name})
    CHECK(scalar_parameter(second, name) == scalar_parameter(first, name));
  CHECK(scalar_parameter(second, scale_name) == 16384);

  Model half = make_model(context, convolutions());
  half.fit(digits(), options);
  half.save(folder.path(), "half");
  Model resumed = make_model(context, convolutions());
  resumed.load(folder.path() + "/half.yaml");
  options.epochs = 4;
  resumed.fit(digits(), options);
  CHECK(f32_weights(resumed) == f32_weights(straight));
  CHECK(scalar_parameter(resumed, good_steps_name) == scalar_parameter(straight, good_steps_name));
}

TEST_CASE_FIXTURE(InFolder, "loss scale: a checkpoint can be loaded with another precision") {
  Model scaled = make_model(Context(with(Precision::mixed_float16)), perceptron());
  scaled.train_batch(images(1e30F), labels());
  scaled.save(folder.path(), "f16");
  Model exact = make_model(Context(with(Precision::float32)), perceptron());
  exact.load(folder.path() + "/f16.yaml");
  CHECK(!exact.parameters().has(scale_name));
  CHECK(f32_weights(exact) == f32_weights(scaled));
  exact.train_batch(images(0.5F), labels());
  exact.save(folder.path(), "f32");
  scaled.load(folder.path() + "/f32.yaml");
  CHECK(scalar_parameter(scaled, scale_name) == 32768);
  CHECK(scalar_parameter(scaled, skipped_name) == 0);
  CHECK(f32_weights(scaled) == f32_weights(exact));
}

TEST_CASE("loss scale: a recorded step decides on the device whether it is applied") {
  const auto run = [](Capture capture) {
    Config config = with(Precision::mixed_float16, "reference:0");
    config.capture = capture;
    const Context context = with_reel(config);
    Model model = make_model(context, perceptron());
    std::vector<double> trail;
    for (int step = 0; step < 8; ++step) {
      model.train_batch(images(step == 5 ? 1e30F : 0.5F), labels());
      trail.push_back(scalar_parameter(model, scale_name));
    }
    return std::pair(trail, f32_weights(model));
  };
  const auto executed = run(Capture::off);
  CHECK(Reel::replayed == 0);
  const auto replayed = run(Capture::automatic);
  CHECK(Reel::replayed >= 5);
  CHECK(replayed == executed);
  CHECK(executed.first == std::vector<double>{32768, 32768, 32768, 32768, 32768, 16384, 16384, 16384});
}

TEST_CASE("mixed precision: several devices share a batch") {
  CompileOptions options = fast();
  options.parallel.devices = {"openblas:0", "reference:0"};
  Model both = make_model(Context(with(Precision::mixed_float16)), perceptron(), options);
  Model one = make_model(Context(with(Precision::mixed_float16)), perceptron());
  both.train_batch(images(0.5F), labels());
  one.train_batch(images(0.5F), labels());
  CHECK(distance(both.parameters().get("dense_1/kernel"), one.parameters().get("dense_1/kernel")) < 1e-2);
  const auto before = f32_weights(both);
  both.train_batch(images(1e30F), labels());
  CHECK(f32_weights(both) == before);
  CHECK(scalar_parameter(both, scale_name) == 16384);
}

}  // namespace
}  // namespace tenon::test
