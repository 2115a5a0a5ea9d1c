// SPDX-License-Identifier: Apache-2.0
// instruction_set.h - the vector instructions that kernels use on this machine, chosen when a kernel runs.
#pragma once

#include <cstdint>
#include <type_traits>

// Highway compiles a source file once for each target not disabled here. SSSE3 gains too little over the portable code to be worth its
// compile time. On 64-bit Arm NEON alone is left, which every processor has: vectors of SVE have no size that the compiler knows, and
// kernels keep blocks of vectors in arrays and members. Sanitizer builds disable more targets (CMakeLists.txt).
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#endif
#include <hwy/detect_targets.h>

namespace tenon::sdk {
class Host;
}

namespace tenon::openblas {

/// Each includes those before it. portable: what the compiler may use anyway, NEON on 64-bit Arm. avx512_dot: dot products of 8-bit
/// integers (VNNI) or bf16, of which a processor may have one only (x86.h).
enum class InstructionSet { portable, sse4, avx2, avx512, avx512_dot, amx };

/// The best instruction set of this machine, or the limit if that is lower.
InstructionSet instruction_set();

/// "portable" (on 64-bit Arm "neon"), "sse4", ..., as in the enumeration.
const char* name_of(InstructionSet set);

/// The names, best first, after "auto" for no limit: "auto|amx|...|sse4".
extern const char* const instruction_set_choices;

/// The best instruction set of this machine that the option `isa` of this instance of the backend allows. instruction_set() changes when
/// another instance is created; this does not, so what a call and its plan have to agree on depends on it: the order of packed weights and
/// the size of scratch memory.
InstructionSet instruction_set_of(const sdk::Host& host);

/// Kernels of this process that start from now on use at most this instruction set.
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

// TENON_DISPATCH(kernel) is a pointer to the version for this machine of a function in HWY_NAMESPACE of a file that is compiled once per
// instruction set (foreach_target.h). The kernel may be a template with arguments, which are looked up in the same namespace: with
// `template <class F, class T> void map(...)` and `struct Abs` there, TENON_DISPATCH(map<Abs, T>) is the best map<Abs, T>.
//
// Highway's HWY_DYNAMIC_DISPATCH does the same for plain functions, but needs libhwy.so, which would have to be shipped with the backend.
#define TENON_DISPATCH(...)                                                                                        \
  ::tenon::openblas::best_of(TENON_IN_AVX512(__VA_ARGS__), TENON_IN_AVX2(__VA_ARGS__), TENON_IN_SSE4(__VA_ARGS__), \
                             TENON_IN_NAMESPACE(HWY_NAMESPACE, __VA_ARGS__))

#define TENON_IN_NAMESPACE(target, ...) \
  [] {                                  \
    using namespace target;             \
    return &__VA_ARGS__;                \
  }()
#if HWY_TARGETS & HWY_AVX3
#define TENON_IN_AVX512(...) TENON_IN_NAMESPACE(N_AVX3, __VA_ARGS__)
#else
#define TENON_IN_AVX512(...) nullptr
#endif
#if HWY_TARGETS & HWY_AVX2
#define TENON_IN_AVX2(...) TENON_IN_NAMESPACE(N_AVX2, __VA_ARGS__)
#else
#define TENON_IN_AVX2(...) nullptr
#endif
#if HWY_TARGETS & HWY_SSE4
#define TENON_IN_SSE4(...) TENON_IN_NAMESPACE(N_SSE4, __VA_ARGS__)
#else
#define TENON_IN_SSE4(...) nullptr
#endif

// Instantiates a function template that a header declares, so that other files can call it.
#define TENON_INSTANTIATE(function, T) template decltype(function<T>) function<T>;
#define TENON_INSTANTIATE_FLOATS(function) TENON_INSTANTIATE(function, float) TENON_INSTANTIATE(function, double)
#define TENON_INSTANTIATE_INTEGERS(function) TENON_INSTANTIATE(function, std::int32_t) TENON_INSTANTIATE(function, std::int64_t)
