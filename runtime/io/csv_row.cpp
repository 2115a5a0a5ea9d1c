// SPDX-License-Identifier: Apache-2.0
#include "io/csv_row.h"

namespace tenon::io {
namespace {

std::string cell_of(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

std::string csv_row(std::span<const std::string> cells) {
  std::string row;
  const char* separator = "";
  for (const std::string& text : cells) {
    row += separator + cell_of(text);
    separator = ",";
  }
  return row;
}

}  // namespace tenon::io
