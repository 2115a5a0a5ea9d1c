// SPDX-License-Identifier: Apache-2.0
// ops/gru.cpp - the gated recurrent unit.
#include <fmt/format.h>

#include <tenon/error.h>
#include <tenon/functions.h>

#include "graph/recurrent.h"

namespace tenon {
namespace graph {
namespace {

constexpr RecurrentForm form{.gates = 3, .states = 1, .activation = false, .reset_placement = true};
constexpr std::size_t gates_output = 2;

/// x w r b h0 -> y y_h gates
void infer(Inference& at) {
  at.expect_inputs(3, 5);
  const RecurrentSizes sizes = check_recurrent(at, form, 0);
  at.output(at.dtype(0), sizes.sequence());
  at.output(at.dtype(0), sizes.state());
  at.output(at.dtype(0), sizes.gates());
}

/// dy dy_h x w r b h0 y gates -> dx dw dr db dh0
void infer_gradient(Inference& at) {
  if (at.input_count() != 9 || !at.has(7) || !at.has(8)) at.fail("expected dy dy_h x w r b h0 y gates, where y and gates are present");
  const RecurrentSizes sizes = check_recurrent(at, form, 2);
  check_recurrent_gradients(at, sizes, 2);
  expect_recurrent(at, 7, 2, "y", sizes.sequence());
  expect_recurrent(at, 8, 2, "gates", sizes.gates());
  output_recurrent_gradients(at, sizes, form, 2);
}

void gradient(Gradient& at) {
  if (at.dy(gates_output).present()) {
    throw Error(Status::unsupported, fmt::format("gradients: GRU '{}' has none with respect to its result gates", at.output(0).name()));
  }
  at.set_needed(at.graph.apply(
      TENON_OP_GRUGrad,
      {at.dy(0), at.dy(1), at.input(0), at.input(1), at.input(2), at.input(3), at.input(4), at.output(0), at.output(gates_output)},
      at.attributes));
}

}  // namespace

extern const OpRules rules_gru, rules_gru_grad;
const OpRules rules_gru{
    "z = s(x wz' + h rz' + bz), r = s(x wr' + h rr' + br), h~ = tanh(x wh' + (r h) rh' + bh), or tanh(x wh' + bwh + r (h rh' + brh)) with "
    "linear_before_reset, h_t = (1 - z) h~ + z h_(t-1), s the sigmoid: x (T, B, I), w (D, 3 H, I), r (D, 3 H, H), b (D, 6 H) = (bw, br), y "
    "(T, D, B, H), y_h (D, B, H). gates (T, B, D, 4 H) = (z, r, h~, q), q = r h, or h rh' + brh with linear_before_reset.",
    infer,
    PrecisionClass::low_precision,
    recurrent_flops<0, 1>,
    gradient,
    0b111};
const OpRules rules_gru_grad{"The gradients of gru through all steps, from its results y and gates.",
                             infer_gradient,
                             PrecisionClass::low_precision,
                             recurrent_flops<2, 2>,
                             nullptr,
                             0b11000};

}  // namespace graph

namespace ops {

RecurrentResult gru(Value x, const RecurrentValues& values, Direction direction, bool linear_before_reset) {
  tenon_attributes_recurrent attributes{};
  attributes.direction = static_cast<std::uint32_t>(direction);
  attributes.linear_before_reset = linear_before_reset ? 1 : 0;
  const std::vector<Value> results =
      x.graph().apply(TENON_OP_GRU, graph::trimmed({x, values.w, values.r, values.b, values.h0}), Attributes::of(attributes));
  return {results[0], results[1], {}};
}

}  // namespace ops
}  // namespace tenon
