// ops/compare.cpp - comparisons, element by element, with NumPy broadcasting.
#include <tenon/functions.h>

#include "graph/op.h"

namespace tenon {
namespace graph {
namespace {

void infer(Inference& at) {
  at.want_inputs(2, 2);
  at.want_same_dtype(0, 1);
  at.output(DType::boolean, at.broadcast(0, 1));
}

}  // namespace

extern const OpRules rules_equal;
const OpRules rules_equal{"y = (a == b) as bool, shapes broadcast. NaN equals nothing; -0 equals 0.", infer};

}  // namespace graph

namespace ops {

Value equal(Value a, Value b) {
  return graph::apply_op(TENON_OP_Equal, {a, b});
}

}  // namespace ops
}  // namespace tenon
