// SPDX-License-Identifier: Apache-2.0
#include "io/checksum.h"

#include <zlib.h>

#include <cstddef>

namespace tenon::io {

void Crc32::add(const void* bytes, std::uint64_t size_bytes) {
  if (size_bytes == 0) return;  // zlib takes a null pointer as a request for the initial value
  value_ = static_cast<std::uint32_t>(crc32_z(value_, static_cast<const Bytef*>(bytes), static_cast<std::size_t>(size_bytes)));
}

}  // namespace tenon::io
