// SPDX-License-Identifier: Apache-2.0
// Checks of an op's golden values, and of what it has to refuse.
#include <fmt/format.h>

#include <tenon/sdk/kernel.h>

#include "op_checks.h"

namespace tenon::conformance {

void check_golden(CaseContext& context, const OpCase& op_case, const Golden& golden, tenon_dtype dtype) {
  const OpLine& line = line_of(op_case.op);
  std::vector<Array> inputs;
  for (std::size_t i = 0; i < golden.variant.inputs.size(); ++i) {
    const OperandSpec& spec = golden.variant.inputs[i];
    if (!spec.present) {
      inputs.emplace_back();
    } else {
      inputs.emplace_back(resolved(spec.dtype, dtype), spec.shape, golden.inputs[i]);
    }
  }
  std::vector<Array> expected;
  for (std::size_t i = 0; i < golden.variant.outputs.size(); ++i) {
    const ResultSpec& spec = golden.variant.outputs[i];
    if (!spec.present) continue;
    const tenon_dtype type = resolved(spec.dtype, dtype);
    expected.emplace_back(is_float(type) ? tenon_dtype{TENON_DTYPE_F64} : type, spec.shape, golden.outputs[i]);
  }
  const auto got = context.run(net_of(line, golden.variant, dtype, inputs));
  Bound bound = op_case.bound(golden.variant, dtype);
  const double rounds_like = epsilon(dtype) / epsilon(TENON_DTYPE_F32);
  // Golden operands are rounded to the dtype, an error like that of arithmetic in it. Bounds are proportional to epsilon.
  if (is_narrow(dtype)) bound = {bound.relative * rounds_like, bound.absolute * rounds_like, bound.rounding, bound.signed_zeros};
  if (golden.bound != nullptr) bound = golden.bound(dtype);
  expect_close(expected, got, bound, describe(inputs) + ", expected golden values");
}

void check_bad_argument(CaseContext& context, const OpCase& op_case, const BadArgument& bad, tenon_dtype dtype) {
  const OpLine& line = line_of(op_case.op);
  auto inputs = fill(bad.variant, dtype, seed_for(context.seed, line.stem + bad.name));
  bad.spoil(inputs);
  const Net net = net_of(line, bad.variant, dtype, inputs);
  const Plan plan(context.device, net);
  expect_made(plan);
  const Outcome outcome = plan.run();
  if (outcome.ok()) throw Failure(fmt::format("expected INVALID_ARGUMENT, got OK ({})", describe(inputs)));
  if (outcome.status != TENON_INVALID_ARGUMENT) {
    throw Failure(fmt::format("expected INVALID_ARGUMENT, got {}: {}", status_name(outcome.status), outcome.text));
  }
  if (!outcome.damage.empty()) throw Failure("the execution was refused, and " + outcome.damage);
  for (const std::string& word : bad.words) {
    if (outcome.text.find(word) == std::string::npos)
      throw Failure(fmt::format("the message does not contain '{}': \"{}\"", word, outcome.text));
  }
  // The device still works.
  context.run(net_of(line, op_case.variants.front(), dtype, fill(op_case.variants.front(), dtype, context.seed)));
}

void check_refusals(CaseContext& context, const OpCase& op_case) {
  const OpLine& line = line_of(op_case.op);
  const Variant& variant = op_case.variants.front();
  const std::uint64_t promised = context.device.capability(line.op, line.version);
  for (tenon_dtype t = TENON_DTYPE_F16; t <= TENON_DTYPE_BOOL; ++t) {
    if (!context.device.computes_with(t)) continue;
    std::vector<Array> inputs;
    for (const OperandSpec& spec : variant.inputs) {
      inputs.push_back(spec.present ? Array(resolved(spec.dtype, t), spec.shape) : Array());
    }
    const Net net = net_of(line, variant, t, inputs);
    const Plan plan(context.device, net);
    const std::string type = sdk::name_of(t);
    if (!plan.failure().empty()) throw Failure(type + ": " + plan.failure());
    const bool stated = (promised & TENON_DTYPE_BIT(t)) != 0;
    if (stated == plan.refused()) {
      throw Failure(fmt::format("{}: the capability table says {}, `supports` says {}{}", type, stated ? "yes" : "no",
                                plan.refused() ? "no" : "yes", plan.refused() ? ": " + plan.why() : ""));
    }
  }
  OpLine unknown = line;
  unknown.version = 4711;
  const tenon_dtype first = dtypes_of(op_case).front();
  const Net net = net_of(unknown, variant, first, fill(variant, first, context.seed));
  const Plan plan(context.device, net);
  if (!plan.failure().empty()) throw Failure("version 4711: " + plan.failure());
  if (!plan.refused()) throw Failure("version 4711 of the op does not exist, yet `supports` says yes");
  if (plan.reason() != TENON_REASON_OP)
    throw Failure(fmt::format("version 4711: expected the reason OP, got {} ({})", plan.reason(), plan.why()));
}

}  // namespace tenon::conformance
