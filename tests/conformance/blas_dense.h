// SPDX-License-Identifier: Apache-2.0
// blas_dense.h - matrices of long double, and the algebra of the BLAS oracle.
#pragma once

#include <string>
#include <vector>

#include "blas.h"

namespace tenon::conformance::blas {

/// Bytes around each operand that nobody may write.
inline constexpr std::uint64_t guard_size = 64;

/// |re| + |im|.
long double magnitude(Number z);
bool is_nan(Number z);
/// The product by definition: the operator of std::complex recovers infinities from NaN.
Number product(Number a, Number b);
std::string str(Number z, bool complex);
/// NaN needs NaN, an infinity the same infinity.
bool within(Number expected, Number got, long double bound);

/// op(A).
Dense transformed(Dense from, std::uint32_t op);
/// The vector as a diagonal matrix.
Dense diagonal_of(const Dense& vector);
/// sum over k of a(i, k) b(k, j), and of magnitudes, which are added to `size`.
void add_products(const Dense& a, const Dense& b, std::int64_t i, std::int64_t j, Number& sum, long double& size);
/// A v, and |A| |v|.
struct Column {
  std::vector<Number> value;
  std::vector<long double> size;
};
Column times(const Dense& a, const Column& v);
/// X with A X = B, A triangular.
Dense substitute(const Dense& a, Dense b);

}  // namespace tenon::conformance::blas
