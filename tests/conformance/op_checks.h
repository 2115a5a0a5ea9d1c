// SPDX-License-Identifier: Apache-2.0
// op_checks.h - the checks from which harness.cpp makes an op's cases. Each throws Failure for an error, Unsupported for a no.
#pragma once

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
void check_deterministic(CaseContext& context, const Instance& at);
void check_arrangement(CaseContext& context, const Instance& at, Arrangement arrangement);
void check_in_place(CaseContext& context, const Instance& at, const std::vector<tenon_donation>& donations);
void check_concurrent(CaseContext& context, const Instance& at);
void check_constants(CaseContext& context, const Instance& at);
void check_parameters(CaseContext& context, const Instance& at);
void check_property(CaseContext& context, const Instance& at, const Property& property);

// Known results, refusals.
void check_golden(CaseContext& context, const OpCase& op_case, const Golden& golden, tenon_dtype dtype);
void check_bad_argument(CaseContext& context, const OpCase& op_case, const BadArgument& bad, tenon_dtype dtype);
/// The capability table and `supports` agree, and a no has a reason.
void check_refusals(CaseContext& context, const OpCase& op_case);

}  // namespace tenon::conformance
