// SPDX-License-Identifier: Apache-2.0
// products.h - matrix products: by CLBlast where it reads the operands in place and they are large enough, else by gemm/product.cl.
#pragma once

#include <tenon/sdk/kernel.h>
#include <tenon/sdk/matrix_view.h>

#include "kernel/launch.h"
#include "kernel/layout.h"

namespace tenon::opencl {

/// y = alpha a b + beta y for every entry of the batch; y is not read if beta is 0.
template <class T>
struct Product {
  sdk::MatrixView a_view, b_view;
  Layout batch;  ///< operands 0 and 1 are a and b; y's entries follow each other
  const T *a = nullptr, *b = nullptr;
  T* y = nullptr;  ///< dense
  T alpha = 1, beta = 0;
};

/// Dtypes  f32, f64
template <class T>
void multiply(Stream& stream, const Product<T>& product);

}  // namespace tenon::opencl
