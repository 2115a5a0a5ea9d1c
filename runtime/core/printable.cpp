// SPDX-License-Identifier: Apache-2.0
#include "core/printable.h"

#include <fmt/core.h>

namespace tenon {

std::string printable(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    // U+0080 to U+009F, in UTF-8, are control characters too.
    const bool second = byte == 0xc2 && i + 1 < text.size() && (static_cast<unsigned char>(text[i + 1]) & 0xe0) == 0x80;
    if (second) {
      safe += fmt::format("\\u{:04x}", static_cast<unsigned char>(text[++i]));
    } else if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f) {
      safe += fmt::format("\\u{:04x}", byte);
    } else {
      safe += text[i];
    }
  }
  return safe;
}

}  // namespace tenon
