// SPDX-License-Identifier: Apache-2.0
// data/disk_cache.h - decoded samples in memory-mapped files whose names identify their source and options.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/data.h>

namespace tenon::data {

/// A 128-bit hash of file contents. Not cryptographic.
class ContentKey {
 public:
  void add(std::string_view bytes);
  /// Adds the name, size and content of a file. Errors  the file cannot be read.
  void add_file(const std::string& path);
  /// 32 hexadecimal digits.
  std::string str() const;

 private:
  void add_word(std::uint64_t word);

  std::uint64_t low_ = 0xcbf29ce484222325u, high_ = 0x9ae16a3b2f90404fu;
};

/// A data set in a mapped file and its metadata.
struct CachedPart {
  std::shared_ptr<const ArrayDataset> data;
  std::map<std::string, std::string> metadata;
};

/// Files "<label>-<place>-<content>-<options>.safetensors": the source, its path, a hash of its content, and a hash of the options.
///
/// Threads  processes may share a folder: files are created atomically.
class DiskCache {
 public:
  /// Creates the folder. Errors  it cannot be created.
  explicit DiskCache(const std::string& folder);

  /// `folder`, or if empty $XDG_CACHE_HOME/tenon/data or ~/.cache/tenon/data. Errors  neither variable is set.
  static std::string folder_or_default(const std::string& folder);

  std::string path_of(const std::string& label, const std::string& place, const ContentKey& content, const ContentKey& options) const;
  /// Maps a file that store() wrote. Without data if there is no file or, with a warning, if it is damaged.
  CachedPart open(const std::string& path) const;
  /// Writes the samples of `data`, which has one input and one target, and removes outdated files: the same label and place with another
  /// content. Errors  those of writing a file.
  void store(const std::string& path, const Dataset& data, std::map<std::string, std::string> metadata) const;

 private:
  std::string folder_;
};

}  // namespace tenon::data
