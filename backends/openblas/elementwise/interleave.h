// SPDX-License-Identifier: Apache-2.0
// interleave.h - transposes of 2 to 4 lines, as those of the planes of an image to pixels, on the calling thread.
#pragma once

#include <cstdint>

namespace tenon::openblas {

inline constexpr std::int64_t max_interleaved_lines = 4;

/// y[i lines + j] = x[j x_step + i] for i < n, j < lines; lines is 2, 3 or 4.
void interleave_lines(const std::uint8_t* x, std::int64_t x_step, std::uint8_t* y, std::int64_t n, std::int64_t lines);
void interleave_lines(const std::uint16_t* x, std::int64_t x_step, std::uint16_t* y, std::int64_t n, std::int64_t lines);
void interleave_lines(const std::uint32_t* x, std::int64_t x_step, std::uint32_t* y, std::int64_t n, std::int64_t lines);

}  // namespace tenon::openblas
