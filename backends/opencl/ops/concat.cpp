// SPDX-License-Identifier: Apache-2.0
#include <tenon/sdk/element.h>

#include "kernel/copy.h"

namespace tenon::opencl {
namespace {

/// y = the operands concatenated along `axis`.
template <class T>
void concat(const sdk::Call& call) {
  sdk::for_each_concat_copy(call, [&](const sdk::StridedCopy& copy) { copy_strided<T>(call, copy); });
}

/// The results are consecutive slices of x along `axis`.
template <class T>
void split(const sdk::Call& call) {
  sdk::for_each_split_copy(call, [&](const sdk::StridedCopy& copy) { copy_strided<T>(call, copy); });
}

}  // namespace
TENON_KERNEL_WITH(concat, (sdk::Traits{.strided = true}), TENON_MOVABLE_TYPES)
TENON_KERNEL_WITH(split, (sdk::Traits{.strided = true, .refuse = sdk::refuse_absent_results}), TENON_MOVABLE_TYPES)
}  // namespace tenon::opencl
