// SPDX-License-Identifier: Apache-2.0
// capability_consistency.h - random instances of an op, about which cases of the group "capability_consistency" ask a backend.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "instance.h"

namespace tenon::conformance {

/// A variant of an op with random sizes, dtype, operand layouts and bindings.
struct RandomNode {
  Variant variant;
  tenon_dtype dtype = TENON_DTYPE_NONE;
  Setting setting;                   ///< layouts and donations
  std::vector<std::uint32_t> kinds;  ///< per input: TENON_VALUE_*
  PlanOptions options;
  std::uint32_t math = TENON_MATH_STRICT;

  bool is_strided() const;
};
/// The options for `supports` and plan_create.
tenon_plan_options abi_plan_options(const PlanOptions& options, std::uint32_t math = TENON_MATH_STRICT);

RandomNode random_node(const OpCase& op_case, Random& random);

/// A variant of the op with sizes at which kernels change: near powers of two and multiples of 16, primes; or with an axis whose length 16
/// bits do not hold. Nothing if there is none: values are indices, bounds hold for the steps of a sequence, an element costs too much.
std::optional<Variant> variant_at_boundaries(const OpCase& op_case, tenon_dtype dtype, bool beyond_16_bits, Random& random);

/// Whether the runtime's shape rule gives exactly these results for these operands.
bool keeps_the_rule(const OpLine& line, const Net& net);

/// The same node with dimensions near 2^31 and beyond that the shape rule accepts; nothing if none is. It has no memory.
std::optional<Net> grown(const OpLine& line, const Net& net, Random& random);
/// The same node with one dimension changed so that the shape rule refuses it; nothing if every change is accepted.
std::optional<Net> broken(const OpLine& line, const Net& net, Random& random);

/// The same node with one operand or result of another dtype, also in the attributes that name it.
Net retyped(const OpLine& line, const Net& net, Random& random);

}  // namespace tenon::conformance
