// SPDX-License-Identifier: Apache-2.0
// One-hot encoding of class indices.
#include <tenon/sdk/element.h>
#include <tenon/sdk/kernel.h>

#include <bit>

#include "kernel/launch.h"
#include "kernel/thread_index.cuh"
#include "movement/movable.h"

namespace tenon::cuda {
namespace {

template <class Index>
struct Classes {
  const Index* index;
  std::int64_t count;  ///< elements of y
  std::int64_t depth, inner;
};

template <class T, class Index>
__global__ void mark_classes(Classes<Index> classes, T off, T on, T* y) {
  for (std::int64_t e = thread_index(); e < classes.count; e += thread_count()) {
    const std::int64_t row = quotient(e, classes.inner), o = quotient(row, classes.depth), j = row - o * classes.depth;
    const std::int64_t index = classes.index[o * classes.inner + (e - row * classes.inner)];
    y[e] = index == j || index == j - classes.depth ? on : off;
  }
}

template <class T, class Index>
void launch_marks(const sdk::Call& call) {
  using Bits = BitsOf<T>;
  const auto& attributes = call.attr<tenon_attributes_one_hot>();
  const auto [outer, depth, inner] = sdk::around_axis(call.outputs[0], attributes.axis);
  const Classes<Index> classes{call.input<Index>(0), call.outputs[0].count, depth, inner};
  launch_over(call, classes.count, mark_classes<Bits, Index>, classes, std::bit_cast<Bits>(sdk::element_of<T>(attributes.off)),
              std::bit_cast<Bits>(sdk::element_of<T>(attributes.on)), call.output<Bits>(0));
}

/// y[o, j, i] = on if indices[o, i] is j or j - depth, else off, around `axis` of y.
///
/// Shapes      indices dense; y has one dimension more, at the axis: its size is the depth.
/// Dtypes      y any, indices i32 or i64. An index outside [-depth, depth) gives only `off`.
/// Attributes  axis; off and on: values of y's dtype.
template <class T>
void one_hot(const sdk::Call& call) {
  if (call.inputs[0].dtype == TENON_DTYPE_I64)
    launch_marks<T, std::int64_t>(call);
  else
    launch_marks<T, std::int32_t>(call);
}

}  // namespace
TENON_KERNEL(one_hot, TENON_MOVABLE_TYPES)
}  // namespace tenon::cuda
