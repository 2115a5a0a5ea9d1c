// SPDX-License-Identifier: Apache-2.0
// The files in which the opencl backend keeps compiled kernels: what was changed, cut off or stored under another key is never used.
#include "backends/opencl/kernel/binary_cache.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "temporary_folder.h"

namespace tenon::opencl {
namespace {

const std::string key = "device\ndriver\n-DT=float\nkernel void f() {}", bytes("machine\0code", 12);

std::string content_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}
void replace(const std::string& file, const std::string& content) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << content;
}

TEST_CASE("opencl binary cache: what was stored is found, under its own key only") {
  const test::TemporaryFolder folder;
  const std::string file = folder.file(cache_file_name(key));
  std::string read;
  CHECK(read_cache_file(file, key, read) == CacheResult::absent);
  write_cache_file(file, key, bytes);
  CHECK(read_cache_file(file, key, read) == CacheResult::found);
  CHECK(read == bytes);
  CHECK(read_cache_file(file, key + " ", read) == CacheResult::absent);
  CHECK(cache_file_name(key) != cache_file_name(key + " "));
  CHECK(std::distance(std::filesystem::directory_iterator(std::filesystem::path(file).parent_path()), {}) == 1);  // no temporary file stays
}

TEST_CASE("opencl binary cache: a file of any other length, or with any other byte, is damaged") {
  const test::TemporaryFolder folder;
  const std::string file = folder.file("kernels.bin");
  write_cache_file(file, key, bytes);
  const std::string whole = content_of(file);
  std::string read;
  for (std::size_t length = 0; length < whole.size(); ++length) {
    replace(file, whole.substr(0, length));
    CHECK(read_cache_file(file, key, read) == CacheResult::damaged);
  }
  replace(file, whole + "x");
  CHECK(read_cache_file(file, key, read) == CacheResult::damaged);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    replace(file, changed);
    CHECK(read_cache_file(file, key, read) == CacheResult::damaged);
  }
  CHECK(read.empty());
}

TEST_CASE("opencl binary cache: a folder that does not exist is no error") {
  const test::TemporaryFolder folder;
  const std::string file = folder.file("absent/kernels.bin");
  write_cache_file(file, key, bytes);
  std::string read;
  CHECK(read_cache_file(file, key, read) == CacheResult::absent);
}

}  // namespace
}  // namespace tenon::opencl
