// SPDX-License-Identifier: Apache-2.0
// An op at random sizes, compared with the oracle.
#include <fmt/format.h>

#include <tenon/sdk/kernel.h>

#include "capability_consistency.h"
#include "op_checks.h"

namespace tenon::conformance {

void check_sizes(CaseContext& context, const OpCase& op_case, tenon_dtype dtype) {
  if (context.oracle == nullptr) throw NotRun("this backend is the oracle: its sizes are those of the other cases");
  const OpLine& line = line_of(op_case.op);
  const int rounds = effort() == Effort::small ? 6 : effort() == Effort::usual ? 8 : 200;
  const std::string name = fmt::format("{}/{}/sizes", line.stem, sdk::name_of(dtype));
  Random random(seed_for(context.seed, name));
  int checked = 0;
  for (int round = 0; round < rounds; ++round) {
    const std::optional<Variant> variant = variant_at_boundaries(op_case, dtype, round % 6 == 0, random);
    if (!variant) continue;
    check_forward(context, {&op_case, &line, &*variant, dtype, fmt::format("{}/{}", name, round)});
    ++checked;
  }
  if (checked == 0) throw NotRun("the sizes of this op's operands depend on their values, or its bounds on its sizes");
}

}  // namespace tenon::conformance
