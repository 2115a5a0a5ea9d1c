// SPDX-License-Identifier: Apache-2.0
#include "io/utf8.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace tenon {
namespace {

struct Range {
  std::uint32_t first, last, width;
};
constexpr Range ranges[] = {
    {0x0300, 0x036F, 0},    // combining marks
    {0x1100, 0x115F, 2},    // Hangul Jamo
    {0x200B, 0x200F, 0},    // zero width space, joiners, directions
    {0x2E80, 0x303E, 2},    // radicals, punctuation
    {0x3041, 0xA4CF, 2},    // kana, ideographs, Yi
    {0xAC00, 0xD7A3, 2},    // Hangul
    {0xF900, 0xFAFF, 2},    // ideographs
    {0xFE00, 0xFE0F, 0},    // variation selectors
    {0xFE30, 0xFE6F, 2},    // compatibility forms
    {0xFF00, 0xFF60, 2},    // full-width forms
    {0xFFE0, 0xFFE6, 2},    // full-width signs
    {0x1F300, 0x1F64F, 2},  // pictographs
    {0x1F900, 0x1F9FF, 2},  // pictographs
    {0x20000, 0x3FFFD, 2},  // ideographs
};

/// The code point of a character of `size` bytes.
std::uint32_t code_point(std::string_view text, std::size_t size) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])); };
  std::uint32_t code = size == 1 ? byte(0) : byte(0) & (0xFFU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) code = code << 6 | (byte(i) & 0x3F);
  return code;
}

}  // namespace

std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto continues = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xBF) { return byte(i) >= low && byte(i) <= high; };
  const unsigned first = byte(0);
  if (first == 0) return 0;
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return continues(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) return continues(1, first == 0xE0 ? 0xA0 : 0x80, first == 0xED ? 0x9F : 0xBF) && continues(2) ? 3 : 0;
  if (first >= 0xF0 && first <= 0xF4) {
    return continues(1, first == 0xF0 ? 0x90 : 0x80, first == 0xF4 ? 0x8F : 0xBF) && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

std::size_t character_begin(std::string_view text, std::size_t at) {
  const auto is_inside = [&](std::size_t i) { return i < text.size() && (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80; };
  while (at > 0 && is_inside(at)) --at;
  return at;
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const std::size_t size = utf8_length(text);
    const std::uint32_t code = size > 0 ? code_point(text, size) : 0;
    const auto* const range = std::find_if(std::begin(ranges), std::end(ranges), [&](const Range& r) { return code <= r.last; });
    width += range != std::end(ranges) && code >= range->first ? range->width : 1;
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return width;
}

}  // namespace tenon
