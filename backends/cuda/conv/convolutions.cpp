// SPDX-License-Identifier: Apache-2.0
#include "conv/convolutions.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "conv/channel_padding.h"
#include "conv/conv_graph.h"
#include "conv/conv_naive.h"
#include "conv/image_epilogue.h"
#include "gemm/products.h"
#include "gemm/scratch_arena.h"
#include "kernel/launch.h"
#include "libraries/cublas.h"
#include "movement/strided_copy.h"

namespace tenon::cuda {
namespace {

constexpr std::size_t max_measured = 8;

const char* name_of(ConvDirection direction) {
  switch (direction) {
    case ConvDirection::forward:
      return "conv";
    case ConvDirection::data_gradient:
      return "conv_input_grad";
    default:
      return "conv_weight_grad";
  }
}

GraphTensor tensor_of(const ConvProblem& problem, std::int64_t id, std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) {
  GraphTensor tensor{id, cudnn_type(problem.dtype), {n, c, h, w}, {c * h * w, h * w, w, 1}, problem.alignment_bytes};
  if (problem.channels_last) {
    const std::int64_t last[4] = {c * h * w, 1, w * c, c};
    std::copy(last, last + 4, tensor.strides);
  }
  return tensor;
}

bool has_note(std::uint32_t notes, int note) {
  return (notes >> note & 1) != 0;
}

std::string mebibytes(std::size_t bytes) {
  return std::to_string((bytes + (std::size_t{1} << 20) - 1) >> 20) + " MiB";
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

bool is_tuned(const sdk::Call& call) {
  return !options_of(static_cast<Device&>(*call.device)).naive;
}

ConvShape shape_of(const sdk::Call& call, const ConvOperands& o) {
  return conv_shape(*o.x, *o.w, *o.y, call.attr<tenon_attributes_conv>(), call.channels_last);
}
/// Whether cuDNN may be asked. Without elements there is nothing to compute; cuDNN 9.14 divides by zero for sizes of 2^31 and more.
bool is_for_cudnn(const ConvShape& shape) {
  return shape.image_count() > 0 && shape.filter_count() > 0 && shape.result_count() > 0 && shape.is_consistent();
}

/// The problem for operands with the alignment of device memory, with the channels that cuDNN gets.
ConvProblem problem_of(const sdk::Call& call, const ConvOperands& o) {
  ConvProblem problem;
  problem.direction = o.direction;
  problem.dtype = o.x->dtype;
  problem.math = call.math;
  problem.deterministic = call.deterministic;
  problem.channels_last = call.channels_last;
  // An activation needs a pass over the result anyway, because relu must propagate NaN, which cuDNN does not guarantee. That pass then adds
  // bias and residual too, and engines that cuDNN compiles at run time are not needed.
  if (call.epilogue.activation == sdk::Activation::none) {
    problem.bias = o.bias != nullptr || call.epilogue.bias != nullptr;
    problem.residual = call.epilogue.residual != nullptr;
  }
  problem.workspace_limit = options_of(static_cast<Device&>(*call.device)).workspace_limit;
  problem.shape = shape_of(call, o);
  problem.shape.channels = padded_channels(problem);
  return problem;
}

std::size_t image_bytes(const ConvProblem& problem) {
  return static_cast<std::size_t>(problem.shape.image_count() * sdk::size_of(problem.dtype));
}
std::size_t filter_bytes(const ConvProblem& problem) {
  return static_cast<std::size_t>(problem.shape.filter_count() * sdk::size_of(problem.dtype));
}
/// True if cuDNN gets a copy of filters (K, C / groups, R, S): with channels last, in another order or padded.
bool copies_filter(const ConvShape& shape, const ConvProblem& problem) {
  return problem.shape.channels != shape.channels ||
         (problem.channels_last && shape.kernel[0] * shape.kernel[1] > 1 && shape.channels / shape.groups > 1);
}
/// (K, C / groups, R, S) to (K, R, S, the channels of the problem), or back.
void copy_filter(Stream& stream, const ConvShape& shape, const ConvProblem& problem, const void* from, void* to, bool back) {
  const std::int64_t depth = shape.channels / shape.groups, area = shape.kernel[0] * shape.kernel[1];
  if (problem.shape.channels != shape.channels) {
    return (back ? unpad_channels : pad_channels)(stream, {shape.filters, depth, area}, from, to);
  }
  const std::int64_t sizes[3] = {shape.filters, depth, area};
  const sdk::Strides first{depth * area, area, 1}, last{depth * area, 1, depth};
  copy_strided(
      stream, static_cast<std::size_t>(sdk::size_of(problem.dtype)),
      StridedCopy{
          .shape = sizes, .rank = 3, .from = from, .from_strides = back ? last : first, .to = to, .to_strides = back ? first : last});
}
const void* packed_filter(const sdk::Call& call, const ConvOperands& o) {
  const auto input = static_cast<std::size_t>(o.w - call.inputs);
  return o.direction == ConvDirection::filter_gradient || call.packed == nullptr ? nullptr : call.packed[input];
}

/// The smallest alignment of the operands.
std::uint32_t alignment_of(const ConvPointers& p) {
  std::uint32_t alignment = 16;
  for (const void* address :
       {static_cast<const void*>(p.x), static_cast<const void*>(p.w), static_cast<const void*>(p.y), p.bias, p.residual}) {
    alignment = std::min(alignment, cuda::alignment_of(reinterpret_cast<std::uintptr_t>(address)));
  }
  return alignment;
}

}  // namespace

std::int64_t padded_channels(const ConvProblem& p) {
  constexpr std::int64_t full = padded_pixel_channels;
  const ConvShape& s = p.shape;
  const bool is_narrow = p.dtype == TENON_DTYPE_F16 || p.dtype == TENON_DTYPE_BF16;
  if (!p.channels_last || !is_narrow || p.direction == ConvDirection::data_gradient) return s.channels;
  if (s.groups != 1 || s.channels < 1 || s.channels >= full || s.filters % full != 0) return s.channels;
  ConvProblem padded = p;
  padded.shape.channels = full;
  return image_bytes(padded) <= p.workspace_limit ? full : s.channels;
}

std::string text_of(const ConvProblem& p) {
  return std::string(name_of(p.direction)) + " of " + sdk::name_of(p.dtype) + " " + text_of(p.shape) +
         (p.channels_last ? ", channels last" : "") + (p.bias ? ", bias" : "") + (p.residual ? ", residual" : "") +
         (p.math == TENON_MATH_STRICT ? ""
          : p.math == TENON_MATH_TF32 ? ", tf32"
                                      : ", math bf16") +
         (p.deterministic ? ", deterministic" : "") +
         (p.alignment_bytes < 16 ? ", operands aligned to " + std::to_string(p.alignment_bytes) : "");
}

OperationGraph graph_of(const Cudnn& functions, const GraphTarget& target, const ConvProblem& p, bool adds) {
  const ConvShape& s = p.shape;
  const cudnnDataType_t compute = p.dtype == TENON_DTYPE_F64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  OperationGraph graph(functions);
  const GraphTensor x = tensor_of(p, graph_x, s.batch, s.channels, s.image[0], s.image[1]);
  const GraphTensor w = tensor_of(p, graph_w, s.filters, s.channels / s.groups, s.kernel[0], s.kernel[1]);
  const GraphTensor y = tensor_of(p, graph_y, s.batch, s.filters, s.result[0], s.result[1]);
  const GraphTensor& made = p.direction == ConvDirection::forward ? y : x;
  const bool has_bias = adds && p.bias, has_residual = adds && p.residual;
  GraphTensor between = made;  // virtual: never stored, so never rounded
  between.id = 0;
  between.type = compute;
  between.alignment_bytes = 16;
  const bool ends = !has_bias && !has_residual;
  const Descriptor& at_x = graph.tensor(p.direction == ConvDirection::data_gradient && !ends ? between : x);
  const Descriptor& at_w = graph.tensor(w);
  const Descriptor& at_y = graph.tensor(p.direction == ConvDirection::forward && !ends ? between : y);
  add_convolution(graph, p.direction, s, compute, at_x, at_w, at_y);
  const Descriptor* last = p.direction == ConvDirection::forward ? &at_y : &at_x;
  const auto then_add = [&](const GraphTensor& addend, bool is_last) {
    const Descriptor& b = graph.tensor(addend);
    const Descriptor& sum = graph.tensor(is_last ? made : between);
    graph.pointwise(CUDNN_POINTWISE_ADD, compute, *last, &b, sum);
    last = &sum;
  };
  if (has_bias) then_add(tensor_of(p, graph_bias, 1, made.dimensions[1], 1, 1), !has_residual);
  if (has_residual) {
    GraphTensor residual = made;
    residual.id = graph_residual;
    then_add(residual, true);
  }
  graph.finalize(target);
  return graph;
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

std::string cache_key(const ConvProblem& problem, bool measured, const std::string& device_name, int compute_capability,
                      std::size_t cudnn_version) {
  return text_of(problem) + "; workspace " + std::to_string(problem.workspace_limit) + (measured ? "; measured" : "; heuristic") + " on " +
         device_name + " " + std::to_string(compute_capability / 10) + "." + std::to_string(compute_capability % 10) + " by cuDNN " +
         std::to_string(cudnn_version);
}

ConvDevice::ConvDevice(Device& device) : device_(device), functions_(cudnn(device.host)) {
  cudaDeviceProp properties{};
  device_.check(cudaGetDeviceProperties(&properties, device_.index()), "cudaGetDeviceProperties");
  name_ = properties.name;
}

const ConvPlan& ConvDevice::choose(const ConvProblem& problem) {
  return plans_.get(problem, [this](const ConvProblem& unknown) { return chosen(unknown); });
}

ConvPlan ConvDevice::chosen(const ConvProblem& problem) {
  device_.enter();
  const OutsideOfRecordings outside;
  const Options& options = options_of(device_);
  const BorrowedHandle handle(device_);
  const GraphTarget target{handle.get(), nullptr};
  const auto log = [&](const ConvPlan& plan, const char* how) {
    const std::string line =
        "cuda: " + text_of(problem) + ": " + plan.text() + ", workspace " + mebibytes(plan.plan->workspace_bytes()) + how;
    device_.host.log(TENON_LOG_DEBUG, line.c_str());
  };
  if (options.engine) {
    ConvPlan plan = named_plan(functions_, target, problem, *options.engine);
    log(plan, ", as named");
    return plan;
  }
  const std::string key = cache_key(problem, options.measures, name_, device_.compute_capability(), functions_.cudnnGetVersion());
  if (const std::string kept = device_.host.autotune_get(key.c_str()); !kept.empty()) {
    if (std::optional<ConvPlan> plan = remembered_plan(functions_, target, problem, kept)) {
      log(*plan, ", as chosen before");
      return std::move(*plan);
    }
  }
  Rejections rejections;
  std::vector<ConvPlan> plans = acceptable_plans(functions_, target, problem, options.measures ? max_measured : 1, rejections);
  if (plans.empty()) {
    device_.check_context("cuDNN");  // a lost device reports no engines
    const std::string line =
        "cuda: " + text_of(problem) + ": no cuDNN engine runs it within a workspace of " + mebibytes(problem.workspace_limit) +
        " (backends.options.cuda.workspace_limit_mib), so a slow plain kernel runs it; rejected engines: " + rejections.text();
    device_.host.log(TENON_LOG_WARNING, line.c_str());
    return {};
  }
  ConvPlan best = options.measures ? fastest(problem, std::move(plans)) : std::move(plans[0]);
  log(best, options.measures ? ", the fastest" : "");
  device_.host.autotune_put(key.c_str(), best.text());
  return best;
}

ConvPlan ConvDevice::fastest(const ConvProblem& problem, std::vector<ConvPlan> plans) {
  /// Memory and a stream for the measurement.
  struct Bench {
    explicit Bench(Device& d) : device(d), stream(d) {}
    ~Bench() {
      cudaStreamSynchronize(stream.handle());
      for (const auto& [address, bytes] : blocks) device.deallocate(TENON_MEMORY_DEVICE, address, bytes);
      for (cudaEvent_t event : events) cudaEventDestroy(event);
    }
    void* allocate(std::size_t bytes) {
      if (bytes == 0) return nullptr;
      blocks.emplace_back(device.allocate(TENON_MEMORY_DEVICE, bytes), bytes);
      void* const memory = reinterpret_cast<void*>(static_cast<std::uintptr_t>(blocks.back().first));
      device.check(cudaMemsetAsync(memory, 0, bytes, stream.handle()), "cudaMemsetAsync");
      return memory;
    }
    Device& device;
    Stream stream;
    std::vector<std::pair<std::uint64_t, std::size_t>> blocks;
    cudaEvent_t events[2] = {};
  };
  const auto bytes = [&](std::int64_t count) { return static_cast<std::size_t>(count * sdk::size_of(problem.dtype)); };
  const ConvShape& s = problem.shape;
  const std::size_t of_made = bytes(problem.direction == ConvDirection::forward ? s.result_count() : s.image_count());
  std::size_t workspace_bytes = 0, best = 0;
  for (const ConvPlan& plan : plans) workspace_bytes = std::max(workspace_bytes, plan.plan->workspace_bytes());
  try {
    Bench bench(device_);
    const ConvPointers pointers{bench.allocate(bytes(s.image_count())), bench.allocate(bytes(s.filter_count())),
                                bench.allocate(bytes(s.result_count())),
                                problem.bias ? bench.allocate(bytes(std::max(s.channels, s.filters))) : nullptr,
                                problem.residual ? bench.allocate(of_made) : nullptr};
    void* const workspace = bench.allocate(workspace_bytes);
    for (cudaEvent_t& event : bench.events) device_.check(cudaEventCreate(&event), "cudaEventCreate");
    const auto time = [&](const ConvPlan& plan) {
      constexpr int repeats = 5;
      device_.check(cudaEventRecord(bench.events[0], bench.stream.handle()), "cudaEventRecord");
      for (int repeat = 0; repeat < repeats; ++repeat) run(bench.stream, plan, pointers, workspace);
      device_.check(cudaEventRecord(bench.events[1], bench.stream.handle()), "cudaEventRecord");
      bench.stream.synchronize();
      float milliseconds = 0;
      device_.check(cudaEventElapsedTime(&milliseconds, bench.events[0], bench.events[1]), "cudaEventElapsedTime");
      return milliseconds;
    };
    float best_time = std::numeric_limits<float>::infinity();
    for (std::size_t i = 0; i < plans.size(); ++i) {
      try {
        run(bench.stream, plans[i], pointers, workspace);  // warm-up: the first run loads code
        const float fastest_of_three = std::min({time(plans[i]), time(plans[i]), time(plans[i])});
        if (fastest_of_three >= best_time) continue;
        best_time = fastest_of_three;
        best = i;
      } catch (const sdk::Error& error) {  // an engine with a plan can still fail at execution
        if (device_.is_lost()) throw;
        const std::string line = "cuda: " + text_of(problem) + ": " + plans[i].engine.name() + " is rejected, " + error.what();
        device_.host.log(TENON_LOG_WARNING, line.c_str());
      }
    }
    if (best_time == std::numeric_limits<float>::infinity()) {
      throw sdk::Error(TENON_VENDOR_ERROR, text_of(problem) + ": none of the " + std::to_string(plans.size()) +
                                               " measured engines runs (the log says why); backends.options.cuda.kernels: naive "
                                               "works without cuDNN");
    }
  } catch (const sdk::Error& error) {
    if (error.status() != TENON_OUT_OF_MEMORY) throw;
    const std::string line = "cuda: " + text_of(problem) + ": not measured, " + error.what() + "; " + plans[0].engine.name() + " is used";
    device_.host.log(TENON_LOG_WARNING, line.c_str());
    best = 0;
  }
  return std::move(plans[best]);
}

void ConvDevice::run(Stream& stream, const ConvPlan& plan, const ConvPointers& p, void* workspace) {
  device_.enter();
  std::vector<GraphPointer> pointers{{graph_x, p.x}, {graph_w, p.w}, {graph_y, p.y}};
  if (plan.adds && p.bias != nullptr) pointers.push_back({graph_bias, const_cast<void*>(p.bias)});
  if (plan.adds && p.residual != nullptr) pointers.push_back({graph_residual, const_cast<void*>(p.residual)});
  const CudnnStream& cudnn_stream = stream.attached.get<CudnnStream>(stream);
  const std::lock_guard lock(running_);
  check(device_, functions_, plan.plan->execute(cudnn_stream.handle, pointers, workspace), "BackendExecute");
}

std::size_t convolution_scratch(const sdk::Call& call, const ConvOperands& o) {
  const ConvShape shape = shape_of(call, o);
  if (!is_tuned(call) || !is_for_cudnn(shape)) return 0;
  auto& device = static_cast<Device&>(*call.device);
  const ConvProblem problem = problem_of(call, o);
  const ConvPlan& plan = device.attached.get<ConvDevice>(device).choose(problem);
  if (!plan.plan) return 0;
  ScratchArena arena(nullptr);
  arena.allocate_bytes(plan.plan->workspace_bytes());
  if (copies_filter(shape, problem) && packed_filter(call, o) == nullptr) arena.allocate_bytes(filter_bytes(problem));
  if (problem.shape.channels != shape.channels) arena.allocate_bytes(image_bytes(problem));
  return arena.required_bytes();
}

std::size_t packed_filter_bytes(const sdk::Call& call, const ConvOperands& o) {
  const ConvShape shape = shape_of(call, o);
  if (!is_tuned(call) || !is_for_cudnn(shape)) return 0;
  const ConvProblem problem = problem_of(call, o);
  return copies_filter(shape, problem) ? filter_bytes(problem) : 0;
}

void pack_filter(const sdk::Call& call, const ConvOperands& o, void* out_packed) {
  copy_filter(stream_of(call), shape_of(call, o), problem_of(call, o), o.w->data, out_packed, false);
}

std::string filter_form(const sdk::Call& call, const ConvOperands& o) {
  return "channels last, " + std::to_string(problem_of(call, o).shape.channels / shape_of(call, o).groups);
}

void convolve(const sdk::Call& call, const ConvOperands& o) {
  const bool makes_filter = o.direction == ConvDirection::filter_gradient;
  const sdk::Operand& made = makes_filter ? *o.w : o.direction == ConvDirection::forward ? *o.y : *o.x;
  if (made.count == 0) return;
  Stream& stream = stream_of(call);
  Device& device = stream.device();
  const sdk::Operand* const residual = call.epilogue.residual;
  NaiveConv plain{
      .direction = o.direction,
      .dtype = made.dtype,
      .shape = shape_of(call, o),
      .channels_last = call.channels_last,
      .x = o.x->data,
      .w = o.w->data,
      .y = o.y->data,
      .biases = {o.bias == nullptr ? nullptr : o.bias->data, call.epilogue.bias == nullptr ? nullptr : call.epilogue.bias->data},
      .residual = residual == nullptr ? nullptr : residual->data,
      .activation = call.epilogue.activation};
  if (plain.biases[0] == nullptr) std::swap(plain.biases[0], plain.biases[1]);
  if (options_of(device).naive || !is_for_cudnn(plain.shape)) return convolve_naively(stream, plain);

  ConvProblem problem = problem_of(call, o);
  ConvDevice& chooser = device.attached.get<ConvDevice>(device);
  const ConvPlan* plan = chooser.find(problem);
  if (plan == nullptr) throw sdk::Error(TENON_INTERNAL, text_of(problem) + ": no engine was chosen when the plan was created");
  ScratchArena arena(call.scratch);
  void* const workspace = arena.allocate_bytes(plan->plan ? plan->plan->workspace_bytes() : 0);

  const ConvShape& shape = plain.shape;
  if (const void* const packed = packed_filter(call, o); packed != nullptr) {  // for a constant, only the packed copy may exist
    plain.w = const_cast<void*>(packed);
    plain.filter_channels_last = true;
    plain.filter_channels = problem.shape.channels / shape.groups;
  }
  const bool copies_here = copies_filter(shape, problem) && !plain.filter_channels_last;
  const bool pads = problem.shape.channels != shape.channels;
  ConvPointers pointers{plain.x, plain.w, plain.y};
  if (copies_here) pointers.w = arena.allocate_bytes(filter_bytes(problem));
  if (pads) pointers.x = arena.allocate_bytes(image_bytes(problem));
  if (problem.bias) pointers.bias = plain.biases[0];
  if (problem.residual) pointers.residual = plain.residual;
  if (plan->plan && alignment_of(pointers) < problem.alignment_bytes) {
    // A view that is not aligned. Its engine must fit the workspace that was allocated, and nothing is chosen while work is recorded.
    problem.alignment_bytes = static_cast<std::uint32_t>(sdk::size_of(problem.dtype));
    problem.workspace_limit = plan->plan->workspace_bytes();
    plan = stream.capturing() ? chooser.find(problem) : &chooser.choose(problem);
    if (plan == nullptr) {
      const std::string line = "cuda: " + text_of(problem) +
                               ": no engine is chosen while work is recorded, so a slow plain kernel runs it; run it " +
                               "once before recording, or pass operands that are aligned to 16 bytes";
      device.host.log(TENON_LOG_WARNING, line.c_str());
    }
  }
  if (plan == nullptr || !plan->plan) return convolve_naively(stream, plain);

  if (copies_here && !makes_filter) copy_filter(stream, shape, problem, plain.w, pointers.w, false);
  if (pads) pad_channels(stream, {shape.batch * shape.image[0] * shape.image[1], shape.channels}, plain.x, pointers.x);
  chooser.run(stream, *plan, pointers, workspace);
  if (copies_here && makes_filter) copy_filter(stream, shape, problem, pointers.w, plain.w, true);

  const bool forward = o.direction == ConvDirection::forward;
  const std::int64_t(&size)[2] = forward ? shape.result : shape.image;
  ImageEpilogue rest{.dtype = made.dtype,
                     .count = made.count,
                     .channels = forward ? shape.filters : shape.channels,
                     .inner = call.channels_last ? 1 : size[0] * size[1],
                     .y = made.data,
                     .biases = {plan->adds && problem.bias ? nullptr : plain.biases[0], plain.biases[1]},
                     .residual = plan->adds && problem.residual ? nullptr : plain.residual,
                     .activation = plain.activation};
  if (!rest.is_nothing()) apply_epilogue(stream, rest);
}

}  // namespace tenon::cuda
