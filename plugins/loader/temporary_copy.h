// SPDX-License-Identifier: Apache-2.0
// loader/temporary_copy.h - a copy of a library's file under a name of its own.
#pragma once

#include <filesystem>

namespace tenon::loader {

/// A copy of a file, removed when this object is destroyed. It is next to the file if that folder can be written, so that a library still
/// finds what it names relative to itself ($ORIGIN), else in the system's temporary folder.
class TemporaryCopy {
 public:
  /// Errors  a LoadError if neither folder takes the copy.
  explicit TemporaryCopy(const std::filesystem::path& file);
  ~TemporaryCopy();
  TemporaryCopy(const TemporaryCopy&) = delete;
  TemporaryCopy& operator=(const TemporaryCopy&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace tenon::loader
