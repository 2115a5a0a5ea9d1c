// SPDX-License-Identifier: Apache-2.0
// std::fma in place of MinGW's, which is not exact: the linker takes these functions because the SDK comes before the C library.
#include "../fma.h"

#if defined(__MINGW32__) && defined(__x86_64__)

namespace {

bool has_fma() {
  static const bool has = __builtin_cpu_supports("fma") != 0;
  return has;
}

}  // namespace

extern "C" double fma(double x, double y, double z) {
  if (!has_fma()) return tenon::sdk::fma_by_integers(x, y, z);
  asm("vfmadd213sd %2, %1, %0" : "+x"(x) : "x"(y), "x"(z));
  return x;
}

extern "C" float fmaf(float x, float y, float z) {
  if (!has_fma()) return tenon::sdk::fma_by_integers(x, y, z);
  asm("vfmadd213ss %2, %1, %0" : "+x"(x) : "x"(y), "x"(z));
  return x;
}

#endif
