// SPDX-License-Identifier: Apache-2.0
#include "../memory.h"

#include <sys/mman.h>

namespace tenon::openblas_serial {

bool has_memory(std::size_t size_bytes) {
  void* const memory = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  munmap(memory, size_bytes);
  return true;
}

}  // namespace tenon::openblas_serial
