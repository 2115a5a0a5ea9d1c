// SPDX-License-Identifier: Apache-2.0
// ops/cast.cpp - conversions between element types: common ones by explicit vector code, the rest in plain loops, which the compiler
// vectorises where the sizes are similar.
#include "simd/foreach_target.h"

#include "elementwise/half.h"
#include "elementwise/strided_loop.h"
#include "simd/bf16.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

template <class Narrow>
void to_floats(const Narrow* x, float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = to_float(x[i]);
}
template <class Narrow>
void from_floats(const float* x, Narrow* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = from_float<Narrow>(x[i]);
}

// AVX2 and AVX-512 have instructions for f16, which round to nearest.
void f16_to_f32(const sdk::Half* x, float* y, std::int64_t n) {
  std::int64_t i = 0;
#if TENON_MASKED_MEMORY
  const Wide<float> d;
  const hn::Rebind<hwy::float16_t, Wide<float>> half;
  for (; i + lanes(d) <= n; i += lanes(d)) {
    hn::StoreU(hn::PromoteTo(d, hn::LoadU(half, reinterpret_cast<const hwy::float16_t*>(x + i))), d, y + i);
  }
#endif
  to_floats(x + i, y + i, n - i);
}
void f32_to_f16(const float* x, sdk::Half* y, std::int64_t n) {
  std::int64_t i = 0;
#if TENON_MASKED_MEMORY
  const Wide<float> d;
  const hn::Rebind<hwy::float16_t, Wide<float>> half;
  for (; i + lanes(d) <= n; i += lanes(d)) {
    hn::StoreU(hn::DemoteTo(half, hn::LoadU(d, x + i)), half, reinterpret_cast<hwy::float16_t*>(y + i));
  }
#endif
  from_floats(x + i, y + i, n - i);
}

void bf16_to_f32(const sdk::BFloat16* x, float* y, std::int64_t n) {
  const Floats d;
  std::int64_t i = 0;
  for (; i + lanes(d) <= n; i += lanes(d)) hn::StoreU(load_stored(d, x + i), d, y + i);
  to_floats(x + i, y + i, n - i);
}
/// from_float of half.h, a vector at a time.
void f32_to_bf16(const float* x, sdk::BFloat16* y, std::int64_t n) {
  const Floats d;
  std::int64_t i = 0;
  for (; i + lanes(d) <= n; i += lanes(d)) store_rounded(hn::LoadU(d, x + i), d, y + i);
  from_floats(x + i, y + i, n - i);
}

/// Highway's conversion truncates and saturates, but leaves NaN unspecified.
void f32_to_i32(const float* x, std::int32_t* y, std::int64_t n) {
  const Wide<float> d;
  const hn::Rebind<std::int32_t, Wide<float>> whole;
  const auto converted = [&](hn::Vec<Wide<float>> v) { return hn::ConvertTo(whole, hn::IfThenZeroElse(hn::IsNaN(v), v)); };
  std::int64_t i = 0;
  for (; i + lanes(d) <= n; i += lanes(d)) hn::StoreU(converted(hn::LoadU(d, x + i)), whole, y + i);
  if (i < n) store_first(converted(load_first(d, x + i, n - i)), whole, y + i, n - i);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <cmath>
#include <limits>

#include <tenon/sdk/element.h>

namespace tenon::openblas {
namespace {

// Elements worth a thread of their own, about 20 us.
constexpr std::int64_t grain = 64 * 1024;

/// Converts one element.
///
/// To bool        anything but 0 is 1, also NaN.
/// Float to int   truncates and saturates; NaN becomes 0.
/// Int to int     keeps the low bits (two's complement).
/// To a float     rounds to nearest, ties to even, once.
template <class To, class From>
To convert(From x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (is_narrow<From>) {
    return convert<To>(to_float(x));
  } else if constexpr (is_narrow<To>) {
    return narrowed<To>(x);
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // 2^digits is the first value above the range and exact in either float type; the lowest value is exact too.
    const From above = std::ldexp(From(1), std::numeric_limits<To>::digits);
    const From lowest = static_cast<From>(std::numeric_limits<To>::lowest());
    if (x >= above) return std::numeric_limits<To>::max();
    if (x > lowest) return static_cast<To>(x);
    return x <= lowest ? std::numeric_limits<To>::lowest() : To(0);
  } else {
    return static_cast<To>(x);
  }
}

template <class From>
using CastLoop = void (*)(const From* x, void* y, std::int64_t n);

template <class From, class To>
void convert_all(const From* x, void* y, std::int64_t n) {
  To* const to = static_cast<To*>(y);
  if constexpr (std::is_same_v<From, sdk::Half> && std::is_same_v<To, float>) {
    TENON_DISPATCH(f16_to_f32)(x, to, n);
  } else if constexpr (std::is_same_v<From, float> && std::is_same_v<To, sdk::Half>) {
    TENON_DISPATCH(f32_to_f16)(x, to, n);
  } else if constexpr (std::is_same_v<From, sdk::BFloat16> && std::is_same_v<To, float>) {
    TENON_DISPATCH(bf16_to_f32)(x, to, n);
  } else if constexpr (std::is_same_v<From, float> && std::is_same_v<To, sdk::BFloat16>) {
    TENON_DISPATCH(f32_to_bf16)(x, to, n);
  } else if constexpr (std::is_same_v<From, float> && std::is_same_v<To, std::int32_t>) {
    TENON_DISPATCH(f32_to_i32)(x, to, n);
  } else {
    for (std::int64_t i = 0; i < n; ++i) to[i] = convert<To>(x[i]);
  }
}

/// Runs the loop over operands of any strides. Y only has the size of a result.
template <class T, class Y>
void run(const sdk::Call& call, CastLoop<T> loop) {
  elementwise<T, Y, 1>(call, grain, 0, [loop](const Segment<T, 1>& s, Y* y, std::int64_t n) { loop(s.x[0], y, n); });
}

/// y = x as another type
template <class T>
void cast(const sdk::Call& call) {
  const tenon_dtype to = call.attr<tenon_attributes_cast>().to;
  const auto loop = sdk::with_type<TENON_MOVABLE_TYPES>(to, []<class To>() -> CastLoop<T> { return convert_all<T, To>; });
  switch (sdk::size_of(call.outputs[0].dtype)) {
    case 1:
      return run<T, std::uint8_t>(call, loop);
    case 2:
      return run<T, std::uint16_t>(call, loop);
    case 4:
      return run<T, std::uint32_t>(call, loop);
    default:
      return run<T, std::uint64_t>(call, loop);
  }
}

}  // namespace

TENON_KERNEL_WITH(cast, (sdk::Traits{.strided = true, .in_place = true, .elementwise = true}), TENON_MOVABLE_TYPES)

}  // namespace tenon::openblas
#endif
