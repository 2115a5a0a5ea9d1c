// SPDX-License-Identifier: Apache-2.0
// Products of stacks of matrices.
#include <tenon/sdk/kernel.h>
#include <tenon/sdk/strided.h>

#include <array>

namespace tenon::reference {
namespace {

/// The last two dimensions of an operand as rows and columns, the others as a stack. A vector is one row or one column.
struct Stack {
  std::int64_t rows = 1, columns = 1;
  std::int64_t row_stride = 0, column_stride = 0;
  sdk::Operand matrices;  ///< the operand without its matrix dimensions

  static Stack of_left(const sdk::Operand& x) { return x.rank == 1 ? of_vector(x, true) : of_matrices(x); }
  static Stack of_right(const sdk::Operand& x) { return x.rank == 1 ? of_vector(x, false) : of_matrices(x); }

 private:
  static Stack of_matrices(const sdk::Operand& x) {
    const std::uint32_t r = x.rank - 2;
    Stack stack{x.shape[r], x.shape[r + 1], x.strides[r], x.strides[r + 1], x};
    stack.matrices.rank = r;
    return stack;
  }
  static Stack of_vector(const sdk::Operand& x, bool is_row) {
    Stack stack;
    (is_row ? stack.columns : stack.rows) = x.shape[0];
    (is_row ? stack.column_stride : stack.row_stride) = x.strides[0];
    return stack;
  }
};

/// y[s, i, j] = sum over k of a[s, i, k] b[s, k, j]
///
/// Shapes  a (..., m, k), b (..., k, n), y (..., m, n); the leading dimensions s broadcast. a (k) is one row and b (k) one column; y then
///         lacks that dimension. k = 0 gives zeros.
/// Dtypes  f32, f64; the sum is carried in f64.
template <class T>
void matmul(const sdk::Call& call) {
  const Stack a = Stack::of_left(call.inputs[0]);
  const Stack b = Stack::of_right(call.inputs[1]);
  const sdk::Operand& y = call.outputs[0];
  const std::uint32_t vectors = (call.inputs[0].rank == 1 ? 1u : 0u) + (call.inputs[1].rank == 1 ? 1u : 0u);
  const std::uint32_t stack_rank = y.rank - (2 - vectors);
  const std::array<sdk::Strides, 2> strides{sdk::broadcast_strides(a.matrices, stack_rank), sdk::broadcast_strides(b.matrices, stack_rank)};
  const T* from_a = call.input<T>(0);
  const T* from_b = call.input<T>(1);
  T* out = call.output<T>(0);
  sdk::for_each_element(y.shape, stack_rank, strides, [&](std::int64_t, const auto& at) {
    for (std::int64_t i = 0; i < a.rows; ++i) {
      for (std::int64_t j = 0; j < b.columns; ++j) {
        double sum = 0;
        for (std::int64_t k = 0; k < a.columns; ++k) {
          const T left = from_a[at[0] + i * a.row_stride + k * a.column_stride];
          const T right = from_b[at[1] + k * b.row_stride + j * b.column_stride];
          sum += double{left} * double{right};
        }
        *out++ = static_cast<T>(sum);
      }
    }
  });
}

}  // namespace
TENON_KERNEL_WITH(matmul, (sdk::Traits{.strided = true}), float, double)
}  // namespace tenon::reference
