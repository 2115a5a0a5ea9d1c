// SPDX-License-Identifier: Apache-2.0
// train/step_memory.h - what training steps take and give as scalars, on a device with memory of its own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <tenon/context.h>
#include <tenon/program.h>
#include <tenon/stream.h>

namespace tenon::train {

/// The key, the learning rate and the index of a step lie next to each other in device memory, and so do its results: loss, metrics,
/// weight, outcome. One copy brings each of the two. Their host memory is pinned, if the device has that, and there are two slots of it,
/// which steps use in turn: two steps may be in flight. Device memory needs no second slot, since everything is in order on the stream of
/// programs.
///
/// Order    A slot is written and read by the host between the wait for done() of its step and the next upload() to it.
/// Threads  one at a time.
class StepMemory {
 public:
  static constexpr std::size_t max_in_flight = 2;

  /// For learning rates of dtype `rate`, and programs of at most `max_results` results.
  StepMemory(const Device& device, DType rate, std::size_t max_results);

  /// The inputs of a step, in device memory.
  const Tensor& key() const { return key_; }
  const Tensor& learning_rate() const { return learning_rate_; }
  const Tensor& step_number() const { return step_number_; }
  /// Makes outputs() those of the program. False: it has results that are no scalars of the device.
  bool choose_outputs(const Program& program);
  /// The memory of the results of a step, in that of the device.
  std::span<Tensor> outputs() { return outputs_; }

  /// Submits the copy of these values to the inputs. `slot`: that of a step which is done.
  void upload(std::size_t slot, const Tensor& key, const Tensor& learning_rate, const Tensor& step_number);
  /// Submits the copy of the outputs to the slot, and marks its end.
  void download(std::size_t slot);
  /// The mark of the last download() to the slot.
  const Event& done(std::size_t slot) const { return slots_[slot].done; }
  /// The results that it has brought, in host memory.
  std::span<const Tensor> results(std::size_t slot) const { return slots_[slot].results; }
  /// Waits for all copies, whether they fail or not.
  void finish() const noexcept;

 private:
  struct Slot {
    Tensor memory;  ///< as that of the device
    Event done;
    std::vector<Tensor> results;
  };
  exec::DeviceState& state() const { return *device_.state(); }

  const Device device_;
  const Stream stream_;
  const std::size_t max_results_;
  const std::int64_t stride_;  ///< bytes from one scalar to the next: aligned for each
  Tensor memory_;              ///< bytes of the inputs, then of the outputs, on the device
  Tensor key_, learning_rate_, step_number_;
  std::vector<Tensor> outputs_;
  std::array<Slot, max_in_flight> slots_;
};

}  // namespace tenon::train
