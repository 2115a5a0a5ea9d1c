// SPDX-License-Identifier: Apache-2.0
// The list of ONNX's tests that are left out, as docs/onnx.md shows it.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "conformance/onnx_left_out.h"

namespace kit = tenon::conformance;

namespace {

struct Row {
  std::string reason;
  std::vector<std::string> tests;
};

/// One row for each reason, in the order of the list.
std::vector<Row> rows() {
  std::vector<Row> rows;
  for (const kit::LeftOut& entry : kit::onnx_left_out()) {
    const std::string test = entry.test;
    auto row = std::ranges::find(rows, entry.reason, &Row::reason);
    if (row == rows.end()) row = rows.insert(rows.end(), Row{entry.reason, {}});
    row->tests.push_back(fmt::format("`{}`", test.substr(test.find('/') + 1)));
  }
  return rows;
}

}  // namespace

TEST_CASE("onnx: the page shows each test that is left out, with its reason") {
  std::ifstream file(TENON_SOURCE_DIRECTORY "/docs/onnx.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  REQUIRE(rows().size() > 3);
  for (const Row& row : rows()) {
    const std::string line = fmt::format("\n| {} | {} |\n", fmt::join(row.tests, ", "), row.reason);
    CHECK_MESSAGE(page.find(line) != std::string::npos, "docs/onnx.md: expected the line", line);
  }
  const std::string head = "| tests | why they are left out |\n|---|---|\n";
  const std::size_t start = page.find(head);
  REQUIRE(start != std::string::npos);
  const std::string table = page.substr(start + head.size(), page.find("\n\n", start) + 1 - start - head.size());
  CHECK(std::count(table.begin(), table.end(), '\n') == static_cast<std::ptrdiff_t>(rows().size()));
}
