// SPDX-License-Identifier: Apache-2.0
#include "attention/packed_attention.h"

#include "simd/foreach_target.h"

#include <algorithm>
#include <limits>

#include "simd/bf16.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

/// high + low = p, up to 2^-17 of it.
void split(const float* p, std::int64_t n, sdk::BFloat16* high, sdk::BFloat16* low) {
  const Floats d;
  std::int64_t i = 0;
  const auto rest = [](hn::Vec<Floats> v) HWY_ATTR { return hn::Sub(v, from_bf16(to_bf16(v))); };
  for (; i + lanes(d) <= n; i += lanes(d)) {
    const auto v = hn::LoadU(d, p + i);
    store_rounded(v, d, high + i);
    store_rounded(rest(v), d, low + i);
  }
  if (i == n) return;
  const auto v = load_first(d, p + i, n - i);
  store_rounded_first(v, d, high + i, n - i);
  store_rounded_first(rest(v), d, low + i, n - i);
}

void round_all(const float* x, std::int64_t n, sdk::BFloat16* y) {
  const Floats d;
  std::int64_t i = 0;
  for (; i + lanes(d) <= n; i += lanes(d)) store_rounded(hn::LoadU(d, x + i), d, y + i);
  if (i < n) store_rounded_first(load_first(d, x + i, n - i), d, y + i, n - i);
}

void widen_all(const sdk::BFloat16* x, std::int64_t n, float* y) {
  const Floats d;
  std::int64_t i = 0;
  for (; i + lanes(d) <= n; i += lanes(d)) hn::StoreU(load_stored(d, x + i), d, y + i);
  if (i < n) store_first(load_stored_first(d, x + i, n - i), d, y + i, n - i);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <tenon/sdk/scratch_arena.h>

#include "attention/attention_rows.h"
#include "attention/attention_sizes.h"
#include "elementwise/half.h"
#include "gemm/panels.h"
#include "gemm/product_types.h"
#include "workers.h"

namespace tenon::openblas {
namespace {

using sdk::BFloat16;

/// Elements of a mask worth a thread for conversion: about 20 us.
constexpr std::int64_t mask_grain = 64 * 1024;

/// The memory of a thread.
template <class T>
struct Memory {
  T *key_panels, *value_panels;
  SumOf<T>* scores;
  BFloat16 *high, *low;  ///< weights, of bf16
  float* sums;           ///< of bf16
  RowState<SumOf<T>>* states;

  Memory(sdk::ScratchArena& arena, const AttentionSizes& at) {
    const std::int64_t rows = std::min(at.queries, query_block), columns = std::min(at.keys, key_block);
    key_panels = arena.allocate<T>(panel_elements<T>(at.size, at.keys));
    value_panels = arena.allocate<T>(sdk::ceil_div(at.keys, key_block) * panel_elements<T>(columns, at.result));
    scores = arena.allocate<SumOf<T>>(rows * columns);
    high = arena.allocate<BFloat16>(is_narrow<T> ? rows * columns : 0);
    low = arena.allocate<BFloat16>(is_narrow<T> ? rows * columns : 0);
    sums = arena.allocate<float>(is_narrow<T> ? rows * at.result : 0);
    states = arena.allocate<RowState<SumOf<T>>>(rows);
  }
};

template <class T>
struct Plan {
  AttentionSizes at;
  bool whole_heads;  ///< a task computes all queries of a head, whose keys and values it packs; else one block of them
  std::int64_t tasks, workers;
  std::int64_t mask_elements;  ///< of a mask that is widened to f32

  explicit Plan(const sdk::Call& call) : at(call, 0) {
    const std::int64_t heads = at.batch * at.heads, threads = call.host.thread_count();
    whole_heads = heads % threads == 0 || heads >= 2 * threads;
    tasks = whole_heads ? heads : heads * at.query_blocks();
    workers = worker_count(call.host, tasks);
    mask_elements = is_narrow<T> && call.has_input(3) ? call.inputs[3].count : 0;
  }

  std::size_t worker_bytes() const {
    sdk::ScratchArena arena(nullptr);
    Memory<T>(arena, at);
    return arena.required_bytes();
  }
  std::size_t mask_bytes() const { return sdk::aligned_size(static_cast<std::size_t>(mask_elements) * sizeof(float)); }
};

/// The rows of a head, which has neighbouring elements.
template <class T>
struct HeadRows {
  T* data;
  std::int64_t step;

  T* row(std::int64_t i) const { return data + i * step; }
};

/// Head b H + h of an operand (B, H, rows, size).
template <class T>
HeadRows<const T> head_of(const sdk::Operand& x, std::int64_t head) {
  const std::int64_t heads = x.shape[1];
  return {x.as<const T>() + head / heads * x.strides[0] + head % heads * x.strides[1], x.strides[2]};
}

/// That of the result, (B, H, S, E) or, with merged heads, (B, S, H, E).
template <class T>
HeadRows<T> result_of(const sdk::Call& call, const AttentionSizes& at, std::int64_t head) {
  T* const y = call.output<T>(0);
  if (!call.merged_heads) return {y + head * at.queries * at.result, at.result};
  return {y + (head / at.heads * at.queries * at.heads + head % at.heads) * at.result, at.heads * at.result};
}

/// The values of keys [l, l + key_block) in panels.
template <class T>
const T* value_panels_of(const AttentionSizes& at, const Memory<T>& memory, std::int64_t l) {
  return memory.value_panels + l / key_block * panel_elements<T>(std::min(at.keys, key_block), at.result);
}

/// Packs the blocks with keys [0, end) of a head.
template <class T>
void pack(const sdk::Call& call, const AttentionSizes& at, std::int64_t head, std::int64_t end, const Memory<T>& memory) {
  end = std::min(at.keys, sdk::round_up(end, key_block));
  const HeadRows<const T> key_rows = head_of<T>(call.inputs[1], at.group_of(head));
  const HeadRows<const T> value_rows = head_of<T>(call.inputs[2], at.group_of(head));
  PanelSource<T> keys;
  keys.data = key_rows.data;
  keys.inner = at.size;
  keys.inner_step = 1;
  keys.columns = at.keys;
  keys.column_step = key_rows.step;
  for (std::int64_t i = 0; i < panel_count<T>(end); ++i) pack_panel(keys, i, memory.key_panels);
  for (std::int64_t l = 0; l < end; l += key_block) {
    PanelSource<T> values;
    values.data = value_rows.row(l);
    values.inner = std::min(key_block, at.keys - l);
    values.inner_step = value_rows.step;
    values.columns = at.result;
    values.column_step = 1;
    auto* const to = const_cast<T*>(value_panels_of(at, memory, l));
    for (std::int64_t i = 0; i < panel_count<T>(at.result); ++i) pack_panel(values, i, to);
  }
}

/// out = q k' of `rows` queries with `columns` keys from l on; l is a multiple of key_block.
template <class T>
void multiply_keys(const HeadRows<const T>& queries, const AttentionSizes& at, const Memory<T>& memory, std::int64_t rows, std::int64_t l,
                   std::int64_t columns, SumOf<T>* out) {
  PanelProduct<T> product;
  product.rows = rows;
  product.k = at.size;
  product.columns = columns;
  product.a = queries.data;
  product.a_step = queries.step;
  product.panels = memory.key_panels + l / panel_width<T> * panel_step<T>(at.size);
  if constexpr (is_narrow<T>) {
    product.wide_y = out;
  } else {
    product.y = out;
  }
  product.y_step = columns;
  multiply_panels(product);
}

/// sums = weights v of `columns` keys from l on, or sums += weights v.
template <class T>
void multiply_values(const AttentionSizes& at, const Memory<T>& memory, const T* weights, std::int64_t rows, std::int64_t l,
                     std::int64_t columns, bool accumulates, const HeadRows<SumOf<T>>& sums) {
  const std::int64_t packed = std::min(key_block, at.keys - l);
  PanelProduct<T> product;
  product.rows = rows;
  product.k = columns;
  product.a = weights;
  product.a_step = columns;
  product.y_step = sums.step;
  // Panels are multiplied one by one if only their first lines are used, since panel_step() is that of all lines.
  const std::int64_t panels = columns == packed ? panel_count<T>(at.result) : 1;
  for (std::int64_t i = 0; i < panel_count<T>(at.result); i += panels) {
    const std::int64_t first = i * panel_width<T>;
    product.columns = std::min(at.result - first, panels * panel_width<T>);
    product.panels = value_panels_of(at, memory, l) + i * panel_step<T>(packed);
    if constexpr (is_narrow<T>) {
      product.wide_y = sums.data + first;
      product.accumulates = accumulates;
    } else {
      product.y = sums.data + first;
      product.residual = accumulates ? product.y : nullptr;
    }
    multiply_panels(product);
  }
}

/// Queries [s, s + rows) of a head whose keys and values are packed.
template <class T>
void attend(const sdk::Call& call, const AttentionSizes& at, const SumOf<T>* mask, std::int64_t head, std::int64_t s, std::int64_t rows,
            const Memory<T>& memory) {
  const std::int64_t end = at.seen(s, rows);
  HeadRows<const T> queries = head_of<T>(call.inputs[0], head);
  queries.data = queries.row(s);
  HeadRows<T> y = result_of<T>(call, at, head);
  y.data = y.row(s);
  HeadRows<SumOf<T>> sums;
  if constexpr (is_narrow<T>) {
    sums = {memory.sums, at.result};
  } else {
    sums = y;
  }
  if (end == 0) {
    std::fill_n(memory.states, rows, RowState<SumOf<T>>{-std::numeric_limits<SumOf<T>>::infinity(), 0});
    for (std::int64_t i = 0; i < rows; ++i) std::fill_n(sums.row(i), at.result, SumOf<T>(0));
  }
  const sdk::Strides strides = mask == nullptr ? sdk::Strides{} : sdk::broadcast_strides(call.inputs[3], 4);
  for (std::int64_t l = 0; l < end; l += key_block) {
    // Products of bf16 take whole blocks of keys, whose panels are padded with zeros.
    const std::int64_t columns = std::min(key_block, (is_narrow<T> ? at.keys : end) - l);
    multiply_keys(queries, at, memory, rows, l, columns, memory.scores);
    const auto block = at.score_block(head, s, rows, l, columns, memory.scores, mask, strides);
    softmax_block_forward(block, l == 0, memory.states, sums.data, at.result, sums.step);
    if constexpr (is_narrow<T>) {
      TENON_DISPATCH(split)(memory.scores, rows * columns, memory.high, memory.low);
      multiply_values(at, memory, memory.high, rows, l, columns, l > 0, sums);
      multiply_values(at, memory, memory.low, rows, l, columns, true, sums);
    } else {
      multiply_values(at, memory, memory.scores, rows, l, columns, l > 0, sums);
    }
  }
  SumOf<T>* const log_sum = call.has_output(1) ? call.output<SumOf<T>>(1) + head * at.queries + s : nullptr;
  normalise_rows(rows, memory.states, sums.data, at.result, sums.step, log_sum);
  if constexpr (is_narrow<T>) {
    for (std::int64_t i = 0; i < rows; ++i) TENON_DISPATCH(round_all)(sums.row(i), at.result, y.row(i));
  }
}

}  // namespace

template <class T>
std::size_t packed_attention_scratch(const sdk::Call& call) {
  const Plan<T> plan(call);
  return plan.mask_bytes() + plan.worker_bytes() * static_cast<std::size_t>(plan.workers);
}

template <class T>
void packed_attention(const sdk::Call& call) {
  const Plan<T> plan(call);
  const AttentionSizes& at = plan.at;
  const SumOf<T>* mask = nullptr;
  if constexpr (is_narrow<T>) {
    float* const wide = static_cast<float*>(call.scratch);
    if (plan.mask_elements > 0) mask = wide;
    call.host.parallel_for(plan.mask_elements, mask_grain, [&](std::int64_t begin, std::int64_t end) {
      TENON_DISPATCH(widen_all)(call.input<BFloat16>(3) + begin, end - begin, wide + begin);
    });
  } else if (call.has_input(3)) {
    mask = call.input<T>(3);
  }
  char* const memories = static_cast<char*>(call.scratch) + plan.mask_bytes();
  const std::int64_t blocks = at.query_blocks();
  for_each_task(call.host, plan.tasks, [&](std::int64_t task, std::int64_t worker) {
    sdk::ScratchArena arena(memories + static_cast<std::size_t>(worker) * plan.worker_bytes());
    const Memory<T> memory(arena, at);
    const std::int64_t head = plan.whole_heads ? task : task / blocks;
    // Causal rows grow in length: the longest blocks come first, to balance the threads.
    const std::int64_t first = plan.whole_heads ? 0 : task % blocks, count = plan.whole_heads ? blocks : 1;
    for (std::int64_t i = first; i < first + count; ++i) {
      const std::int64_t s = (blocks - 1 - i) * query_block, rows = std::min(query_block, at.queries - s);
      if (i == first) pack(call, at, head, at.seen(s, rows), memory);
      attend(call, at, mask, head, s, rows, memory);
    }
  });
}

#define TENON_INSTANTIATE_PACKED(T)                    \
  template void packed_attention<T>(const sdk::Call&); \
  template std::size_t packed_attention_scratch<T>(const sdk::Call&);
TENON_INSTANTIATE_PACKED(sdk::BFloat16)
TENON_INSTANTIATE_PACKED(float)
TENON_INSTANTIATE_PACKED(double)

}  // namespace tenon::openblas
#endif
