// SPDX-License-Identifier: Apache-2.0
// Concatenation of tensors along an axis, and splitting.
#include <tenon/sdk/element.h>
#include <tenon/sdk/kernel.h>

#include "kernel/launch.h"
#include "movement/strided_copy.h"

namespace tenon::cuda {
namespace {

/// y = the operands concatenated along `axis`.
template <class T>
void concat(const sdk::Call& call) {
  StridedCopies copies(stream_of(call), sizeof(T));
  sdk::for_each_concat_copy(call, [&](const StridedCopy& copy) { copies.add(copy); });
  copies.send();
}

/// The results are consecutive slices of x along `axis`.
template <class T>
void split(const sdk::Call& call) {
  StridedCopies copies(stream_of(call), sizeof(T));
  sdk::for_each_split_copy(call, [&](const StridedCopy& copy) { copies.add(copy); });
  copies.send();
}

}  // namespace
TENON_KERNEL_WITH(concat, (sdk::Traits{.strided = true}), TENON_MOVABLE_TYPES)
TENON_KERNEL_WITH(split, (sdk::Traits{.strided = true, .refuse = sdk::refuse_absent_results}), TENON_MOVABLE_TYPES)
}  // namespace tenon::cuda
