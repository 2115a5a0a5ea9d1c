// SPDX-License-Identifier: Apache-2.0
// bench/bar_chart.h - bar charts of measurements as an HTML page.
#pragma once

#include <string>
#include <vector>

namespace tenon::bench {

struct Bar {
  std::string name;  ///< "cuda:0, naive"
  double value = 0;
  std::string note = {};  ///< text after the number
};

/// Bars with a common scale.
struct BarGroup {
  std::string title;  ///< with the unit: "convnet, train, batch 100: ms"
  std::vector<Bar> bars;
};

/// Horizontal bars by group, each starting at zero. The page is self-contained, without scripts, and follows the light or dark setting.
std::string bar_chart(const std::string& title, const std::vector<BarGroup>& groups);
/// Writes the page to a file; does nothing if `file` is empty.
/// Errors  the file cannot be written.
void write_chart(const std::string& file, const std::string& title, const std::vector<BarGroup>& groups);

}  // namespace tenon::bench
