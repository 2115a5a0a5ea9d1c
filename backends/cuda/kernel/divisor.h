// SPDX-License-Identifier: Apache-2.0
// divisor.h - division by a number that the host knows, as a multiplication: a division of 64 bits is a subroutine of some hundred
// instructions, for which a kernel may have to save registers in memory.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include <cuda_runtime_api.h>

namespace tenon::cuda {

/// n / d for many n >= 0, d >= 1: a multiplication by the reciprocal of d, rounded up; the error stays below 1 / d. Below 2^31 the
/// reciprocal has 32 bits.
///
/// Source  Granlund, Montgomery: Division by Invariant Integers using Multiplication (1994).
struct Divisor {
  __extension__ using Wide = unsigned __int128;
  std::int64_t d = 1;
  std::uint64_t wide_multiplier = 0;
  std::uint32_t multiplier = 0;  ///< 0 if d has more than 31 bits
  int shift = 0;

  Divisor() = default;
  explicit Divisor(std::int64_t divisor) : d(divisor) {
    if (d <= 1) return;
    const int bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(d - 1)));  // 2^bits >= d
    const auto divided_by_d = [&](int exponent) {                                          // 2^exponent / d, rounded up
      return static_cast<std::uint64_t>(((Wide{1} << exponent) + static_cast<Wide>(d - 1)) / static_cast<Wide>(d));
    };
    wide_multiplier = divided_by_d(63 + bits);
    if (d <= std::numeric_limits<std::int32_t>::max()) multiplier = static_cast<std::uint32_t>(divided_by_d(31 + bits));
    shift = bits - 1;
  }
  template <class Index>
  __device__ Index quotient(Index n) const {
    if (d == 1) return n;
    if constexpr (sizeof(Index) == 4) {  // 0 if d does not fit, because the multiplier is 0
      return static_cast<Index>(below_31_bits(static_cast<std::uint32_t>(n)));
    } else {
      if (n >> 31 == 0 && multiplier != 0) return static_cast<Index>(below_31_bits(static_cast<std::uint32_t>(n)));
      const auto product = static_cast<Wide>(n) * wide_multiplier;
      return static_cast<Index>(static_cast<std::uint64_t>(product >> 64) >> shift);
    }
  }

 private:
  __device__ std::uint32_t below_31_bits(std::uint32_t n) const {
    return static_cast<std::uint32_t>((std::uint64_t{n} * multiplier) >> 32) >> shift;
  }
};

}  // namespace tenon::cuda
