// SPDX-License-Identifier: Apache-2.0
// Profile training: reduced versions (cuts) of the models, trained by the runtime on the device under test and on the oracle.
//
// The allowed difference. Both compute in one width and round differently in each of a network's sums; the effect on a result depends on
// the network. It is therefore measured: the oracle runs three more times, each time with every weight moved by up to 16 units in its last
// place, which is about the error of adding up 256 numbers one after the other (the root of their count). A result may differ from the
// oracle's by `rounding_factor` times the largest such change, plus `rounding_floor` epsilons of the tensor's largest element in case
// the changes happen to be smaller than a sum's rounding: a gradient of filters adds terms many times as large as its result (on an H200,
// up to 405 epsilons). The factor allows for nonlinearity: a unit that three nudges leave on its side of a kink, and one backend does not.
// Networks that are too deep to be compared in f32 have a cut in f64.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <future>
#include <iterator>
#include <list>

#include <tenon/error.h>

#include "case.h"
#include "config/model_yaml.h"
#include "platform/path.h"
#include "training_run.h"

namespace tenon::conformance {
namespace {

constexpr double rounding_factor = 16;
constexpr double rounding_floor = 768;
constexpr int nudges = 3;

/// The results of a run.
struct TrainingResult {
  std::vector<double> losses;  ///< per step
  std::vector<Finding> findings;
};
using Experiment = std::function<void(TrainingRun& run, TrainingResult& out_result)>;

/// Turns the runtime's errors into the outcomes of a report.
template <class Body>
auto on_device(const std::string& what, Body&& body) {
  try {
    return body();
  } catch (const Error& e) {
    if (e.status() == Status::unsupported) throw Unsupported(e.what());
    throw Failure(what + ": " + e.what());
  }
}

double largest_distance(const Array& a, const Array& b) {
  double largest = 0;
  for (std::int64_t i = 0; i < a.count(); ++i) largest = std::max(largest, std::fabs(a.at(i) - b.at(i)));
  return largest;
}
double largest_magnitude(const Array& a) {
  double largest = 0;
  for (std::int64_t i = 0; i < a.count(); ++i) largest = std::max(largest, std::fabs(a.at(i)));
  return largest;
}

/// The oracle's results and the allowed differences.
struct Verdict {
  TrainingResult plain;
  std::vector<TrainingResult> nudged;
  double epsilon;

  double allowed(double moved, double magnitude) const { return rounding_factor * moved + rounding_floor * epsilon * magnitude; }
  void expect_losses(const std::string& model, const TrainingResult& got) const;
  void expect_findings(const std::string& model, const TrainingResult& got) const;
};

void Verdict::expect_losses(const std::string& model, const TrainingResult& got) const {
  double moved = 0;  // the maximum over all steps so far: two losses may coincide by chance later
  for (std::size_t step = 0; step < plain.losses.size(); ++step) {
    const double expected = plain.losses[step], have = got.losses[step];
    for (const TrainingResult& other : nudged) moved = std::max(moved, std::fabs(other.losses[step] - expected));
    const double error = std::fabs(have - expected), bound = allowed(moved, std::fabs(expected));
    if (error <= bound) continue;  // false for NaN
    throw Failure(fmt::format("{}, step {}: loss: expected {:.9g}, got {:.9g}; error {:.3g}, at most {:.3g} allowed", model, step + 1,
                              expected, have, error, bound));
  }
}

void Verdict::expect_findings(const std::string& model, const TrainingResult& got) const {
  for (std::size_t i = 0; i < plain.findings.size(); ++i) {
    const Finding& expected = plain.findings[i];
    if (got.findings.size() <= i || got.findings[i].what != expected.what)
      throw Failure(fmt::format("{}: {} is missing on the device under test", model, expected.what));
    double moved = 0;
    for (const TrainingResult& other : nudged) moved = std::max(moved, largest_distance(expected.value, other.findings[i].value));
    const std::string wrong =
        compare(expected.value, got.findings[i].value, {.absolute = allowed(moved, largest_magnitude(expected.value))});
    if (!wrong.empty()) throw Failure(fmt::format("{}, {}: {}", model, expected.what, wrong));
  }
}

const Device& oracle_of(const CaseContext& context) {
  if (context.oracle == nullptr) throw NotRun("the device under test is the oracle itself");
  return *context.oracle;
}

/// `nudge`: index of the perturbation, from 1; 0: none.
TrainingResult run_on(const Device& device, const TrainDefinition& cut, std::uint64_t seed, int nudge, const Experiment& experiment) {
  const Context context = context_on(device, seed, true);
  TrainingRun run(context, cut);
  if (nudge > 0) run.nudge(seed + static_cast<std::uint64_t>(nudge));
  TrainingResult result;
  experiment(run, result);
  return result;
}

void check_against_oracle(CaseContext& context, const std::string& model, const TrainDefinition& cut, const Experiment& experiment) {
  const Device& oracle = oracle_of(context);
  const std::uint64_t seed = seed_for(context.seed, model);
  const TrainingResult got = on_device(model, [&] { return run_on(context.device, cut, seed, 0, experiment); });
  Verdict verdict{run_on(oracle, cut, seed, 0, experiment), {}, epsilon(static_cast<tenon_dtype>(cut.model.dtype))};
  for (int nudge = 1; nudge <= nudges; ++nudge) verdict.nudged.push_back(run_on(oracle, cut, seed, nudge, experiment));
  verdict.expect_losses(model, got);
  verdict.expect_findings(model, got);
}

void append(std::vector<Finding>& out, std::vector<Finding> more) {
  std::move(more.begin(), more.end(), std::back_inserter(out));
}

TrainDefinition cut_of(const TrainingModel& model) {
  TrainDefinition cut = config::load_cut(platform::text_of(model.file));
  cut.optimizer.schedule = {};  // a schedule may depend on the length of the fit
  return cut;
}

OptimizerDefinition optimizer(OptimizerDefinition::Kind kind, double learning_rate, double momentum = 0) {
  OptimizerDefinition definition;
  definition.kind = kind;
  definition.learning_rate = learning_rate;
  definition.momentum = momentum;
  return definition;
}

// ---------------------------------------------------------------- the cases

/// The optimizer is SGD, linear in the gradients, so that no near-zero gradient is amplified.
void check_one_step(CaseContext& context, const TrainingModel& model) {
  TrainDefinition cut = cut_of(model);
  cut.optimizer = optimizer(OptimizerDefinition::Kind::sgd, 0.05);
  const TrainingBatch batch = batch_for(cut, seed_for(context.seed, model.name + "/batch"));
  check_against_oracle(context, model.name, cut, [&](TrainingRun& run, TrainingResult& result) {
    result.findings.push_back(run.prediction("before the step", batch.x));
    result.losses.push_back(run.step(batch));
    append(result.findings, run.parameters("after the step"));
    result.findings.push_back(run.prediction("after the step", batch.x));
    append(result.findings, run.gradients(batch));
  });
}

void check_fifty_steps(CaseContext& context, const TrainingModel& model, const OptimizerDefinition& how) {
  TrainDefinition cut = cut_of(model);
  cut.optimizer = how;
  std::vector<TrainingBatch> batches;  // they repeat, so that there is something to learn
  for (int i = 0; i < 5; ++i) batches.push_back(batch_for(cut, seed_for(context.seed, fmt::format("{}/batch {}", model.name, i))));
  check_against_oracle(context, model.name, cut, [&](TrainingRun& run, TrainingResult& result) {
    for (std::size_t step = 0; step < 50; ++step) result.losses.push_back(run.step(batches[step % batches.size()]));
    append(result.findings, run.parameters("after 50 steps"));
    result.findings.push_back(run.prediction("after 50 steps", batches[0].x));
  });
}

/// Predictions follow the parameters; those of a frozen program do not change.
void check_prediction(CaseContext& context, const TrainingModel& model, const OptimizerDefinition& how) {
  TrainDefinition cut = cut_of(model);
  cut.optimizer = how;
  const TrainingBatch batch = batch_for(cut, seed_for(context.seed, model.name + "/batch"));
  check_against_oracle(context, model.name, cut, [&](TrainingRun& run, TrainingResult& result) {
    Program frozen = run.model.freeze(cut.fit.batch_size);
    const Finding first{"prediction of a frozen program", array_of(frozen.run({batch.x})[0])};
    result.findings.push_back(run.prediction("before training", batch.x));
    for (int step = 1; step <= 3; ++step) {
      result.losses.push_back(run.step(batch));
      result.findings.push_back(run.prediction(fmt::format("after step {}", step), batch.x));
    }
    const Array again = array_of(frozen.run({batch.x})[0]);
    if (!again.same_bits(first.value)) throw Failure(model.name + ": training the model changed the predictions of a frozen program");
    result.findings.push_back(first);
  });
}

/// One model, used by two threads at once: frozen programs, then training. `own_streams`: each thread has its own context.
void check_two_threads(CaseContext& context, const TrainingModel& model, const OptimizerDefinition& how, bool own_streams) {
  TrainDefinition cut = cut_of(model);
  cut.optimizer = how;
  const std::uint64_t seed = seed_for(context.seed, model.name);
  struct Worker {
    const Context& context;
    TrainingBatch batch;
    Program frozen;
    Array prediction;
    std::vector<double> losses;
  };
  const auto train = [&](const Worker& worker) {
    TrainingRun run(worker.context, cut);
    std::vector<double> losses;
    for (int step = 0; step < 5; ++step) losses.push_back(run.step(worker.batch));
    return losses;
  };
  const auto work = [&](Worker& worker) {
    for (int run = 1; run <= 20; ++run) {
      if (!array_of(worker.frozen.run({worker.batch.x})[0]).same_bits(worker.prediction))
        throw Failure(fmt::format("{}: prediction {} concurrent with another thread has other bits than sequentially", model.name, run));
    }
    if (train(worker) != worker.losses)
      throw Failure(model.name + ": 5 steps concurrent with another thread have other losses than sequentially");
  };
  on_device(model.name, [&] {
    std::vector<Context> contexts{context_on(context.device, seed, true)};
    if (own_streams) contexts.push_back(context_on(context.device, seed, true));
    std::list<Worker> workers;
    for (int i = 0; i < 2; ++i) {
      const Context& worker_context = contexts[i % contexts.size()];
      const TrainingBatch batch = batch_for(cut, seed_for(context.seed, fmt::format("{}/thread {}", model.name, i)));
      Worker& worker =
          workers.emplace_back(Worker{worker_context, batch, TrainingRun(worker_context, cut).model.freeze(cut.fit.batch_size), {}, {}});
      worker.prediction = array_of(worker.frozen.run({batch.x})[0]);
      worker.losses = train(worker);
    }
    std::future<void> concurrent = std::async(std::launch::async, [&] { work(workers.back()); });
    work(workers.front());
    concurrent.get();
  });
}

/// The three networks that are trained for 50 steps, with their optimizers.
struct LongRun {
  const char* model;
  OptimizerDefinition optimizer;
};
const std::vector<LongRun>& long_runs() {
  using Kind = OptimizerDefinition::Kind;
  static const std::vector<LongRun> runs = {
      {"mnist_mlp", optimizer(Kind::sgd, 0.05, 0.9)},
      {"convnet", optimizer(Kind::rmsprop, 0.001)},
      {"lstm_lm", optimizer(Kind::adam, 0.01)},
  };
  return runs;
}

}  // namespace

std::vector<Case> training_case_list(const std::filesystem::path& models) {
  std::vector<Case> cases;
  for (const TrainingModel& model : training_models(models)) {
    if (small_sizes() && model.name.starts_with("bench/")) continue;  // deeper, of the same ops as the other models
    const std::string group = "training/" + model.name;
    const auto add = [&](const std::string& name, std::function<void(CaseContext&)> run) {
      cases.push_back({group + "/" + name, "training", group, TENON_DTYPE_NONE, true, std::move(run)});
    };
    if (!model.has_cut) {
      add("one_step", [model](CaseContext&) {
        throw NotRun(fmt::format("{} has no `conformance` block, which says how the model is reduced", platform::text_of(model.file)));
      });
      continue;
    }
    add("one_step", [model](CaseContext& context) { check_one_step(context, model); });
    for (const LongRun& run : long_runs()) {
      if (model.name != run.model) continue;
      add("50_steps", [model, &run](CaseContext& context) { check_fifty_steps(context, model, run.optimizer); });
      add("prediction", [model, &run](CaseContext& context) { check_prediction(context, model, run.optimizer); });
      add("two_threads", [model, &run](CaseContext& context) { check_two_threads(context, model, run.optimizer, false); });
      add("two_streams", [model, &run](CaseContext& context) { check_two_threads(context, model, run.optimizer, true); });
    }
  }
  return cases;
}

}  // namespace tenon::conformance
