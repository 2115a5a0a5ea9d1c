// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <tenon/sdk/matrix_view.h>

namespace tenon::sdk {
namespace {

void check_layout(const MatrixView& x, bool transposed, std::int64_t ld) {
  const auto layout = blas_layout(x);
  REQUIRE(layout.has_value());
  CHECK(layout->transposed == transposed);
  CHECK(layout->ld == ld);
}

TEST_CASE("sdk: a BLAS reads a matrix with contiguous rows or columns in place") {
  check_layout({3, 4, 4, 1}, false, 4);
  check_layout({3, 4, 9, 1}, false, 9);
  check_layout({3, 4, 1, 3}, true, 3);
  check_layout(MatrixView{3, 4, 9, 1}.transposed(), true, 9);
}

TEST_CASE("sdk: a dimension of one element may have any stride") {
  check_layout({1, 4, 0, 1}, false, 4);
  check_layout({4, 1, 1, 7}, false, 1);
  check_layout({4, 1, 5, 0}, false, 5);
  check_layout({1, 1, 0, 0}, false, 1);
  check_layout({0, 4, 4, 1}, false, 4);
}

TEST_CASE("sdk: a matrix with other strides, overlapping lines or too large a leading dimension needs a copy") {
  CHECK_FALSE(blas_layout({3, 4, 8, 2}));
  CHECK_FALSE(blas_layout({3, 4, 2, 1}));
  CHECK_FALSE(blas_layout({3, 4, 0, 1}));
  CHECK_FALSE(blas_layout({3, 4, -4, 1}));
  CHECK_FALSE(blas_layout({3, 4, 1000, 1}, 999));
}

}  // namespace
}  // namespace tenon::sdk
