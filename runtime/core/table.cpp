// SPDX-License-Identifier: Apache-2.0
#include "core/table.h"

#include <algorithm>
#include <numeric>

#include "io/utf8.h"

namespace tenon {
namespace {

using Rows = std::vector<std::vector<std::string>>;

constexpr std::size_t gap = 2;  // spaces between columns

std::vector<std::size_t> widths_of(const Rows& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i]));
  }
  return widths;
}

std::size_t line_width(const Rows& rows) {
  const std::vector<std::size_t> widths = widths_of(rows);
  return widths.empty() ? 0 : std::accumulate(widths.begin(), widths.end(), gap * (widths.size() - 1));
}

/// Shortens the texts of the columns, one column after the other, until lines have at most this width.
void shorten(Rows& rows, std::span<const std::size_t> columns, std::size_t max_width, std::size_t min_width) {
  for (const std::size_t column : columns) {
    const std::size_t width = widths_of(rows)[column], line = line_width(rows);
    if (line <= max_width) return;
    for (auto& row : rows) row[column] = shortened(row[column], width - std::min(width, line - max_width), min_width);
  }
}

}  // namespace

std::string shortened(std::string_view text, std::size_t max_width, std::size_t min_width) {
  const std::size_t width = std::max(max_width, min_width);
  if (display_width(text) <= width) return std::string(text);
  const std::size_t first_width = (width - 3) / 3, last_width = width - 3 - first_width;
  std::vector<std::size_t> begins;  // of characters
  for (std::size_t at = 0; at < text.size(); at += std::max<std::size_t>(utf8_length(text.substr(at)), 1)) begins.push_back(at);
  std::size_t first = 0, last = begins.size();
  while (display_width(text.substr(0, begins[first + 1])) <= first_width) ++first;
  while (display_width(text.substr(begins[last - 1])) <= last_width) --last;
  return std::string(text.substr(0, begins[first])) + "..." + std::string(text.substr(begins[last]));
}

std::string wrapped(std::string_view text, std::size_t max_width, std::size_t indent) {
  if (max_width == 0) return std::string(text);
  std::string result;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view rest = text.substr(0, end);
    std::string line;  // what is written before `rest`
    while (display_width(line) + display_width(rest) > max_width) {
      // the last space with the part before it within the width, or else the first one after leading spaces
      std::size_t space = rest.find(' ', std::min(rest.find_first_not_of(' '), rest.size()));
      for (std::size_t next = space; next != rest.npos; next = rest.find(' ', next + 1)) {
        if (display_width(line) + display_width(rest.substr(0, next)) > max_width) break;
        space = next;
      }
      if (space == rest.npos) break;
      result += line;
      result += rest.substr(0, space);
      result += '\n';
      rest.remove_prefix(std::min(rest.find_first_not_of(' ', space), rest.size()));
      line.assign(indent, ' ');
    }
    result += line;
    result += rest;
    if (end < text.size()) result += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

std::size_t Table::width() const {
  return line_width(rows_);
}

std::string Table::str(std::size_t max_width, std::span<const std::size_t> columns) const {
  Rows rows = rows_;
  if (max_width > 0) {
    shorten(rows, columns, max_width, min_shortened);
    if (line_width(rows) > max_width) {
      Rows shorter = rows_;
      shorten(shorter, columns, max_width, 16);
      if (line_width(shorter) <= max_width) rows = std::move(shorter);
    }
  }
  const std::vector<std::size_t> widths = widths_of(rows);
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - display_width(row[i]), ' ');
      const bool right = std::find(right_.begin(), right_.end(), i) != right_.end();
      line += std::string(i > 0 ? gap : 0, ' ') + (right ? space + row[i] : row[i] + space);
    }
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

}  // namespace tenon
