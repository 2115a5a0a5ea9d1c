// SPDX-License-Identifier: Apache-2.0
// onnx/rules/recurrent.cpp - RNN, GRU and LSTM: operands, directions and lengths around the kernels.
#include "onnx/rules/recurrent.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include <tenon/functions.h>

#include "onnx/rules.h"
#include "onnx/rules/dtypes.h"
#include "onnx/rules/recurrent_cell.h"
#include "onnx/rules/shapes.h"

namespace tenon::onnx {
namespace {

/// Steps of all directions that are unrolled where a cell has no kernel.
constexpr std::int64_t max_unrolled_steps = 2048;

struct Sizes {
  std::int64_t steps, batch, features, directions, units;
};

void expect(const Node& node, Value value, const Shape& shape, DType dtype, const char* name) {
  if (!value.present() || (value.shape() == shape && value.dtype() == dtype)) return;
  node.fail(fmt::format("expected {} {}{}, got {}{}", name, name_of(dtype), shape.str(), name_of(value.dtype()), value.shape().str()));
}

/// Checks operands in the layout of time first.
Sizes sizes_of(const Node& node, RecurrentCell cell, std::int64_t directions, const RecurrentOperands& operands) {
  const Shape x = operands.x.shape(), r = operands.r.shape();
  const std::int64_t gates = gates_of(cell);
  if (x.rank() != 3) node.fail(fmt::format("expected X of rank 3, got {}", x.str()));
  if (r.rank() != 3 || r[2] < 1 || r[1] % gates != 0 || r[1] / gates != r[2] || r[0] != directions) {
    node.fail(fmt::format("expected R (directions, {} hidden_size, hidden_size) with {} directions, got {}", gates, directions, r.str()));
  }
  const Sizes s{x[0], x[1], x[2], directions, r[2]};
  if (node.has("hidden_size") && node.integer("hidden_size") != s.units) {
    node.fail(fmt::format("expected the hidden_size of R, {}, got {}", s.units, node.integer("hidden_size")));
  }
  const DType dtype = operands.x.dtype();
  if (!is_floating(dtype)) node.fail(fmt::format("expected floating operands, got {}", name_of(dtype)));
  const std::int64_t rows = gates * s.units;
  const Shape state{directions, s.batch, s.units};
  expect(node, operands.w, {directions, rows, s.features}, dtype, "W");
  expect(node, operands.r, r, dtype, "R");
  expect(node, operands.b, {directions, 2 * rows}, dtype, "B");
  expect(node, operands.h0, state, dtype, "initial_h");
  expect(node, operands.c0, state, dtype, "initial_c");
  expect(node, operands.peepholes, {directions, 3 * s.units}, dtype, "P");
  [[maybe_unused]] const Shape y{s.steps, directions, s.batch, s.units};  // refuses sizes whose product is too large
  return s;
}

/// sequence_lens of a batch whose sequences may be shorter than T. Steps of all sequences are rows t B + b.
struct Lengths {
  Value inside;    ///< bool (T, B, 1): t < length
  Value empty;     ///< bool (B, 1): length 0
  Value mirrored;  ///< i64 (T, B): the row of step length - 1 - t of its sequence; behind its length its own
  Value last;      ///< i64 (B): the row of the last step; of an empty sequence its first

  /// x (T, B, n) with the steps of each sequence in reverse order.
  Value reversed(Value x) const { return ops::gather(rows(x), mirrored); }
  /// The last step of each sequence of x (T, B, n), (B, n), and `initial` where it has none.
  Value at_end(Value x, Value initial) const { return ops::where(empty, initial, ops::gather(rows(x), last)); }

 private:
  static Value rows(Value x) {
    const Shape shape = x.shape();
    return ops::reshape(x, Shape{shape[0] * shape[1], shape[2]});
  }
};

/// Operand 4; nothing if it is absent or all sequences have the full length.
std::optional<Lengths> lengths_of(Node& node, const Sizes& s) {
  constexpr std::size_t sequence_lens = 4;
  if (!node.has_input(sequence_lens)) return {};
  const DType dtype = node.dtype(sequence_lens);
  if (node.shape(sequence_lens) != Shape{s.batch} || (dtype != DType::i32 && dtype != DType::i64)) {
    node.fail(fmt::format("expected sequence_lens i32({}), got {}{}", s.batch, name_of(dtype), node.shape(sequence_lens).str()));
  }
  if (const Tensor known = node.known_if_constant(sequence_lens); known.defined()) {
    const std::vector<std::int64_t> lengths = known.to(DType::i64).to_vector<std::int64_t>();
    for (const std::int64_t length : lengths) {
      if (length < 0 || length > s.steps) node.fail(fmt::format("expected sequence_lens of 0 to {}, got {}", s.steps, length));
    }
    if (std::ranges::all_of(lengths, [&](std::int64_t length) { return length == s.steps; })) return {};
  }
  const Value lengths = cast_to(node.input(sequence_lens), DType::i64);
  const Value t = node.constant(counting_tensor(node, 0, s.steps).reshape({s.steps, 1})),
              b = node.constant(counting_tensor(node, 0, s.batch));
  const auto batch = static_cast<double>(s.batch);
  const Value inside = ops::less(t, lengths), last = lengths - 1;
  Lengths result;
  result.inside = ops::unsqueeze(inside, {2});
  result.empty = ops::unsqueeze(ops::less(lengths, node.scalar(DType::i64, 1)), {1});
  result.mirrored = ops::where(inside, last - t, t) * batch + b;
  result.last = ops::maximum(last, 0) * batch + b;
  return result;
}

/// Operands of direction d, with D = 1.
RecurrentOperands of_direction(const RecurrentOperands& all, std::int64_t d) {
  const auto part = [&](Value v) { return v.present() && v.shape()[0] > 1 ? ops::slice(v, 0, d, d + 1) : v; };
  return {all.x, part(all.w), part(all.r), part(all.b), part(all.h0), part(all.c0), part(all.peepholes)};
}

/// An LSTM whose cells stay as they are behind the ends of sequences: a feature that is 1 there drives the gates i to 0 and f to 1. That
/// gives the last cells with gradients; those of the single steps have none.
RecurrentOperands with_held_cells(Node& node, RecurrentOperands operands, const Sizes& s, const Lengths& lengths) {
  constexpr double driven = 1e4;  // the sigmoid of -1e4 is 0 and of 1e4 is 1 in every dtype
  const DType dtype = operands.x.dtype();
  const auto of_gate = [&](double weight) { return ops::expand(node.scalar(dtype, weight), {1, s.units, 1}); };
  const Value column = ops::concat({of_gate(-driven), of_gate(0), of_gate(driven), of_gate(0)}, 1);
  operands.x = ops::concat({operands.x, ops::cast(ops::logical_not(lengths.inside), dtype)}, 2);
  operands.w = ops::concat({operands.w, column}, 2);
  return operands;
}

/// y (T, 1, B, H), h and c (1, B, H).
ops::RecurrentResult run_direction(Node& node, const CellOptions& options, RecurrentOperands operands, const Sizes& s, bool reverse,
                                   const std::optional<Lengths>& lengths) {
  const DType dtype = operands.x.dtype();
  const auto turned = [&](Value x) { return !reverse ? x : lengths ? lengths->reversed(x) : ops::flip(x, {0}); };
  const auto step_shape = Shape{s.batch, s.units};
  operands.x = turned(operands.x);
  UnrolledCell result;
  const bool is_lstm = options.cell == RecurrentCell::lstm, kernel = has_kernel(options, operands);
  if (kernel) {
    const bool holds = is_lstm && lengths && node.needs_output(2);
    const ops::RecurrentResult of_kernel =
        run_kernel(options, holds ? with_held_cells(node, operands, s, *lengths) : operands, ops::Direction::forward);
    result.y = ops::squeeze(of_kernel.y, {1});
    result.h = ops::squeeze(of_kernel.h, {0});
    if (is_lstm) result.c = ops::squeeze(of_kernel.c, {0});
  } else {
    result = unroll_cell(node, options, operands);
  }
  if (lengths) {
    const Value zero = node.scalar(dtype, 0);
    const auto initial = [&](Value given) { return given.present() ? ops::reshape(given, step_shape) : zero; };
    result.h = lengths->at_end(result.y, initial(operands.h0));
    if (result.cells.present()) result.c = lengths->at_end(result.cells, initial(operands.c0));
    result.y = ops::where(lengths->inside, result.y, zero);
  }
  return {ops::unsqueeze(turned(result.y), {1}), ops::unsqueeze(result.h, {0}),
          result.c.present() ? ops::unsqueeze(result.c, {0}) : Value()};
}

ops::RecurrentResult run(Node& node, const std::vector<CellOptions>& options, const RecurrentOperands& operands, const Sizes& s,
                         ops::Direction direction) {
  const std::optional<Lengths> lengths = lengths_of(node, s);
  const bool kernel = std::ranges::all_of(options, [&](const CellOptions& of) { return has_kernel(of, operands); });
  const bool alike = options[0].cell != RecurrentCell::rnn || options[0].activations[0].kind == options.back().activations[0].kind;
  if (kernel && alike && !lengths) return run_kernel(options[0], operands, direction);
  if (!kernel && s.steps > max_unrolled_steps / s.directions) {
    node.unsupported(fmt::format(
        "activations other than the default ones, clip, input_forget and P are unrolled: expected at most {} steps, got {} in {} "
        "directions; use the default activations or shorter sequences",
        max_unrolled_steps, s.steps, s.directions));
  }
  std::vector<Value> y, h, c;
  for (std::int64_t d = 0; d < s.directions; ++d) {
    const bool reverse = direction == ops::Direction::reverse || d == 1;
    const ops::RecurrentResult one =
        run_direction(node, options[static_cast<std::size_t>(d)], of_direction(operands, d), s, reverse, lengths);
    y.push_back(one.y);
    h.push_back(one.h);
    if (one.c.present()) c.push_back(one.c);
  }
  return {ops::concat(y, 1), ops::concat(h, 0), c.empty() ? Value() : ops::concat(c, 0)};
}

ops::Direction direction_of(Node& node) {
  const std::string_view text = node.text("direction", "forward");
  if (text == "forward") return ops::Direction::forward;
  if (text == "reverse") return ops::Direction::reverse;
  if (text == "bidirectional") return ops::Direction::both;
  node.fail(fmt::format("expected direction forward, reverse or bidirectional, got '{}'", text));
}

template <RecurrentCell cell>
void recurrent(Node& node) {
  constexpr bool lstm = cell == RecurrentCell::lstm;
  apply_recurrent(node, cell,
                  {node.input(0), node.input(1), node.input(2), node.optional_input(3), node.optional_input(5),
                   lstm ? node.optional_input(6) : Value(), lstm ? node.optional_input(7) : Value()});
}

}  // namespace

void apply_recurrent(Node& node, RecurrentCell cell, const RecurrentOperands& given) {
  const ops::Direction direction = direction_of(node);
  const std::int64_t directions = direction == ops::Direction::both ? 2 : 1;
  const bool batch_first = node.flag("layout");
  RecurrentOperands operands = given;
  for (Value* value : {&operands.x, &operands.h0, &operands.c0}) {
    if (!batch_first || !value->present()) continue;
    if (value->shape().rank() != 3) node.fail(fmt::format("expected X and states of rank 3, got {}", value->shape().str()));
    *value = ops::transpose(*value, {1, 0, 2});
  }
  const Sizes s = sizes_of(node, cell, directions, operands);
  const std::vector<CellOptions> options = cell_options(node, cell, static_cast<std::size_t>(directions));

  ops::RecurrentResult result;
  if (s.steps == 0 || s.batch == 0) {
    const Shape shape{directions, s.batch, s.units};
    const auto state = [&](Value initial) { return initial.present() ? initial : ops::expand(node.scalar(operands.x.dtype(), 0), shape); };
    result.y = node.constant(Tensor::zeros(operands.x.dtype(), {s.steps, directions, s.batch, s.units}));
    result.h = state(operands.h0);
    result.c = state(operands.c0);
  } else {
    result = run(node, options, operands, s, direction);
  }
  const auto laid_out = [&](Value value, const std::vector<std::int64_t>& axes) {
    return batch_first ? ops::transpose(value, axes) : value;
  };
  if (node.needs_output(0)) node.output(0, laid_out(result.y, {2, 0, 1, 3}));
  if (node.needs_output(1)) node.output(1, laid_out(result.h, {1, 0, 2}));
  if (cell == RecurrentCell::lstm && node.needs_output(2)) node.output(2, laid_out(result.c, {1, 0, 2}));
}

const std::vector<Rule>& recurrent_rules() {
  // output_sequence of opset 1 says whether Y is asked for, which its name does as well; layout came with opset 14
  static const std::vector<Rule> rules = {
      {"RNN", 1, recurrent<RecurrentCell::rnn>},
      {"GRU", 1, recurrent<RecurrentCell::gru>},
      {"LSTM", 1, recurrent<RecurrentCell::lstm>},
  };
  return rules;
}

}  // namespace tenon::onnx
