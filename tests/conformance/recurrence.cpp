// SPDX-License-Identifier: Apache-2.0
#include "recurrence.h"

#include <cmath>

namespace tenon::conformance {
namespace {

/// Sums of such weights times numbers of about 1 stay near 1, whatever the size.
Values weight(const RecurrentForm& form) {
  const double limit = 1 / std::sqrt(static_cast<double>(std::max({form.features, form.units, std::int64_t{1}})));
  return {.low = -limit, .high = limit};
}

/// Lengths, batches and units around vector and tile sizes; both ways of splitting the work among threads.
std::vector<RecurrentForm> sizes(unsigned results, std::int64_t gates) {
  std::vector<RecurrentForm> forms;
  const auto add = [&](RecurrentForm form) {
    form.results = results;
    forms.push_back(form);
  };
  add({.steps = 1, .batch = 1, .features = 1, .units = 1});
  add({.steps = 33, .batch = 1, .features = 2, .units = 3});
  add({.steps = 2, .batch = 15, .features = 5, .units = 16});
  add({.steps = 2, .batch = 7, .features = 9, .units = 33, .direction = TENON_DIRECTION_BOTH});
  add({.steps = 3, .batch = 29, .features = 4, .units = 9, .direction = TENON_DIRECTION_REVERSE});
  add({.steps = 2, .batch = 29, .features = 4, .units = 5, .variant = 1});
  // A million products a step with the weights of the state: enough for a step to be split among threads by its units.
  const std::int64_t units = sized(gates == 1 ? 600 : gates == 3 ? 350 : 300, 18);
  add({.steps = 2, .batch = 3, .features = 5, .units = units});
  add({.steps = 2, .batch = 3, .features = 5, .units = units, .variant = 1});
  // Weights that some kernels keep, and batches of which they give more rows to each block.
  for (const std::int64_t kept : {sized(128, 16), sized(140, 17)}) {
    add({.steps = 3, .batch = 5, .features = 3, .units = kept, .direction = TENON_DIRECTION_REVERSE});
    if (gates == 3) add({.steps = 3, .batch = 5, .features = 3, .units = kept, .variant = 1});
  }
  // Weights that blocks of a GPU share, which exchange the states of several steps: more rows than a block has, in both directions.
  add({.steps = 4, .batch = 9, .features = 3, .units = sized(256, 18), .direction = TENON_DIRECTION_BOTH});
  // Weights of f64 that some kernels keep in registers, in part.
  if (gates == 4) add({.steps = 3, .batch = 5, .features = 3, .units = 88});
  add({.steps = 2, .batch = sized(1061, 29), .features = 2, .units = 11});
  if (gates == 3) add({.steps = 2, .batch = sized(1061, 29), .features = 2, .units = 11, .variant = 1});
  // Products of more than 64^3 multiplications, which some libraries treat differently, also with reduced sizes.
  add({.steps = 2, .batch = 64, .features = 8, .units = 64, .direction = TENON_DIRECTION_BOTH});
  if (gates == 3) add({.steps = 2, .batch = 64, .features = 8, .units = 64, .direction = TENON_DIRECTION_BOTH, .variant = 1});
  add({.batch = 0});
  forms.push_back({.batch = 0, .results = 0b10});  // the last state alone: the sequence has no memory either
  add({.features = 0});
  return forms;
}

}  // namespace

/// An absent operand stands for zeros: whether infinities and NaN meet them is up to the backend.
Values recurrent_number(const RecurrentForm& form) {
  return {.low = -1, .high = 1, .special = form.states ? Special::not_small : Special::none};
}

std::vector<OperandSpec> recurrent_operands(const RecurrentForm& form, std::int64_t gates, std::int64_t states) {
  const std::int64_t d = form.directions(), rows = gates * form.units;
  const Values small = weight(form);
  std::vector<OperandSpec> operands{operand({form.steps, form.batch, form.features}, recurrent_number(form)),
                                    operand({d, rows, form.features}, small), operand({d, rows, form.units}, small),
                                    form.bias ? operand({d, 2 * rows}, {.low = -0.5, .high = 0.5}) : absent};
  for (std::int64_t s = 0; s < states; ++s) operands.push_back(form.states ? operand(form.state(), recurrent_number(form)) : absent);
  return operands;
}

std::vector<ResultSpec> recurrent_gradients(const RecurrentForm& form, std::int64_t gates, std::int64_t states) {
  const std::int64_t d = form.directions(), rows = gates * form.units;
  std::vector<ResultSpec> results{result({form.steps, form.batch, form.features}), result({d, rows, form.features}),
                                  result({d, rows, form.units}), form.bias ? result({d, 2 * rows}) : omitted};
  for (std::int64_t s = 0; s < states; ++s) results.push_back(form.states ? result(form.state()) : omitted);
  return results;
}

std::string recurrent_label(const RecurrentForm& form, const std::string& variant) {
  const char* directions[] = {"forward", "reverse", "both"};
  std::string text = directions[form.direction];
  if (!variant.empty()) text += "," + variant;
  if (!form.bias) text += ",no_bias";
  if (!form.states) text += ",no_states";
  for (unsigned i = 0; i < 5; ++i) {
    if ((form.results >> i & 1u) != 0) text += fmt::format(",{}", i);
  }
  return text;
}

std::vector<RecurrentForm> recurrent_forms(unsigned all_results, std::int64_t gates) {
  std::vector<RecurrentForm> forms = sizes(all_results, gates);
  forms.insert(forms.begin(), RecurrentForm{.results = all_results});
  for (const unsigned variant : {0u, 1u}) {
    for (const std::uint32_t direction : {TENON_DIRECTION_REVERSE, TENON_DIRECTION_BOTH}) {
      forms.push_back({.direction = direction, .results = all_results, .variant = variant});
    }
    forms.push_back({.bias = false, .results = all_results, .variant = variant});
    forms.push_back({.states = false, .results = all_results, .variant = variant});
    forms.push_back({.bias = false, .states = false, .results = all_results, .variant = variant});
    for (unsigned result = 0; all_results >> result != 0; ++result) {
      forms.push_back({.steps = 4, .results = 1u << result, .variant = variant});
      forms.push_back({.steps = 4, .direction = TENON_DIRECTION_BOTH, .results = 1u << result, .variant = variant});
    }
  }
  return forms;
}

Bound recurrent_error(const Variant& variant, tenon_dtype t) {
  const Dims& x = variant.inputs[0].shape;
  const auto steps = static_cast<double>(x[0]), terms = static_cast<double>(x[2] + variant.inputs[2].shape[2]);
  const double error = 2 * steps * (4 + std::sqrt(terms));  // also of 16-bit states, which are rounded at each step
  return {4 * epsilon(t), error * epsilon(t), error};
}

Bound recurrent_gradient_bound(const Variant& variant, std::size_t x, tenon_dtype t) {
  const Dims& sequence = variant.inputs[x].shape;
  const auto rows = static_cast<double>(sequence[0] * sequence[1]), columns = static_cast<double>(variant.inputs[x + 2].shape[1]);
  return {4 * epsilon(t), 4 * (8 + std::sqrt(columns) + rows) * epsilon(t)};
}

}  // namespace tenon::conformance
