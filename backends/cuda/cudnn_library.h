// cudnn_library.h - cuDNN 9, opened at first use: the functions of its graph API, and handles.
#pragma once

#include <cudnn_graph.h>

#include <string>

#include <tenon/sdk/host.h>

#include "device.h"
#include "library.h"

/// The functions that are used.
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

  /// "BAD_PARAM: ..." in cuDNN's own words, of the calling thread's last call.
  std::string text_of(cudnnStatus_t status) const;
};

/// cuDNN, opened by the first call; kept for good.
///
/// Errors   INCOMPATIBLE: it is not there, or not the version of the headers; the next call looks again.
/// Threads  any
const Cudnn& cudnn(const sdk::Host& host);

/// The library's major version of what cudnnGetVersion says: 8907 is 8, 91900 is 9.
int cudnn_major(std::size_t version);

/// True if cuDNN says that it does not serve what it was asked for: an answer, not a failure.
inline bool is_unsupported(cudnnStatus_t status) {
  return CUDNN_STATUS_CATEGORY(static_cast<int>(status)) == CUDNN_STATUS_NOT_SUPPORTED;
}
/// Throws for anything but success, in the name of the call.
void check(const Cudnn& functions, cudnnStatus_t status, const char* call);
/// The same for work on a device; what CUDA itself says comes first.
void check(Device& device, const Cudnn& functions, cudnnStatus_t status, const char* call);

/// A stream's handle. While a stream is recorded it has another one: what cuDNN keeps with a handle is not shared with what runs meanwhile.
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

/// A handle that no stream uses, for questions about the device. It must not be given work.
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
