// SPDX-License-Identifier: Apache-2.0
// core/table.h - text for people: tables, and lines of at most the width of a terminal. Widths are in columns of a terminal (io/utf8.h).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon {

/// The smallest width that shortened() leaves of a longer text.
inline constexpr std::size_t min_shortened = 24;

/// A text of at most this width, or of `min_width` if that is larger: "..." replaces the middle of a longer one, of which more of the end
/// remains.
std::string shortened(std::string_view text, std::size_t max_width, std::size_t min_width = min_shortened);

/// The text with its longer lines broken at spaces into lines of at most this width; the parts after the first begin with `indent` spaces.
/// A word that is longer stays whole. 0: lines may have any width.
std::string wrapped(std::string_view text, std::size_t max_width, std::size_t indent = 2);

/// Rows of text in aligned columns.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  /// Aligns these columns, of numbers, to the right; others are to the left.
  void align_right(std::vector<std::size_t> columns) { right_ = std::move(columns); }
  /// The width of its longest line.
  std::size_t width() const;
  /// With a width, the texts of these columns are shortened, one column after the other, if need be, for lines of at most that width: to
  /// min_shortened, or to 16 if only that suffices. Lines are longer if neither does.
  std::string str(std::size_t max_width = 0, std::span<const std::size_t> columns = {}) const;
  /// The same table in Markdown.
  std::string markdown() const;

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::size_t> right_;
};

}  // namespace tenon
