// SPDX-License-Identifier: Apache-2.0
#include "attention/fused_attention.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "device/options.h"
#include "gemm/scratch_arena.h"
#include "kernel/launch.h"
#include "libraries/cublas.h"

namespace tenon::cuda {
namespace {

constexpr std::uint32_t alignment = 16;

/// Blocks of scratch memory; NULL if their sizes are only counted.
struct Scratch {
  void* workspace = nullptr;
  void* row_dots = nullptr;
  void* dq_sums = nullptr;
};
Scratch allocate(ScratchArena& arena, const AttentionProblem& problem, const ExecutionPlan& plan) {
  Scratch blocks{.workspace = arena.allocate_bytes(plan.workspace_bytes())};
  if (problem.gradient) {
    blocks.row_dots = arena.allocate_bytes(static_cast<std::size_t>(problem.rows()) * sizeof(float));
    if (!problem.deterministic) {
      blocks.dq_sums = arena.allocate_bytes(static_cast<std::size_t>(problem.rows() * problem.size) * sizeof(float));
    }
  }
  return blocks;
}

/// The operands of a call of Attention or AttentionGrad.
struct Operands {
  const sdk::Operand *q, *k, *v;
  bool has_mask;
};
Operands operands_of(const sdk::Call& call, bool gradient) {
  const std::uint32_t first = gradient ? 1 : 0;
  return {&call.inputs[first], &call.inputs[first + 1], &call.inputs[first + 2], call.has_input(first + 3)};
}

}  // namespace

std::optional<HeadStrides> fused_strides(const sdk::Operand& x) {
  const std::int64_t element = sdk::size_of(x.dtype);
  std::int64_t strides[3], dense = x.shape[3];
  bool is_dense = true;
  for (int d = 3; d-- > 0; dense *= x.shape[d]) {
    strides[d] = x.shape[d] == 1 ? dense : x.strides[d];
    if (strides[d] < 1 || strides[d] * element % alignment != 0) return std::nullopt;
    is_dense = is_dense && strides[d] == dense;
  }
  return is_dense ? HeadStrides{} : HeadStrides{strides[0], strides[1], strides[2]};
}

namespace {

/// None if the kernels of ops/attention.cu, or of attention_gradient.cu, run the call.
std::optional<AttentionProblem> problem_of(const sdk::Call& call, bool gradient) {
  auto& device = static_cast<Device&>(*call.device);
  const Operands o = operands_of(call, gradient);
  if ((o.q->dtype != TENON_DTYPE_F16 && o.q->dtype != TENON_DTYPE_BF16) || o.has_mask || options_of(device).naive) return std::nullopt;
  AttentionProblem problem{.dtype = o.q->dtype,
                           .gradient = gradient,
                           .causal = call.attr<tenon_attributes_attention>().causal != 0,
                           .log_sum = !gradient && call.has_output(1),
                           .deterministic = gradient && call.deterministic,
                           .batch = o.q->shape[0],
                           .heads = o.q->shape[1],
                           .groups = o.k->shape[1],
                           .queries = o.q->shape[2],
                           .keys = o.k->shape[2],
                           .size = o.q->shape[3],
                           .result = o.v->shape[3],
                           .merged_heads = call.merged_heads,
                           .workspace_limit = options_of(device).workspace_limit};
  const std::int64_t element = sdk::size_of(problem.dtype);
  if (problem.size * element % alignment != 0 || problem.result * element % alignment != 0) return std::nullopt;
  for (const std::int64_t extent : {problem.batch, problem.heads, problem.queries, problem.keys, problem.size, problem.result}) {
    if (extent < 1 || extent > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
  }
  std::vector<std::pair<const sdk::Operand*, HeadStrides*>> operands{
      {o.q, &problem.q_strides}, {o.k, &problem.k_strides}, {o.v, &problem.v_strides}};
  if (gradient) operands.insert(operands.end(), {{&call.inputs[0], &problem.dy_strides}, {&call.inputs[5], &problem.y_strides}});
  for (const auto& [operand, strides] : operands) {
    const std::optional<HeadStrides> found = fused_strides(*operand);
    if (!found) return std::nullopt;
    *strides = *found;
  }
  return problem;
}

}  // namespace

AttentionPlan attention_plan(const Cudnn& functions, const GraphTarget& target, const AttentionProblem& problem, Rejections& rejections) {
  try {
    OperationGraph graph = attention_graph(functions, problem);
    graph.finalize(target);
    for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
      for (Candidate& candidate : candidates(graph, target, mode)) {
        const Engine engine = candidate.engine;
        if (problem.deterministic && (candidate.numerical_notes >> CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC & 1) != 0) {
          rejections.add(engine, "its order of summation is not deterministic");
          continue;
        }
        try {
          AttentionPlan made{engine, std::nullopt};
          made.plan.emplace(target, std::move(candidate));
          if (made.plan->workspace_bytes() <= problem.workspace_limit) return made;
          rejections.add(engine, "it needs a workspace of " + std::to_string(made.plan->workspace_bytes()) + " bytes");
        } catch (const sdk::Error& error) {  // code generation of a proposed engine can fail
          if (error.status() == TENON_OUT_OF_MEMORY || error.status() == TENON_DEVICE_LOST) throw;
          rejections.add(engine, error.what());
        }
      }
    }
  } catch (const sdk::Error& error) {
    if (error.status() != TENON_UNSUPPORTED && error.status() != TENON_VENDOR_ERROR) throw;
    rejections.add(error.what());
  }
  return {};
}

AttentionDevice::AttentionDevice(Device& device, const Cudnn& (*open)(const sdk::Host&)) : device_(device) {
  try {
    functions_ = &open(device.host);
  } catch (const sdk::Error& error) {
    if (error.status() != TENON_INCOMPATIBLE) throw;
    const std::string line = std::string("cuda: attention in 16 bits runs without tensor cores, on slower kernels: ") + error.what();
    device.host.log(TENON_LOG_WARNING, line.c_str());
  }
}

const AttentionPlan& AttentionDevice::choose(const AttentionProblem& problem) {
  return plans_.get(problem, [this](const AttentionProblem& unknown) { return chosen(unknown); });
}

AttentionPlan AttentionDevice::chosen(const AttentionProblem& problem) {
  if (functions_ == nullptr) return {};
  device_.enter();
  const OutsideOfRecordings outside;
  const BorrowedHandle handle(device_);
  Rejections rejections;
  AttentionPlan plan = attention_plan(*functions_, {handle.get(), nullptr}, problem, rejections);
  std::string line = "cuda: " + text_of(problem) + ": ";
  if (plan.plan) {
    line += plan.engine.text() + ", workspace " + std::to_string(plan.plan->workspace_bytes()) + " bytes";
  } else {
    device_.check_context("cuDNN");  // a lost device reports no engines
    line +=
        "no cuDNN engine runs it within the workspace limit (backends.options.cuda.workspace_limit_mib), so slower kernels without tensor "
        "cores do; rejected engines: " +
        rejections.text();
  }
  device_.host.log(plan.plan ? TENON_LOG_DEBUG : TENON_LOG_WARNING, line.c_str());
  return plan;
}

void AttentionDevice::run(Stream& stream, const AttentionPlan& plan, std::span<const GraphPointer> pointers, void* workspace) {
  device_.enter();
  const CudnnStream& cudnn_stream = stream.attached.get<CudnnStream>(stream);
  const std::lock_guard lock(running_);
  check(device_, *functions_, plan.plan->execute(cudnn_stream.handle, pointers, workspace), "BackendExecute");
}

std::size_t fused_attention_scratch(const sdk::Call& call, bool gradient) {
  const std::optional<AttentionProblem> problem = problem_of(call, gradient);
  if (!problem) return 0;
  auto& device = static_cast<Device&>(*call.device);
  const AttentionPlan& plan = device.attached.get<AttentionDevice>(device).choose(*problem);
  if (!plan.plan) return 0;
  ScratchArena arena(nullptr);
  allocate(arena, *problem, *plan.plan);
  return arena.required_bytes();
}

bool run_fused_attention(const sdk::Call& call, bool gradient) {
  const std::optional<AttentionProblem> problem = problem_of(call, gradient);
  if (!problem) return false;
  Stream& stream = stream_of(call);
  Device& device = stream.device();
  AttentionDevice& chooser = device.attached.get<AttentionDevice>(device);
  const AttentionPlan* const plan = chooser.find(*problem);
  if (plan == nullptr || !plan->plan) return false;

  const auto of = [](const sdk::Operand& operand) { return const_cast<void*>(operand.data); };
  const Operands o = operands_of(call, gradient);
  std::vector<GraphPointer> pointers{{attention_q, of(*o.q)}, {attention_k, of(*o.k)}, {attention_v, of(*o.v)}};
  if (gradient) {
    pointers.insert(pointers.end(), {{attention_dy, of(call.inputs[0])},
                                     {attention_y, of(call.inputs[5])},
                                     {attention_log_sum, of(call.inputs[6])},
                                     {attention_dq, of(call.outputs[0])},
                                     {attention_dk, of(call.outputs[1])},
                                     {attention_dv, of(call.outputs[2])}});
  } else {
    pointers.push_back({attention_y, of(call.outputs[0])});
    if (problem->log_sum) pointers.push_back({attention_log_sum, of(call.outputs[1])});
  }
  for (const GraphPointer& pointer : pointers) {
    if (alignment_of(reinterpret_cast<std::uintptr_t>(pointer.address)) < alignment) return false;
  }
  ScratchArena arena(call.scratch);
  const Scratch scratch = allocate(arena, *problem, *plan->plan);
  auto scale = static_cast<float>(call.attr<tenon_attributes_attention>().scale);
  float minus_infinity = -std::numeric_limits<float>::infinity(), one = 1;
  pointers.push_back({attention_scale, &scale});
  if (problem->causal) pointers.push_back({attention_minus_infinity, &minus_infinity});
  if (gradient) {
    pointers.push_back({attention_one, &one});
    pointers.push_back({attention_row_dots, scratch.row_dots});
    if (!problem->deterministic) pointers.push_back({attention_dq_sums, scratch.dq_sums});
  }
  // Before cuDNN 9.6 the engines add to what is there.
  if (scratch.dq_sums != nullptr && !chooser.clears_sums()) {
    const auto bytes = static_cast<std::size_t>(problem->rows() * problem->size) * sizeof(float);
    device.check(cudaMemsetAsync(scratch.dq_sums, 0, bytes, stream.handle()), "cudaMemsetAsync");
  }
  chooser.run(stream, *plan, pointers, scratch.workspace);
  return true;
}

}  // namespace tenon::cuda
