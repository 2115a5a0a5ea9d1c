// SPDX-License-Identifier: Apache-2.0
#include "platform/temporary_name.h"

#include <cstddef>
#include <random>

namespace tenon::platform {

std::string temporary_name(const std::string& name) {
  std::size_t length = 200;  // names have at most 255 bytes
  if (name.size() <= length) {
    length = name.size();
  } else {
    while (length > 0 && (static_cast<unsigned char>(name[length]) & 0xc0u) == 0x80u) --length;  // whole characters of UTF-8
  }
  std::string result = "." + name.substr(0, length) + ".";
  std::random_device random;
  for (int word = 0; word < 2; ++word) {
    for (unsigned bits = random(), digit = 0; digit < 8; ++digit, bits >>= 4) result += "0123456789abcdef"[bits & 15u];
  }
  return result + ".tmp";
}

}  // namespace tenon::platform
