// instruction_set.h - which vector instructions the kernels use on this machine, chosen when a kernel runs.
#pragma once

#include <type_traits>

// Highway compiles a room once for each target left here. SSSE3 alone gains nothing over the portable code worth its compile time.
// A build with a sanitizer leaves more of them out (CMakeLists.txt).
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#endif

namespace tenon::openblas {

enum class InstructionSet { portable, sse4, avx2, avx512 };

/// The best one this machine has, or the limit if that is lower.
InstructionSet instruction_set();

/// "portable", "sse4", "avx2", "avx512": for the device's description.
const char* name_of(InstructionSet set);

/// No kernel that starts from now on uses more than this.
void limit_instruction_set(InstructionSet highest);

/// The candidate for instruction_set(). One that was not compiled is NULL, and the next lower takes its place.
template <class Function>
Function best_of(std::type_identity_t<Function> avx512, std::type_identity_t<Function> avx2, std::type_identity_t<Function> sse4,
                 Function portable) {
  const InstructionSet set = instruction_set();
  if (set >= InstructionSet::avx512 && avx512 != nullptr) return avx512;
  if (set >= InstructionSet::avx2 && avx2 != nullptr) return avx2;
  if (set >= InstructionSet::sse4 && sse4 != nullptr) return sse4;
  return portable;
}

}  // namespace tenon::openblas

/// The version of a function for this machine, when it stands in HWY_NAMESPACE of a file that foreach_target.h compiled several times.
/// Highway's own HWY_DYNAMIC_DISPATCH does the same through libhwy.so, which the backend then would need wherever it is copied to.
#define TENON_BEST(function)                                                                                  \
  ::tenon::openblas::best_of(HWY_CHOOSE_AVX3(function), HWY_CHOOSE_AVX2(function), HWY_CHOOSE_SSE4(function), \
                             &HWY_STATIC_DISPATCH(function))
