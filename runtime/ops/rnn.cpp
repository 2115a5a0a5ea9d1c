// SPDX-License-Identifier: Apache-2.0
// ops/rnn.cpp - the plain recurrent layer.
#include <tenon/functions.h>

#include "graph/recurrent.h"

namespace tenon {
namespace graph {
namespace {

constexpr RecurrentForm form{.gates = 1, .states = 1, .activation = true, .reset_placement = false};

/// x w r b h0 -> y y_h
void infer(Inference& at) {
  at.expect_inputs(3, 5);
  const RecurrentSizes sizes = check_recurrent(at, form, 0);
  at.output(at.dtype(0), sizes.sequence());
  at.output(at.dtype(0), sizes.state());
}

/// dy dy_h x w r b h0 y -> dx dw dr db dh0
void infer_gradient(Inference& at) {
  if (at.input_count() != 8 || !at.has(7)) at.fail("expected dy dy_h x w r b h0 y, where y is present");
  const RecurrentSizes sizes = check_recurrent(at, form, 2);
  check_recurrent_gradients(at, sizes, 2);
  expect_recurrent(at, 7, 2, "y", sizes.sequence());
  output_recurrent_gradients(at, sizes, form, 2);
}

void gradient(Gradient& at) {
  at.set_needed(at.graph.apply(TENON_OP_RNNGrad,
                               {at.dy(0), at.dy(1), at.input(0), at.input(1), at.input(2), at.input(3), at.input(4), at.output(0)},
                               at.attributes));
}

}  // namespace

extern const OpRules rules_rnn, rules_rnn_grad;
const OpRules rules_rnn{
    "h_t = f(x_t w' + h_(t-1) r' + bw + br), f tanh or relu, b = (bw, br): x (T, B, I), w (D, H, I), r (D, H, H), y (T, D, B, H) all h, "
    "y_h (D, B, H) the last. Direction `reverse` reads x from its end; of `both`, direction 1 does.",
    infer,
    PrecisionClass::low_precision,
    recurrent_flops<0, 1>,
    gradient,
    0b11};
const OpRules rules_rnn_grad{"The gradients of rnn through all steps, from its results y. db holds the same values twice.",
                             infer_gradient,
                             PrecisionClass::low_precision,
                             recurrent_flops<2, 2>,
                             nullptr,
                             0b11000};

}  // namespace graph

namespace ops {

RecurrentResult rnn(Value x, const RecurrentValues& values, Direction direction, RnnActivation activation) {
  tenon_attributes_recurrent attributes{};
  attributes.direction = static_cast<std::uint32_t>(direction);
  attributes.activation = static_cast<std::uint32_t>(activation);
  const std::vector<Value> results =
      x.graph().apply(TENON_OP_RNN, graph::trimmed({x, values.w, values.r, values.b, values.h0}), Attributes::of(attributes));
  return {results[0], results[1], {}};
}

}  // namespace ops
}  // namespace tenon
