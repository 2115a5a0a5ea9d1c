// SPDX-License-Identifier: Apache-2.0
// The gradient check: right gradients pass, wrong ones fail, kinks are distinguished.
#include <cmath>

#include "config/model_yaml.h"
#include "testing.h"

namespace tenon::test {
namespace {

double at(const std::vector<Tensor>& p, std::size_t i) {
  return p[0].data<double>()[i];
}

GradientReport check(const LossFunction& loss, const std::vector<double>& w, const std::vector<double>& gradient) {
  const auto vector = [](const std::vector<double>& values) { return Tensor::of(values, {static_cast<std::int64_t>(values.size())}); };
  return check_gradients(loss, {{"w", vector(w)}}, {vector(gradient)});
}

const LossFunction smooth = [](const std::vector<Tensor>& p) { return std::exp(at(p, 0)) * std::sin(at(p, 1)); };

std::vector<double> slope(double a, double b) {
  return {std::exp(a) * std::sin(b), std::exp(a) * std::cos(b)};
}

TEST_CASE("gradcheck: the gradient of a smooth function passes, far below the tolerance") {
  const GradientReport report = check(smooth, {0.5, 2.0}, slope(0.5, 2.0));
  CHECK(report.passed());
  CHECK(report.parameters[0].checked == 2);
  CHECK(report.parameters[0].worst.relative < 1e-8);
}

TEST_CASE("gradcheck: a wrong gradient is caught, even by two parts in a million") {
  std::vector<double> wrong = slope(0.5, 2.0);
  wrong[1] *= 1 + 2e-6;
  const GradientReport report = check(smooth, {0.5, 2.0}, wrong);
  CHECK_FALSE(report.passed());
  CHECK(report.parameters[0].failed == 1);
  CHECK(report.parameters[0].worst.index == 1);
  CHECK(report.parameters[0].worst.relative == doctest::Approx(2e-6).epsilon(0.01));
  CHECK(contains(report.str(), "WRONG"));
  // also of a small gradient, where a smaller step would find only rounding
  const LossFunction flat = [](const std::vector<Tensor>& p) { return 1 + 1e-5 * smooth(p); };
  CHECK(check(flat, {0.5, 2.0}, {1e-5 * slope(0.5, 2.0)[0], 1e-5 * slope(0.5, 2.0)[1]}).passed());
  CHECK_FALSE(check(flat, {0.5, 2.0}, {1.00001e-5 * slope(0.5, 2.0)[0], 1e-5 * slope(0.5, 2.0)[1]}).passed());
  wrong = slope(0.5, 2.0);
  wrong[0] = -wrong[0];
  CHECK(check(smooth, {0.5, 2.0}, wrong).parameters[0].worst.relative == doctest::Approx(2));
  wrong[0] = 0;
  CHECK(check(smooth, {0.5, 2.0}, wrong).parameters[0].failed == 1);
}

TEST_CASE("gradcheck: a kink is distinguished from a wrong gradient") {
  const LossFunction corner = [](const std::vector<Tensor>& p) { return std::abs(at(p, 0)) + at(p, 1) * at(p, 1); };
  const GradientReport report = check(corner, {0.0, 3.0}, {0.5, 6.0});
  CHECK(report.passed());
  CHECK(report.parameters[0].kinks == 1);
  CHECK(report.parameters[0].worst.index == 1);
  CHECK_FALSE(check(corner, {0.0, 3.0}, {1.5, 6.0}).passed());             // outside the slopes of the two sides
  CHECK(check(corner, {3e-4, 3.0}, {1.0, 6.0}).parameters[0].kinks == 0);  // near a kink smaller steps are used
  CHECK(check(corner, {3e-4, 3.0}, {1.0, 6.0}).passed());
}

TEST_CASE("gradcheck: its arguments must be consistent") {
  CHECK_ERROR_CONTAINS("expected the gradient of 'w' as f64(2), got f64(1)", check(smooth, {1.0, 2.0}, {1.0}));
  CHECK_ERROR_CONTAINS("expected the parameter 'w' as f64(1), got f32(1)",
                       check_gradients(smooth, {{"w", Tensor::of<float>({1.0f}, {1})}}, {Tensor::of<float>({1.0f}, {1})}));
}

LossDefinition loss_of(Loss kind) {
  return {.loss = kind};
}

TEST_CASE("gradcheck: models with all kinds of layers pass on every backend") {
  ModelDefinition model;
  const layers::Dense regular{6, Activation::mish, {.kernel_l1 = 0.01, .kernel_l2 = 0.02}};
  model.layers = {layers::Embedding{12, 3},
                  layers::Flatten{},
                  regular,
                  layers::Dropout{0.3},
                  layers::Dense{5, Activation::elu},
                  layers::Activation{Activation::softplus},
                  layers::Dense{4, Activation::softmax}};
  const Tensor x = Tensor::of<std::int64_t>({0, 3, 5, 3, 11, 3, 7, 7}, {4, 2});
  const Tensor y = Tensor::of<std::int64_t>({0, 3, 1, 2}, {4});
  for (const char* device : {"reference:0", "openblas:0"}) {
    CAPTURE(device);
    const Context context(test_config(device));
    const GradientReport report = check_gradients(context, model, loss_of(Loss::sparse_categorical_crossentropy), x, y,
                                                  {.samples = 30, .tolerance = 1e-6, .seed = 1});
    INFO(report.str());
    CHECK(report.passed());
    REQUIRE(report.parameters.size() == 7);
    CHECK(report.parameters[0].name == "embedding/embeddings");
    CHECK(report.parameters[0].checked == 30);
    CHECK(report.parameters[2].checked == 6);
    CHECK(report.loss > 0);
  }
}

TEST_CASE_FIXTURE(OnReference, "gradcheck: prelu, glu, permute, adaptive pools, selu and hard_swish, and losses that read logits") {
  Tensor x = Tensor::zeros(DType::f32, {2, 4, 5});
  for (std::int64_t i = 0; i < x.count(); ++i) x.data<float>()[i] = std::sin(static_cast<float>(3 * i));
  const char* const layers = R"(
layers:
  - conv1d: {filters: 6, kernel_size: 1, activation: selu}
  - adaptive_average_pool: {size: 3}
  - glu
  - permute: {order: [2, 1]}
  - dense: {units: 4, activation: hard_swish}
  - prelu
  - permute: {order: [2, 1]}
  - adaptive_max_pool: {size: 2}
  - flatten
  - dense: {units: 3, activation: gelu_tanh}
)";
  const Tensor bits = Tensor::of<float>({0, 1, 1, 1, 0, 0}, {2, 3});
  const Tensor parts = Tensor::of<float>({0.5f, 0.25f, 0.25f, 0, 0.75f, 0.25f}, {2, 3});
  for (const auto& [loss, last] : {std::pair{Loss::binary_crossentropy, "  - sigmoid\n"}, {Loss::kl_divergence, "  - softmax\n"}}) {
    const ModelDefinition model = config::model_from_text(std::string(layers).substr(1) + last);
    const GradientReport report = check_gradients(context, model, loss_of(loss), x, loss == Loss::kl_divergence ? parts : bits,
                                                  {.samples = 20, .tolerance = 1e-6, .seed = 1});
    INFO(report.str());
    CHECK(report.passed());
    CHECK(report.parameters.size() == 7);
  }
}

TEST_CASE_FIXTURE(OnReference, "gradcheck: dense layers on sequences and on grids") {
  Tensor x = Tensor::zeros(DType::f32, {2, 3, 2, 4});
  for (std::int64_t i = 0; i < x.count(); ++i) x.data<float>()[i] = std::sin(static_cast<float>(i));
  ModelDefinition model = config::model_from_text(R"(
layers:
  - residual: {body: [layer_norm, attention: {heads: 2, causal: true}]}
  - residual: {body: [layer_norm, dense: {units: 5, activation: gelu}, dense: {units: 4}]}
  - dense: {units: 3}
)");
  LossDefinition loss = loss_of(Loss::sparse_categorical_crossentropy);
  loss.from_logits = true;
  const Tensor labels = Tensor::of<std::int64_t>({0, 2, 1, 1, 0, 2, 2, 1, 0, 1, 1, 2}, {2, 6});
  const GradientCheckOptions options{.samples = 20, .tolerance = 1e-6, .seed = 1};
  const GradientReport sequences = check_gradients(context, model, loss, x.reshape({2, 6, 4}), labels, options);
  INFO(sequences.str());
  CHECK(sequences.passed());

  model.layers = {layers::Dense{5, Activation::tanh}, layers::Dense{3}};
  const GradientReport grids = check_gradients(context, model, loss, x, labels.reshape({2, 3, 2}), options);
  INFO(grids.str());
  CHECK(grids.passed());
  CHECK(grids.parameters.size() == 4);
}

}  // namespace
}  // namespace tenon::test
