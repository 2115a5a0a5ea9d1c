// SPDX-License-Identifier: Apache-2.0
// text/counted.h - counts in sentences.
#pragma once

#include <string>
#include <string_view>

namespace tenon {

/// "1 copy", "0 copies", "2 copies", of a number of any integer type.
template <class Count>
std::string counted(Count count, std::string_view one, std::string_view several) {
  std::string text = std::to_string(count) + " ";
  text += count == 1 ? one : several;
  return text;
}
/// "1 byte", "2 bytes", of a noun whose plural ends with -s.
template <class Count>
std::string counted(Count count, std::string_view noun) {
  return counted(count, noun, std::string(noun) + "s");
}

}  // namespace tenon
