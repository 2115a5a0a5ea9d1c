// SPDX-License-Identifier: Apache-2.0
#include "gemm/packed_products.h"

#include <string_view>
#include <type_traits>

#include <tenon/sdk/rounding.h>

namespace tenon::openblas {
namespace {

/// Weights worth a thread for packing: about 20 us.
constexpr std::int64_t pack_grain = 16 * 1024;
/// Multiply-adds worth a thread: about 15 us.
constexpr std::int64_t multiply_grain = 1'500'000;
/// Rows of a task when there are too few panels for all threads: a multiple of the register tiles of all instruction sets.
constexpr std::int64_t task_rows = 84;

/// The part of a product with rows [row, row + rows) and panels [panel, panel + panels).
template <class T>
PanelProduct<T> part_of(const PanelProduct<T>& p, std::int64_t row, std::int64_t rows, std::int64_t panel, std::int64_t panels) {
  const std::int64_t column = panel * panel_width<T>;
  PanelProduct<T> part = p;
  part.rows = rows;
  part.columns = std::min(panels * panel_width<T>, p.columns - column);
  part.a += row * p.a_step;
  part.panels += panel * panel_step<T>(p.k);
  if (panel + panels < panel_count<T>(p.columns)) part.next_panels = part.panels + panels * panel_step<T>(p.k);
  if (p.y != nullptr) part.y += row * p.y_step + column;
  if (p.wide_y != nullptr) part.wide_y += row * p.y_step + column;
  if (p.bias != nullptr) part.bias += column;
  if (p.residual != nullptr) part.residual += row * p.y_step + column;
  if (p.relu_result != nullptr) part.relu_result += row * p.y_step + column;
  return part;
}

}  // namespace

template <class T>
std::size_t packed_matrix_bytes(const sdk::Host& host, const sdk::MatrixView& b, std::int64_t rows) {
  // In bf16 there is no other product.
  const bool pays = rows >= smallest_packed_rows && b.columns >= panel_width<T> / 2;
  if (b.rows == 0 || (!pays && !std::is_same_v<T, sdk::BFloat16>)) return 0;
  const std::int64_t elements = panel_elements<T>(b.rows, b.columns);
  const char* const memory = host.option("memory");
  if (memory != nullptr && std::string_view(memory) == "small" && elements > b.rows * b.columns) return 0;
  return static_cast<std::size_t>(elements) * sizeof(T);
}

template <class T>
void pack_matrix(const sdk::Host& host, const sdk::MatrixView& b, const T* data, T* out_panels) {
  PanelSource<T> source;
  source.data = data;
  source.inner = b.rows;
  source.inner_step = b.row_stride;
  source.columns = b.columns;
  source.column_step = b.column_stride;
  const std::int64_t grain = std::max<std::int64_t>(1, pack_grain / std::max<std::int64_t>(1, b.rows * panel_width<T>));
  host.parallel_for(panel_count<T>(b.columns), grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t panel = begin; panel < end; ++panel) pack_panel(source, panel, out_panels);
  });
}

template <class T>
void multiply_packed(const sdk::Host& host, const PanelProduct<T>& whole) {
  if (whole.rows == 0) return;
  PanelProduct<T> product = whole;
  product.streams = reads_panels_once(whole.rows);
  const std::int64_t panels = panel_count<T>(product.columns);
  const std::int64_t row_tasks = panels >= 2 * host.thread_count() ? 1 : sdk::ceil_div(product.rows, task_rows);
  const std::int64_t rows = sdk::ceil_div(product.rows, row_tasks);
  const std::int64_t grain = std::max<std::int64_t>(1, multiply_grain / std::max<std::int64_t>(1, rows * product.k * panel_width<T>));
  host.parallel_for(row_tasks * panels, grain, [&](std::int64_t begin, std::int64_t end) {
    while (begin < end) {
      const std::int64_t row = begin / panels * rows;
      const std::int64_t panel = begin % panels;
      const std::int64_t count = std::min(end - begin, panels - panel);
      multiply_panels(part_of(product, row, std::min(rows, product.rows - row), panel, count));
      begin += count;
    }
  });
}

template std::size_t packed_matrix_bytes<sdk::BFloat16>(const sdk::Host&, const sdk::MatrixView&, std::int64_t);
template std::size_t packed_matrix_bytes<float>(const sdk::Host&, const sdk::MatrixView&, std::int64_t);
template std::size_t packed_matrix_bytes<double>(const sdk::Host&, const sdk::MatrixView&, std::int64_t);
template void pack_matrix(const sdk::Host&, const sdk::MatrixView&, const sdk::BFloat16*, sdk::BFloat16*);
template void pack_matrix(const sdk::Host&, const sdk::MatrixView&, const float*, float*);
template void pack_matrix(const sdk::Host&, const sdk::MatrixView&, const double*, double*);
template void multiply_packed(const sdk::Host&, const PanelProduct<sdk::BFloat16>&);
template void multiply_packed(const sdk::Host&, const PanelProduct<float>&);
template void multiply_packed(const sdk::Host&, const PanelProduct<double>&);

}  // namespace tenon::openblas
