// SPDX-License-Identifier: Apache-2.0
// Functions of the C library in place of MinGW's that are wrong: the linker takes these because the SDK comes before the C library.
//
// fma, fmaf  are not rounded once.
// sin, cos   and their like use the processor's fsin, whose pi has 66 bits: the last digits are wrong at 1e5, and nothing is right at
//            1e22. Those of msvcrt.dll, a part of Windows, are exact enough.
#include "../fma.h"

#if defined(__MINGW32__) && defined(__x86_64__)

extern "C" {
extern double (*const __imp_sin)(double);
extern double (*const __imp_cos)(double);
extern double (*const __imp_tan)(double);
}

namespace {

bool has_fma() {
  static const bool has = __builtin_cpu_supports("fma") != 0;
  return has;
}

}  // namespace

extern "C" {

double fma(double x, double y, double z) {
  if (!has_fma()) return tenon::sdk::fma_by_integers(x, y, z);
  asm("vfmadd213sd %2, %1, %0" : "+x"(x) : "x"(y), "x"(z));
  return x;
}
float fmaf(float x, float y, float z) {
  if (!has_fma()) return tenon::sdk::fma_by_integers(x, y, z);
  asm("vfmadd213ss %2, %1, %0" : "+x"(x) : "x"(y), "x"(z));
  return x;
}

double sin(double x) {
  return __imp_sin(x);
}
double cos(double x) {
  return __imp_cos(x);
}
float sinf(float x) {
  return static_cast<float>(__imp_sin(static_cast<double>(x)));
}
float cosf(float x) {
  return static_cast<float>(__imp_cos(static_cast<double>(x)));
}
float tanf(float x) {
  return static_cast<float>(__imp_tan(static_cast<double>(x)));
}
// What the compiler makes of a sine and a cosine of the same number.
void sincos(double x, double* out_sine, double* out_cosine) {
  *out_sine = __imp_sin(x);
  *out_cosine = __imp_cos(x);
}
void sincosf(float x, float* out_sine, float* out_cosine) {
  *out_sine = sinf(x);
  *out_cosine = cosf(x);
}
}

#endif
