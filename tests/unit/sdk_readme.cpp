// SPDX-License-Identifier: Apache-2.0
// Snippets of the SDK's README occur in the sources.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace {

namespace fs = std::filesystem;
const fs::path source = TENON_SOURCE_DIRECTORY;

/// Collapses whitespace: indentation and line breaks do not matter.
std::string plain(const std::string& text) {
  std::istringstream words(text);
  std::string word, result;
  while (words >> word) result += word + ' ';
  return result;
}

std::string read(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

TEST_CASE("sdk: every snippet of the README occurs in the reference backend") {
  std::string code;
  for (const auto& entry : fs::recursive_directory_iterator(source / "backends" / "reference")) {
    if (entry.is_regular_file()) code += plain(read(entry.path()));
  }
  std::istringstream page(read(source / "plugins" / "sdk" / "README.md"));
  std::string line, piece;
  bool inside = false;
  int pieces = 0;
  const auto check = [&] {
    if (piece.empty()) return;
    CHECK_MESSAGE(code.find(plain(piece)) != std::string::npos, piece);
    ++pieces;
    piece.clear();
  };
  while (std::getline(page, line)) {
    if (line.rfind("```", 0) == 0) {
      inside = !inside;
      check();
    } else if (inside && plain(line) == "// ... ") {
      check();
    } else if (inside) {
      piece += line + '\n';
    }
  }
  CHECK_FALSE(inside);
  CHECK(pieces >= 8);
}

}  // namespace
