// SPDX-License-Identifier: Apache-2.0
// Clipped gradients and regularised kernels, on values that are computed by hand.
#include <cmath>

#include "testing.h"

namespace tenon::test {
namespace {

/// w (2,1) = 0, b = 0; one sample x = (1, 2), y = -5: the gradient of (w x + b - y)^2 is 10 (1, 2) and 10.
struct Line {
  explicit Line(const Clipping& clip, const std::string& device = "openblas:0") : context(test_config(device)), model({layers::Dense{1}}) {
    model.compile(context, {.optimizer = {.kind = OptimizerDefinition::Kind::sgd, .learning_rate = 1, .clip = clip}});
    model.build({2});
    model.parameters().set("dense/kernel", Tensor::zeros(DType::f32, {2, 1}));
  }
  /// What a step with learning rate 1 subtracts from (w0, w1, b).
  std::vector<float> step(bool in_parts) {
    const Tensor x = Tensor::of<float>({1, 2}, {1, 2}), y = Tensor::of<float>({-5}, {1, 1});
    if (in_parts) {
      model.backward(x, y);
      model.apply();
    } else {
      model.train_batch(x, y);
    }
    std::vector<float> taken = floats(model.parameters().get("dense/kernel"));
    taken.push_back(floats(model.parameters().get("dense/bias"))[0]);
    for (float& t : taken) t = -t;
    return taken;
  }
  Context context;
  Model model;
};

void check_step(const Clipping& clip, const std::vector<double>& expected) {
  for (const std::string device : {"reference:0", "openblas:0"}) {
    for (const bool in_parts : {false, true}) {
      CAPTURE(device);
      CAPTURE(in_parts);
      const std::vector<float> taken = Line(clip, device).step(in_parts);
      REQUIRE(taken.size() == expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i) CHECK(taken[i] == doctest::Approx(expected[i]).epsilon(1e-6));
    }
  }
}

TEST_CASE("clipping: by value, each element") {
  check_step({.value = 12}, {10, 12, 10});
  check_step({.value = 0.5}, {0.5, 0.5, 0.5});
}

TEST_CASE("clipping: by norm, each parameter") {
  const double kernel = 5 / std::sqrt(500.0);
  check_step({.norm = 5}, {10 * kernel, 20 * kernel, 5});
}

TEST_CASE("clipping: by global norm, all parameters together") {
  const double scale = 6 / std::sqrt(600.0);
  check_step({.global_norm = 6}, {10 * scale, 20 * scale, 10 * scale});
}

TEST_CASE("clipping: gradients within the limits are unchanged, bit for bit") {
  const Clipping wide{.value = 1000, .norm = 1000, .global_norm = 1000};
  CHECK(Line(wide).step(false) == Line({}).step(false));
  CHECK(Line({}).step(false) == std::vector<float>{10, 20, 10});
}

TEST_CASE("clipping: value before norm before global norm") {
  const double norm = 5 / std::sqrt(10.0 * 10 + 12 * 12), kernel_norm = 5, bias_norm = 5;
  const double global = 1 / std::sqrt(kernel_norm * kernel_norm + bias_norm * bias_norm);
  check_step({.value = 12, .norm = 5, .global_norm = 1}, {10 * norm * global, 12 * norm * global, 5 * global});
}

TEST_CASE("regularisation: L1 and L2 of kernels join the loss and its gradient, not the metrics") {
  for (const std::string device : {"reference:0", "openblas:0"}) {
    const Context context(test_config(device));
    const layers::Dense dense{.units = 1, .weights = {.kernel_l1 = 0.1, .kernel_l2 = 0.01}};
    Model model({dense});
    model.compile(context, {.optimizer = {.kind = OptimizerDefinition::Kind::sgd, .learning_rate = 1}, .metrics = {Metric::mse}});
    model.build({2});
    model.parameters().set("dense/kernel", Tensor::of<float>({3, -4}, {2, 1}));
    const Tensor x = Tensor::of<float>({1, 1}, {1, 2}), y = Tensor::of<float>({-1}, {1, 1});  // no error: the loss is the penalty
    const double penalty = 0.1 * 7 + 0.01 * 25;
    const Logs tested = model.test_batch(x, y).logs;
    CHECK(tested[0].second == doctest::Approx(penalty));
    CHECK(tested[1].second == doctest::Approx(0.0));
    CHECK(model.train_batch(x, y).loss() == doctest::Approx(penalty));
    const auto w = floats(model.parameters().get("dense/kernel"));
    CHECK(w[0] == doctest::Approx(3 - 0.1 - 0.06));
    CHECK(w[1] == doctest::Approx(-4 + 0.1 + 0.08));
    CHECK(floats(model.parameters().get("dense/bias"))[0] == 0.0f);
  }
}

}  // namespace
}  // namespace tenon::test
