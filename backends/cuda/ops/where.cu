// SPDX-License-Identifier: Apache-2.0
// y = condition ? a : b, by element size only.
#include "elementwise/map.cuh"
#include "kernel/functions.cuh"
#include "movement/movable.h"

namespace tenon::cuda {
namespace {

template <class T>
void where(const sdk::Call& call) {
  using Bits = BitsOf<T>;
  map<Bits, bool, Bits, Bits>(call, functions::Where{});
}

}  // namespace
TENON_KERNEL_WITH(where, elementwise_traits, TENON_MOVABLE_TYPES)
}  // namespace tenon::cuda
