// SPDX-License-Identifier: Apache-2.0
// vector_products.h - products of a matrix and a vector, which read each element of the matrix once.
#pragma once

#include <cstdint>

namespace tenon::openblas {

/// y[r] = alpha (sum over i < columns of m[r row_step + i] x[i]), for r < rows. The order of the additions depends on `columns` and the
/// instruction set only. Runs on the calling thread; float and double.
template <class T>
void multiply_vector(const T* m, std::int64_t rows, std::int64_t columns, std::int64_t row_step, T alpha, const T* x, T* y);

}  // namespace tenon::openblas
