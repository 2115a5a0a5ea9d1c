// From what a room says about an op to named cases.
#include <fmt/format.h>

#include <algorithm>

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
/// A check whose failures say what its operands are.
std::function<void(Kit&)> about(const Variant& variant, tenon_dtype dtype, std::function<void(Kit&)> run) {
  return [&variant, dtype, run = std::move(run)](Kit& kit) {
    try {
      run(kit);
    } catch (Failure& failure) {
      if (failure.facts.shapes.empty()) failure.facts.shapes = operands_of(variant, dtype);
      throw;
    }
  };
}
/// An empty list is all of them.
bool listed(const std::vector<tenon_dtype>& dtypes, tenon_dtype dtype) {
  return dtypes.empty() || std::find(dtypes.begin(), dtypes.end(), dtype) != dtypes.end();
}

std::string shapes_of(const Variant& variant) {
  std::string text;
  for (const OperandSpec& spec : variant.inputs) {
    if (!text.empty()) text += ",";
    text += spec.present ? str(spec.shape) : "-";
  }
  // Where operands do not tell the result's shape, results do.
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

/// Finite differences execute the op some hundred times: large variants prove nothing that small ones do not. Nor do they for races.
constexpr std::int64_t most_for_many_runs = 5000;
std::int64_t elements(const Variant& variant) {
  std::int64_t total = 0;
  for (const OperandSpec& spec : variant.inputs) total += count_of(spec.shape);
  for (const ResultSpec& spec : variant.outputs) total += count_of(spec.shape);
  return total;
}

/// The one that is run on two threads at once: the largest of those that are not large, since a race needs time.
const Variant* for_concurrency(const OpCase& op_case) {
  const Variant* best = nullptr;
  for (const Variant& variant : op_case.variants) {
    if (any_empty(variant)) continue;
    const std::int64_t size = elements(variant), most = best != nullptr ? elements(*best) : 0;
    const bool better = most > most_for_many_runs ? size < most : size > most && size <= most_for_many_runs;
    if (best == nullptr || better) best = &variant;
  }
  return best;
}

void add_instance(const Instance& at, bool concurrent, std::vector<Case>& out) {
  const auto add = [&](const std::string& check, std::function<void(Kit&)> run) {
    out.push_back({at.name + "/" + check, at.line->stem, at.line->room, at.dtype, (at.line->dtypes & TENON_DTYPE_BIT(at.dtype)) != 0,
                   about(*at.variant, at.dtype, std::move(run))});
  };
  const bool empty = at.any_empty();
  add(empty ? "empty" : "forward", [at](Kit& kit) { check_forward(kit, at); });
  add("guards", [at](Kit& kit) { check_guards(kit, at); });
  if (empty) return;
  add("deterministic", [at](Kit& kit) { check_deterministic(kit, at); });
  const bool arrangeable = std::any_of(at.variant->inputs.begin(), at.variant->inputs.end(), may_be_arranged);
  for (const auto& entry : arrangements) {
    if (!arrangeable && entry.arrangement != Arrangement::misaligned) continue;
    add(entry.name, [at, arrangement = entry.arrangement](Kit& kit) { check_arrangement(kit, at, arrangement); });
  }
  if (is_float(at.dtype) && std::any_of(at.variant->inputs.begin(), at.variant->inputs.end(),
                                        [](const OperandSpec& spec) { return spec.values.special != Special::none; })) {
    add("special", [at](Kit& kit) { check_special(kit, at); });
  }
  if (!at.variant->donations.empty()) {
    add("in_place", [at](Kit& kit) { check_in_place(kit, at, at.variant->donations); });
  } else {
    for (std::uint32_t i = 0; i < at.variant->inputs.size(); ++i) {
      const auto donations = donations_of(at, i);
      if (!donations.empty()) add(fmt::format("in_place_{}", i), [at, donations](Kit& kit) { check_in_place(kit, at, donations); });
    }
  }
  for (const Property& property : at.op_case->also) {
    add(property.name, [at, &property](Kit& kit) { check_property(kit, at, property); });
  }
  add("constants", [at](Kit& kit) { check_constants(kit, at); });
  add("parameters", [at](Kit& kit) { check_parameters(kit, at); });
  if (concurrent) add("concurrent", [at](Kit& kit) { check_concurrent(kit, at); });
  if (at.dtype == TENON_DTYPE_F64 && !at.op_case->gradient.empty() && elements(*at.variant) <= most_for_many_runs) {
    add("gradient", [at](Kit& kit) { check_gradient(kit, *at.op_case, *at.variant, seed_for(kit.seed, at.name)); });
  }
}

}  // namespace

std::vector<Case> op_case_list(const std::vector<OpCase>& op_cases) {
  std::vector<Case> cases;
  for (const OpCase& op_case : op_cases) {
    const OpLine& line = line_of(op_case.op);
    const auto mandatory = [&](tenon_dtype dtype) { return (line.dtypes & TENON_DTYPE_BIT(dtype)) != 0; };
    const std::vector<tenon_dtype> dtypes = dtypes_of(op_case);
    const Variant* concurrent = for_concurrency(op_case);
    for (const tenon_dtype dtype : dtypes) {
      const std::string type = sdk::name_of(dtype);
      for (const Variant& variant : op_case.variants) {
        std::string name = fmt::format("{}/{}{}", line.stem, type, shapes_of(variant));
        if (!variant.label.empty()) name += "/" + variant.label;
        const Instance instance{&op_case, &line, &variant, dtype, name};
        add_instance(instance, &variant == concurrent, cases);
      }
      for (const Golden& golden : op_case.golden) {
        if (!listed(golden.dtypes, dtype)) continue;
        cases.push_back(
            {fmt::format("{}/{}/golden/{}", line.stem, type, golden.name), line.stem, line.room, dtype, mandatory(dtype),
             about(golden.variant, dtype, [&op_case, &golden, dtype](Kit& kit) { check_golden(kit, op_case, golden, dtype); })});
      }
      for (const BadArgument& bad : op_case.bad) {
        if (!listed(bad.dtypes, dtype)) continue;
        cases.push_back({fmt::format("{}/{}/bad_argument/{}", line.stem, type, bad.name), line.stem, line.room, dtype, mandatory(dtype),
                         about(bad.variant, dtype, [&op_case, &bad, dtype](Kit& kit) { check_bad_argument(kit, op_case, bad, dtype); })});
      }
      for (const Extra& extra : op_case.extras) {
        cases.push_back({fmt::format("{}/{}/{}", line.stem, type, extra.name), line.stem, line.room, dtype, mandatory(dtype),
                         [&extra, dtype](Kit& kit) { extra.check(kit, dtype); }});
      }
    }
    cases.push_back({fmt::format("{}/refusals", line.stem), line.stem, line.room, TENON_DTYPE_NONE, true,
                     [&op_case](Kit& kit) { check_refusals(kit, op_case); }});
  }
  return cases;
}

}  // namespace tenon::conformance
