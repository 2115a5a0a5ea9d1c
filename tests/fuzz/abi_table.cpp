// What a plugin hands over at `create`, and what its table says of devices, as the loader receives it.
#include "plugin.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tenon::fuzz::load_bent(tenon::fuzz::Part::table, data, size);
  return 0;
}
