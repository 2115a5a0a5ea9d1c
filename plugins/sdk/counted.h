// SPDX-License-Identifier: Apache-2.0
// counted.h - counts in sentences.
#pragma once

#include <string>

namespace tenon::sdk {

/// "1 address", "2 addresses".
template <class Count>
std::string counted(Count count, const std::string& one, const std::string& several) {
  return std::to_string(count) + ' ' + (count == 1 ? one : several);
}
/// "1 result", "2 results", of a noun whose plural ends with -s.
template <class Count>
std::string counted(Count count, const std::string& noun) {
  return counted(count, noun, noun + 's');
}

}  // namespace tenon::sdk
