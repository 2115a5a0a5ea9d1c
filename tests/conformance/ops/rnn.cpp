// SPDX-License-Identifier: Apache-2.0
// RNN and its gradient through all steps.
#include "recurrence.h"

namespace tenon::conformance {
namespace {

constexpr std::int64_t gates = 1, states = 1;

AttributeBytes attributes_of(const RecurrentForm& form) {
  return tenon_attributes_recurrent{.direction = form.direction, .activation = form.variant == 1 ? TENON_RNN_RELU : TENON_RNN_TANH};
}

Variant layer(const RecurrentForm& form) {
  const auto optional_result = [&](unsigned i, const Dims& shape) { return (form.results >> i & 1u) != 0 ? result(shape) : omitted; };
  return {recurrent_label(form, form.variant == 1 ? "relu" : "tanh"),
          recurrent_operands(form, gates, states),
          {optional_result(0, form.sequence()), optional_result(1, form.state())},
          attributes_of(form)};
}

Variant layer_gradient(const RecurrentForm& form) {
  Variant variant{
      recurrent_label(form, form.variant == 1 ? "relu" : "tanh"), {}, recurrent_gradients(form, gates, states), attributes_of(form)};
  const auto given = [&](unsigned i, const Dims& shape) {
    return (form.results >> i & 1u) != 0 ? operand(shape, recurrent_number(form)) : absent;
  };
  variant.inputs = {given(0, form.sequence()), given(1, form.state())};
  for (const OperandSpec& spec : recurrent_operands(form, gates, states)) variant.inputs.push_back(spec);
  variant.inputs.push_back(operand(form.sequence(), {.low = -0.9, .high = 0.9, .gap = 0.05}));
  return variant;
}

constexpr Tolerance gradient_bound{recurrent_gradient_reason,
                                   [](const Variant& variant, tenon_dtype t) -> Bound { return recurrent_gradient_bound(variant, 2, t); }};

}  // namespace

std::vector<OpCase> cases_rnn() {
  std::vector<Variant> layers, gradients;
  for (const RecurrentForm& form : recurrent_forms(0b11, gates)) {
    layers.push_back(layer(form));
    gradients.push_back(layer_gradient(form));
  }
  return {
      {.op = TENON_OP_RNN,
       .variants = layers,
       .bound = recurrent_bound,
       .gradient = {0, 1, 2, 3, 4},
       .gradient_ops = {TENON_OP_RNNGrad},
       .golden = {{"pytorch",  // torch.nn.RNN in f64
                   layer({.steps = 2, .batch = 1, .features = 2, .units = 2, .results = 0b11}),
                   {{-1.0, 0.75, 0.625, 0.25}, {0.25, -0.125, 0.0, 1.0}, {-0.125, 0.75, 0.5, 0.875}, {-0.75, 0.75, 0.75, 1.0}, {0.5, -1.0}},
                   {{-0.8198140120760964, 0.9540452601799487, 0.7366024529009213, 0.9844612400038626},
                    {0.7366024529009213, 0.9844612400038626}}}}},
      {.op = TENON_OP_RNNGrad, .variants = gradients, .bound = gradient_bound},
  };
}

}  // namespace tenon::conformance
