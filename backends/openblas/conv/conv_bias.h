// SPDX-License-Identifier: Apache-2.0
// conv_bias.h - the bias of a convolution: its operand, that of its epilogue, or both.
#pragma once

#include <cstdint>

#include <tenon/sdk/kernel.h>

#include "elementwise/half.h"
#include "gemm/product_types.h"

namespace tenon::openblas {

/// Operand 2 of the call, the epilogue's bias, NULL without either, or their sum, of `channels` elements, which is written to `sum`.
template <class T>
const T* bias_of(const sdk::Call& call, std::int64_t channels, T* sum) {
  const T* const own = call.has_input(2) ? call.input<T>(2) : nullptr;
  const T* const added = call.epilogue.bias == nullptr ? nullptr : call.epilogue.bias->as<const T>();
  if (own == nullptr || added == nullptr) return own == nullptr ? added : own;
  for (std::int64_t i = 0; i < channels; ++i) sum[i] = rounded_to<T>(number_of(own[i]) + number_of(added[i]));
  return sum;
}

}  // namespace tenon::openblas
