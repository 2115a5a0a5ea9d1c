// SPDX-License-Identifier: Apache-2.0
#include "bench/bar_chart.h"

#include <fmt/core.h>

#include <algorithm>

#include <tenon/error.h>

#include "io/atomic_file.h"
#include "io/html_page.h"

namespace tenon::bench {
namespace {

using io::html_escaped;

const char* const style = R"(
body { max-width: 980px; }
table { width: 100%; margin: 16px 0; padding: 10px 16px; background: var(--card); border: 1px solid var(--grid); border-radius: 8px; border-collapse: separate; }
caption { text-align: left; color: var(--soft); }
th, td { border: 0; padding: 2px 0; } th:first-child { width: 26%; padding-right: 12px; overflow-wrap: anywhere; }
td.value { width: 24%; padding-left: 12px; } .value small { color: var(--soft); }
.bar { height: 12px; min-width: 1px; background: var(--blue); border-radius: 2px; }
)";

}  // namespace

std::string bar_chart(const std::string& title, const std::vector<BarGroup>& groups) {
  std::string page;
  for (const BarGroup& group : groups) {
    double max_value = 0;
    for (const Bar& bar : group.bars) max_value = std::max(max_value, bar.value);
    page += fmt::format("<table>\n<caption>{}</caption>\n", html_escaped(group.title));
    for (const Bar& bar : group.bars) {
      page += fmt::format(
          "<tr><th>{}</th><td><div class=\"bar\" style=\"width: {:.1f}%\"></div></td><td class=\"value\">{:.4g} "
          "<small>{}</small></td></tr>\n",
          html_escaped(bar.name), max_value > 0 ? 100 * bar.value / max_value : 0, bar.value, html_escaped(bar.note));
    }
    page += "</table>\n";
  }
  return io::html_page(title, style, page);
}

void write_chart(const std::string& file, const std::string& title, const std::vector<BarGroup>& groups) {
  if (file.empty()) return;
  io::write_atomically(file, bar_chart(title, groups));
}

}  // namespace tenon::bench
