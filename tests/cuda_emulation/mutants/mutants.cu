// SPDX-License-Identifier: Apache-2.0
#include "mutants.h"

namespace tenon::emulation::mutants {
namespace {

__global__ void reverse_kernel(const float* x, float* y, Mutant mutant) {
  __shared__ float tile[elements];
  tile[threadIdx.x] = x[threadIdx.x];
  if (mutant != Mutant::missing_barrier) __syncthreads();
  y[threadIdx.x] = tile[elements - 1 - threadIdx.x];
}

__global__ void copy_kernel(const float* x, float* y, Mutant mutant) {
  const float4 vector = reinterpret_cast<const float4*>(mutant == Mutant::misaligned_vector ? x + 1 : x)[threadIdx.x];
  reinterpret_cast<float4*>(y)[threadIdx.x] = vector;
}

/// One block for each half of the elements: the shared memory of the other half is not written.
__global__ void sum_kernel(const float* x, float* y, Mutant mutant) {
  __shared__ float terms[elements];
  constexpr unsigned half = elements / 2;
  terms[threadIdx.x] = x[blockIdx.x * half + threadIdx.x];
  __syncthreads();
  if (threadIdx.x != 0) return;
  float sum = 0;
  for (unsigned i = 0; i < (mutant == Mutant::reads_unwritten_elements ? elements : half); ++i) sum += terms[i];
  atomicAdd(y, sum);
}

__global__ void scale_kernel(const float* x, float* y, Mutant mutant) {
  __shared__ float static_terms[elements / 2];
  float* const terms = mutant == Mutant::static_shared_memory ? static_terms : reinterpret_cast<float*>(dynamic_shared());
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  terms[threadIdx.x] = x[i];
  __syncthreads();
  y[i] = 2 * terms[threadIdx.x];
}

void launch_kernel(void (*kernel)(const float*, float*, Mutant), cudaStream_t stream, unsigned blocks, unsigned threads, const float* x,
                   float* y, Mutant mutant) {
  launch(stream, blocks, threads, [=] { kernel(x, y, mutant); }, {0, reinterpret_cast<const void*>(kernel)});
}

}  // namespace

extern "C" {
#define TENON_EXPORTED __attribute__((visibility("default")))
TENON_EXPORTED void reverse(cudaStream_t stream, const float* x, float* y, Mutant mutant) {
  launch_kernel(&reverse_kernel, stream, 1, elements, x, y, mutant);
}
TENON_EXPORTED void copy(cudaStream_t stream, const float* x, float* y, Mutant mutant) {
  launch_kernel(&copy_kernel, stream, 1, elements / 4, x, y, mutant);
}
TENON_EXPORTED void scale(cudaStream_t stream, const float* x, float* y, Mutant mutant) {
  launch_cooperative(stream, 2, elements / 2, [=] { scale_kernel(x, y, mutant); },
                     {elements / 2 * sizeof(float), reinterpret_cast<const void*>(&scale_kernel)});
}
TENON_EXPORTED void sum(cudaStream_t stream, const float* x, float* y, Mutant mutant) {
  launch_kernel(&sum_kernel, stream, 2, elements / 2, x, y, mutant);
}
}

}  // namespace tenon::emulation::mutants
