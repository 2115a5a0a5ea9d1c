// SPDX-License-Identifier: Apache-2.0
// Row-major matrices for cuBLAS, which only has column-major order; checked element by element.
#include "backends/cuda/blas/orientation.h"

#include <doctest/doctest.h>

#include <array>
#include <complex>

#include "backends/cuda/gemm/matrix_view.h"

namespace tenon::cuda {
namespace {

using blas::operation;
using C = std::complex<double>;
constexpr int rows = 2, columns = 3;
using Memory = std::array<C, rows * columns>;
constexpr Memory memory{C{1, 6}, C{2, 5}, C{3, 4}, C{4, 3}, C{5, 2}, C{6, 1}};

/// Element (i, j) of op of the (rows, columns) matrix in `memory`.
C by_layout(std::uint32_t layout, std::uint32_t trans, int i, int j) {
  if (blas::transposes(trans)) std::swap(i, j);
  const C x = memory[static_cast<std::size_t>(layout == TENON_LAYOUT_ROW_MAJOR ? i * columns + j : i + j * rows)];
  return trans == TENON_CONJ_TRANS || trans == TENON_CONJ_NO_TRANS ? std::conj(x) : x;
}
/// The same as cuBLAS reads it: column-major with `lead` rows.
C by_cublas(blas::Operation operation, int lead, int i, int j) {
  if (operation.op != CUBLAS_OP_N) std::swap(i, j);
  const C x = memory[static_cast<std::size_t>(i + j * lead)];
  return (operation.op == CUBLAS_OP_C) != operation.conjugate ? std::conj(x) : x;
}
constexpr std::uint32_t all_ops[] = {TENON_NO_TRANS, TENON_TRANS, TENON_CONJ_TRANS, TENON_CONJ_NO_TRANS};
constexpr std::uint32_t both_layouts[] = {TENON_LAYOUT_ROW_MAJOR, TENON_LAYOUT_COLUMN_MAJOR};

TEST_CASE("cuda orientation: with vectors, op of the transpose is the same matrix") {
  for (const std::uint32_t layout : both_layouts) {
    for (const std::uint32_t trans : all_ops) {
      const int lead = blas::in_order(layout, rows, columns).first;
      const auto [m, n] = blas::transposes(trans) ? std::pair(columns, rows) : std::pair(rows, columns);
      for (int i = 0; i < m; ++i) {
        for (int j = 0; j < n; ++j) CHECK(by_cublas(operation(layout, trans, true), lead, i, j) == by_layout(layout, trans, i, j));
      }
    }
  }
}

TEST_CASE("cuda orientation: in a transposed product op is kept and the result is the transpose") {
  for (const std::uint32_t trans : all_ops) {
    const auto [m, n] = blas::transposes(trans) ? std::pair(columns, rows) : std::pair(rows, columns);
    for (int i = 0; i < m; ++i) {
      for (int j = 0; j < n; ++j) CHECK(by_cublas(operation(trans, true), columns, j, i) == by_layout(TENON_LAYOUT_ROW_MAJOR, trans, i, j));
    }
  }
}

TEST_CASE("cuda orientation: real matrices are their own conjugates") {
  for (const std::uint32_t trans : all_ops) {
    for (const std::uint32_t layout : both_layouts) CHECK(!operation(layout, trans, false).conjugate);
    CHECK(operation(trans, false).op == (blas::transposes(trans) ? CUBLAS_OP_T : CUBLAS_OP_N));
  }
}

TEST_CASE("cuda orientation: triangles and sides swap with the layout") {
  CHECK(blas::triangle(TENON_LAYOUT_COLUMN_MAJOR, TENON_UPPER) == CUBLAS_FILL_MODE_UPPER);
  CHECK(blas::triangle(TENON_LAYOUT_ROW_MAJOR, TENON_UPPER) == CUBLAS_FILL_MODE_LOWER);
  CHECK(blas::triangle(TENON_LAYOUT_ROW_MAJOR, TENON_LOWER) == CUBLAS_FILL_MODE_UPPER);
  CHECK(blas::side_of(TENON_LAYOUT_COLUMN_MAJOR, TENON_LEFT) == CUBLAS_SIDE_LEFT);
  CHECK(blas::side_of(TENON_LAYOUT_ROW_MAJOR, TENON_LEFT) == CUBLAS_SIDE_RIGHT);
}

TEST_CASE("cuda orientation: rank updates change their operation with the layout") {
  CHECK(blas::rank_operation(TENON_LAYOUT_COLUMN_MAJOR, TENON_NO_TRANS, true) == CUBLAS_OP_N);
  CHECK(blas::rank_operation(TENON_LAYOUT_COLUMN_MAJOR, TENON_CONJ_TRANS, true) == CUBLAS_OP_C);
  CHECK(blas::rank_operation(TENON_LAYOUT_ROW_MAJOR, TENON_NO_TRANS, true) == CUBLAS_OP_C);
  CHECK(blas::rank_operation(TENON_LAYOUT_ROW_MAJOR, TENON_NO_TRANS, false) == CUBLAS_OP_T);
  CHECK(blas::rank_operation(TENON_LAYOUT_ROW_MAJOR, TENON_TRANS, false) == CUBLAS_OP_N);
}

TEST_CASE("cuda matrix view: a row-major matrix is its transpose with the row length as leading dimension") {
  const auto dense = lt_matrix({4, 7, 7, 1});
  REQUIRE(dense);
  CHECK(dense->rows == 7);
  CHECK(dense->columns == 4);
  CHECK(dense->ld == 7);
  CHECK(!dense->transposed);
  CHECK(lt_matrix({4, 7, 9, 1})->ld == 9);
}

TEST_CASE("cuda matrix view: a transposed view is read in place") {
  const auto turned = lt_matrix(sdk::MatrixView{7, 4, 4, 1}.transposed());
  REQUIRE(turned);
  CHECK(turned->rows == 4);
  CHECK(turned->columns == 7);
  CHECK(turned->ld == 4);
  CHECK(turned->transposed);
}

TEST_CASE("cuda matrix view: strides without a leading dimension are rejected") {
  CHECK(!lt_matrix({4, 7, 14, 2}));
  CHECK(!lt_matrix({4, 7, 3, 1}));   // rows overlap
  CHECK(!lt_matrix({4, 7, 0, 1}));   // one row is repeated
  CHECK(!lt_matrix({4, 7, -7, 1}));  // rows are reversed
}

TEST_CASE("cuda matrix view: the stride of a dimension of size 1 does not matter") {
  CHECK(lt_matrix({1, 7, 0, 1})->ld == 7);
  CHECK(lt_matrix({1, 7, 0, 5})->ld == 5);
  CHECK(lt_matrix({7, 1, 5, 0})->ld == 5);
  CHECK(lt_matrix({0, 0, 0, 1})->ld == 1);
}

TEST_CASE("cuda matrix view: an address is aligned to the power of two that divides it, to 256 at most") {
  CHECK(alignment_of(0) == 256);
  CHECK(alignment_of(4096) == 256);
  CHECK(alignment_of(4096 + 32) == 32);
  CHECK(alignment_of(4096 + 36) == 4);
  CHECK(alignment_of(static_cast<std::uint64_t>(-16)) == 16);
}

}  // namespace
}  // namespace tenon::cuda
