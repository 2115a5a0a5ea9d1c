// SPDX-License-Identifier: Apache-2.0
// cudnn_library.h - cuDNN 9, opened at first use: the functions of its graph API, and handles.
#pragma once

#include <cudnn_graph.h>

#include <string>

#include <tenon/sdk/host.h>

#include "device/device.h"
#include "libraries/library.h"

/// The functions in use.
#define TENON_CUDNN_FUNCTIONS(X)   \
  X(cudnnGetVersion)               \
  X(cudnnGetErrorString)           \
  X(cudnnGetLastErrorString)       \
  X(cudnnCreate)                   \
  X(cudnnDestroy)                  \
  X(cudnnSetStream)                \
  X(cudnnBackendCreateDescriptor)  \
  X(cudnnBackendDestroyDescriptor) \
  X(cudnnBackendFinalize)          \
  X(cudnnBackendSetAttribute)      \
  X(cudnnBackendGetAttribute)      \
  X(cudnnBackendExecute)

namespace tenon::cuda {

struct Cudnn {
  explicit Cudnn(const Search& search);

  Library library;
#define TENON_FUNCTION(name) decltype(&::name) name;
  TENON_CUDNN_FUNCTIONS(TENON_FUNCTION)
#undef TENON_FUNCTION

  /// "BAD_PARAM: ..." cuDNN's message for the calling thread's last call.
  std::string text_of(cudnnStatus_t status) const;
};

/// cuDNN, opened by the first call and never closed.
///
/// Errors   INCOMPATIBLE: it is missing or not of the headers' major version; the next call searches again.
/// Threads  any
const Cudnn& cudnn(const sdk::Host& host);

/// The major version in a result of cudnnGetVersion: 8907 is 8, 91900 is 9.
int cudnn_major(std::size_t version);

/// True if the status means that cuDNN does not support the request: an answer, not a failure.
inline bool is_unsupported(cudnnStatus_t status) {
  return CUDNN_STATUS_CATEGORY(static_cast<int>(status)) == CUDNN_STATUS_NOT_SUPPORTED;
}
/// Throws an error that names the call unless `status` is success.
void check(const Cudnn& functions, cudnnStatus_t status, const char* call);
/// The same for work on a device; an error of the CUDA context takes precedence.
void check(Device& device, const Cudnn& functions, cudnnStatus_t status, const char* call);

/// The handle of a stream. A stream that is being recorded has a separate one, so the recording shares no cuDNN state with work that runs
/// meanwhile.
class CudnnStream {
 public:
  explicit CudnnStream(Stream& stream);
  ~CudnnStream();
  CudnnStream(const CudnnStream&) = delete;
  CudnnStream& operator=(const CudnnStream&) = delete;

  const Cudnn& functions;
  cudnnHandle_t handle = nullptr;

 private:
  Device& device_;
};

/// A handle that no stream uses, for queries about the device. It must not be used to run work.
class BorrowedHandle {
 public:
  explicit BorrowedHandle(Device& device);
  ~BorrowedHandle();
  BorrowedHandle(const BorrowedHandle&) = delete;
  BorrowedHandle& operator=(const BorrowedHandle&) = delete;
  cudnnHandle_t get() const { return handle_; }

 private:
  Device& device_;
  cudnnHandle_t handle_;
};

}  // namespace tenon::cuda
