// SPDX-License-Identifier: Apache-2.0
#include "train/step_memory.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "core/log.h"
#include "exec/device_state.h"

namespace tenon::train {
namespace {

constexpr std::int64_t input_count = 3;  // key, learning rate, step number

/// A view of the `index`th scalar in a tensor of bytes.
Tensor view(const Tensor& memory, std::int64_t index, std::int64_t stride, DType dtype, const Shape& shape) {
  return Tensor::make(memory.storage(), memory.address() + static_cast<std::uint64_t>(index * stride), dtype, shape);
}

/// Pinned, if the device has that.
Tensor host_memory(const Device& device, const Shape& shape) {
  try {
    return device.empty_pinned(DType::u8, shape);
  } catch (const Error& error) {
    log::debug("device '{}': no pinned memory for the results of steps: {}", device.name(), error.what());
    return Tensor::empty(DType::u8, shape);
  }
}

std::int64_t stride_on(const Device& device) {
  return static_cast<std::int64_t>(std::max<std::uint64_t>(device.state()->alignment_of(DType::f64), 16));  // the key has 16 bytes
}

}  // namespace

StepMemory::StepMemory(const Device& device, DType rate, std::size_t max_results)
    : device_(device),
      stream_(Stream::of_programs(device)),
      max_results_(max_results),
      stride_(stride_on(device)),
      memory_(device.empty(DType::u8, {(input_count + static_cast<std::int64_t>(max_results)) * stride_})),
      key_(view(memory_, 0, stride_, DType::u64, {2})),
      learning_rate_(view(memory_, 1, stride_, rate, {})),
      step_number_(view(memory_, 2, stride_, DType::i64, {})),
      slots_{Slot{{}, Event(device, {.timed = false}), {}}, Slot{{}, Event(device, {.timed = false}), {}}} {
  const std::int64_t size = memory_.count();
  Tensor host = host_memory(device, {2 * size});
  std::memset(host.raw(), 0, static_cast<std::size_t>(host.size_bytes()));  // what lies between scalars is copied, too
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const auto begin = static_cast<std::int64_t>(i) * size;
    slots_[i].memory = host.slice(0, begin, begin + size);
  }
}

bool StepMemory::choose_outputs(const Program& program) {
  const Graph& graph = program.graph();
  const std::size_t count = program.output_count();
  if (count > max_results_) return false;
  bool same = outputs_.size() == count;
  for (std::size_t i = 0; same && i < count; ++i) {
    const ValueInfo& info = graph.info(graph.outputs()[i].value);
    same = outputs_[i].dtype() == info.dtype && outputs_[i].shape() == info.shape;
  }
  if (!same) {
    outputs_.clear();
    for (std::size_t i = 0; i < count; ++i) {
      const ValueInfo& info = graph.info(graph.outputs()[i].value);
      if (info.shape.count() != 1 || size_of(info.dtype) > stride_) {
        outputs_.clear();
        return false;
      }
      outputs_.push_back(view(memory_, input_count + static_cast<std::int64_t>(i), stride_, info.dtype, info.shape));
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (!program.accepts_output(i, outputs_[i])) return false;
  }
  return true;
}

void StepMemory::upload(std::size_t slot, const Tensor& key, const Tensor& learning_rate, const Tensor& step_number) {
  Tensor& host = slots_[slot].memory;
  auto* const bytes = static_cast<std::byte*>(host.raw());
  std::int64_t at = 0;
  for (const Tensor* scalar : {&key, &learning_rate, &step_number}) {
    std::memcpy(bytes + stride_ * at++, scalar->raw(), static_cast<std::size_t>(scalar->size_bytes()));
  }
  state().copy(TENON_COPY_HOST_TO_DEVICE, memory_.address(), host.address(), static_cast<std::uint64_t>(stride_ * input_count));
}

void StepMemory::download(std::size_t index) {
  Slot& slot = slots_[index];
  slot.results.clear();
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    slot.results.push_back(
        view(slot.memory, input_count + static_cast<std::int64_t>(i), stride_, outputs_[i].dtype(), outputs_[i].shape()));
  }
  const auto begin = static_cast<std::uint64_t>(stride_ * input_count);
  state().copy(TENON_COPY_DEVICE_TO_HOST, slot.memory.address() + begin, memory_.address() + begin,
               static_cast<std::uint64_t>(stride_) * outputs_.size());
  slot.done.record(stream_);
}

void StepMemory::finish() const noexcept {
  try {
    device_.state()->synchronize();
  } catch (const std::exception& failure) {
    log::debug("device '{}': after a failed step: {}", device_.name(), failure.what());
  }
}

}  // namespace tenon::train
