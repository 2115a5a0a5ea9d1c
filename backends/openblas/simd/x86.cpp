// SPDX-License-Identifier: Apache-2.0
#include "simd/x86.h"

#include "simd/amx_permission.h"

#if TENON_X86
#include <cpuid.h>
#endif

namespace tenon::openblas {
namespace {

#if TENON_X86

/// Registers of a leaf of the instruction CPUID; 0 where the leaf does not exist.
struct Leaf {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;

  Leaf(unsigned leaf, unsigned subleaf) {
    if (__get_cpuid_count(leaf, subleaf, &eax, &ebx, &ecx, &edx) == 0) eax = ebx = ecx = edx = 0;
  }
};

X86Features detect() {
  X86Features found;
  const Leaf extensions(7, 0), more(7, 1);
  found.vnni = (extensions.ecx >> 11 & 1) != 0;
  found.bf16 = (more.eax >> 5 & 1) != 0;
  constexpr unsigned tiles = 1u << 24;
  if ((extensions.edx & tiles) == 0 || !request_amx_tiles()) return found;
  found.amx_int8 = (extensions.edx >> 25 & 1) != 0;
  found.amx_bf16 = (extensions.edx >> 22 & 1) != 0;
  return found;
}

#else

X86Features detect() {
  return {};
}

#endif

}  // namespace

const X86Features& x86_features() {
  static const X86Features found = detect();
  return found;
}

bool has_avx512_vnni(InstructionSet set) {
  return set >= InstructionSet::avx512_dot && x86_features().vnni;
}
bool has_avx512_bf16(InstructionSet set) {
  return set >= InstructionSet::avx512_dot && x86_features().bf16;
}
bool has_amx_int8(InstructionSet set) {
  return set >= InstructionSet::amx && x86_features().amx_int8;
}
bool has_amx_bf16(InstructionSet set) {
  return set >= InstructionSet::amx && x86_features().amx_bf16;
}

}  // namespace tenon::openblas
