// What a plugin says of itself, tenon_backend_info, as the loader receives it.
#include "plugin.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tenon::fuzz::load_bent(tenon::fuzz::Part::query, data, size);
  return 0;
}
