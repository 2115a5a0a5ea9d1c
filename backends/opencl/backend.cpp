// SPDX-License-Identifier: Apache-2.0
// Devices of any vendor through OpenCL. Without the ICD loader the plugin still loads, has no devices, and reports why.
#include <tenon/sdk/backend.h>

#include <mutex>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/process_guard.h"

namespace tenon::opencl {
namespace {

constexpr tenon_option options[] = {
    {"icd_loader", TENON_OPTION_STRING, 0, "libOpenCL.so.1", nullptr, 0, 0,
     "the OpenCL ICD loader: a path, or a name for the dynamic loader"},
    {"clblast", TENON_OPTION_STRING, 0, "libclblast.so.1", nullptr, 0, 0,
     "CLBlast, for large products: a path, or a name for the dynamic loader"},
    {"program_cache", TENON_OPTION_CHOICE, 0, "on", "on|off", 0, 0,
     "on: compiled kernels are kept in the cache folder for later processes"},
    {"columns_limit_kib", TENON_OPTION_INTEGER, 0, "65536", nullptr, 1, 1 << 20,
     "scratch memory of a convolution: as many images at a time as fit, at least one"},
};

class Backend final : public sdk::Backend {
 public:
  using sdk::Backend::Backend;
  std::uint32_t device_count() override { return static_cast<std::uint32_t>(found().size()); }
  std::string no_device_reason() override {
    found();
    return reason_;
  }
  const sdk::DeviceDescription& describe(std::uint32_t index) override { return found()[index].description; }
  std::unique_ptr<sdk::Device> open(std::uint32_t index) override { return std::make_unique<Device>(host, found()[index]); }

 private:
  /// Searches once: a driver that is installed later is found by the next process.
  const std::vector<Listed>& found() {
    std::call_once(once_, [this] {
      const ProcessGuard guard;
      const char* const file = host.option("icd_loader");
      const std::string failure = load_api(file == nullptr ? "libOpenCL.so.1" : file);
      if (failure.empty()) {
        devices_ = list_devices(reason_);
      } else {
        reason_ = "the OpenCL ICD loader cannot be opened (" + failure +
                  "): install it (Debian: ocl-icd-libopencl1) and the OpenCL driver of the device, or PoCL (pocl-opencl-icd) for the CPU";
      }
    });
    return devices_;
  }

  std::once_flag once_;
  std::string reason_;
  std::vector<Listed> devices_;
};

}  // namespace

const sdk::BackendSpec& spec();
const sdk::BackendSpec& spec() {
  static constexpr sdk::BackendSpec opencl{
      .name = "opencl",
      .version = TENON_VERSION,
      .vendor = "Tenon",
      .description = "devices of any vendor: OpenCL 1.2 to 3.0, CLBlast",
      .requirements =
          "the OpenCL ICD loader (libOpenCL.so.1) and a driver for OpenCL 1.2 or later; for large products CLBlast (libclblast.so.1)",
      .priority = 10,
      .flags = 0,
      .options = options,
      .create = [](sdk::Host host) -> std::unique_ptr<sdk::Backend> { return std::make_unique<Backend>(host); },
  };
  return opencl;
}

}  // namespace tenon::opencl
