// SPDX-License-Identifier: Apache-2.0
// ops/quantize.cpp - floats as integers of 8 or 16 bits, and back. f32 is quantised by explicit vector code, the rest in plain loops, which
// the compiler vectorises where it can.
#include "simd/foreach_target.h"

#include <cmath>
#include <limits>

#include "elementwise/strided_loop.h"
#include "even_grain.h"
#include "quantize/quantize_lines.h"
#include "simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

template <bool one_scale, bool one_zero_point, class Q, class T>
HWY_INLINE void dequantize_with(const Q* x, const T* scale, const Q* zero_point, T* y, std::int64_t n) {
  const T first_scale = *scale, first_zero_point = static_cast<T>(*zero_point);
  std::int64_t i = 0;
  if constexpr (one_scale && one_zero_point && std::is_same_v<T, float> && sizeof(Q) == 1) {
    const Wide<float> d;
    const hn::RebindToSigned<Wide<float>> whole;
    const hn::Rebind<Q, Wide<float>> narrow;
    const auto scales = hn::Set(d, first_scale), centres = hn::Set(d, first_zero_point);
    for (; i + lanes(d) <= n; i += lanes(d)) {
      const auto q = hn::ConvertTo(d, hn::PromoteTo(whole, hn::LoadU(narrow, x + i)));
      hn::StoreU(hn::Mul(hn::Sub(q, centres), scales), d, y + i);
    }
  }
  for (; i < n; ++i) {
    const T centred = static_cast<T>(x[i]) - (one_zero_point ? first_zero_point : static_cast<T>(zero_point[i]));
    y[i] = centred * (one_scale ? first_scale : scale[i]);
  }
}

template <class Q, class T>
void dequantize_each(const Q* x, const T* scale, const Q* zero_point, bool one_scale, bool one_zero_point, T* y, std::int64_t n) {
  if (one_scale && one_zero_point) return dequantize_with<true, true>(x, scale, zero_point, y, n);
  if (one_scale) return dequantize_with<true, false>(x, scale, zero_point, y, n);
  if (one_zero_point) return dequantize_with<false, true>(x, scale, zero_point, y, n);
  dequantize_with<false, false>(x, scale, zero_point, y, n);
}

/// Extends the range [low, high] to n elements.
void extend_range(const float* x, std::int64_t n, float& low, float& high) {
  const Wide<float> d;
  auto lows = hn::Set(d, low), highs = hn::Set(d, high);
  std::int64_t i = 0;
  for (; i + lanes(d) <= n; i += lanes(d)) {
    const auto v = hn::LoadU(d, x + i);
    lows = hn::Min(lows, v);
    highs = hn::Max(highs, v);
  }
  low = hn::GetLane(hn::MinOfLanes(d, lows));
  high = hn::GetLane(hn::MaxOfLanes(d, highs));
  for (; i < n; ++i) {
    low = x[i] < low ? x[i] : low;
    high = x[i] > high ? x[i] : high;
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>

#include <tenon/sdk/element.h>

namespace tenon::openblas {
namespace {

// Elements worth a thread of their own: about 20 us.
constexpr std::int64_t grain = 32 * 1024;

/// Runs `loop` over operands of any strides: x of stride 1 and parameters of stride 0 or 1 as they are, others through small buffers.
template <class X, class S, class Y, class Loop>
void over_runs(const sdk::Call& call, const Loop& loop) {
  using Z = std::conditional_t<std::is_floating_point_v<X>, Y, X>;  // the integers
  static constexpr Z zero = 0;
  sdk::Operand none;
  none.data = const_cast<Z*>(&zero);
  none.count = 1;
  const sdk::Operand& zero_point = call.has_input(2) ? call.inputs[2] : none;
  const auto is_uniform = [](const sdk::Operand& x) {
    return x.count == 1 || std::all_of(x.strides, x.strides + x.rank, [](std::int64_t stride) { return stride == 0; });
  };
  const bool is_plain =
      call.inputs[0].dense && call.inputs[0].count == call.outputs[0].count && is_uniform(call.inputs[1]) && is_uniform(zero_point);
  if (is_plain) {
    const std::int64_t count = call.outputs[0].count;
    const auto part = [&](std::int64_t begin, std::int64_t end) {
      loop(call.input<X>(0) + begin, call.input<S>(1), zero_point.as<const Z>(), true, true, call.output<Y>(0) + begin, end - begin);
    };
    return count <= grain ? part(0, count) : call.host.parallel_for(count, even_grain(call.host, count, grain, 64), part);
  }
  const StridedLoop<3> strided = strided_loop_over<3>(call.outputs[0], {&call.inputs[0], &call.inputs[1], &zero_point});
  const auto* const x = call.input<X>(0);
  const auto* const scale = call.input<S>(1);
  const auto* const zeros = zero_point.as<const Z>();
  Y* const y = call.output<Y>(0);
  const std::int64_t x_stride = strided.run_stride(0), scale_stride = strided.run_stride(1), zero_stride = strided.run_stride(2);
  const auto is_straight = [](std::int64_t stride) { return stride == 0 || stride == 1; };
  const bool straight = x_stride == 1 && is_straight(scale_stride) && is_straight(zero_stride);
  call.host.parallel_for(strided.count, grain, [&](std::int64_t begin, std::int64_t end) {
    for_each_run(strided, begin, end, [&](const std::array<std::int64_t, 3>& offsets, std::int64_t at, std::int64_t n) {
      const X* const from = x + offsets[0];
      const S* const by = scale + offsets[1];
      const Z* const centre = zeros + offsets[2];
      if (straight || n == 1) return loop(from, by, centre, scale_stride == 0 || n == 1, zero_stride == 0 || n == 1, y + at, n);
      constexpr std::int64_t piece = 256;
      X some_x[piece];
      S some_scales[piece];
      Z some_zeros[piece];
      for (std::int64_t done = 0; done < n; done += piece) {
        const std::int64_t m = std::min(piece, n - done);
        for (std::int64_t i = 0; i < m; ++i) {
          some_x[i] = from[(done + i) * x_stride];
          some_scales[i] = by[(done + i) * scale_stride];
          some_zeros[i] = centre[(done + i) * zero_stride];
        }
        loop(some_x, some_scales, some_zeros, false, false, y + at + done, m);
      }
    });
  });
}

template <class Q, class T>
void quantize_all(const sdk::Call& call) {
  over_runs<T, T, Q>(call, [](const T* x, const T* scale, const Q* zero_point, bool one_scale, bool one_zero_point, Q* y, std::int64_t n) {
    TENON_DISPATCH(quantize_each<Q, T>)(x, scale, zero_point, one_scale, one_zero_point, y, n);
  });
}

/// y = saturate(round(x / scale) + zero_point), ties to even
template <class T>
void quantize_linear(const sdk::Call& call) {
  sdk::with_type<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t>(call.attr<tenon_attributes_cast>().to,
                                                                         [&]<class Q>() { quantize_all<Q, T>(call); });
}

template <class Q, class T>
void dequantize_all(const sdk::Call& call) {
  over_runs<Q, T, T>(call, [](const Q* x, const T* scale, const Q* zero_point, bool one_scale, bool one_zero_point, T* y, std::int64_t n) {
    TENON_DISPATCH(dequantize_each<Q, T>)(x, scale, zero_point, one_scale, one_zero_point, y, n);
  });
}

/// y = (x - zero_point) scale, in the arithmetic of y
template <class T>
void dequantize_linear(const sdk::Call& call) {
  sdk::with_type<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t>(call.inputs[0].dtype,
                                                                                       [&]<class Q>() { dequantize_all<Q, T>(call); });
}

/// The range of one part of x.
struct Range {
  float low = 0, high = 0;
};
// The largest number of parts.
constexpr std::int64_t max_parts = 64;

/// scale = (high - low) / 255 for the range [low, high] of x and 0; zero_point = round(-low / scale); y = x quantised by them
template <class T>
void dynamic_quantize_linear(const sdk::Call& call) {
  const T* const x = call.input<T>(0);
  auto* const y = call.output<std::uint8_t>(0);
  const std::int64_t count = call.inputs[0].count, parts = std::clamp<std::int64_t>(count / grain, 1, max_parts);
  Range ranges[max_parts];
  call.host.parallel_for(parts, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t first = i * count / parts, last = (i + 1) * count / parts;
      TENON_DISPATCH(extend_range)(x + first, last - first, ranges[i].low, ranges[i].high);
    }
  });
  Range all;
  for (const Range& range : ranges) all = {std::min(all.low, range.low), std::max(all.high, range.high)};
  const T size = all.high - all.low;
  const T scale = (size == 0 ? T{1} : size) / T{255};
  const auto zero_point = static_cast<std::uint8_t>(std::nearbyint(std::clamp(T{0} - all.low / scale, T{0}, T{255})));
  call.host.parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
    TENON_DISPATCH(quantize_each<std::uint8_t, T>)(x + begin, &scale, &zero_point, true, true, y + begin, end - begin);
  });
  *call.output<T>(1) = scale;
  *call.output<std::uint8_t>(2) = zero_point;
}

}  // namespace

TENON_KERNEL_WITH(quantize_linear, elementwise_traits, float, double)
TENON_KERNEL_WITH(dequantize_linear, elementwise_traits, float, double)
TENON_KERNEL(dynamic_quantize_linear, float)

}  // namespace tenon::openblas
#endif
