// SPDX-License-Identifier: Apache-2.0
// The table that a plugin returns from `create`, and its devices, as the loader receives them.
#include "plugin.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tenon::fuzz::load_altered(tenon::fuzz::Part::table, data, size);
  return 0;
}
