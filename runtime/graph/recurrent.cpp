// SPDX-License-Identifier: Apache-2.0
#include "graph/recurrent.h"

#include <fmt/format.h>

namespace tenon::graph {
namespace {

void normalise(Inference& at, const RecurrentForm& form) {
  auto attributes = at.attributes.as<tenon_attributes_recurrent>();
  if (attributes.direction > TENON_DIRECTION_BOTH)
    at.fail(fmt::format("direction is {}, expected forward (0), reverse (1) or both (2)", attributes.direction));
  if (!form.activation) attributes.activation = 0;
  if (attributes.activation > TENON_RNN_RELU)
    at.fail(fmt::format("activation is {}, expected tanh (0) or relu (1)", attributes.activation));
  if (!form.reset_placement) attributes.linear_before_reset = 0;
  at.expect_flag(attributes.linear_before_reset, "linear_before_reset");
  at.attributes = Attributes::of(attributes);
}

}  // namespace

void expect_recurrent(Inference& at, std::size_t i, std::size_t x, const char* name, const Shape& shape) {
  at.expect_same_dtype(x, i);
  if (at.shape(i) == shape) return;
  at.fail(fmt::format("expected {} of shape {} for {}, got {}", name, shape.str(), at.str(x), at.str(i)));
}

RecurrentSizes check_recurrent(Inference& at, const RecurrentForm& form, std::size_t first) {
  const std::size_t x = first, w = first + 1, r = first + 2, b = first + 3;
  const std::size_t highest = b + 1 + form.states;
  for (std::size_t i = x; i <= r; ++i) {
    if (!at.has(i)) at.fail(fmt::format("operand {} is absent", i == x ? "x" : i == w ? "w" : "r"));
  }
  normalise(at, form);
  at.expect_floating(x);
  at.expect_same_dtype(x, w);
  at.expect_same_dtype(x, r);
  if (at.shape(x).rank() != 3) at.fail(fmt::format("expected x of shape (steps, batch, features), got {}", at.str(x)));
  if (at.shape(x)[0] == 0) at.fail(fmt::format("expected a sequence length of 1 or more, got {}", at.str(x)));

  const std::uint32_t direction = at.attributes.as<tenon_attributes_recurrent>().direction;
  RecurrentSizes sizes{at.shape(x)[0], at.shape(x)[1], at.shape(x)[2], direction == TENON_DIRECTION_BOTH ? 2 : 1, 0};
  const char* const gates = form.gates == 1 ? "" : form.gates == 3 ? "3 " : "4 ";
  const Shape& recurrent = at.shape(r);
  if (recurrent.rank() != 3 || recurrent[1] != form.gates * recurrent[2])
    at.fail(fmt::format("expected r of shape (directions, {}units, units), got {}", gates, at.str(r)));
  if (recurrent[0] != sizes.directions) {
    const char* const names[] = {"forward expects 1 direction", "reverse expects 1 direction", "both expects 2 directions"};
    at.fail(fmt::format("direction {}, got {}", names[direction], at.str(r)));
  }
  sizes.units = recurrent[2];
  const Shape weights{sizes.directions, form.gates * sizes.units, sizes.features};
  if (at.shape(w) != weights)
    at.fail(fmt::format("expected w of shape {} for {} and {}, got {}", weights.str(), at.str(x), at.str(r), at.str(w)));
  if (at.has(b)) expect_recurrent(at, b, r, "b", {sizes.directions, 2 * form.gates * sizes.units});
  const char* const states[] = {"h0", "c0"};
  for (std::size_t s = b + 1; s < highest; ++s) {
    if (at.has(s)) expect_recurrent(at, s, x, states[s - b - 1], sizes.state());
  }
  return sizes;
}

void check_recurrent_gradients(Inference& at, const RecurrentSizes& sizes, std::size_t count) {
  const char* const names[] = {"dy", "dy_h", "dy_c"};
  bool any = false;
  for (std::size_t i = 0; i < count; ++i) {
    if (!at.has(i)) continue;
    any = true;
    expect_recurrent(at, i, count, names[i], i == 0 ? sizes.sequence() : sizes.state());
  }
  if (!any) at.fail("the gradients of all results are absent");
}

void output_recurrent_gradients(Inference& at, const RecurrentSizes& sizes, const RecurrentForm& form, std::size_t first) {
  const DType dtype = at.dtype(first);
  for (std::size_t i = first; i < first + 3; ++i) at.output(dtype, at.shape(i));
  at.output(dtype, {sizes.directions, 2 * form.gates * sizes.units});
  for (std::size_t s = 0; s < form.states; ++s) at.output(dtype, sizes.state());
}

std::vector<Value> trimmed(std::vector<Value> operands) {
  while (!operands.empty() && !operands.back().present()) operands.pop_back();
  return operands;
}

}  // namespace tenon::graph
