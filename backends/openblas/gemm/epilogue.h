// SPDX-License-Identifier: Apache-2.0
// epilogue.h - addend, bias, activation and the gradient of a relu applied to a block of a product while it is in the cache.
#pragma once

#include <cstdint>

#include <tenon/sdk/kernel.h>

namespace tenon::openblas {

/// y = relu_grad(activation(y + beta c + bias + residual)); all are optional.
template <class T>
struct Epilogue {
  const T* c = nullptr;  ///< element (i, j) at c[i * c_row + j * c_column]
  std::int64_t c_row = 0;
  std::int64_t c_column = 0;
  T beta = 0;
  const T* bias = nullptr;      ///< element j at bias[j]
  const T* residual = nullptr;  ///< has the layout of y
  sdk::Activation activation = {};
  const T* relu_result = nullptr;  ///< as of sdk::Epilogue; has the layout of y

  /// The epilogue of an entry of a batch, whose results begin `elements` after those of the first one.
  Epilogue of_entry(std::int64_t elements) const {
    Epilogue epilogue = *this;
    if (residual != nullptr) epilogue.residual += elements;
    if (relu_result != nullptr) epilogue.relu_result += elements;
    return epilogue;
  }
  bool empty() const {
    return c == nullptr && bias == nullptr && residual == nullptr && activation == sdk::Activation::none && relu_result == nullptr;
  }
};

/// sdk::Epilogue::relu_result of a call, or NULL.
template <class T>
const T* relu_result_of(const sdk::Call& call) {
  return call.epilogue.relu_result == nullptr ? nullptr : call.epilogue.relu_result->as<const T>();
}

/// Applies the epilogue to rows [row, row + rows) and columns [column, column + columns) of y, whose row stride is y_step elements.
template <class T>
void apply_epilogue(const Epilogue<T>& epilogue, T* y, std::int64_t y_step, std::int64_t row, std::int64_t column, std::int64_t rows,
                    std::int64_t columns);

}  // namespace tenon::openblas
