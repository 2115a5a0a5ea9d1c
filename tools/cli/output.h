// SPDX-License-Identifier: Apache-2.0
// cli/output.h - output of the reporting subcommands: tables and --format.
#pragma once

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include "cli/standard_streams.h"

namespace tenon::cli {

/// Adds --format with these choices; the first is the default.
inline void add_format(CLI::App& command, std::string& format, const std::vector<std::string>& choices) {
  format = choices.front();
  command.add_option("--format", format, "output format")->check(CLI::IsMember(choices))->capture_default_str();
}

/// Rows of text in aligned columns.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string str() const {
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
  /// The same table in Markdown.
  std::string markdown() const {
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

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace tenon::cli
