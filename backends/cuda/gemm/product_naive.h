// SPDX-License-Identifier: Apache-2.0
// product_naive.h - matrix products in plain CUDA: one thread per result, which loops over a row and a column. Used for `kernels: naive`.
#pragma once

#include "gemm/products.h"

namespace tenon::cuda {

void multiply_naively(Stream& stream, const Product& product);

}  // namespace tenon::cuda
