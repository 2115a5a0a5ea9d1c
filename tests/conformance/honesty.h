// honesty.h - random instances of an op: what a case of the group "honesty" asks a backend about.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "instance.h"

namespace tenon::conformance {

/// One random node: a variant of the op with other sizes, in a random dtype, its operands lying and bound at random.
struct Draw {
  Variant variant;
  tenon_dtype dtype = TENON_DTYPE_NONE;
  Setting setting;                   ///< layouts and donations
  std::vector<std::uint32_t> kinds;  ///< per input: TENON_VALUE_*
  PlanOptions options;
  std::uint32_t math = TENON_MATH_STRICT;

  bool is_strided() const;
};
/// What is asked of `supports` and plan_create.
tenon_plan_options wire_options(const PlanOptions& options, std::uint32_t math = TENON_MATH_STRICT);

Draw draw(const OpCase& op_case, Random& random);

/// Whether the runtime's own rule makes exactly these results of these operands.
bool keeps_the_rule(const OpLine& line, const Net& net);

/// The same node with dimensions near 2^31 and beyond, as the rule allows them; nothing where none fits. There is no memory behind it.
std::optional<Net> grown(const OpLine& line, const Net& net, Random& random);
/// The same node with one dimension of one value changed, so that the rule refuses it; nothing where every change fits.
std::optional<Net> broken(const OpLine& line, const Net& net, Random& random);

}  // namespace tenon::conformance
