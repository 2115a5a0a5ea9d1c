#include "bench/bar_chart.h"

#include <fmt/core.h>

#include <algorithm>
#include <fstream>

#include <tenon/error.h>

namespace tenon::bench {
namespace {

const char* const style = R"(
:root { color-scheme: light dark; --page: #ffffff; --ink: #1c2430; --soft: #5b6675; --grid: #e3e7ec; --card: #f7f8fa; --bar: #1f6fd0; }
@media (prefers-color-scheme: dark) {
  :root { --page: #14181d; --ink: #e7ebf0; --soft: #9aa6b4; --grid: #2c343d; --card: #1c2229; --bar: #6cb0ff; }
}
body { margin: 0 auto; max-width: 980px; padding: 24px; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 22px; margin: 0 0 16px; }
table { width: 100%; margin: 0 0 16px; padding: 10px 16px; background: var(--card); border: 1px solid var(--grid); border-radius: 8px;
        font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); }
th { width: 26%; text-align: left; font-weight: normal; } td.value { width: 24%; text-align: right; white-space: nowrap; }
.value small { color: var(--soft); } .bar { height: 12px; min-width: 1px; background: var(--bar); border-radius: 2px; }
)";

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '<') {
      safe += "&lt;";
    } else if (c == '&') {
      safe += "&amp;";
    } else {
      safe += c;
    }
  }
  return safe;
}

}  // namespace

std::string bar_chart(const std::string& title, const std::vector<BarGroup>& groups) {
  std::string page = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n<title>{0}</title>\n<style>{1}</style>\n</head>\n<body>\n<h1>{0}</h1>\n",
      escaped(title), style);
  for (const BarGroup& group : groups) {
    double most = 0;
    for (const Bar& bar : group.bars) most = std::max(most, bar.value);
    page += fmt::format("<table>\n<caption>{}</caption>\n", escaped(group.title));
    for (const Bar& bar : group.bars) {
      page += fmt::format(
          "<tr><th>{}</th><td><div class=\"bar\" style=\"width: {:.1f}%\"></div></td><td class=\"value\">{:.4g} "
          "<small>{}</small></td></tr>\n",
          escaped(bar.name), most > 0 ? 100 * bar.value / most : 0, bar.value, escaped(bar.note));
    }
    page += "</table>\n";
  }
  return page + "</body>\n</html>\n";
}

void write_chart(const std::string& file, const std::string& title, const std::vector<BarGroup>& groups) {
  if (file.empty()) return;
  std::ofstream out(file);
  out << bar_chart(title, groups);
  if (!out.flush()) throw Error(fmt::format("--html {}: cannot be written", file));
}

}  // namespace tenon::bench
