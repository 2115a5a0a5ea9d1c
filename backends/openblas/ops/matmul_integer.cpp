// SPDX-License-Identifier: Apache-2.0
// ops/matmul_integer.cpp - products of matrices of 8-bit integers: a as u8, b as i8 in panels, and what the zero points add.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include <tenon/sdk/scratch_arena.h>
#include <tenon/sdk/strided.h>

#include "quantize/integer_products.h"

namespace tenon::openblas {
namespace {

constexpr std::uint32_t weights = 1;  // the operand that is packed

/// The sizes of one product, and how often it is repeated.
struct Sizes {
  std::int64_t k, rows, columns;
  std::uint32_t stack_rank;
  bool merged = false;  ///< one b for all rows of all matrices of a
};

Sizes sizes_of(const sdk::Call& call) {
  const sdk::Operand &a = call.inputs[0], &b = call.inputs[1], &y = call.outputs[0];
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
bool in_place(const sdk::Call& call, const Sizes& s) {
  return call.inputs[0].dtype == TENON_DTYPE_U8 && s.k % integer_group == 0;
}

bool is_packed(const sdk::Call& call) {
  return call.packed != nullptr && call.packed[weights] != nullptr;
}

/// The parts of the scratch memory.
struct Scratch {
  std::uint8_t* rows = nullptr;
  char* panels = nullptr;
  std::int32_t *row_factor = nullptr, *row_sums = nullptr, *column_factor = nullptr;

  Scratch(sdk::ScratchArena& arena, const sdk::Call& call, const Sizes& s) {
    if (!in_place(call, s)) rows = arena.allocate<std::uint8_t>(s.rows * sdk::round_up(s.k, integer_group));
    if (!is_packed(call)) panels = arena.allocate<char>(static_cast<std::int64_t>(integer_panels_bytes(s.k, s.columns)));
    row_factor = arena.allocate<std::int32_t>(s.rows);
    row_sums = arena.allocate<std::int32_t>(s.rows);
    column_factor = arena.allocate<std::int32_t>(padded_columns(s.columns));
  }
};

std::size_t scratch(const sdk::Call& call) {
  if (call.outputs[0].count == 0) return 0;
  sdk::ScratchArena arena(nullptr);
  Scratch(arena, call, sizes_of(call));
  return arena.required_bytes();
}

PanelSource<std::uint8_t> source_of(const Sizes& s, const std::uint8_t* b) {
  PanelSource<std::uint8_t> from;
  from.data = b;
  from.inner = s.k;
  from.inner_step = s.columns;
  from.columns = s.columns;
  from.column_step = 1;
  return from;
}

std::size_t pack_size(const sdk::Call& call, std::uint32_t input) {
  if (input != weights || call.inputs[weights].rank > 2) return 0;
  const Sizes s = sizes_of(call);
  const std::size_t bytes = integer_panels_bytes(s.k, s.columns);
  const char* const memory = call.host.option("memory");
  const bool grows = bytes > static_cast<std::size_t>(s.k * s.columns);
  return memory != nullptr && std::string_view(memory) == "small" && grows ? 0 : bytes;
}

void pack(const sdk::Call& call, std::uint32_t, void* out_packed) {
  const Sizes s = sizes_of(call);
  pack_integer_panels(call.host, source_of(s, call.input<std::uint8_t>(weights)), flip_to_signed(call.inputs[weights].dtype), out_packed);
}

std::string pack_form(const sdk::Call&, std::uint32_t) {
  return "integer panels";
}

/// y = (a - a_zero_point) (b - b_zero_point), modulo 2^32
///
/// Shapes  as of matmul; a_zero_point () or (m), b_zero_point () or (n), or absent for 0.
template <class T>
void matmul_integer(const sdk::Call& call) {
  const sdk::Operand &a = call.inputs[0], &b = call.inputs[1], &y = call.outputs[0];
  if (y.count == 0) return;
  const Sizes s = sizes_of(call);
  sdk::ScratchArena arena(call.scratch);
  const Scratch memory(arena, call, s);

  IntegerTiles product;
  product.rows = s.rows;
  product.k = s.k;
  product.columns = s.columns;
  product.a_step = sdk::round_up(s.k, integer_group);
  product.y_step = s.columns;
  product.row_factor = memory.row_factor;
  product.row_factor_step = call.has_input(2) && call.inputs[2].rank == 1 ? 1 : 0;
  const std::int64_t matrix_rows = a.rank == 1 ? 1 : a.shape[a.rank - 2];
  for (std::int64_t i = 0; i < (product.row_factor_step == 0 ? 1 : s.rows); ++i) {
    memory.row_factor[i] = -zero_point_of_unsigned(call, 2, a.dtype, i % matrix_rows);
  }
  bool corrects_columns = false;
  for (std::int64_t j = 0; j < padded_columns(s.columns); ++j) {
    memory.column_factor[j] = j < s.columns ? -zero_point_of_signed(call, 3, b.dtype, j) : 0;
    corrects_columns = corrects_columns || memory.column_factor[j] != 0;
  }
  if (corrects_columns) {
    product.column_factor = memory.column_factor;
    product.row_sums = memory.row_sums;
  }

  // One product for each matrix of the stack.
  sdk::Operand left = a, right = b;
  left.rank = a.rank < 2 ? 0 : a.rank - 2;
  right.rank = b.rank < 2 ? 0 : b.rank - 2;
  std::array<sdk::Strides, 2> strides{};
  if (!s.merged) strides = {sdk::broadcast_strides(left, s.stack_rank), sdk::broadcast_strides(right, s.stack_rank)};
  sdk::for_each_element(y.shape, s.stack_rank, strides, [&](std::int64_t i, const auto& at) {
    product.a = call.input<std::uint8_t>(0) + at[0];
    if (memory.rows != nullptr) {
      copy_integer_rows(call.host, product.a, s.rows, s.k, flip_to_unsigned(a.dtype), memory.rows);
      product.a = memory.rows;
    }
    const void* packed = is_packed(call) ? call.packed[weights] : memory.panels;
    if (!is_packed(call)) {
      pack_integer_panels(call.host, source_of(s, call.input<std::uint8_t>(1) + at[1]), flip_to_signed(b.dtype), memory.panels);
    }
    const IntegerPanels panels = integer_panels_at(packed, s.k, s.columns);
    product.panels = panels.panels;
    product.column_sums = panels.column_sums;
    if (corrects_columns) {
      sum_integer_rows(product.a, product.a_step, s.rows, s.k, memory.row_sums);
      for (std::int64_t row = 0; row < s.rows; ++row) {
        memory.row_sums[row] += static_cast<std::int32_t>(s.k * memory.row_factor[row * product.row_factor_step]);
      }
    }
    product.y = call.output<std::int32_t>(0) + i * s.rows * s.columns;
    multiply_integers(call.host, product);
  });
}

}  // namespace

TENON_KERNEL_WITH(matmul_integer, (sdk::Traits{.scratch = scratch, .pack_size = pack_size, .pack = pack, .pack_form = pack_form}),
                  std::int8_t, std::uint8_t)

}  // namespace tenon::openblas
