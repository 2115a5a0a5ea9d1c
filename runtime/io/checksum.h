// SPDX-License-Identifier: Apache-2.0
// io/checksum.h - the checksum of what a file holds, by which damage is found.
#pragma once

#include <cstdint>
#include <vector>

namespace tenon::io {

/// The CRC-32 of zip and PNG. It finds every damage of up to 32 adjacent bits, and others but for 1 in 2^32.
class Crc32 {
 public:
  void add(const void* bytes, std::uint64_t size_bytes);
  std::uint32_t value() const { return value_; }

 private:
  std::uint32_t value_ = 0;
};

/// What is known of a safetensors file from elsewhere: checksums of its parts, so that what is read can be checked without the rest.
struct FileChecksum {
  std::uint64_t size_bytes = 0;
  std::uint32_t crc32 = 0;             ///< of the whole file, if that of its header is absent
  std::uint32_t header_crc32 = 0;      ///< of the header and of its length before it
  std::vector<std::uint32_t> tensors;  ///< CRC-32 of each tensor, in the order of the data
  bool has_parts = false;              ///< whether there are checksums of the parts, or one of the whole file
};

}  // namespace tenon::io
