// SPDX-License-Identifier: Apache-2.0
// io/utf8.h - the characters of a text.
#pragma once

#include <cstddef>
#include <string_view>

namespace tenon {

/// The bytes of the character at the start of the text; 0 if the text is empty, or begins with a zero or with what is not UTF-8.
///
/// Source  The Unicode Standard 15, section 3.9, table 3-7: well-formed UTF-8.
std::size_t utf8_length(std::string_view text);

/// Where the character of UTF-8 begins that has the byte at this position; the position itself at the end of the text and beyond.
std::size_t character_begin(std::string_view text, std::size_t at);

/// The columns of a terminal that a text takes: 2 for a wide character, as of Chinese, 0 for one that combines with that before it, 1 for
/// any other and for a byte that is not UTF-8.
///
/// Source  The Unicode Standard, annex 11: East Asian width W and F, here in whole blocks.
std::size_t display_width(std::string_view text);

}  // namespace tenon
