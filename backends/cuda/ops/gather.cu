// SPDX-License-Identifier: Apache-2.0
// Gather: elements selected by indices.
#include <tenon/sdk/element.h>

#include <array>

#include "kernel/indices.cuh"
#include "kernel/pack.cuh"
#include "movement/movable.h"

namespace tenon::cuda {
namespace {

/// x (outer, n, inner) -> y (outer, indices, inner)
template <class T>
__global__ void gather_lines(Indices indices, std::int64_t count, std::int64_t inner, const T* x, T* y) {
  for (std::int64_t e = thread_index(); e < count; e += thread_count()) {
    const std::int64_t row = quotient(e, inner), o = quotient(row, indices.count);
    const std::int64_t index = indices[row - o * indices.count];
    if (index >= 0) y[e] = x[(o * indices.n + index) * inner + (e - row * inner)];
  }
}

/// Moves lines as elements of T if their size is a multiple of sizeof(T).
template <class T>
bool gathered_by(const sdk::Call& call, const Indices& indices, std::int64_t outer, std::int64_t line_bytes) {
  constexpr auto size = static_cast<std::int64_t>(sizeof(T));
  if (line_bytes % size != 0 || !is_aligned(sizeof(T), call.inputs[0].data, call.outputs[0].data)) return false;
  const std::int64_t inner = line_bytes / size, count = outer * indices.count * inner;
  launch_over(call, count, gather_lines<T>, indices, count, inner, call.input<T>(0), call.output<T>(0));
  return true;
}

/// y[o, k, i] = x[o, indices[k], i] around `axis`
///
/// Shapes  x, indices dense; y has the shape of indices in place of the axis.
/// Errors  an index outside [-n, n), when the work is waited for.
template <class T>
void gather(const sdk::Call& call) {
  const auto [outer, n, inner] = sdk::around_axis(call.inputs[0], call.attr<tenon_attributes_axis>().axis);
  const Indices indices = indices_of(call, TENON_OP_Gather, n);
  if (call.outputs[0].count == 0) {
    return launch_over(call, indices.count, check_indices, indices);
  }
  const std::int64_t line_bytes = inner * static_cast<std::int64_t>(sizeof(T));
  if (gathered_by<Pack<std::uint64_t, 2>>(call, indices, outer, line_bytes)) return;
  if (sizeof(T) < 4 && gathered_by<std::uint32_t>(call, indices, outer, line_bytes)) return;
  gathered_by<BitsOf<T>>(call, indices, outer, line_bytes);
}

/// `layout` maps the elements of y to x, with stride 0 along the axis, where the indices select with stride `step`.
template <class T>
__global__ void gather_each(Indices indices, Layout<1> layout, std::int64_t step, const T* x, T* y) {
  for (std::int64_t i = thread_index(); i < layout.count; i += thread_count()) {
    std::int64_t at[1];
    place(layout, i, at);
    const std::int64_t index = indices[i];
    if (index >= 0) y[i] = x[at[0] + index * step];
  }
}

/// y[..., j, ...] = x[..., indices[..., j, ...], ...] along `axis`
///
/// Shapes  x, indices dense, y as indices.
/// Errors  an index outside [-n, n), when the work is waited for.
template <class T>
void gather_elements(const sdk::Call& call) {
  using Bits = BitsOf<T>;
  const auto axis = static_cast<std::size_t>(call.attr<tenon_attributes_axis>().axis);
  const sdk::Operand &x = call.inputs[0], &y = call.outputs[0];
  std::array<sdk::Strides, 1> strides{sdk::strides_of(x)};
  const std::int64_t step = strides[0][axis];
  strides[0][axis] = 0;
  launch_over(call, y.count, gather_each<Bits>, indices_of(call, TENON_OP_GatherElements, x.shape[axis]),
              collapse<1>(y.shape, y.rank, strides), step, call.input<Bits>(0), call.output<Bits>(0));
}

}  // namespace
TENON_KERNEL(gather, TENON_MOVABLE_TYPES)
TENON_KERNEL(gather_elements, TENON_MOVABLE_TYPES)
}  // namespace tenon::cuda
