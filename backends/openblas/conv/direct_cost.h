// SPDX-License-Identifier: Apache-2.0
// direct_cost.h - what direct sums cost, beside which the algorithms that save multiplications are judged.
#pragma once

#include <type_traits>

#include <tenon/sdk/kernel.h>

#include "simd/x86.h"

namespace tenon::openblas {

/// What a multiply-add of direct sums costs, in those of f32. Winograd's are f32, for bf16 too; users of f64 prefer the smaller error to
/// the time.
template <class T>
double direct_cost([[maybe_unused]] const sdk::Host& host) {
  if (std::is_same_v<T, double>) return 0;
  if constexpr (std::is_same_v<T, sdk::BFloat16>) {
    const InstructionSet set = instruction_set_of(host);
    if (has_amx_bf16(set)) return 0;
    if (has_avx512_bf16(set)) return 0.5;
  }
  return 1;
}

}  // namespace tenon::openblas
