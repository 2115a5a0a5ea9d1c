// SPDX-License-Identifier: Apache-2.0
#include "conv/convolutions.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "conv/channel_padding.h"
#include "conv/conv_device.h"
#include "conv/conv_naive.h"
#include "conv/image_epilogue.h"
#include "device/options.h"
#include "gemm/matrix_view.h"
#include "gemm/scratch_arena.h"
#include "kernel/launch.h"
#include "movement/strided_copy.h"

namespace tenon::cuda {
namespace {

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

std::size_t convolution_scratch(const sdk::Call& call, const ConvOperands& o) {
  const ConvShape shape = shape_of(call, o);
  if (!is_tuned(call) || !is_for_cudnn(shape)) return 0;
  auto& device = static_cast<Device&>(*call.device);
  const ConvProblem problem = problem_of(call, o);
  const ConvPlan& plan = device.attached.get<ConvDevice>(device).choose(problem);
  if (!plan.plan) return 0;
  ScratchArena arena(nullptr);
  arena.allocate_bytes(plan.plan->workspace_bytes());
  if (copies_filter(shape, problem) && packed_filter(call, o) == nullptr) arena.allocate_bytes(problem.filter_bytes());
  if (problem.shape.channels != shape.channels) arena.allocate_bytes(problem.image_bytes());
  return arena.required_bytes();
}

std::size_t packed_filter_bytes(const sdk::Call& call, const ConvOperands& o) {
  const ConvShape shape = shape_of(call, o);
  if (!is_tuned(call) || !is_for_cudnn(shape)) return 0;
  const ConvProblem problem = problem_of(call, o);
  return copies_filter(shape, problem) ? problem.filter_bytes() : 0;
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
  if (copies_here) pointers.w = arena.allocate_bytes(problem.filter_bytes());
  if (pads) pointers.x = arena.allocate_bytes(problem.image_bytes());
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
