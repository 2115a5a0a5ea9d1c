// SPDX-License-Identifier: Apache-2.0
// cli/output.h - output of the reporting verbs: tables.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/standard_streams.h"

namespace tenon::cli {

/// The fewest bytes that shortened() leaves of a longer text.
inline constexpr std::size_t min_shortened = 24;

/// A text of at most so many bytes, or of min_shortened if these are fewer: "..." replaces the middle of a longer one, of which more of the
/// end remains.
std::string shortened(const std::string& text, std::size_t max_size);

/// Rows of text in aligned columns.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  /// With a number of characters, the texts of these columns are shortened, one column after the other, if need be, for lines of at most
  /// that length, as far as shortened() does.
  std::string str(std::size_t max_line = 0, std::span<const std::size_t> columns = {}) const;
  /// The same table in Markdown.
  std::string markdown() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace tenon::cli
