// SPDX-License-Identifier: Apache-2.0
// Optimizers with state: they learn, start as in their presets, and resume from a checkpoint.
#include <cmath>
#include <map>

#include "temporary_folder.h"
#include "train_testing.h"

namespace tenon::test {
namespace {

using Kind = OptimizerDefinition::Kind;

OptimizerDefinition with_rate(Kind kind, double rate, Preset preset = Preset::none) {
  return {.kind = kind, .preset = preset, .learning_rate = rate};
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

/// The weight after each of `count` steps from 0 with gradients 2 (w - 1).
std::vector<float> steps(const OptimizerDefinition& optimizer, int count = 2) {
  const Context context(test_config("reference:0"));
  Model model({layers::Dense{1, Activation::linear, {.bias = false}}});
  model.compile(context, {.optimizer = optimizer, .loss = {.loss = Loss::mse}});
  model.build({1});
  model.parameters().set("dense/kernel", Tensor::of<float>({0.0f}, {1, 1}));
  const Tensor one = Tensor::of<float>({1.0f}, {1, 1});
  std::vector<float> weights;
  for (int step = 0; step < count; ++step) {
    model.train_batch(one, one);
    weights.push_back(floats(model.parameters().get("dense/kernel"))[0]);
  }
  return weights;
}

// Computed by hand from the formulas: gradients are -2, then 2 (w - 1).
TEST_CASE("optimizer: adagrad starts from the accumulator of its preset") {
  const auto torch = steps(with_rate(Kind::adagrad, 0.1));
  CHECK(torch[0] == doctest::Approx(0.1));  // 0.1 * 2 / sqrt(4)
  CHECK(torch[1] == doctest::Approx(0.1 + 0.1 * 1.8 / std::sqrt(4 + 1.8 * 1.8)));
  const auto keras = steps(with_rate(Kind::adagrad, 0.1, Preset::keras));
  CHECK(keras[0] == doctest::Approx(0.1 * 2 / std::sqrt(4.1)));
}

TEST_CASE("optimizer: adadelta takes the step of its formula") {
  const double first = std::sqrt(1e-6) / std::sqrt(0.1 * 4 + 1e-6) * 2;
  const auto w = steps(with_rate(Kind::adadelta, 1));
  CHECK(w[0] == doctest::Approx(first));
  const double g = 2 * (1 - first), v = 0.9 * 0.4 + 0.1 * g * g, delta = 0.1 * first * first;
  CHECK(w[1] == doctest::Approx(first + g * std::sqrt(delta + 1e-6) / std::sqrt(v + 1e-6)));
}

/// The weights after steps 1, 2, 6 and 8.
void check_steps(const OptimizerDefinition& optimizer, const std::vector<double>& expected) {
  CAPTURE(name_of(optimizer.kind));
  const std::vector<float> w = steps(optimizer, 8);
  for (std::size_t i = 0; i < 4; ++i) CHECK(w[std::vector<std::size_t>{0, 1, 5, 7}[i]] == doctest::Approx(expected[i]).epsilon(2e-6));
}

// Computed in Python with the formulas of PyTorch's documentation.
TEST_CASE("optimizer: coupled weight decay, momentum and centring, nadam and radam step as in PyTorch") {
  check_steps({.kind = Kind::adam, .learning_rate = 0.1, .weight_decay = 0.1}, {0.1, 0.199558416, 0.5845609, 0.760440724});
  const OptimizerDefinition rmsprop{.kind = Kind::rmsprop, .preset = Preset::torch};
  OptimizerDefinition heavy = rmsprop, centered = rmsprop;
  heavy.learning_rate = 0.1, heavy.momentum = 0.9;
  check_steps(heavy, {0.99999995, 1.899999955, 0.23470197, 0.449180243});
  centered.centered = true;
  check_steps(centered, {0.100503776, 0.16824062, 0.342826201, 0.405104557});
  centered.momentum = 0.5, centered.weight_decay = 0.1;
  check_steps(centered, {0.100503776, 0.218283277, 0.570134097, 0.673301114});
  check_steps({.kind = Kind::nadam, .learning_rate = 0.1}, {0.105645177, 0.180026929, 0.439562573, 0.562212932});
  check_steps({.kind = Kind::nadam, .learning_rate = 0.1, .weight_decay = 0.1}, {0.105645177, 0.179809826, 0.437146736, 0.557570731});
  check_steps({.kind = Kind::radam, .learning_rate = 0.1}, {0.2, 0.378947368, 0.800481959, 0.805916144});
  check_steps({.kind = Kind::radam, .learning_rate = 0.01, .weight_decay = 0.1}, {0.02, 0.039778947, 0.09799056, 0.098698692});
}

TEST_CASE("optimizer: nadam, radam and rmsprop with momentum learn, with their state in checkpoints") {
  learns_and_resumes(with_rate(Kind::nadam, 0.01), {"m", "v"});
  learns_and_resumes(with_rate(Kind::radam, 0.05), {"m", "v"});
  OptimizerDefinition rmsprop = with_rate(Kind::rmsprop, 0.001, Preset::torch);
  rmsprop.momentum = 0.5, rmsprop.centered = true;
  learns_and_resumes(rmsprop, {"v", "mean", "velocity"});
}

TEST_CASE("optimizer: fields that are not set have the defaults of kind and preset, and those that are set keep their values") {
  const auto rate = [](const OptimizerDefinition& definition) {
    const Context context(test_config("reference:0"));
    return make(context, definition).learning_rate();
  };
  CHECK(rate({}) == 0.001);
  CHECK(rate({.kind = Kind::sgd}) == 0.01);
  CHECK(rate({.kind = Kind::adadelta}) == 1);
  CHECK(rate({.kind = Kind::adadelta, .preset = Preset::keras}) == 0.001);
  CHECK(rate({.kind = Kind::rmsprop, .preset = Preset::torch}) == 0.01);
  CHECK(rate({.kind = Kind::adagrad, .learning_rate = 0.5}) == 0.5);
  // adamw decays by 0.01 of the weight, also where the gradient is 0
  const Context context(test_config("reference:0"));
  Model model({layers::Dense{1, Activation::linear, {.bias = false}}});
  model.compile(context, {.optimizer = {.kind = Kind::adamw, .learning_rate = 0.5}, .loss = {.loss = Loss::mse}});
  model.build({1});
  model.parameters().set("dense/kernel", Tensor::of<float>({2.0f}, {1, 1}));
  model.train_batch(Tensor::of<float>({1.0f}, {1, 1}), Tensor::of<float>({2.0f}, {1, 1}));
  CHECK(floats(model.parameters().get("dense/kernel"))[0] == doctest::Approx(2 - 0.5 * 0.01 * 2));
}

TEST_CASE("optimizer: numbers out of range are refused with their name") {
  const Context context(test_config("reference:0"));
  CHECK_ERROR("optimizer sgd: learning_rate is -0.1, expected a finite number of at least 0",
              make(context, {.kind = Kind::sgd, .learning_rate = -0.1}));
  CHECK_ERROR("optimizer adam: beta2 is 1, expected a number in [0, 1)", make(context, {.beta2 = 1}));
  CHECK_ERROR("optimizer adam: epsilon is 0, expected a finite number above 0", make(context, {.epsilon = 0}));
  CHECK_ERROR("schedule step: every is 0, expected a number above 0",
              make(context, {.schedule = {.kind = Schedule::Kind::step, .every = 0}}));
  Model model = make(context, {});
  CHECK_ERROR("set_learning_rate: the rate is -1, expected a finite number of at least 0", model.set_learning_rate(-1));
  CHECK_ERROR_CONTAINS("scale_learning_rate: the factor is nan", model.scale_learning_rate(std::nan("")));
  CHECK_ERROR_CONTAINS("steps_per_epoch is -1, expected 0 (the whole data set) or more", model.fit(digits(10), {.steps_per_epoch = -1}));
}

}  // namespace
}  // namespace tenon::test
