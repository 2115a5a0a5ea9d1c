// SPDX-License-Identifier: Apache-2.0
// instruction_set.h - the vector instructions that kernels use on this machine, chosen when a kernel runs.
#pragma once

#include <type_traits>

// Highway compiles a source file once for each target not disabled here. SSSE3 gains too little over the portable code to be worth its
// compile time. Sanitizer builds disable more targets (CMakeLists.txt).
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#endif

namespace tenon::openblas {

enum class InstructionSet { portable, sse4, avx2, avx512 };

/// The best instruction set of this machine, or the limit if that is lower.
InstructionSet instruction_set();

/// "portable", "sse4", "avx2" or "avx512", for the device's description.
const char* name_of(InstructionSet set);

/// Kernels that start from now on use at most this instruction set.
void limit_instruction_set(InstructionSet highest);

/// The candidate for instruction_set(). A candidate that was not compiled is NULL; the next lower one takes its place.
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

/// The version for this machine of a function in HWY_NAMESPACE of a file that foreach_target.h compiles several times.
/// Highway's HWY_DYNAMIC_DISPATCH does the same but needs libhwy.so, which would have to be shipped with the backend.
#define TENON_DISPATCH(function)                                                                              \
  ::tenon::openblas::best_of(HWY_CHOOSE_AVX3(function), HWY_CHOOSE_AVX2(function), HWY_CHOOSE_SSE4(function), \
                             &HWY_STATIC_DISPATCH(function))
