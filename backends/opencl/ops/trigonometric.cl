// SPDX-License-Identifier: Apache-2.0
MAP_1(op_sin, T, T, sin(a))
MAP_1(op_cos, T, T, cos(a))
MAP_1(op_atan, T, T, atan(a))
