// SPDX-License-Identifier: Apache-2.0
#include "cli/placement_text.h"

#include <algorithm>
#include <vector>

#include "cli/output.h"

namespace tenon::cli {

std::string placement_text(const PlacementReport& report, std::size_t columns_of_terminal) {
  std::string text = report.str();
  std::size_t line_size = 0, table_size = 0;
  for (std::size_t row = 0; row <= report.nodes.size(); ++row) {  // the header, then the nodes
    const std::size_t end = std::min(text.find('\n', table_size), text.size());
    line_size = std::max(line_size, end - table_size);
    table_size = std::min(end + 1, text.size());
  }
  if (columns_of_terminal == 0 || line_size <= columns_of_terminal || report.nodes.empty()) return text;

  const std::vector<Placement>& nodes = report.nodes;
  const bool moved = std::ranges::any_of(nodes, [](const Placement& p) { return p.requested != p.device; });
  const bool several = moved || std::ranges::any_of(nodes, [&](const Placement& p) { return p.device != nodes[0].device; });
  const bool reasons = std::ranges::any_of(nodes, [](const Placement& p) { return p.once || !p.reason.empty(); });
  const auto cells = [&](std::vector<std::string> row, const std::string& requested, const std::string& device, const std::string& kernel,
                         const std::string& reason) {
    if (moved) row.push_back(requested);
    if (several) row.push_back(device);
    row.push_back(kernel);
    if (reasons) row.push_back(reason);
    return row;
  };
  Table table(cells({"node", "op", "dtype"}, "requested", "device", "kernel", "reason"));
  for (const Placement& p : nodes) {
    const std::string once = p.once ? "runs when parameters change" : "";
    table.add(cells({p.node, p.op, name_of(p.dtype)}, p.requested, p.device.empty() ? "none" : p.device, p.algorithm,
                    p.reason + (p.reason.empty() || once.empty() ? "" : "; ") + once));
  }
  const std::size_t names[] = {0, 3 + std::size_t{moved} + std::size_t{several}};
  return table.str(columns_of_terminal, names) + text.substr(table_size);
}

}  // namespace tenon::cli
