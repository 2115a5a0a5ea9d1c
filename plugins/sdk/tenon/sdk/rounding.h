// SPDX-License-Identifier: Apache-2.0
// tenon/sdk/rounding.h - division and sizes, rounded up.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon::sdk {

/// a / b, rounded up; a >= 0, b > 0.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// The smallest multiple of b that is at least a; a >= 0, b > 0.
constexpr std::int64_t round_up(std::int64_t a, std::int64_t b) {
  return ceil_div(a, b) * b;
}

/// The alignment in bytes of scratch memory, of a workspace, and of each block in them.
inline constexpr std::size_t block_alignment = 64;

/// The bytes that a block takes up in memory where another block follows it.
constexpr std::size_t aligned_size(std::size_t size_bytes, std::size_t alignment = block_alignment) {
  return (size_bytes + alignment - 1) / alignment * alignment;
}

}  // namespace tenon::sdk
