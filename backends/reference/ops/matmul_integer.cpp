// SPDX-License-Identifier: Apache-2.0
// Products of stacks of matrices of 8-bit integers.
#include <tenon/sdk/kernel.h>
#include <tenon/sdk/strided.h>

#include <array>

namespace tenon::reference {
namespace {

/// The element of a list of zero points that belongs to line i: of a scalar, the one; of an absent list, 0.
std::int64_t zero_point_at(const sdk::Call& call, std::uint32_t operand, std::int64_t i) {
  if (!call.has_input(operand)) return 0;
  const sdk::Operand& list = call.inputs[operand];
  const std::int64_t at = list.rank == 0 ? 0 : i;
  return list.dtype == TENON_DTYPE_I8 ? std::int64_t{list.as<const std::int8_t>()[at]} : std::int64_t{list.as<const std::uint8_t>()[at]};
}

template <class A, class B>
void multiply(const sdk::Call& call) {
  const sdk::Operand &a = call.inputs[0], &b = call.inputs[1], &y = call.outputs[0];
  const std::int64_t k = a.shape[a.rank - 1];
  const std::int64_t rows = a.rank == 1 ? 1 : a.shape[a.rank - 2], columns = b.rank == 1 ? 1 : b.shape[b.rank - 1];
  sdk::Operand left = a, right = b;  // the stacks, without the dimensions of the matrices
  left.rank = a.rank < 2 ? 0 : a.rank - 2;
  right.rank = b.rank < 2 ? 0 : b.rank - 2;
  const std::uint32_t stack_rank = y.rank - (a.rank > 1 ? 1 : 0) - (b.rank > 1 ? 1 : 0);
  const std::array<sdk::Strides, 2> strides{sdk::broadcast_strides(left, stack_rank), sdk::broadcast_strides(right, stack_rank)};
  const A* from_a = call.input<A>(0);
  const B* from_b = call.input<B>(1);
  auto* out = call.output<std::int32_t>(0);
  sdk::for_each_element(y.shape, stack_rank, strides, [&](std::int64_t, const auto& at) {
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t a_zero_point = zero_point_at(call, 2, i);
      for (std::int64_t j = 0; j < columns; ++j) {
        const std::int64_t b_zero_point = zero_point_at(call, 3, j);
        std::int64_t sum = 0;
        for (std::int64_t p = 0; p < k; ++p) {
          sum += (from_a[at[0] + i * k + p] - a_zero_point) * (from_b[at[1] + p * columns + j] - b_zero_point);
        }
        *out++ = static_cast<std::int32_t>(static_cast<std::uint64_t>(sum));
      }
    }
  });
}

/// y[s, i, j] = sum over k of (a[s, i, k] - a_zero_point[i]) (b[s, k, j] - b_zero_point[j]), modulo 2^32
///
/// Shapes  as of matmul; a_zero_point () or (m), b_zero_point () or (n), or absent for 0.
/// Dtypes  a of T; b of i8 or u8.
template <class T>
void matmul_integer(const sdk::Call& call) {
  return call.inputs[1].dtype == TENON_DTYPE_I8 ? multiply<T, std::int8_t>(call) : multiply<T, std::uint8_t>(call);
}

}  // namespace
TENON_KERNEL(matmul_integer, std::int8_t, std::uint8_t)
}  // namespace tenon::reference
