// SPDX-License-Identifier: Apache-2.0
// Reading whole files, plain and gzip.
#include "io/gzip.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>

#include <tenon/error.h>

#include "gzip_writer.h"
#include "platform/environment.h"
#include "temporary_folder.h"

using namespace tenon;
using namespace tenon::test;

namespace {
std::string text_of(const std::vector<std::uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}

/// Sets a variable of the environment during its lifetime.
struct Variable {
  Variable(const char* variable, const char* value) : name(variable) { platform::set_environment_variable(name, value); }
  ~Variable() { platform::remove_environment_variable(name); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  const char* name;
};

/// Incompressible bytes.
std::string noise(std::size_t size) {
  std::string bytes(size, '\0');
  std::uint32_t state = 1;
  for (char& byte : bytes) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<char>(state >> 24);
  }
  return bytes;
}
}  // namespace

TEST_CASE_FIXTURE(InFolder, "gzip: a plain file is read as it is, with any name") {
  CHECK(text_of(io::read_maybe_gzip(folder.write("plain.gz", "hello"))) == "hello");
  CHECK(io::read_maybe_gzip(folder.write("empty", "")).empty());
  CHECK(text_of(io::read_maybe_gzip(folder.write("one", "\x1f"))) == "\x1f");
}

TEST_CASE_FIXTURE(InFolder, "gzip: gzip content is inflated, with any name") {
  for (const std::string& content : {std::string(), std::string("hello"), std::string(1000000, 'a'), noise(300000)}) {
    CHECK(text_of(io::read_maybe_gzip(folder.write("packed", gzip(content)))) == content);
  }
}

TEST_CASE_FIXTURE(InFolder, "gzip: concatenated members are one content") {
  const std::string path = folder.write("two", gzip(std::string(100000, 'x')) + gzip("tail"));
  CHECK(text_of(io::read_maybe_gzip(path)) == std::string(100000, 'x') + "tail");
}

TEST_CASE_FIXTURE(InFolder, "gzip: a missing file is reported") {
  const std::string path = folder.file("absent.gz");
  CHECK_ERROR((path + ": file not found").c_str(), io::read_maybe_gzip(path));
}

TEST_CASE_FIXTURE(InFolder, "gzip: a folder is rejected") {
  CHECK_ERROR((folder.path() + ": expected a file, got a folder").c_str(), io::read_maybe_gzip(folder.path()));
}

TEST_CASE_FIXTURE(InFolder, "gzip: truncation at any byte is reported with the available bytes") {
  const std::string whole = gzip(noise(5000));
  for (const std::size_t size : {std::size_t{2}, std::size_t{9}, std::size_t{1000}, whole.size() - 8, whole.size() - 1}) {
    const std::string path = folder.write("cut.gz", whole.substr(0, size));
    const std::string begin = path + ": gzip data is truncated: it ends after " + std::to_string(size) + " bytes (";
    CHECK_ERROR_CONTAINS(begin, io::read_maybe_gzip(path));
  }
}

TEST_CASE_FIXTURE(InFolder, "gzip: damage is reported with position and reason") {
  std::string bytes = gzip("some content to be checked");
  bytes[bytes.size() - 6] ^= 0x40;  // within the checksum
  std::string path = folder.write("sum.gz", bytes);
  CHECK_ERROR_CONTAINS(path + ": gzip data is damaged near byte ", io::read_maybe_gzip(path));
  CHECK_ERROR_CONTAINS("incorrect data check; download the file again", io::read_maybe_gzip(path));
  path = folder.write("method.gz", std::string("\x1f\x8b\x07\x00\x00\x00\x00\x00\x00\x03 and more", 19));
  CHECK_ERROR_CONTAINS("unknown compression method", io::read_maybe_gzip(path));
}

TEST_CASE_FIXTURE(InFolder, "gzip: bytes after the end are reported") {
  const std::string path = folder.write("more.gz", gzip("content") + "xyz");
  CHECK_ERROR_CONTAINS("3 trailing bytes after the gzip data", io::read_maybe_gzip(path));
}

TEST_CASE_FIXTURE(InFolder, "gzip: content beyond the limit is rejected, content of exactly the limit is not") {
  const std::string remedy = " raises this limit for files that you trust";
  const std::string path = folder.write("bomb.gz", gzip(std::string(100000, '\0')));
  {
    const Variable limit("TENON_LIMIT_INFLATED_BYTES", "100000");
    CHECK(io::read_maybe_gzip(path).size() == 100000);
  }
  {
    const Variable limit("TENON_LIMIT_INFLATED_BYTES", "99999");
    CHECK_ERROR(
        path + ": expected at most 99999 bytes of content in a gzip file, got more; the environment's TENON_LIMIT_INFLATED_BYTES" + remedy,
        io::read_maybe_gzip(path));
  }
  const std::string plain = folder.write("plain", "hello");
  const Variable limit("TENON_LIMIT_FILE_BYTES", "4");
  CHECK_ERROR(plain + ": expected at most 4 bytes of a file that is read whole, got 5; the environment's TENON_LIMIT_FILE_BYTES" + remedy,
              io::read_maybe_gzip(plain));
}

TEST_CASE_FIXTURE(InFolder, "gzip: the head of a file is inflated without the rest, damage behind it is not seen") {
  const std::string whole = gzip(noise(100000));
  const io::MaybeGzip file(folder.write("cut.gz", whole.substr(0, whole.size() / 2)));
  CHECK(text_of(file.head(100)) == noise(100000).substr(0, 100));
  CHECK_ERROR_CONTAINS("gzip data is truncated", file.head(100000));
  CHECK(text_of(io::MaybeGzip(folder.write("plain", "hello")).head(2)) == "he");
}

TEST_CASE("limits: a variable that is not a positive integer is reported") {
  for (const char* text : {"0", "-1", "16G", "many"}) {
    const Variable limit("TENON_LIMIT_FILE_BYTES", text);
    CHECK_ERROR("environment TENON_LIMIT_FILE_BYTES: expected a positive integer, got '" + std::string(text) + "'",
                io::limit(io::Limit::file_bytes));
  }
}

TEST_CASE("limits: the page of the documentation has every row of the table") {
  std::ifstream page(TENON_SOURCE_DIRECTORY "/docs/limits.md");
  const std::string text((std::istreambuf_iterator<char>(page)), {});
#define CHECK_ROW(name, value, what)                                        \
  CHECK(contains(text, "| `" #name "` | " + std::to_string(value) + " |")); \
  CHECK(contains(text, what));
  TENON_LIMITS(CHECK_ROW)
#undef CHECK_ROW
}

TEST_CASE("limits: memory that the system does not have is OUT_OF_MEMORY with the size") {
  // More than a vector can have: AddressSanitizer ends the process where operator new would throw.
  CHECK_ERROR("x.npy: out of memory: its content needs 18446744073709551615 bytes", io::new_buffer("x.npy", UINT64_MAX));
}

TEST_CASE_FIXTURE(InFolder, "gzip: a wrong size in the trailer is an error") {
  std::string bytes = gzip("short");
  for (std::size_t i = 1; i <= 4; ++i) bytes[bytes.size() - i] = '\xff';
  const std::string path = folder.write("liar.gz", bytes);
  CHECK_ERROR_CONTAINS("incorrect length check", io::read_maybe_gzip(path));
}
