// SPDX-License-Identifier: Apache-2.0
// test_numbers.h - numbers of tests and comparisons, for tests with and without the runtime.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace tenon::test {

/// Pseudorandom multiples of 2^-23 in [-1, 1).
inline std::vector<float> uniform(std::int64_t count, std::uint32_t seed) {
  std::vector<float> list(static_cast<std::size_t>(count));
  for (float& value : list) {
    seed = seed * 1664525u + 1013904223u;
    value = static_cast<float>(static_cast<std::int32_t>(seed >> 8) - (1 << 23)) / static_cast<float>(1 << 23);
  }
  return list;
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace tenon::test
