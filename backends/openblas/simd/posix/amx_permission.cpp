// SPDX-License-Identifier: Apache-2.0
#include "simd/amx_permission.h"

#include <sys/syscall.h>
#include <unistd.h>

namespace tenon::openblas {

bool request_amx_tiles() {
#if defined(SYS_arch_prctl)                                    // Linux on x86
  constexpr long request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
#else
  return false;
#endif
}

}  // namespace tenon::openblas
