#include "split.h"

#include <string>

namespace tenon::openblas {

void refuse_sizes(const char* routine, const Size* sizes, std::size_t count) {
  const Size* size = sizes;
  while (size + 1 < sizes + count && size->value <= largest_int && size->value >= -largest_int) ++size;
  throw sdk::Error(TENON_UNSUPPORTED, std::string(routine) + ": " + size->name + " is " + std::to_string(size->value) +
                                          ", the integers of this OpenBLAS reach " + std::to_string(largest_int) +
                                          "; split the product or use another backend");
}

}  // namespace tenon::openblas
