// SPDX-License-Identifier: Apache-2.0
// fused_attention.h - attention in 16 bits by the fused engines of cuDNN, which multiply on tensor cores.
//
// They take what most models ask for: no mask other than the causal one, rows of q, k and v that are multiples of 16 bytes, operands that
// are aligned to 16 bytes. Everything else is computed by the kernels in ops/attention.cu and attention_gradient.cu. An engine is chosen,
// and compiled by cuDNN, when a backend plan is created, where the scratch memory of a call is computed: nothing is created while work is
// recorded.
#pragma once

#include <mutex>
#include <optional>
#include <span>

#include <tenon/sdk/kernel.h>

#include "attention/attention_graph.h"
#include "device/device.h"
#include "libraries/plan_cache.h"

namespace tenon::cuda {

/// The engine and plan that run a problem.
struct AttentionPlan {
  Engine engine;
  std::optional<ExecutionPlan> plan;  ///< none: no engine is usable
};

/// The first plan that cuDNN proposes within the workspace limit; none if no engine is usable. `rejections` receives the others.
AttentionPlan attention_plan(const Cudnn& functions, const GraphTarget& target, const AttentionProblem& problem, Rejections& rejections);

/// The engine choices of a device.
///
/// Threads  any
class AttentionDevice {
 public:
  /// If `open` finds no cuDNN, no engine is usable, and the log says so.
  explicit AttentionDevice(Device& device, const Cudnn& (*open)(const sdk::Host&) = cudnn);

  /// The plan of a problem; the first call chooses it.
  const AttentionPlan& choose(const AttentionProblem& problem);
  /// The cached plan; NULL if there is none.
  const AttentionPlan* find(const AttentionProblem& problem) const { return plans_.find(problem); }
  /// Whether the engines set the sums of dq to 0 before they add to them.
  bool clears_sums() const { return functions_ != nullptr && functions_->cudnnGetVersion() >= 90600; }
  /// Enqueues a usable plan on the stream. `workspace` has plan.workspace_bytes() bytes, aligned to 256.
  void run(Stream& stream, const AttentionPlan& plan, std::span<const GraphPointer> pointers, void* workspace);

 private:
  AttentionPlan chosen(const AttentionProblem& problem);

  Device& device_;
  const Cudnn* functions_ = nullptr;  ///< NULL: cuDNN is missing
  PlanCache<AttentionProblem, AttentionPlan> plans_;
  std::mutex running_;  ///< cuDNN does not document plans as thread-safe
};

/// The strides of heads (B, H, S, D) whose rows are contiguous; none if no engine takes them: one is not a positive multiple of 16 bytes.
std::optional<HeadStrides> fused_strides(const sdk::Operand& x);
/// The scratch memory that an engine needs for a call of Attention or AttentionGrad; 0 if no engine runs it.
std::size_t fused_attention_scratch(const sdk::Call& call, bool gradient);
/// Enqueues the call on the engine that fused_attention_scratch chose. False: no engine runs it, and nothing was enqueued.
bool run_fused_attention(const sdk::Call& call, bool gradient);

}  // namespace tenon::cuda
