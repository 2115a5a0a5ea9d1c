// SPDX-License-Identifier: Apache-2.0
#include "quantize/integer_tiles.h"

#include "quantize/integer_tile_kernels.h"
#include "simd/instruction_set.h"
#include "simd/x86.h"

namespace tenon::openblas {

bool integer_tiles_take_offsets([[maybe_unused]] InstructionSet set, [[maybe_unused]] std::int64_t rows) {
#if TENON_X86
  return has_avx512_vnni(set) && has_amx_int8(set) && rows >= amx::tile_rows;
#else
  return false;
#endif
}

bool integer_tiles_take_lines([[maybe_unused]] InstructionSet set) {
#if TENON_X86
  return has_avx512_vnni(set) && !has_amx_int8(set);
#else
  return false;
#endif
}

void multiply_integer_tiles(const IntegerTiles& tiles) {
#if TENON_X86
  // These were chosen for the instructions that take them, which the caller's instance of the backend may use whatever another one may.
  if (tiles.y_offsets != nullptr) return amx::multiply_integer_tiles(tiles);
  if (tiles.line_rows != 0) return vnni::multiply_integer_tiles(tiles);
  if (has_avx512_vnni()) {
    return tiles.rows >= amx::tile_rows && has_amx_int8() ? amx::multiply_integer_tiles(tiles) : vnni::multiply_integer_tiles(tiles);
  }
  if (instruction_set() >= InstructionSet::avx2) return avx2::multiply_integer_tiles(tiles);
#endif
  portable::multiply_integer_tiles(tiles);
}

void requantise_row(const IntegerRequantisation& by, const std::int32_t* sums, std::int64_t n) {
#if TENON_X86
  if (has_avx512_vnni()) return vnni::requantise_row(by, sums, n);
  if (instruction_set() >= InstructionSet::avx2) return avx2::requantise_row(by, sums, n);
#endif
  portable::requantise_row(by, sums, n);
}

}  // namespace tenon::openblas
