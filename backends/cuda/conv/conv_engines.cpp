// SPDX-License-Identifier: Apache-2.0
#include "conv/conv_engines.h"

#include <utility>

#include "conv/conv_graph.h"

namespace tenon::cuda {
namespace {

bool has_note(std::uint32_t notes, int note) {
  return (notes >> note & 1) != 0;
}

/// Engines whose gradients of filters are wrong for padding that differs between the sides, although they accept it: found with cuDNN 9.14
/// by the test "gpu: every engine of cuDNN ...", which tries all of them.
bool ignores_padding_after(const Engine& engine) {
  return engine.index == 1 || engine.index == 20;
}

/// The plan of a candidate; none if it is rejected.
std::optional<ConvPlan> plan_of(const GraphTarget& target, const ConvProblem& problem, Candidate candidate, bool adds,
                                Rejections& rejections) {
  const Engine engine = candidate.engine;
  if (const char* const why = rejection_reason(problem, candidate.numerical_notes, candidate.behavior_notes); why != nullptr) {
    rejections.add(engine, why);
    return std::nullopt;
  }
  if (problem.direction == ConvDirection::filter_gradient && problem.shape.has_uneven_padding() && ignores_padding_after(engine)) {
    rejections.add(engine, "it computes wrong gradients of filters for padding that differs between the sides");
    return std::nullopt;
  }
  try {
    ConvPlan made{.adds = adds, .engine = engine, .plan = std::nullopt};
    made.plan.emplace(target, std::move(candidate));
    if (made.plan->workspace_bytes() <= problem.workspace_limit) return made;
    rejections.add(engine, "it needs a workspace of " + mebibytes(made.plan->workspace_bytes()));
  } catch (const sdk::Error& error) {  // code generation of a proposed engine can fail
    if (error.status() == TENON_OUT_OF_MEMORY || error.status() == TENON_DEVICE_LOST) throw;  // these do not depend on the engine
    rejections.add(engine, error.what());
  }
  return std::nullopt;
}

/// A graph and the engines that cuDNN proposes for it.
struct Proposal {
  OperationGraph graph;
  std::vector<Candidate> candidates;
};
/// None if cuDNN does not support the graph; the reason goes to `rejections` and the caller tries the next variant.
std::optional<Proposal> propose(const Cudnn& functions, const GraphTarget& target, const ConvProblem& problem, bool adds,
                                cudnnBackendHeurMode_t mode, Rejections& rejections) {
  try {
    OperationGraph graph = graph_of(functions, target, problem, adds);
    std::vector<Candidate> found = candidates(graph, target, mode);
    return Proposal{std::move(graph), std::move(found)};
  } catch (const sdk::Error& error) {
    if (error.status() != TENON_UNSUPPORTED && error.status() != TENON_VENDOR_ERROR) throw;
    rejections.add(error.what());
    return std::nullopt;
  }
}

/// The values of `adds` to try for a problem. The variant that needs no extra pass over the result comes first. Engines that add are
/// compiled by cuDNN at run time; measured with cuDNN 9.14, some accept operands that are not aligned to 16 bytes and then fault or fail.
std::vector<bool> variants(const ConvProblem& problem) {
  if ((problem.bias || problem.residual) && problem.alignment_bytes >= 16) return {true, false};
  return {false};
}

}  // namespace

std::string mebibytes(std::size_t bytes) {
  return std::to_string((bytes + (std::size_t{1} << 20) - 1) >> 20) + " MiB";
}

const char* rejection_reason(const ConvProblem& problem, std::uint32_t notes, std::uint32_t behavior_notes) {
  if (has_note(notes, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS)) return "it rounds its operands to a narrower type";
  if (has_note(notes, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION)) return "it accumulates in a narrower type";
  if (has_note(notes, CUDNN_NUMERICAL_NOTE_FFT))
    return "its errors grow with the largest element of an image, because it uses a Fourier transform";
  if (problem.deterministic && has_note(notes, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)) return "its order of summation is not deterministic";
  if (problem.dtype == TENON_DTYPE_F32 && problem.math == TENON_MATH_STRICT && has_note(notes, CUDNN_NUMERICAL_NOTE_TENSOR_CORE)) {
    return "its tensor cores round f32 to tf32, and math is strict";
  }
  if (has_note(notes, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13)) return "its errors are those of a Winograd transform with tiles of 13";
  if (has_note(notes, CUDNN_NUMERICAL_NOTE_WINOGRAD) || has_note(notes, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4) ||
      has_note(notes, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6)) {
    const ConvShape& s = problem.shape;
    for (int d = 0; d < 2; ++d) {
      if (s.kernel[d] != 3 || s.strides[d] != 1 || s.dilations[d] != 1 || s.groups != 1 || problem.dtype == TENON_DTYPE_F64) {
        return "its errors are those of a Winograd transform, which are allowed only for 3x3 filters of stride 1";
      }
    }
  }
  if (has_note(behavior_notes, CUDNN_BEHAVIOR_NOTE_REQUIRES_FILTER_INT8x32_REORDER) ||
      has_note(behavior_notes, CUDNN_BEHAVIOR_NOTE_REQUIRES_BIAS_INT8x32_REORDER)) {
    return "it expects reordered operands";
  }
  return nullptr;
}

std::vector<ConvPlan> acceptable_plans(const Cudnn& functions, const GraphTarget& target, const ConvProblem& problem, std::size_t max_count,
                                       Rejections& rejections) {
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (const bool adds : variants(problem)) {
      std::optional<Proposal> proposal = propose(functions, target, problem, adds, mode, rejections);
      if (!proposal) continue;
      std::vector<ConvPlan> plans;
      for (Candidate& proposed : proposal->candidates) {
        if (std::optional<ConvPlan> plan = plan_of(target, problem, std::move(proposed), adds, rejections))
          plans.push_back(std::move(*plan));
        if (plans.size() == max_count) break;
      }
      if (!plans.empty()) return plans;
    }
  }
  return {};
}

ConvPlan named_plan(const Cudnn& functions, const GraphTarget& target, const ConvProblem& problem, std::int64_t index) {
  Rejections rejections;
  for (const bool adds : variants(problem)) {
    std::optional<Proposal> proposal = propose(functions, target, problem, adds, CUDNN_HEUR_MODE_A, rejections);
    if (!proposal) continue;
    for (Candidate& proposed : proposal->candidates) {
      if (proposed.engine.index != index) continue;
      if (std::optional<ConvPlan> plan = plan_of(target, problem, std::move(proposed), adds, rejections)) return std::move(*plan);
    }
    try {
      Candidate bare = candidate(proposal->graph, target, {index, {}});
      if (std::optional<ConvPlan> plan = plan_of(target, problem, std::move(bare), adds, rejections)) return std::move(*plan);
    } catch (const sdk::Error& error) {
      rejections.add({index, {}}, error.what());
    }
  }
  throw sdk::Error(TENON_UNSUPPORTED, text_of(problem) + ": backends.options.cuda.algorithm names engine " + std::to_string(index) +
                                          ", which cannot run it; heuristic and measure choose one that can; " + rejections.text());
}

std::optional<ConvPlan> remembered_plan(const Cudnn& functions, const GraphTarget& target, const ConvProblem& problem,
                                        const std::string& text) {
  try {
    const bool adds = text.starts_with("adding ");
    if (adds ? !problem.bias && !problem.residual : !text.starts_with("plain ")) return std::nullopt;
    const Engine engine = Engine::of(text.substr(text.find(' ') + 1));
    const OperationGraph graph = graph_of(functions, target, problem, adds);
    Rejections rejections;
    return plan_of(target, problem, candidate(graph, target, engine), adds, rejections);
  } catch (const sdk::Error&) {  // written by another version, or by hand
    return std::nullopt;
  }
}

}  // namespace tenon::cuda
