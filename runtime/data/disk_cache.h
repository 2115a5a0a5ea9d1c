// data/disk_cache.h - decoded samples in files that are mapped, named by what they were made of.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/data.h>

namespace tenon::data {

/// 128 bits of a content; equal contents give equal keys, others differ for all practical purposes. Not against an adversary.
class ContentKey {
 public:
  void add(std::string_view bytes);
  /// Name, size and all bytes. Errors  a file that cannot be read.
  void add_file(const std::string& path);
  /// 32 hexadecimal digits.
  std::string str() const;

 private:
  void add_word(std::uint64_t word);

  std::uint64_t low_ = 0xcbf29ce484222325u, high_ = 0x9ae16a3b2f90404fu;
};

/// A data set in a mapped file, and what was stored beside it.
struct CachedPart {
  std::shared_ptr<const ArrayDataset> data;
  std::map<std::string, std::string> metadata;
};

/// Files "<label>-<place>-<content>-<options>.safetensors": what was read, from where, with which bytes, and how it was decoded.
///
/// Threads  any number of processes may share a folder: files appear whole.
class DiskCache {
 public:
  /// Makes the folder. Errors  it cannot be made.
  explicit DiskCache(const std::string& folder);

  /// "" for none: $XDG_CACHE_HOME/tenon/data, or ~/.cache/tenon/data. Errors  neither variable is set.
  static std::string folder_or_default(const std::string& folder);

  std::string path_of(const std::string& label, const std::string& place, const ContentKey& content, const ContentKey& options) const;
  /// The samples of a file that store() made. Without data if there is none, or one that is damaged, which is said in the log.
  CachedPart open(const std::string& path) const;
  /// Writes what `data` gathers, and removes files of the same label and place whose content was another: nobody asks for them again.
  /// Errors  those of writing a file.
  void store(const std::string& path, const Dataset& data, std::map<std::string, std::string> metadata) const;

 private:
  std::string folder_;
};

}  // namespace tenon::data
