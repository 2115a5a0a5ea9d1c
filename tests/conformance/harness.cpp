// SPDX-License-Identifier: Apache-2.0
// Makes named cases from the description of an op.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include <tenon/sdk/kernel.h>

#include "op_checks.h"

namespace tenon::conformance {
namespace {

/// "f32(8,10); f32(10); axis=1".
std::string operands_of(const Variant& variant, tenon_dtype dtype) {
  std::string text;
  for (const OperandSpec& spec : variant.inputs) {
    text += (text.empty() ? "" : "; ") + (spec.present ? sdk::name_of(resolved(spec.dtype, dtype)) + str(spec.shape) : "absent");
  }
  return variant.label.empty() ? text : text + "; " + variant.label;
}
/// A check whose failures name its operands.
std::function<void(CaseContext&)> about(const Variant& variant, tenon_dtype dtype, std::function<void(CaseContext&)> run) {
  return [&variant, dtype, run = std::move(run)](CaseContext& context) {
    try {
      run(context);
    } catch (Failure& failure) {
      if (failure.facts.shapes.empty()) failure.facts.shapes = operands_of(variant, dtype);
      throw;
    }
  };
}
/// An empty list means all dtypes.
bool listed(const std::vector<tenon_dtype>& dtypes, tenon_dtype dtype) {
  return dtypes.empty() || std::find(dtypes.begin(), dtypes.end(), dtype) != dtypes.end();
}

std::string shapes_of(const Variant& variant) {
  std::string text;
  for (const OperandSpec& spec : variant.inputs) {
    if (!text.empty()) text += ",";
    text += spec.present ? str(spec.shape) : "-";
  }
  // The operands of random ops do not imply the result's shape.
  if (variant.inputs.size() == 1 && variant.outputs.size() == 1 && variant.inputs[0].dtype == TENON_DTYPE_U64)
    text = str(variant.outputs[0].shape);
  return text;
}

std::vector<tenon_donation> donations_of(const Instance& at, std::uint32_t input) {
  const OperandSpec& in = at.variant->inputs[input];
  const ResultSpec& out = at.variant->outputs[0];
  if (!in.present || !out.present || in.shape != out.shape) return {};
  if (resolved(in.dtype, at.dtype) != resolved(out.dtype, at.dtype)) return {};
  return {{input, 0}};
}

/// Finite differences execute the op some hundred times, and large variants prove no more than small ones. The same holds for races.
constexpr std::int64_t max_for_many_runs = 5000;
std::int64_t elements(const Variant& variant) {
  std::int64_t total = 0;
  for (const OperandSpec& spec : variant.inputs) total += count_of(spec.shape);
  for (const ResultSpec& spec : variant.outputs) total += count_of(spec.shape);
  return total;
}

/// The variant that runs on two threads at once: the largest within the limit, since a race needs time.
const Variant* for_concurrency(const OpCase& op_case) {
  const Variant* best = nullptr;
  for (const Variant& variant : op_case.variants) {
    if (any_empty(variant)) continue;
    const std::int64_t size = elements(variant), best_size = best != nullptr ? elements(*best) : 0;
    const bool better = best_size > max_for_many_runs ? size < best_size : size > best_size && size <= max_for_many_runs;
    if (best == nullptr || better) best = &variant;
  }
  return best;
}

/// The variant whose work is divided among threads: the largest.
const Variant* largest(const OpCase& op_case) {
  return &*std::max_element(op_case.variants.begin(), op_case.variants.end(),
                            [](const Variant& a, const Variant& b) { return elements(a) < elements(b); });
}

/// The variants of an op with which some checks run, since one is enough.
struct Chosen {
  explicit Chosen(const OpCase& op_case) : concurrent(for_concurrency(op_case)), threads(largest(op_case)) {}
  const Variant* concurrent;
  const Variant* threads;
};

void add_instance(const Instance& at, const Chosen& chosen, std::vector<Case>& out) {
  const auto add = [&](const std::string& check, std::function<void(CaseContext&)> run) {
    out.push_back({at.name + "/" + check, at.line->stem, at.line->family, at.dtype, (at.line->dtypes & TENON_DTYPE_BIT(at.dtype)) != 0,
                   about(*at.variant, at.dtype, std::move(run))});
  };
  const bool empty = at.any_empty();
  add(empty ? "empty" : "forward", [at](CaseContext& context) { check_forward(context, at); });
  add("guards", [at](CaseContext& context) { check_guards(context, at); });
  add("pages", [at](CaseContext& context) { check_pages(context, at); });
  if (empty) return;
  add("deterministic", [at](CaseContext& context) { check_deterministic(context, at); });
  const bool arrangeable = std::any_of(at.variant->inputs.begin(), at.variant->inputs.end(), may_be_arranged);
  for (const auto& entry : arrangements) {
    if (!arrangeable && entry.arrangement != Arrangement::misaligned) continue;
    add(entry.name, [at, arrangement = entry.arrangement](CaseContext& context) { check_arrangement(context, at, arrangement); });
  }
  if (std::any_of(at.variant->inputs.begin(), at.variant->inputs.end(), [&](const OperandSpec& spec) {
        return spec.present && spec.values.special != Special::none && is_float(resolved(spec.dtype, at.dtype));
      })) {
    add("special", [at](CaseContext& context) { check_special(context, at); });
  }
  if (!at.variant->donations.empty()) {
    add("in_place", [at](CaseContext& context) { check_in_place(context, at, at.variant->donations); });
  } else {
    for (std::uint32_t i = 0; i < at.variant->inputs.size(); ++i) {
      const auto donations = donations_of(at, i);
      if (!donations.empty())
        add(fmt::format("in_place_{}", i), [at, donations](CaseContext& context) { check_in_place(context, at, donations); });
    }
  }
  for (const Property& property : at.op_case->also) {
    add(property.name, [at, &property](CaseContext& context) { check_property(context, at, property); });
  }
  add("constants", [at](CaseContext& context) { check_constants(context, at); });
  add("parameters", [at](CaseContext& context) { check_parameters(context, at); });
  if (operands_alike(*at.variant)) add("one_value", [at](CaseContext& context) { check_one_value(context, at); });
  if (chosen.concurrent == at.variant) add("concurrent", [at](CaseContext& context) { check_concurrent(context, at); });
  if (chosen.threads == at.variant) add("threads", [at](CaseContext& context) { check_threads(context, at); });
  if (at.dtype == TENON_DTYPE_F64 && !at.op_case->gradient.empty() && elements(*at.variant) <= max_for_many_runs) {
    add("gradient", [at](CaseContext& context) { check_gradient(context, *at.op_case, *at.variant, seed_for(context.seed, at.name)); });
  }
}

}  // namespace

std::vector<Case> op_case_list(const std::vector<OpCase>& op_cases, const std::function<bool(const OpLine&)>& wanted) {
  std::vector<Case> cases;
  std::set<tenon_op> refused;
  for (const OpCase& op_case : op_cases) {
    const OpLine& line = line_of(op_case.op);
    if (!wanted(line)) continue;
    const auto mandatory = [&](tenon_dtype dtype) { return (line.dtypes & TENON_DTYPE_BIT(dtype)) != 0; };
    const std::vector<tenon_dtype> dtypes = dtypes_of(op_case);
    const Chosen chosen(op_case);
    for (const tenon_dtype dtype : dtypes) {
      const std::string type = sdk::name_of(dtype);
      for (const Variant& variant : op_case.variants) {
        std::string name = fmt::format("{}/{}{}", line.stem, type, shapes_of(variant));
        if (!variant.label.empty()) name += "/" + variant.label;
        const Instance instance{&op_case, &line, &variant, dtype, name};
        add_instance(instance, chosen, cases);
      }
      cases.push_back({fmt::format("{}/{}/sizes", line.stem, type), line.stem, line.family, dtype, mandatory(dtype),
                       [&op_case, dtype](CaseContext& context) { check_sizes(context, op_case, dtype); }});
      for (const Golden& golden : op_case.golden) {
        if (!listed(golden.dtypes, dtype)) continue;
        cases.push_back({fmt::format("{}/{}/golden/{}", line.stem, type, golden.name), line.stem, line.family, dtype, mandatory(dtype),
                         about(golden.variant, dtype,
                               [&op_case, &golden, dtype](CaseContext& context) { check_golden(context, op_case, golden, dtype); })});
      }
      for (const BadArgument& bad : op_case.bad) {
        if (!listed(bad.dtypes, dtype)) continue;
        cases.push_back({fmt::format("{}/{}/bad_argument/{}", line.stem, type, bad.name), line.stem, line.family, dtype, mandatory(dtype),
                         about(bad.variant, dtype,
                               [&op_case, &bad, dtype](CaseContext& context) { check_bad_argument(context, op_case, bad, dtype); })});
      }
      for (const Extra& extra : op_case.extras) {
        cases.push_back({fmt::format("{}/{}/{}", line.stem, type, extra.name), line.stem, line.family, dtype, mandatory(dtype),
                         [&extra, dtype](CaseContext& context) { extra.check(context, dtype); }});
      }
    }
    // An op may have several cases, for different dtypes.
    if (!refused.insert(op_case.op).second) continue;
    cases.push_back({fmt::format("{}/refusals", line.stem), line.stem, line.family, TENON_DTYPE_NONE, true,
                     [&op_case](CaseContext& context) { check_refusals(context, op_case); }});
  }
  return cases;
}

}  // namespace tenon::conformance
