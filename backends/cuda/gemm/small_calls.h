// SPDX-License-Identifier: Apache-2.0
// small_calls.h - the calls of an op whose matrix products are small.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "device/options.h"
#include "gemm/small_products.h"
#include "kernel/launch.h"

namespace tenon::cuda {

/// `product_of` describes the product of a call, or returns one without a dtype where it cannot be small.
template <SmallProduct (*product_of)(const sdk::Call&)>
struct SmallCalls {
  /// Traits::together_when: whether the product of this call is small, by its shapes and the options of its device.
  static bool takes(const sdk::Call& call) {
    if (call.device == nullptr || !options_of(static_cast<Device&>(*call.device)).small_products) return false;
    return is_small(product_of(call));
  }
  /// Traits::run_together, of calls that it takes.
  static void run(const sdk::Call* calls, std::uint32_t count) {
    std::array<SmallProduct, sdk::max_calls_together> products;
    std::transform(calls, calls + count, products.begin(), product_of);
    multiply_small(stream_of(calls[0]), std::span(products.data(), count));
  }
};

}  // namespace tenon::cuda
