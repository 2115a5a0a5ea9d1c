// SPDX-License-Identifier: Apache-2.0
#include <tenon/gradcheck.h>

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <span>

#include <tenon/program.h>

#include "exec/context_state.h"
#include "train/binding.h"
#include "train/program/builder.h"
#include "train/program/initializers.h"
#include "train/program/objective.h"

namespace tenon {
namespace {

/// The loss as a function of one element, with the others fixed.
class Line {
 public:
  Line(const LossFunction& loss, std::vector<Tensor>& parameters, std::size_t parameter, std::int64_t index)
      : loss_(loss), parameters_(parameters), element_(parameters[parameter].data<double>()[index]), at_(element_) {}
  ~Line() { element_ = at_; }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  double size() const { return std::max(1.0, std::abs(at_)); }
  double loss(double offset) {
    element_ = at_ + offset;
    const double value = loss_(parameters_);
    if (!std::isfinite(value)) throw Error(fmt::format("check_gradients: the loss is {} near the element value {}", value, at_));
    largest_ = std::max(largest_, std::abs(value));
    return value;
  }
  /// The error of a difference quotient over h if the loss is rounded by a few units in the last place.
  double noise(double h) const { return 16 * std::numeric_limits<double>::epsilon() * largest_ / h; }

 private:
  const LossFunction& loss_;
  std::vector<Tensor>& parameters_;
  double& element_;
  double at_;
  double largest_ = 0;
};

enum class Verdict { right, wrong, kink };

struct Judgement {
  Verdict verdict = Verdict::wrong;
  GradientDifference difference;
};

constexpr std::array<double, 3> steps{1e-3, 1e-4, 1e-5};

/// A corner: the one-sided slopes stay apart as the step shrinks, whereas those of a smooth loss converge in proportion to it.
bool is_corner(Line& line, double middle, double analytic) {
  const auto sides = [&](double h) { return std::array<double, 2>{(middle - line.loss(-h)) / h, (line.loss(h) - middle) / h}; };
  const double wide_step = steps[1] * line.size(), step = steps[2] * line.size();
  const auto wide = sides(wide_step), narrow = sides(step);
  const double gap = std::abs(narrow[1] - narrow[0]), slack = 0.01 * gap + line.noise(step);
  if (gap < 4 * line.noise(step) || gap < 0.5 * std::abs(wide[1] - wide[0])) return false;
  return analytic > std::min(narrow[0], narrow[1]) - slack && analytic < std::max(narrow[0], narrow[1]) + slack;
}

Judgement check_element(Line& line, std::int64_t index, double analytic, double tolerance) {
  Judgement best;
  best.difference = {index, analytic, 0, std::numeric_limits<double>::infinity()};
  const double middle = line.loss(0);
  for (const double relative_step : steps) {
    const double h = relative_step * line.size();
    const auto central = [&](double step) { return (line.loss(step) - line.loss(-step)) / (2 * step); };
    const double half = central(h / 2), numeric = (4 * half - central(h)) / 3;
    const double scale = std::max(std::abs(analytic), std::abs(numeric));
    const double beyond = std::max(0.0, std::abs(analytic - numeric) - line.noise(h));
    const double relative = beyond == 0 ? 0 : beyond / scale;
    if (relative < best.difference.relative) best.difference = {index, analytic, numeric, relative};
    if (relative <= tolerance) {
      best.verdict = Verdict::right;
      return best;
    }
    // If both steps agree to four digits, their extrapolation has eight: a smaller step would only add rounding errors.
    if (std::abs(numeric - half) <= 1e-4 * std::abs(numeric) + line.noise(h)) break;
  }
  if (is_corner(line, middle, analytic)) best.verdict = Verdict::kink;
  return best;
}

/// `count` distinct indices below `size`, sorted.
std::vector<std::int64_t> choose(std::int64_t size, std::int64_t count, std::mt19937_64& random) {
  std::vector<std::int64_t> chosen;
  if (count >= size) {
    chosen.resize(static_cast<std::size_t>(size));
    std::iota(chosen.begin(), chosen.end(), 0);
    return chosen;
  }
  while (static_cast<std::int64_t>(chosen.size()) < count) {
    const auto index = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(size));
    if (std::find(chosen.begin(), chosen.end(), index) == chosen.end()) chosen.push_back(index);
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

void expect_f64(const char* what, const Tensor& tensor, const std::string& name, const Shape& shape) {
  if (tensor.dtype() == DType::f64 && tensor.shape() == shape) return;
  throw Error(fmt::format("check_gradients: expected the {} '{}' as f64{}, got {}{}", what, name, shape.str(), name_of(tensor.dtype()),
                          tensor.shape().str()));
}

}  // namespace

bool GradientReport::passed() const {
  return std::all_of(parameters.begin(), parameters.end(), [](const ParameterCheck& p) { return p.failed == 0; });
}

std::string GradientReport::str() const {
  std::size_t width = std::string("Parameter").size();
  for (const ParameterCheck& p : parameters) width = std::max(width, p.name.size() + p.shape.str().size() + 1);
  std::string text = fmt::format("{:<{}}  {:>7}  {:>6}  {:>5}  {:>9}  {:>9}  {:>15}  {:>15}\n", "Parameter", width, "checked", "failed",
                                 "kinks", "worst", "at", "analytic", "numeric");
  std::int64_t checked = 0, failed = 0, kinks = 0;
  for (const ParameterCheck& p : parameters) {
    text += fmt::format("{:<{}}  {:>7}  {:>6}  {:>5}  {:>9.2e}  {:>9}  {:>15.8e}  {:>15.8e}{}\n", p.name + " " + p.shape.str(), width,
                        p.checked, p.failed, p.kinks, p.worst.relative, p.worst.index, p.worst.analytic, p.worst.numeric,
                        p.failed > 0 ? "  WRONG" : "");
    checked += p.checked, failed += p.failed, kinks += p.kinks;
  }
  return text + fmt::format("{} of {} elements differ by more than {:g}; {} at kinks of the loss. Gradients are {}.\n", failed, checked,
                            tolerance, kinks, passed() ? "right" : "WRONG");
}

GradientReport check_gradients(const LossFunction& loss, const std::vector<NamedTensor>& parameters, const std::vector<Tensor>& gradients,
                               const GradientCheckOptions& options) {
  if (gradients.size() != parameters.size()) {
    throw Error(fmt::format("check_gradients: expected {} gradients, one per parameter, got {}", parameters.size(), gradients.size()));
  }
  if (options.samples < 1) throw Error(fmt::format("check_gradients: samples is {}, expected at least 1", options.samples));
  std::vector<Tensor> values;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const NamedTensor& p = parameters[i];
    expect_f64("parameter", p.tensor, p.name, p.tensor.shape());
    expect_f64("gradient of", gradients[i], p.name, p.tensor.shape());
    Tensor own = Tensor::empty(DType::f64, p.tensor.shape());  // modified element by element below
    const Tensor given = p.tensor.to_host().contiguous();
    std::copy_n(given.data<double>(), given.count(), own.data<double>());
    values.push_back(own);
  }
  std::mt19937_64 random(options.seed);
  GradientReport report;
  report.tolerance = options.tolerance;
  report.loss = loss(values);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    ParameterCheck check{parameters[i].name, parameters[i].tensor.shape(), 0, 0, 0, {}};
    const Tensor gradient = gradients[i].to_host().contiguous();
    for (const std::int64_t index : choose(gradient.count(), options.samples, random)) {
      Line line(loss, values, i, index);
      const Judgement judgement = check_element(line, index, gradient.data<double>()[index], options.tolerance);
      ++check.checked;
      if (judgement.verdict == Verdict::kink) {
        ++check.kinks;
        continue;
      }
      if (judgement.verdict == Verdict::wrong) ++check.failed;
      if (check.checked - check.kinks == 1 || judgement.difference.relative > check.worst.relative) check.worst = judgement.difference;
    }
    report.parameters.push_back(check);
  }
  return report;
}

namespace {

/// For a model and its losses on a batch in the order of both.
GradientReport check_model(train::ModelSetup& setup, const Context& context, std::span<const Tensor> inputs,
                           std::span<const Tensor> targets, const GradientCheckOptions& options) {
  setup.definition.dtype = DType::f64;
  const auto parameters = std::make_shared<ParameterStore>();
  const auto home_of = [&](const train::ParameterSpec& spec) {
    return spec.device.empty() ? context.default_device() : Device(context.state()->open_found(spec.device));
  };

  // Both graphs begin with the same nodes, so that dropout, whose masks depend on the index of its node, is the same in both.
  const auto build_loss = [&](Graph& graph, train::Forward& out_forward) {
    train::NamedValues in;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      in.emplace_back(setup.interface.inputs.at(i).name, graph.input(setup.input_name(i), inputs[i].dtype(), inputs[i].shape()));
    }
    out_forward = train::build(graph, setup.definition, in, graph.input("key", DType::u64, {2}),
                               {.context = &context, .sources = setup.sources.get()});
    std::vector<Value> y;
    for (std::size_t i = 0; i < targets.size(); ++i) y.push_back(graph.input(setup.target_name(i), targets[i].dtype(), targets[i].shape()));
    return train::build_objective(out_forward, y, setup.losses).loss;
  };
  Graph with_gradients, forward_only;
  train::Forward f, second;
  const Value value = build_loss(with_gradients, f);
  if (f.specs.empty()) throw Error("check_gradients: the model has no parameters to check");
  const std::vector<Value> gradient_of = gradients(value, f.parameters);
  with_gradients.output("loss", value);
  for (std::size_t i = 0; i < f.specs.size(); ++i) with_gradients.output(train::gradient_name(f.specs[i]), gradient_of[i]);
  forward_only.output("loss", build_loss(forward_only, second));

  std::vector<NamedTensor> start;
  for (std::size_t i = 0; i < f.specs.size(); ++i) {
    const train::ParameterSpec& spec = f.specs[i];
    parameters->create(spec.name, home_of(spec), DType::f64, spec.shape);
    const Tensor first = train::initialize(context, home_of(spec), spec, context.config().seed, static_cast<std::uint32_t>(i));
    parameters->set(spec.name, first);
    start.push_back({spec.name, first.to_host()});
  }
  for (const train::LayerState& state : f.states) {
    parameters->create(state.spec.name, home_of(state.spec), DType::f64, state.spec.shape);
    parameters->set(state.spec.name, train::initialize(context, home_of(state.spec), state.spec, 0, 0));
  }
  std::vector<Tensor> arguments(inputs.begin(), inputs.end());
  arguments.push_back(Tensor::of<std::uint64_t>({context.config().seed, 1}, {2}));
  arguments.insert(arguments.end(), targets.begin(), targets.end());
  Program backward(context, with_gradients, {.device = {}, .parameters = parameters});
  Program forward(context, forward_only, {.device = {}, .parameters = parameters});
  const std::vector<Tensor>& results = backward.run(arguments);
  std::vector<Tensor> analytic;
  for (std::size_t i = 1; i < results.size(); ++i) analytic.push_back(results[i].to_host());

  std::vector<std::vector<double>> on_device(start.size());  // the values on the device, so that only changes are copied
  const LossFunction loss_at = [&](const std::vector<Tensor>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double* const now = values[i].data<double>();
      if (!on_device[i].empty() && std::equal(on_device[i].begin(), on_device[i].end(), now)) continue;
      on_device[i].assign(now, now + values[i].count());
      parameters->set(start[i].name, values[i]);
    }
    return forward.run(arguments).front().to_host().item();
  };
  return check_gradients(loss_at, start, analytic, options);
}

}  // namespace

GradientReport check_gradients(const Context& context, const ModelDefinition& model, const LossDefinition& loss, const Tensor& x,
                               const Tensor& y, const GradientCheckOptions& options) {
  train::ModelSetup setup(model);
  setup.compile(context, {.loss = loss});
  setup.expect_one_of_each("check_gradients");
  return check_model(setup, context, {&x, 1}, {&y, 1}, options);
}

GradientReport check_gradients(const Context& context, const ModelDefinition& model, const std::vector<OutputLoss>& losses,
                               const NamedTensors& inputs, const NamedTensors& targets, const GradientCheckOptions& options) {
  train::ModelSetup setup(model);
  setup.compile(context, {.losses = losses});
  return check_model(setup, context, train::inputs_in_order(setup, inputs, "check_gradients"),
                     train::targets_in_order(setup, targets, "check_gradients"), options);
}

}  // namespace tenon
