// SPDX-License-Identifier: Apache-2.0
// cli/output.h - output of the reporting verbs: tables.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/standard_streams.h"

namespace tenon::cli {

/// A text of at most so many bytes, or of 32 if these are fewer: "..." replaces the middle of a longer one, of which more of the end
/// remains.
std::string shortened(const std::string& text, std::size_t max_size);

/// Rows of text in aligned columns.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  /// With a number of characters, the texts of the first column are shortened, if need be, for lines of at most that length, as far as
  /// shortened() does.
  std::string str(std::size_t max_line = 0) const;
  /// The same table in Markdown.
  std::string markdown() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace tenon::cli
