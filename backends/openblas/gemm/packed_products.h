// SPDX-License-Identifier: Apache-2.0
// packed_products.h - products with a right matrix that was packed ahead of the call, divided among the host's threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include <tenon/sdk/kernel.h>
#include <tenon/sdk/matrix_view.h>

#include "gemm/panels.h"

namespace tenon::openblas {

/// Rows from which packed weights pay: below, a product reads each weight about once and OpenBLAS is bound by memory bandwidth.
inline constexpr std::int64_t smallest_packed_rows = 4;

/// Whether a product with so many rows waits for its panels: PanelProduct::streams.
constexpr bool reads_panels_once(std::int64_t rows) {
  return rows <= 2;
}

/// Bytes of b (k, n) as panels for products with `rows` rows; 0: products that read it as it is are as fast, or the memory option is
/// "small" and panels would take more bytes than b.
template <class T>
std::size_t packed_matrix_bytes(const sdk::Host& host, const sdk::MatrixView& b, std::int64_t rows);

/// Packs b.
template <class T>
void pack_matrix(const sdk::Host& host, const sdk::MatrixView& b, const T* data, T* out_panels);

/// Runs the product, whose panels were packed by pack_matrix, on the host's threads. Bits do not depend on their number.
template <class T>
void multiply_packed(const sdk::Host& host, const PanelProduct<T>& product);

}  // namespace tenon::openblas
