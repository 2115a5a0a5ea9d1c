// SPDX-License-Identifier: Apache-2.0
// The file of measured choices: kept between runs, not trusted.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "exec/autotune_cache.h"
#include "log_file.h"
#include "temporary_folder.h"
#include "testing.h"

using namespace tenon::test;
using tenon::exec::AutotuneCache;

namespace {

std::string value_of(AutotuneCache& cache, const std::string& key) {
  std::string value(64, '\0');
  value.resize(cache.get(key, value.data(), value.size()));
  return value;
}

void put(AutotuneCache& cache, const std::string& key, const std::string& value) {
  cache.put(key, {reinterpret_cast<const unsigned char*>(value.data()), value.size()});
}

}  // namespace

TEST_CASE("autotune cache: choices are kept between runs of one build") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.file("made/autotune.json");
  {
    AutotuneCache first(file, "1.0 gcc");
    CHECK(value_of(first, "conv") == "");
    put(first, "conv", std::string("a\0\xff", 3));
    put(first, "gemm", "");
    put(first, "conv", std::string("b\0\xff", 3));
  }
  AutotuneCache second(file, "1.0 gcc");
  CHECK(value_of(second, "conv") == std::string("b\0\xff", 3));
  char byte = 0;
  CHECK(second.get("conv", &byte, 1) == 3);
  CHECK(byte == 'b');
  AutotuneCache another(file, "1.1 gcc");
  CHECK(value_of(another, "conv") == "");
}

TEST_CASE("autotune cache: processes keep each other's entries") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.file("autotune.json");
  AutotuneCache first(file, "1"), second(file, "1");
  CHECK(value_of(first, "a") == "");
  CHECK(value_of(second, "a") == "");
  put(first, "a", "1");
  put(second, "b", "2");
  AutotuneCache third(file, "1");
  CHECK(value_of(third, "a") == "1");
  CHECK(value_of(third, "b") == "2");
}

TEST_CASE("autotune cache: a damaged file is removed with a warning, and written anew") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.file("autotune.json");
  {
    AutotuneCache cache(file, "1");
    put(cache, "conv", "engine 7");
  }
  const std::string whole = folder.read("autotune.json");
  std::string poisoned = whole;
  poisoned.replace(poisoned.find("656e67"), 6, "656e68");
  for (const std::string& damaged : {poisoned, whole.substr(0, whole.size() / 2), std::string("[]"), std::string()}) {
    CAPTURE(damaged);
    std::ofstream(file) << damaged;
    AutotuneCache cache(file, "1");
    std::string kept;
    const std::string warning = logged([&] { kept = value_of(cache, "conv"); });
    CHECK(kept == "");
    CHECK(contains(warning, "the measurements in " + file.string() + " are damaged"));
    CHECK_FALSE(std::filesystem::exists(file));
    put(cache, "conv", "engine 7");
    CHECK(folder.read("autotune.json") == whole);
  }
}

TEST_CASE("autotune cache: without a place for a file, choices are kept in memory") {
  AutotuneCache cache({}, "1");
  put(cache, "conv", "engine 7");
  CHECK(value_of(cache, "conv") == "engine 7");

  const TemporaryFolder folder;
  const std::filesystem::path blocked = folder.file("file");
  std::ofstream(blocked) << "not a folder";
  AutotuneCache unwritable(blocked / "autotune.json", "1");
  CHECK(contains(logged([&] { put(unwritable, "conv", "engine 7"); }), "measurements are not kept for later runs"));
  CHECK(logged([&] { put(unwritable, "gemm", "engine 8"); }) == "");
  CHECK(value_of(unwritable, "conv") == "engine 7");
}
