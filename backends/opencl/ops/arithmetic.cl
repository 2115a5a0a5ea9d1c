// SPDX-License-Identifier: Apache-2.0
#define CLIP_PARAMETERS , const T low, const T high
MAP_1(op_sign, T, T, a > 0 ? (T)1 : a < 0 ? (T)-1 : a)
MAP_1(op_clip, T, T, (a < low ? low : a) > high ? high : a < low ? low : a, CLIP_PARAMETERS)  // NaN stays; low > high gives high
#ifdef T_FLOATING
MAP_1(op_abs, T, T, fabs(a))
MAP_1(op_ceil, T, T, ceil(a))
MAP_1(op_floor, T, T, floor(a))
MAP_1(op_round, T, T, rint(a))  // ties to even
MAP_1(op_sqrt, T, T, sqrt(a))
MAP_1(op_rsqrt, T, T, 1 / sqrt(a))
MAP_1(op_reciprocal, T, T, 1 / a)
#else
MAP_1(op_abs, T, T, a < 0 ? (T)-(UNSIGNED)a : a)
#endif
