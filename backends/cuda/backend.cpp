// SPDX-License-Identifier: Apache-2.0
// NVIDIA GPUs through CUDA. Without a driver the plugin still loads, has no devices, and reports why.
#include <tenon/dlpack_extension.h>
#include <tenon/sdk/backend.h>
#include <tenon/sdk/kernel_markers.h>

#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/collectives.h"
#include "device/device.h"
#include "device/machine_code.h"
#include "device/nvtx.h"
#include "device/options.h"
#include "device/status.h"

namespace tenon::cuda {
namespace {

constexpr tenon_option options[] = {
    {"libraries", TENON_OPTION_STRING, 0, "", nullptr, 0, 0,
     "folders of NVIDIA's libraries, separated by colons; empty: those of the loader, of CUDA and of Python"},
    {"kernels", TENON_OPTION_CHOICE, 0, "tuned", "tuned|naive", 0, 0,
     "naive: convolutions and matrix products in plain CUDA, one thread per result, without NVIDIA's libraries"},
    {"algorithm", TENON_OPTION_STRING, 0, "heuristic", nullptr, 0, 0,
     "how the cuDNN engine of a convolution is chosen: heuristic, measure, or a name such as \"engine 37\""},
    {"workspace_limit_mib", TENON_OPTION_INTEGER, 0, "1024", nullptr, 0, 1 << 20,
     "cuDNN engines that need a larger workspace than this are not used"},
    {"elementwise", TENON_OPTION_CHOICE, 0, "auto", "auto|compiled|interpreted", 0, 0,
     "groups of elementwise ops: compiled by NVRTC, interpreted by one kernel, or auto: compiled where there are many elements"},
    {"products", TENON_OPTION_CHOICE, 0, "auto", "auto|library", 0, 0,
     "matrix products of ops: auto, small ones by kernels that compute several of them and their epilogues; library, all by cuBLAS"},
    {"fp8", TENON_OPTION_CHOICE, 0, "off", "off|auto|all", 0, 0,
     "matrix products of f16 and bf16 in FP8 (E4M3), on GPUs of compute capability 8.9 and later: auto, where that should take less time "
     "by "
     "the rates of an H200; all, wherever it can be"},
    {"programmatic_launch", TENON_OPTION_CHOICE, 0, "off", "off|on", 0, 0,
     "on: on GPUs of compute capability 9.0 and later, kernels of small nets are started while the one before them still runs"},
    {"recurrent", TENON_OPTION_CHOICE, 0, "auto", "auto|cooperative|library", 0, 0,
     "recurrent layers: auto, all time steps by one kernel where the weights fit into one block; cooperative, by one where they fit into "
     "several blocks that wait for each other; library, a product by cuBLAS and a kernel for each time step"},
    {"kernel_cache", TENON_OPTION_STRING, 0, "", nullptr, 0, 0,
     "a folder that keeps the code that NVRTC compiles, for later processes; empty: each process compiles"},
    {"nvtx", TENON_OPTION_CHOICE, 0, "off", "off|on", 0, 0,
     "on: NVTX ranges named by op and layer around the submission of each kernel, for Nsight; nothing is replayed as a CUDA graph then"},
};

class Backend final : public sdk::Backend {
 public:
  using sdk::Backend::Backend;
  std::uint32_t device_count() override { return static_cast<std::uint32_t>(found().size()); }
  std::string no_device_reason() override {
    found();
    return cuda::no_device_reason(machine_);
  }
  const sdk::DeviceDescription& describe(std::uint32_t index) override {
    sdk::DeviceDescription& gpu = found()[index];
    std::size_t free_bytes = 0, total_bytes = 0;
    if (opened_ && cudaSetDevice(static_cast<int>(index)) == cudaSuccess && cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess) {
      gpu.memory_free_bytes = free_bytes;
    }
    return gpu;
  }
  std::unique_ptr<sdk::Device> open(std::uint32_t index) override {
    auto device = std::make_unique<Device>(host, static_cast<int>(index));
    check_machine_code(*device);
    if (options_of(*device).nvtx) sdk::set_kernel_markers(&nvtx_markers());  // also reads and validates the user's options
    opened_ = true;
    return device;
  }
  tenon_group_id make_group_id() override { return cuda::make_group_id(host); }
  const void* extension(const char* name, std::uint32_t version) override {
    static constexpr tenon_dlpack_extension dlpack{sizeof(tenon_dlpack_extension), 2};  // kDLCUDA
    return std::string_view(name) == TENON_DLPACK_EXTENSION && version == TENON_DLPACK_EXTENSION_VERSION ? &dlpack : nullptr;
  }

 private:
  /// Searches once: a driver that is installed later is found by the next process.
  std::vector<sdk::DeviceDescription>& found() {
    std::call_once(once_, [this] {
      cudaDriverGetVersion(&machine_.driver_version);
      int count = 0;
      machine_.error = cudaGetDeviceCount(&count);
      if (machine_.error != cudaSuccess) return;
      for (int i = 0; i < count; ++i) devices_.push_back(describe_gpu(i, machine_.driver_version));
    });
    return devices_;
  }

  std::once_flag once_;
  Machine machine_;
  std::vector<sdk::DeviceDescription> devices_;
  bool opened_ = false;  ///< querying free memory creates a context, which takes memory itself
};

}  // namespace

const sdk::BackendSpec& spec();
const sdk::BackendSpec& spec() {
  static const std::string needs = requirements(CUDART_VERSION);
  static const sdk::BackendSpec cuda{
      .name = "cuda",
      .version = TENON_VERSION,
      .vendor = "Tenon",
      .description = "NVIDIA GPUs: CUDA, cuBLAS, cuDNN",
      .requirements = needs.c_str(),
      .priority = 100,
      .flags = 0,
      .options = options,
      .create = [](sdk::Host host) -> std::unique_ptr<sdk::Backend> { return std::make_unique<Backend>(host); },
      .captures = true,
      .combined_dtypes = combined_dtypes(),
  };
  return cuda;
}

}  // namespace tenon::cuda
