// SPDX-License-Identifier: Apache-2.0
#include "libraries/cudnn_library.h"

#include <mutex>
#include <vector>

#include "libraries/cublas.h"

namespace tenon::cuda {
namespace {

constexpr LibrarySpec spec{"cuDNN", "libcudnn", CUDNN_MAJOR};

tenon_status status_of(cudnnStatus_t status) {
  if (is_unsupported(status)) return TENON_UNSUPPORTED;
  switch (status) {
    case CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED:
    case CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED:
      return TENON_OUT_OF_MEMORY;
    case CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH:
    case CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED:
      return TENON_INCOMPATIBLE;
    default:
      return TENON_VENDOR_ERROR;
  }
}

constexpr const char* without = "; backends.options.cuda.kernels: naive runs convolutions without cuDNN, but slowly";

/// Returns make(); adds to an error what works without the library.
template <class Make>
auto or_without(const Make& make) {
  try {
    return make();
  } catch (const sdk::Error& error) {
    throw sdk::Error(error.status(), error.what() + std::string(without));
  }
}

/// Handles that are not in use. Destroying a handle synchronizes the device, which would end recordings of other threads, so handles are
/// kept until exit.
class SpareHandles {
 public:
  explicit SpareHandles(Device& device) : device_(device), functions_(cudnn(device.host)) {}
  ~SpareHandles() {
    for (cudnnHandle_t handle : handles_) functions_.cudnnDestroy(handle);
  }
  SpareHandles(const SpareHandles&) = delete;
  SpareHandles& operator=(const SpareHandles&) = delete;

  cudnnHandle_t take() {
    {
      const std::lock_guard lock(mutex_);
      if (!handles_.empty()) {
        cudnnHandle_t handle = handles_.back();
        handles_.pop_back();
        return handle;
      }
    }
    device_.enter();
    const OutsideOfRecordings outside;
    cudnnHandle_t handle = nullptr;
    check(device_, functions_, functions_.cudnnCreate(&handle), "Create");
    return handle;
  }
  void put(cudnnHandle_t handle) {
    const std::lock_guard lock(mutex_);
    handles_.push_back(handle);
  }

 private:
  Device& device_;
  const Cudnn& functions_;
  std::mutex mutex_;
  std::vector<cudnnHandle_t> handles_;
};
SpareHandles& spare_handles(Device& device) {
  return device.attached.get<SpareHandles>(device);
}

}  // namespace

int cudnn_major(std::size_t version) {
  return static_cast<int>(version < 90000 ? version / 1000 : version / 10000);
}

Cudnn::Cudnn(const Search& search) : library(or_without([&] { return Library(spec, search); })) {
  or_without([&] {
    cudnnGetVersion = library.function<decltype(cudnnGetVersion)>("cudnnGetVersion");
    library.check_version(cudnn_major(cudnnGetVersion()));
#define TENON_FUNCTION(name) name = library.function<decltype(name)>(#name);
    TENON_CUDNN_FUNCTIONS(TENON_FUNCTION)
#undef TENON_FUNCTION
  });
}

std::string Cudnn::text_of(cudnnStatus_t status) const {
  char words[512] = {};
  cudnnGetLastErrorString(words, sizeof words);
  words[sizeof words - 1] = '\0';
  std::string text = cudnnGetErrorString(status);
  if (words[0] != '\0') text += std::string(": ") + words;
  return text;
}

const Cudnn& cudnn(const sdk::Host& host) {
  // Never destroyed: other threads may still use it when the process exits.
  static constinit std::mutex mutex;
  static constinit const Cudnn* opened = nullptr;
  const std::lock_guard lock(mutex);
  if (opened == nullptr) opened = new Cudnn(search_here(host.option("libraries")));
  return *opened;
}

void check(const Cudnn& functions, cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw sdk::Error(status_of(status), std::string("cuDNN ") + call + ": " + functions.text_of(status));
}

void check(Device& device, const Cudnn& functions, cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  const std::string name = std::string("cuDNN ") + call;
  {
    const OutsideOfRecordings outside;
    device.check_context(name.c_str());
  }
  check(functions, status, call);
}

CudnnStream::CudnnStream(Stream& stream)
    : functions(cudnn(stream.device().host)), handle(spare_handles(stream.device()).take()), device_(stream.device()) {
  const OutsideOfRecordings outside;
  const cudnnStatus_t status = functions.cudnnSetStream(handle, stream.handle());
  if (status == CUDNN_STATUS_SUCCESS) return;
  spare_handles(device_).put(handle);
  check(device_, functions, status, "SetStream");
}

CudnnStream::~CudnnStream() {
  functions.cudnnSetStream(handle, nullptr);  // the stream may be destroyed before the handle is used again
  spare_handles(device_).put(handle);
}

BorrowedHandle::BorrowedHandle(Device& device) : device_(device), handle_(spare_handles(device).take()) {}

BorrowedHandle::~BorrowedHandle() {
  spare_handles(device_).put(handle_);
}

}  // namespace tenon::cuda
