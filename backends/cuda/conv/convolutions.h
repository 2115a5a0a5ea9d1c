// SPDX-License-Identifier: Apache-2.0
// convolutions.h - convolutions by cuDNN: engine selection, and the plans that a device caches.
//
// An engine is chosen when a backend plan is created, where the scratch memory of a call is computed: nothing is created while work is
// recorded. The same problem gets the same engine as long as the device is open.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <tenon/sdk/kernel.h>

#include "conv/conv_shape.h"
#include "device/options.h"
#include "libraries/operation_graph.h"
#include "libraries/plan_cache.h"

namespace tenon::cuda {

/// Everything that the choice of an engine depends on. Of addresses, only the alignment matters.
struct ConvProblem {
  ConvDirection direction = ConvDirection::forward;
  tenon_dtype dtype = TENON_DTYPE_NONE;
  std::uint32_t math = TENON_MATH_STRICT;
  bool deterministic = false;
  bool channels_last = false;  ///< of images and filters
  bool bias = false;           ///< added to the result by the engine if it can: ConvPlan::adds
  bool residual = false;
  std::uint32_t alignment_bytes = 16;  ///< of every operand
  std::size_t workspace_limit = 0;
  ConvShape shape;
  auto operator<=>(const ConvProblem&) const = default;
};
/// The channels of the image and the filters that cuDNN gets: those of the shape, or, for fewer than 8 of 16 bits with channels last, 8, of
/// which the last are zeros. Without that, cuDNN pads them itself, and in most of its engines more slowly.
///
/// Only without groups; if the results have a multiple of 8 channels too, because otherwise cuDNN pads these; and if the padded image is
/// within the workspace limit. Not for data gradients and not for tf32: asked about an H200, the heuristics of cuDNN 9.14 propose engines
/// that transpose the operands, with 8 or 4 channels as well.
std::int64_t padded_channels(const ConvProblem& problem);
/// "conv_input_grad of f32 x (...), ..., channels last".
std::string text_of(const ConvProblem& problem);

/// Tensor ids in operation graphs.
enum : std::int64_t { graph_x = 1, graph_w, graph_y, graph_bias, graph_residual };

/// The operation graph of a problem; with `adds`, it includes bias and residual.
///
/// Errors  UNSUPPORTED: cuDNN does not support such a graph.
OperationGraph graph_of(const Cudnn& functions, const GraphTarget& target, const ConvProblem& problem, bool adds);

/// Why a proposed engine is rejected; NULL: it is acceptable. Strict f32 is not rounded to narrower types, sums are not accumulated in
/// narrower types, and errors stay within what the conformance kit allows a convolution.
///
/// Notes    1 << CUDNN_NUMERICAL_NOTE_*, 1 << CUDNN_BEHAVIOR_NOTE_*.
const char* rejection_reason(const ConvProblem& problem, std::uint32_t numerical_notes, std::uint32_t behavior_notes);

/// The engine and plan that run a problem.
struct ConvPlan {
  bool adds = false;  ///< bias and residual are added by the engine
  Engine engine;
  std::optional<ExecutionPlan> plan;  ///< none: no engine is usable, convolve_naively runs the problem
  /// "plain engine 38 2=1", "adding engine 7": the text that the host caches between runs.
  std::string text() const { return (adds ? "adding " : "plain ") + engine.text(); }
};

/// At most `max_count` acceptable plans, best first, all from one query to cuDNN. Engines that add bias and residual are preferred to those
/// that need another pass over the result, and these to fallback engines. `rejections` receives the others.
std::vector<ConvPlan> acceptable_plans(const Cudnn& functions, const GraphTarget& target, const ConvProblem& problem, std::size_t max_count,
                                       Rejections& rejections);
/// The plan of the engine with this index, with cuDNN's own settings for the problem.
/// Errors  UNSUPPORTED, naming op, shape and engine.
ConvPlan named_plan(const Cudnn& functions, const GraphTarget& target, const ConvProblem& problem, std::int64_t index);
/// The plan that a ConvPlan::text() names; none if it is no longer available.
std::optional<ConvPlan> remembered_plan(const Cudnn& functions, const GraphTarget& target, const ConvProblem& problem,
                                        const std::string& text);

/// The key under which the host caches a choice: problem, selection method, device and library.
std::string cache_key(const ConvProblem& problem, bool measured, const std::string& device_name, int compute_capability,
                      std::size_t cudnn_version);

/// Addresses of the operands; NULL for absent ones.
struct ConvPointers {
  void* x = nullptr;
  void* w = nullptr;
  void* y = nullptr;
  const void* bias = nullptr;
  const void* residual = nullptr;
};

/// The engine choices of a device.
///
/// Threads  any
class ConvDevice {
 public:
  explicit ConvDevice(Device& device);

  /// The plan of a problem; the first call chooses it.
  /// Errors  UNSUPPORTED: the user named an engine that cannot run it.
  const ConvPlan& choose(const ConvProblem& problem);
  /// The cached plan; NULL if there is none.
  const ConvPlan* find(const ConvProblem& problem) const { return plans_.find(problem); }
  /// Enqueues the plan on the stream. `workspace` has plan.workspace_bytes() bytes, aligned to 256.
  void run(Stream& stream, const ConvPlan& plan, const ConvPointers& pointers, void* workspace);

 private:
  ConvPlan chosen(const ConvProblem& problem);
  ConvPlan fastest(const ConvProblem& problem, std::vector<ConvPlan> plans);

  Device& device_;
  const Cudnn& functions_;
  std::string name_;
  PlanCache<ConvProblem, ConvPlan> plans_;
  std::mutex running_;  ///< cuDNN does not document plans as thread-safe
};

/// The operands of a call by role, whichever is computed. `bias` belongs to the computed image; NULL: none.
struct ConvOperands {
  ConvDirection direction;
  const sdk::Operand *x, *w, *y, *bias;
};

/// Traits::scratch of convolution ops.
std::size_t convolution_scratch(const sdk::Call& call, const ConvOperands& operands);
std::size_t packed_filter_bytes(const sdk::Call& call, const ConvOperands& operands);
void pack_filter(const sdk::Call& call, const ConvOperands& operands, void* out_packed);
/// Traits::pack_form of filters: their layout, whatever the engine.
std::string filter_form(const sdk::Call& call, const ConvOperands& operands);
/// Runs the call, with its epilogue.
void convolve(const sdk::Call& call, const ConvOperands& operands);

}  // namespace tenon::cuda
