// SPDX-License-Identifier: Apache-2.0
// huge_view.h - an operand of more elements and bytes than 32 bits count, in the memory of one row.
#pragma once

#include "op_family.h"

namespace tenon::conformance {

/// More rows than 31 bits count.
inline constexpr std::int64_t huge_rows = (std::int64_t{1} << 31) + 5;

/// The node on `row`, of shape (1, n), seen as huge_rows equal rows through a stride of 0, and its other inputs. Throws NotRun if the
/// backend takes only dense operands.
inline std::vector<Array> run_on_huge_view(const CaseContext& context, const OpLine& line, const Variant& variant, tenon_dtype dtype,
                                           const std::vector<Array>& inputs) {
  Net net = net_of(line, variant, dtype, inputs, {.layouts = {{{0, 1}}}});
  net.values[0].shape[0] = huge_rows;
  const Plan plan(context.device, net);
  if (plan.refused() && is_about_strides(plan.reason())) throw NotRun("the backend takes only dense operands: " + plan.why());
  if (plan.refused()) throw Unsupported(plan.why());
  if (!plan.ready()) throw Failure(plan.failure());
  constexpr std::uint64_t max_workspace = std::uint64_t{1} << 28;
  if (plan.info().workspace_size_bytes > max_workspace) throw NotRun("the backend copies an operand with a stride of 0 to dense memory");
  Outcome outcome = plan.run();
  if (!outcome.ok()) throw Failure(fmt::format("execution failed with {}: {}", status_name(outcome.status), outcome.text));
  return std::move(outcome.outputs);
}

/// Throws Failure unless every row of `got` is `row`.
inline void expect_rows(const Array& row, const Array& got) {
  for (std::int64_t i = 0; i < got.count(); ++i) {
    if (got.at(i) != row.at(i % row.count()))
      throw Failure(
          fmt::format("element {} of rows of {} equal ones: expected {}, got {}", i, huge_rows, row.str(i % row.count()), got.str(i)));
  }
}

inline Array counted_row(tenon_dtype dtype, std::int64_t n) {
  Array row(dtype, {1, n});
  for (std::int64_t i = 0; i < n; ++i) row.set(i, static_cast<double>(i % 2 + (i % 3 == 0 ? 1 : 0)));
  return row;
}

}  // namespace tenon::conformance
