// SPDX-License-Identifier: Apache-2.0
// unroll.h - TENON_UNROLL before a loop unrolls it completely, by GCC up to 64 iterations: an array of vectors stays in registers only if
// no index of it is variable. TENON_KEEP_LOOP before a loop keeps it from being unrolled, and so the order of its loads.
#pragma once

#if defined(__clang__)
#define TENON_UNROLL _Pragma("clang loop unroll(full)")
#define TENON_KEEP_LOOP _Pragma("clang loop unroll(disable)")
#else
#define TENON_UNROLL _Pragma("GCC unroll 64")
#define TENON_KEEP_LOOP _Pragma("GCC unroll 1")
#endif
