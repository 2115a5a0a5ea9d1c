// SPDX-License-Identifier: Apache-2.0
#include "train/program/optimizer_steps.h"

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "graph/op.h"

namespace tenon::train {
namespace {

using ops::add, ops::div, ops::mul, ops::neg, ops::sqrt;

/// share old + (1 - share) now, which becomes the next value of the state `old`.
Value moving_average(Value old, double share, Value now) {
  const Value next = add(mul(old, share), mul(now, 1 - share));
  old.graph().update(old, next);
  return next;
}

Value one_minus(Value x) {
  return add(neg(x), 1);
}

/// The scalars of a step, in the dtype of the learning rate.
struct Scalars {
  explicit Scalars(const OptimizerInputs& in) : definition(in.definition), lr(in.lr), t(ops::cast(in.step, in.lr.dtype())) {}

  const OptimizerDefinition& definition;
  Value lr, t;

  /// base^exponent
  Value power(double base, Value exponent) const { return ops::pow(graph::scalar(t.graph(), t.dtype(), base), exponent); }
  /// 1 - base^t, exact to a few roundings also where the power is near 1.
  Value one_minus_power(double base) const { return neg(ops::expm1(mul(t, std::log(base)))); }
};

/// A scalar in the dtype of a parameter.
Value as_parameter(Value scalar, Value parameter) {
  return parameter.dtype() == scalar.dtype() ? scalar : ops::cast(scalar, parameter.dtype());
}

/// Calls step(w, g, m, v) with the next moments of each parameter; it returns what is subtracted from the parameter.
template <class Step>
void for_each_parameter(const OptimizerInputs& in, const std::vector<Value>& gradients, const Step& step) {
  for (std::size_t i = 0; i < in.parameters.size(); ++i) {
    const Value w = in.parameters[i], g = gradients[i];
    const Value m = moving_average(in.state[2 * i], *in.definition.beta1, g);
    const Value v = moving_average(in.state[2 * i + 1], *in.definition.beta2, ops::square(g));
    w.graph().update(w, ops::sub(w, step(w, g, m, v)));
  }
}

}  // namespace

void rmsprop_with_momentum(const OptimizerInputs& in, const std::vector<Value>& gradients) {
  const OptimizerDefinition& o = in.definition;
  std::size_t next = 0;  // of the state
  for (std::size_t i = 0; i < in.parameters.size(); ++i) {
    const Value w = in.parameters[i], g = gradients[i];
    Value spread = moving_average(in.state[next++], *o.rho, ops::square(g));
    if (o.centered) {
      const Value mean = moving_average(in.state[next++], *o.rho, g);
      spread = ops::maximum(ops::sub(spread, ops::square(mean)), 0);  // rounding can take it below 0
    }
    Value d = div(g, *o.epsilon_outside_root ? add(sqrt(spread), *o.epsilon) : sqrt(add(spread, *o.epsilon)));
    if (*o.momentum != 0) {
      const Value velocity = in.state[next++];
      d = add(mul(velocity, *o.momentum), d);
      w.graph().update(velocity, d);
    }
    w.graph().update(w, ops::sub(w, mul(d, as_parameter(in.lr, w))));
  }
}

void nadam_step(const OptimizerInputs& in, const std::vector<Value>& gradients) {
  const Scalars s(in);
  const auto mu = [&](double t) { return *s.definition.beta1 * (1 - 0.5 * std::pow(0.96, 0.004 * t)); };
  // The product halves with each of the first steps: after these, 1 less the product is 1 in f64.
  constexpr std::int64_t steps = 64;
  std::vector<double> products{1};
  for (std::int64_t t = 1; t <= steps; ++t) products.push_back(products.back() * mu(static_cast<double>(t)));
  const auto product = [&](Value t) {
    Graph& graph = t.graph();
    const Value place = ops::cast(ops::minimum(t, static_cast<double>(steps)), DType::i64);
    return ops::gather(graph.constant(Tensor::of(products, {steps + 1}).to(t.dtype())), place);
  };
  const auto mu_of = [&](Value t) { return mul(one_minus(mul(s.power(0.96, mul(t, 0.004)), 0.5)), *s.definition.beta1); };
  const Value next = add(s.t, 1);
  const Value of_g = mul(s.lr, div(one_minus(mu_of(s.t)), one_minus(product(s.t))));
  const Value of_m = mul(s.lr, div(mu_of(next), one_minus(product(next))));
  const Value correction = sqrt(s.one_minus_power(*s.definition.beta2));
  for_each_parameter(in, gradients, [&](Value w, Value g, Value m, Value v) {
    const Value root = add(div(sqrt(v), as_parameter(correction, w)), *s.definition.epsilon);
    return div(add(mul(g, as_parameter(of_g, w)), mul(m, as_parameter(of_m, w))), root);
  });
}

void radam_step(const OptimizerInputs& in, const std::vector<Value>& gradients) {
  const Scalars s(in);
  const double longest = 2 / (1 - *s.definition.beta2) - 1;
  const Value power = s.power(*s.definition.beta2, s.t), correction = s.one_minus_power(*s.definition.beta2);
  const Value length = add(neg(div(mul(mul(s.t, power), 2), correction)), longest);
  const Value rate = div(s.lr, s.one_minus_power(*s.definition.beta1));
  const bool adapts_at_all = longest > 5;
  const Value adapts = ops::greater(length, graph::scalar(s.t.graph(), s.t.dtype(), 5));
  const Value early = ops::maximum(length, 5);  // no root of a negative number where it is not used
  const Value variance = div(mul(mul(add(early, -4), add(early, -2)), longest / ((longest - 4) * (longest - 2))), early);
  const Value scale = mul(sqrt(variance), sqrt(correction));
  for_each_parameter(in, gradients, [&](Value w, Value, Value m, Value v) {
    const Value step = mul(m, as_parameter(rate, w));
    if (!adapts_at_all) return step;
    const Value adapted = div(mul(step, as_parameter(scale, w)), add(sqrt(v), *s.definition.epsilon));
    return ops::where(adapts, adapted, step);
  });
}

}  // namespace tenon::train
