// SPDX-License-Identifier: Apache-2.0
// tenon_backend_info, a plugin's description of itself, as the loader receives it.
#include "plugin.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tenon::fuzz::load_altered(tenon::fuzz::Part::query, data, size);
  return 0;
}
