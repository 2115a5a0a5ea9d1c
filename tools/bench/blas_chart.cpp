// SPDX-License-Identifier: Apache-2.0
#include "bench/blas_chart.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "io/html_page.h"

namespace tenon::bench {
namespace {

// In drawing units; the drawing scales with the page.
constexpr double width = 860, height = 460, left = 70, right = 20, top = 20, bottom = 52;

const char* const style = R"(
:root { --l1: var(--orange); --l2: var(--blue); --l3: var(--green); }
body { max-width: 980px; }
figcaption span { margin-right: 18px; font-size: 13px; color: var(--soft); }
figcaption svg { width: 12px; height: 12px; margin-right: 6px; vertical-align: -1px; }
text { paint-order: stroke; stroke: var(--card); stroke-width: 3px; }
.roof { stroke: var(--ink); stroke-width: 1.5; fill: none; }
.l1 { fill: var(--l1); } .l2 { fill: var(--l2); } .l3 { fill: var(--l3); }
)";

/// The marker of a level: a circle, square or triangle, so that it is recognizable without colour.
std::string dot(int level, double x, double y, const std::string& title) {
  const std::string text = title.empty() ? "" : "<title>" + io::html_escaped(title) + "</title>";
  if (level == 1) return fmt::format("<circle class=\"l1\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\">{}</circle>\n", x, y, text);
  const char* const path = level == 2 ? "m-4.5-4.5h9v9h-9z" : "m0-6l5.5 10h-11z";
  return fmt::format("<path class=\"l{}\" d=\"M{:.1f} {:.1f}{}\">{}</path>\n", level, x, y, path, text);
}

/// A logarithmic axis between powers of ten.
struct Axis {
  int low, high;  ///< exponents of 10
  double from, to;
  double at(double value) const { return from + (std::log10(value) - low) / (high - low) * (to - from); }
};
Axis axis_over(double smallest, double largest, double from, double to) {
  const int low = static_cast<int>(std::floor(std::log10(smallest)));
  return {low, std::max(low + 1, static_cast<int>(std::ceil(std::log10(largest)))), from, to};
}

std::string line(const char* kind, double x1, double y1, double x2, double y2) {
  return fmt::format("<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", kind, x1, y1, x2, y2);
}
std::string label(double x, double y, const char* anchor, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, text);
}

std::string drawing(const std::vector<ChartPoint>& points, const ChartRoofs& roofs) {
  double min_x = 1e300, max_x = 0, min_y = 1e300, max_y = std::max(roofs.f32_gflop_per_s, roofs.f64_gflop_per_s);
  for (const ChartPoint& p : points) {
    min_x = std::min(min_x, p.flops_per_byte), max_x = std::max(max_x, p.flops_per_byte);
    min_y = std::min(min_y, p.gflop_per_s), max_y = std::max(max_y, p.gflop_per_s);
  }
  const Axis x = axis_over(min_x, max_x, left, width - right), y = axis_over(min_y, max_y, height - bottom, top);
  std::string svg = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"rate over arithmetic intensity\">\n", width, height);
  for (int e = x.low; e <= x.high; ++e) {
    const double at = x.at(std::pow(10.0, e));
    svg += line("grid", at, top, at, height - bottom) + label(at, height - bottom + 18, "middle", fmt::format("{:g}", std::pow(10.0, e)));
  }
  for (int e = y.low; e <= y.high; ++e) {
    const double at = y.at(std::pow(10.0, e));
    svg += line("grid", left, at, width - right, at) + label(left - 8, at + 4, "end", fmt::format("{:g}", std::pow(10.0, e)));
  }
  svg += line("axis", left, height - bottom, width - right, height - bottom) + line("axis", left, top, left, height - bottom);
  svg += label((left + width) / 2, height - 10, "middle", "flops per byte") + label(left + 6, top + 12, "start", "GFLOP/s");
  // rate <= bandwidth * intensity, and rate <= peak
  const double x_low = std::pow(10.0, x.low), x_high = std::pow(10.0, x.high), y_low = std::pow(10.0, y.low),
               y_high = std::pow(10.0, y.high);
  const double highest = std::max(roofs.f32_gflop_per_s, roofs.f64_gflop_per_s);
  const double begin = std::max(x_low, y_low / roofs.gb_per_s),
               end = std::clamp((highest > 0 ? highest : y_high) / roofs.gb_per_s, begin, x_high);
  svg += line("roof", x.at(begin), y.at(begin * roofs.gb_per_s), x.at(end), y.at(end * roofs.gb_per_s));
  for (const auto& [name, peak] : {std::pair("f32", roofs.f32_gflop_per_s), std::pair("f64", roofs.f64_gflop_per_s)}) {
    if (peak <= 0 || peak / roofs.gb_per_s >= x_high) continue;
    svg += line("roof", x.at(std::clamp(peak / roofs.gb_per_s, x_low, x_high)), y.at(peak), x.at(x_high), y.at(peak));
    svg += label(width - right - 4, y.at(peak) - 5, "end", name);
  }
  for (const ChartPoint& p : points) {
    svg += dot(p.level, x.at(p.flops_per_byte), y.at(p.gflop_per_s),
               fmt::format("{}: {:.3g} GFLOP/s at {:.3g} flops per byte", p.name, p.gflop_per_s, p.flops_per_byte));
  }
  // Label only calls without a labelled neighbour: other labels would overlap.
  std::vector<const ChartPoint*> named;
  for (const ChartPoint& p : points) {
    const auto near = std::find_if(named.begin(), named.end(), [&](const ChartPoint* other) {
      return std::fabs(x.at(other->flops_per_byte) - x.at(p.flops_per_byte)) < 90 &&
             std::fabs(y.at(other->gflop_per_s) - y.at(p.gflop_per_s)) < 16;
    });
    if (near == named.end()) named.push_back(&p);
  }
  for (const ChartPoint* p : named) {
    const bool at_the_edge = x.at(p->flops_per_byte) > width - right - 90;
    svg += label(x.at(p->flops_per_byte) + (at_the_edge ? -9 : 9), y.at(p->gflop_per_s) + (at_the_edge ? 16 : 4),
                 at_the_edge ? "end" : "start", p->name);
  }
  return svg + "</svg>\n";
}

}  // namespace

std::string blas_chart(const std::string& title, const std::vector<ChartPoint>& points, const ChartRoofs& roofs) {
  std::string page = fmt::format("<p>Roofs measured in the same run: {:.3g} GB/s of memory", roofs.gb_per_s);
  if (roofs.f32_gflop_per_s > 0) page += fmt::format(", {:.3g} GFLOP/s in f32", roofs.f32_gflop_per_s);
  if (roofs.f64_gflop_per_s > 0) page += fmt::format(", {:.3g} GFLOP/s in f64", roofs.f64_gflop_per_s);
  page += ".</p>\n";
  if (points.empty()) return io::html_page(title, style, page + "<p>Nothing was measured.</p>\n");
  page += "<figure>\n" + drawing(points, roofs) + "<figcaption>";
  for (int level = 1; level <= 3; ++level)
    page += fmt::format("<span><svg viewBox=\"0 0 12 12\">{}</svg>level {}</span>", dot(level, 6, 6, ""), level);
  page +=
      "</figcaption>\n</figure>\n<table>\n<thead><tr><th>call</th><th>level</th><th>flops per "
      "byte</th><th>GFLOP/s</th></tr></thead>\n<tbody>\n";
  for (const ChartPoint& p : points) {
    page += fmt::format("<tr><th>{}</th><td>{}</td><td>{:.3g}</td><td>{:.3g}</td></tr>\n", io::html_escaped(p.name), p.level,
                        p.flops_per_byte, p.gflop_per_s);
  }
  return io::html_page(title, style, page + "</tbody>\n</table>\n");
}

}  // namespace tenon::bench
