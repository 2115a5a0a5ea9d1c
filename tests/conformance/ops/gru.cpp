// SPDX-License-Identifier: Apache-2.0
// GRU and its gradient through all steps.
#include "recurrence.h"

namespace tenon::conformance {
namespace {

constexpr std::int64_t gates = 3, states = 1;

AttributeBytes attributes_of(const RecurrentForm& form) {
  return tenon_attributes_recurrent{.direction = form.direction, .linear_before_reset = form.variant};
}

std::string label_of(const RecurrentForm& form) {
  return recurrent_label(form, form.variant == 1 ? "linear_before_reset" : "");
}

Variant layer(const RecurrentForm& form) {
  const auto optional_result = [&](unsigned i, const Dims& shape) { return (form.results >> i & 1u) != 0 ? result(shape) : omitted; };
  return {label_of(form),
          recurrent_operands(form, gates, states),
          {optional_result(0, form.sequence()), optional_result(1, form.state()), optional_result(2, form.kept_gates())},
          attributes_of(form)};
}

Variant layer_gradient(const RecurrentForm& form) {
  Variant variant{label_of(form), {}, recurrent_gradients(form, gates, states), attributes_of(form)};
  const auto given = [&](unsigned i, const Dims& shape) {
    return (form.results >> i & 1u) != 0 ? operand(shape, recurrent_number(form)) : absent;
  };
  variant.inputs = {given(0, form.sequence()), given(1, form.state())};
  for (const OperandSpec& spec : recurrent_operands(form, gates, states)) variant.inputs.push_back(spec);
  variant.inputs.push_back(operand(form.sequence(), {.low = -0.9, .high = 0.9}));
  variant.inputs.push_back(operand(form.kept_gates(), {.low = 0.1, .high = 0.9}));
  return variant;
}

constexpr Tolerance gradient_bound{recurrent_gradient_reason,
                                   [](const Variant& variant, tenon_dtype t) -> Bound { return recurrent_gradient_bound(variant, 2, t); }};

}  // namespace

std::vector<OpCase> cases_gru() {
  constexpr unsigned all = 0b11, kept = 0b100;
  std::vector<Variant> layers, gradients;
  for (RecurrentForm form : recurrent_forms(all, gates)) {
    layers.push_back(layer(form));
    gradients.push_back(layer_gradient(form));
    if (form.results != all) continue;
    form.results |= kept;
    layers.push_back(layer(form));
  }
  const RecurrentForm small{.steps = 2, .batch = 1, .features = 2, .units = 2, .results = 0b11, .variant = 1};
  return {
      {.op = TENON_OP_GRU,
       .variants = layers,
       .bound = recurrent_bound,
       .gradient = {0, 1, 2, 3, 4},
       .gradient_ops = {TENON_OP_GRUGrad},
       .kept = {2},
       .golden = {{"pytorch",  // torch.nn.GRU in f64
                   layer(small),
                   {{0.125, 0.125, 0.125, 0.0},
                    {0.125, -1.0, -0.625, -0.75, -0.875, -0.25, 0.25, 0.375, 0.625, -0.75, 0.125, 0.0},
                    {-0.875, -1.0, 0.75, 1.0, 0.375, 0.5, 0.0, -0.375, 0.25, 0.375, 1.0, -0.75},
                    {0.375, -0.375, -0.625, -1.0, 0.75, -0.25, 0.625, 0.875, -1.0, -0.625, -1.0, 0.125},
                    {-0.625, -0.625}},
                   {{-0.49320016856669846, -0.3597805821559322, -0.3392674929036602, -0.2951668300714836},
                    {-0.3392674929036602, -0.2951668300714836},
                    {}}}}},
      {.op = TENON_OP_GRUGrad, .variants = gradients, .bound = gradient_bound},
  };
}

}  // namespace tenon::conformance
