// SPDX-License-Identifier: Apache-2.0
// The oracle: plain loops in double precision, written for readability. Other backends are tested against it.
#include <tenon/sdk/backend.h>

namespace tenon::reference {

const sdk::BackendSpec& spec();
const sdk::BackendSpec& spec() {
  static constexpr sdk::BackendSpec reference{
      .name = "reference",
      .version = TENON_VERSION,
      .vendor = "Tenon",
      .description = "plain loops with f64 accumulation: slow; the oracle that other backends are compared with",
      .requirements = nullptr,
      .priority = 0,
      .flags = TENON_BACKEND_ORACLE,
      .options = {},
      .create = [](sdk::Host host) { return sdk::make_cpu_backend(host, "plain C++ loops"); },
  };
  return reference;
}

}  // namespace tenon::reference
