// backend.cpp - the backend's description and its device. The kernels are in ops/.
#include <tenon/sdk/backend.h>

namespace tenon::my_backend {

const sdk::BackendSpec& spec();
const sdk::BackendSpec& spec() {
  static constexpr sdk::BackendSpec own{
      .name = "my_backend",
      .version = TENON_VERSION,  // that of project() in CMakeLists.txt
      .vendor = "my_backend's author",
      .description = "a first backend: plain loops on the CPU",
      .requirements = nullptr,
      .priority = 10,
      .flags = 0,
      .options = {},
      // One CPU device that works inline. For another device derive from sdk::Backend and sdk::Device.
      .create = [](sdk::Host host) { return sdk::make_cpu_backend(host, "plain C++ loops"); },
  };
  return own;
}

}  // namespace tenon::my_backend
