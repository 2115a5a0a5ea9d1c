// SPDX-License-Identifier: Apache-2.0
#include "graph/collectives.h"

#include <tenon/communicator.h>
#include <tenon/error.h>
#include <tenon/functions.h>

namespace tenon {
namespace graph {
namespace {

void infer(Inference& at) {
  at.expect_inputs(at.input_count(), at.input_count());
  for (std::size_t i = 0; i < at.input_count(); ++i) {
    at.expect_number(i);
    at.expect_same_dtype(0, i);
    at.output(at.dtype(i), at.shape(i));
  }
}

/// Each rank's loss depends on this rank's operand by way of every rank's sum.
void gradient(Gradient& at) {
  std::vector<Value> dy;
  for (std::size_t i = 0; i < at.output_count(); ++i) {
    dy.push_back(at.dy(i).present() ? at.dy(i) : at.graph.constant(Tensor::zeros(at.output(i).dtype(), at.output(i).shape())));
  }
  const std::vector<Value> sums = ops::all_reduce(dy);
  for (std::size_t i = 0; i < sums.size(); ++i) at.set(i, sums[i]);
}

}  // namespace

const OpLine line_all_reduce{.op = op_all_reduce,
                             .name = "AllReduce",
                             .version = 1,
                             .stem = "all_reduce",
                             .type_operand = 0,
                             .attributes = "none",
                             .attributes_size = sizeof(tenon_attributes_none),
                             .schema = "(x:T)* -> (y:T)*"};
const OpRules rules_all_reduce{"Each y is the sum of x over the ranks of the program's communicator.", infer, PrecisionClass::fp32,
                               per_element<1>, gradient};

}  // namespace graph

namespace ops {

std::vector<Value> all_reduce(const std::vector<Value>& values) {
  if (values.empty() || !values[0].present()) throw Error("all_reduce: expected at least one value, got none");
  return values[0].graph().apply(graph::op_all_reduce, values);
}

}  // namespace ops
}  // namespace tenon
