// SPDX-License-Identifier: Apache-2.0
#ifdef T_FLOATING
MAP_1(op_is_nan, uchar, T, a != a)
MAP_1(op_is_inf, uchar, T, isinf(a) != 0)
#else
MAP_2(op_logical_and, uchar, T, T, a && b)
MAP_2(op_logical_or, uchar, T, T, a || b)
MAP_2(op_logical_xor, uchar, T, T, !a != !b)
MAP_1(op_logical_not, uchar, T, !a)
#endif
