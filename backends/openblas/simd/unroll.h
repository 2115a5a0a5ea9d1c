// SPDX-License-Identifier: Apache-2.0
// unroll.h - TENON_UNROLL before a loop unrolls it completely, by GCC up to 64 iterations: an array of vectors stays in registers only if
// no index of it is variable.
#pragma once

#if defined(__clang__)
#define TENON_UNROLL _Pragma("clang loop unroll(full)")
#else
#define TENON_UNROLL _Pragma("GCC unroll 64")
#endif
