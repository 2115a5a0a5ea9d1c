// op_checks.h - the checks of which harness.cpp makes an op's cases. Each throws a Failure for what is wrong, Unsupported for a no.
#pragma once

#include "instance.h"

namespace tenon::conformance {

/// The ways operands lie in memory, other than dense.
enum class Arrangement { strided, negative_stride, transposed, broadcast_stride, misaligned };
constexpr struct {
  Arrangement arrangement;
  const char* name;
} arrangements[] = {{Arrangement::strided, "strided"},
                    {Arrangement::negative_stride, "negative_stride"},
                    {Arrangement::transposed, "transposed"},
                    {Arrangement::broadcast_stride, "broadcast_stride"},
                    {Arrangement::misaligned, "misaligned"}};
/// Keys and scalars have one arrangement.
bool may_be_arranged(const OperandSpec& spec);

// The answer, against the oracle's.
void check_forward(Kit& kit, const Instance& at);
void check_special(Kit& kit, const Instance& at);

// Behaviour, against itself.
void check_guards(Kit& kit, const Instance& at);
void check_deterministic(Kit& kit, const Instance& at);
void check_arrangement(Kit& kit, const Instance& at, Arrangement arrangement);
void check_in_place(Kit& kit, const Instance& at, const std::vector<tenon_donation>& donations);
void check_concurrent(Kit& kit, const Instance& at);
void check_constants(Kit& kit, const Instance& at);
void check_parameters(Kit& kit, const Instance& at);
void check_property(Kit& kit, const Instance& at, const Property& property);

// Known answers, refusals.
void check_golden(Kit& kit, const OpCase& op_case, const Golden& golden, tenon_dtype dtype);
void check_bad_argument(Kit& kit, const OpCase& op_case, const BadArgument& bad, tenon_dtype dtype);
/// The capability table and `supports` say the same, and a no has a reason.
void check_refusals(Kit& kit, const OpCase& op_case);

}  // namespace tenon::conformance
