// SPDX-License-Identifier: Apache-2.0
#include "graph/collectives.h"

#include <fmt/core.h>
#include <tenon/communicator.h>
#include <tenon/error.h>
#include <tenon/functions.h>

namespace tenon {
namespace graph {
namespace {

/// Each result has the type of its operand.
void infer(Inference& at) {
  at.expect_inputs(at.input_count(), at.input_count());
  for (std::size_t i = 0; i < at.input_count(); ++i) {
    at.expect_same_dtype(0, i);
    at.output(at.dtype(i), at.shape(i));
  }
}

void infer_sums(Inference& at) {
  for (std::size_t i = 0; i < at.input_count(); ++i) at.expect_number(i);
  infer(at);
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
const OpRules rules_all_reduce{"Each y is the sum of x over the ranks of the program's communicator.", infer_sums, PrecisionClass::fp32,
                               per_element<1>, gradient};

const OpLine line_broadcast{.op = op_broadcast,
                            .name = "Broadcast",
                            .version = 1,
                            .stem = "broadcast",
                            .type_operand = 0,
                            .attributes = "broadcast",
                            .attributes_size = sizeof(BroadcastAttributes),
                            .schema = "(x:T)* -> (y:T)*"};
const OpRules rules_broadcast{"Each y is the x of the rank `root` of the program's communicator.", infer, PrecisionClass::fp32,
                              per_element<0>};

}  // namespace graph

namespace ops {

std::vector<Value> all_reduce(const std::vector<Value>& values) {
  if (values.empty() || !values[0].present()) throw Error("all_reduce: expected at least one value, got none");
  return values[0].graph().apply(graph::op_all_reduce, values);
}

std::vector<Value> broadcast(const std::vector<Value>& values, int root) {
  if (values.empty() || !values[0].present()) throw Error("broadcast: expected at least one value, got none");
  if (root < 0) throw Error(fmt::format("broadcast: expected the root to be a rank from 0 on, got {}", root));
  return values[0].graph().apply(graph::op_broadcast, values,
                                 Attributes::of(graph::BroadcastAttributes{.root = static_cast<std::uint32_t>(root)}));
}

}  // namespace ops
}  // namespace tenon
