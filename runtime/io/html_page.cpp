// SPDX-License-Identifier: Apache-2.0
#include "io/html_page.h"

#include <fmt/format.h>

namespace tenon::io {
namespace {

// Okabe and Ito's colours; blue, orange and green are lighter in dark mode for a contrast of at least 3:1.
const char* const common_style = R"(
:root { color-scheme: light dark; --page: #ffffff; --ink: #1c2430; --soft: #5b6675; --grid: #e3e7ec; --card: #f7f8fa;
  --blue: #0072b2; --orange: #d55e00; --green: #00835f; }
@media (prefers-color-scheme: dark) {
  :root { --page: #14181d; --ink: #e7ebf0; --soft: #9aa6b4; --grid: #2c343d; --card: #1c2229; --blue: #56b4e9; --orange: #f0944d; --green: #3cc79d; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1240px; padding: 24px; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
@media (max-width: 600px) { body { padding: 16px 12px; } }
h1 { font-size: 22px; margin: 0 0 4px; overflow-wrap: anywhere; }
p { margin: 0 0 20px; color: var(--soft); }
figure { margin: 0; padding: 14px 16px 8px; background: var(--card); border: 1px solid var(--grid); border-radius: 8px; }
figure > svg { display: block; width: 100%; height: auto; }
text { fill: var(--soft); font: 12px system-ui, sans-serif; }
.grid { stroke: var(--grid); stroke-width: 1; }
.axis { stroke: var(--soft); stroke-width: 1; }
table { border-collapse: collapse; margin-top: 24px; font-variant-numeric: tabular-nums; }
th, td { padding: 4px 18px 4px 0; text-align: right; border-bottom: 1px solid var(--grid); }
th:first-child { text-align: left; font-weight: normal; } thead th { color: var(--soft); font-weight: normal; }
)";

}  // namespace

std::string html_escaped(std::string_view text) {
  std::string all;
  for (const char c : text) {
    switch (c) {
      case '&':
        all += "&amp;";
        break;
      case '<':
        all += "&lt;";
        break;
      case '>':
        all += "&gt;";
        break;
      case '"':
        all += "&quot;";
        break;
      case '\'':
        all += "&#39;";
        break;
      default:
        all += c;
    }
  }
  return all;
}

std::string html_page(std::string_view title, std::string_view style, std::string_view body) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{0}</title>\n<style>{1}{2}</style>\n</head>\n"
      "<body>\n<h1>{0}</h1>\n{3}</body>\n</html>\n",
      html_escaped(title), common_style, style, body);
}

}  // namespace tenon::io
