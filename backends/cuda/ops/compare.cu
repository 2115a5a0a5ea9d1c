// SPDX-License-Identifier: Apache-2.0
// Comparisons; a NaN is unequal to everything.
#include "elementwise/map.cuh"
#include "kernel/functions.cuh"

namespace tenon::cuda {
namespace {

template <class T>
void equal(const sdk::Call& call) {
  map<bool, T, T>(call, functions::Equal{});
}

template <class T>
void less(const sdk::Call& call) {
  map<bool, T, T>(call, functions::Less{});
}

template <class T>
void less_equal(const sdk::Call& call) {
  map<bool, T, T>(call, functions::LessOrEqual{});
}

template <class T>
void greater(const sdk::Call& call) {
  map<bool, T, T>(call, functions::Greater{});
}

template <class T>
void greater_equal(const sdk::Call& call) {
  map<bool, T, T>(call, functions::GreaterOrEqual{});
}

}  // namespace
TENON_KERNEL_WITH(equal, elementwise_traits, float, double, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
                  std::uint16_t, std::uint32_t, std::uint64_t, bool)
TENON_KERNEL_WITH(less, elementwise_traits, float, double, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
                  std::uint16_t, std::uint32_t, std::uint64_t, bool)
TENON_KERNEL_WITH(less_equal, elementwise_traits, float, double, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
                  std::uint16_t, std::uint32_t, std::uint64_t, bool)
TENON_KERNEL_WITH(greater, elementwise_traits, float, double, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
                  std::uint16_t, std::uint32_t, std::uint64_t, bool)
TENON_KERNEL_WITH(greater_equal, elementwise_traits, float, double, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
                  std::uint16_t, std::uint32_t, std::uint64_t, bool)
}  // namespace tenon::cuda
