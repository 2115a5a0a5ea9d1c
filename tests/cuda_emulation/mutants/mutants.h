// SPDX-License-Identifier: Apache-2.0
// mutants.h - correct kernels, and the same with one mistake each.
#pragma once

#include <cuda_runtime_api.h>

namespace tenon::emulation::mutants {

enum class Mutant {
  none,
  missing_barrier,           ///< in `reverse`: elements are read from shared memory that other threads have not written yet
  misaligned_vector,         ///< in `copy`: 16 bytes are read at an address that is a multiple of 4
  reads_unwritten_elements,  ///< in `sum`: elements of shared memory are added that no thread has written
  static_shared_memory,      ///< in `scale`: the blocks of a cooperative launch have static shared memory
};

/// Enqueues y = the elements of x reversed, y = x, y[0] = their sum, or y = 2 * x. Both have 64 elements in device memory, x one more.
using Run = void(cudaStream_t stream, const float* x, float* y, Mutant mutant);

/// The symbols of the library, "reverse", "copy", "sum" and "scale", are of this type.
constexpr int elements = 64;

}  // namespace tenon::emulation::mutants
