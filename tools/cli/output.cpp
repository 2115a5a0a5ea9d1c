// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <fmt/core.h>

#include <algorithm>

namespace tenon::cli {

std::string Table::str() const {
  std::vector<std::size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows_) {
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
