// SPDX-License-Identifier: Apache-2.0
// Ops that rearrange elements. Where a view suffices, no kernel runs; these kernels materialize the result.
#include <tenon/sdk/element.h>
#include <tenon/sdk/kernel.h>

#include "kernel/launch.h"
#include "movement/strided_copy.h"

namespace tenon::cuda {
namespace {

/// y = x's elements in row-major order; plans also use it for dense copies of strided operands.
template <class T>
void reshape(const sdk::Call& call) {
  copy_strided(stream_of(call), sizeof(T), sdk::reshape_copy(call));
}

/// y (d0 ... d[axis-1], d[axis] ...) = x's elements in row-major order: only the shape differs from reshape.
template <class T>
void flatten(const sdk::Call& call) {
  reshape<T>(call);
}

/// y[j0, j1, ...] = x[i0, i1, ...] with i[axes[k]] = j[k]
template <class T>
void transpose(const sdk::Call& call) {
  copy_strided(stream_of(call), sizeof(T), sdk::transpose_copy(call));
}

/// y = x broadcast to the shape of y, as NumPy does.
template <class T>
void expand(const sdk::Call& call) {
  copy_strided(stream_of(call), sizeof(T), sdk::expand_copy(call));
}

}  // namespace
TENON_KERNEL_WITH(reshape, (sdk::Traits{.strided = true}), TENON_MOVABLE_TYPES)
TENON_KERNEL_WITH(flatten, (sdk::Traits{.strided = true}), TENON_MOVABLE_TYPES)
TENON_KERNEL_WITH(transpose, (sdk::Traits{.strided = true}), TENON_MOVABLE_TYPES)
TENON_KERNEL_WITH(expand, (sdk::Traits{.strided = true}), TENON_MOVABLE_TYPES)
}  // namespace tenon::cuda
