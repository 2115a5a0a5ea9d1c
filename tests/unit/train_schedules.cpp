// SPDX-License-Identifier: Apache-2.0
// Schedules: values computed independently in Python with the formulas of tenon/definition.h.
#include "temporary_folder.h"
#include "train_testing.h"

namespace tenon::test {
namespace {

TEST_CASE("schedule: constant, step and exponential") {
  Schedule s;
  CHECK(s.at(0.1, 12345) == 0.1);
  s.kind = Schedule::Kind::step;
  s.factor = 0.5;
  s.every = 10;
  CHECK(s.at(0.1, 0) == 0.1);
  CHECK(s.at(0.1, 9) == 0.1);
  CHECK(s.at(0.1, 10) == 0.05);
  CHECK(s.at(0.1, 25) == 0.025);
  s.kind = Schedule::Kind::exponential;
  CHECK(s.at(0.1, 5) == doctest::Approx(0.07071067811865477).epsilon(1e-14));
  CHECK(s.at(0.1, 25) == doctest::Approx(0.01767766952966369).epsilon(1e-14));
}

TEST_CASE("schedule: cosine reaches its minimum and stays there") {
  Schedule s{.kind = Schedule::Kind::cosine, .length = 100, .minimum = 0.001};
  CHECK(s.at(0.1, 0) == doctest::Approx(0.1).epsilon(1e-14));
  CHECK(s.at(0.1, 25) == doctest::Approx(0.0855017856687341).epsilon(1e-14));
  CHECK(s.at(0.1, 50) == doctest::Approx(0.0505).epsilon(1e-14));
  CHECK(s.at(0.1, 100) == doctest::Approx(0.001).epsilon(1e-14));
  CHECK(s.at(0.1, 150) == doctest::Approx(0.001).epsilon(1e-14));
  s.length = 0;
  CHECK(s.at(0.1, 50, 100) == doctest::Approx(0.0505).epsilon(1e-14));
  CHECK_ERROR_CONTAINS("its length is unknown outside fit", s.at(0.1, 0));
}

TEST_CASE("schedule: Caffe's inv") {
  Schedule s{.kind = Schedule::Kind::inv};
  CHECK(s.at(0.1, 0) == 0.1);
  CHECK(s.at(0.1, 100) == doctest::Approx(0.09925650290240803).epsilon(1e-14));
  CHECK(s.at(0.1, 10000) == doctest::Approx(0.05946035575013606).epsilon(1e-14));
}

TEST_CASE("schedule: one_cycle rises and falls as in PyTorch, and stays at the end") {
  Schedule s{.kind = Schedule::Kind::one_cycle, .length = 100};
  const std::pair<std::int64_t, double> rates[] = {
      {0, 0.004}, {10, 0.029516394846410082}, {29, 0.1}, {30, 0.09994965352845243}, {60, 0.05892800902855288}, {99, 4e-7}, {500, 4e-7}};
  for (const auto& [t, rate] : rates) CHECK(s.at(0.1, t) == doctest::Approx(rate).epsilon(1e-12));
  s.length = 0;
  CHECK(s.at(0.1, 10, 100) == doctest::Approx(0.029516394846410082).epsilon(1e-12));
  CHECK_ERROR_CONTAINS("schedule one_cycle: its length is unknown outside fit", s.at(0.1, 0));
  CHECK(Schedule{.kind = Schedule::Kind::one_cycle, .length = 1}.at(0.1, 0) == doctest::Approx(0.1));
}

TEST_CASE("schedule: cyclic rises and falls linearly as in PyTorch") {
  const Schedule s{.kind = Schedule::Kind::cyclic, .every = 4, .maximum = 0.1};
  const std::pair<std::int64_t, double> rates[] = {{0, 0.01}, {1, 0.0325}, {4, 0.1}, {6, 0.055}, {8, 0.01}, {11, 0.0775}};
  for (const auto& [t, rate] : rates) CHECK(s.at(0.01, t) == doctest::Approx(rate).epsilon(1e-12));
}

TEST_CASE("schedule: a warm-up precedes any schedule, which starts counting after it") {
  Schedule s{.kind = Schedule::Kind::cosine, .length = 20, .warmup = 5, .warmup_from = 0.1};
  CHECK(s.at(0.1, 0) == doctest::Approx(0.028).epsilon(1e-14));
  CHECK(s.at(0.1, 4) == doctest::Approx(0.1).epsilon(1e-14));
  CHECK(s.at(0.1, 5) == doctest::Approx(0.1).epsilon(1e-14));
  CHECK(s.at(0.1, 15) == doctest::Approx(0.05).epsilon(1e-14));
  CHECK(s.at(0.1, 25) == doctest::Approx(0.0));
}

/// The rate of every step of a fit.
std::vector<double> rates(const Schedule& schedule, std::int64_t epochs) {
  const Context context(test_config("openblas:0"));
  Model model({layers::Dense{1}});
  model.compile(context, {.optimizer = {.kind = OptimizerDefinition::Kind::sgd, .learning_rate = 0.01, .schedule = schedule},
                          .loss = {.loss = Loss::mse}});
  std::vector<double> result{model.learning_rate()};
  LambdaCallback log({.batch_end = [&](std::int64_t, const Logs&, const BatchResult&) { result.push_back(model.learning_rate()); }});
  FitOptions fit{.epochs = epochs, .callbacks = {&log}};
  model.fit(generate_linear({.count = 96}).data, fit);
  return result;
}

TEST_CASE("schedule: per step it changes after each step, per epoch after each epoch") {
  Schedule s{.kind = Schedule::Kind::step, .factor = 0.5};
  CHECK(rates(s, 1) == std::vector<double>{0.01, 0.005, 0.0025, 0.00125});
  s.per = Schedule::Per::epoch;
  // batch_end comes before the epoch counts as finished
  CHECK(rates(s, 2) == std::vector<double>{0.01, 0.01, 0.01, 0.01, 0.005, 0.005, 0.005});
}

TEST_CASE_FIXTURE(OnReference, "schedule: the reported rate is the one that is applied") {
  Model model({layers::Dense{1, Activation::linear, {.bias = false}}});
  CompileOptions options;
  options.optimizer.kind = OptimizerDefinition::Kind::sgd;
  options.optimizer.learning_rate = 0.5;
  options.optimizer.schedule.kind = Schedule::Kind::step;
  options.optimizer.schedule.factor = 0.1;
  options.loss.loss = Loss::mse;
  model.compile(context, options);
  model.build({1});
  model.parameters().set("dense/kernel", Tensor::of<float>({0.0f}, {1, 1}));
  const Tensor x = Tensor::of<float>({1.0f}, {1, 1}), y = Tensor::of<float>({1.0f}, {1, 1});
  model.train_batch(x, y);  // gradient 2 (w - 1) = -2: w = 0 + 0.5 * 2
  CHECK(floats(model.parameters().get("dense/kernel"))[0] == 1.0f);
  model.parameters().set("dense/kernel", Tensor::of<float>({0.0f}, {1, 1}));
  model.train_batch(x, y);  // 0.05 * 2
  CHECK(floats(model.parameters().get("dense/kernel"))[0] == doctest::Approx(0.1));
}

TEST_CASE_FIXTURE(InFolder, "schedule: a resumed fit continues with the same rates and weights, bit for bit") {
  const Context context(deterministic());
  const auto data = generate_linear({.count = 96}).data;
  const auto make = [&] {
    Model model({layers::Dense{1}});
    CompileOptions options;
    options.optimizer.learning_rate = 0.05;
    options.optimizer.schedule.kind = Schedule::Kind::cosine;
    options.optimizer.schedule.length = 14;
    options.optimizer.schedule.warmup = 4;
    options.loss.loss = Loss::mse;
    model.compile(context, options);
    return model;
  };
  // The loss rises until the too large rate is reduced, so the plateau's state matters from epoch to epoch.
  const auto plateau = [] { return ReduceOnPlateau({.monitor = {.name = "loss", .min_delta = 10}, .factor = 0.5, .patience = 2}); };
  FitOptions fit{.epochs = 6};
  Model straight = make();
  ReduceOnPlateau whole = plateau();
  fit.callbacks = {&whole};
  straight.fit(data, fit);

  Model first = make();
  ReduceOnPlateau half = plateau();
  fit.callbacks = {&half};
  fit.epochs = 4;
  first.fit(data, fit);
  first.save(folder.path(), "half");
  Model second = make();
  second.load(folder.path() + "/half.yaml");
  ReduceOnPlateau other = plateau();
  fit.callbacks = {&other};
  fit.epochs = 6;
  second.fit(data, fit);
  CHECK(second.learning_rate() == straight.learning_rate());
  CHECK(floats(second.parameters().get("dense/kernel")) == floats(straight.parameters().get("dense/kernel")));
  CHECK(floats(second.parameters().get("optimizer/dense/kernel/v")) == floats(straight.parameters().get("optimizer/dense/kernel/v")));
}

}  // namespace
}  // namespace tenon::test
