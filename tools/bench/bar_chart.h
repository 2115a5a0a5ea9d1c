// bench/bar_chart.h - what was measured side by side, as a page of HTML.
#pragma once

#include <string>
#include <vector>

namespace tenon::bench {

struct Bar {
  std::string name;  ///< "cuda:0, naive"
  double value = 0;
  std::string note = {};  ///< behind the number
};

/// Bars on one scale.
struct BarGroup {
  std::string title;  ///< with the unit: "convnet, train, batch 100: ms"
  std::vector<Bar> bars;
};

/// Horizontal bars, group by group, each from zero. The page needs no other file and no script; it follows the reader's light or dark
/// setting.
std::string bar_chart(const std::string& title, const std::vector<BarGroup>& groups);
/// The same into a file; none if `file` is empty. Errors  it cannot be written.
void write_chart(const std::string& file, const std::string& title, const std::vector<BarGroup>& groups);

}  // namespace tenon::bench
