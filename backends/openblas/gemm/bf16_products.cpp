// SPDX-License-Identifier: Apache-2.0
#include "gemm/bf16_products.h"

#include <algorithm>

#include <tenon/sdk/scratch_arena.h>

#include "elementwise/transpose.h"
#include "gemm/packed_products.h"
#include "workers.h"

namespace tenon::openblas {
namespace {

using sdk::BFloat16;

/// Elements worth a thread for copying rows of a: about 20 us.
constexpr std::int64_t copy_grain = 32 * 1024;
/// Elements worth a thread for the gradient of a relu: about 10 us.
constexpr std::int64_t mask_grain = 128 * 1024;

bool copies(const Bf16Product& p) {
  return p.a_view.columns > 1 && p.a_view.column_stride != 1;
}
std::int64_t a_elements(const Bf16Product& p) {
  return copies(p) ? p.a_view.rows * p.a_view.columns : 0;
}
std::int64_t panels_of_b(const Bf16Product& p) {
  return p.panels == nullptr ? panel_elements<BFloat16>(p.b_view.rows, p.b_view.columns) : 0;
}
std::size_t worker_bytes(const Bf16Product& p) {
  sdk::ScratchArena arena(nullptr);
  arena.allocate<BFloat16>(a_elements(p));
  arena.allocate<BFloat16>(panels_of_b(p));
  return arena.required_bytes();
}

/// Whether each thread computes whole products; else all threads share each product.
bool by_entries(const sdk::Host& host, std::int64_t count) {
  return count >= host.thread_count();
}

/// Copies rows [begin, end) of a to dense rows.
void copy_rows(const Bf16Product& p, const BFloat16* a, std::int64_t begin, std::int64_t end, BFloat16* out) {
  const std::int64_t k = p.a_view.columns;
  if (p.a_view.row_stride == 1) {
    transpose_block(a + begin, p.a_view.column_stride, out + begin * k, k, end - begin, k);
    return;
  }
  for (std::int64_t row = begin; row < end; ++row) {
    for (std::int64_t i = 0; i < k; ++i) out[row * k + i] = a[row * p.a_view.row_stride + i * p.a_view.column_stride];
  }
}

PanelSource<BFloat16> source_of(const Bf16Product& p, const BFloat16* b) {
  PanelSource<BFloat16> from;
  from.data = b;
  from.inner = p.b_view.rows;
  from.inner_step = p.b_view.row_stride;
  from.columns = p.b_view.columns;
  from.column_step = p.b_view.column_stride;
  return from;
}

/// y where r > 0, NaN where r is NaN, else 0, by their bits: each number is positive, or has a sign, or is 0. A NaN is that of a
/// conversion.
void apply_relu_grad(const BFloat16* r, std::int64_t n, BFloat16* y) {
  constexpr std::uint16_t infinity = 0x7f80, nan = 0x7fc0, sign = 0x8000;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint16_t bits = r[i].bits, magnitude = bits & static_cast<std::uint16_t>(~sign);
    const std::uint16_t numbers = bits > 0 && bits < sign ? y[i].bits : std::uint16_t{0};
    y[i].bits = magnitude > infinity ? static_cast<std::uint16_t>((bits & sign) | nan) : numbers;
  }
}

void multiply_all(const sdk::Host& host, const Bf16Product& p, const StridedLoop<2>& batch, void* scratch) {
  const std::int64_t m = p.a_view.rows, k = p.a_view.columns, n = p.b_view.columns;
  const auto entry_of = [&](std::int64_t entry, BFloat16* rows, const BFloat16* panels) {
    PanelProduct<BFloat16> product;
    product.rows = m;
    product.k = k;
    product.columns = n;
    product.a = rows == nullptr ? p.a + batch.offsets(entry)[0] : rows;
    product.a_step = rows == nullptr ? p.a_view.row_stride : k;
    product.panels = panels == nullptr ? p.panels : panels;
    product.y = p.y + entry * m * n;
    product.y_step = n;
    product.bias = p.bias;
    product.residual = p.c == nullptr ? nullptr : p.c + entry * m * n;
    product.alpha = p.alpha;
    product.beta = p.beta;
    product.activation = p.activation;
    product.streams = reads_panels_once(m);  // however the entries are divided: it decides the order of additions
    return product;
  };
  const auto allocate = [&](std::int64_t worker, BFloat16*& out_rows, BFloat16*& out_panels) {
    sdk::ScratchArena arena(static_cast<char*>(scratch) + static_cast<std::size_t>(worker) * worker_bytes(p));
    BFloat16* const rows = arena.allocate<BFloat16>(a_elements(p));
    BFloat16* const panels = arena.allocate<BFloat16>(panels_of_b(p));
    out_rows = copies(p) ? rows : nullptr;
    out_panels = p.panels == nullptr ? panels : nullptr;
  };
  if (by_entries(host, batch.count)) {
    for_each_task(host, batch.count, [&](std::int64_t entry, std::int64_t worker) {
      BFloat16 *rows = nullptr, *panels = nullptr;
      allocate(worker, rows, panels);
      if (rows != nullptr) copy_rows(p, p.a + batch.offsets(entry)[0], 0, m, rows);
      for (std::int64_t i = 0; panels != nullptr && i < panel_count<BFloat16>(n); ++i) {
        pack_panel(source_of(p, p.b + batch.offsets(entry)[1]), i, panels);
      }
      multiply_panels(entry_of(entry, rows, panels));
    });
    return;
  }
  BFloat16 *rows = nullptr, *panels = nullptr;
  allocate(0, rows, panels);
  for (std::int64_t entry = 0; entry < batch.count; ++entry) {
    if (rows != nullptr) {
      host.parallel_for(m, std::max<std::int64_t>(8, copy_grain / std::max<std::int64_t>(1, k)),
                        [&](std::int64_t begin, std::int64_t end) { copy_rows(p, p.a + batch.offsets(entry)[0], begin, end, rows); });
    }
    if (panels != nullptr) pack_matrix(host, p.b_view, p.b + batch.offsets(entry)[1], panels);
    multiply_packed(host, entry_of(entry, rows, panels));
  }
}

}  // namespace

std::size_t bf16_product_scratch(const sdk::Host& host, const Bf16Product& product, std::int64_t count) {
  const std::int64_t workers = by_entries(host, count) ? worker_count(host, count) : 1;
  return worker_bytes(product) * static_cast<std::size_t>(workers);
}

void multiply(const sdk::Host& host, const Bf16Product& p, const StridedLoop<2>& batch, void* scratch) {
  const std::int64_t elements = batch.count * p.a_view.rows * p.b_view.columns;
  if (elements == 0) return;
  multiply_all(host, p, batch, scratch);
  if (p.relu_result == nullptr) return;
  host.parallel_for(elements, mask_grain,
                    [&](std::int64_t begin, std::int64_t end) { apply_relu_grad(p.relu_result + begin, end - begin, p.y + begin); });
}

}  // namespace tenon::openblas
