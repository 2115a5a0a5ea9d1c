// SPDX-License-Identifier: Apache-2.0
// direct_cost.h - what direct sums cost, with which the algorithms that save multiplications are compared.
#pragma once

#include <string_view>
#include <type_traits>

#include <tenon/sdk/kernel.h>

#include "simd/x86.h"

namespace tenon::openblas {

/// What a multiply-add of direct sums costs, in those of f32; 0: no other algorithm is wanted. Winograd's multiply-adds are f32, for bf16
/// too. Users of f64 prefer the smaller error to the time, and with `memory: small` weights and tiles are not transformed.
template <class T>
double direct_cost(const sdk::Host& host) {
  const char* const memory = host.option("memory");
  if (std::is_same_v<T, double> || (memory != nullptr && std::string_view(memory) == "small")) return 0;
  if constexpr (std::is_same_v<T, sdk::BFloat16>) {
    const InstructionSet set = instruction_set_of(host);
    if (has_amx_bf16(set)) return 0;
    if (has_avx512_bf16(set)) return 0.5;
  }
  return 1;
}

}  // namespace tenon::openblas
