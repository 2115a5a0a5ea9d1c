// SPDX-License-Identifier: Apache-2.0
// handle_memory.h - the device memory of a handle of an emulated vendor library.
#pragma once

#include <cuda_runtime_api.h>

namespace tenon::emulation {

/// NVIDIA's libraries allocate memory on the device where they make a handle, which a capture does not allow. So do these.
class HandleMemory {
 public:
  HandleMemory() : error_(cudaMalloc(&memory_, 256)) {}
  ~HandleMemory() { cudaFree(memory_); }
  HandleMemory(const HandleMemory&) = delete;
  HandleMemory& operator=(const HandleMemory&) = delete;
  bool allocated() const { return error_ == cudaSuccess; }

 private:
  void* memory_ = nullptr;
  cudaError_t error_;
};

}  // namespace tenon::emulation
