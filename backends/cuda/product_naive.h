// product_naive.h - matrix products in plain CUDA: a thread for each result, which walks along a row and a column. What `kernels: naive`
// runs.
#pragma once

#include "products.h"

namespace tenon::cuda {

void multiply_naively(Stream& stream, const Product& product);

}  // namespace tenon::cuda
