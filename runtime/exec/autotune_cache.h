// SPDX-License-Identifier: Apache-2.0
// exec/autotune_cache.h - the choices that a backend has measured, kept in a file between runs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tenon::exec {

/// Values by key, read from a file at the first use and written back after each change.
///
/// The file says which build of the backend measured, and has a checksum. A file of another build is replaced. A file that is damaged is
/// removed with a warning: what it held is measured again. A file that cannot be written is a warning, once.
/// Threads  any. Processes that write one file at the same time keep each other's entries, but for those of the same moment.
class AutotuneCache {
 public:
  /// `file`: empty if entries are kept in memory only. `build`: the version and the build of the backend.
  AutotuneCache(std::filesystem::path file, std::string build) : file_(std::move(file)), build_(std::move(build)) {}

  /// Copies at most `capacity_bytes` of the value. Returns its whole size, 0 if there is none.
  std::uint64_t get(const std::string& key, void* out_value, std::uint64_t capacity_bytes);
  void put(const std::string& key, std::span<const unsigned char> value);

 private:
  using Entries = std::map<std::string, std::vector<unsigned char>>;

  Entries& entries();
  std::optional<Entries> read() const;
  void write();

  std::filesystem::path file_;
  std::string build_;
  std::mutex mutex_;
  std::optional<Entries> entries_;
};

}  // namespace tenon::exec
