// SPDX-License-Identifier: Apache-2.0
// Scatter: updates to elements and slices selected by indices. Updates of an element are applied in row-major order, without atomics, so
// results are deterministic.
//
// One thread applies all updates of an element, in order. With few updates along the axis it finds them by looking at all their indices;
// with many, updates are sorted by their target.
#include <tenon/sdk/element.h>
#include <tenon/sdk/rounding.h>

#include <algorithm>
#include <array>

#include "kernel/half.cuh"
#include "kernel/indices.cuh"
#include "kernel/pack.cuh"
#include "movement/movable.h"
#include "movement/radix_sort.h"

namespace tenon::cuda {
namespace {

struct Replace {
  template <class T>
  __device__ T operator()(T, T update) const {
    return update;
  }
};
/// a + b and a * b; integers wrap, of bools they are "or" and "and".
struct Sum {
  template <class T>
  __device__ T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    } else {
      return a + b;
    }
  }
};
struct Product {
  template <class T>
  __device__ T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    } else {
      return a * b;
    }
  }
};

/// NaN wins.
struct Largest {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return b > a || b != b ? b : a;
  }
};
struct Smallest {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return b < a || b != b ? b : a;
  }
};

/// Updates of f16 and bf16 are reduced in f32.
template <class T>
using Reduced = std::conditional_t<is_narrow<T>, float, T>;
template <class T>
__device__ Reduced<T> widened(T x) {
  if constexpr (is_narrow<T>) {
    return to_float(x);
  } else {
    return x;
  }
}
template <class T>
__device__ T rounded(Reduced<T> x) {
  if constexpr (is_narrow<T>) {
    return from_float<T>(x);
  } else {
    return x;
  }
}

/// The maximum number of updates along the axis for one thread: a sort of a few thousand costs as much as 64 dependent reads of memory.
constexpr std::int64_t few = 64;

bool is_sorted(std::int64_t along_axis, std::int64_t pairs) {
  return along_axis > few && pairs <= max_sorted;
}

void copy_input(const sdk::Call& call, std::size_t element_bytes) {
  const sdk::Operand &x = call.inputs[0], &y = call.outputs[0];
  if (y.count == 0) return;
  Stream& stream = stream_of(call);
  stream.device().enter();
  stream.device().check(
      cudaMemcpyAsync(y.data, x.data, static_cast<std::size_t>(y.count) * element_bytes, cudaMemcpyDeviceToDevice, stream.handle()),
      "cudaMemcpyAsync");
}

// ---------------------------------------------------------------- one index for each update

/// The updates by line: `others` are the dimensions other than the axis, in the updates (operand 0) and in y (operand 1).
struct Lines {
  Layout<2> others;
  std::int64_t along, update_step, y_step;  ///< along the axis: number of updates, and strides
};

template <class T, class Change>
__global__ void scatter_lines(Change change, Indices indices, Lines lines, const T* updates, T* y) {
  for (std::int64_t l = thread_index(); l < lines.others.count; l += thread_count()) {
    std::int64_t at[2];
    place(lines.others, l, at);
    for (std::int64_t j = 0; j < lines.along; ++j) {
      const std::int64_t u = at[0] + j * lines.update_step, index = indices[u];
      if (index < 0) continue;
      T& element = y[at[1] + index * lines.y_step];
      element = change(element, updates[u]);
    }
  }
}

/// The key of an update is the element of y that it changes, or y's count if the index is invalid. `layout` maps updates to y, with stride
/// 0 along the axis.
__global__ void key_elements(Indices indices, Layout<1> layout, std::int64_t y_step, std::int64_t y_count, std::uint64_t* keys,
                             std::uint32_t* positions) {
  for (std::int64_t u = thread_index(); u < indices.count; u += thread_count()) {
    std::int64_t at[1];
    place(layout, u, at);
    const std::int64_t index = indices[u];
    keys[u] = static_cast<std::uint64_t>(index < 0 ? y_count : at[0] + index * y_step);
    positions[u] = static_cast<std::uint32_t>(u);
  }
}

/// Updates sorted by key; equal keys keep their order.
struct Sorted {
  const std::uint64_t* keys;
  const std::uint32_t* positions;
  std::int64_t count;

  /// True for the first pair of its key.
  __device__ bool leads(std::int64_t p) const { return p == 0 || keys[p - 1] != keys[p]; }
};

/// y (outer, n, inner), updates (outer, count, inner)
struct Axes {
  std::int64_t outer, n, inner;
};

/// Keys are in [0, n]; n marks invalid indices.
template <class T, class Change>
__global__ void change_sorted(Change change, Sorted sorted, Axes axes, const T* updates, T* y) {
  constexpr int at_once = 8;  // loads in flight: one run may contain all updates
  for (std::int64_t e = thread_index(); e < axes.outer * sorted.count * axes.inner; e += thread_count()) {
    const std::int64_t row = quotient(e, axes.inner), o = quotient(row, sorted.count), i = e - row * axes.inner;
    std::int64_t p = row - o * sorted.count;
    const std::uint64_t key = sorted.keys[p];
    if (!sorted.leads(p) || key == static_cast<std::uint64_t>(axes.n)) continue;
    T* const element = y + (o * axes.n + static_cast<std::int64_t>(key)) * axes.inner + i;
    const T* const own = updates + o * sorted.count * axes.inner + i;
    Reduced<T> value = widened(*element);
    for (bool goes_on = true; goes_on; p += at_once) {
      T update[at_once];
      bool is_one[at_once];
#pragma unroll
      for (int j = 0; j < at_once; ++j) {
        is_one[j] = p + j < sorted.count && sorted.keys[p + j] == key;
        if (is_one[j]) update[j] = own[std::int64_t{sorted.positions[p + j]} * axes.inner];
      }
#pragma unroll
      for (int j = 0; j < at_once; ++j) {
        if (is_one[j]) value = change(value, widened(update[j]));
      }
      goes_on = is_one[at_once - 1];
    }
    *element = rounded<T>(value);
  }
}

template <class T, class Change>
void change_elements(const sdk::Call& call, std::size_t axis) {
  const sdk::Operand &x = call.inputs[0], &updates = call.inputs[2], &y = call.outputs[0];
  const Indices indices = indices_of(call, TENON_OP_ScatterElements, x.shape[axis]);
  Stream& stream = stream_of(call);
  sdk::Strides y_strides = sdk::strides_of(y), update_strides = sdk::strides_of(updates);
  const std::int64_t y_step = y_strides[axis], update_step = update_strides[axis];
  y_strides[axis] = 0;
  if (is_sorted(updates.shape[axis], updates.count)) {
    const SortBuffers buffers = sort_buffers(call.scratch, updates.count);
    launch_over(stream, updates.count, key_elements, indices, collapse<1>(updates.shape, updates.rank, {y_strides}), y_step, y.count,
                buffers.keys[0], buffers.values[0]);
    const int sorted = sort_pairs(stream, buffers, updates.count, bits_below(y.count + 1));
    launch_over(stream, updates.count, change_sorted<T, Change>, Change{},
                Sorted{buffers.keys[sorted], buffers.values[sorted], updates.count}, Axes{1, y.count, 1}, call.input<T>(2),
                call.output<T>(0));
  } else if (updates.count > 0) {
    sdk::Strides others{};  // the shape without the axis
    for (std::uint32_t d = 0; d < updates.rank; ++d) others[d] = d == axis ? 1 : updates.shape[d];
    const Lines lines{collapse<2>(others.data(), updates.rank, {update_strides, y_strides}), updates.shape[axis], update_step, y_step};
    launch_over(stream, lines.others.count, scatter_lines<T, Change>, Change{}, indices, lines, call.input<T>(2), call.output<T>(0));
  }
}

/// y = x, then y[..., indices[..., j, ...], ...] = updates[..., j, ...] along `axis`, or reduced with it.
///
/// Shapes      all dense; indices as updates, y as x.
/// Dtypes      all; f16 and bf16 in f32, rounded at the end.
/// Attributes  axis; reduction: none (the last of several stays), add, mul, max, min.
/// Errors      an index outside [-n, n), when the work is waited for: it changes nothing.
template <class T>
void scatter_elements(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_scatter>();
  const auto axis = static_cast<std::size_t>(attributes.axis);
  copy_input(call, sizeof(T));
  switch (attributes.reduction) {
    case TENON_SCATTER_ADD:
      return change_elements<T, Sum>(call, axis);
    case TENON_SCATTER_MUL:
      return change_elements<T, Product>(call, axis);
    case TENON_SCATTER_MAX:
      return change_elements<T, Largest>(call, axis);
    case TENON_SCATTER_MIN:
      return change_elements<T, Smallest>(call, axis);
    default:
      return change_elements<T, Replace>(call, axis);
  }
}

std::size_t elements_scratch(const sdk::Call& call) {
  const sdk::Operand& updates = call.inputs[2];
  const std::int64_t axis = call.attr<tenon_attributes_scatter>().axis;
  return is_sorted(updates.shape[axis], updates.count) ? sort_bytes(updates.count) : 0;
}

// ---------------------------------------------------------------- one index for each line of updates

/// The thread of the first update of an element makes all of them.
template <class T, class Change>
__global__ void change_few_lines(Change change, Indices indices, std::int64_t outer, std::int64_t inner, const T* updates, T* y) {
  for (std::int64_t e = thread_index(); e < outer * indices.count * inner; e += thread_count()) {
    const std::int64_t row = quotient(e, inner), o = quotient(row, indices.count), i = e - row * inner;
    const std::int64_t k = row - o * indices.count, index = indices[k];
    bool leads = index >= 0;
    for (std::int64_t j = 0; j < k && leads; ++j) leads = indices[j] != index;
    if (!leads) continue;
    T* const element = y + (o * indices.n + index) * inner + i;
    const T* const own = updates + o * indices.count * inner + i;
    Reduced<T> value = change(widened(*element), widened(own[k * inner]));
    for (std::int64_t j = k + 1; j < indices.count; ++j) {
      if (indices[j] == index) value = change(value, widened(own[j * inner]));
    }
    *element = rounded<T>(value);
  }
}

/// The key of a line is its index, or n if the index is invalid.
__global__ void key_lines(Indices indices, std::uint64_t* keys, std::uint32_t* positions) {
  for (std::int64_t k = thread_index(); k < indices.count; k += thread_count()) {
    const std::int64_t index = indices[k];
    keys[k] = static_cast<std::uint64_t>(index < 0 ? indices.n : index);
    positions[k] = static_cast<std::uint32_t>(k);
  }
}

/// Bytes of the copy of operand i, which is read while the result is written: 0 if it cannot have the result's storage.
std::size_t copy_bytes(const sdk::Call& call, std::uint32_t i) {
  const sdk::Operand &x = call.inputs[i], &y = call.outputs[0];
  const bool may_be_result = x.dtype == y.dtype && x.rank == y.rank && std::equal(x.shape, x.shape + x.rank, y.shape);
  return may_be_result ? sdk::aligned_size(static_cast<std::size_t>(x.count * sdk::size_of(x.dtype))) : 0;
}

/// Operand i, or a copy of it at `copy` if it has the result's storage.
void* kept(const sdk::Call& call, std::uint32_t i, unsigned char* copy) {
  const sdk::Operand& x = call.inputs[i];
  if (x.data != call.outputs[0].data || x.count == 0) return x.data;
  Stream& stream = stream_of(call);
  stream.device().enter();
  stream.device().check(
      cudaMemcpyAsync(copy, x.data, static_cast<std::size_t>(x.count * sdk::size_of(x.dtype)), cudaMemcpyDeviceToDevice, stream.handle()),
      "cudaMemcpyAsync");
  return copy;
}

/// Scratch memory: the buffers of a sort, the copies of indices and updates.
std::size_t slices_sort_bytes(const sdk::Call& call) {
  const std::int64_t count = call.inputs[1].count;
  return is_sorted(count, count) ? sdk::aligned_size(sort_bytes(count)) : 0;
}
std::size_t slices_scratch(const sdk::Call& call) {
  return slices_sort_bytes(call) + copy_bytes(call, 1) + copy_bytes(call, 2);
}

/// Applies updates to lines of `inner` elements of T.
template <class T, class Change>
void change_lines(const sdk::Call& call, const Indices& indices, std::int64_t outer, std::int64_t inner, const void* updates) {
  Stream& stream = stream_of(call);
  const auto* const update = static_cast<const T*>(updates);
  if (slices_sort_bytes(call) > 0) {
    const SortBuffers buffers = sort_buffers(call.scratch, indices.count);
    launch_over(stream, indices.count, key_lines, indices, buffers.keys[0], buffers.values[0]);
    const int sorted = sort_pairs(stream, buffers, indices.count, bits_below(indices.n + 1));
    launch_over(stream, outer * indices.count * inner, change_sorted<T, Change>, Change{},
                Sorted{buffers.keys[sorted], buffers.values[sorted], indices.count}, Axes{outer, indices.n, inner}, update,
                call.output<T>(0));
  } else {
    launch_over(stream, outer * indices.count * inner, change_few_lines<T, Change>, Change{}, indices, outer, inner, update,
                call.output<T>(0));
  }
}

/// Replaces lines as elements of T if their size is a multiple of sizeof(T).
template <class T>
bool replaced_by(const sdk::Call& call, const Indices& indices, std::int64_t outer, std::int64_t line_bytes, const void* updates) {
  constexpr auto size = static_cast<std::int64_t>(sizeof(T));
  if (line_bytes % size != 0 || !is_aligned(sizeof(T), updates, call.outputs[0].data)) return false;
  change_lines<T, Replace>(call, indices, outer, line_bytes / size, updates);
  return true;
}

/// y = x, then y[o, indices[k], i] = updates[o, k, i] around the axis, or reduced with it, in the order of k.
///
/// Shapes  all dense; updates have the shape of indices in place of the axis.
/// Dtypes  all; f16 and bf16 in f32, rounded at the end.
/// Errors  an index outside [-n, n), when the work is waited for: it changes nothing.
template <class T>
void change_slices(const sdk::Call& call, tenon_op op, std::int64_t axis, std::uint32_t reduction) {
  const auto [outer, n, inner] = sdk::around_axis(call.inputs[0], axis);
  unsigned char* const copies = static_cast<unsigned char*>(call.scratch) + slices_sort_bytes(call);
  Indices indices = indices_of(call, op, n);
  indices.data = kept(call, 1, copies);
  const void* const updates = kept(call, 2, copies + copy_bytes(call, 1));
  if (call.inputs[0].data != call.outputs[0].data) copy_input(call, sizeof(T));
  if (call.inputs[2].count == 0) return launch_over(stream_of(call), indices.count, check_indices, indices);
  switch (reduction) {
    case TENON_SCATTER_ADD:
      return change_lines<T, Sum>(call, indices, outer, inner, updates);
    case TENON_SCATTER_MUL:
      return change_lines<T, Product>(call, indices, outer, inner, updates);
    case TENON_SCATTER_MAX:
      return change_lines<T, Largest>(call, indices, outer, inner, updates);
    case TENON_SCATTER_MIN:
      return change_lines<T, Smallest>(call, indices, outer, inner, updates);
    default:
      break;
  }
  const std::int64_t line_bytes = inner * static_cast<std::int64_t>(sizeof(T));
  if (!replaced_by<Pack<std::uint64_t, 2>>(call, indices, outer, line_bytes, updates)) {
    replaced_by<BitsOf<T>>(call, indices, outer, line_bytes, updates);
  }
}

template <class T>
void scatter_add(const sdk::Call& call) {
  change_slices<T>(call, TENON_OP_ScatterAdd, call.attr<tenon_attributes_axis>().axis, TENON_SCATTER_ADD);
}

template <class T>
void scatter_slices(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_scatter>();
  change_slices<T>(call, TENON_OP_ScatterSlices, attributes.axis, attributes.reduction);
}

constexpr sdk::Traits slices_traits{.in_place = true, .scratch = slices_scratch};

}  // namespace
TENON_KERNEL_WITH(scatter_elements, (sdk::Traits{.scratch = elements_scratch}), TENON_COMPARABLE_TYPES)
TENON_KERNEL_WITH(scatter_add, slices_traits, sdk::Half, sdk::BFloat16, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(scatter_slices, slices_traits, TENON_MOVABLE_TYPES)
}  // namespace tenon::cuda
