// SPDX-License-Identifier: Apache-2.0
// Files of the system: read, replaced, copied, locked and mapped.
#include "platform/file.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>

#include "io/atomic_file.h"
#include "io/lock_file.h"
#include "io/output_target.h"
#include "platform/file_facts.h"
#include "platform/mapping.h"
#include "platform/memory.h"
#include "platform/processors.h"
#include "platform/temporary_name.h"
#include "temporary_folder.h"

namespace tenon {
namespace {

using test::InFolder;

TEST_CASE_FIXTURE(InFolder, "file: its kind, size and content") {
  const std::string path = folder.write("данные", "0123456789");
  platform::InputFile file = platform::open_input(path);
  CHECK_FALSE(file.error);
  CHECK(file.kind == platform::FileKind::regular);
  CHECK(file.size_bytes == 10);
  char text[8] = "";
  std::uint64_t got = 0;
  CHECK_FALSE(file.file.seek(7));
  CHECK_FALSE(file.file.read(text, sizeof text, got));
  CHECK(std::string(text, got) == "789");
  CHECK_FALSE(file.file.read(text, sizeof text, got));
  CHECK(got == 0);
  CHECK(platform::open_input(folder.path()).kind == platform::FileKind::folder);
  const platform::InputFile missing = platform::open_input(folder.file("missing"));
  CHECK(missing.error == std::errc::no_such_file_or_directory);
  CHECK_FALSE(platform::message_of(missing.error).empty());
  CHECK(platform::link_kind(path) == platform::LinkKind::none);
  CHECK(platform::link_kind(folder.file("missing")) == platform::LinkKind::none);
}

TEST_CASE_FIXTURE(InFolder, "file: the time of a write is told in less than seconds") {
  const std::string first = folder.write("a", "1");
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  const std::string second = folder.write("b", "2");
  const auto between = platform::write_time(platform::path_of(second)) - platform::write_time(platform::path_of(first));
  CHECK(between > std::chrono::milliseconds(10));
  CHECK(between < std::chrono::minutes(1));
  const auto age = std::filesystem::file_time_type::clock::now() - platform::write_time(platform::path_of(second));
  CHECK(std::chrono::abs(age) < std::chrono::minutes(1));
  CHECK(platform::write_time(platform::path_of(folder.file("none"))) == std::filesystem::file_time_type::min());
}

TEST_CASE_FIXTURE(InFolder, "file: a second name of the same file is a hard link") {
  const std::string path = folder.write("a", "text");
  std::filesystem::create_hard_link(platform::path_of(path), platform::path_of(folder.file("b")));
  CHECK(platform::link_kind(path) == platform::LinkKind::hard);
}

TEST_CASE_FIXTURE(InFolder, "atomic file: replaces a file, again and again, and leaves nothing else") {
  const std::string path = folder.file("файл 漢字");
  for (const char* content : {"one", "two, which is longer", ""}) {
    io::write_atomically(path, content);
    CHECK(folder.read("файл 漢字") == content);
    io::write_atomically(path, content, io::Durability::until_crash);
    CHECK(folder.read("файл 漢字") == content);
  }
  {
    io::AtomicFile unfinished(path);
    unfinished.write("half", 4);
  }
  CHECK(folder.read("файл 漢字").empty());
  CHECK(folder.count_files() == 1);
}

TEST_CASE_FIXTURE(InFolder, "atomic file: whoever reads a file keeps its content while it is replaced") {
  const std::string path = folder.write("a", "old");
  {
    const platform::InputFile reader = platform::open_input(path);
    io::write_atomically(path, "new");
    CHECK(folder.read("a") == "new");
    char text[8] = "";
    std::uint64_t got = 0;
    CHECK_FALSE(reader.file.read(text, sizeof text, got));
    CHECK(std::string(text, got) == "old");
  }
  CHECK(folder.count_files() == 1);
}

TEST_CASE_FIXTURE(InFolder, "atomic file: a file that is mapped is replaced, and the mapping keeps its content") {
  const std::string path = folder.write("a", "old content");
  platform::InputFile input = platform::open_input(path);
  std::error_code error;
  const platform::Mapping mapping(input.file, static_cast<std::size_t>(input.size_bytes), error);
  REQUIRE_FALSE(error);
  static_cast<void>(input.file.close());
  io::write_atomically(path, "new content");
  CHECK(folder.read("a") == "new content");
  CHECK(std::string(reinterpret_cast<const char*>(mapping.address()), mapping.size_bytes()) == "old content");
}

TEST_CASE_FIXTURE(InFolder, "temporary names: those of killed processes are removed after an hour") {
  const std::string old = folder.write(platform::temporary_name("a"), ""), young = folder.write(platform::temporary_name("a"), ""),
                    other = folder.write(platform::temporary_name("b"), ""), no_digits = folder.write(".a.0123.tmp", "");
  const auto long_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(2);
  for (const std::string& path : {old, other, no_digits}) std::filesystem::last_write_time(platform::path_of(path), long_ago);
  platform::remove_old_temporaries(folder.path(), "a");
  CHECK_FALSE(std::filesystem::exists(platform::path_of(old)));
  for (const std::string& path : {young, other, no_digits}) CHECK(std::filesystem::exists(platform::path_of(path)));
}

TEST_CASE_FIXTURE(InFolder, "file: a copy takes the place of another file") {
  const std::string from = folder.write("от", "content"), to = folder.write("к", "older and longer content");
  CHECK_FALSE(platform::copy_file(from, to));
  CHECK(folder.read("к") == "content");
  CHECK_FALSE(platform::copy_file(from, folder.file("new")));
  CHECK(folder.read("new") == "content");
  CHECK(platform::copy_file(folder.file("missing"), to) == std::errc::no_such_file_or_directory);
}

TEST_CASE_FIXTURE(InFolder, "file: a stream writes bytes as they are, and appends") {
  const std::string path = folder.file("log ü");
  for (const io::Growth growth : {io::Growth::truncate, io::Growth::append}) {
    std::FILE* const stream = io::open_growing_stream(path, growth);
    CHECK(std::fputs("a\nb\n", stream) >= 0);
    CHECK(std::fclose(stream) == 0);
  }
  CHECK(folder.read("log ü") == "a\nb\na\nb\n");
}

TEST_CASE_FIXTURE(InFolder, "lock file: a second one is refused with the name of the holder, and the file goes with the first") {
  const std::string path = folder.file("замок.lock");
  {
    const io::LockFile first(path);
    REQUIRE(first.held());
    CHECK_ERROR_CONTAINS(path + ": locked by process ", io::LockFile{path});
  }
  CHECK(folder.count_files() == 0);
  CHECK(io::LockFile{path}.held());
}

TEST_CASE_FIXTURE(InFolder, "mapping: the content of a file") {
  const std::string path = folder.write("карта", std::string(10000, 'x') + "end");
  platform::Mapping mapping;
  {
    const platform::InputFile file = platform::open_input(path);
    std::error_code error;
    mapping = platform::Mapping(file.file, static_cast<std::size_t>(file.size_bytes), error);
    REQUIRE_FALSE(error);
  }
  CHECK(mapping.size_bytes() == 10003);
  CHECK(std::memcmp(mapping.address() + 10000, "end", 3) == 0);
  mapping.release_pages();
  CHECK(std::memcmp(mapping.address() + 9999, "xend", 4) == 0);
}

TEST_CASE("memory: aligned, and by pages") {
  for (const std::size_t alignment : {std::size_t{8}, std::size_t{64}, std::size_t{4096}, std::size_t{1} << 21}) {
    void* const memory = platform::allocate_aligned(alignment, 2 * alignment);
    REQUIRE(memory != nullptr);
    CHECK(reinterpret_cast<std::uintptr_t>(memory) % alignment == 0);
    std::memset(memory, 1, 2 * alignment);
    platform::free_aligned(memory);
  }
  const std::size_t page = platform::page_size_bytes();
  CHECK(page >= 4096);
  auto* const pages = static_cast<unsigned char*>(platform::reserve_pages(3 * page));
  REQUIRE(pages != nullptr);
  REQUIRE(platform::open_pages(pages + page, page));
  CHECK(pages[page] == 0);
  pages[2 * page - 1] = 1;
  platform::free_pages(pages, 3 * page);
}

TEST_CASE("processors: at least one, and the thread runs on one") {
  CHECK(platform::usable_processors() >= 1);
  const int processor = platform::current_processor();
  CHECK(processor >= -1);
  platform::leave_processor(processor);
}

}  // namespace
}  // namespace tenon
