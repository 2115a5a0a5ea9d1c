// SPDX-License-Identifier: Apache-2.0
// small_products.h - matrix products that are so small that launches take longer than arithmetic: several of them by one launch, each with
// its whole epilogue (ADR 82).
#pragma once

#include <cstdint>
#include <span>

#include <tenon/sdk/kernel.h>
#include <tenon/sdk/matrix_view.h>

#include "device/device.h"

namespace tenon::cuda {

/// y = epilogue(alpha a b + beta c) for every entry of a batch, y (batch, m, n) dense. Sums, those of columns too, are in f32 and in
/// an order that depends on their length alone, not on what runs with them; results are rounded once.
struct SmallProduct {
  tenon_dtype dtype = TENON_DTYPE_NONE;  ///< of all operands: f16, bf16, f32
  sdk::MatrixView a_view, b_view;        ///< (m, k), (k, n) with any strides
  std::int64_t batch = 1;
  std::int64_t a_step = 0, b_step = 0;  ///< elements from one entry of the batch to the next
  const void* a = nullptr;
  const void* b = nullptr;
  void* y = nullptr;
  double alpha = 1;
  double beta = 0;
  const void* c = nullptr;  ///< element (i, j) at c[i * c_row + j * c_column], for a batch of one; NULL: none
  std::int64_t c_row = 0, c_column = 0;
  const void* bias = nullptr;         ///< as of sdk::Epilogue, these too; NULL: none
  const void* residual = nullptr;     ///< of the layout of y
  const void* relu_result = nullptr;  ///< likewise
  sdk::Activation activation = {};
  void* column_sums = nullptr;  ///< (n), the sum of the rows of b, for a batch of one; NULL: not requested

  void set_epilogue(const sdk::Epilogue& epilogue) {
    const auto address = [](const sdk::Operand* operand) { return operand == nullptr ? nullptr : operand->data; };
    bias = address(epilogue.bias);
    residual = address(epilogue.residual);
    relu_result = address(epilogue.relu_result);
    activation = epilogue.activation;
  }
};

/// Whether the product is small enough, in cuBLASLt's place: by the sizes and the dtype alone.
bool is_small(const SmallProduct& product);

/// Computes them, none of which reads what another one writes.
void multiply_small(Stream& stream, std::span<const SmallProduct> products);

}  // namespace tenon::cuda
