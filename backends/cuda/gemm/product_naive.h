// SPDX-License-Identifier: Apache-2.0
// product_naive.h - matrix products in plain CUDA: one thread per result, which loops over a row and a column. Used for `kernels: naive`.
#pragma once

#include "gemm/fp8_state.h"
#include "gemm/products.h"

namespace tenon::cuda {

void multiply_naively(Stream& stream, const Product& product);

/// The states of both factors of a product in FP8.
struct Fp8States {
  const Fp8State *a, *b;
};
/// Computes the results of a product in FP8 again, in the same way, that it cannot have computed: those that are NaN, if a factor has NaN
/// or infinities, since FP8 has no infinities; all of them, if the scales together leave the range of f32. Mostly that is none.
void multiply_naively_where_fp8_fails(Stream& stream, const Product& product, const Fp8States& states);

}  // namespace tenon::cuda
