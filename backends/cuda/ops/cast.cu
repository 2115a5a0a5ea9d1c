// SPDX-License-Identifier: Apache-2.0
// Conversion of every element to another dtype.
#include <cstdint>
#include <limits>
#include <type_traits>

#include <tenon/sdk/element.h>

#include "elementwise/map.cuh"
#include "kernel/half.cuh"

namespace tenon::cuda {
namespace {

/// x as a double that rounds to the same 16-bit float. A 64-bit integer can have more digits than a double: the lowest ones matter only as
/// a sticky bit and are merged into one.
template <class T>
__device__ double exact_enough(T x) {
  if constexpr (std::is_integral_v<T> && sizeof(T) == 8) {
    const T rest = x & 4095;
    const bool large = std::fabs(static_cast<double>(x)) >= 0x1p53;
    if (large && rest != 0) return static_cast<double>((x - rest) | 2048);
  }
  return static_cast<double>(x);
}

/// 2^digits as a T: max() + 1, which is exact where max() is not.
template <class U, class T>
constexpr T above() {
  return static_cast<T>(std::uint64_t{1} << (std::numeric_limits<U>::digits - 1)) * 2;
}

/// x as a U. Float to integer truncates toward zero and saturates, NaN becomes 0; integer to a narrower integer keeps the low bits;
/// anything to bool is x != 0; the rest rounds to nearest, once.
template <class U>
struct Convert {
  template <class T>
  __device__ U operator()(T x) const {
    if constexpr (std::is_same_v<T, U>) {
      return x;
    } else if constexpr (is_narrow<T>) {
      return Convert{}(to_float(x));
    } else if constexpr (is_narrow<U> && (std::is_same_v<T, float> || sizeof(T) <= 2)) {
      return from_float<U>(static_cast<float>(x));
    } else if constexpr (is_narrow<U>) {
      return from_double<U>(exact_enough(x));
    } else if constexpr (std::is_same_v<U, bool>) {
      return x != T(0);
    } else if constexpr (std::is_floating_point_v<T> && std::is_integral_v<U>) {
      constexpr T high = above<U, T>();
      constexpr T low = std::is_signed_v<U> ? -high : T(0);
      if (x != x) return 0;
      if (x >= high) return std::numeric_limits<U>::max();
      if (x <= low) return std::numeric_limits<U>::min();
      return static_cast<U>(x);
    } else {
      return static_cast<U>(x);
    }
  }
};

template <class U, class T>
__device__ void convert(const Layout<1>& layout, void* y, const T* x) {
  U* const to = static_cast<U*>(y);
  for (std::int64_t i = thread_index(); i < layout.count; i += thread_count()) {
    std::int64_t at[1];
    place(layout, i, at);
    to[i] = Convert<U>{}(x[at[0]]);
  }
}

/// convert<U> for that one of the types U which has this dtype.
template <class... U, class T>
__device__ void convert_to_one(tenon_dtype type, const Layout<1>& layout, void* y, const T* x) {
  static_cast<void>(((type == sdk::dtype_of<U> && (convert<U>(layout, y, x), true)) || ...));
}

/// One kernel for all targets: all threads take the same branch.
template <class T>
__global__ void convert_to(tenon_dtype type, Layout<1> layout, void* y, const T* x) {
  convert_to_one<TENON_MOVABLE_TYPES>(type, layout, y, x);
}

/// True for conversions that are frequent in training, which have specialized kernels that move 16 bytes at a time.
template <class T, class U>
constexpr bool is_frequent = (is_narrow<T> || std::is_floating_point_v<T>) ||
                             (std::is_same_v<U, float> && (std::is_same_v<T, std::uint8_t> || std::is_same_v<T, bool> ||
                                                           std::is_same_v<T, std::int32_t> || std::is_same_v<T, std::int64_t>));

template <class T, class U>
bool mapped(const sdk::Call& call) {
  if constexpr (is_frequent<T, U> && !std::is_same_v<T, U>) {
    if (call.attr<tenon_attributes_cast>().to != sdk::dtype_of<U>) return false;
    return map_aligned<U, T>(call, Convert<U>{});
  } else {
    return false;
  }
}

/// y = (to) x
///
/// Dtypes      from and to every real one.
/// Attributes  to: the dtype of y.
template <class T>
void cast(const sdk::Call& call) {
  if (mapped<T, sdk::Half>(call) || mapped<T, sdk::BFloat16>(call) || mapped<T, float>(call) || mapped<T, double>(call)) return;
  const Layout<1> layout = layout_of_inputs<1>(call);
  launch_over(call, layout.count, convert_to<T>, call.attr<tenon_attributes_cast>().to, layout, call.outputs[0].data, call.input<T>(0));
}

}  // namespace
TENON_KERNEL_WITH(cast, (sdk::Traits{.strided = true, .in_place = true, .elementwise = true}), TENON_MOVABLE_TYPES)
}  // namespace tenon::cuda
