// SPDX-License-Identifier: Apache-2.0
// processor.cpp - gives processors that OpenBLAS does not know the kernels of the closest one that it knows.
//
// OpenBLAS recognises processors by their model numbers, of which each release has a list. A newer one gets the kernels of Prescott, which
// are for SSE3: a fraction of the speed, without a message. Where that happens to a processor with AVX2 or AVX-512, OpenBLAS chooses again,
// and finds a name in OPENBLAS_CORETYPE that the environment does not have. The linker's --wrap (see FindOpenBLASSerial.cmake) sends both
// the choice, which runs when the library is loaded, and the question for that variable through here. A value that the user has set stays.
#include <cstring>

namespace {

const char* chosen = nullptr;  ///< changes only while the library is being loaded

/// The core whose kernels this processor can run, as OPENBLAS_CORETYPE names it; NULL: none is better than Prescott.
const char* closest_core() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd")) {
    return "SkylakeX";
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "Haswell";
#endif
  return nullptr;
}

constexpr const char* variable = "OPENBLAS_CORETYPE";

}  // namespace

extern "C" {
char* __real_getenv(const char* name);
char* __wrap_getenv(const char* name);
char* openblas_get_corename();
void gotoblas_dynamic_quit();
void __real_gotoblas_dynamic_init();
void __wrap_gotoblas_dynamic_init();

char* __wrap_getenv(const char* name) {
  char* const set = __real_getenv(name);
  return set == nullptr && chosen != nullptr && std::strcmp(name, variable) == 0 ? const_cast<char*>(chosen) : set;
}

void __wrap_gotoblas_dynamic_init() {
  __real_gotoblas_dynamic_init();
  if (std::strcmp(openblas_get_corename(), "Prescott") != 0 || __real_getenv(variable) != nullptr) return;
  chosen = closest_core();
  if (chosen == nullptr) return;
  gotoblas_dynamic_quit();
  __real_gotoblas_dynamic_init();
}
}
