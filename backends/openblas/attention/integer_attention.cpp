// SPDX-License-Identifier: Apache-2.0
// Heads in blocks of queries: scores of a block stay in the cache from the product with the keys to that with the values.
#include "attention/integer_attention.h"

#include "simd/foreach_target.h"

#include <algorithm>
#include <cstring>

#include "attention/probability_rows.h"
#include "quantize/quantize_lines.h"
#include "reduce/softmax_lines.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

/// The scores of all rows, in place of the sums, and the maxima of rows in the order of max_of_row().
template <bool has_factor, bool has_mask>
void find_scores(const ProbabilityRows& of, float* out_maxima) {
  const Wide<float> d;
  const hn::RebindToSigned<Wide<float>> whole;
  constexpr float lowest = -std::numeric_limits<float>::infinity();
  const auto scale = hn::Set(d, of.scale), factor = hn::Set(d, has_factor ? *of.factor : 1.0F);
  const std::int64_t n = of.n;
  const bool one_mask = of.one_mask;
  for (std::int64_t row = 0; row < of.rows; ++row) {
    const auto addend = hn::Set(whole, of.addends[row]);
    const float* const mask = has_mask ? of.mask + row * of.mask_row : nullptr;
    const auto first_mask = hn::Set(d, has_mask ? *mask : 0.0F);
    const auto score = [&](hn::Vec<decltype(whole)> sum, std::int64_t i, std::int64_t m) HWY_ATTR {
      auto v = hn::Mul(hn::ConvertTo(d, hn::Add(sum, addend)), scale);
      if constexpr (has_factor) v = hn::Mul(v, factor);
      if constexpr (has_mask) v = hn::Add(v, one_mask ? first_mask : m == lanes(d) ? hn::LoadU(d, mask + i) : load(d, mask + i, m));
      return v;
    };
    std::int32_t* const sums = of.sums + row * n;
    float* const scores = reinterpret_cast<float*>(sums);
    auto row_max = hn::Set(d, lowest);
    std::int64_t i = 0;
    for (; i + lanes(d) <= n; i += lanes(d)) {
      const auto v = score(hn::LoadU(whole, sums + i), i, lanes(d));
      row_max = hn::Max(row_max, v);
      hn::StoreU(v, d, scores + i);
    }
    if (i < n) {
      store(score(load(whole, sums + i, n - i), i, n - i), d, scores + i, n - i);
      row_max = hn::Max(row_max, load(d, scores + i, n - i, lowest));
    }
    out_maxima[row] = hn::GetLane(hn::MaxOfLanes(d, row_max));
  }
}

/// Quantised quotients of the terms of a row and their sum. Both quotients are rounded: (e / total) / p_scale is within (1 + 2^-24)^2 of
/// e reciprocal, and the reciprocal within 1 + 2^-24 of what it stands for. Subnormal quotients round to 0 either way.
/// Returns the sum of the integers.
template <class Q>
std::int32_t quantize_quotients(const float* terms, std::int64_t n, float total, float p_scale, Q zero_point, Q* p) {
  const Wide<float> d;
  const hn::Rebind<Q, Wide<float>> narrow;
  const bool by_reciprocal = ReciprocalQuantizer<Q>::takes(p_scale) && total >= 1 && total <= 0x1p24F;
  const auto reciprocal = static_cast<float>(1 / (static_cast<double>(total) * static_cast<double>(p_scale)));
  const ReciprocalQuantizer<Q> quantizer(by_reciprocal ? reciprocal : 1.0F, 0x1p-21F, zero_point);
  const auto quantized = [&](hn::Vec<Wide<float>> e) HWY_ATTR {
    hn::Vec<hn::Rebind<Q, Wide<float>>> bytes;
    const bool is_done = quantizer(e, bytes) && by_reciprocal;
    if (HWY_LIKELY(is_done)) return bytes;
    return quantized_by_division<Q>(hn::Div(e, hn::Set(d, total)), hn::Set(d, p_scale), hn::Set(d, static_cast<float>(zero_point)));
  };
  const hn::RebindToSigned<Wide<float>> whole;
  auto sums = hn::Zero(whole);
  std::int64_t i = 0;
  for (; i + lanes(d) <= n; i += lanes(d)) {
    const auto bytes = quantized(hn::LoadU(d, terms + i));
    hn::StoreU(bytes, narrow, p + i);
    sums = hn::Add(sums, hn::PromoteTo(whole, bytes));
  }
  std::int32_t sum = hn::GetLane(hn::SumOfLanes(whole, sums));
  if (i == n) return sum;
  store(quantized(load(d, terms + i, n - i)), narrow, p + i, n - i);
  for (; i < n; ++i) sum += p[i];
  return sum;
}

/// Each step is done for all rows, so that the processor overlaps the reductions of several rows.
template <class Q>
void quantize_probabilities(const ProbabilityRows& of) {
  float maxima[ProbabilityRows::max_rows], totals[ProbabilityRows::max_rows];
  if (of.factor == nullptr) {
    of.mask == nullptr ? find_scores<false, false>(of, maxima) : find_scores<false, true>(of, maxima);
  } else {
    of.mask == nullptr ? find_scores<true, false>(of, maxima) : find_scores<true, true>(of, maxima);
  }
  float* const terms = reinterpret_cast<float*>(of.sums);
  for (std::int64_t row = 0; row < of.rows; ++row) {
    float* const x = terms + row * of.n;
    totals[row] = static_cast<float>(sum_in_blocks<float>(of.n, ExpTerm<float>{x, x, maxima[row]}));
  }
  for (std::int64_t row = 0; row < of.rows; ++row) {
    Q* const p = static_cast<Q*>(of.p) + row * of.p_step;
    of.p_sums[row] = quantize_quotients(terms + row * of.n, of.n, totals[row], of.p_scale, static_cast<Q>(of.zero_point), p);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <array>

#include <tenon/sdk/rounding.h>
#include <tenon/sdk/scratch_arena.h>
#include <tenon/sdk/strided.h>

#include "quantize/integer_products.h"
#include "workers.h"

namespace tenon::openblas {
namespace {

using namespace sdk::attention_input;  // NOLINT(google-build-using-namespace): the indices of the operands
constexpr std::uint32_t q = 0, k = 1, q_zero_point = 2, k_zero_point = 3;

/// Rows of a block: a multiple of the heights of tiles.
constexpr std::int64_t block_rows = ProbabilityRows::max_rows;

/// The operands as stacks of B H matrices, q (B, H, S, D), k (B, H, D, L) and v (B, H, L, E); B is 1 for three dimensions.
struct Sizes {
  std::int64_t batch, heads, queries, keys, size, result, blocks;
  bool whole_heads;  ///< a task is a head, else a block of one
  std::int64_t tasks, workers;

  explicit Sizes(const sdk::Call& call) {
    const sdk::Operand &left = call.inputs[q], &values = call.inputs[v];
    const std::uint32_t rank = left.rank;
    batch = rank == 4 ? left.shape[0] : 1;
    heads = left.shape[rank - 3];
    queries = left.shape[rank - 2];
    size = left.shape[rank - 1];
    keys = values.shape[rank - 2];
    result = values.shape[rank - 1];
    blocks = sdk::ceil_div(queries, block_rows);
    const std::int64_t threads = call.host.thread_count(), stacks = batch * heads;
    whole_heads = stacks % threads == 0 || stacks >= 2 * threads;
    tasks = whole_heads ? stacks : stacks * blocks;
    workers = worker_count(call.host, tasks);
  }
};

/// A matrix of a stack.
struct Matrix {
  const std::uint8_t* data;
  std::int64_t row_step, column_step;
};
Matrix matrix_of(const sdk::Operand& x, const Sizes& s, std::int64_t head) {
  const std::uint32_t rank = x.rank;
  const std::int64_t outer = rank == 4 ? head / s.heads * x.strides[0] : 0;
  return {x.as<const std::uint8_t>() + outer + head % s.heads * x.strides[rank - 3], x.strides[rank - 2], x.strides[rank - 1]};
}

/// The memory of a thread.
struct Memory {
  void *key_panels, *value_panels;
  std::uint8_t *queries, *p;
  std::int32_t *scores, *sums, *row_sums, *p_sums, *column_factor;

  Memory(sdk::ScratchArena& arena, const Sizes& s) {
    const std::int64_t rows = std::min(s.queries, block_rows);
    key_panels = arena.allocate_bytes(integer_panels_bytes(s.size, s.keys));
    value_panels = arena.allocate_bytes(integer_panels_bytes(s.keys, s.result));
    queries = arena.allocate<std::uint8_t>(padded_k(s.size) == s.size ? 0 : rows * padded_k(s.size));
    p = arena.allocate<std::uint8_t>(rows * padded_k(s.keys));
    scores = arena.allocate<std::int32_t>(rows * s.keys);
    sums = arena.allocate<std::int32_t>(rows * integer_panel_width);
    row_sums = arena.allocate<std::int32_t>(rows);
    p_sums = arena.allocate<std::int32_t>(rows);
    column_factor = arena.allocate<std::int32_t>(integer_panel_width);
  }
};
std::size_t worker_bytes(const Sizes& s) {
  sdk::ScratchArena arena(nullptr);
  Memory(arena, s);
  return arena.required_bytes();
}

/// What is added to each element of an operand that is packed as i8, less its zero point.
std::int32_t centre_of(const sdk::Call& call, std::uint32_t operand, std::uint32_t zero_point) {
  return (call.inputs[operand].dtype == TENON_DTYPE_U8 ? 128 : 0) - zero_point_at(call, zero_point, 0);
}

void pack(const Matrix& from, std::int64_t inner, std::int64_t columns, tenon_dtype dtype, void* out_panels) {
  PanelSource<std::uint8_t> source;
  source.data = from.data;
  source.inner = inner;
  source.inner_step = from.row_step;
  source.columns = columns;
  source.column_step = from.column_step;
  pack_integer_panels(nullptr, source, flip_to_signed(dtype), out_panels);
}

/// The call's numbers, and the product of a head.
class Attention {
 public:
  explicit Attention(const sdk::Call& call)
      : call_(call),
        sizes_(call),
        key_centre_(centre_of(call, k, k_zero_point)),
        value_centre_(centre_of(call, v, v_zero_point)),
        query_zero_(zero_point_at(call, q_zero_point, 0)),
        p_zero_(zero_point_at(call, p_zero_point, 0)),
        p_signed_(call.inputs[p_zero_point].dtype == TENON_DTYPE_I8) {
    if (call.has_input(mask)) mask_strides_ = sdk::broadcast_strides(call.inputs[mask], call.inputs[q].rank);
    epilogue_ = integer_epilogue_of(call, call.merged_heads ? sizes_.heads * sizes_.result : sizes_.result);
  }

  const Sizes& sizes() const { return sizes_; }

  void pack_head(std::int64_t head, const Memory& memory) const {
    pack(matrix_of(call_.inputs[k], sizes_, head), sizes_.size, sizes_.keys, call_.inputs[k].dtype, memory.key_panels);
    pack(matrix_of(call_.inputs[v], sizes_, head), sizes_.keys, sizes_.result, call_.inputs[v].dtype, memory.value_panels);
  }

  /// Queries [first, first + rows) of a head whose keys and values are packed.
  void attend(std::int64_t head, std::int64_t first, std::int64_t rows, const Memory& memory) const {
    multiply_keys(head, first, rows, memory);
    find_probabilities(head, first, rows, memory);
    multiply_values(head, first, rows, memory);
  }

 private:
  /// The sums of q k less what key_centre_ adds, which memory.row_sums has for each row.
  void multiply_keys(std::int64_t head, std::int64_t first, std::int64_t rows, const Memory& memory) const {
    const Matrix from = matrix_of(call_.inputs[q], sizes_, head);
    IntegerTiles product;
    product.rows = rows;
    product.k = sizes_.size;
    product.columns = sizes_.keys;
    product.a = from.data + first * from.row_step;
    product.a_signed = call_.inputs[q].dtype == TENON_DTYPE_I8;
    product.a_step = from.row_step;
    if (padded_k(sizes_.size) != sizes_.size) {
      const std::int64_t step = padded_k(sizes_.size);
      for (std::int64_t row = 0; row < rows; ++row)
        copy_integer_rows(nullptr, product.a + row * from.row_step, 1, sizes_.size, memory.queries + row * step);
      product.a = memory.queries;
      product.a_step = step;
    }
    const IntegerPanels panels = integer_panels_at(memory.key_panels, sizes_.size, sizes_.keys);
    product.panels = panels.panels;
    product.column_sums = panels.column_sums;
    const std::int32_t row_factor = -query_zero_;
    product.row_factor = &row_factor;
    product.y = memory.scores;
    product.y_step = sizes_.keys;
    multiply_integer_tiles(product);
    std::fill_n(memory.row_sums, rows, 0);
    if (key_centre_ == 0) return;
    sum_integer_rows(product.a, product.a_signed, product.a_step, rows, sizes_.size, memory.row_sums);
    for (std::int64_t row = 0; row < rows; ++row) {
      // modulo 2^32, as the sums are
      const auto centred = static_cast<std::uint32_t>(memory.row_sums[row]) -
                           static_cast<std::uint32_t>(sizes_.size) * static_cast<std::uint32_t>(query_zero_);
      memory.row_sums[row] = static_cast<std::int32_t>(static_cast<std::uint32_t>(key_centre_) * centred);
    }
  }

  void find_probabilities(std::int64_t head, std::int64_t first, std::int64_t rows, const Memory& memory) const {
    ProbabilityRows of;
    of.rows = rows;
    of.n = sizes_.keys;
    of.sums = memory.scores;
    of.addends = memory.row_sums;
    of.scale = *call_.input<float>(score_scale);
    if (call_.has_input(score_factor)) of.factor = call_.input<float>(score_factor);
    of.p_scale = *call_.input<float>(p_scale);
    of.zero_point = p_zero_;
    of.p = memory.p;
    of.p_step = padded_k(sizes_.keys);
    of.p_sums = memory.p_sums;
    if (call_.has_input(mask)) {
      const std::uint32_t rank = call_.inputs[q].rank;
      const std::int64_t outer = rank == 4 ? head / sizes_.heads * mask_strides_[0] : 0;
      of.mask = call_.input<float>(mask) + outer + head % sizes_.heads * mask_strides_[rank - 3] + first * mask_strides_[rank - 2];
      of.mask_row = mask_strides_[rank - 2];
      of.one_mask = mask_strides_[rank - 1] == 0;
    }
    if (p_signed_) {
      TENON_DISPATCH(quantize_probabilities<std::int8_t>)(of);
    } else {
      TENON_DISPATCH(quantize_probabilities<std::uint8_t>)(of);
    }
    if (of.p_step == of.n) return;
    for (std::int64_t row = 0; row < rows; ++row) {
      std::memset(memory.p + row * of.p_step + of.n, 0, static_cast<std::size_t>(of.p_step - of.n));
    }
  }

  void multiply_values(std::int64_t head, std::int64_t first, std::int64_t rows, const Memory& memory) const {
    IntegerTiles product;
    product.rows = rows;
    product.k = sizes_.keys;
    product.a = memory.p;
    product.a_signed = p_signed_;
    product.a_step = padded_k(sizes_.keys);
    const std::int32_t row_factor = -p_zero_;
    product.row_factor = &row_factor;
    if (value_centre_ != 0) {
      std::fill_n(memory.column_factor, integer_panel_width, value_centre_);
      product.column_factor = memory.column_factor;
      product.row_sums = memory.p_sums;
      for (std::int64_t row = 0; row < rows; ++row) memory.p_sums[row] -= static_cast<std::int32_t>(sizes_.keys) * p_zero_;
    }
    product.y = memory.sums;
    product.y_step = integer_block_columns;
    const std::int64_t row = call_.merged_heads ? head / sizes_.heads * sizes_.queries + first : head * sizes_.queries + first;
    const std::int64_t column = call_.merged_heads ? head % sizes_.heads * sizes_.result : 0;
    const IntegerPanels panels = integer_panels_at(memory.value_panels, sizes_.keys, sizes_.result);
    for (std::int64_t j = 0; j < sizes_.result; j += integer_panel_width) {
      product.panels = panels.panels + j * padded_k(sizes_.keys);
      product.column_sums = panels.column_sums + j;
      product.columns = std::min(integer_panel_width, sizes_.result - j);
      multiply_integer_tiles(product);
      apply_integer_epilogue(epilogue_.from(row, column + j), memory.sums, rows, product.columns);
    }
  }

  const sdk::Call& call_;
  Sizes sizes_;
  std::int32_t key_centre_, value_centre_, query_zero_, p_zero_;
  bool p_signed_;
  sdk::Strides mask_strides_{};
  IntegerEpilogue epilogue_;
};

}  // namespace

bool fits_integer_attention(const sdk::Call& call) {
  const sdk::Operand& left = call.inputs[q];
  return left.shape[left.rank - 1] > 0 && call.inputs[v].count > 0;
}

bool integer_attention_takes_view(const sdk::Call& call, std::uint32_t input) {
  const sdk::Operand& x = call.inputs[input];
  if (input == q) return x.strides[x.rank - 1] == 1;
  return input == k || input == v;
}

std::size_t integer_attention_scratch(const sdk::Call& call) {
  const Sizes s(call);
  return worker_bytes(s) * static_cast<std::size_t>(s.workers);
}

void integer_attention(const sdk::Call& call) {
  const Attention attention(call);
  const Sizes& s = attention.sizes();
  const std::size_t bytes = worker_bytes(s);
  for_each_task(call.host, s.tasks, [&](std::int64_t task, std::int64_t worker) {
    sdk::ScratchArena arena(static_cast<char*>(call.scratch) + static_cast<std::size_t>(worker) * bytes);
    const Memory memory(arena, s);
    const std::int64_t head = s.whole_heads ? task : task / s.blocks;
    const std::int64_t begin = s.whole_heads ? 0 : task % s.blocks, end = s.whole_heads ? s.blocks : begin + 1;
    attention.pack_head(head, memory);
    for (std::int64_t i = begin; i < end; ++i) {
      attention.attend(head, i * block_rows, std::min(block_rows, s.queries - i * block_rows), memory);
    }
  });
}

}  // namespace tenon::openblas
#endif
