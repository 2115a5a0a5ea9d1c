// SPDX-License-Identifier: Apache-2.0
// LSTM and its gradient through all steps.
#include "recurrence.h"

namespace tenon::conformance {
namespace {

constexpr std::int64_t gates = 4, states = 2;

AttributeBytes attributes_of(const RecurrentForm& form) {
  return tenon_attributes_recurrent{.direction = form.direction};
}

Variant layer(const RecurrentForm& form) {
  const auto optional_result = [&](unsigned i, const Dims& shape) { return (form.results >> i & 1u) != 0 ? result(shape) : omitted; };
  return {recurrent_label(form),
          recurrent_operands(form, gates, states),
          {optional_result(0, form.sequence()), optional_result(1, form.state()), optional_result(2, form.state()),
           optional_result(3, form.kept_gates()), optional_result(4, form.sequence())},
          attributes_of(form)};
}

Variant layer_gradient(const RecurrentForm& form) {
  Variant variant{recurrent_label(form), {}, recurrent_gradients(form, gates, states), attributes_of(form)};
  const auto given = [&](unsigned i, const Dims& shape) {
    return (form.results >> i & 1u) != 0 ? operand(shape, recurrent_number(form)) : absent;
  };
  variant.inputs = {given(0, form.sequence()), given(1, form.state()), given(2, form.state())};
  for (const OperandSpec& spec : recurrent_operands(form, gates, states)) variant.inputs.push_back(spec);
  variant.inputs.push_back(operand(form.sequence(), {.low = -0.9, .high = 0.9}));
  variant.inputs.push_back(operand(form.kept_gates(), {.low = 0.1, .high = 0.9}));
  variant.inputs.push_back(operand(form.sequence(), {.low = -1, .high = 1}));
  return variant;
}

constexpr Tolerance gradient_bound{recurrent_gradient_reason,
                                   [](const Variant& variant, tenon_dtype t) -> Bound { return recurrent_gradient_bound(variant, 3, t); }};

/// LSTM has only one variant, so that no form occurs twice.
std::vector<RecurrentForm> forms(unsigned all_results) {
  std::vector<RecurrentForm> forms;
  for (const RecurrentForm& form : recurrent_forms(all_results, gates)) {
    if (form.variant == 0) forms.push_back(form);
  }
  return forms;
}

}  // namespace

std::vector<OpCase> cases_lstm() {
  constexpr unsigned all = 0b111, kept = 0b11000;
  std::vector<Variant> layers, gradients;
  for (RecurrentForm form : forms(all)) {
    layers.push_back(layer(form));
    gradients.push_back(layer_gradient(form));
    if (form.results != all) continue;
    form.results |= kept;
    layers.push_back(layer(form));
  }
  return {
      {.op = TENON_OP_LSTM,
       .variants = layers,
       .bound = recurrent_bound,
       .gradient = {0, 1, 2, 3, 4, 5},
       .gradient_ops = {TENON_OP_LSTMGrad},
       .kept = {3, 4},
       .golden = {{"pytorch",  // torch.nn.LSTM in f64
                   layer({.steps = 2, .batch = 1, .features = 2, .units = 2, .results = 0b111}),
                   {{0.5, 0.875, 0.375, -0.125},
                    {0.625, -0.375, -0.25, 0.375, 0.375, -0.125, -0.375, -0.75, -0.5, -0.125, 0.75, 0.125, -1.0, 0.875, 0.375, 0.625},
                    {-0.375, 0.25, 0.25, -0.875, -0.625, 0.375, -0.75, -0.75, 0.625, -0.875, -1.0, -0.5, 0.0, 1.0, -0.625, -0.125},
                    {1.0, 0.375, -0.5, 0.125, -0.125, -0.875, -0.75, -0.375, -0.625, 0.25, 0.625, 0.125, 0.0, 0.375, -0.375, -0.625},
                    {-1.0, 0.5},
                    {-1.0, 0.0}},
                   {{-0.28995481661698547, 0.06822621059671931, -0.40443194664191817, -0.17229195325953756},
                    {-0.40443194664191817, -0.17229195325953756},
                    {-0.7799527946132707, -0.30006139000680787},
                    {},
                    {}}}}},
      {.op = TENON_OP_LSTMGrad, .variants = gradients, .bound = gradient_bound},
  };
}

}  // namespace tenon::conformance
