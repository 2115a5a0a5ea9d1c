// SPDX-License-Identifier: Apache-2.0
// Products of matrices of 8-bit integers: b as i8 in panels, and what the zero points add.
#include "quantize/integer_matmul.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <tenon/sdk/scratch_arena.h>
#include <tenon/sdk/strided.h>

#include "workers.h"

namespace tenon::openblas {
namespace {

/// The sizes of one product, and how often it is repeated.
struct Sizes {
  std::int64_t k, rows, columns;
  std::uint32_t stack_rank;
  bool merged = false;  ///< one b for all rows of all matrices of a
};

Sizes sizes_of(const sdk::Call& call, const IntegerOperands& at) {
  const sdk::Operand &a = call.inputs[at.a], &b = call.inputs[at.b], &y = call.outputs[0];
  Sizes s{a.shape[a.rank - 1], a.rank == 1 ? 1 : a.shape[a.rank - 2], b.rank == 1 ? 1 : b.shape[b.rank - 1],
          y.rank - (a.rank > 1 ? 1 : 0) - (b.rank > 1 ? 1 : 0)};
  s.merged = b.rank <= 2;
  if (s.merged) {
    s.rows = 1;
    for (std::uint32_t i = 0; i + 1 < a.rank; ++i) s.rows *= a.shape[i];
    s.stack_rank = 0;
  }
  return s;
}

/// Whether the rows of a serve as they are.
bool in_place(const Sizes& s) {
  return padded_k(s.k) == s.k;
}

bool is_packed(const sdk::Call& call, const IntegerOperands& at) {
  return call.packed != nullptr && call.packed[at.b] != nullptr;
}

/// Products of a stack.
std::int64_t stack_count(const sdk::Call& call, const Sizes& s) {
  std::int64_t count = 1;
  for (std::uint32_t i = 0; i < s.stack_rank; ++i) count *= call.outputs[0].shape[i];
  return count;
}
/// Threads that compute a product of a stack each; 1: all threads share each product.
std::int64_t stack_workers(const sdk::Call& call, const Sizes& s) {
  const std::int64_t count = stack_count(call, s), threads = call.host.thread_count();
  return threads > 1 && count >= threads ? threads : 1;
}

/// The scratch memory of one product.
struct Scratch {
  std::uint8_t* rows = nullptr;
  char* panels = nullptr;
  std::int32_t *row_factor, *row_sums, *column_factor, *bias = nullptr;
  float* factor = nullptr;
  std::int32_t* sums = nullptr;  ///< of a vector b, for an epilogue whose columns are rows of the product

  Scratch(sdk::ScratchArena& arena, const sdk::Call& call, const IntegerOperands& at, const Sizes& s) {
    if (!in_place(s)) rows = arena.allocate<std::uint8_t>(s.rows * padded_k(s.k));
    if (!is_packed(call, at)) panels = arena.allocate<char>(static_cast<std::int64_t>(integer_panels_bytes(s.k, s.columns)));
    row_factor = arena.allocate<std::int32_t>(s.rows);
    row_sums = arena.allocate<std::int32_t>(s.rows);
    column_factor = arena.allocate<std::int32_t>(padded_columns(s.columns));
    if (call.epilogue.scale != nullptr && call.inputs[at.b].rank == 1) sums = arena.allocate<std::int32_t>(s.rows);
    if (!at.requantised) return;
    bias = arena.allocate<std::int32_t>(padded_columns(s.columns));
    factor = arena.allocate<float>(padded_columns(s.columns));
  }
};

PanelSource<std::uint8_t> source_of(const Sizes& s, const std::uint8_t* b) {
  PanelSource<std::uint8_t> from;
  from.data = b;
  from.inner = s.k;
  from.inner_step = s.columns;
  from.columns = s.columns;
  from.column_step = 1;
  return from;
}

}  // namespace

std::size_t integer_matmul_scratch(const sdk::Call& call, const IntegerOperands& at) {
  if (call.outputs[0].count == 0) return 0;
  const Sizes s = sizes_of(call, at);
  sdk::ScratchArena arena(nullptr);
  for (std::int64_t worker = 0; worker < stack_workers(call, s); ++worker) Scratch(arena, call, at, s);
  return arena.required_bytes();
}

std::size_t integer_matmul_pack_size(const sdk::Call& call, const IntegerOperands& at, std::uint32_t input) {
  if (input != at.b || call.inputs[at.b].rank > 2) return 0;
  const Sizes s = sizes_of(call, at);
  const std::size_t bytes = integer_panels_bytes(s.k, s.columns);
  const char* const memory = call.host.option("memory");
  const bool grows = bytes > static_cast<std::size_t>(s.k * s.columns);
  return memory != nullptr && std::string_view(memory) == "small" && grows ? 0 : bytes;
}

void pack_integer_matmul(const sdk::Call& call, const IntegerOperands& at, void* out_packed) {
  const Sizes s = sizes_of(call, at);
  pack_integer_panels(&call.host, source_of(s, call.input<std::uint8_t>(at.b)), flip_to_signed(call.inputs[at.b].dtype), out_packed);
}

namespace {

/// The epilogue of `rows` rows of `columns` sums, on the calling thread.
void finish_vectors(const IntegerEpilogue& epilogue, const std::int32_t* sums, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; column += integer_block_columns) {
      std::int32_t block[integer_block_columns] = {};
      const std::int64_t n = std::min(integer_block_columns, columns - column);
      std::copy_n(sums + row * columns + column, n, block);
      apply_integer_epilogue(epilogue.from(row, column), block, 1, n);
    }
  }
}

/// The product of the matrices at these offsets of a and b, the one of index i; `host`: see integer_products.h.
void multiply_one(const sdk::Call& call, const IntegerOperands& at, const Sizes& s, const Scratch& memory, const sdk::Host* host,
                  std::int64_t i, std::int64_t a_offset, std::int64_t b_offset) {
  const sdk::Operand &a = call.inputs[at.a], &b = call.inputs[at.b];
  IntegerTiles product;
  product.rows = s.rows;
  product.k = s.k;
  product.columns = s.columns;
  product.a = call.input<std::uint8_t>(at.a) + a_offset;
  product.a_signed = a.dtype == TENON_DTYPE_I8;
  product.a_step = padded_k(s.k);
  if (memory.rows != nullptr) {
    copy_integer_rows(host, product.a, s.rows, s.k, memory.rows);
    product.a = memory.rows;
  }
  const void* packed = is_packed(call, at) ? call.packed[at.b] : memory.panels;
  if (!is_packed(call, at)) {
    pack_integer_panels(host, source_of(s, call.input<std::uint8_t>(at.b) + b_offset), flip_to_signed(b.dtype), memory.panels);
  }
  const IntegerPanels panels = integer_panels_at(packed, s.k, s.columns);
  product.panels = panels.panels;
  product.column_sums = panels.column_sums;

  product.row_factor = memory.row_factor;
  product.row_factor_step = call.has_input(at.a_zero_point) && call.inputs[at.a_zero_point].rank == 1 ? 1 : 0;
  const std::int64_t matrix_rows = a.rank == 1 ? 1 : a.shape[a.rank - 2];
  for (std::int64_t row = 0; row < (product.row_factor_step == 0 ? 1 : s.rows); ++row) {
    memory.row_factor[row] = -zero_point_at(call, at.a_zero_point, row % matrix_rows);
  }
  if (fill_column_factors(call, at, 0, s.columns, memory.column_factor)) {
    product.column_factor = memory.column_factor;
    product.row_sums = memory.row_sums;
    sum_integer_rows(product.a, product.a_signed, product.a_step, s.rows, s.k, memory.row_sums);
    for (std::int64_t row = 0; row < s.rows; ++row) {
      memory.row_sums[row] += static_cast<std::int32_t>(s.k * memory.row_factor[row * product.row_factor_step]);
    }
  }
  const std::int64_t first = i * s.rows * s.columns;
  if (at.requantised) {
    fill_requantisation(call, at, 0, s.columns, panels.column_sums, memory.bias, memory.factor);
    product.requantisation = requantisation_of(call);
    product.requantisation.bias = memory.bias;
    product.requantisation.factor = memory.factor;
    product.requantisation.y = call.output<std::uint8_t>(0) + first;
    product.requantisation.y_step = s.columns;
  } else if (call.epilogue.scale == nullptr) {
    product.y = call.output<std::int32_t>(0) + first;
    product.y_step = s.columns;
  } else if (memory.sums == nullptr) {
    return multiply_integers(host, product, integer_epilogue_of(call, s.columns).from(i * s.rows, 0));
  } else {
    product.y = memory.sums;
    product.y_step = 1;
    multiply_integers(host, product);
    return finish_vectors(integer_epilogue_of(call, matrix_rows), memory.sums, s.rows / matrix_rows, matrix_rows);
  }
  multiply_integers(host, product);
}

}  // namespace

void integer_matmul(const sdk::Call& call, const IntegerOperands& at) {
  const Sizes s = sizes_of(call, at);
  const sdk::Operand& y = call.outputs[0];
  sdk::ScratchArena arena(call.scratch);
  if (s.merged) return multiply_one(call, at, s, Scratch(arena, call, at, s), &call.host, 0, 0, 0);

  sdk::Operand left = call.inputs[at.a], right = call.inputs[at.b];
  left.rank = left.rank < 2 ? 0 : left.rank - 2;
  right.rank = right.rank < 2 ? 0 : right.rank - 2;
  const std::array<sdk::Strides, 2> strides{sdk::broadcast_strides(left, s.stack_rank), sdk::broadcast_strides(right, s.stack_rank)};
  const std::int64_t workers = stack_workers(call, s);
  if (workers == 1) {
    const Scratch memory(arena, call, at, s);
    return sdk::for_each_element(y.shape, s.stack_rank, strides, [&](std::int64_t i, const auto& offset) {
      multiply_one(call, at, s, memory, &call.host, i, offset[0], offset[1]);
    });
  }
  const std::size_t worker_bytes = integer_matmul_scratch(call, at) / static_cast<std::size_t>(workers);
  for_each_task(call.host, stack_count(call, s), [&](std::int64_t task, std::int64_t worker) {
    std::int64_t rest = task, offset[2] = {0, 0};
    for (std::uint32_t d = s.stack_rank; d-- > 0;) {
      const std::int64_t index = rest % y.shape[d];
      rest /= y.shape[d];
      for (int operand = 0; operand < 2; ++operand) offset[operand] += index * strides[static_cast<std::size_t>(operand)][d];
    }
    sdk::ScratchArena own(static_cast<char*>(call.scratch) + static_cast<std::size_t>(worker) * worker_bytes);
    multiply_one(call, at, s, Scratch(own, call, at, s), nullptr, task, offset[0], offset[1]);
  });
}

}  // namespace tenon::openblas
