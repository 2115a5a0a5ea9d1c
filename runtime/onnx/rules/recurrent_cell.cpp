// SPDX-License-Identifier: Apache-2.0
// onnx/rules/recurrent_cell.cpp - the steps of recurrent cells as other ops, for what their kernels lack.
#include "onnx/rules/recurrent_cell.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace tenon::onnx {

/// A function by its name in lower case. Numbers that it takes follow in activation_alpha and activation_beta, in the order of the
/// activations that take one, as in ONNX Runtime; else they have these values.
struct CellActivation::Kind {
  std::string_view name;
  bool takes_alpha, takes_beta;
  double alpha, beta;
  Value (*apply)(Value x, double alpha, double beta);
};

namespace {

using Kind = CellActivation::Kind;

const Kind kinds[] = {
    {"tanh", false, false, 0, 0, [](Value x, double, double) { return ops::tanh(x); }},
    {"sigmoid", false, false, 0, 0, [](Value x, double, double) { return ops::sigmoid(x); }},
    {"relu", false, false, 0, 0, [](Value x, double, double) { return ops::relu(x); }},
    {"softplus", false, false, 0, 0, [](Value x, double, double) { return ops::softplus(x); }},
    {"softsign", false, false, 0, 0, [](Value x, double, double) { return x / (ops::abs(x) + 1); }},
    {"elu", true, false, 1, 0, [](Value x, double alpha, double) { return ops::elu(x, alpha); }},
    {"leakyrelu", true, false, 0.01, 0, [](Value x, double alpha, double) { return ops::leaky_relu(x, alpha); }},
    {"thresholdedrelu", true, false, 1, 0,
     [](Value x, double alpha, double) {
       const auto number = [&](double value) { return x.graph().constant(Tensor::full(x.dtype(), {}, value)); };
       return ops::where(ops::greater(x, number(alpha)), x, number(0));
     }},
    {"affine", true, true, 1, 0, [](Value x, double alpha, double beta) { return x * alpha + beta; }},
    {"scaledtanh", true, true, 1, 1, [](Value x, double alpha, double beta) { return ops::tanh(x * beta) * alpha; }},
    {"hardsigmoid", true, true, 0.2, 0.5, [](Value x, double alpha, double beta) { return ops::clip(x * alpha + beta, 0, 1); }},
};

const Kind& kind_of(const Node& node, std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  for (const Kind& kind : kinds) {
    if (kind.name == lower) return kind;
  }
  std::string known;
  for (const Kind& kind : kinds) known += (known.empty() ? "" : ", ") + std::string(kind.name);
  node.fail(fmt::format("expected activations of {}; got '{}'", known, name));
}

/// The activations of a cell where the node names none.
std::vector<std::string_view> default_activations(RecurrentCell cell) {
  switch (cell) {
    case RecurrentCell::rnn:
      return {"Tanh"};
    case RecurrentCell::gru:
      return {"Sigmoid", "Tanh"};
    default:
      return {"Sigmoid", "Tanh", "Tanh"};
  }
}

/// Activations of all directions; those of one direction serve two.
std::vector<CellActivation> activations_of(Node& node, RecurrentCell cell, std::size_t directions) {
  const std::vector<std::string_view> standard = default_activations(cell);
  std::vector<std::string_view> names = node.texts("activations");
  if (names.empty()) names = standard;
  const std::size_t needed = directions * standard.size();
  if (names.size() < standard.size() || (names.size() < needed && names.size() != standard.size())) {
    node.fail(fmt::format("expected {} activations, got {}", needed, names.size()));
  }
  const std::vector<float>&alphas = node.numbers("activation_alpha"), &betas = node.numbers("activation_beta");
  std::size_t alpha = 0, beta = 0;
  std::vector<CellActivation> activations;
  for (std::size_t i = 0; i < std::min(names.size(), needed); ++i) {
    const Kind& kind = kind_of(node, names[i]);
    CellActivation& activation = activations.emplace_back(CellActivation{&kind, kind.alpha, kind.beta});
    if (kind.takes_alpha && alpha < alphas.size()) activation.alpha = double{alphas[alpha++]};
    if (kind.takes_beta && beta < betas.size()) activation.beta = double{betas[beta++]};
    if (!std::isfinite(activation.alpha) || !std::isfinite(activation.beta)) {
      node.fail(fmt::format("expected finite numbers for activation {}, got {} and {}", names[i], activation.alpha, activation.beta));
    }
  }
  for (std::size_t i = 0; activations.size() < needed; ++i) activations.push_back(CellActivation(activations[i]));
  return activations;
}

/// State between two steps, (B, H) each; c is absent but for an LSTM.
struct State {
  Value h, c;
};

/// What the steps of one direction have in common.
struct Cell {
  const CellOptions& options;
  std::int64_t units;
  Value r;                                   // (G H, H)
  Value reset_r, candidate_r, candidate_b;   // GRU: r in parts, for z and r, and for h~; its bias with linear_before_reset
  Value peephole_i, peephole_o, peephole_f;  // LSTM, may be absent

  Value activate(std::size_t i, Value x) const {
    return options.activations[i](options.clip ? ops::clip(x, -*options.clip, *options.clip) : x);
  }
};

/// x w' + b + h r'
Value preactivation(Value x, Value h, Value r) {
  return ops::gemm(h, r, x, {.trans_b = true});
}

Value with_peephole(Value gate, Value weights, Value c) {
  return weights.present() ? gate + weights * c : gate;
}

// Each step takes x w' + b of one time, (B, G H), and the state before it.

State step_rnn(const Cell& at, Value x, const State& before) {
  return {at.activate(0, preactivation(x, before.h, at.r)), {}};
}

State step_gru(const Cell& at, Value x, const State& before) {
  const std::int64_t n = at.units;
  const std::vector<Value> inputs = ops::split(x, {2 * n, n}, 1);
  const std::vector<Value> gates = ops::split(at.activate(0, preactivation(inputs[0], before.h, at.reset_r)), {n, n}, 1);
  const Value update = gates[0], reset = gates[1];
  const Value candidate = at.options.linear_before_reset
                              ? inputs[1] + reset * ops::gemm(before.h, at.candidate_r, at.candidate_b, {.trans_b = true})
                              : preactivation(inputs[1], reset * before.h, at.candidate_r);
  const Value fresh = at.activate(1, candidate);
  return {fresh + update * (before.h - fresh), {}};
}

/// The clip bounds the gates, but not the cell before h is applied to it, as in ONNX Runtime and OpenVINO.
State step_lstm(const Cell& at, Value x, const State& before) {
  const std::int64_t n = at.units;
  const std::vector<Value> gates = ops::split(preactivation(x, before.h, at.r), {n, n, n, n}, 1);
  const Value input = at.activate(0, with_peephole(gates[0], at.peephole_i, before.c));
  const Value forget = at.options.input_forget ? 1 - input : at.activate(0, with_peephole(gates[2], at.peephole_f, before.c));
  const Value c = forget * before.c + input * at.activate(1, gates[3]);
  const Value output = at.activate(0, with_peephole(gates[1], at.peephole_o, c));
  return {output * at.options.activations[2](c), c};
}

/// Elements [begin, end) of the last dimension of v (1, n), as (end - begin).
Value part(Value v, std::int64_t begin, std::int64_t end) {
  return ops::squeeze(ops::slice(v, 1, begin, end), {0});
}

}  // namespace

Value CellActivation::operator()(Value x) const {
  return kind->apply(x, alpha, beta);
}

bool CellActivation::is(std::string_view name) const {
  return kind->name == name;
}

std::int64_t gates_of(RecurrentCell cell) {
  return cell == RecurrentCell::rnn ? 1 : cell == RecurrentCell::gru ? 3 : 4;
}

std::vector<CellOptions> cell_options(Node& node, RecurrentCell cell, std::size_t directions) {
  const std::vector<CellActivation> activations = activations_of(node, cell, directions);
  const std::size_t count = activations.size() / directions;
  CellOptions options{.cell = cell};
  if (node.has("clip")) {
    const double clip = node.number("clip");
    if (!(clip > 0)) node.fail(fmt::format("expected a positive clip, got {}", clip));
    // exporters write the largest float for none
    if (clip < double{std::numeric_limits<float>::max()}) options.clip = clip;
  }
  options.input_forget = cell == RecurrentCell::lstm && node.flag("input_forget");
  options.linear_before_reset = cell == RecurrentCell::gru && node.flag("linear_before_reset");
  std::vector<CellOptions> all(directions, options);
  for (std::size_t d = 0; d < directions; ++d) {
    const auto first = activations.begin() + static_cast<std::ptrdiff_t>(d * count);
    all[d].activations.assign(first, first + static_cast<std::ptrdiff_t>(count));
  }
  return all;
}

bool has_kernel(const CellOptions& options, const RecurrentOperands& operands) {
  const std::vector<CellActivation>& by = options.activations;
  if (options.clip || options.input_forget || operands.peepholes.present()) return false;
  switch (options.cell) {
    case RecurrentCell::rnn:
      return by[0].is("tanh") || by[0].is("relu");
    case RecurrentCell::gru:
      return by[0].is("sigmoid") && by[1].is("tanh");
    default:
      return by[0].is("sigmoid") && by[1].is("tanh") && by[2].is("tanh");
  }
}

ops::RecurrentResult run_kernel(const CellOptions& options, const RecurrentOperands& operands, ops::Direction direction) {
  const ops::RecurrentValues values{operands.w, operands.r, operands.b, operands.h0, operands.c0};
  switch (options.cell) {
    case RecurrentCell::rnn:
      return ops::rnn(operands.x, values, direction,
                      options.activations[0].is("relu") ? ops::RnnActivation::relu : ops::RnnActivation::tanh);
    case RecurrentCell::gru:
      return ops::gru(operands.x, values, direction, options.linear_before_reset);
    default:
      return ops::lstm(operands.x, values, direction);
  }
}

UnrolledCell unroll_cell(Node& node, const CellOptions& options, const RecurrentOperands& operands) {
  const Shape x = operands.x.shape();
  const std::int64_t steps = x[0], batch = x[1], units = operands.r.shape()[2], rows = gates_of(options.cell) * units;
  const bool is_gru = options.cell == RecurrentCell::gru, is_lstm = options.cell == RecurrentCell::lstm;
  Cell at{.options = options,
          .units = units,
          .r = ops::squeeze(operands.r, {0}),
          .reset_r = {},
          .candidate_r = {},
          .candidate_b = {},
          .peephole_i = {},
          .peephole_o = {},
          .peephole_f = {}};
  // with linear_before_reset the last bias of the state is added before the product with the reset gate
  const bool apart = is_gru && options.linear_before_reset;
  Value bias;
  if (operands.b.present()) {
    Value of_state = part(operands.b, rows, 2 * rows);
    if (apart) {
      at.candidate_b = ops::slice(of_state, 0, 2 * units, rows);
      of_state = ops::pad(ops::slice(of_state, 0, 0, 2 * units), {{0, units}});
    }
    bias = part(operands.b, 0, rows) + of_state;
  }
  if (is_gru) {
    at.reset_r = ops::slice(at.r, 0, 0, 2 * units);
    at.candidate_r = ops::slice(at.r, 0, 2 * units, rows);
  }
  if (operands.peepholes.present()) {
    at.peephole_i = part(operands.peepholes, 0, units);
    at.peephole_o = part(operands.peepholes, units, 2 * units);
    at.peephole_f = part(operands.peepholes, 2 * units, 3 * units);
  }

  // the products with x of all steps are one
  const Value inputs =
      ops::gemm(ops::reshape(operands.x, Shape{steps * batch, x[2]}), ops::squeeze(operands.w, {0}), bias, {.trans_b = true});
  const std::vector<Value> of_steps = ops::split(inputs, std::vector<std::int64_t>(static_cast<std::size_t>(steps), batch), 0);
  const auto initial = [&](Value given) {
    return given.present() ? ops::squeeze(given, {0}) : ops::expand(node.scalar(operands.x.dtype(), 0), {batch, units});
  };
  State state{initial(operands.h0), is_lstm ? initial(operands.c0) : Value()};
  const auto step = is_lstm ? step_lstm : is_gru ? step_gru : step_rnn;
  std::vector<Value> hidden, cells;
  for (const Value of_step : of_steps) {
    state = step(at, of_step, state);
    hidden.push_back(state.h);
    if (is_lstm) cells.push_back(state.c);
  }
  const auto all = [&](const std::vector<Value>& values) { return ops::reshape(ops::concat(values, 0), Shape{steps, batch, units}); };
  return {all(hidden), state.h, state.c, is_lstm ? all(cells) : Value()};
}

}  // namespace tenon::onnx
