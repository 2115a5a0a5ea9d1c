// SPDX-License-Identifier: Apache-2.0
#include "libraries/cublas.h"

#include <mutex>
#include <string>
#include <vector>

#include "device/status.h"

namespace tenon::cuda {
namespace {

constexpr LibrarySpec spec{"cuBLAS", "libcublas", CUBLAS_VER_MAJOR};

// Expands a name as cublas_v2.h maps it to that of the library.
#define TENON_TEXT_OF(name) #name
#define TENON_TEXT(name) TENON_TEXT_OF(name)

tenon_status status_of(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_ALLOC_FAILED:
      return TENON_OUT_OF_MEMORY;
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return TENON_INCOMPATIBLE;
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return TENON_UNSUPPORTED;
    default:
      return TENON_VENDOR_ERROR;
  }
}

const char* name_of(cublasStatus_t status) {
  switch (status) {
#define TENON_NAME(status) \
  case status:             \
    return #status;
    TENON_NAME(CUBLAS_STATUS_SUCCESS)
    TENON_NAME(CUBLAS_STATUS_NOT_INITIALIZED)
    TENON_NAME(CUBLAS_STATUS_ALLOC_FAILED)
    TENON_NAME(CUBLAS_STATUS_INVALID_VALUE)
    TENON_NAME(CUBLAS_STATUS_ARCH_MISMATCH)
    TENON_NAME(CUBLAS_STATUS_MAPPING_ERROR)
    TENON_NAME(CUBLAS_STATUS_EXECUTION_FAILED)
    TENON_NAME(CUBLAS_STATUS_INTERNAL_ERROR)
    TENON_NAME(CUBLAS_STATUS_NOT_SUPPORTED)
    TENON_NAME(CUBLAS_STATUS_LICENSE_ERROR)
#undef TENON_NAME
  }
  return "an unknown status";
}

// The memory of a stream: cuBLAS's workspace comes first, which needs the widest alignment.
constexpr std::size_t scalar_bytes = 16;
constexpr std::size_t scalars_bytes = CublasStream::scalars * scalar_bytes;
constexpr std::size_t partials_bytes = 3 * CublasStream::partials * sizeof(double);
constexpr std::size_t addresses_bytes = 3 * static_cast<std::size_t>(CublasStream::batch) * sizeof(std::uint64_t);

}  // namespace

Cublas::Cublas(const Search& search) : library(spec, search) {
#define TENON_FUNCTION(name) library.function<decltype(&::name)>(TENON_TEXT(name))
  get_property = TENON_FUNCTION(cublasGetProperty);
  int major = 0;
  get_property(MAJOR_VERSION, &major);
  library.check_version(major);
  create = TENON_FUNCTION(cublasCreate);
  destroy = TENON_FUNCTION(cublasDestroy);
  set_stream = TENON_FUNCTION(cublasSetStream);
  set_workspace = TENON_FUNCTION(cublasSetWorkspace);
  set_pointer_mode = TENON_FUNCTION(cublasSetPointerMode);
  set_math_mode = TENON_FUNCTION(cublasSetMathMode);
#define TENON_FOUR(name, S, D, C, Z) this->name = {#name, TENON_FUNCTION(S), TENON_FUNCTION(D), TENON_FUNCTION(C), TENON_FUNCTION(Z)};
#define TENON_REAL(name, S, D) this->name = {#name, TENON_FUNCTION(S), TENON_FUNCTION(D), nullptr, nullptr};
#define TENON_COMPLEX(name, C, Z) this->name = {#name, nullptr, nullptr, TENON_FUNCTION(C), TENON_FUNCTION(Z)};
  TENON_CUBLAS_ROUTINES(TENON_FOUR, TENON_REAL, TENON_COMPLEX)
#undef TENON_FOUR
#undef TENON_REAL
#undef TENON_COMPLEX
#undef TENON_FUNCTION
}

const Cublas& cublas(const sdk::Host& host) {
  // Never destroyed: other threads may still use it when the process exits.
  static constinit std::mutex mutex;
  static constinit const Cublas* opened = nullptr;
  const std::lock_guard lock(mutex);
  if (opened == nullptr) opened = new Cublas(search_here(host.option("libraries")));
  return *opened;
}

void check(Device& device, cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const std::string name = std::string("cuBLAS ") + call;
  {
    const OutsideOfRecordings outside;
    device.check_context(name.c_str());
  }
  throw sdk::Error(status_of(status), name + ": " + name_of(status));
}

std::size_t workspace_bytes(int compute_capability) {
  return std::size_t{compute_capability >= 90 ? 32u : 4u} << 20;
}

namespace {

/// Handles that are not in use. Destroying a handle synchronizes the device, which would end recordings of other threads, so handles are
/// kept until exit.
class SpareHandles {
 public:
  explicit SpareHandles(const Cublas& functions) : functions_(functions) {}
  ~SpareHandles() {
    for (cublasHandle_t handle : handles_) functions_.destroy(handle);
  }
  SpareHandles(const SpareHandles&) = delete;
  SpareHandles& operator=(const SpareHandles&) = delete;

  /// NULL: there is none.
  cublasHandle_t take() {
    const std::lock_guard lock(mutex_);
    if (handles_.empty()) return nullptr;
    cublasHandle_t handle = handles_.back();
    handles_.pop_back();
    return handle;
  }
  void put(cublasHandle_t handle) {
    const std::lock_guard lock(mutex_);
    handles_.push_back(handle);
  }

 private:
  const Cublas& functions_;
  std::mutex mutex_;
  std::vector<cublasHandle_t> handles_;
};

}  // namespace

CublasStream::CublasStream(Stream& stream) : functions(cublas(stream.device().host)), device_(stream.device()) {
  device_.enter();
  const OutsideOfRecordings outside;
  const std::size_t workspace = workspace_bytes(device_.compute_capability());
  try {
    void* memory = nullptr;
    device_.check(cudaMalloc(&memory, workspace + scalars_bytes + partials_bytes + addresses_bytes), "cudaMalloc");
    memory_ = static_cast<std::byte*>(memory);
    handle = device_.attached.get<SpareHandles>(functions).take();
    if (handle == nullptr) check(device_, functions.create(&handle), "create");
    check(device_, functions.set_stream(handle, stream.handle()), "set_stream");
    check(device_, functions.set_workspace(handle, memory_, workspace), "set_workspace");
    check(device_, functions.set_math_mode(handle, CUBLAS_DEFAULT_MATH), "set_math_mode");  // f32 stays f32: no TF32
  } catch (...) {
    release();
    throw;
  }
}

void CublasStream::release() {
  if (handle != nullptr) device_.attached.get<SpareHandles>(functions).put(handle);
  if (memory_ != nullptr) cudaFree(memory_);
}

void* CublasStream::scalar(int i) const {
  return memory_ + workspace_bytes(device_.compute_capability()) + static_cast<std::size_t>(i) * scalar_bytes;
}
double* CublasStream::partial() const {
  return static_cast<double*>(static_cast<void*>(static_cast<std::byte*>(scalar(0)) + scalars_bytes));
}
std::uint64_t* CublasStream::addresses() const {
  return static_cast<std::uint64_t*>(static_cast<void*>(static_cast<std::byte*>(scalar(0)) + scalars_bytes + partials_bytes));
}

CublasStream& cublas_of(Stream& stream) {
  return stream.attached.get<CublasStream>(stream);
}

}  // namespace tenon::cuda
