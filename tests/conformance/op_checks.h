// SPDX-License-Identifier: Apache-2.0
// op_checks.h - the checks from which harness.cpp makes an op's cases. Each throws Failure for an error, Unsupported for a no.
#pragma once

#include <optional>
#include <utility>

#include "instance.h"

namespace tenon::conformance {

/// Memory layouts of operands, other than dense.
enum class Arrangement { strided, negative_stride, transposed, broadcast_stride, misaligned };
constexpr struct {
  Arrangement arrangement;
  const char* name;
} arrangements[] = {{Arrangement::strided, "strided"},
                    {Arrangement::negative_stride, "negative_stride"},
                    {Arrangement::transposed, "transposed"},
                    {Arrangement::broadcast_stride, "broadcast_stride"},
                    {Arrangement::misaligned, "misaligned"}};
/// Keys and scalars are always dense.
bool may_be_arranged(const OperandSpec& spec);

// Results, compared with the oracle's.
void check_forward(CaseContext& context, const Instance& at);
void check_special(CaseContext& context, const Instance& at);

// Behaviour, compared with the backend's own results.
void check_guards(CaseContext& context, const Instance& at);
/// Nothing is read or written next to an operand: there a page that cannot be accessed.
void check_pages(CaseContext& context, const Instance& at);
void check_deterministic(CaseContext& context, const Instance& at);
void check_arrangement(CaseContext& context, const Instance& at, Arrangement arrangement);
void check_in_place(CaseContext& context, const Instance& at, const std::vector<tenon_donation>& donations);
void check_concurrent(CaseContext& context, const Instance& at);
/// The same bits under `deterministic` whatever the number of threads and the order in which parts of the work end.
void check_threads(CaseContext& context, const Instance& at);
/// The first two operands that one value may be; nothing if there are none.
std::optional<std::pair<std::size_t, std::size_t>> operands_alike(const Variant& variant);
/// One value as both of these operands.
void check_one_value(CaseContext& context, const Instance& at);
void check_constants(CaseContext& context, const Instance& at);
void check_parameters(CaseContext& context, const Instance& at);
void check_property(CaseContext& context, const Instance& at, const Property& property);

// Known results, refusals.
void check_golden(CaseContext& context, const OpCase& op_case, const Golden& golden, tenon_dtype dtype);
void check_bad_argument(CaseContext& context, const OpCase& op_case, const BadArgument& bad, tenon_dtype dtype);
/// Random sizes around those at which kernels change: powers of two, multiples of 16, long axes.
void check_sizes(CaseContext& context, const OpCase& op_case, tenon_dtype dtype);
/// The capability table and `supports` agree, and a no has a reason.
void check_refusals(CaseContext& context, const OpCase& op_case);

}  // namespace tenon::conformance
