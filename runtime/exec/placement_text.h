// SPDX-License-Identifier: Apache-2.0
// exec/placement_text.h - the placement report for a terminal.
#pragma once

#include <cstddef>
#include <string>

#include <tenon/program.h>

namespace tenon {

/// The text of the report, for lines of at most this width in columns of a terminal; 0: of any width, as PlacementReport::str(). If lines
/// of the table are longer, columns that say nothing new are left out (`requested` where nodes run there or all request one device,
/// `device` of one device, `kernel` and `reason` without texts), then reasons are listed below the table, then names of nodes and kernels
/// are shortened as far as Table::str() does. Other lines are wrapped.
std::string placement_text(const PlacementReport& report, std::size_t max_width = 0);

}  // namespace tenon
