// SPDX-License-Identifier: Apache-2.0
#include "train/log/curves_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "io/html_page.h"
#include "text/counted.h"
#include "train/log/progress.h"

namespace tenon::train {
namespace {

using io::html_escaped;

// In units of the drawing, which scales with the page.
constexpr double width = 560, height = 300, left = 62, right = 14, top = 12, bottom = 46;
constexpr std::size_t max_dots = 40;  ///< with more epochs, only the line is drawn

const char* const style = R"(
main { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); gap: 20px; }
figcaption { display: flex; flex-wrap: wrap; gap: 4px 18px; align-items: baseline; margin-bottom: 6px; }
figcaption b { font-size: 16px; margin-right: auto; overflow-wrap: anywhere; }
.key { color: var(--soft); font-size: 13px; white-space: nowrap; }
.key svg { width: 26px; height: 8px; margin-right: 6px; vertical-align: middle; }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
.train { stroke: var(--blue); } .val { stroke: var(--orange); stroke-dasharray: 6 4; }
circle.train { fill: var(--blue); } circle.val { fill: var(--orange); stroke-dasharray: none; }
)";

struct Point {
  double epoch, value;  ///< from 1
};
using Series = std::vector<Point>;

Series series_of(const History& history, const std::string& name) {
  Series series;
  for (const EpochLogs& epoch : history) {
    for (const auto& [key, value] : epoch.logs) {
      if (key == name) series.push_back({static_cast<double>(epoch.epoch + 1), value});
    }
  }
  return series;
}

/// The logged names in order, without their val_ counterparts; includes names that appear only in later epochs.
std::vector<std::string> names_of(const History& history) {
  std::vector<std::string> names;
  for (const EpochLogs& epoch : history) {
    for (const auto& [key, value] : epoch.logs) {
      const std::string name = key.starts_with("val_") ? key.substr(4) : key;
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

/// An axis from `low` to `high`, whose ends are multiples of `step`: 1, 2 or 5 times a power of ten.
struct Axis {
  double low, high, step;

  int ticks() const { return static_cast<int>(std::lround((high - low) / step)); }
  double tick(int i) const { return low + step * i; }
  double part(double value) const { return (value - low) / (high - low); }
  std::string label(double value) const {
    if (std::abs(value) < step * 1e-9) return "0";
    if (std::max(std::abs(low), std::abs(high)) >= 1e5 || step < 1e-4) return fmt::format("{:.3g}", value);
    return fmt::format("{:.{}f}", value, std::max(0, -static_cast<int>(std::floor(std::log10(step) + 1e-9))));
  }
};

Axis make_axis(double low, double high, double max_steps, double smallest_step) {
  if (!(high > low)) {  // a single value: add a margin
    const double margin = low == 0 ? 1 : std::abs(low) * 0.1;
    low -= margin, high += margin;
  }
  const double rough = std::max((high - low) / max_steps, smallest_step);
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = power * 10;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (power * factor >= rough * 0.999) {
      step = power * factor;
      break;
    }
  }
  return {std::floor(low / step + 1e-9) * step, std::ceil(high / step - 1e-9) * step, step};
}

/// The axis ends at the first and the last epoch.
Axis epoch_axis(double first, double last) {
  if (last == first) return {first - 0.5, first + 0.5, 1};
  Axis axis = make_axis(first, last, 8, 1);
  axis.low = first;
  axis.high = last;
  return axis;
}

std::string polyline(const Series& series, const char* kind, const Axis& x, const Axis& y, const std::string& name) {
  const auto px = [&](double v) { return left + (width - left - right) * x.part(v); };
  const auto py = [&](double v) { return height - bottom - (height - top - bottom) * y.part(v); };
  std::string path, dots;
  bool pen_down = false;
  for (std::size_t i = 0; i < series.size(); ++i) {
    const Point& p = series[i];
    if (!std::isfinite(p.value)) {
      pen_down = false;
      continue;
    }
    path += fmt::format("{}{:.1f} {:.1f}", pen_down ? "L" : "M", px(p.epoch), py(p.value));
    const bool next = i + 1 < series.size() && std::isfinite(series[i + 1].value);
    if (series.size() <= max_dots || (!pen_down && !next)) {  // a line of a single point would be invisible
      dots += fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.6\"><title>epoch {:.0f}: {} {}</title></circle>\n", kind,
                          px(p.epoch), py(p.value), p.epoch, html_escaped(name), format_value(p.value));
    }
    pen_down = true;
  }
  return fmt::format("<path class=\"line {}\" d=\"{}\"/>\n{}", kind, path, dots);
}

std::string key_of(const char* kind, const char* text) {
  return fmt::format("<span class=\"key\"><svg viewBox=\"0 0 26 8\"><path class=\"line {}\" d=\"M2 4H24\"/></svg>{}</span>", kind, text);
}

std::string chart(const History& history, const std::string& name) {
  const Series train = series_of(history, name), val = series_of(history, "val_" + name);
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const Series* series : {&train, &val}) {
    for (const Point& p : *series) {
      if (!std::isfinite(p.value)) continue;
      low = std::min(low, p.value);
      high = std::max(high, p.value);
    }
  }
  std::string text = "<figure>\n<figcaption><b>" + html_escaped(name) + "</b>";
  if (!train.empty()) text += key_of("train", "training");
  if (!val.empty()) text += key_of("val", "validation");
  text += "</figcaption>\n";
  if (!(low <= high)) return text + "<p>No finite value.</p>\n</figure>\n";

  const Axis y = make_axis(low, high, 5, 0);
  const Axis x = epoch_axis(static_cast<double>(history.front().epoch + 1), static_cast<double>(history.back().epoch + 1));
  const double plot_right = width - right, plot_bottom = height - bottom;
  text += fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{} over epochs\">\n", width, height, html_escaped(name));
  for (int i = 0; i <= y.ticks(); ++i) {
    const double at = plot_bottom - (plot_bottom - top) * y.part(y.tick(i));
    text += fmt::format("<path class=\"grid\" d=\"M{} {:.1f}H{}\"/><text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", left, at,
                        plot_right, left - 8, at + 4, y.label(y.tick(i)));
  }
  const auto epoch_tick = [&](double tick) {
    const double at = left + (plot_right - left) * x.part(tick);
    text += fmt::format("<path class=\"axis\" d=\"M{:.1f} {}v4\"/><text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:.0f}</text>\n", at,
                        plot_bottom, at, plot_bottom + 18, tick);
  };
  const double first_tick = std::ceil(x.low / x.step) * x.step;
  if (first_tick - x.low >= 0.5 * x.step) epoch_tick(x.low);  // label the start of the axis if there is space
  for (double tick = first_tick; tick <= x.high + 1e-9; tick += x.step) epoch_tick(tick);
  text += fmt::format("<path class=\"axis\" d=\"M{} {}V{}H{}\" fill=\"none\"/>\n", left, top, plot_bottom, plot_right);
  text += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">epoch</text>\n", (left + plot_right) / 2, height - 8);
  text += polyline(train, "train", x, y, name) + polyline(val, "val", x, y, "val_" + name);
  return text + "</svg>\n</figure>\n";
}

std::string last_value(const Series& series) {
  return series.empty() ? "" : format_value(series.back().value);
}

}  // namespace

std::string curves_page(const std::string& title, const History& history) {
  if (history.empty()) return io::html_page(title, style, "<p>No epoch has ended yet.</p>\n");
  const EpochLogs& last = history.back();
  std::string text = fmt::format("<p>{}; learning rate {:.4g}; {:.0f} samples/s in the last one</p>\n<main>\n",
                                 counted(last.epoch + 1, "epoch"), last.learning_rate, last.samples_per_second());
  const std::vector<std::string> names = names_of(history);
  for (const std::string& name : names) text += chart(history, name);
  text += "</main>\n<table>\n<thead><tr><th>last epoch</th><th>training</th><th>validation</th></tr></thead>\n<tbody>\n";
  for (const std::string& name : names) {
    text += fmt::format("<tr><th>{}</th><td>{}</td><td>{}</td></tr>\n", html_escaped(name), last_value(series_of(history, name)),
                        last_value(series_of(history, "val_" + name)));
  }
  return io::html_page(title, style, text + "</tbody>\n</table>\n");
}

}  // namespace tenon::train
