// SPDX-License-Identifier: Apache-2.0
// Tables, lines for a terminal, and counts in sentences.
#include "core/table.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "io/utf8.h"
#include "testing.h"
#include "text/counted.h"

using namespace tenon;
using namespace tenon::test;

TEST_CASE("tables: the width of a text is that of its characters in a terminal") {
  CHECK(display_width("") == 0);
  CHECK(display_width("node") == 4);
  CHECK(display_width("\u00fcber") == 4);
  CHECK(display_width("u\u0308ber") == 4);            // a combining mark
  CHECK(display_width("\u5c64/\u7b2c1") == 6);        // wide characters
  CHECK(display_width("\U0001F600") == 2);            // an emoji
  CHECK(display_width(std::string(3, '\x80')) == 3);  // not UTF-8
  CHECK(display_width(std::string("a\0b", 3)) == 3);  // a zero
}

TEST_CASE("tables: columns are aligned for characters of any width") {
  Table table({"node", "us"});
  table.add({"\u00fcber/\u5c64", "1.5"});
  table.add({"b", "10"});
  CHECK(table.str() ==
        "node     us\n"
        "\u00fcber/\u5c64  1.5\n"
        "b        10\n");
  CHECK(table.width() == 12);
  table.align_right({1});
  CHECK(table.str() ==
        "node      us\n"
        "\u00fcber/\u5c64  1.5\n"
        "b         10\n");
}

TEST_CASE("tables: names are shortened to 24 columns, or to 16 where only that suffices") {
  const std::string name(40, 'x');
  Table table({"node", "device", "kernel"});
  table.add({name, "openblas:0", name});
  CHECK(table.width() == 94);
  const auto longest = [](const std::string& text) {
    std::size_t longest_line = 0;
    for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != text.npos; begin = end + 1)
      longest_line = std::max(longest_line, end - begin);
    return longest_line;
  };
  const auto at = [&](std::size_t columns) { return longest(table.str(columns, std::vector<std::size_t>{0, 2})); };
  CHECK(at(0) == 94);
  CHECK(at(94) == 94);
  CHECK(at(80) == 80);
  CHECK(at(62) == 62);  // 24, 10, 24
  CHECK(at(61) == 61);
  CHECK(at(46) == 46);  // 16, 10, 16
  CHECK(at(45) == 62);  // too narrow
}

TEST_CASE("tables: bytes that are not UTF-8 are shortened, too") {
  for (const char byte : {'\x80', '\xFF'}) CHECK(shortened(std::string(100, byte), 40).size() <= 40);
}

TEST_CASE("tables: a shortened text has at most the width that it is given, and no part of a character") {
  for (const char* const character : {"\u00e4", "\u5c64"}) {
    std::string text = "layer/";
    for (int i = 0; i < 12; ++i) text += character;
    text += "/MatMul/matmul/quantize_linear";
    for (std::size_t width = 32; width < display_width(text); ++width) {
      const std::string part = shortened(text, width);
      CAPTURE(part);
      CHECK(display_width(part) <= width);
      CHECK(display_width(part) + 3 > width);
      const std::size_t middle = part.find("...");
      CHECK(text.starts_with(part.substr(0, middle)));
      CHECK(text.ends_with(part.substr(middle + 3)));
      CHECK((static_cast<unsigned char>(part[middle + 3]) & 0xC0) != 0x80);
      CHECK((static_cast<unsigned char>(text[middle]) & 0xC0) != 0x80);
    }
    CHECK(shortened(text, display_width(text)) == text);
  }
  CHECK(shortened("short", 2) == "short");
}

TEST_CASE("text: lines are wrapped at spaces") {
  const std::string text = "copy hidden: dense on openblas:0, 48 bytes: takes rows without gaps\nshort\n";
  CHECK(wrapped(text, 0) == text);
  CHECK(wrapped(text, 67) == text);
  CHECK(wrapped(text, 66) == "copy hidden: dense on openblas:0, 48 bytes: takes rows without\n  gaps\nshort\n");
  CHECK(wrapped(text, 30) == "copy hidden: dense on\n  openblas:0, 48 bytes: takes\n  rows without gaps\nshort\n");
  CHECK(wrapped("a longer_than_the_line b", 8, 4) == "a\n    longer_than_the_line\n    b");
  CHECK(wrapped("  indented text", 12) == "  indented\n  text");
  CHECK(wrapped("", 8) == "");
  CHECK(wrapped("\n\n", 8) == "\n\n");
}

TEST_CASE("text: a count has its noun in the singular or the plural") {
  CHECK(counted(1, "node") == "1 node");
  CHECK(counted(std::size_t{0}, "node") == "0 nodes");
  CHECK(counted(std::int64_t{-1}, "node") == "-1 nodes");
  CHECK(counted(1u, "copy", "copies") == "1 copy");
  CHECK(counted(2u, "copy", "copies") == "2 copies");
}
