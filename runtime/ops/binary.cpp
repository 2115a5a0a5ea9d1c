// ops/binary.cpp - two operands, element by element, with NumPy broadcasting.
#include <tenon/functions.h>

#include "graph/op.h"

namespace tenon {
namespace graph {
namespace {

void infer(Inference& at) {
  at.want_inputs(2, 2);
  at.want_same_dtype(0, 1);
  at.want_number(0);
  at.output(at.dtype(0), at.broadcast(0, 1));
}

/// Sets operand i's gradient from one in the shape of the result.
void set(Gradient& at, std::size_t i, Value gradient) {
  at.set(i, unbroadcast(gradient, at.input(i).shape()));
}

void add_gradient(Gradient& at) {
  for (std::size_t i : {0u, 1u}) {
    if (at.wants(i)) set(at, i, at.dy());
  }
}

void sub_gradient(Gradient& at) {
  if (at.wants(0)) set(at, 0, at.dy());
  // negated after the sum: fewer elements
  if (at.wants(1)) at.set(1, ops::neg(unbroadcast(at.dy(), at.input(1).shape())));
}

void mul_gradient(Gradient& at) {
  if (at.wants(0)) set(at, 0, ops::mul(at.dy(), at.input(1)));
  if (at.wants(1)) set(at, 1, ops::mul(at.dy(), at.input(0)));
}

/// d(a/b) = da / b - y db / b
void div_gradient(Gradient& at) {
  const Value scaled = ops::div(at.dy(), at.input(1));
  if (at.wants(0)) set(at, 0, scaled);
  if (at.wants(1)) at.set(1, ops::neg(unbroadcast(ops::mul(scaled, at.output(0)), at.input(1).shape())));
}

}  // namespace

extern const OpRules rules_add, rules_sub, rules_mul, rules_div;
const OpRules rules_add{"y = a + b, shapes broadcast.", infer, add_gradient};
const OpRules rules_sub{"y = a - b, shapes broadcast.", infer, sub_gradient};
const OpRules rules_mul{"y = a * b, shapes broadcast.", infer, mul_gradient};
const OpRules rules_div{"y = a / b, shapes broadcast. Floats divide by zero as IEEE 754 says.", infer, div_gradient};

}  // namespace graph

namespace ops {

Value add(Value a, Value b) {
  return graph::apply_op(TENON_OP_Add, {a, b});
}
Value sub(Value a, Value b) {
  return graph::apply_op(TENON_OP_Sub, {a, b});
}
Value mul(Value a, Value b) {
  return graph::apply_op(TENON_OP_Mul, {a, b});
}
Value div(Value a, Value b) {
  return graph::apply_op(TENON_OP_Div, {a, b});
}
Value add(Value a, double b) {
  return add(a, graph::scalar(a.graph(), a.dtype(), b));
}
Value mul(Value a, double b) {
  return mul(a, graph::scalar(a.graph(), a.dtype(), b));
}

}  // namespace ops
}  // namespace tenon
