// SPDX-License-Identifier: Apache-2.0
#include "../memory.h"

#include <windows.h>

namespace tenon::openblas_serial {

bool has_memory(std::size_t size_bytes) {
  void* const memory = VirtualAlloc(nullptr, size_bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
  if (memory == nullptr) return false;
  VirtualFree(memory, 0, MEM_RELEASE);
  return true;
}

}  // namespace tenon::openblas_serial
