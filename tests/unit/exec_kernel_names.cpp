// SPDX-License-Identifier: Apache-2.0
// The kernels that a placement report names.
#include <tenon/functions.h>
#include <tenon/program.h>

#include <string>

#include "testing.h"

namespace tenon::test {
namespace {

TEST_CASE_FIXTURE(OnOpenblas, "placement: the kernel of a convolution is its own; changes of layout are named as what is inserted for it") {
  Graph graph;
  const Value x = graph.input("x", DType::f32, {2, 8, 12, 12});
  const Value w = graph.parameter("w", DType::f32, {16, 8, 3, 3});
  graph.output("y", ops::conv(x, w, {}));
  const Program program(context, graph);
  const PlacementReport& report = program.placement();
  REQUIRE(report.nodes.size() == 1);
  CHECK(report.nodes[0].algorithm == "Conv (inserted: Transpose before, Transpose after)");
  CHECK(report.kernels == 3);
}

TEST_CASE_FIXTURE(OnOpenblas, "placement: the name of a kernel that is too long for a record says that it is cut") {
  Graph graph;
  Value x = graph.input("x", DType::f32, {4, 8});
  for (int i = 0; i < 4; ++i) x = ops::reciprocal(ops::sigmoid(x));
  graph.output("y", x);
  const Program program(context, graph);
  const std::string& name = program.placement().nodes.back().algorithm;
  CHECK(name == "Sigmoid+Reciprocal+Sigmoid+Reciprocal+Sigmoi...");
  CHECK(name.size() == sizeof tenon_profile_record::algorithm - 1);
}

TEST_CASE_FIXTURE(OnOpenblas,
                  "placement: the kernel of elementwise ops of f16 is theirs, not inserted for the product that reads their result") {
  Graph graph;
  const Value x = graph.input("x", DType::f16, {32, 64}), b = graph.input("b", DType::f16, {64});
  graph.output("y", ops::softmax(ops::matmul(ops::sigmoid(x + b), graph.parameter("w", DType::f16, {64, 64})), 1));
  const Program program(context, graph);
  std::string names;
  for (const Placement& node : program.placement().nodes) {
    names += node.op + ": " + node.algorithm + "\n";
    if (node.op == "Sigmoid") CHECK(node.algorithm.find("Sigmoid") < node.algorithm.find("inserted"));
    if (node.op == "MatMul") CHECK(node.algorithm.find("Sigmoid") == std::string::npos);
  }
  CAPTURE(names);
  CHECK(names.find(": Cast\n") == std::string::npos);
}

}  // namespace
}  // namespace tenon::test
