// SPDX-License-Identifier: Apache-2.0
// io/gzip.h - reads whole files, plain or gzip.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/limits.h"

namespace tenon::io {

/// A file that may be gzip (detected by its first bytes; all members), read whole and inflated on request. A reader of a format whose
/// header states the size inflates the header first, and then no more than was stated.
///
/// Errors  name the path: not found, a folder, unreadable, more than Limit::file_bytes, gzip data that is truncated, damaged or followed by
///         other data.
class MaybeGzip {
 public:
  explicit MaybeGzip(const std::string& path);

  /// The first `max_bytes` of the content; all of it, checked to its end, if it is shorter.
  std::vector<std::uint8_t> head(std::uint64_t max_bytes) const&;
  std::vector<std::uint8_t> head(std::uint64_t max_bytes) &&;

  bool is_packed() const;

 private:
  std::string path_;
  std::vector<std::uint8_t> bytes_;
};

/// The content of a file, plain or gzip. Errors also: more than Limit::inflated_bytes of gzip content.
std::vector<std::uint8_t> read_maybe_gzip(const std::string& path);

/// The bytes of a file, without decompression.
std::vector<std::uint8_t> read_file(const std::string& path, Limit most = Limit::file_bytes);

}  // namespace tenon::io
