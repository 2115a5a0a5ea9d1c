// SPDX-License-Identifier: Apache-2.0
// Scales and shifts after layers of exported models move to the weights.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "patterns_testing.h"

using namespace tenon;
using namespace tenon::test;

namespace {

using Layer = std::function<Value(Graph&)>;

Value conv_layer(Graph& g) {
  return ops::conv(g.input("x", DType::f32, {2, 4, 5, 5}), parameter(g, "w", {6, 2, 3, 3}), parameter(g, "b", {6}), {{}, 2});
}
Value transposed_conv_layer(Graph& g) {
  ops::ConvOptions options;
  options.groups = 2;
  options.strides = {2, 2};
  return ops::conv_transpose(g.input("x", DType::f32, {2, 4, 3, 3}), parameter(g, "w", {4, 3, 3, 3}), {}, options);
}
Value gemm_layer(Graph& g) {
  return ops::gemm(g.input("x", DType::f32, {5, 4}), parameter(g, "w", {6, 4}), parameter(g, "b", {6}),
                   {.trans_a = false, .trans_b = true, .alpha = 0.5, .beta = 2});
}
Value product_layer(Graph& g) {
  return ops::matmul(g.input("x", DType::f32, {5, 4}), parameter(g, "w", {4, 6}));
}

}  // namespace

TEST_CASE("patterns: scales and shifts after convolutions move to the weights") {
  const Shape shape{1, 6, 1, 1};
  for (const Layer& layer : {Layer(conv_layer), Layer(transposed_conv_layer)}) {
    const Recognition scaled = recognition_of([&](Graph& g) { return ops::relu(layer(g) * parameter(g, "scale", shape)); });
    CHECK(scaled.found == "Scale 1");
    CHECK(found_in([&](Graph& g) { return layer(g) / parameter(g, "divisor", {6, 1, 1}); }) == "Scale 1");
    CHECK(found_in([&](Graph& g) { return layer(g) * 0.25; }) == "Scale 1");
    CHECK(found_in([&](Graph& g) { return parameter(g, "bias", shape) + layer(g); }) == "Bias 1");
    CHECK(found_in([&](Graph& g) { return layer(g) - 0.25; }) == "Bias 1");
    // a batch norm in pieces
    const Recognition norm = recognition_of([&](Graph& g) {
      const Value centred = layer(g) - parameter(g, "mean", shape);
      const Value y = centred / ops::sqrt(parameter(g, "variance", shape) + 1e-3) * parameter(g, "scale", shape);
      return ops::tanh(y + parameter(g, "bias", shape));
    });
    CHECK(norm.found == "Bias 2, Scale 2");
    const std::string last = ops_of(norm.graph, norm.graph.nodes().size() - 2);
    CHECK((last == "Conv Tanh" || last == "ConvTranspose Tanh"));
  }
}

TEST_CASE("patterns: BatchNormalization after layers other than Conv moves to the weights") {
  const auto normalised = [](Graph& g, Value y) {
    return ops::batch_norm(y, parameter(g, "scale", {6}), parameter(g, "bias", {6}), parameter(g, "mean", {6}),
                           parameter(g, "variance", {6}));
  };
  for (const Layer& layer : {Layer(transposed_conv_layer), Layer(gemm_layer), Layer(product_layer)}) {
    const Recognition found = recognition_of([&](Graph& g) { return normalised(g, layer(g)); });
    CHECK(found.found == "BatchNormalization 1");
    CHECK_FALSE(contains(found.ops, "BatchNormalization"));
  }
  CHECK(found_in([&](Graph& g) { return normalised(g, conv_layer(g)); }) == "nothing");  // graph::fold_batch_norm does it
  CHECK(found_in([&](Graph& g) { return normalised(g, conv_layer(g) + parameter(g, "shift", {6, 1, 1})); }) == "BatchNormalization 1");
}

TEST_CASE("patterns: scales that change, that differ within a channel, or of layers with other readers stay") {
  const auto kept = [](const Build& build) { return found_in(build) == "nothing"; };
  CHECK(kept([](Graph& g) { return conv_layer(g) * g.input("scale", DType::f32, {6, 1, 1}); }));
  CHECK(kept([](Graph& g) { return conv_layer(g) * parameter(g, "scale", {3, 3}); }));
  CHECK(kept([](Graph& g) { return conv_layer(g) + parameter(g, "bias", {2, 6, 1, 1}); }));
  CHECK(kept([](Graph& g) { return ops::div(parameter(g, "scale", {6, 1, 1}), conv_layer(g)); }));
  CHECK(kept([](Graph& g) { return product_layer(g) * parameter(g, "scale", {6}); }));  // large weights
  CHECK(kept([](Graph& g) { return product_layer(g) + parameter(g, "bias", {6}); }));   // backends add it
  CHECK(kept([](Graph& g) {                                                             // weights that change
    const Value x = g.input("x", DType::f32, {2, 4, 5, 5}), w = g.input("w", DType::f32, {6, 4, 3, 3});
    return ops::conv(x, w) * parameter(g, "scale", {6, 1, 1});
  }));
  Graph read;
  const Value y = conv_layer(read);
  read.output("y", y * parameter(read, "scale", {6, 1, 1}));
  read.output("z", y);
  CHECK(recognition_of(read).found == "nothing");
}

TEST_CASE("patterns: weights of graphs that update parameters are not scaled") {
  Graph g;
  const Value y = conv_layer(g) * parameter(g, "scale", {6, 1, 1});
  const Value w = parameter(g, "other", {2, 6, 3, 3});
  g.output("y", y);
  g.update(w, ops::tanh(y));
  graph::PatternCounts counts;
  CHECK(ops_of(graph::recognize_patterns(g, &counts)) == "Conv Mul Tanh");
  CHECK(graph::str(counts) == "recognized: nothing");
}
