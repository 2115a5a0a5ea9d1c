// SPDX-License-Identifier: Apache-2.0
MAP_1(op_exp, T, T, exp(a))
MAP_1(op_expm1, T, T, expm1(a))
MAP_1(op_log, T, T, log(a))
MAP_1(op_log2, T, T, log2(a))
MAP_1(op_log1p, T, T, log1p(a))
MAP_1(op_erf, T, T, erf(a))
