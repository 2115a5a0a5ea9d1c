// SPDX-License-Identifier: Apache-2.0
#include "attention/bf16_attention.h"

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
#include "gemm/panels.h"
#include "workers.h"

namespace tenon::openblas {
namespace {

using sdk::BFloat16;

/// Elements of a mask worth a thread for conversion: about 20 us.
constexpr std::int64_t mask_grain = 64 * 1024;

/// The memory of a thread.
struct Memory {
  BFloat16 *key_panels, *value_panels, *high, *low;
  float *scores, *sums;
  RowState<float>* states;

  Memory(sdk::ScratchArena& arena, const AttentionSizes& at) {
    const std::int64_t rows = std::min(at.queries, query_block), columns = std::min(at.keys, key_block);
    key_panels = arena.allocate<BFloat16>(panel_elements<BFloat16>(at.size, at.keys));
    value_panels = arena.allocate<BFloat16>(sdk::ceil_div(at.keys, key_block) * panel_elements<BFloat16>(columns, at.result));
    high = arena.allocate<BFloat16>(rows * columns);
    low = arena.allocate<BFloat16>(rows * columns);
    scores = arena.allocate<float>(rows * columns);
    sums = arena.allocate<float>(rows * at.result);
    states = arena.allocate<RowState<float>>(rows);
  }
};

struct Plan {
  AttentionSizes at;
  bool whole_heads;  ///< a task computes all queries of a head, whose keys and values it packs; else one block of them
  std::int64_t tasks, workers;
  std::int64_t mask_elements;

  explicit Plan(const sdk::Call& call) : at(call, 0) {
    const std::int64_t heads = at.batch * at.heads;
    whole_heads = heads >= call.host.thread_count();
    tasks = whole_heads ? heads : heads * at.query_blocks();
    workers = worker_count(call.host, tasks);
    mask_elements = call.has_input(3) ? call.inputs[3].count : 0;
  }

  std::size_t worker_bytes() const {
    sdk::ScratchArena arena(nullptr);
    Memory(arena, at);
    return arena.required_bytes();
  }
  std::size_t mask_bytes() const { return sdk::aligned_size(static_cast<std::size_t>(mask_elements) * sizeof(float)); }
};

/// The values of keys [l, l + key_block) in panels.
const BFloat16* value_panels_of(const AttentionSizes& at, const Memory& memory, std::int64_t l) {
  return memory.value_panels + l / key_block * panel_elements<BFloat16>(std::min(at.keys, key_block), at.result);
}

void pack(const sdk::Call& call, const AttentionSizes& at, std::int64_t head, const Memory& memory) {
  PanelSource<BFloat16> keys;
  keys.data = call.input<BFloat16>(1) + at.first_key(head) * at.size;
  keys.inner = at.size;
  keys.inner_step = 1;
  keys.columns = at.keys;
  keys.column_step = at.size;
  for (std::int64_t i = 0; i < panel_count<BFloat16>(at.keys); ++i) pack_panel(keys, i, memory.key_panels);
  for (std::int64_t l = 0; l < at.keys; l += key_block) {
    PanelSource<BFloat16> values;
    values.data = call.input<BFloat16>(2) + (at.first_key(head) + l) * at.result;
    values.inner = std::min(key_block, at.keys - l);
    values.inner_step = at.result;
    values.columns = at.result;
    values.column_step = 1;
    auto* const to = const_cast<BFloat16*>(value_panels_of(at, memory, l));
    for (std::int64_t i = 0; i < panel_count<BFloat16>(at.result); ++i) pack_panel(values, i, to);
  }
}

/// Queries [s, s + rows) of a head whose keys and values are packed.
void attend(const sdk::Call& call, const AttentionSizes& at, const float* mask, std::int64_t head, std::int64_t s, std::int64_t rows,
            const Memory& memory) {
  const std::int64_t row = head * at.queries + s, end = at.seen(s, rows);
  if (end == 0) {
    std::fill_n(memory.states, rows, RowState<float>{-std::numeric_limits<float>::infinity(), 0});
    std::fill_n(memory.sums, rows * at.result, 0.0F);
  }
  const sdk::Strides strides = mask == nullptr ? sdk::Strides{} : sdk::broadcast_strides(call.inputs[3], 4);
  for (std::int64_t l = 0; l < end; l += key_block) {
    const std::int64_t columns = std::min(key_block, at.keys - l);
    PanelProduct<BFloat16> scores;
    scores.rows = rows;
    scores.k = at.size;
    scores.columns = columns;
    scores.a = call.input<BFloat16>(0) + row * at.size;
    scores.a_step = at.size;
    scores.panels = memory.key_panels + l / panel_width<BFloat16> * panel_step<BFloat16>(at.size);
    scores.alpha = static_cast<float>(call.attr<tenon_attributes_attention>().scale);
    scores.wide_y = memory.scores;
    scores.y_step = columns;
    multiply_panels(scores);
    const auto block = at.score_block(head, s, rows, l, columns, memory.scores, mask, strides);
    softmax_block_forward(block, l == 0, memory.states, memory.sums, at.result);
    TENON_DISPATCH(split)(memory.scores, rows * columns, memory.high, memory.low);
    for (const BFloat16* const weights : {memory.high, memory.low}) {
      PanelProduct<BFloat16> sums;
      sums.rows = rows;
      sums.k = columns;
      sums.columns = at.result;
      sums.a = weights;
      sums.a_step = columns;
      sums.panels = value_panels_of(at, memory, l);
      sums.wide_y = memory.sums;
      sums.y_step = at.result;
      sums.accumulates = l > 0 || weights == memory.low;
      multiply_panels(sums);
    }
  }
  float* const log_sum = call.has_output(1) ? call.output<float>(1) + row : nullptr;
  normalise_rows(rows, memory.states, memory.sums, at.result, log_sum);
  TENON_DISPATCH(round_all)(memory.sums, rows * at.result, call.output<BFloat16>(0) + row * at.result);
}

}  // namespace

std::size_t bf16_attention_scratch(const sdk::Call& call) {
  const Plan plan(call);
  return plan.mask_bytes() + plan.worker_bytes() * static_cast<std::size_t>(plan.workers);
}

void bf16_attention(const sdk::Call& call) {
  const Plan plan(call);
  const AttentionSizes& at = plan.at;
  float* const mask = plan.mask_elements == 0 ? nullptr : static_cast<float*>(call.scratch);
  if (mask != nullptr) {
    call.host.parallel_for(plan.mask_elements, mask_grain, [&](std::int64_t begin, std::int64_t end) {
      TENON_DISPATCH(widen_all)(call.input<BFloat16>(3) + begin, end - begin, mask + begin);
    });
  }
  char* const memories = static_cast<char*>(call.scratch) + plan.mask_bytes();
  const std::int64_t blocks = at.query_blocks();
  for_each_task(call.host, plan.tasks, [&](std::int64_t task, std::int64_t worker) {
    sdk::ScratchArena arena(memories + static_cast<std::size_t>(worker) * plan.worker_bytes());
    const Memory memory(arena, at);
    const std::int64_t head = plan.whole_heads ? task : task / blocks;
    pack(call, at, head, memory);
    // Causal rows grow in length: the longest blocks come first, to balance the threads.
    const std::int64_t first = plan.whole_heads ? 0 : task % blocks, count = plan.whole_heads ? blocks : 1;
    for (std::int64_t i = first; i < first + count; ++i) {
      const std::int64_t s = (blocks - 1 - i) * query_block;
      attend(call, at, mask, head, s, std::min(query_block, at.queries - s), memory);
    }
  });
}

}  // namespace tenon::openblas
#endif
