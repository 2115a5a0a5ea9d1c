// SPDX-License-Identifier: Apache-2.0
// conv_engines.h - the engines of cuDNN that may run a convolution, and their plans.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "conv/conv_problem.h"
#include "libraries/operation_graph.h"

namespace tenon::cuda {

/// "5 MiB", rounded up: for messages.
std::string mebibytes(std::size_t bytes);

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

}  // namespace tenon::cuda
