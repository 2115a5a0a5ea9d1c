// convolutions.h - convolutions by cuDNN: which engine runs a problem, and the plans that a device keeps.
//
// The choice is made when a plan of the backend is made, where a call's scratch memory is asked for: while work is recorded nothing is
// created. The same problem gets the same engine as long as the device is open.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <tenon/sdk/kernel.h>

#include "conv_shape.h"
#include "knobs.h"
#include "operation_graph.h"

namespace tenon::cuda {

/// All that decides a choice. Addresses count by their alignment alone.
struct ConvProblem {
  ConvDirection direction = ConvDirection::forward;
  tenon_dtype dtype = TENON_DTYPE_NONE;
  std::uint32_t math = TENON_MATH_STRICT;
  bool deterministic = false;
  bool channels_last = false;  ///< of images and filters
  bool bias = false;           ///< added to the result, if the engine can: ConvPlan::adds
  bool residual = false;
  std::uint32_t alignment_bytes = 16;  ///< of every operand
  std::size_t workspace_limit = 0;
  ConvShape shape;
  auto operator<=>(const ConvProblem&) const = default;
};
/// "conv_input_grad of f32 x (...), ..., channels last".
std::string text_of(const ConvProblem& problem);

/// Numbers of tensors in operation graphs.
enum : std::int64_t { graph_x = 1, graph_w, graph_y, graph_bias, graph_residual };

/// The problem as cuDNN is asked; with `adds`, bias and residual are part of it.
///
/// Errors  UNSUPPORTED: cuDNN has nothing for such a graph.
OperationGraph graph_of(const Cudnn& functions, const GraphTarget& target, const ConvProblem& problem, bool adds);

/// Why an engine that cuDNN proposes is not taken; NULL: it may be. strict f32 is not rounded to narrower types, sums are not carried in
/// narrower types, and the errors are those that the conformance kit grants a convolution.
///
/// Notes    1 << CUDNN_NUMERICAL_NOTE_*, 1 << CUDNN_BEHAVIOR_NOTE_*.
const char* refusal(const ConvProblem& problem, std::uint32_t numerical_notes, std::uint32_t behavior_notes);

/// Why engines were not taken: in one line, an engine's settings left out.
class Refusals {
 public:
  void add(const Engine& engine, const std::string& why);
  /// Of a whole question to cuDNN.
  void add(const std::string& why) { reasons_.try_emplace(why); }
  /// "engines 38, 67: its tensor cores ...; engine 1: ..."; "none" if there were none.
  std::string text() const;

 private:
  std::map<std::string, std::set<std::int64_t>> reasons_;
};

/// What runs a problem.
struct ConvPlan {
  bool adds = false;  ///< bias and residual are added by the engine
  Engine engine;
  std::optional<ExecutionPlan> plan;  ///< none: no engine serves, convolve_naively does
  /// "plain engine 38 2=1", "adding engine 7": what is kept between runs.
  std::string text() const { return (adds ? "adding " : "plain ") + engine.text(); }
};

/// Plans that may be taken, at most `most`, best first, all from one question to cuDNN. An engine that adds is preferred to one after which
/// the result is passed over again, and that to an engine of last resort. `refusals`: those that are not taken.
std::vector<ConvPlan> acceptable_plans(const Cudnn& functions, const GraphTarget& target, const ConvProblem& problem, std::size_t most,
                                       Refusals& refusals);
/// The plan of an engine that is named, by number alone: with cuDNN's own settings for this problem.
/// Errors  UNSUPPORTED, naming op, shape and engine.
ConvPlan named_plan(const Cudnn& functions, const GraphTarget& target, const ConvProblem& problem, std::int64_t number);
/// The plan that a ConvPlan::text() names; none if it cannot be had any more.
std::optional<ConvPlan> remembered_plan(const Cudnn& functions, const GraphTarget& target, const ConvProblem& problem,
                                        const std::string& text);

/// Under which the host keeps a choice: problem, how it was chosen, device and library.
std::string cache_key(const ConvProblem& problem, bool measured, const std::string& device_name, int compute_capability,
                      std::size_t cudnn_version);

/// Addresses of a convolution; what it is not made of is NULL.
struct ConvPointers {
  void* x = nullptr;
  void* w = nullptr;
  void* y = nullptr;
  const void* bias = nullptr;
  const void* residual = nullptr;
};

/// A device's choices.
///
/// Threads  any
class ConvDevice {
 public:
  explicit ConvDevice(Device& device);

  /// The plan of a problem, chosen at its first call.
  /// Errors  UNSUPPORTED: an engine was named that cannot run it.
  const ConvPlan& choose(const ConvProblem& problem);
  /// The plan if there is one.
  const ConvPlan* find(const ConvProblem& problem) const;
  /// In the order of the stream. `workspace`: as many bytes as the plan says, aligned to 256.
  void run(Stream& stream, const ConvPlan& plan, const ConvPointers& pointers, void* workspace);

 private:
  ConvPlan chosen(const ConvProblem& problem);
  ConvPlan fastest(const ConvProblem& problem, std::vector<ConvPlan> plans);

  Device& device_;
  const Cudnn& functions_;
  std::string name_;
  mutable std::mutex mutex_;
  std::map<ConvProblem, std::unique_ptr<const ConvPlan>> plans_;
  std::mutex running_;  ///< plans of cuDNN are not said to be safe from several threads
};

/// The operands of a convolution's call by what they are, whichever is made. `bias`: of the image that is made; NULL: none.
struct ConvOperands {
  ConvDirection direction;
  const sdk::Operand *x, *w, *y, *bias;
};

/// For Traits of ops that are convolutions.
std::size_t convolution_scratch(const sdk::Call& call, const ConvOperands& operands);
std::size_t packed_filter_bytes(const sdk::Call& call, const ConvOperands& operands);
void pack_filter(const sdk::Call& call, const ConvOperands& operands, void* out_packed);
/// The call, with its epilogue.
void convolve(const sdk::Call& call, const ConvOperands& operands);

}  // namespace tenon::cuda
