// SPDX-License-Identifier: Apache-2.0
// io/zip.h - zip archives with stored or deflated members and 64-bit sizes, fully validated.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/atomic_file.h"
#include "io/input_file.h"

namespace tenon::io {

/// Reads an archive. The directory is kept in memory; members are read one at a time.
///
/// Errors  not an archive, a damaged directory, several disks, encryption, a method other than stored and deflated, inconsistent sizes,
///         damaged data, a wrong CRC; the text names the path and the member, if any.
/// Threads  one at a time.
class ZipReader {
 public:
  explicit ZipReader(const std::string& path);

  /// Names of the members in the order of the directory.
  const std::vector<std::string>& names() const { return names_; }
  /// The content of member i.
  std::vector<std::uint8_t> read(std::size_t i) const;

 private:
  struct Entry {
    std::uint16_t flags = 0, method = 0;
    std::uint32_t crc = 0;
    std::uint64_t packed_bytes = 0, size_bytes = 0, offset = 0;
  };
  void read_directory(std::uint64_t begin, std::uint64_t size_bytes, std::uint64_t count);
  void check_overlap() const;
  void read_at(std::uint64_t offset, void* out_bytes, std::uint64_t size_bytes) const;
  std::uint64_t data_offset(std::size_t i) const;
  [[noreturn]] void fail(const std::string& reason) const;
  [[noreturn]] void fail(std::size_t i, const std::string& reason) const;

  std::string path_;
  OpenFile file_;
  std::vector<std::string> names_;
  std::vector<Entry> entries_;
};

/// Writes an archive member by member; finish() creates the file atomically.
///
/// Errors  those of AtomicFile.
class ZipWriter {
 public:
  explicit ZipWriter(const std::string& path) : path_(path), file_(path) {}

  /// Adds a member that consists of two pieces, so that a header need not be copied in front of its data.
  void add(const std::string& name, const std::string& head, const void* body, std::uint64_t body_bytes, bool deflate);
  void finish();

 private:
  std::string path_;
  AtomicFile file_;
  std::string directory_;
  std::uint64_t count_ = 0, written_bytes_ = 0;
};

}  // namespace tenon::io
