// SPDX-License-Identifier: Apache-2.0
// x86.h - for kernels of x86 that are written with intrinsics: functions for one instruction set, and what this processor has beyond the
// instruction sets of instruction_set.h.
#pragma once

#include "simd/instruction_set.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define TENON_X86 1
#include <immintrin.h>

#include <cstdint>
#else
#define TENON_X86 0
#endif

// Functions between TENON_BEGIN_TARGET("avx2,fma") and TENON_END_TARGET may use those instructions. They run only where the processor has
// them. GCC 12 warns of the vectors that its intrinsics leave undefined.
#define TENON_PRAGMA(...) _Pragma(#__VA_ARGS__)
#if TENON_X86 && defined(__clang__)
#define TENON_BEGIN_TARGET(names) TENON_PRAGMA(clang attribute push(__attribute__((target(names))), apply_to = function))
#define TENON_END_TARGET TENON_PRAGMA(clang attribute pop)
#elif TENON_X86
#define TENON_BEGIN_TARGET(names)   \
  TENON_PRAGMA(GCC push_options)    \
  TENON_PRAGMA(GCC target(names))   \
  TENON_PRAGMA(GCC diagnostic push) \
  TENON_PRAGMA(GCC diagnostic ignored "-Wuninitialized") TENON_PRAGMA(GCC diagnostic ignored "-Wmaybe-uninitialized")
#define TENON_END_TARGET TENON_PRAGMA(GCC diagnostic pop) TENON_PRAGMA(GCC pop_options)
#endif

namespace tenon::openblas {

/// What the processor has beyond AVX-512, whatever the limit. Nothing elsewhere than on x86.
struct X86Features {
  bool vnni = false, bf16 = false, amx_int8 = false, amx_bf16 = false;
};
/// Systems grant a process the tile registers of Intel AMX on request (simd/amx_permission.h), which the first call makes.
const X86Features& x86_features();

/// Whether kernels that are limited to `set` may use these instructions, and the processor has them.
bool has_avx512_vnni(InstructionSet set = instruction_set());
bool has_avx512_bf16(InstructionSet set = instruction_set());
bool has_amx_int8(InstructionSet set = instruction_set());
bool has_amx_bf16(InstructionSet set = instruction_set());

#if TENON_X86

/// The shapes of the tile registers, by default 16 rows of 64 bytes.
struct alignas(64) AmxTileConfig {
  unsigned char palette = 1, start_row = 0, reserved[14] = {};
  unsigned short bytes_per_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  unsigned char rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// Instead of GCC's intrinsics, which do not say what they read: of the configuration 8 bytes, of a tile's rows nothing, so that stores may
// be moved behind them. They also take the distance between rows as a long, which has 32 bits on Windows.
inline void load_tile_config(const AmxTileConfig& config) {
  asm volatile("ldtilecfg %0" : : "m"(config));
}
/// Tile register `tile`; its rows are `row_bytes` apart in memory, 0 if all are the first.
template <int tile>
inline void load_tile(const void* rows, std::int64_t row_bytes) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(rows), "r"(row_bytes), "i"(tile) : "memory");
}
template <int tile>
inline void store_tile(void* rows, std::int64_t row_bytes) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(rows), "r"(row_bytes), "i"(tile) : "memory");
}

#endif

}  // namespace tenon::openblas
