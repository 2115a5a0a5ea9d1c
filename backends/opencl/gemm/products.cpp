// SPDX-License-Identifier: Apache-2.0
#include "gemm/products.h"

#include "gemm/clblast_gemm.h"

namespace tenon::opencl {
namespace {

/// `Matrices` of gemm/product.cl.
struct Matrices {
  std::int64_t m, n, k, a_row, a_column, b_row, b_column;
};

template <class T>
void simple_product(Stream& stream, const Product<T>& p) {
  const Matrices sizes{p.a_view.rows,          p.b_view.columns,    p.a_view.columns,      p.a_view.row_stride,
                       p.a_view.column_stride, p.b_view.row_stride, p.b_view.column_stride};
  const bool empty = sizes.k == 0;
  Launch(stream, sources::product, "product", types<T>())
      .value(sizes)
      .value(p.batch)
      .address(p.y)
      .address(empty ? nullptr : p.a)
      .address(empty ? nullptr : p.b)
      .value(p.alpha)
      .value(p.beta)
      .over(p.batch.count * sizes.m * sizes.n);
}

template <class T>
bool product_by_clblast(Stream& stream, const Product<T>& p) {
  const std::int64_t m = p.a_view.rows, n = p.b_view.columns, k = p.a_view.columns;
  if (!worth_clblast(m, n, k, p.batch.count) || p.batch.rank > 1) return false;
  const auto a_layout = sdk::blas_layout(p.a_view), b_layout = sdk::blas_layout(p.b_view);
  if (!a_layout || !b_layout) return false;
  const Device& device = stream.device();
  const auto operand = [&](const T* data, std::int64_t ld, std::int64_t stride, bool transposed) {
    return typename ClblastGemm<T>::Operand{device.place_of(data), ld, stride, transposed ? CLBlastTransposeYes : CLBlastTransposeNo};
  };
  return clblast_gemm<T>(stream, {.layout = CLBlastLayoutRowMajor,
                                  .m = m,
                                  .n = n,
                                  .k = k,
                                  .batch = p.batch.count,
                                  .alpha = p.alpha,
                                  .beta = p.beta,
                                  .a = operand(p.a, a_layout->ld, p.batch.strides[0][0], a_layout->transposed),
                                  .b = operand(p.b, b_layout->ld, p.batch.strides[1][0], b_layout->transposed),
                                  .c = operand(p.y, n, m * n, false)});
}

}  // namespace

template <class T>
void multiply(Stream& stream, const Product<T>& product) {
  if (product.batch.count == 0 || product.a_view.rows == 0 || product.b_view.columns == 0) return;
  if (!product_by_clblast(stream, product)) simple_product(stream, product);
}
template void multiply(Stream&, const Product<float>&);
template void multiply(Stream&, const Product<double>&);

}  // namespace tenon::opencl
