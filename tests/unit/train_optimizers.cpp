// SPDX-License-Identifier: Apache-2.0
// Optimizers with state: they learn, start as in their presets, and resume from a checkpoint.
#include <cmath>
#include <map>

#include "temporary_folder.h"
#include "train/optimizers.h"
#include "train_testing.h"

namespace tenon::test {
namespace {

using Kind = OptimizerDefinition::Kind;

OptimizerDefinition with_rate(Kind kind, double rate, Preset preset = Preset::none) {
  OptimizerDefinition optimizer = train::default_optimizer(kind, preset);
  optimizer.learning_rate = rate;
  return optimizer;
}

OptimizerDefinition adam_with_peak() {
  OptimizerDefinition optimizer = with_rate(Kind::adam, 0.01);
  optimizer.amsgrad = true;
  return optimizer;
}

Model make(const Context& context, const OptimizerDefinition& optimizer) {
  return compiled(context, {layers::Flatten{}, layers::Dense{10, Activation::softmax}}, classification(optimizer));
}

/// Checks that it learns in three epochs, keeps `state` with the kernel, and is the same after two epochs, a checkpoint and another epoch.
void learns_and_resumes(const OptimizerDefinition& optimizer, const std::vector<std::string>& state) {
  const Context context(deterministic());
  Model straight = make(context, optimizer);
  FitOptions fit{.epochs = 3};
  const History history = straight.fit(digits(640), fit);
  CHECK(history.back().logs[0].second < 0.8 * history.front().logs[0].second);
  for (const std::string& suffix : state) {
    CAPTURE(suffix);
    CHECK(straight.parameters().has("optimizer/dense/kernel/" + suffix));
  }
  CHECK(straight.parameters().all().size() == 2 * (1 + state.size()));

  const TemporaryFolder folder;
  Model first = make(context, optimizer);
  fit.epochs = 2;
  first.fit(digits(640), fit);
  first.save(folder.path(), "half");
  Model second = make(context, optimizer);
  second.load(folder.path() + "/half.yaml");
  fit.epochs = 3;
  second.fit(digits(640), fit);
  CHECK(weights(second) == weights(straight));
}

TEST_CASE("optimizer: amsgrad learns, with its state in checkpoints, by either name") {
  learns_and_resumes(with_rate(Kind::amsgrad, 0.01), {"m", "v", "peak"});
  learns_and_resumes(adam_with_peak(), {"m", "v", "peak"});
}

TEST_CASE("optimizer: adagrad learns, with its state in checkpoints") {
  learns_and_resumes(with_rate(Kind::adagrad, 0.05), {"sum"});
  learns_and_resumes(with_rate(Kind::adagrad, 0.05, Preset::keras), {"sum"});
}

TEST_CASE("optimizer: adadelta learns, with its state in checkpoints") {
  learns_and_resumes(with_rate(Kind::adadelta, 1), {"v", "delta"});
}

/// The weight after one and two steps from 0 with gradients 2 (w - 1).
std::vector<float> two_steps(const OptimizerDefinition& optimizer) {
  const Context context(test_config("reference:0"));
  Model model({layers::Dense{1, Activation::linear, {.bias = false}}});
  model.compile(context, {.optimizer = optimizer, .loss = {.loss = Loss::mse}});
  model.build({1});
  model.parameters().set("dense/kernel", Tensor::of<float>({0.0f}, {1, 1}));
  const Tensor one = Tensor::of<float>({1.0f}, {1, 1});
  std::vector<float> weights;
  for (int step = 0; step < 2; ++step) {
    model.train_batch(one, one);
    weights.push_back(floats(model.parameters().get("dense/kernel"))[0]);
  }
  return weights;
}

// Computed by hand from the formulas: gradients are -2, then 2 (w - 1).
TEST_CASE("optimizer: adagrad starts from the accumulator of its preset") {
  const auto torch = two_steps(with_rate(Kind::adagrad, 0.1));
  CHECK(torch[0] == doctest::Approx(0.1));  // 0.1 * 2 / sqrt(4)
  CHECK(torch[1] == doctest::Approx(0.1 + 0.1 * 1.8 / std::sqrt(4 + 1.8 * 1.8)));
  const auto keras = two_steps(with_rate(Kind::adagrad, 0.1, Preset::keras));
  CHECK(keras[0] == doctest::Approx(0.1 * 2 / std::sqrt(4.1)));
}

TEST_CASE("optimizer: adadelta takes the step of its formula") {
  const double first = std::sqrt(1e-6) / std::sqrt(0.1 * 4 + 1e-6) * 2;
  const auto w = two_steps(with_rate(Kind::adadelta, 1));
  CHECK(w[0] == doctest::Approx(first));
  const double g = 2 * (1 - first), v = 0.9 * 0.4 + 0.1 * g * g, delta = 0.1 * first * first;
  CHECK(w[1] == doctest::Approx(first + g * std::sqrt(delta + 1e-6) / std::sqrt(v + 1e-6)));
}

}  // namespace
}  // namespace tenon::test
