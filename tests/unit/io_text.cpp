// SPDX-License-Identifier: Apache-2.0
// Text for terminals and tables.
#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "core/printable.h"
#include "io/csv_row.h"

using namespace tenon;

TEST_CASE("text: control characters are escaped, and JSON stays the same JSON") {
  CHECK(printable("a\tb\n\xc3\xa9") == "a\tb\n\xc3\xa9");
  CHECK(printable("\x1b[2J\r\x7f") == "\\u001b[2J\\u000d\\u007f");
  CHECK(printable("\xc2\x9b") == "\\u009b");  // CSI, in UTF-8
  CHECK(printable(std::string_view("\0", 1)) == "\\u0000");
}

TEST_CASE("csv: a row has a separator between any two cells, and quotes where they are needed") {
  const auto row = [](const std::vector<std::string>& cells) { return io::csv_row(cells); };
  CHECK(row({}).empty());
  CHECK(row({"a", "b"}) == "a,b");
  CHECK(row({"", "b", ""}) == ",b,");
  CHECK(row({"", ""}) == ",");
  CHECK(row({"a,b", "say \"x\"", "two\nlines"}) == "\"a,b\",\"say \"\"x\"\"\",\"two\nlines\"");
}
