// SPDX-License-Identifier: Apache-2.0
// cublas_lt.h - cuBLASLt, opened at first use, and the algorithms chosen for a device.
#pragma once

#include <cublasLt.h>

#include <array>
#include <cstdint>
#include <map>
#include <mutex>

#include <tenon/sdk/host.h>

#include "device/device.h"
#include "libraries/library.h"

/// The functions in use.
#define TENON_CUBLAS_LT_FUNCTIONS(X)      \
  X(cublasLtGetProperty)                  \
  X(cublasLtCreate)                       \
  X(cublasLtDestroy)                      \
  X(cublasLtMatmulDescCreate)             \
  X(cublasLtMatmulDescDestroy)            \
  X(cublasLtMatmulDescSetAttribute)       \
  X(cublasLtMatrixLayoutCreate)           \
  X(cublasLtMatrixLayoutDestroy)          \
  X(cublasLtMatrixLayoutSetAttribute)     \
  X(cublasLtMatmulPreferenceCreate)       \
  X(cublasLtMatmulPreferenceDestroy)      \
  X(cublasLtMatmulPreferenceSetAttribute) \
  X(cublasLtMatmulAlgoGetHeuristic)       \
  X(cublasLtMatmul)

namespace tenon::cuda {

struct CublasLt {
  explicit CublasLt(const Search& search);

  Library library;
#define TENON_FUNCTION(name) decltype(&::name) name;
  TENON_CUBLAS_LT_FUNCTIONS(TENON_FUNCTION)
#undef TENON_FUNCTION
};

/// cuBLASLt, opened by the first call and never closed.
///
/// Errors   INCOMPATIBLE: it is missing or not of the headers' major version; the next call searches again.
/// Threads  any
const CublasLt& cublas_lt(const sdk::Host& host);

/// One product on a device: its operands and its epilogue. Of addresses, only the alignment matters.
struct LtProblem {
  struct Matrix {
    std::int64_t rows, columns, ld, batch_stride;
    std::uint32_t alignment_bytes;
    bool transposed;
    auto operator<=>(const Matrix&) const = default;
  };
  cudaDataType_t type;         ///< of A and B
  cudaDataType_t result_type;  ///< of C, D and the bias: that of A and B, except for FP8
  cublasComputeType_t compute;
  cublasLtEpilogue_t epilogue;
  std::int32_t batch;
  Matrix a, b, d;  ///< C has the layout of D
  std::size_t workspace_bytes;
  auto operator<=>(const LtProblem&) const = default;
};

/// Addresses of a product.
struct LtOperands {
  const void* a;
  const void* b;
  const void* c;  ///< D itself if beta is 0
  void* d;
  const void* bias;  ///< NULL: none
  void* workspace;
  const float* a_scale;  ///< of FP8, in device memory: A is its codes times this
  const float* b_scale;
};

/// The handle and algorithm choices of a device: the same problem gets the same algorithm, and so the same bits, as long as the device is
/// open.
///
/// Threads  any
class LtDevice {
 public:
  explicit LtDevice(Device& device);
  ~LtDevice();
  LtDevice(const LtDevice&) = delete;
  LtDevice& operator=(const LtDevice&) = delete;

  /// D = epilogue(alpha op(A) op(B) + beta C) enqueued on the stream. Returns false, doing nothing, if cuBLASLt has no algorithm for it.
  bool multiply(Stream& stream, const LtProblem& problem, const LtOperands& operands, double alpha, double beta);
  /// Whether cuBLASLt has an algorithm for it.
  bool can_multiply(const LtProblem& problem, const LtOperands& operands);

 private:
  struct Choice {
    bool found = false;
    cublasLtMatmulAlgo_t algorithm{};
  };

  struct Description;
  /// The first call for a problem asks cuBLASLt.
  Choice choice_of(const LtProblem& problem, const Description& described);

  Device& device_;
  const CublasLt& functions_;
  cublasLtHandle_t handle_ = nullptr;
  std::mutex mutex_;
  std::map<LtProblem, Choice> choices_;
};

}  // namespace tenon::cuda
