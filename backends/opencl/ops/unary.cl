// SPDX-License-Identifier: Apache-2.0
MAP_1(op_neg, T, T, -a)
#ifdef T_FLOATING
MAP_1(op_relu, T, T, a <= 0 ? (T)0 : a)  // NaN stays, relu(-0) is 0
MAP_2(op_relu_grad, T, T, T, b > 0 ? a : b != b ? b : (T)0)
MAP_1(op_sigmoid, T, T, sigmoid_of(a))
MAP_2(op_sigmoid_grad, T, T, T, a * b * (1 - b))
MAP_1(op_tanh, T, T, tanh(a))
MAP_2(op_tanh_grad, T, T, T, a * ((1 - b) * (1 + b)))
#endif
