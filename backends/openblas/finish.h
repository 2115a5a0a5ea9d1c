// finish.h - what is done to a block of a product while it is in the cache: an addend, a bias, an activation.
#pragma once

#include <cstdint>

#include <tenon/sdk/kernel.h>

namespace tenon::openblas {

/// y = activation(y + beta c + bias), where c and bias may be absent.
template <class T>
struct Finish {
  const T* c = nullptr;  ///< element (i, j) at c[i * c_row + j * c_column]
  std::int64_t c_row = 0;
  std::int64_t c_column = 0;
  T beta = 0;
  const T* bias = nullptr;  ///< element j at bias[j]
  sdk::Activation activation = sdk::Activation::none;

  bool empty() const { return c == nullptr && bias == nullptr && activation == sdk::Activation::none; }
};

/// Finishes rows [row, row + rows) and columns [column, column + columns) of y, whose rows lie y_step elements apart.
void finish_block(const Finish<float>& finish, float* y, std::int64_t y_step, std::int64_t row, std::int64_t column, std::int64_t rows,
                  std::int64_t columns);
void finish_block(const Finish<double>& finish, double* y, std::int64_t y_step, std::int64_t row, std::int64_t column, std::int64_t rows,
                  std::int64_t columns);

}  // namespace tenon::openblas
