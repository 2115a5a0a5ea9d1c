// SPDX-License-Identifier: Apache-2.0
// level3.cpp - products of matrices, and solves with triangular ones, divided into blocks of the result for the host's threads. Updates of
// triangles are in level3_updates.cpp, operations element by element in level3_elementwise.cpp.
#include "level3.h"

#include <algorithm>

namespace tenon::openblas {
namespace {

template <class T>
void multiply_block(const MatrixProduct<T>& p, const Tiling& tiling, std::int64_t block) {
  const std::int64_t row = block / tiling.column_blocks * tiling.rows;
  const std::int64_t column = block % tiling.column_blocks * tiling.columns;
  gemm_or_gemv(p, row, std::min(tiling.rows, p.m - row), column, std::min(tiling.columns, p.n - column), p.beta, p.c + row * p.ldc + column,
               p.ldc);
}

template <class T>
void gemm(const sdk::arguments::gemm<T>& given) {
  check_product("gemm", given);
  if (given.m == 0 || given.n == 0) return;
  const MatrixProduct<T> p(given);
  const Threads threads(given);
  if (p.scales_only()) {
    scale_all(threads, p.m, p.n, p.beta, p.c, p.ldc);
    return;
  }
  const std::int64_t pieces = piece_count(threads, work_of<T>(p.m, p.n, p.k), smallest_block(p.m, p.n));
  if (pieces == 1) {
    gemm_or_gemv(p, 0, p.m, 0, p.n, p.beta, p.c, p.ldc);
    return;
  }
  const Tiling tiling = tile_into(p.m, p.n, pieces);
  threads.parallel_for(tiling.blocks(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; ++block) multiply_block(p, tiling, block);
  });
}

/// Calls product(side, uplo, m, n, alpha, a, lda, b, ldb, beta, c, ldc) on columns of C (side left) or rows, which are independent.
template <class T, class Multiply>
void multiply_symmetric(const char* routine, const sdk::arguments::symm<T>& p, const Multiply& product) {
  check_sizes(routine, {{"m", p.m}, {"n", p.n}, {"lda", p.lda}, {"ldb", p.ldb}, {"ldc", p.ldc}});
  if (p.m == 0 || p.n == 0) return;
  const bool column_major = p.layout == TENON_LAYOUT_COLUMN_MAJOR;
  const std::int64_t m = column_major ? p.n : p.m;
  const std::int64_t n = column_major ? p.m : p.n;
  const std::uint32_t side = column_major ? other_side(p.side) : p.side;
  const std::uint32_t uplo = column_major ? other_triangle(p.uplo) : p.uplo;
  if (p.alpha == T(0)) {
    scale_all(Threads(p), m, n, p.beta, p.c, p.ldc);
    return;
  }
  const bool left = side == TENON_LEFT;
  const std::int64_t pieces = piece_count(Threads(p), work_of<T>(m, n, left ? m : n), smallest_product_block);
  for_pieces(Threads(p), left ? n : m, pieces, left ? column_tile : row_tile, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    const std::int64_t step = left ? 1 : p.ldb;
    product(side, uplo, to_int(left ? m : end - begin), to_int(left ? end - begin : n), p.alpha, p.a, to_int(p.lda), p.b + begin * step,
            to_int(p.ldb), p.beta, p.c + begin * (left ? 1 : p.ldc), to_int(p.ldc));
  });
}

template <class T>
void symm(const sdk::arguments::symm<T>& p) {
  multiply_symmetric("symm", p, [](auto... arguments) { cblas::symm(arguments...); });
}

template <class T>
void hemm(const sdk::arguments::symm<T>& p) {
  multiply_symmetric("hemm", p, [](auto... arguments) { cblas::hemm(arguments...); });
}

/// Calls compute(side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb) on columns of B (side left) or rows, which are independent.
template <class T, class Compute>
void on_triangular(const char* routine, const sdk::arguments::trmm<T>& p, const Compute& compute) {
  check_sizes(routine, {{"m", p.m}, {"n", p.n}, {"lda", p.lda}, {"ldb", p.ldb}});
  if (p.m == 0 || p.n == 0) return;
  const bool column_major = p.layout == TENON_LAYOUT_COLUMN_MAJOR;
  const std::int64_t m = column_major ? p.n : p.m;
  const std::int64_t n = column_major ? p.m : p.n;
  const std::uint32_t side = column_major ? other_side(p.side) : p.side;
  const std::uint32_t uplo = column_major ? other_triangle(p.uplo) : p.uplo;
  if (p.alpha == T(0)) {
    scale_all(Threads(p), m, n, T(0), p.b, p.ldb);
    return;
  }
  const bool left = side == TENON_LEFT;
  const std::int64_t pieces = piece_count(Threads(p), work_of<T>(m, n, left ? m : n) / 2, smallest_product_block);
  for_pieces(Threads(p), left ? n : m, pieces, left ? column_tile : row_tile, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    compute(side, uplo, p.trans, p.diag, to_int(left ? m : end - begin), to_int(left ? end - begin : n), p.alpha, p.a, to_int(p.lda),
            p.b + begin * (left ? 1 : p.ldb), to_int(p.ldb));
  });
}

template <class T>
void trmm(const sdk::arguments::trmm<T>& p) {
  on_triangular("trmm", p, [](auto... arguments) { cblas::trmm(arguments...); });
}

template <class T>
void trsm(const sdk::arguments::trmm<T>& p) {
  on_triangular("trsm", p, [](auto... arguments) { cblas::trsm(arguments...); });
}

/// Divides the batch into whole products if there are enough for the threads, else into blocks of each.
template <class P>
void multiply_batch(const char* routine, const P& p) {
  check_product(routine, p);
  if (p.m == 0 || p.n == 0 || p.batch == 0) return;
  using T = decltype(p.alpha);
  const Threads threads(p);
  const bool column_major = p.layout == TENON_LAYOUT_COLUMN_MAJOR;
  const std::int64_t m = column_major ? p.n : p.m;
  const std::int64_t n = column_major ? p.m : p.n;
  const double work = work_of<T>(m, n, std::max<std::int64_t>(p.k, 1));
  const double smallest = smallest_block(m, n);
  std::int64_t pieces = 1;
  if (work * static_cast<double>(p.batch) >= 2 * smallest) pieces = target_blocks(threads.count(), p.batch, work / smallest);
  const Tiling tiling = tile_into(m, n, pieces);
  const double block_work = work / static_cast<double>(tiling.blocks());
  const std::int64_t tasks = p.batch * tiling.blocks();
  const std::int64_t grain = static_cast<std::int64_t>(std::min(static_cast<double>(tasks), std::max(1.0, smallest / block_work)));
  threads.parallel_for(tasks, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t task = begin; task < end; ++task) {
      const MatrixProduct<T> one(product(p, task / tiling.blocks()));
      if (!one.scales_only()) {
        multiply_block(one, tiling, task % tiling.blocks());
      } else if (task % tiling.blocks() == 0) {
        scale_block(one.m, one.n, one.beta, one.c, one.ldc);
      }
    }
  });
}

template <class T>
void gemm_batched(const sdk::arguments::gemm_batched<T>& p) {
  multiply_batch("gemm_batched", p);
}

template <class T>
void gemm_strided_batched(const sdk::arguments::gemm_strided_batched<T>& p) {
  multiply_batch("gemm_strided_batched", p);
}

}  // namespace

TENON_BLAS_ROUTINE(gemm)
TENON_BLAS_ROUTINE(symm)
TENON_BLAS_ROUTINE(hemm)
TENON_BLAS_ROUTINE(trmm)
TENON_BLAS_ROUTINE(trsm)
TENON_BLAS_ROUTINE(gemm_batched)
TENON_BLAS_ROUTINE(gemm_strided_batched)

}  // namespace tenon::openblas
