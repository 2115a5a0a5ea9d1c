// SPDX-License-Identifier: Apache-2.0
// ops/lstm.cpp - the long short-term memory.
#include <fmt/format.h>

#include <tenon/error.h>
#include <tenon/functions.h>

#include "graph/recurrent.h"

namespace tenon {
namespace graph {
namespace {

constexpr RecurrentForm form{.gates = 4, .states = 2, .activation = false, .reset_placement = false};
constexpr std::size_t gates_output = 3, cells_output = 4;

/// x w r b h0 c0 -> y y_h y_c gates cells
void infer(Inference& at) {
  at.expect_inputs(3, 6);
  const RecurrentSizes sizes = check_recurrent(at, form, 0);
  at.output(at.dtype(0), sizes.sequence());
  at.output(at.dtype(0), sizes.state());
  at.output(at.dtype(0), sizes.state());
  at.output(at.dtype(0), sizes.gates());
  at.output(at.dtype(0), sizes.sequence());
}

/// dy dy_h dy_c x w r b h0 c0 y gates cells -> dx dw dr db dh0 dc0
void infer_gradient(Inference& at) {
  if (at.input_count() != 12 || !at.has(9) || !at.has(10) || !at.has(11))
    at.fail("expected dy dy_h dy_c x w r b h0 c0 y gates cells, where y, gates and cells are present");
  const RecurrentSizes sizes = check_recurrent(at, form, 3);
  check_recurrent_gradients(at, sizes, 3);
  expect_recurrent(at, 9, 3, "y", sizes.sequence());
  expect_recurrent(at, 10, 3, "gates", sizes.gates());
  expect_recurrent(at, 11, 3, "cells", sizes.sequence());
  output_recurrent_gradients(at, sizes, form, 3);
}

void gradient(Gradient& at) {
  for (const std::size_t kept : {gates_output, cells_output}) {
    if (!at.dy(kept).present()) continue;
    throw Error(Status::unsupported, fmt::format("gradients: LSTM '{}' has none with respect to its result {}", at.output(0).name(),
                                                 kept == gates_output ? "gates" : "cells"));
  }
  at.set_needed(at.graph.apply(TENON_OP_LSTMGrad,
                               {at.dy(0), at.dy(1), at.dy(2), at.input(0), at.input(1), at.input(2), at.input(3), at.input(4), at.input(5),
                                at.output(0), at.output(gates_output), at.output(cells_output)},
                               at.attributes));
}

}  // namespace

extern const OpRules rules_lstm, rules_lstm_grad;
const OpRules rules_lstm{
    "i, o, f = s(x w' + h r' + b), g = tanh(x w' + h r' + b), each by its own H rows of w, r and b, s the sigmoid; c_t = f c_(t-1) + i g, "
    "h_t = o tanh(c_t): x (T, B, I), w (D, 4 H, I), r (D, 4 H, H), b (D, 8 H) = (bw, br), y (T, D, B, H) all h, y_h and y_c (D, B, H) the "
    "last states. gates (T, B, D, 4 H) = (i, o, f, g) and cells (T, D, B, H) hold all steps.",
    infer,
    PrecisionClass::low_precision,
    recurrent_flops<0, 1>,
    gradient,
    0b11111};
const OpRules rules_lstm_grad{
    "The gradients of lstm through all steps, from its results y, gates and cells. db holds the same values twice.",
    infer_gradient,
    PrecisionClass::low_precision,
    recurrent_flops<3, 2>,
    nullptr,
    0b111000};

}  // namespace graph

namespace ops {

RecurrentResult lstm(Value x, const RecurrentValues& values, Direction direction) {
  tenon_attributes_recurrent attributes{};
  attributes.direction = static_cast<std::uint32_t>(direction);
  const std::vector<Value> results =
      x.graph().apply(TENON_OP_LSTM, graph::trimmed({x, values.w, values.r, values.b, values.h0, values.c0}), Attributes::of(attributes));
  return {results[0], results[1], results[2]};
}

}  // namespace ops
}  // namespace tenon
