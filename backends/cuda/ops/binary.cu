// SPDX-License-Identifier: Apache-2.0
// Arithmetic of two operands, NumPy broadcasting.
#include "elementwise/map.cuh"
#include "kernel/fault.cuh"
#include "kernel/functions.cuh"

namespace tenon::cuda {
namespace {

/// Integers: rounds toward zero; the lowest value by -1 wraps.
/// Errors  zero_divisor.
struct IntegerDiv {
  Fault fault;
  template <class T>
  __device__ T operator()(T a, T b) const {
    if (b == 0) {
      fault.raise(FaultKind::zero_divisor, 0);
      return 0;
    }
    return b == -1 ? functions::negated(a) : a / b;
  }
};

/// Errors  INVALID_ARGUMENT for an integer divided by zero, when the work is waited for.
template <class T>
void div(const sdk::Call& call) {
  if constexpr (std::is_integral_v<T>) {
    map<T, T, T>(call, IntegerDiv{fault_of(call, TENON_OP_Div)});
  } else {
    map<T, T, T>(call, functions::Div{});
  }
}

}  // namespace
TENON_BINARY_KERNEL(add, functions::Add{}, float, double, std::int32_t, std::int64_t)
TENON_BINARY_KERNEL(sub, functions::Sub{}, float, double, std::int32_t, std::int64_t)
TENON_BINARY_KERNEL(mul, functions::Mul{}, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(div, elementwise_traits, float, double, std::int32_t, std::int64_t)
TENON_BINARY_KERNEL(pow, functions::Pow{}, float, double)
TENON_BINARY_KERNEL(maximum, functions::Max{}, float, double, std::int32_t, std::int64_t)
TENON_BINARY_KERNEL(minimum, functions::Min{}, float, double, std::int32_t, std::int64_t)
}  // namespace tenon::cuda
