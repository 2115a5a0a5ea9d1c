// SPDX-License-Identifier: Apache-2.0
// Paths as UTF-8, and longer than Windows's old limit of 260 characters.
#include "platform/path.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "platform/file.h"
#include "platform/folder.h"
#include "platform/system.h"
#include "temporary_folder.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;
using test::InFolder;
using test::TemporaryFolder;

TEST_CASE("path: text becomes a path and the same text again") {
  for (const std::string text : {"plain", "данные", "漢字 和 空白", "ü", "e\u0301", "🙂 emoji", ""}) {
    CAPTURE(text);
    CHECK(platform::text_of(platform::path_of(text)) == text);
    CHECK(platform::path_of(text) == platform::path_of(platform::text_of(platform::path_of(text))));
  }
  CHECK(platform::portable_text_of(platform::path_of("a") / platform::path_of("б")) == "a/б");
}

TEST_CASE_FIXTURE(InFolder, "path: normal, absolute and canonical ones") {
  const fs::path here = platform::path_of(folder.path());
  CHECK(platform::normal_path(platform::path_of("a/../b/./ü")) == platform::text_of(platform::path_of("b") / platform::path_of("ü")));
  CHECK(platform::normal_path(here / "a" / ".." / "b") == folder.file("b"));
  CHECK(platform::absolute_path(platform::text_of(here / "x" / ".." / "y")) == folder.file("y"));
  CHECK(platform::path_of(platform::absolute_path("relative")).is_absolute());
  std::error_code error;
  const std::string canonical = platform::canonical_path(platform::text_of(here / "."), error);
  CHECK_FALSE(error);
  CHECK(fs::equivalent(platform::path_of(canonical), here));
  platform::canonical_path(folder.file("missing"), error);
  CHECK(error == std::errc::no_such_file_or_directory);
}

TEST_CASE_FIXTURE(InFolder, "path: folders, files and their list in a path of more than 260 characters") {
  fs::path path = platform::path_of(folder.path());
  for (int i = 0; i < 6; ++i) path /= platform::path_of("длинное имя папки " + std::string(40, static_cast<char>('a' + i)));
  const std::string text = platform::text_of(path);
  CHECK(text.size() > 260);
  fs::create_directories(platform::path_of(text));
  CHECK(fs::is_directory(platform::path_of(text)));
  const std::string file = platform::text_of(platform::path_of(text) / platform::path_of("файл"));
  std::error_code error;
  platform::File written = platform::open_output(file, false, error);
  CHECK_FALSE(error);
  std::uint64_t put = 0;
  CHECK_FALSE(written.write("text", 4, put));
  CHECK_FALSE(written.close());
  CHECK(fs::file_size(platform::path_of(file)) == 4);
  const std::vector<platform::FolderEntry> entries = platform::entries_of(text, error);
  CHECK_FALSE(error);
  REQUIRE(entries.size() == 1);
  CHECK(entries[0].name == "файл");
  CHECK(entries[0].kind == platform::FileKind::regular);
  CHECK(platform::canonical_path(text, error).size() >= text.size());
  CHECK_FALSE(error);
}

TEST_CASE_FIXTURE(InFolder, "folder: its entries and their kinds; none of a folder that is missing") {
  std::filesystem::create_directory(platform::path_of(folder.file("папка")));
  folder.write("файл", "");
  std::error_code error;
  std::vector<platform::FolderEntry> entries = platform::entries_of(folder.path(), error);
  CHECK_FALSE(error);
  REQUIRE(entries.size() == 2);
  if (entries[0].name != "папка") std::swap(entries[0], entries[1]);
  CHECK(entries[0].kind == platform::FileKind::folder);
  CHECK(entries[1].name == "файл");
  CHECK(platform::entries_of(folder.file("missing"), error).empty());
  CHECK(error == std::errc::no_such_file_or_directory);
}

TEST_CASE("system: what it tells of this process and machine") {
  CHECK(platform::process_id() > 0);
  CHECK_FALSE(platform::host_name().empty());
  CHECK(platform::path_of(platform::executable_path()).stem() == "unit_platform");
  CHECK(platform::physical_memory_bytes() > (std::uint64_t{1} << 28));
  CHECK_FALSE(platform::operating_system().empty());
  CHECK_FALSE(platform::environment_variable("TENON_TEST_NO_SUCH_VARIABLE").has_value());
  CHECK_FALSE(platform::environment_variable("PATH").value_or("").empty());
  const std::tm time = platform::local_time(0);
  CHECK((time.tm_year == 69 || time.tm_year == 70));
}

}  // namespace
}  // namespace tenon
