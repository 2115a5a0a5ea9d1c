// SPDX-License-Identifier: Apache-2.0
// Signed integers wrap: they are added as unsigned ones of their width.
#ifdef T_FLOATING
#define WRAP(a) (a)
MAP_2(op_div, T, T, T, a / b)
MAP_2(op_pow, T, T, T, pow(a, b))
#else
#define WRAP(a) ((UNSIGNED)(a))
static inline T quotient(T a, T b, FAULT) {
  if (b == 0) {
    RAISE(FAULT_ZERO_DIVISOR, 0, 0, 0, 0)
    return 0;
  }
  return b == -1 ? (T)-WRAP(a) : a / b;
}
#define FAULT_PARAMETERS , FAULT
MAP_2(op_div, T, T, T, quotient(a, b, fault_record, fault_op, fault_node), FAULT_PARAMETERS)
#endif
MAP_2(op_add, T, T, T, (T)(WRAP(a) + WRAP(b)))
MAP_2(op_sub, T, T, T, (T)(WRAP(a) - WRAP(b)))
MAP_2(op_mul, T, T, T, (T)(WRAP(a) * WRAP(b)))
// NaN wins; the first of equals.
MAP_2(op_maximum, T, T, T, a != a ? a : b != b ? b : b > a ? b : a)
MAP_2(op_minimum, T, T, T, a != a ? a : b != b ? b : b < a ? b : a)
