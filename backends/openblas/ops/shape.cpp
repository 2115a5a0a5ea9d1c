// SPDX-License-Identifier: Apache-2.0
// ops/shape.cpp - reshape, flatten, transpose, expand: copies of x with another shape or layout.
#include <tenon/sdk/element.h>

#include "elementwise/strided_copy.h"

namespace tenon::openblas {
namespace {

/// y has the elements of x in row-major order.
template <class T>
void keep_order(const sdk::Call& call) {
  sdk::Operand y = call.outputs[0];
  y.rank = call.inputs[0].rank;
  y.shape = call.inputs[0].shape;
  copy_strided(call.host, call.inputs[0], y, sizeof(T));
}

/// y = x with another shape
template <class T>
void reshape(const sdk::Call& call) {
  keep_order<T>(call);
}

/// y = x as a matrix
template <class T>
void flatten(const sdk::Call& call) {
  keep_order<T>(call);
}

/// y[i0, i1, ...] = x[...], with dimension axes[k] of x indexed by ik
template <class T>
void transpose(const sdk::Call& call) {
  std::int64_t shape[TENON_MAX_RANK];
  std::int64_t strides[TENON_MAX_RANK];
  const sdk::Operand view = permuted(call.inputs[0], call.attr<tenon_attributes_axes>().axes, shape, strides);
  copy_strided(call.host, view, call.outputs[0], sizeof(T));
}

/// y = x broadcast to the shape of y
template <class T>
void expand(const sdk::Call& call) {
  copy_strided(call.host, call.inputs[0], call.outputs[0], sizeof(T));
}

constexpr sdk::Traits traits{.strided = true};

}  // namespace

TENON_KERNEL_WITH(reshape, traits, TENON_MOVABLE_TYPES)
TENON_KERNEL_WITH(flatten, traits, TENON_MOVABLE_TYPES)
TENON_KERNEL_WITH(transpose, traits, TENON_MOVABLE_TYPES)
TENON_KERNEL_WITH(expand, traits, TENON_MOVABLE_TYPES)

}  // namespace tenon::openblas
