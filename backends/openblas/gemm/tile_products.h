// SPDX-License-Identifier: Apache-2.0
// tile_products.h - products of matrices that lie in memory as they are, by this backend's own register tiles: each block of b is packed
// on the stack just before the tiles that read it.
#pragma once

#include "gemm/products.h"

namespace tenon::openblas {

/// Whether the tiles are faster than OpenBLAS for this product, which depends on the shape and the layout only.
template <class T>
bool suits_tiles(const Product<T>& product);

/// A product for every entry of `batch`, as multiply() of products.h. Bits do not depend on the number of threads.
template <class T>
void multiply_by_tiles(const sdk::Host& host, const Product<T>& product, const StridedLoop<2>& batch);

}  // namespace tenon::openblas
