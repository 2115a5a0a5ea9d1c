// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention of several heads, and its gradient; the formulas are in ops/attention.cl.
#include <tenon/sdk/kernel.h>
#include <tenon/sdk/scratch_arena.h>
#include <tenon/sdk/strided.h>

#include "kernel/lanes.h"

namespace tenon::opencl {
namespace {

/// `Heads` of ops/attention.cl.
struct Heads {
  std::int64_t batch, heads, groups, queries, keys, size, result;
  std::int64_t mask_strides[4] = {};
  std::int32_t causal, reserved = 0;

  /// `first` is operand q; k, v and the mask follow it.
  Heads(const sdk::Call& call, std::uint32_t first)
      : batch(call.inputs[first].shape[0]),
        heads(call.inputs[first].shape[1]),
        groups(call.inputs[first + 1].shape[1]),
        queries(call.inputs[first].shape[2]),
        keys(call.inputs[first + 1].shape[2]),
        size(call.inputs[first].shape[3]),
        result(call.inputs[first + 2].shape[3]),
        causal(static_cast<std::int32_t>(call.attr<tenon_attributes_attention>().causal)) {
    if (!call.has_input(first + 3)) return;
    const sdk::Strides strides = sdk::broadcast_strides(call.inputs[first + 3], 4);
    for (std::size_t d = 0; d < 4; ++d) mask_strides[d] = strides[d];
  }
  std::int64_t rows() const { return batch * heads * queries; }
  std::int64_t scores() const { return rows() * keys; }
};

/// Scores, or with operand `log_sum` of the gradient probabilities.
template <class T>
void score(const sdk::Call& call, const Heads& heads, std::uint32_t first, const void* log_sum, const T* scores) {
  if (heads.scores() == 0) return;
  Launch launch(call, sources::attention, "attention_scores", types<T>());
  launch.value(heads).value(heads.scores()).address(scores).in(call, first).in(call, first + 1).in(call, first + 3).address(log_sum);
  launch.value(static_cast<T>(call.attr<tenon_attributes_attention>().scale)).over(heads.scores());
}

/// Sums over the keys of a row, or over the rows of a key.
template <class T>
void weigh(const sdk::Call& call, const char* function, const Heads& heads, std::uint32_t result, const T* weights, std::uint32_t others) {
  const sdk::Operand& y = call.outputs[result];
  if (y.count == 0) return;
  Launch launch(call, sources::attention, function, types<T>());
  launch.value(heads).value(y.count).value(y.shape[3]).out(call, result);
  launch.address(heads.scores() == 0 ? nullptr : weights).in(call, others).over(y.count);
}

template <class T>
void attention(const sdk::Call& call) {
  const Heads heads(call, 0);
  const auto* const scores = static_cast<const T*>(call.scratch);
  if (heads.rows() == 0) return;
  score<T>(call, heads, 0, nullptr, scores);
  const std::uint32_t width = lanes_for(heads.keys);
  Launch(call, sources::attention, "attention_probabilities", types<T>())
      .value(heads)
      .value(heads.rows())
      .value(width)
      .address(heads.scores() == 0 ? nullptr : scores)
      .out(call, 1)
      .over(heads.rows() * width);
  weigh<T>(call, "attention_rows", heads, 0, scores, 2);
}

template <class T>
void attention_grad(const sdk::Call& call) {
  const Heads heads(call, 1);
  sdk::ScratchArena arena(call.scratch);
  const T* const scores = arena.allocate<T>(heads.scores());
  const T* const slopes = arena.allocate<T>(heads.scores());
  if (heads.scores() > 0) {
    score<T>(call, heads, 1, call.inputs[6].data, scores);
    Launch launch(call, sources::attention, "attention_slopes", types<T>());
    launch.value(heads).value(heads.scores()).address(slopes).address(scores).in(call, 0).in(call, 5).in(call, 3);
    launch.value(static_cast<T>(call.attr<tenon_attributes_attention>().scale)).over(heads.scores());
  }
  weigh<T>(call, "attention_rows", heads, 0, slopes, 2);
  weigh<T>(call, "attention_keys", heads, 1, slopes, 1);
  weigh<T>(call, "attention_keys", heads, 2, scores, 0);
}

std::size_t scratch(const sdk::Call& call) {
  return static_cast<std::size_t>(Heads(call, 0).scores() * sdk::size_of(call.inputs[0].dtype));
}
std::size_t scratch_of_grad(const sdk::Call& call) {
  sdk::ScratchArena arena(nullptr);
  const auto bytes = static_cast<std::size_t>(Heads(call, 1).scores() * sdk::size_of(call.inputs[0].dtype));
  arena.allocate_bytes(bytes);
  arena.allocate_bytes(bytes);
  return arena.required_bytes();
}

}  // namespace
TENON_KERNEL_WITH(attention, (sdk::Traits{.scratch = scratch}), float, double)
TENON_KERNEL_WITH(attention_grad, (sdk::Traits{.scratch = scratch_of_grad}), float, double)
}  // namespace tenon::opencl
