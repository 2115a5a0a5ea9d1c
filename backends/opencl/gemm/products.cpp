// SPDX-License-Identifier: Apache-2.0
#include "gemm/products.h"

#include <mutex>
#include <optional>

#include "device/process_guard.h"
#include "libraries/clblast.h"

namespace tenon::opencl {
namespace {

/// `Matrices` of gemm/product.cl.
struct Matrices {
  std::int64_t m, n, k, a_row, a_column, b_row, b_column;
};

/// Smaller products are one launch of our own kernel: CLBlast makes several. The limit is a guess, not measured.
constexpr std::int64_t min_multiplications = 64 * 64 * 64;

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

/// Element offsets for CLBlast.
template <class T>
std::size_t elements(const Place& place) {
  return place.offset / sizeof(T);
}

template <class T>
bool product_by_clblast(Stream& stream, const Product<T>& p) {
  const std::int64_t m = p.a_view.rows, n = p.b_view.columns, k = p.a_view.columns;
  if (m * n * k < min_multiplications || p.batch.rank > 1) return false;
  const auto a_layout = sdk::blas_layout(p.a_view), b_layout = sdk::blas_layout(p.b_view);
  if (!a_layout || !b_layout) return false;
  Device& device = stream.device();
  const Clblast* const functions = clblast(device.host);
  if (functions == nullptr) return false;
  const Place a = device.place_of(p.a), b = device.place_of(p.b), y = device.place_of(p.y);
  if (a.offset % sizeof(T) != 0 || b.offset % sizeof(T) != 0 || y.offset % sizeof(T) != 0) return false;
  const auto a_trans = a_layout->transposed ? CLBlastTransposeYes : CLBlastTransposeNo;
  const auto b_trans = b_layout->transposed ? CLBlastTransposeYes : CLBlastTransposeNo;
  const auto lda = static_cast<std::size_t>(a_layout->ld), ldb = static_cast<std::size_t>(b_layout->ld);
  const auto rows = static_cast<std::size_t>(m), columns = static_cast<std::size_t>(n), inner = static_cast<std::size_t>(k);
  cl_command_queue queue = stream.queue();
  const std::lock_guard lock(device.submission);  // its kernels are shared by the threads too
  std::optional<ProcessGuard> guard;              // it compiles at its first call
  if (!device.clblast_called) guard.emplace();
  device.clblast_called = true;
  if (p.batch.count == 1) {
    const auto call = [&](auto function, const char* name) {
      check(function(CLBlastLayoutRowMajor, a_trans, b_trans, rows, columns, inner, p.alpha, a.buffer, elements<T>(a), lda, b.buffer,
                     elements<T>(b), ldb, p.beta, y.buffer, elements<T>(y), columns, &queue, nullptr),
            name);
    };
    if constexpr (sizeof(T) == 4) {
      call(functions->CLBlastSgemm, "CLBlastSgemm");
    } else {
      call(functions->CLBlastDgemm, "CLBlastDgemm");
    }
  } else {
    if (p.batch.strides[0][0] < 0 || p.batch.strides[1][0] < 0) return false;
    const auto call = [&](auto function, const char* name) {
      check(function(CLBlastLayoutRowMajor, a_trans, b_trans, rows, columns, inner, p.alpha, a.buffer, elements<T>(a), lda,
                     static_cast<std::size_t>(p.batch.strides[0][0]), b.buffer, elements<T>(b), ldb,
                     static_cast<std::size_t>(p.batch.strides[1][0]), p.beta, y.buffer, elements<T>(y), columns, rows * columns,
                     static_cast<std::size_t>(p.batch.count), &queue, nullptr),
            name);
    };
    if constexpr (sizeof(T) == 4) {
      call(functions->CLBlastSgemmStridedBatched, "CLBlastSgemmStridedBatched");
    } else {
      call(functions->CLBlastDgemmStridedBatched, "CLBlastDgemmStridedBatched");
    }
  }
  return true;
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
