// SPDX-License-Identifier: Apache-2.0
#include "conv/average_pool.h"

#include "simd/foreach_target.h"

#include <type_traits>

#include "conv/pool_windows.h"

#ifndef TENON_OPENBLAS_AVERAGE_POOL_ONCE
#define TENON_OPENBLAS_AVERAGE_POOL_ONCE
namespace tenon::openblas {
namespace {
/// The reciprocals of the divisors of the windows' means, for each dimension.
struct Shares {
  const double *h, *w;
};
}  // namespace
}  // namespace tenon::openblas
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

template <class T>
void average_row(const PoolGeometry& g, const T* image, std::int64_t row, bool padded, T* y) {
  const Wide<Computed<T>> d;
  const std::int64_t step = lanes(d);
  const PoolTaps rows = g.h.taps(row);
  const std::int64_t height = g.h.divisor(row, padded);
  for (std::int64_t column = 0; column < g.w.windows; ++column, y += g.channels) {
    const PoolWindow<T> window(g, image, rows, column);
    const auto divisor = hn::Set(d, static_cast<Computed<T>>(height * g.w.divisor(column, padded)));
    for_each_part(d, g.channels, [&](const auto& part, std::int64_t c) HWY_ATTR {
      constexpr int n = std::decay_t<decltype(part)>::count;
      hn::Vec<Wide<Computed<T>>> sum[n];
      for (int i = 0; i < n; ++i) sum[i] = hn::Zero(d);
      window.for_each([&](const T* at, std::int64_t, std::int64_t) HWY_ATTR {
        for (int i = 0; i < n; ++i) sum[i] = hn::Add(sum[i], part.load(d, at + c + i * step));
      });
      for (int i = 0; i < n; ++i) part.store(hn::Div(sum[i], divisor), d, y + c + i * step);
    });
  }
}

/// Row `row` of dx; `image` is the image of dy.
template <class T>
void average_grad_row(const PoolGeometry& g, const T* image, std::int64_t row, const Shares& shares, T* dx) {
  const Wide<Computed<T>> d;
  const std::int64_t step = lanes(d);
  // [first, last): the windows that contain this row, or this pixel
  const auto advance = [](const PoolAxis& axis, std::int64_t element, std::int64_t& first, std::int64_t& last) {
    while (last < axis.windows && axis.start(last) <= element) ++last;
    while (first < last && axis.start(first) + axis.kernel <= element) ++first;
  };
  std::int64_t top = 0, bottom = 0, left = 0, right = 0;
  advance(g.h, row, top, bottom);
  for (std::int64_t pixel = 0; pixel < g.w.size; ++pixel, dx += g.channels) {
    advance(g.w, pixel, left, right);
    for_each_part(d, g.channels, [&](const auto& part, std::int64_t c) HWY_ATTR {
      constexpr int n = std::decay_t<decltype(part)>::count;
      hn::Vec<Wide<Computed<T>>> sum[n];
      for (int i = 0; i < n; ++i) sum[i] = hn::Zero(d);
      for (std::int64_t oh = top; oh < bottom; ++oh) {
        for (std::int64_t ow = left; ow < right; ++ow) {
          const T* const at = image + (oh * g.w.windows + ow) * g.channels + c;
          const auto share = hn::Set(d, static_cast<Computed<T>>(shares.h[oh] * shares.w[ow]));
          for (int i = 0; i < n; ++i) sum[i] = hn::MulAdd(part.load(d, at + i * step), share, sum[i]);
        }
      }
      for (int i = 0; i < n; ++i) part.store(sum[i], d, dx + c + i * step);
    });
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {

template <class T>
void average_pool(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_window>();
  const PoolGeometry g(call.inputs[0], call.outputs[0], attributes);
  const T* const x = call.input<T>(0);
  T* const y = call.output<T>(0);
  const auto row_of = TENON_DISPATCH(average_row<T>);
  const std::int64_t line = g.w.windows * g.channels;
  for_each_pool_row(call.host, g.images, g.h.windows, line * g.h.kernel * g.w.kernel, [&](std::int64_t image, std::int64_t row) {
    row_of(g, x + image * g.pixels() * g.channels, row, attributes.count_include_pad != 0, y + (image * g.h.windows + row) * line);
  });
}

template <class T>
void average_pool_grad(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_window>();
  const PoolGeometry g(call.outputs[0], call.inputs[0], attributes);
  const T* const dy = call.input<T>(0);
  T* const dx = call.output<T>(0);
  auto* const h = static_cast<double*>(call.scratch);
  double* const w = h + g.h.windows;
  const bool padded = attributes.count_include_pad != 0;
  for (std::int64_t i = 0; i < g.h.windows; ++i) h[i] = 1.0 / static_cast<double>(g.h.divisor(i, padded));
  for (std::int64_t i = 0; i < g.w.windows; ++i) w[i] = 1.0 / static_cast<double>(g.w.divisor(i, padded));
  const auto row_of = TENON_DISPATCH(average_grad_row<T>);
  const std::int64_t line = g.w.size * g.channels;
  for_each_pool_row(call.host, g.images, g.h.size, line, [&](std::int64_t image, std::int64_t row) {
    row_of(g, dy + image * g.h.windows * g.w.windows * g.channels, row, {h, w}, dx + (image * g.h.size + row) * line);
  });
}
std::size_t average_pool_grad_scratch(const sdk::Call& call) {
  const PoolGeometry g(call.outputs[0], call.inputs[0], call.attr<tenon_attributes_window>());
  return static_cast<std::size_t>(g.h.windows + g.w.windows) * sizeof(double);
}

TENON_INSTANTIATE(average_pool, sdk::BFloat16)
TENON_INSTANTIATE_FLOATS(average_pool)
TENON_INSTANTIATE(average_pool_grad, sdk::BFloat16)
TENON_INSTANTIATE_FLOATS(average_pool_grad)

}  // namespace tenon::openblas
#endif
