// SPDX-License-Identifier: Apache-2.0
// Resizing of images of either layout. The sources of each row and column are computed first, in f64, because the nearest element depends
// on the last bit of a coordinate; gradients are gathered per element of the image.
#include "kernel/image.cuh"
#include "kernel/pack.cuh"
#include "movement/movable.h"

namespace tenon::cuda {
namespace {

/// The sources of an element of the resized image along one dimension: `low`, and low + 1 if weight[1] is not 0.
template <class A>
struct Mixture {
  std::int64_t low;
  A weight[2];
};

/// One dimension of the image, `from` elements, and of the resized image, `to`.
struct ResizedAxis {
  std::int64_t from = 1, to = 1;
  double scale = 1;
  std::uint32_t mode = TENON_RESIZE_NEAREST, coordinates = TENON_COORDINATES_ASYMMETRIC, rounding = TENON_ROUND_FLOOR;

  __device__ double coordinate(std::int64_t i) const {
    const auto x = static_cast<double>(i);
    if (coordinates == TENON_COORDINATES_ASYMMETRIC) return x / scale;
    if (to == 1 && coordinates != TENON_COORDINATES_HALF_PIXEL) return 0;
    if (coordinates == TENON_COORDINATES_ALIGN_CORNERS) return x * static_cast<double>(from - 1) / static_cast<double>(to - 1);
    return (x + 0.5) / scale - 0.5;
  }
  __device__ double rounded(double x) const {
    if (rounding == TENON_ROUND_FLOOR) return std::floor(x);
    if (rounding == TENON_ROUND_CEIL) return std::ceil(x);
    return rounding == TENON_ROUND_PREFER_CEIL ? std::floor(x + 0.5) : std::ceil(x - 0.5);
  }
  __device__ std::int64_t inside(double at) const {
    const auto last = static_cast<double>(from - 1);
    return static_cast<std::int64_t>(at < 0 ? 0 : at > last ? last : at);
  }
  template <class A>
  __device__ Mixture<A> mixture(std::int64_t i) const {
    const double x = coordinate(i);
    if (mode == TENON_RESIZE_NEAREST) return {inside(rounded(x)), {1, 0}};
    const double floor = std::floor(x), fraction = x - floor;
    const std::int64_t low = inside(floor);
    if (inside(floor + 1) == low || fraction == 0) return {low, {1, 0}};
    return {low, {static_cast<A>(1 - fraction), static_cast<A>(fraction)}};
  }
  /// The number of leading elements of the resized image for which holds(mixture) is true; it is false for all others.
  template <class A, class Predicate>
  __device__ std::int64_t leading(const Predicate& holds) const {
    std::int64_t first = 0, end = to;
    while (first < end) {
      const std::int64_t middle = first + (end - first) / 2;
      if (holds(mixture<A>(middle))) {
        first = middle + 1;
      } else {
        end = middle;
      }
    }
    return first;
  }
  /// The elements of the resized image that have `element` among their sources, which are ascending.
  template <class A>
  __device__ Range readers_of(std::int64_t element) const {
    const auto ends_before = [&](const Mixture<A>& m) { return m.low + (m.weight[1] != 0 ? 1 : 0) < element; };
    const auto begins_by = [&](const Mixture<A>& m) { return m.low <= element; };
    const std::int64_t first = leading<A>(ends_before);
    return {first, leading<A>(begins_by) - first};
  }
};

struct Resized {
  ImageShape x, y;
  ResizedAxis rows, columns;

  Resized(const sdk::Call& call, const sdk::Operand& image, const sdk::Operand& resized)
      : x(image, call.channels_last), y(resized, call.channels_last) {
    const auto& a = call.attr<tenon_attributes_resize>();  // for the dimensions in the order of the graph
    if (image.rank == 4) rows = {x.rows, y.rows, a.scales[2], a.mode, a.coordinates, a.rounding};
    columns = {x.columns, y.columns, a.scales[image.rank - 1], a.mode, a.coordinates, a.rounding};
  }
};

/// The sources of each row and column of the resized image; for the gradient, the users of each row and column of the image.
template <class A>
struct Tables {
  Mixture<A>*rows, *columns;
  Range *row_readers, *column_readers;

  Tables(void* scratch, const Resized& r)
      : rows(static_cast<Mixture<A>*>(scratch)),
        columns(rows + r.y.rows),
        row_readers(reinterpret_cast<Range*>(columns + r.y.columns)),
        column_readers(row_readers + r.x.rows) {}
};
std::size_t bytes_of_tables(const Resized& r) {
  return static_cast<std::size_t>(r.y.rows + r.y.columns) * sizeof(Mixture<double>) +
         static_cast<std::size_t>(r.x.rows + r.x.columns) * sizeof(Range);
}

template <class A>
__global__ void mix(ResizedAxis rows, ResizedAxis columns, Tables<A> tables) {
  for (std::int64_t i = thread_index(); i < rows.to + columns.to; i += thread_count()) {
    if (i < rows.to) {
      tables.rows[i] = rows.mixture<A>(i);
    } else {
      tables.columns[i - rows.to] = columns.mixture<A>(i - rows.to);
    }
  }
}
template <class A>
__global__ void find_readers(ResizedAxis rows, ResizedAxis columns, Tables<A> tables) {
  for (std::int64_t i = thread_index(); i < rows.from + columns.from; i += thread_count()) {
    // Not one call for either axis: a choice between kernel parameters would copy both to local memory.
    if (i < rows.from) {
      tables.row_readers[i] = rows.readers_of<A>(i);
    } else {
      tables.column_readers[i - rows.from] = columns.readers_of<A>(i - rows.from);
    }
  }
}

template <class A>
Tables<A> mixed(const sdk::Call& call, const Resized& r, bool readers) {
  const Tables<A> tables(call.scratch, r);
  Stream& stream = stream_of(call);
  launch(stream, grid_stride(stream.device(), r.y.rows + r.y.columns, 64), mix<A>, r.rows, r.columns, tables);
  if (readers) {
    launch(stream, grid_stride(stream.device(), r.x.rows + r.x.columns, 64), find_readers<A>, r.rows, r.columns, tables);
  }
  return tables;
}

/// Moves whole packs.
template <class Bits>
__global__ void move_nearest(Packs results, ImageShape x, const Mixture<float>* rows, const Mixture<float>* columns, const Bits* from,
                             Bits* to) {
  for (std::int64_t p = thread_index(); p < results.count; p += thread_count()) {
    const Packs::Place at = results[p];
    to[p] = from[((at.outer * x.rows + rows[at.row].low) * x.columns + columns[at.column].low) * x.inner + at.inner];
  }
}

template <class Bits>
void move(const sdk::Call& call, const Resized& r, std::size_t element_bytes) {
  const Tables<float> tables = mixed<float>(call, r, false);
  const auto elements = static_cast<std::int64_t>(sizeof(Bits) / element_bytes);
  ImageShape x = r.x, y = r.y;
  x.inner /= elements;
  y.inner /= elements;
  const Packs results(y, 1);
  launch_over(call, results.count, move_nearest<Bits>, results, x, tables.rows, tables.columns, call.input<Bits>(0), call.output<Bits>(0));
}

template <class T, int V>
__global__ void mix_linear(Packs results, ImageShape x, const Mixture<Wide<T>>* rows, const Mixture<Wide<T>>* columns, const T* from,
                           T* to) {
  for (std::int64_t p = thread_index(); p < results.count; p += thread_count()) {
    const Packs::Place at = results[p];
    const Mixture<Wide<T>> row = rows[at.row], column = columns[at.column];
    const T* const corner = from + ((at.outer * x.rows + row.low) * x.columns + column.low) * x.inner + at.inner;
    Pack<T, V> packs[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {  // one with weight 0 repeats the corner
      const std::int64_t down = row.weight[i / 2] != 0 ? i / 2 : 0, right = column.weight[i % 2] != 0 ? i % 2 : 0;
      packs[i] = pack_at<V>(corner + (down * x.columns + right) * x.inner);
    }
    Wide<T> sums[V] = {};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const Wide<T> weight = row.weight[i / 2] * column.weight[i % 2];
      if (weight == 0) continue;  // elements of weight 0 may be infinite
#pragma unroll
      for (int v = 0; v < V; ++v) sums[v] += weight * widen(packs[i].at[v]);
    }
    store_pack<V>(to + p * V, narrow<T>(sums));
  }
}

/// y[i] = sum over the elements of x next to i's coordinate of their weight times x; each dimension has its own weights.
///
/// Shapes      x (N, C, d...), y (N, C, e...), or their channels last.
/// Attributes  mode, coordinates, rounding (nearest), scales.
/// Source      ONNX's Resize, opset 13.
template <class T>
void resize(const sdk::Call& call) {
  if (call.outputs[0].count == 0) return;
  const Resized r(call, call.inputs[0], call.outputs[0]);
  const T* x = call.input<T>(0);
  T* y = call.output<T>(0);
  const bool packs = fits_packs<T>(r.x.inner, x, y);
  if (r.columns.mode == TENON_RESIZE_NEAREST) {
    return packs ? move<Pack<std::uint64_t, 2>>(call, r, sizeof(T)) : move<BitsOf<T>>(call, r, sizeof(T));
  }
  const auto tables = mixed<Wide<T>>(call, r, false);
  const Packs results(r.y, packs ? pack_width<T> : 1);
  launch_over(call, results.count, packs ? mix_linear<T, pack_width<T>> : mix_linear<T, 1>, results, r.x, tables.rows, tables.columns, x,
              y);
}

/// The weight of an element in one of the resized image.
template <class A>
__device__ A weight_of(std::int64_t element, const Mixture<A>& mixture) {
  return element == mixture.low ? mixture.weight[0] : mixture.weight[1];
}

template <class T, int V>
__global__ void gather_parts(Packs elements, ImageShape y, Tables<Wide<T>> tables, const T* dy, T* dx) {
  for (std::int64_t p = thread_index(); p < elements.count; p += thread_count()) {
    const Packs::Place at = elements[p];
    const Range down = tables.row_readers[at.row], across = tables.column_readers[at.column];
    const T* const from = dy + at.outer * y.rows * y.columns * y.inner + at.inner;
    const auto weight = [&](const PlaneLoop& reader) {
      return weight_of(at.row, tables.rows[down.first + reader.row]) * weight_of(at.column, tables.columns[across.first + reader.column]);
    };
    Wide<T> sums[V] = {};
    add_weighted(PlaneLoop(down, across, 1, 1, y.columns), from, y.inner, weight, sums);
    store_pack<V>(dx + p * V, narrow<T>(sums));
  }
}

/// dx[k] = sum over y of the weight of x[k] in it, times dy, in the order of y: the transpose.
///
/// Shapes      dy (N, C, e...), dx (N, C, d...), or their channels last.
/// Attributes  those of resize.
template <class T>
void resize_grad(const sdk::Call& call) {
  if (call.outputs[0].count == 0) return;
  const Resized r(call, call.outputs[0], call.inputs[0]);
  const T* dy = call.input<T>(0);
  T* dx = call.output<T>(0);
  const bool packs = fits_packs<T>(r.x.inner, dy, dx);
  const auto tables = mixed<Wide<T>>(call, r, true);
  const Packs elements(r.x, packs ? pack_width<T> : 1);
  launch_over(call, elements.count, packs ? gather_parts<T, pack_width<T>> : gather_parts<T, 1>, elements, r.y, tables, dy, dx);
}

std::size_t scratch(const sdk::Call& call) {
  return bytes_of_tables(Resized(call, call.inputs[0], call.outputs[0]));
}
std::size_t scratch_of_gradient(const sdk::Call& call) {
  return bytes_of_tables(Resized(call, call.outputs[0], call.inputs[0]));
}

constexpr sdk::ChannelsLast images{.inputs = 1, .outputs = 1};

}  // namespace
TENON_KERNEL_WITH(resize, (sdk::Traits{.channels_last = images, .channels_last_when = images_last, .scratch = scratch}), sdk::Half,
                  sdk::BFloat16, float, double)
TENON_KERNEL_WITH(resize_grad, (sdk::Traits{.channels_last = images, .channels_last_when = images_last, .scratch = scratch_of_gradient}),
                  sdk::Half, sdk::BFloat16, float, double)
}  // namespace tenon::cuda
