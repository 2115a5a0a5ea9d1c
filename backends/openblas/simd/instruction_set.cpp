// SPDX-License-Identifier: Apache-2.0
#include "simd/instruction_set.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <string_view>

#include <tenon/sdk/host.h>

#include "simd/x86.h"

namespace tenon::openblas {
namespace {

/// Tests for the features that Highway's targets of the same names need. The compiler's query also covers the operating system's support.
InstructionSet detect() {
#if defined(__x86_64__) && defined(__GNUC__)
  __builtin_cpu_init();
  const bool sse4 = __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul") &&
                    __builtin_cpu_supports("aes");
  // Every processor with AVX2 and FMA also has F16C, which not every compiler can query.
  const bool avx2 = sse4 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
                    __builtin_cpu_supports("bmi2");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
  const X86Features more = avx512 ? x86_features() : X86Features();
  if (more.amx_int8 || more.amx_bf16) return InstructionSet::amx;
  if (more.vnni || more.bf16) return InstructionSet::avx512_dot;
  if (avx512) return InstructionSet::avx512;
  if (avx2) return InstructionSet::avx2;
  if (sse4) return InstructionSet::sse4;
#endif
  return InstructionSet::portable;
}

#if HWY_TARGETS & HWY_NEON
constexpr const char* portable = "neon";
#else
constexpr const char* portable = "portable";
#endif
constexpr const char* names[] = {portable, "sse4", "avx2", "avx512", "avx512_dot", "amx"};

/// The set of a name; the best of all for any other text, such as "auto".
InstructionSet instruction_set_named(std::string_view name) {
  const auto* const found = std::find(std::begin(names), std::end(names), name);
  return found == std::end(names) ? InstructionSet::amx : static_cast<InstructionSet>(found - names);
}

InstructionSet best() {
  static const InstructionSet set = detect();
  return set;
}

std::atomic<InstructionSet>& chosen() {
  static std::atomic<InstructionSet> set{best()};
  return set;
}

}  // namespace

const char* const instruction_set_choices = "auto|amx|avx512_dot|avx512|avx2|sse4";

InstructionSet instruction_set() {
  return chosen().load(std::memory_order_relaxed);
}

InstructionSet instruction_set_of(const sdk::Host& host) {
  const char* const isa = host.option("isa");
  return isa == nullptr ? best() : std::min(instruction_set_named(isa), best());
}

const char* name_of(InstructionSet set) {
  return names[static_cast<std::size_t>(set)];
}

void limit_instruction_set(InstructionSet highest) {
  chosen().store(std::min(highest, best()), std::memory_order_relaxed);
}

}  // namespace tenon::openblas
