// SPDX-License-Identifier: Apache-2.0
#include "split.h"

#include <string>

namespace tenon::openblas {

void refuse_sizes(const char* routine, const Size* sizes, std::size_t count) {
  const Size* size = sizes;
  while (size + 1 < sizes + count && size->value <= largest_int && size->value >= -largest_int) ++size;
  throw sdk::Error(TENON_UNSUPPORTED, std::string(routine) + ": expected " + size->name + " of at most " + std::to_string(largest_int) +
                                          " in magnitude (OpenBLAS has 32-bit integers), got " + std::to_string(size->value) +
                                          "; split the product or use another backend");
}

}  // namespace tenon::openblas
