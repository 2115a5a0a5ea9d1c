// SPDX-License-Identifier: Apache-2.0
// fp8_state.h - the scale of a tensor that is quantised to FP8, in device memory, and what is known of its elements.
#pragma once

#include <cstdint>

namespace tenon::cuda {

/// x = scale * code for every finite x that was quantised, up to the rounding of the code. NaN and infinities have the code of NaN.
struct Fp8State {
  float scale;              ///< a power of two; the first member, since cuBLASLt reads it by the address of the state
  float amax;               ///< the largest finite absolute value; 1 if all are 0
  std::uint32_t nonfinite;  ///< not 0: there are NaN or infinities
};

}  // namespace tenon::cuda
