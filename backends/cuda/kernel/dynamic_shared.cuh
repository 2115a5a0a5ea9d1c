// SPDX-License-Identifier: Apache-2.0
// dynamic_shared.cuh - the dynamic shared memory of a block, Geometry::shared_bytes of its launch.
#pragma once

#include <cuda_runtime_api.h>

namespace tenon::cuda {

/// Aligned to 16 bytes; uninitialised.
__device__ inline char* dynamic_shared() {
#ifdef TENON_CUDA_EMULATION
  return emulation::dynamic_shared();
#else
  extern __shared__ uint4 dynamic_shared_memory[];
  return reinterpret_cast<char*>(dynamic_shared_memory);
#endif
}

}  // namespace tenon::cuda
