// SPDX-License-Identifier: Apache-2.0
MAP_2(op_equal, uchar, T, T, a == b)
MAP_2(op_less, uchar, T, T, a < b)
MAP_2(op_less_equal, uchar, T, T, a <= b)
MAP_2(op_greater, uchar, T, T, a > b)
MAP_2(op_greater_equal, uchar, T, T, a >= b)
