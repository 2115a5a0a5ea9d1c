// SPDX-License-Identifier: Apache-2.0
// attention_graph.h - attention and its gradient as operation graphs that cuDNN's fused engines recognise.
//
// Source  NVIDIA: cuDNN Developer Guide, "Fused Attention fprop" and "Fused Attention bprop": which operations in which order.
#pragma once

#include <compare>
#include <cstdint>

#include <tenon/sdk/kernel.h>

#include "libraries/operation_graph.h"

namespace tenon::cuda {

/// The elements from one index of the first dimensions of (B, H, S, D) to the next; 0, 0, 0: dense.
struct HeadStrides {
  std::int64_t batch = 0, head = 0, row = 0;
  auto operator<=>(const HeadStrides&) const = default;
};

/// Everything that the choice of an engine depends on: q (B, H, S, D), k (B, G, L, D), v (B, G, L, E), y and dy (B, H, S, E). Results are
/// dense, or with `merged_heads` those with four dimensions are (B, S, H, E).
struct AttentionProblem {
  tenon_dtype dtype = TENON_DTYPE_NONE;  ///< f16 or bf16
  bool gradient = false;
  bool causal = false;
  bool log_sum = false;        ///< it is a result too; not for gradients, which read it
  bool deterministic = false;  ///< of gradients: dq is not summed by atomic operations
  std::int64_t batch = 0, heads = 0, groups = 0, queries = 0, keys = 0, size = 0, result = 0;
  HeadStrides q_strides{}, k_strides{}, v_strides{};
  HeadStrides dy_strides{}, y_strides{};  ///< operands of a gradient
  bool merged_heads = false;
  std::size_t workspace_limit = 0;
  auto operator<=>(const AttentionProblem&) const = default;

  std::int64_t rows() const { return batch * heads * queries; }
};
/// "attention_grad of bf16 q (2,16,4096,128), k (2,16,4096,128), v (2,16,4096,128), causal".
std::string text_of(const AttentionProblem& problem);

/// Tensor ids of the graphs. `row_dots` (B, H, S) and `dq_sums` (B, H, S, D), both f32, are scratch memory of a gradient, the latter if it
/// is not deterministic. `scale`, `minus_infinity` and `one` are f32 by value.
enum : std::int64_t {
  attention_q = 1,
  attention_k,
  attention_v,
  attention_y,
  attention_log_sum,
  attention_scale,
  attention_minus_infinity,
  attention_one,
  attention_dy,
  attention_dq,
  attention_dk,
  attention_dv,
  attention_row_dots,
  attention_dq_sums
};

/// The operation graph of a problem, not finalised. The weights are rounded to the dtype before they multiply v, as those of the gradient
/// before they multiply q, k and dy; everything else is f32.
OperationGraph attention_graph(const Cudnn& functions, const AttentionProblem& problem);

}  // namespace tenon::cuda
