// SPDX-License-Identifier: Apache-2.0
// loading.h - helpers of the loader's tests: plugins of the build, and their records.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include "loader/find.h"
#include "loader/loader.h"
#include "loader/plain_host.h"
#include "platform/conventions.h"
#include "platform/path.h"
#include "platform/temporary_name.h"

namespace fs = std::filesystem;
using namespace tenon::loader;

inline const fs::path plugins = FAULT_DIRECTORY;

inline fs::path file_of(const std::string& name) {
  return plugins / name / backend_file_name(name);
}

/// The remedy for a file that this system cannot open.
inline std::string put_own_build() {
  return "put a backend built for " + std::string(tenon::platform::conventions().system) + "-";
}

inline bool contains(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return true;
  MESSAGE("'" << text << "' does not contain '" << part << "'");
  return false;
}
inline bool has(const std::vector<std::string>& sentences, const std::string& part) {
  return std::any_of(sentences.begin(), sentences.end(), [&](const std::string& s) { return s.find(part) != std::string::npos; });
}
inline bool has_warning(const Record& record, const std::string& part) {
  return has(record.warnings, part);
}
inline bool is_exposed(const Record& record, const std::string& part) {
  return has(record.exposures, part) && !has(record.warnings, part);  // an exposure is not the backend's fault
}

/// An empty folder, removed at the end.
class Scratch {
 public:
  Scratch() : path_(fs::temp_directory_path() / tenon::platform::temporary_name("tenon-fault")) { fs::create_directory(path_); }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);  // a library that is still loaded keeps its file on Windows
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// Loads from files and folders; the host outlives the result.
class Loaded {
 public:
  explicit Loaded(const std::vector<fs::path>& paths, Options options = {}) {
    for (const fs::path& path : paths) options.places.push_back({path, "command line"});
    options.make_host = [this](const tenon_backend_info&, std::uint32_t) { return host.table(); };
    result = load(options);
  }
  const Record& only() const {
    REQUIRE(result.records.size() == 1);
    return result.records.front();
  }

  PlainHost host;
  Result result;
};

/// Checks that a failure has a stage, a code, a reason, a remedy, and no Backend.
inline void check_failure(const std::string& name, Stage reached, tenon_status status, const std::string& text, const std::string& remedy) {
  CAPTURE(name);
  const Loaded loaded({file_of(name), file_of("healthy")});
  REQUIRE(loaded.result.records.size() == 2);
  const Record& record = loaded.result.records[0];
  CHECK_FALSE(record.healthy);
  CHECK(name_of(record.reached) == std::string(name_of(reached)));
  CHECK(record.status == status);
  CHECK(contains(record.text, text));
  CHECK(contains(record.remedy, remedy));
  CHECK(record.devices.empty());
  CHECK(contains(describe(record), record.text));
  // One bad candidate never stops the others.
  CHECK(loaded.result.records[1].healthy);
  const auto& backends = loaded.result.backends;
  CHECK(std::any_of(backends.begin(), backends.end(), [](const auto& backend) { return backend->name() == "healthy"; }));
}

inline std::string bytes_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}
inline void write_plugin(const std::string& name, const std::string& bytes) {
  fs::create_directories(plugins / name);
  std::ofstream(file_of(name), std::ios::binary) << bytes;
}
