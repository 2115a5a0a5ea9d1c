// SPDX-License-Identifier: Apache-2.0
// cli/output.h - output of the reporting verbs: tables.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/standard_streams.h"

namespace tenon::cli {

/// Rows of text in aligned columns.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string str() const;
  /// The same table in Markdown.
  std::string markdown() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace tenon::cli
