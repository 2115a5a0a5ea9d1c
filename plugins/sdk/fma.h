// SPDX-License-Identifier: Apache-2.0
// fma.h - x * y + z, rounded once, by integers: for processors and C libraries without it.
#pragma once

namespace tenon::sdk {

/// As std::fma rounds to nearest, for every operand. MinGW's std::fma adds in 64 bits and rounds that sum again, which changes last bits;
/// what links the SDK gets this function in its place, and the processor's instruction if there is one (windows/c_math.cpp). Random numbers
/// have the same bits on every system only if fma is exact.
double fma_by_integers(double x, double y, double z);
float fma_by_integers(float x, float y, float z);

}  // namespace tenon::sdk
