// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "io/utf8.h"

namespace tenon::cli {

std::string shortened(const std::string& text, std::size_t max_size) {
  const std::size_t size = std::max<std::size_t>(max_size, min_shortened);
  if (text.size() <= size) return text;
  const std::size_t first = (size - 3) / 3;
  std::size_t last = text.size() - (size - 3 - first);
  while (character_begin(text, last) != last) ++last;
  return text.substr(0, character_begin(text, first)) + "..." + text.substr(last);
}

std::string Table::str(std::size_t max_line, std::span<const std::size_t> columns) const {
  std::vector<std::vector<std::string>> rows = rows_;
  const auto widths_of = [&] {
    std::vector<std::size_t> widths(rows.front().size(), 0);
    for (const auto& row : rows) {
      for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    }
    return widths;
  };
  std::vector<std::size_t> widths = widths_of();
  for (const std::size_t column : columns) {
    const std::size_t line_size = std::accumulate(widths.begin(), widths.end(), 2 * (widths.size() - 1));
    if (max_line == 0 || line_size <= max_line) break;
    const std::size_t size = widths[column] - std::min(widths[column], line_size - max_line);
    for (auto& row : rows) row[column] = shortened(row[column], size);
    widths = widths_of();
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string Table::markdown() const {
  std::string text;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    text += "|";
    for (const std::string& cell : rows_[r]) text += " " + cell + " |";
    text += "\n";
    if (r == 0) {
      text += "|";
      for (std::size_t i = 0; i < rows_[0].size(); ++i) text += "---|";
      text += "\n";
    }
  }
  return text;
}

}  // namespace tenon::cli
