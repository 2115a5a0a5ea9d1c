// SPDX-License-Identifier: Apache-2.0
#include "gemm/products.h"

#include <cblas.h>

#include <algorithm>
#include <limits>
#include <string>

#include "gemm/tile_products.h"
#include "gemm/tiling.h"
#include "gemm/vector_products.h"

namespace tenon::openblas {
namespace {

// The number of blocks of deterministic products depends only on their size: the last entry whose size they reach applies. There are
// few blocks because each one packs its operands again.
constexpr struct {
  double size;
  std::int64_t blocks;
} deterministic_tilings[] = {{0, 1}, {2.5e6, 2}, {64e6, 4}, {512e6, 8}};
constexpr std::int64_t int_limit = std::numeric_limits<int>::max();

CBLAS_TRANSPOSE transposition(bool transposed) {
  return transposed ? CblasTrans : CblasNoTrans;
}

void gemm(bool trans_a, bool trans_b, int m, int n, int k, float alpha, const float* a, int lda, const float* b, int ldb, float* c,
          int ldc) {
  cblas_sgemm(CblasRowMajor, transposition(trans_a), transposition(trans_b), m, n, k, alpha, a, lda, b, ldb, 0.0F, c, ldc);
}
void gemm(bool trans_a, bool trans_b, int m, int n, int k, double alpha, const double* a, int lda, const double* b, int ldb, double* c,
          int ldc) {
  cblas_dgemm(CblasRowMajor, transposition(trans_a), transposition(trans_b), m, n, k, alpha, a, lda, b, ldb, 0.0, c, ldc);
}
void gemv(bool trans, int rows, int columns, float alpha, const float* a, int lda, const float* x, int incx, float* y) {
  cblas_sgemv(CblasRowMajor, transposition(trans), rows, columns, alpha, a, lda, x, incx, 0.0F, y, 1);
}
void gemv(bool trans, int rows, int columns, double alpha, const double* a, int lda, const double* x, int incx, double* y) {
  cblas_dgemv(CblasRowMajor, transposition(trans), rows, columns, alpha, a, lda, x, incx, 0.0, y, 1);
}

/// y = alpha op(m) x, with m (rows, columns) and y contiguous.
template <class T>
void multiply_by_vector(bool trans, std::int64_t rows, std::int64_t columns, T alpha, const T* m, std::int64_t ld, const T* x,
                        std::int64_t x_step, T* y) {
  if (!trans && x_step == 1) return multiply_vector(m, rows, columns, ld, alpha, x, y);
  std::fill_n(y, trans ? columns : rows, T(0));
  gemv(trans, static_cast<int>(rows), static_cast<int>(columns), alpha, m, static_cast<int>(ld), x, static_cast<int>(x_step), y);
}

template <class T>
void multiply_block(const Product<T>& p, const sdk::BlasLayout& a_layout, const sdk::BlasLayout& b_layout, const Tiling& tiling,
                    std::int64_t block, const StridedLoop<2>& batch, std::int64_t entry) {
  const std::int64_t m = p.a_view.rows;
  const std::int64_t n = p.b_view.columns;
  const std::int64_t k = p.a_view.columns;
  const std::int64_t row = block / tiling.column_blocks * tiling.rows;
  const std::int64_t column = block % tiling.column_blocks * tiling.columns;
  const std::int64_t rows = std::min(tiling.rows, m - row);
  const std::int64_t columns = std::min(tiling.columns, n - column);
  const std::array<std::int64_t, 2> at = batch.offsets(entry);
  // Factors without elements may have no address.
  const T* const a = k == 0 ? p.a : p.a + at[0] + row * (a_layout.transposed ? 1 : a_layout.ld);
  const T* const b = k == 0 ? p.b : p.b + at[1] + column * (b_layout.transposed ? b_layout.ld : 1);
  T* const y = p.y + entry * m * n;
  T* const corner = y + row * n + column;
  const int lda = static_cast<int>(a_layout.ld);
  const int ldb = static_cast<int>(b_layout.ld);
  const int inner = static_cast<int>(k);
  const int block_rows = static_cast<int>(rows);
  const int block_columns = static_cast<int>(columns);
  if (k == 0) {
    for (std::int64_t r = 0; r < rows; ++r) std::fill_n(corner + r * n, columns, T(0));
  } else if (m == 1) {
    // y' = b' a': OpenBLAS's product packs b first, which costs more than the product of a single row.
    const std::int64_t step = a_layout.transposed ? a_layout.ld : 1;
    const bool trans = !b_layout.transposed;
    multiply_by_vector(trans, trans ? k : columns, trans ? columns : k, p.alpha, b, b_layout.ld, a, step, corner);
  } else if (n == 1) {
    const std::int64_t step = b_layout.transposed ? 1 : b_layout.ld;
    const bool trans = a_layout.transposed;
    multiply_by_vector(trans, trans ? k : rows, trans ? rows : k, p.alpha, a, a_layout.ld, b, step, corner);
  } else {
    gemm(a_layout.transposed, b_layout.transposed, block_rows, block_columns, inner, p.alpha, a, lda, b, ldb, corner, static_cast<int>(n));
  }
  apply_epilogue(p.epilogue.of_entry(entry * m * n), y, n, row, column, rows, columns);
}

std::int64_t deterministic_blocks(double size) {
  std::int64_t blocks = 1;
  for (const auto& line : deterministic_tilings) {
    if (size >= line.size) blocks = line.blocks;
  }
  return blocks;
}

template <class T>
void multiply_all(const sdk::Host& host, bool deterministic, const Product<T>& p, const StridedLoop<2>& batch) {
  const std::int64_t m = p.a_view.rows;
  const std::int64_t n = p.b_view.columns;
  if (m == 0 || n == 0 || batch.count == 0) return;
  if (suits_tiles(p)) return multiply_by_tiles(host, p, batch);
  const auto a_layout = sdk::blas_layout(p.a_view, int_limit), b_layout = sdk::blas_layout(p.b_view, int_limit);

  const double size = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(std::max<std::int64_t>(p.a_view.columns, 1));
  const double smallest = smallest_block(m, n);
  const Tiling tiling =
      tile_into(m, n, deterministic ? deterministic_blocks(size) : target_blocks(host.thread_count(), batch.count, size / smallest));
  const double block_size = size / static_cast<double>(tiling.blocks());
  const std::int64_t grain = std::max<std::int64_t>(1, static_cast<std::int64_t>(smallest / block_size));
  host.parallel_for(batch.count * tiling.blocks(), grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      multiply_block(p, *a_layout, *b_layout, tiling, i % tiling.blocks(), batch, i / tiling.blocks());
    }
  });
}

}  // namespace

bool fits_blas(const sdk::MatrixView& x) {
  return sdk::blas_layout(x, int_limit).has_value();
}

void multiply(const sdk::Host& host, bool deterministic, const Product<float>& product, const StridedLoop<2>& batch) {
  multiply_all(host, deterministic, product, batch);
}

void multiply(const sdk::Host& host, bool deterministic, const Product<double>& product, const StridedLoop<2>& batch) {
  multiply_all(host, deterministic, product, batch);
}

void check_sizes(const char* op, std::int64_t m, std::int64_t n, std::int64_t k) {
  const struct {
    const char* name;
    std::int64_t size;
  } dimensions[] = {{"m", m}, {"n", n}, {"k", k}};
  for (const auto& dimension : dimensions) {
    if (dimension.size <= int_limit) continue;
    throw sdk::Error(TENON_UNSUPPORTED, std::string(op) + ": expected " + dimension.name + " of at most " + std::to_string(int_limit) +
                                            " (OpenBLAS has 32-bit integers), got " + std::to_string(dimension.size) +
                                            "; split the product or use another backend");
  }
}

}  // namespace tenon::openblas
