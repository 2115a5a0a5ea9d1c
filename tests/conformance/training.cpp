// Profile training: small cuts of the models, trained by the runtime on the device under test and on the oracle.
//
// How far the two may be apart. Both compute in one width and round differently, in each of a net's sums; what that does to a result
// depends on the net. It is therefore measured: the oracle runs three times more, each time with every weight moved by up to 16 units in
// its last place, which is what adding up 256 numbers one after the other does to their sum, give or take (the root of their count). A
// result may be `rounding_factor` times as far from the oracle's as any of that moves it, and by `rounding_floor` epsilons of the tensor's
// largest element, where those happen to move it less than a sum does. The factor is for what is not linear: a unit that three nudges
// leave on its side of a kink, and one backend does not. Nets that are too deep for their width to be compared in f32 have a cut in f64.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <future>
#include <iterator>
#include <list>

#include <tenon/error.h>

#include "case.h"
#include "training_run.h"

namespace tenon::conformance {
namespace {

constexpr double rounding_factor = 16;
constexpr double rounding_floor = 256;
constexpr int nudges = 3;

/// What a run came to, losses apart.
struct Course {
  std::vector<double> losses;  ///< per step
  std::vector<Finding> findings;
};
using Experiment = std::function<void(TrainingRun& run, Course& out_course)>;

/// The runtime's errors as what they are in a report.
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
  double most = 0;
  for (std::int64_t i = 0; i < a.count(); ++i) most = std::max(most, std::fabs(a.at(i) - b.at(i)));
  return most;
}
double largest_magnitude(const Array& a) {
  double most = 0;
  for (std::int64_t i = 0; i < a.count(); ++i) most = std::max(most, std::fabs(a.at(i)));
  return most;
}

/// What the oracle says, and how far that may be off.
struct Verdict {
  Course plain;
  std::vector<Course> nudged;
  double epsilon;

  double allowed(double moved, double magnitude) const { return rounding_factor * moved + rounding_floor * epsilon * magnitude; }
  void expect_losses(const std::string& model, const Course& got) const;
  void expect_findings(const std::string& model, const Course& got) const;
};

void Verdict::expect_losses(const std::string& model, const Course& got) const {
  double moved = 0;  // at any step until now: by chance two losses may meet again
  for (std::size_t step = 0; step < plain.losses.size(); ++step) {
    const double want = plain.losses[step], have = got.losses[step];
    for (const Course& other : nudged) moved = std::max(moved, std::fabs(other.losses[step] - want));
    const double error = std::fabs(have - want), most = allowed(moved, std::fabs(want));
    if (error <= most) continue;  // a NaN is not
    throw Failure(fmt::format("{}, step {}: loss: wanted {:.9g}, got {:.9g}; error {:.3g}, at most {:.3g} allowed", model, step + 1, want,
                              have, error, most));
  }
}

void Verdict::expect_findings(const std::string& model, const Course& got) const {
  for (std::size_t i = 0; i < plain.findings.size(); ++i) {
    const Finding& want = plain.findings[i];
    if (got.findings.size() <= i || got.findings[i].what != want.what)
      throw Failure(fmt::format("{}: {} is missing on the device under test", model, want.what));
    double moved = 0;
    for (const Course& other : nudged) moved = std::max(moved, largest_distance(want.value, other.findings[i].value));
    const std::string wrong = compare(want.value, got.findings[i].value, {.absolute = allowed(moved, largest_magnitude(want.value))});
    if (!wrong.empty()) throw Failure(fmt::format("{}, {}: {}", model, want.what, wrong));
  }
}

const Device& oracle_of(const Kit& kit) {
  if (kit.oracle == nullptr) throw NotRun("the device under test is the oracle itself");
  return *kit.oracle;
}

/// `nudge`: from 1 on, which one; 0: none.
Course run_on(const Device& device, const config::TrainDefinition& cut, std::uint64_t seed, int nudge, const Experiment& experiment) {
  const Context context = context_on(device, seed, true);
  TrainingRun run(context, cut);
  if (nudge > 0) run.nudge(seed + static_cast<std::uint64_t>(nudge));
  Course course;
  experiment(run, course);
  return course;
}

void check_against_oracle(Kit& kit, const std::string& model, const config::TrainDefinition& cut, const Experiment& experiment) {
  const Device& oracle = oracle_of(kit);
  const std::uint64_t seed = seed_for(kit.seed, model);
  const Course got = on_device(model, [&] { return run_on(kit.device, cut, seed, 0, experiment); });
  Verdict verdict{run_on(oracle, cut, seed, 0, experiment), {}, epsilon(static_cast<tenon_dtype>(cut.model.dtype))};
  for (int nudge = 1; nudge <= nudges; ++nudge) verdict.nudged.push_back(run_on(oracle, cut, seed, nudge, experiment));
  verdict.expect_losses(model, got);
  verdict.expect_findings(model, got);
}

void append(std::vector<Finding>& out, std::vector<Finding> more) {
  std::move(more.begin(), more.end(), std::back_inserter(out));
}

config::TrainDefinition cut_of(const TrainingModel& model) {
  config::TrainDefinition cut = config::load_cut(model.file.string());
  cut.optimizer.schedule = {};  // which may ask how long the fit is
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

/// Steps are linear in the gradients here, so that no optimizer makes much of a gradient that is next to nothing.
void check_one_step(Kit& kit, const TrainingModel& model) {
  config::TrainDefinition cut = cut_of(model);
  cut.optimizer = optimizer(OptimizerDefinition::Kind::sgd, 0.05);
  const TrainingBatch batch = batch_for(cut, seed_for(kit.seed, model.name + "/batch"));
  check_against_oracle(kit, model.name, cut, [&](TrainingRun& run, Course& course) {
    course.findings.push_back(run.prediction("before the step", batch.x));
    course.losses.push_back(run.step(batch));
    append(course.findings, run.parameters("after the step"));
    course.findings.push_back(run.prediction("after the step", batch.x));
    append(course.findings, run.gradients(batch));
  });
}

void check_fifty_steps(Kit& kit, const TrainingModel& model, const OptimizerDefinition& how) {
  config::TrainDefinition cut = cut_of(model);
  cut.optimizer = how;
  std::vector<TrainingBatch> batches;  // they come again, so that there is something to learn
  for (int i = 0; i < 5; ++i) batches.push_back(batch_for(cut, seed_for(kit.seed, fmt::format("{}/batch {}", model.name, i))));
  check_against_oracle(kit, model.name, cut, [&](TrainingRun& run, Course& course) {
    for (std::size_t step = 0; step < 50; ++step) course.losses.push_back(run.step(batches[step % batches.size()]));
    append(course.findings, run.parameters("after 50 steps"));
    course.findings.push_back(run.prediction("after 50 steps", batches[0].x));
  });
}

/// Predictions follow the parameters, those of a frozen program stay what they were.
void check_prediction(Kit& kit, const TrainingModel& model, const OptimizerDefinition& how) {
  config::TrainDefinition cut = cut_of(model);
  cut.optimizer = how;
  const TrainingBatch batch = batch_for(cut, seed_for(kit.seed, model.name + "/batch"));
  check_against_oracle(kit, model.name, cut, [&](TrainingRun& run, Course& course) {
    Program frozen = run.model.freeze(cut.batch_size);
    const Finding first{"prediction of a frozen program", array_of(frozen.run({batch.x})[0])};
    course.findings.push_back(run.prediction("before training", batch.x));
    for (int step = 1; step <= 3; ++step) {
      course.losses.push_back(run.step(batch));
      course.findings.push_back(run.prediction(fmt::format("after step {}", step), batch.x));
    }
    const Array again = array_of(frozen.run({batch.x})[0]);
    if (!again.same_bits(first.value)) throw Failure(model.name + ": a frozen program predicts otherwise since its model has been trained");
    course.findings.push_back(first);
  });
}

/// One model, used by two threads at once: frozen programs, then training. `own_streams`: in contexts of their own, else in one.
void check_two_threads(Kit& kit, const TrainingModel& model, const OptimizerDefinition& how, bool own_streams) {
  config::TrainDefinition cut = cut_of(model);
  cut.optimizer = how;
  const std::uint64_t seed = seed_for(kit.seed, model.name);
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
        throw Failure(fmt::format("{}: prediction {} beside another thread has other bits than alone", model.name, run));
    }
    if (train(worker) != worker.losses) throw Failure(model.name + ": 5 steps beside another thread have other losses than alone");
  };
  on_device(model.name, [&] {
    std::vector<Context> contexts{context_on(kit.device, seed, true)};
    if (own_streams) contexts.push_back(context_on(kit.device, seed, true));
    std::list<Worker> workers;
    for (int i = 0; i < 2; ++i) {
      const Context& context = contexts[i % contexts.size()];
      const TrainingBatch batch = batch_for(cut, seed_for(kit.seed, fmt::format("{}/thread {}", model.name, i)));
      Worker& worker = workers.emplace_back(Worker{context, batch, TrainingRun(context, cut).model.freeze(cut.batch_size), {}, {}});
      worker.prediction = array_of(worker.frozen.run({batch.x})[0]);
      worker.losses = train(worker);
    }
    std::future<void> beside = std::async(std::launch::async, [&] { work(workers.back()); });
    work(workers.front());
    beside.get();
  });
}

/// The three nets that are trained for long, and how.
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
    const std::string group = "training/" + model.name;
    const auto add = [&](const std::string& name, std::function<void(Kit&)> run) {
      cases.push_back({group + "/" + name, "training", group, TENON_DTYPE_NONE, true, std::move(run)});
    };
    if (!model.has_cut) {
      add("one_step", [model](Kit&) {
        throw NotRun(fmt::format("{} has no `conformance` block, which says how the model is made small", model.file.string()));
      });
      continue;
    }
    add("one_step", [model](Kit& kit) { check_one_step(kit, model); });
    for (const LongRun& run : long_runs()) {
      if (model.name != run.model) continue;
      add("50_steps", [model, &run](Kit& kit) { check_fifty_steps(kit, model, run.optimizer); });
      add("prediction", [model, &run](Kit& kit) { check_prediction(kit, model, run.optimizer); });
      add("two_threads", [model, &run](Kit& kit) { check_two_threads(kit, model, run.optimizer, false); });
      add("two_streams", [model, &run](Kit& kit) { check_two_threads(kit, model, run.optimizer, true); });
    }
  }
  return cases;
}

}  // namespace tenon::conformance
