// SPDX-License-Identifier: Apache-2.0
// Sample weights: a sample of weight n counts as n samples, in every loss, and however a batch is divided.
#include <doctest/doctest.h>

#include <cmath>
#include <optional>

#include "train_testing.h"

namespace tenon::test {
namespace {

const std::vector<float> three_weights = {2, 0, 3};

/// Rows of t as often as these weights say.
Tensor repeated(const Tensor& t) {
  std::vector<Tensor> rows;
  for (std::int64_t i = 0; i < 3; ++i) {
    for (float n = 0; n < three_weights[static_cast<std::size_t>(i)]; ++n) rows.push_back(t.slice(0, i, i + 1));
  }
  return concat(rows, 0);
}

/// A loss with three samples of targets, and metrics that suit it.
struct Case {
  LossDefinition loss;
  Tensor y;
  std::vector<MetricDefinition> metrics = {};
};

const Tensor labels = Tensor::of<std::int64_t>({2, 0, 1}, {3});
const Tensor one_hot = Tensor::of<double>({0, 0, 1, 1, 0, 0, 0, 1, 0}, {3, 3});
const Tensor numbers = Tensor::of<double>({0.5, -1, 2, 0.25, 1, 0, -0.5, 3, 1}, {3, 3});

/// The absolute errors, of the cubes.
Value cubic(Value y, Value target) {
  return ops::abs(ops::cube(y - target));
}

std::vector<Case> cases() {
  const Loss sparse = Loss::sparse_categorical_crossentropy, dense = Loss::categorical_crossentropy;
  const std::vector<double> of_classes = {0.5, 2, 3};
  const std::vector<MetricDefinition> of_labels = {Metric::accuracy, {Metric::top_k, 2}, Metric::perplexity};
  const std::vector<MetricDefinition> of_values = {Metric::mse, Metric::mae, Metric::binary_accuracy};
  return {
      {{.loss = sparse, .from_logits = true}, labels, of_labels},
      {{.loss = sparse, .from_logits = true, .label_smoothing = 0.2, .class_weights = of_classes}, labels, of_labels},
      {{.loss = sparse, .from_logits = true, .ignore_index = 2, .class_weights = of_classes}, labels, of_labels},
      {{.loss = dense, .from_logits = true, .label_smoothing = 0.1, .class_weights = of_classes}, one_hot, {Metric::accuracy}},
      {{.loss = Loss::binary_crossentropy, .from_logits = true}, one_hot, {Metric::accuracy}},
      {{.loss = Loss::binary_crossentropy, .from_logits = true, .positive_weight = 3}, one_hot, {Metric::accuracy}},
      {{.loss = Loss::kl_divergence, .from_logits = true, .label_smoothing = 0.1}, one_hot},
      {{.loss = Loss::nll}, labels, of_labels},
      {{.loss = Loss::nll, .ignore_index = 0}, labels, of_labels},
      {{.loss = Loss::mse}, numbers, of_values},
      {{.loss = Loss::half_mse}, numbers, of_values},
      {{.loss = Loss::mae}, numbers, of_values},
      {{.loss = Loss::huber, .delta = 0.7}, numbers, of_values},
      {{.loss = Loss::neg_mean_prod}, numbers, of_values},
      {{.loss = Loss::custom, .function = cubic, .name = "cubic"}, numbers, of_values},
  };
}

Model f64_model(const Context& context, std::vector<LayerDefinition> layers, CompileOptions options) {
  ModelDefinition definition;
  definition.dtype = DType::f64;
  definition.layers = std::move(layers);
  Model model(std::move(definition));
  model.compile(context, std::move(options));
  return model;
}

const Tensor x = Tensor::of<float>({1, -0.5, 0.25, 2, -1.5, 0.75}, {3, 2});
const Tensor weights_of_three = Tensor::of(three_weights, {3});

TEST_CASE_FIXTURE(OnReference, "sample weights: loss, metrics and gradients are those of samples that occur as often as the weights say") {
  for (const Case& each : cases()) {
    CAPTURE(each.loss.str());
    Model model = f64_model(context, {layers::Dense{3, Activation::linear}}, {.loss = each.loss, .metrics = each.metrics});
    const BatchResult weighted = model.backward(x, each.y, weights_of_three);
    const std::vector<double> gradient = model.gradient("dense/kernel").to_vector<double>();
    model.apply();
    Model other = f64_model(context, {layers::Dense{3, Activation::linear}}, {.loss = each.loss, .metrics = each.metrics});
    const BatchResult occurring = other.backward(repeated(x), repeated(each.y));
    const std::vector<double> expected = other.gradient("dense/kernel").to_vector<double>();
    for (std::size_t i = 0; i < occurring.logs.size(); ++i) {
      CAPTURE(occurring.logs[i].first);
      CHECK(weighted.logs[i].second == doctest::Approx(occurring.logs[i].second).epsilon(1e-12));
    }
    CHECK(weighted.weight == occurring.weight);
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(gradient[i] == doctest::Approx(expected[i]).epsilon(1e-12));
  }
}

TEST_CASE_FIXTURE(OnReference, "sample weights: gradients are those of finite differences") {
  const Tensor uneven = Tensor::of<double>({0.3, 1.7, 0.25}, {3});
  for (const Case& each : cases()) {
    CAPTURE(each.loss.str());
    Model model = f64_model(context, {layers::Dense{3, Activation::linear}}, {.loss = each.loss});
    model.backward(x, each.y, uneven);
    const Tensor gradient = model.gradient("dense/kernel");
    const Tensor kernel = model.parameters().get("dense/kernel").to_host();
    const LossFunction loss = [&](const std::vector<Tensor>& parameters) {
      model.parameters().set("dense/kernel", parameters[0]);
      return model.test_batch(x, each.y, uneven).loss();
    };
    const GradientReport report = check_gradients(loss, {{"dense/kernel", kernel}}, {gradient});
    CHECK_MESSAGE(report.passed(), report.str());
  }
}

TEST_CASE_FIXTURE(OnReference,
                  "sample weights: each label of a sequence has that of its sample, and an image's losses are averaged first") {
  const Tensor steps = Tensor::of<std::int64_t>({0, 1, 2, -1, 1, 2}, {3, 2}), signals = Tensor::of<float>({1, 2, 3, 4, 5, 6}, {3, 2, 1});
  const LossDefinition loss{.loss = Loss::sparse_categorical_crossentropy, .from_logits = true, .ignore_index = -1};
  Model model = f64_model(context, {layers::Dense{3}}, {.loss = loss, .metrics = {Metric::accuracy}});
  model.build({2, 1});
  model.parameters().set("dense/kernel", Tensor::of<double>({0.5, -1, 0.25}, {1, 3}));
  const auto check_equal = [&](const Tensor& y) {
    const BatchResult weighted = model.test_batch(signals, y, weights_of_three),
                      occurring = model.test_batch(repeated(signals), repeated(y));
    for (std::size_t i = 0; i < weighted.logs.size(); ++i)
      CHECK(weighted.logs[i].second == doctest::Approx(occurring.logs[i].second).epsilon(1e-12));
    CHECK(weighted.weight == occurring.weight);
  };
  check_equal(steps);
  model.compile(context, {.loss = {.loss = Loss::mse}, .metrics = {Metric::mae}});
  check_equal(Tensor::full(DType::f64, {3, 2, 3}, 0.5));
}

TEST_CASE_FIXTURE(OnReference, "sample weights: where nothing counts the loss is 0, and a step changes nothing") {
  Model model = f64_model(context, {layers::Dense{3, Activation::softmax}}, classification({.kind = OptimizerDefinition::Kind::sgd}));
  const Tensor none = Tensor::zeros(DType::f32, {3});
  model.build({2});
  const Tensor before = model.parameters().get("dense/kernel").to_host();
  const BatchResult result = model.train_batch(x, labels, none);
  CHECK(result.loss() == 0);
  CHECK(result.weight == 0);
  CHECK(equal(model.parameters().get("dense/kernel").to_host(), before));
  model.backward(x, labels, none);
  CHECK(model.gradient("dense/kernel").to_vector<double>() == std::vector<double>(6));
  model.apply();
  CHECK(equal(model.parameters().get("dense/kernel").to_host(), before));
}

/// 23 points of three classes, with weights.
std::shared_ptr<const ArrayDataset> weighted_points() {
  std::vector<float> points, weights;
  std::vector<std::int64_t> classes;
  for (int i = 0; i < 23; ++i) {
    points.push_back(std::sin(static_cast<float>(i)));
    points.push_back(std::cos(static_cast<float>(2 * i)));
    classes.push_back(i * i % 3);
    weights.push_back(i % 5 == 0 ? 0 : 0.25F * static_cast<float>(i % 7));
  }
  return std::make_shared<ArrayDataset>(Tensor::of(points, {23, 2}), Tensor::of(classes, {23}),
                                        ArrayOptions{.sample_weights = Tensor::of(weights, {23})});
}

/// What 2 epochs of batches of 8, the last of 7, leave: the logs, then the kernel.
std::vector<double> after_fit(const Config& config, std::int64_t batch_size, std::int64_t accumulate, std::vector<std::string> devices,
                              std::vector<double> class_weights, DType dtype = DType::f64) {
  const Context context(config);
  ModelDefinition definition;
  definition.dtype = dtype;
  definition.layers = {layers::Dense{3, Activation::softmax}};
  Model model(std::move(definition));
  CompileOptions options = classification({.kind = OptimizerDefinition::Kind::sgd, .learning_rate = 0.5});
  options.loss.class_weights = std::move(class_weights);
  options.parallel = {.devices = std::move(devices)};
  model.compile(context, options);
  const auto data = weighted_points();
  const History history = model.fit(data, {.batch_size = batch_size, .epochs = 2, .accumulate = accumulate});
  std::vector<double> all;
  for (const auto& [name, value] : history[1].logs) all.push_back(value);
  for (const auto& [name, value] : model.evaluate(data, 5)) all.push_back(value);
  for (const double value : model.parameters().get("dense/kernel").to(DType::f64).to_host().to_vector<double>()) all.push_back(value);
  return all;
}

void check_near(const std::vector<double>& got, const std::vector<double>& expected, double tolerance, std::size_t first = 0) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = first; i < got.size(); ++i) CHECK(std::abs(got[i] - expected[i]) <= tolerance);
}

TEST_CASE("sample weights: accumulated batches and parallel devices give the step of the whole batch, with class weights as well") {
  Config config = test_config("reference:0");
  config.virtual_devices = {{"reference:0", 2, 0}};
  config.seed = 3;
  for (const std::vector<double>& of_classes : {std::vector<double>{}, std::vector<double>{0.5, 1, 4}}) {
    const std::vector<double> whole = after_fit(config, 8, 1, {}, of_classes);
    check_near(after_fit(config, 8, 1, {"reference:0", "reference:1"}, of_classes), whole, 1e-12);
    // The loss of an epoch is a mean over batches weighted by sample weights alone: with class weights it depends on the batches.
    check_near(after_fit(config, 2, 4, {}, of_classes), whole, 1e-12, of_classes.empty() ? 0 : 2);
    check_near(after_fit(config, 2, 4, {"reference:0", "reference:1"}, of_classes), whole, 1e-12, of_classes.empty() ? 0 : 2);
  }
}

TEST_CASE("sample weights: mixed precision trains with them") {
  Config config = test_config("openblas:0");
  config.seed = 3;
  const std::vector<double> exact = after_fit(config, 8, 1, {}, {}, DType::f32);
  for (const Precision precision : {Precision::mixed_bfloat16, Precision::mixed_float16}) {
    config.precision = precision;
    check_near(after_fit(config, 8, 1, {}, {}, DType::f32), exact, 0.02);  // products of 8 bits in two epochs of three steps
  }
}

TEST_CASE_FIXTURE(OnReference, "sample weights: evaluate and the means of an epoch weigh batches by them, and a split takes them along") {
  Model model = f64_model(context, {layers::Dense{3, Activation::softmax}}, classification({.learning_rate = 0.0}));
  const auto data = weighted_points();
  const Logs all = model.evaluate(data, 23);
  for (const std::int64_t batch_size : {1, 4, 10}) {
    const Logs parts = model.evaluate(data, batch_size);
    for (std::size_t i = 0; i < all.size(); ++i) CHECK(parts[i].second == doctest::Approx(all[i].second).epsilon(1e-12));
  }
  const History history = model.fit(data, {.batch_size = 4});
  CHECK(history[0].logs[0].second == doctest::Approx(all[0].second).epsilon(1e-12));

  const auto end = std::make_shared<ArrayDataset>(data->slice(17, 23, "end"));
  const History split = model.fit(data, {.batch_size = 4, .epochs = 2, .validation_split = 0.25});
  CHECK(split[0].logs[2].second == doctest::Approx(model.evaluate(end, 6)[0].second).epsilon(1e-12));
}

TEST_CASE_FIXTURE(OnReference, "sample weights: those that do not fit are refused by name") {
  Model model = f64_model(context, {layers::Dense{3, Activation::softmax}}, classification());
  CHECK_ERROR("sample weights: expected f32 (3), one for each sample, got f32 (2)",
              model.train_batch(x, labels, Tensor::zeros(DType::f32, {2})));
  CHECK_ERROR("sample weights: expected f32 (3), one for each sample, got i64 (3)", model.train_batch(x, labels, labels));
  const auto with = [&](const Tensor& weights) { return ArrayDataset(x, labels, {.name = "points", .sample_weights = weights}); };
  CHECK_ERROR("points: expected one sample weight per sample, 3 numbers, got f32(2)", with(Tensor::zeros(DType::f32, {2})));
  CHECK_ERROR("points: expected sample weights of at least 0, got -1.000000 for sample 1", with(Tensor::of<float>({1, -1, 0}, {3})));
  CHECK_ERROR("points: expected sample weights of at least 0, got nan for sample 2", with(Tensor::of<double>({1, 1, NAN}, {3})));
  CHECK(with(Tensor::of<std::int32_t>({1, 2, 3}, {3})).sample_weights().to_vector<float>() == std::vector<float>{1, 2, 3});
}

}  // namespace
}  // namespace tenon::test
