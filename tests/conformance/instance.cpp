// SPDX-License-Identifier: Apache-2.0
#include "instance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace tenon::conformance {

bool any_empty(const Variant& variant) {
  return std::any_of(variant.inputs.begin(), variant.inputs.end(),
                     [](const OperandSpec& i) { return i.present && count_of(i.shape) == 0; }) ||
         std::any_of(variant.outputs.begin(), variant.outputs.end(),
                     [](const ResultSpec& o) { return o.present && count_of(o.shape) == 0; });
}

bool Instance::any_empty() const {
  return conformance::any_empty(*variant);
}
bool Instance::all_results_empty() const {
  return std::all_of(variant->outputs.begin(), variant->outputs.end(),
                     [](const ResultSpec& o) { return !o.present || count_of(o.shape) == 0; });
}

Shared& Instance::shared_by(const CaseContext& context) const {
  Shared& shared = *context.shared;
  if (shared.name != name || shared.seed != context.seed)
    shared = {name, context.seed, fill(*variant, dtype, seed_for(context.seed, name)), {}};
  return shared;
}

const std::vector<Array>& Instance::dense_answer(const CaseContext& context) const {
  Shared& shared = shared_by(context);
  if (!shared.dense) shared.dense = context.run(net(shared.inputs));
  return *shared.dense;
}

Array seen_through(const Array& array, const Dims& strides) {
  Array result = array;
  const Dims dense = dense_strides(array.shape());
  for (std::int64_t i = 0; i < array.count(); ++i) {
    std::int64_t source = 0, rest = i;
    for (std::size_t d = 0; d < dense.size(); ++d) {
      source += strides[d] == 0 ? 0 : rest / dense[d] * dense[d];
      rest %= dense[d];
    }
    std::memcpy(result.bytes() + i * array.element_size(), array.bytes() + source * array.element_size(),
                static_cast<std::size_t>(array.element_size()));
  }
  return result;
}

std::string describe(const std::vector<Array>& inputs, const std::vector<Layout>& layouts) {
  std::string text;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!text.empty()) text += "; ";
    text += inputs[i].dtype() == TENON_DTYPE_NONE ? "absent" : inputs[i].str();
    if (i < layouts.size() && !layouts[i].strides.empty()) text += " strides " + str(layouts[i].strides);
    if (i < layouts.size() && layouts[i].offset != 0) text += fmt::format(" {} alignments behind a larger one", layouts[i].offset);
  }
  return "inputs " + text;
}

void expect_close(const std::vector<Array>& expected, const std::vector<Array>& got, const Bound& bound, const std::string& where) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    const Wrong wrong = difference(expected[i], got[i], bound);
    if (!wrong.empty()) throw Failure(fmt::format("output {}: {} ({})", i, wrong.text, where), wrong.facts);
  }
}

void expect_same_bits(const std::vector<Array>& expected, const std::vector<Array>& got, const std::string& what,
                      const std::string& where) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (expected[i].same_bits(got[i])) continue;
    std::string first = "NaN patterns differ";
    Facts facts;
    for (std::int64_t e = 0; e < got[i].count(); ++e) {
      const auto size = static_cast<std::size_t>(got[i].element_size());
      if (std::memcmp(expected[i].bytes() + e * got[i].element_size(), got[i].bytes() + e * got[i].element_size(), size) == 0) continue;
      facts.element = index_of(e, got[i].shape());
      facts.expected = expected[i].str(e);
      facts.got = got[i].str(e);
      first = fmt::format("element {} was {}, then {}", facts.element, facts.expected, facts.got);
      break;
    }
    throw Failure(fmt::format("output {}: {}: {} ({})", i, what, first, where), facts);
  }
}
void expect_made(const Plan& plan) {
  if (!plan.failure().empty()) throw Failure(plan.failure());
  if (plan.refused()) throw Unsupported(plan.why());
}

void expect_clean(const Outcome& outcome) {
  if (!outcome.ok()) throw Failure(fmt::format("execution failed with {}: {}", status_name(outcome.status), outcome.text));
  if (!outcome.damage.empty()) throw Failure("the execution " + outcome.damage);
}

std::vector<Array> oracle_answer(const CaseContext& context, const Instance& at, const std::vector<Array>& inputs) {
  const bool widen = at.op_case->oracle == Oracle::widened && is_float(at.dtype);
  if (!widen) return context.judge(at.net(inputs));
  std::vector<Array> wide;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const OperandSpec& spec = at.variant->inputs[i];
    const bool selected = spec.present && (spec.dtype == TENON_DTYPE_NONE || spec.dtype == dtype_of_sums);
    wide.push_back(selected ? inputs[i].as(TENON_DTYPE_F64) : inputs[i]);
  }
  return context.judge(net_of(*at.line, *at.variant, TENON_DTYPE_F64, wide));
}

}  // namespace tenon::conformance
