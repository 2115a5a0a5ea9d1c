// SPDX-License-Identifier: Apache-2.0
// operands.h - operands of a call that may be absent.
#pragma once

#include <cstdint>

#include <tenon/sdk/kernel.h>

namespace tenon::cuda {

template <class T>
const T* input_or_null(const sdk::Call& call, std::uint32_t i) {
  return call.has_input(i) ? call.input<T>(i) : nullptr;
}
template <class T>
T* output_or_null(const sdk::Call& call, std::uint32_t i) {
  return call.has_output(i) ? call.output<T>(i) : nullptr;
}

}  // namespace tenon::cuda
