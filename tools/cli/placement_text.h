// SPDX-License-Identifier: Apache-2.0
// cli/placement_text.h - the placement report for a terminal.
#pragma once

#include <cstddef>
#include <string>

#include <tenon/program.h>

namespace tenon::cli {

/// The text of the report, for lines of at most so many characters; 0: of any length. If lines of the table are longer, columns that say
/// nothing new are left out: `requested` where nodes run there, `device` of one device, `reason` without reasons. Then names of nodes and
/// kernels are shortened as far as shortened() does, so that lines can still be longer.
std::string placement_text(const PlacementReport& report, std::size_t columns_of_terminal);

}  // namespace tenon::cli
