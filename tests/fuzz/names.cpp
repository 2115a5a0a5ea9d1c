// SPDX-License-Identifier: Apache-2.0
// Device names and dtype names, as users type them.
#include <tenon/device_name.h>
#include <tenon/dtype.h>

#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tenon;
  using namespace tenon::fuzz;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  DeviceName name;
  if (accepts([&] { name = parse_device_name(text); })) {
    demand(name.typed == text, "a name remembers how it was typed");
    demand(parse_device_name(name.str()).str() == name.str(), "the canonical form of a name is its own");
    const AvailableDevice devices[] = {{"cuda", 0, DeviceKind::gpu}, {"openblas", 0, DeviceKind::cpu}, {"openblas", 1, DeviceKind::cpu}};
    std::size_t position = 0;
    if (accepts([&] { position = find_device(name, devices); })) demand(position < 3, "a device that is found exists");
  }
  if (const auto dtype = dtype_from(text)) demand(dtype_from(name_of(*dtype)) == dtype, "a dtype is what its name says");
  return 0;
}
