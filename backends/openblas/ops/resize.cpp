// SPDX-License-Identifier: Apache-2.0
// ops/resize.cpp - resizing of channels-last images, with vectors along the channels.
#include "simd/foreach_target.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "simd/simd.h"

#include <tenon/sdk/kernel.h>

#ifndef TENON_OPENBLAS_RESIZE_WEIGHTS
#define TENON_OPENBLAS_RESIZE_WEIGHTS
namespace tenon::openblas {
/// An element of one dimension and its weight.
struct Weighted {
  std::int64_t element;
  double weight;
};
/// The weights of one dimension: result i is the sum of entries [begin[i], begin[i + 1]).
struct Interpolation {
  std::int64_t* begin;
  Weighted* entries;
};
}  // namespace tenon::openblas
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

/// Computes one row of results: y[i] = the sum, over the entries of the row and of column i, of the product of their weights times x. A row
/// of x has `width` columns of `channels`.
template <class T>
void interpolate_row(const T* x, std::int64_t width, std::int64_t channels, const Interpolation& rows, std::int64_t row,
                     const Interpolation& columns, std::int64_t count, T* y) {
  const Wide<T> d;
  const std::int64_t step = lanes(d);
  for (std::int64_t i = 0; i < count; ++i, y += channels) {
    const auto for_each_entry = [&](const auto& body) HWY_ATTR {
      for (std::int64_t r = rows.begin[row]; r < rows.begin[row + 1]; ++r) {
        const T* const line = x + rows.entries[r].element * width * channels;
        for (std::int64_t k = columns.begin[i]; k < columns.begin[i + 1]; ++k) {
          const double weight = rows.entries[r].weight * columns.entries[k].weight;
          body(line + columns.entries[k].element * channels, hn::Set(d, static_cast<T>(weight)));
        }
      }
    };
    std::int64_t c = 0;
    for (; c + 2 * step <= channels; c += 2 * step) {
      auto low = hn::Zero(d), high = hn::Zero(d);
      for_each_entry([&](const T* from, hn::Vec<Wide<T>> weight) HWY_ATTR {
        low = hn::MulAdd(hn::LoadU(d, from + c), weight, low);
        high = hn::MulAdd(hn::LoadU(d, from + c + step), weight, high);
      });
      hn::StoreU(low, d, y + c);
      hn::StoreU(high, d, y + c + step);
    }
    for (; c < channels; c += step) {
      const std::int64_t n = HWY_MIN(step, channels - c);
      auto sum = hn::Zero(d);
      for_each_entry([&](const T* from, hn::Vec<Wide<T>> weight)
                         HWY_ATTR { sum = hn::MulAdd(n == step ? hn::LoadU(d, from + c) : load_first(d, from + c, n), weight, sum); });
      if (n == step) {
        hn::StoreU(sum, d, y + c);
      } else {
        store_first(sum, d, y + c, n);
      }
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {
namespace {

// Elements worth a thread of their own: about 20 us.
constexpr std::int64_t grain = 32 * 1024;

/// One spatial dimension of the image and of the resized image. A signal (N, L, C) is an image of height 1.
struct Axis {
  std::int64_t from = 1, to = 1;
  double scale = 1;
};
struct Geometry {
  std::int64_t images, channels;
  Axis h, w;

  Geometry(const sdk::Operand& image, const sdk::Operand& resized, const tenon_attributes_resize& a)
      : images(image.shape[0]), channels(image.shape[image.rank - 1]) {
    for (std::uint32_t i = 1; i + 1 < image.rank; ++i) {
      (i + 2 == image.rank ? w : h) = {image.shape[i], resized.shape[i], a.scales[i + 1]};  // in `scales`, the channels are second
    }
  }
};

double coordinate(std::int64_t i, const Axis& axis, std::uint32_t mode) {
  const auto x = static_cast<double>(i);
  if (mode == TENON_COORDINATES_ASYMMETRIC) return x / axis.scale;
  if (axis.to == 1 && mode != TENON_COORDINATES_HALF_PIXEL) return 0;
  if (mode == TENON_COORDINATES_ALIGN_CORNERS) return x * static_cast<double>(axis.from - 1) / static_cast<double>(axis.to - 1);
  return (x + 0.5) / axis.scale - 0.5;
}
double rounded(double x, std::uint32_t mode) {
  if (mode == TENON_ROUND_FLOOR) return std::floor(x);
  if (mode == TENON_ROUND_CEIL) return std::ceil(x);
  return mode == TENON_ROUND_PREFER_CEIL ? std::floor(x + 0.5) : std::ceil(x - 0.5);
}

/// The elements of the image that contribute to element i of the resized one, none with weight 0. Returns their number.
int neighbours(std::int64_t i, const Axis& axis, const tenon_attributes_resize& a, Weighted (&out)[2]) {
  const auto inside = [&](double at) { return static_cast<std::int64_t>(std::clamp(at, 0.0, static_cast<double>(axis.from - 1))); };
  const double x = coordinate(i, axis, a.coordinates);
  if (a.mode == TENON_RESIZE_NEAREST) {
    out[0] = {inside(rounded(x, a.rounding)), 1};
    return 1;
  }
  const double low = std::floor(x);
  out[0] = {inside(low), 1 - (x - low)};
  out[1] = {inside(low + 1), x - low};
  if (out[1].element != out[0].element && out[1].weight != 0) return 2;
  out[0].weight = 1;
  return 1;
}

std::size_t interpolation_bytes(std::int64_t results, std::int64_t entries) {
  return static_cast<std::size_t>(results + 1) * sizeof(std::int64_t) + static_cast<std::size_t>(entries) * sizeof(Weighted);
}
/// Allocates from the front of `memory`, which it advances.
Interpolation interpolation_in(unsigned char*& memory, std::int64_t results, std::int64_t entries) {
  Interpolation interpolation{reinterpret_cast<std::int64_t*>(memory), nullptr};
  interpolation.entries = reinterpret_cast<Weighted*>(memory + static_cast<std::size_t>(results + 1) * sizeof(std::int64_t));
  memory += interpolation_bytes(results, entries);
  return interpolation;
}

/// Fills in the entries of each element of the resized image.
void fill(const Interpolation& interpolation, const Axis& axis, const tenon_attributes_resize& a) {
  std::int64_t n = 0;
  for (std::int64_t i = 0; i < axis.to; ++i) {
    interpolation.begin[i] = n;
    Weighted from[2];
    const int count = neighbours(i, axis, a, from);
    for (int k = 0; k < count; ++k) interpolation.entries[n++] = from[k];
  }
  interpolation.begin[axis.to] = n;
}

/// Fills in the transpose: the results to which each element of the image contributes, in ascending order.
void fill_transposed(const Interpolation& interpolation, const Axis& axis, const tenon_attributes_resize& a) {
  const auto for_each = [&](const auto& body) {
    for (std::int64_t i = 0; i < axis.to; ++i) {
      Weighted from[2];
      const int count = neighbours(i, axis, a, from);
      for (int k = 0; k < count; ++k) body(i, from[k]);
    }
  };
  // begin[k] is first the number of entries before k, then the position of k's next entry, and finally the beginning of k + 1.
  std::fill_n(interpolation.begin, axis.from + 1, std::int64_t{0});
  for_each([&](std::int64_t, const Weighted& w) { ++interpolation.begin[w.element + 1]; });
  for (std::int64_t k = 0; k < axis.from; ++k) interpolation.begin[k + 1] += interpolation.begin[k];
  for_each([&](std::int64_t i, const Weighted& w) { interpolation.entries[interpolation.begin[w.element]++] = {i, w.weight}; });
  for (std::int64_t k = axis.from; k > 0; --k) interpolation.begin[k] = interpolation.begin[k - 1];
  interpolation.begin[0] = 0;
}

/// Whether results i - 1 and i of a dimension are both copies of the same element.
bool repeats(const Interpolation& interpolation, std::int64_t i) {
  const std::int64_t at = interpolation.begin[i];
  return i > 0 && interpolation.begin[i + 1] == at + 1 && interpolation.begin[i - 1] == at - 1 &&
         interpolation.entries[at].element == interpolation.entries[at - 1].element;
}

/// y[i] = sum over the elements of x next to i's coordinate of their weight times x; each dimension has its own weights
///
/// Shapes  x (N, d..., C), y (N, e..., C).
template <class T>
void resize(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_resize>();
  const Geometry g(call.inputs[0], call.outputs[0], attributes);
  auto* memory = static_cast<unsigned char*>(call.scratch);
  const Interpolation rows = interpolation_in(memory, g.h.to, 2 * g.h.to), columns = interpolation_in(memory, g.w.to, 2 * g.w.to);
  fill(rows, g.h, attributes);
  fill(columns, g.w, attributes);
  const std::int64_t line = g.w.to * g.channels;
  if (line == 0) return;
  const std::int64_t min_rows = std::max<std::int64_t>(1, grain / line);
  call.host.parallel_for(g.images * g.h.to, min_rows, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = i % g.h.to;
      T* const y = call.output<T>(0) + i * line;
      if (attributes.mode != TENON_RESIZE_NEAREST) {
        const T* const image = call.input<T>(0) + i / g.h.to * g.h.from * g.w.from * g.channels;
        TENON_DISPATCH(interpolate_row<T>)(image, g.w.from, g.channels, rows, row, columns, g.w.to, y);
      } else if (i > begin && repeats(rows, row)) {
        std::memcpy(y, y - line, static_cast<std::size_t>(line) * sizeof(T));
      } else {
        const std::int64_t top = i / g.h.to * g.h.from + rows.entries[row].element;
        const T* const from = call.input<T>(0) + top * g.w.from * g.channels;
        for (std::int64_t k = 0; k < g.w.to; ++k) {
          std::memcpy(y + k * g.channels, from + columns.entries[k].element * g.channels, static_cast<std::size_t>(g.channels) * sizeof(T));
        }
      }
    }
  });
}

/// dx[k] = sum over y of the weight of x[k] in y, times dy, in the order of y
///
/// Shapes  dy (N, e..., C), dx (N, d..., C).
template <class T>
void resize_grad(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_resize>();
  const Geometry g(call.outputs[0], call.inputs[0], attributes);
  auto* memory = static_cast<unsigned char*>(call.scratch);
  const Interpolation rows = interpolation_in(memory, g.h.from, 2 * g.h.to), columns = interpolation_in(memory, g.w.from, 2 * g.w.to);
  fill_transposed(rows, g.h, attributes);
  fill_transposed(columns, g.w, attributes);
  const std::int64_t line = g.w.from * g.channels;
  const std::int64_t min_rows = std::max<std::int64_t>(1, grain / std::max<std::int64_t>(line, 1));
  call.host.parallel_for(g.images * g.h.from, min_rows, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const T* const image = call.input<T>(0) + i / g.h.from * g.h.to * g.w.to * g.channels;
      TENON_DISPATCH(interpolate_row<T>)(image, g.w.to, g.channels, rows, i % g.h.from, columns, g.w.from, call.output<T>(0) + i * line);
    }
  });
}

std::size_t scratch(const sdk::Call& call) {
  const Geometry g(call.inputs[0], call.outputs[0], call.attr<tenon_attributes_resize>());
  return interpolation_bytes(g.h.to, 2 * g.h.to) + interpolation_bytes(g.w.to, 2 * g.w.to);
}
std::size_t scratch_grad(const sdk::Call& call) {
  const Geometry g(call.outputs[0], call.inputs[0], call.attr<tenon_attributes_resize>());
  return interpolation_bytes(g.h.from, 2 * g.h.to) + interpolation_bytes(g.w.from, 2 * g.w.to);
}

constexpr sdk::ChannelsLast images{.inputs = 1, .outputs = 1};

}  // namespace

TENON_KERNEL_WITH(resize, (sdk::Traits{.channels_last = images, .scratch = scratch}), float, double)
TENON_KERNEL_WITH(resize_grad, (sdk::Traits{.channels_last = images, .scratch = scratch_grad}), float, double)

}  // namespace tenon::openblas
#endif
