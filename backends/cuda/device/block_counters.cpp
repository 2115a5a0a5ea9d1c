// SPDX-License-Identifier: Apache-2.0
#include "device/block_counters.h"

namespace tenon::cuda {

BlockCounters::BlockCounters(Stream& stream) {
  Device& device = stream.device();
  device.enter();
  const OutsideOfRecordings outside;
  // The stream itself may be recorded: the counters are set to 0 once, not at each replay.
  const Stream own(device);
  void* memory = nullptr;
  device.check(cudaMalloc(&memory, count * sizeof(unsigned)), "cudaMalloc");
  at_ = static_cast<unsigned*>(memory);
  cudaError_t error = cudaMemsetAsync(memory, 0, count * sizeof(unsigned), own.handle());
  if (error == cudaSuccess) error = cudaStreamSynchronize(own.handle());
  if (error != cudaSuccess) cudaFree(memory);
  device.check(error, "cudaMemsetAsync");
}

BlockCounters::~BlockCounters() {
  cudaFree(at_);
}

unsigned* block_counters(Stream& stream) {
  return stream.attached.get<BlockCounters>(stream).at();
}

}  // namespace tenon::cuda
