// SPDX-License-Identifier: Apache-2.0
// Expressions of exported models become ops: in each of their forms, with the same results and gradients, and near misses stay.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numbers>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "graph/passes.h"
#include "graph/patterns/recognize.h"
#include "graph_testing.h"

using namespace tenon;
using namespace tenon::test;

namespace {

const Context& context() {
  static const Context on_reference{test_config()};
  return on_reference;
}

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Elements of an input or parameter: the same for the same name. Variances and divisors are positive.
Tensor elements_of(const ValueInfo& value) {
  double seed = 0;
  for (const char c : value.name) seed = seed * 1.3 + c;
  const bool positive = value.name == "variance" || value.name == "divisor";
  std::vector<double> elements(static_cast<std::size_t>(value.shape.count()));
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const double wave = std::sin(static_cast<double>(i) * 1.7 + seed);
    elements[i] = value.dtype == DType::boolean ? (i % 3 != 1 ? 1 : 0) : positive ? 1.5 + wave : wave + 0.1;
  }
  return Tensor::of(elements, value.shape).to(value.dtype);
}

std::vector<Tensor> results_of(const Graph& graph) {
  Program program(context(), graph);
  std::vector<Tensor> inputs;
  for (const ValueInfo& value : graph.values()) {
    if (value.kind == ValueKind::input) inputs.push_back(elements_of(value));
    if (value.kind == ValueKind::parameter && program.parameters()->has(value.name)) {
      program.parameters()->set(value.name, elements_of(value));
    }
  }
  std::vector<Tensor> results;
  for (const Tensor& result : program.run(inputs)) results.push_back(result.to_host());
  return results;
}

/// With the gradients of the sum of squares of all outputs.
Graph with_gradients(Graph graph) {
  std::vector<Value> sources;
  for (ValueId v = 0; v < graph.values().size(); ++v) {
    const ValueInfo& info = graph.info(v);
    const bool is_bound = info.kind == ValueKind::input || info.kind == ValueKind::parameter;
    if (is_bound && is_floating(info.dtype)) sources.emplace_back(&graph, v);
  }
  Value loss;
  for (const GraphOutput& output : std::vector<GraphOutput>(graph.outputs())) {
    const Value part = ops::reduce_sum(ops::square(Value(&graph, output.value)));
    loss = loss.present() ? ops::add(loss, part) : part;
  }
  const std::vector<Value> slopes = gradients(loss, sources);
  for (std::size_t i = 0; i < slopes.size(); ++i) graph.output("d " + sources[i].name(), slopes[i]);
  return graph;
}

/// Gradients are sums of terms of different signs, some of which cancel: their rounding errors are relative to the largest results.
void check_close(const std::vector<Tensor>& expected, const std::vector<Tensor>& got, double tolerance) {
  REQUIRE(expected.size() == got.size());
  double largest = 1;
  for (const Tensor& tensor : expected) {
    const Tensor host = tensor.to_host().to(DType::f64);
    for (const double element : host.to_vector<double>())
      largest = std::isfinite(element) ? std::max(largest, std::fabs(element)) : largest;
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    CHECK(all_close(got[i], expected[i], tolerance, tolerance * largest));
  }
}

/// What a pass over a graph has found; checks that results and gradients stay what they are.
struct Recognition {
  Graph graph;
  std::string found;  ///< "Gelu 1"
  std::string ops;
};
Recognition recognition_of(const Graph& before) {
  graph::PatternCounts counts;
  Graph after = graph::recognize_patterns(before, &counts);
  check_close(results_of(before), results_of(after), 1e-5);
  check_close(results_of(with_gradients(before)), results_of(with_gradients(after)), 1e-4);
  std::string ops = ops_of(after);
  return {std::move(after), graph::str(counts).substr(std::string("recognized: ").size()), std::move(ops)};
}

/// Builds the output y of a graph.
using Build = std::function<Value(Graph&)>;

Recognition recognition_of(const Build& build) {
  Graph graph;
  graph.output("y", build(graph));
  return recognition_of(graph);
}

std::string found_in(const Build& build) {
  return recognition_of(build).found;
}

/// The same for a function of x f32(2,3,8).
using Function = std::function<Value(Value)>;
Build of_x(const Function& f) {
  return [f](Graph& g) { return f(g.input("x", DType::f32, {2, 3, 8})); };
}

Value parameter(Graph& g, const std::string& name, const Shape& shape) {
  return g.parameter(name, DType::f32, shape);
}

Value exactly(Value x, double number) {
  return x.graph().constant(Tensor::scalar(static_cast<float>(number)));
}

}  // namespace

// ---------------------------------------------------------------- activations

TEST_CASE("patterns: every grouping of GELU is found") {
  const double root = std::sqrt(2.0);
  const std::vector<Function> forms = {
      [=](Value x) { return x * (ops::erf(x / root) + 1) * 0.5; },                  // PyTorch
      [=](Value x) { return 0.5 * x * (1 + ops::erf(x / root)); },                  // Keras
      [=](Value x) { return x * (0.5 * (ops::erf(x * (1 / root)) + 1)); },          // Paddle
      [=](Value x) { return (x / 2) * (1 + ops::erf(x / exactly(x, root))); },      //
      [=](Value x) { return x * (0.5 * ops::erf(x * std::sqrt(0.5)) + 0.5); },      //
      [=](Value x) { return ops::mul(ops::add(ops::erf(x / root), 1), x * 0.5); },  //
      [=](Value x) { return ops::neg(x * (ops::erf(x / root) + 1)) * -0.5; },       //
      [=](Value x) { return x * (ops::erf(x / 1.41421) - exactly(x, -1)) * 0.5; },  // six digits
      [=](Value x) {
        return ops::reshape(x, {2, 3, 8}) * (ops::erf(x / root) + 1) / 2;
      },
      [=](Value x) {
        return x * (ops::cast(ops::erf(x / root), DType::f32) + x.graph().constant(Tensor::full(DType::f32, {2, 3, 8}, 1))) * 0.5;
      },
  };
  for (std::size_t i = 0; i < forms.size(); ++i) {
    CAPTURE(i);
    const Recognition found = recognition_of(of_x(forms[i]));
    CHECK(found.found == "Gelu 1");
    CHECK(found.ops == "Gelu");
    CHECK(found.graph.nodes()[0].attributes.as<tenon_attributes_gelu>().approximate_tanh == 0);
  }
}

TEST_CASE("patterns: every grouping of GELU by tanh is found") {
  const double scale = std::sqrt(2 / std::numbers::pi), cubic = 0.044715;
  const std::vector<Function> forms = {
      [=](Value x) { return 0.5 * x * (1 + ops::tanh(scale * (x + cubic * ops::pow(x, 3)))); },
      [=](Value x) { return x * 0.5 * (ops::tanh((x + ops::cube(x) * cubic) * 0.7978845608) + 1); },
      [=](Value x) { return x * (0.5 * ops::tanh(scale * x + scale * cubic * ops::cube(x)) + 0.5); },
      [=](Value x) { return 0.5 * (x * (1 + ops::tanh(scale * x * (1 + cubic * x * x)))); },
      [=](Value x) { return 0.5 * (x * (1 + ops::tanh(x * scale * (1 + cubic * ops::pow(x, 2))))); },
  };
  for (std::size_t i = 0; i < forms.size(); ++i) {
    CAPTURE(i);
    const Recognition found = recognition_of(of_x(forms[i]));
    CHECK(found.ops == "Gelu");
    CHECK(found.graph.nodes()[0].attributes.as<tenon_attributes_gelu>().approximate_tanh == 1);
  }
}

TEST_CASE("patterns: SiLU, Mish and softmax") {
  CHECK(recognition_of(of_x([](Value x) { return x * ops::sigmoid(x); })).ops == "Silu");
  CHECK(recognition_of(of_x([](Value x) { return ops::sigmoid(x) * x; })).ops == "Silu");
  CHECK(recognition_of(of_x([](Value x) { return x / (1 + ops::exp(-x)); })).ops == "Silu");
  CHECK(recognition_of(of_x([](Value x) { return x * ops::tanh(ops::softplus(x)); })).ops == "Mish");
  CHECK(recognition_of(of_x([](Value x) { return ops::tanh(ops::log(ops::exp(x) + 1)) * x; })).ops == "Mish");
  CHECK(recognition_of(of_x([](Value x) { return ops::tanh(ops::log1p(ops::exp(x))) * x; })).ops == "Mish");
  const Recognition softmax = recognition_of(of_x([](Value x) {
    const Value e = ops::exp(x - ops::reduce_max(x, {1}, true));
    return e / ops::reduce_sum(e, {1}, true);
  }));
  CHECK(softmax.ops == "Softmax");
  CHECK(softmax.graph.nodes()[0].attributes.as<tenon_attributes_axis>().axis == 1);
}

TEST_CASE("patterns: what only looks like an activation stays") {
  const double root = std::sqrt(2.0);
  const std::vector<Function> others = {
      [=](Value x) { return x * (ops::erf(x / 1.5) + 1) * 0.5; },                // another deviation
      [=](Value x) { return x * (ops::erf(x / root) + 1) * 0.25; },              // another factor
      [=](Value x) { return x * (ops::erf(x / root) + 2) * 0.5; },               // another term
      [=](Value x) { return x * (ops::erf(ops::neg(x) / root) + 1) * 0.5; },     // another sign
      [=](Value x) { return ops::tanh(x) * (ops::erf(x / root) + 1) * 0.5; },    // two operands
      [=](Value x) { return ops::square(x) * (ops::erf(x / root) + 1) * 0.5; },  //
      [=](Value x) { return 0.5 * x * (1 + ops::tanh(0.8 * (x + 0.044715 * ops::cube(x)))); },
      [=](Value x) { return x * ops::sigmoid(x * 1.702); },
      [=](Value x) { return x / ops::sigmoid(x); },
      [=](Value x) { return x * ops::tanh(ops::softplus(ops::abs(x))); },
      // the constant determines the shape
      [=](Value x) {
        return x * (ops::erf(x / root) + 1) * x.graph().constant(Tensor::full(DType::f32, {1, 1, 1, 1}, 0.5));
      },
      [=](Value x) {
        const Value e = ops::exp(x - ops::reduce_max(x, {1}, true));
        return e / ops::reduce_sum(e, {2}, true);
      },
  };
  for (std::size_t i = 0; i < others.size(); ++i) {
    CAPTURE(i);
    CHECK(found_in(of_x(others[i])) == "nothing");
  }
}

TEST_CASE("patterns: an inner value that is read elsewhere keeps the expression") {
  Graph g;
  const Value x = g.input("x", DType::f32, {4});
  const Value sum = ops::erf(x * std::sqrt(0.5)) + 1;
  g.output("y", 0.5 * x * sum);
  g.output("sum", sum);
  CHECK(recognition_of(g).found == "nothing");

  Graph twice;
  const Value z = twice.input("x", DType::f32, {4});
  const Value s = ops::sigmoid(z);
  twice.output("y", (z * s) * (s + 1));
  CHECK(recognition_of(twice).found == "nothing");
}

TEST_CASE(
    "patterns: inner nodes on another device keep the expression; the replacement has theirs, and a name below that of the last one") {
  Graph g;
  const Value x = g.input("x", DType::f32, {4});
  const Value s = ops::sigmoid(x);
  g.set_device("reference:0");
  g.output("y", x * s);
  CHECK(recognition_of(g).found == "nothing");

  Graph one;
  const Value z = one.input("x", DType::f32, {4});
  one.set_device("reference:0");
  const Value y = z * ops::sigmoid(z);
  one.set_device("");
  one.output("y", ops::relu(y));
  const Graph after = recognition_of(one).graph;
  REQUIRE(ops_of(after) == "Silu Relu");
  CHECK(after.nodes()[0].device == "reference:0");
  CHECK(after.nodes()[0].name == y.name() + "/silu");
  CHECK(after.nodes()[1].id == one.nodes()[2].id);
  CHECK(after.outputs()[0].name == "y");
}

TEST_CASE("patterns: results that are outputs are replaced, those that are updates stay") {
  Graph g;
  const Value x = g.input("x", DType::f32, {4});
  const Value w = g.parameter("w", DType::f32, {4});
  g.update(w, x * ops::sigmoid(x));
  const Graph after = graph::recognize_patterns(g);
  CHECK(ops_of(after) == "Sigmoid Mul");
}

TEST_CASE("patterns: counts add up and are printed in order of names") {
  Graph g;
  const Value x = g.input("x", DType::f32, {4});
  g.output("y", ops::sigmoid(x) * x);
  g.output("z", x * ops::tanh(ops::softplus(x)));
  graph::PatternCounts counts;
  CHECK(graph::str(counts) == "recognized: nothing");
  graph::recognize_patterns(g, &counts);
  graph::recognize_patterns(g, &counts);
  CHECK(graph::str(counts) == "recognized: Mish 2, Silu 2");
}

// ---------------------------------------------------------------- norms

namespace {

Value deviation_from_mean(Value x, const std::vector<std::int64_t>& axes) {
  return x - ops::reduce_mean(x, axes, true);
}

/// Layer norm as PyTorch writes it.
Value normalised(Value x, const std::vector<std::int64_t>& axes) {
  const Value d = deviation_from_mean(x, axes);
  return d / ops::sqrt(ops::reduce_mean(ops::pow(d, 2), axes, true) + 1e-5);
}

Build with_norm(const std::function<Value(Graph&, Value)>& f) {
  return [f](Graph& g) { return f(g, g.input("x", DType::f32, {2, 3, 8})); };
}

}  // namespace

TEST_CASE("patterns: layer norm in its forms") {
  const std::vector<std::int64_t> last{2};
  const std::vector<std::function<Value(Graph&, Value)>> forms = {
      [&](Graph& g, Value x) { return normalised(x, last) * parameter(g, "w", {8}) + parameter(g, "b", {8}); },
      [&](Graph& g, Value x) {
        return parameter(g, "b", {8}) + parameter(g, "w", {1, 1, 8}) * normalised(x, last);
      },
      [&](Graph& g, Value x) { return normalised(x, last) * parameter(g, "w", {8}); },
      [&](Graph& g, Value x) {
        return normalised(x, last) + parameter(g, "b", {1, 8});
      },
      [&](Graph&, Value x) { return normalised(x, last); },
      [&](Graph& g, Value x) {  // squares by products, Rsqrt
        const Value d = deviation_from_mean(x, last);
        return (d * ops::rsqrt(ops::reduce_mean(d * d, last, true) + 1e-5)) * parameter(g, "w", {8}) + parameter(g, "b", {8});
      },
      [&](Graph& g, Value x) {  // d twice, Reciprocal, the scale first
        const Value inverse = ops::reciprocal(ops::sqrt(ops::reduce_mean(ops::square(deviation_from_mean(x, last)), last, true) + 1e-5));
        return deviation_from_mean(x, last) * (inverse * parameter(g, "w", {8})) + parameter(g, "b", {8});
      },
      [&](Graph& g, Value x) {  // tf2onnx
        const Value mean = ops::reduce_mean(x, last, true), d = x - mean;
        const Value factor = ops::reciprocal(ops::sqrt(ops::reduce_mean(d * d, last, true) + 1e-5)) * parameter(g, "w", {8});
        return x * factor + (parameter(g, "b", {8}) - mean * factor);
      },
      [&](Graph& g, Value x) {  // the same without a scale
        const Value mean = ops::reduce_mean(x, last, true), d = x - mean;
        const Value factor = ops::rsqrt(ops::reduce_mean(d * d, last, true) + 1e-5);
        return x * factor + (parameter(g, "b", {8}) - mean * factor);
      },
  };
  for (std::size_t i = 0; i < forms.size(); ++i) {
    CAPTURE(i);
    const Recognition found = recognition_of(with_norm(forms[i]));
    CHECK(found.found == "LayerNormalization 1");
    CHECK(contains(found.ops, "LayerNormalization"));
    CHECK_FALSE(contains(found.ops, "Reduce"));
    CHECK_FALSE(contains(found.ops, "Mul"));
  }
}

TEST_CASE("patterns: layer norm over several last dimensions") {
  const std::vector<std::int64_t> axes{1, 2};
  const Recognition found = recognition_of(with_norm([&](Graph& g, Value x) {
    return normalised(x, axes) * parameter(g, "w", {3, 8}) + parameter(g, "b", {1, 3, 8});
  }));
  CHECK(found.found == "LayerNormalization 1");
  CHECK(found.ops == "Reshape LayerNormalization");
  const auto& attributes = found.graph.nodes()[1].attributes.as<tenon_attributes_layer_norm>();
  CHECK(attributes.axis == 1);
  CHECK(attributes.epsilon == doctest::Approx(1e-5));
  // a scale of one element in each row is repeated
  CHECK(recognition_of(with_norm([&](Graph& g, Value x) {
          return normalised(x, axes) * parameter(g, "w", {3, 1});
        })).ops == "Expand LayerNormalization");
}

TEST_CASE("patterns: RMS norm in its forms") {
  const auto mean_square = [](Value x) { return ops::reduce_mean(ops::pow(x, 2), {-1}, true); };
  const std::vector<std::function<Value(Graph&, Value)>> forms = {
      [&](Graph& g, Value x) { return parameter(g, "w", {8}) * (x * ops::rsqrt(mean_square(x) + 1e-6)); },
      [&](Graph& g, Value x) { return parameter(g, "w", {8}) * (x * (1.0 / ops::sqrt(mean_square(x) + 1e-6))); },
      [&](Graph& g, Value x) {
        return x / ops::sqrt(mean_square(x) + 1e-6) * parameter(g, "w", {1, 1, 8});
      },
      [&](Graph& g, Value x) { return x * ops::reciprocal(ops::sqrt(ops::reduce_mean(x * x, {2}, true) + 1e-6)) * parameter(g, "w", {8}); },
      [&](Graph& g, Value x) { return x * ops::pow(mean_square(x) + 1e-6, -0.5) * parameter(g, "w", {8}); },
      [&](Graph& g, Value x) { return x * ops::rsqrt(mean_square(x) + 1e-6) * (parameter(g, "w", {8}) + 1); },  // Gemma
      [&](Graph&, Value x) { return ops::cast(ops::cast(x, DType::f32) * ops::rsqrt(mean_square(x) + 1e-6), DType::f32); },
  };
  for (std::size_t i = 0; i < forms.size(); ++i) {
    CAPTURE(i);
    const Recognition found = recognition_of(with_norm(forms[i]));
    CHECK(found.found == "RMSNormalization 1");
    CHECK_FALSE(contains(found.ops, "Reduce"));
  }
}

TEST_CASE("patterns: what only looks like a norm stays") {
  const std::vector<std::int64_t> last{2};
  const std::vector<std::function<Value(Graph&, Value)>> others = {
      [&](Graph&, Value x) { return normalised(x, {1}); },  // another axis
      [&](Graph&, Value x) {
        return normalised(x, {0, 2});
      },
      [&](Graph&, Value x) {  // epsilon outside of the root
        const Value d = deviation_from_mean(x, last);
        return d / (ops::sqrt(ops::reduce_mean(d * d, last, true)) + 1e-2);
      },
      [&](Graph&, Value x) {  // a cube
        const Value d = deviation_from_mean(x, last);
        return d * ops::rsqrt(ops::reduce_mean(ops::square(d * d), last, true) + 1e-5);
      },
      [&](Graph&, Value x) {  // a sum in place of a mean
        const Value d = deviation_from_mean(x, last);
        return d * ops::rsqrt(ops::reduce_sum(d * d, last, true) + 1e-5);
      },
      [&](Graph&, Value x) { return x * ops::rsqrt(ops::reduce_mean(ops::tanh(x) * ops::tanh(x), last, true) + 1e-5); },
  };
  for (std::size_t i = 0; i < others.size(); ++i) {
    CAPTURE(i);
    CHECK(found_in(with_norm(others[i])) == "nothing");
  }
}

TEST_CASE("patterns: means over different axes are no layer norm, but deviations divided by a root mean square") {
  const Recognition found = recognition_of(with_norm([](Graph&, Value x) {
    const Value d = deviation_from_mean(x, {2});
    return d / ops::sqrt(ops::reduce_mean(d * d, {1, 2}, true) + 1e-5);
  }));
  CHECK(found.ops == "ReduceMean Sub RMSNormalization");
}

TEST_CASE("patterns: a scale or bias that differs between lines stays behind the norm") {
  const Recognition bias = recognition_of(with_norm([](Graph& g, Value x) {
    return normalised(x, {2}) * parameter(g, "w", {8}) + parameter(g, "b", {3, 8});
  }));
  CHECK(bias.found == "LayerNormalization 1");
  CHECK(bias.ops == "LayerNormalization Add");
  const Recognition scale = recognition_of(with_norm([](Graph& g, Value x) { return normalised(x, {2}) * parameter(g, "w", {2, 3, 1}); }));
  CHECK(scale.ops == "LayerNormalization Mul");
}

TEST_CASE("patterns: a norm whose variance is read elsewhere stays") {
  Graph g;
  const Value x = g.input("x", DType::f32, {2, 3, 8});
  const Value d = deviation_from_mean(x, {2}), variance = ops::reduce_mean(d * d, {2}, true);
  g.output("y", d / ops::sqrt(variance + 1e-5));
  g.output("variance", variance);
  CHECK(recognition_of(g).found == "nothing");
}

// ---------------------------------------------------------------- attention

namespace {

/// Operands of attention of three heads: q (2,3,5,4), k and v (2,3,6,4).
struct Heads {
  explicit Heads(Graph& graph) : g(graph) {}
  Graph& g;
  Value q = g.input("q", DType::f32, {2, 3, 5, 4});
  Value k = g.input("k", DType::f32, {2, 3, 6, 4});
  Value v = g.input("v", DType::f32, {2, 3, 6, 4});

  Value transposed_k() const { return ops::transpose(k, {0, 1, 3, 2}); }
  Value scores() const { return ops::matmul(q, transposed_k()); }
  Value of(Value weights) const { return ops::matmul(ops::softmax(weights), v); }
  Value mask(const Shape& shape) const { return g.input("mask", DType::f32, shape); }
  Value condition(const Shape& shape) const { return g.input("condition", DType::boolean, shape); }
  Value number(double x) const { return g.constant(Tensor::scalar(static_cast<float>(x))); }
};

Build with_heads(const std::function<Value(Heads&)>& f) {
  return [f](Graph& g) {
    Heads heads(g);
    return f(heads);
  };
}

const NodeInfo& attention_of(const Graph& graph) {
  for (const NodeInfo& node : graph.nodes()) {
    if (node.op == TENON_OP_Attention) return node;
  }
  FAIL("there is no Attention in " << ops_of(graph));
  return graph.nodes()[0];
}

double scale_of(const Graph& graph) {
  return attention_of(graph).attributes.as<tenon_attributes_attention>().scale;
}

Tensor lower_triangle(std::int64_t queries, std::int64_t keys) {
  std::vector<float> ones(static_cast<std::size_t>(queries * keys));
  for (std::size_t i = 0; i < ones.size(); ++i)
    ones[i] = static_cast<std::int64_t>(i) % keys <= static_cast<std::int64_t>(i) / keys ? 1.0F : 0.0F;
  return Tensor::of(ones, {queries, keys}).to(DType::boolean);
}

}  // namespace

TEST_CASE("patterns: attention with its scale on the scores, q, k or both") {
  const double root = std::sqrt(0.5);
  const std::vector<std::function<Value(Heads&)>> forms = {
      [](Heads& h) { return h.of(h.scores() * 0.5); },
      [](Heads& h) { return h.of(h.scores() / 2); },
      [](Heads& h) { return h.of(ops::matmul(h.q * 0.5, h.transposed_k())); },
      [](Heads& h) { return h.of(ops::matmul(h.q, h.transposed_k() / 2)); },
      [](Heads& h) {
        return h.of(ops::matmul(h.q, ops::transpose(h.k * 0.5, {0, 1, 3, 2})));
      },
      [=](Heads& h) { return h.of(ops::matmul(h.q * root, h.transposed_k() * root)); },
      [=](Heads& h) { return h.of(ops::matmul(h.q / 2, h.transposed_k()) * 1.0); },
  };
  for (std::size_t i = 0; i < forms.size(); ++i) {
    CAPTURE(i);
    const Recognition found = recognition_of(with_heads(forms[i]));
    CHECK(found.found == "Attention 1");
    CHECK(found.ops == "Attention");
    CHECK(scale_of(found.graph) == doctest::Approx(0.5));
  }
  const Recognition plain = recognition_of(with_heads([](Heads& h) { return h.of(h.scores()); }));
  CHECK(scale_of(plain.graph) == 1);
}

TEST_CASE("patterns: attention with masks that are added") {
  for (const Shape& shape : {Shape{2, 1, 1, 6}, Shape{5, 6}, Shape{3, 5, 1}, Shape{2, 3, 5, 6}, Shape{6}}) {
    CAPTURE(shape.str());
    const Recognition found = recognition_of(with_heads([&](Heads& h) { return h.of(h.scores() / 2 + h.mask(shape)); }));
    CHECK(found.ops == "Attention");
    CHECK(attention_of(found.graph).inputs.size() == 4);
  }
  // the mask is scaled with the scores
  const Recognition scaled = recognition_of(with_heads([](Heads& h) { return h.of((h.scores() + h.mask({5, 6})) * 0.25); }));
  CHECK(scaled.ops == "Mul Attention");
  CHECK(scale_of(scaled.graph) == 0.25);
  // two masks
  const Recognition two = recognition_of(with_heads([](Heads& h) {
    return h.of(h.g.input("position", DType::f32, {1, 3, 5, 6}) + h.scores() * 0.5 - h.mask({2, 1, 1, 6}));
  }));
  CHECK(two.found == "Attention 1");
  // as BERT computes its mask
  const Recognition bert = recognition_of(with_heads([](Heads& h) {
    const Value padding = (1 - h.mask({2, 1, 1, 6})) * -8.0;
    return h.of(h.scores() / 2 + padding);
  }));
  CHECK(bert.found == "Attention 1");
}

TEST_CASE("patterns: attention where a condition selects scores") {
  const std::vector<std::function<Value(Heads&)>> forms = {
      [](Heads& h) {
        return h.of(ops::where(h.condition({2, 1, 5, 6}), h.scores() * 0.5, h.number(-infinity)));
      },
      [](Heads& h) {
        return h.of(ops::where(h.condition({5, 6}), h.number(-1e30), h.scores() * 0.5));
      },
      [](Heads& h) {
        return h.of(ops::where(h.condition({6}), h.scores() * 0.5, h.number(-static_cast<double>(std::numeric_limits<float>::max()))));
      },
      [](Heads& h) {
        return h.of(ops::where(h.condition({5, 6}), h.scores(), h.number(-1e9)) + h.mask({2, 1, 1, 6}));
      },
      [](Heads& h) {
        return h.of(ops::where(h.condition({5, 6}), h.scores() + h.mask({2, 1, 1, 6}), h.number(-1e9)));
      },
      [](Heads& h) {
        return h.of(ops::where(h.condition({5, 6}), h.scores(), ops::expand(h.number(-infinity), {2, 3, 5, 6})));
      },
  };
  for (std::size_t i = 0; i < forms.size(); ++i) {
    CAPTURE(i);
    const Recognition found = recognition_of(with_heads(forms[i]));
    CHECK(found.found == "Attention 1");
    CHECK_FALSE(contains(found.ops, "Softmax"));
  }
}

TEST_CASE("patterns: a constant causal mask becomes an attribute") {
  Tensor added = Tensor::zeros(DType::f32, {1, 1, 5, 6});
  for (std::int64_t i = 0; i < 30; ++i) added.data<float>()[i] = i % 6 <= i / 6 ? 0.0F : -std::numeric_limits<float>::infinity();
  const std::vector<std::function<Value(Heads&)>> forms = {
      [](Heads& h) { return h.of(ops::where(h.g.constant(lower_triangle(5, 6)), h.scores(), h.number(-infinity))); },
      [&](Heads& h) { return h.of(h.scores() + h.g.constant(added)); },
  };
  for (std::size_t i = 0; i < forms.size(); ++i) {
    CAPTURE(i);
    const Recognition found = recognition_of(with_heads(forms[i]));
    CHECK(found.ops == "Attention");
    CHECK(attention_of(found.graph).attributes.as<tenon_attributes_attention>().causal == 1);
    CHECK(attention_of(found.graph).inputs.size() == 3);
  }
  // the first query sees the last key
  added.data<float>()[5] = 0;
  const Recognition shifted = recognition_of(with_heads([&](Heads& h) { return h.of(h.scores() + h.g.constant(added)); }));
  CHECK(attention_of(shifted.graph).attributes.as<tenon_attributes_attention>().causal == 0);
  CHECK(attention_of(shifted.graph).inputs.size() == 4);
  CHECK(attention_of(recognition_of(with_heads([](Heads& h) {
                       return h.of(ops::where(h.g.constant(lower_triangle(5, 6)), h.scores(), h.number(-infinity)) + h.mask({2, 1, 1, 6}));
                     })).graph)
            .inputs.size() == 4);
}

TEST_CASE("patterns: attention whose rows without keys are made 0") {
  const Recognition found = recognition_of(with_heads([](Heads& h) {
    const Value p = ops::softmax(ops::where(h.condition({5, 6}), h.scores() * 0.5, h.number(-infinity)));
    return ops::matmul(ops::where(ops::is_nan(p), h.number(0), p), h.v);
  }));
  CHECK(found.ops == "Where Attention");
}

TEST_CASE("patterns: attention between projections, of three-dimensional operands, and of one head") {
  const auto projected = [](Graph& g) {
    const auto heads = [&](const char* name) { return ops::reshape(g.input(name, DType::f32, {2, 5, 12}), Shape{2, 5, 3, 4}); };
    const Value q = ops::transpose(heads("q"), {0, 2, 1, 3}), k = ops::transpose(heads("k"), {0, 2, 3, 1});
    const Value v = ops::transpose(heads("v"), {0, 2, 1, 3});
    const Value y = ops::matmul(ops::softmax(ops::matmul(q, k) / 2), v);
    return ops::reshape(ops::transpose(y, {0, 2, 1, 3}), Shape{2, 5, 12});
  };
  CHECK(recognition_of(projected).ops == "Reshape Transpose Reshape Reshape Transpose Transpose Attention Transpose Reshape");

  const auto batched = [](Graph& g) {
    const Value q = g.input("q", DType::f32, {6, 5, 4}), k = g.input("k", DType::f32, {6, 7, 4}), v = g.input("v", DType::f32, {6, 7, 3});
    const Value scores = ops::matmul(q * 0.5, ops::transpose(k, {0, 2, 1})) + g.input("mask", DType::f32, {5, 7});
    return ops::matmul(ops::softmax(scores), v);
  };
  CHECK(recognition_of(batched).ops == "Reshape Reshape Reshape Attention Reshape");

  const auto plain = [](Graph& g) {
    const Value q = g.input("q", DType::f32, {5, 4}), k = g.input("k", DType::f32, {7, 4}), v = g.input("v", DType::f32, {7, 3});
    return ops::matmul(ops::softmax(ops::matmul(q, ops::transpose(k))), v);
  };
  CHECK(recognition_of(plain).ops == "Reshape Reshape Reshape Attention Reshape");
}

TEST_CASE("patterns: attention with keys that are not transposed in the graph") {
  const auto given = [](Graph& g) {
    const Value q = g.input("q", DType::f32, {2, 3, 5, 4}), k = g.input("k", DType::f32, {2, 3, 4, 6});
    return ops::matmul(ops::softmax(ops::matmul(q, k)), g.input("v", DType::f32, {2, 3, 6, 4}));
  };
  CHECK(recognition_of(given).ops == "Transpose Attention");
}

TEST_CASE("patterns: heads that are repeated for groups of queries are shared") {
  const auto grouped = [](std::int64_t axis) {
    return [axis](Graph& g) {
      const auto repeated = [&](const char* name) {
        const Value x = g.input(name, DType::f32, {2, 2, 6, 4});
        Shape apart{2, 2, 2, 6, 4};
        apart.set(static_cast<std::size_t>(axis), 1);
        const Value wide = ops::expand(ops::reshape(x, apart), {2, 2, 2, 6, 4});
        return ops::reshape(wide, Shape{2, 4, 6, 4});
      };
      const Value k = repeated("k"), v = repeated("v"), q = g.input("q", DType::f32, {2, 4, 5, 4});
      return ops::matmul(ops::softmax(ops::matmul(q, ops::transpose(k, {0, 1, 3, 2})) / 2), v);
    };
  };
  const Recognition shared = recognition_of(grouped(2));
  CHECK(shared.found == "Attention 1");
  CHECK_FALSE(contains(shared.ops, "Expand"));
  CHECK(shared.graph.info(attention_of(shared.graph).inputs[1]).shape == Shape{2, 2, 6, 4});
  // the list of heads is repeated: heads 0 and 1 of q have different keys
  const Recognition interleaved = recognition_of(grouped(1));
  CHECK(interleaved.found == "Attention 1");
  CHECK(contains(interleaved.ops, "Expand"));
}

TEST_CASE("patterns: what only looks like attention stays") {
  const std::vector<std::function<Value(Heads&)>> others = {
      [](Heads& h) {  // rows are normalised over the queries
        return ops::matmul(ops::softmax(h.scores(), 2), h.v);
      },
      [](Heads& h) { return ops::matmul(ops::tanh(h.scores()), h.v); },
      [](Heads& h) { return h.of(ops::tanh(h.scores()) * 50.0); },
      // a row of which every score is replaced depends on the scores only if they are added
      [](Heads& h) {
        return h.of(ops::where(h.condition({5, 6}), h.scores(), h.number(-10000)));
      },
      [](Heads& h) {
        return h.of(ops::where(h.condition({5, 6}), h.scores(), h.number(5)));
      },
      // products with a mask are no sums
      [](Heads& h) {
        return h.of(h.scores() * h.mask({5, 6}));
      },
      [](Heads& h) {
        const Value p = ops::softmax(h.scores());
        return ops::matmul(ops::where(ops::is_nan(p), h.number(1), p), h.v);
      },
  };
  for (std::size_t i = 0; i < others.size(); ++i) {
    CAPTURE(i);
    CHECK(found_in(with_heads(others[i])) == "nothing");
  }
  // the mask enlarges the scores
  CHECK(found_in([](Graph& g) {
          const Value q = g.input("q", DType::f32, {1, 3, 5, 4}), k = g.input("k", DType::f32, {1, 3, 4, 6});
          const Value scores = ops::matmul(q, k) + g.input("mask", DType::f32, {2, 1, 1, 6});
          return ops::matmul(ops::softmax(scores), g.input("v", DType::f32, {1, 3, 6, 4}));
        }) == "nothing");
  // keys for all batches
  CHECK(found_in([](Graph& g) {
          const Value q = g.input("q", DType::f32, {2, 3, 5, 4}), k = g.input("k", DType::f32, {4, 6});
          return ops::matmul(ops::softmax(ops::matmul(q, k)), g.input("v", DType::f32, {2, 3, 6, 4}));
        }) == "nothing");
}

TEST_CASE("patterns: attention whose weights or scores are read elsewhere stays") {
  for (const bool weights : {true, false}) {
    CAPTURE(weights);
    Graph g;
    const Heads heads(g);
    const Value scores = heads.scores(), p = ops::softmax(scores);
    g.output("y", ops::matmul(p, heads.v));
    g.output("inner", weights ? p : scores);
    CHECK(recognition_of(g).found == "nothing");
  }
}

// ---------------------------------------------------------------- rotary embeddings

namespace {

/// x cos + rotate_half(x) sin with angles of two halves, x (2,3,5,8).
Value rotated(Graph& g, const std::function<Value(Value first, Value second)>& join, const Shape& table, bool by_split = false,
              double sign = -1) {
  const Value x = g.input("x", DType::f32, {2, 3, 5, 8});
  const Value angles = g.input("angles", DType::f32, {5, 4}), others = g.input("others", DType::f32, {5, 4});
  const Value both = join(angles, others);
  const Value cosines = ops::reshape(ops::cos(both), table), sines = ops::reshape(ops::sin(both) * 1.0, table);
  const std::vector<Value> halves =
      by_split ? ops::split(x, {4, 4}, 3) : std::vector<Value>{ops::slice(x, 3, 0, 4), ops::slice(x, 3, 4, 8)};
  return x * cosines + ops::concat({halves[1] * sign, halves[0]}, 3) * sines;
}

Value twice(Value first, Value) {
  return ops::concat({first, first}, 1);
}

}  // namespace

TEST_CASE("patterns: rotary embedding with cosines and sines of equal halves") {
  for (const bool by_split : {false, true}) {
    CAPTURE(by_split);
    for (const Shape& table : {Shape{5, 8}, Shape{1, 1, 5, 8}}) {
      CAPTURE(table.str());
      CHECK(found_in([&](Graph& g) { return rotated(g, twice, table, by_split); }) == "RotaryEmbedding 1");
    }
  }
  // constants are compared
  const auto by_table = [](const Tensor& table) {
    return found_in([&](Graph& g) {
      const Value x = g.input("x", DType::f32, {3, 2, 4});
      const Value turned = ops::concat({-ops::slice(x, 2, 2, 4), ops::slice(x, 2, 0, 2)}, 2);
      return x * g.constant(table) + turned * g.constant(table);
    });
  };
  CHECK(by_table(Tensor::of<float>({1, 2, 1, 2, 3, 4, 3, 4}, {2, 4})) == "RotaryEmbedding 1");
  CHECK(by_table(Tensor::of<float>({1, 2, 1, 2, 3, 4, 3, 5}, {2, 4})) == "nothing");
}

TEST_CASE("patterns: what only looks like a rotary embedding stays") {
  const auto joined = [](Value first, Value second) { return ops::concat({first, second}, 1); };
  CHECK(found_in([&](Graph& g) { return rotated(g, joined, {5, 8}); }) == "nothing");
  CHECK(found_in([&](Graph& g) { return rotated(g, twice, {5, 8}, false, 1); }) == "nothing");
  // parameters may be anything
  CHECK(found_in([](Graph& g) {
          const Value x = g.input("x", DType::f32, {2, 5, 8}), cosines = parameter(g, "cos", {5, 8}), sines = parameter(g, "sin", {5, 8});
          return x * cosines + ops::concat({-ops::slice(x, 2, 4, 8), ops::slice(x, 2, 0, 4)}, 2) * sines;
        }) == "nothing");
}

// ---------------------------------------------------------------- transposes

TEST_CASE("patterns: pairs of transposes cancel or become one, through elementwise ops too") {
  CHECK(recognition_of(of_x([](Value x) {
          return ops::transpose(ops::relu(ops::transpose(x, {0, 2, 1}) * 2.0), {0, 2, 1});
        })).ops == "Mul Relu");
  CHECK(recognition_of(of_x([](Value x) { return ops::relu(ops::transpose(ops::transpose(x, {1, 2, 0}), {2, 0, 1})); })).ops == "Relu");
  const Recognition joined = recognition_of(of_x([](Value x) {
    return ops::transpose(ops::tanh(ops::transpose(x, {1, 2, 0})), {1, 2, 0});
  }));
  CHECK(joined.ops == "Tanh Transpose");
  CHECK(axes_of(joined.graph.nodes()[1]) == std::vector<std::int64_t>{2, 0, 1});
  // a residual: both operands are transposed
  CHECK(recognition_of([](Graph& g) {
          const Value a = ops::transpose(g.input("a", DType::f32, {2, 3, 4}), {0, 2, 1});
          const Value b = ops::transpose(g.input("b", DType::f32, {2, 3, 4}), {0, 2, 1});
          const Value sum = a + b;
          return ops::transpose(ops::clip(sum * ops::sigmoid(b), 0, 6), {0, 2, 1});
        }).ops == "Add Sigmoid Mul Clip");
}

TEST_CASE("patterns: transposes that do not meet stay") {
  const auto kept = [](const Build& build) { return found_in(build) == "nothing"; };
  // only one operand is transposed
  CHECK(kept([](Graph& g) {
    const Value a = ops::transpose(g.input("a", DType::f32, {2, 3, 4}), {0, 2, 1}), b = g.input("b", DType::f32, {2, 4, 3});
    return ops::transpose(a + b, {0, 2, 1});
  }));
  // two permutations
  CHECK(kept([](Graph& g) {
    const Value a = ops::transpose(g.input("a", DType::f32, {2, 2, 2}), {0, 2, 1});
    const Value b = ops::transpose(g.input("b", DType::f32, {2, 2, 2}), {1, 0, 2});
    return ops::transpose(a + b, {0, 2, 1});
  }));
  // a vector along the last dimension, which another dimension becomes
  CHECK(kept([](Graph& g) {
    const Value a = ops::transpose(g.input("a", DType::f32, {2, 3, 4}), {0, 2, 1});
    return ops::transpose(a + parameter(g, "b", {3}), {0, 2, 1});
  }));
  // no elementwise op
  CHECK(kept(of_x([](Value x) { return ops::transpose(ops::softmax(ops::transpose(x, {0, 2, 1})), {0, 2, 1}); })));
  // the inner value is read elsewhere
  Graph g;
  const Value inner = ops::relu(ops::transpose(g.input("x", DType::f32, {2, 3}), {1, 0}));
  g.output("y", ops::transpose(inner, {1, 0}));
  g.output("inner", inner);
  CHECK(recognition_of(g).found == "nothing");
  // the pair does not cancel, and the first transpose has other readers
  Graph h;
  const Value turned = ops::transpose(h.input("x", DType::f32, {2, 3, 4}), {1, 2, 0});
  h.output("y", ops::transpose(ops::tanh(turned), {1, 2, 0}));
  h.output("turned", ops::relu(turned));
  CHECK(recognition_of(h).found == "nothing");
}

// ---------------------------------------------------------------- scales and shifts per channel

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

// ---------------------------------------------------------------- whole graphs

TEST_CASE("patterns: a transformer block becomes its ops") {
  const Recognition block = recognition_of([](Graph& g) {
    const Value x = g.input("x", DType::f32, {2, 5, 12});
    const auto norm = [&](Value of, const std::string& name) {
      return normalised(of, {2}) * parameter(g, name + ".weight", {12}) + parameter(g, name + ".bias", {12});
    };
    const auto dense = [&](Value of, const std::string& name, std::int64_t in, std::int64_t out) {
      return ops::matmul(of, parameter(g, name + ".weight", {in, out})) + parameter(g, name + ".bias", {out});
    };
    const auto heads = [&](Value of, const std::vector<std::int64_t>& permutation) {
      return ops::transpose(ops::reshape(of, Shape{2, 5, 3, 4}), permutation);
    };
    const Value h = norm(x, "norm1");
    const Value q = heads(dense(h, "q", 12, 12), {0, 2, 1, 3}), k = heads(dense(h, "k", 12, 12), {0, 2, 3, 1});
    const Value v = heads(dense(h, "v", 12, 12), {0, 2, 1, 3});
    const Value p = ops::softmax(ops::matmul(q, k) / 2 + g.input("mask", DType::f32, {2, 1, 1, 5}));
    const Value y = ops::reshape(ops::transpose(ops::matmul(p, v), {0, 2, 1, 3}), Shape{2, 5, 12});
    const Value residual = x + dense(y, "out", 12, 12);
    const Value inner = dense(norm(residual, "norm2"), "up", 12, 16);
    return residual + dense(inner * (ops::erf(inner / std::sqrt(2.0)) + 1) * 0.5, "down", 16, 12);
  });
  CHECK(block.found == "Attention 1, Gelu 1, LayerNormalization 2");
}

namespace {

/// Random graphs of values f64(2,4,4) in which expressions of the tables meet other ops, and inner values are sometimes outputs.
class RandomGraph {
 public:
  explicit RandomGraph(std::uint32_t seed) : random_(seed) {}

  Graph make() {
    for (const char* name : {"a", "b", "c"}) values_.push_back(graph_.input(name, DType::f64, {2, 4, 4}));
    const int steps = pick(4, 14);
    for (int i = 0; i < steps; ++i) values_.push_back(step());
    graph_.output("last", values_.back());
    for (ValueId v = 0; v < graph_.values().size(); ++v) {
      const ValueInfo& info = graph_.info(v);
      if (info.kind != ValueKind::computed || info.dtype != DType::f64 || pick(1, 25) > 1) continue;
      graph_.output("inner " + std::to_string(v), Value(&graph_, v));
    }
    return std::move(graph_);
  }

 private:
  std::mt19937 random_;
  Graph graph_;
  std::vector<Value> values_;

  int pick(int lowest, int highest) { return std::uniform_int_distribution<int>(lowest, highest)(random_); }
  Value any() { return values_[static_cast<std::size_t>(pick(0, static_cast<int>(values_.size()) - 1))]; }
  Value vector() {
    return graph_.parameter("p" + std::to_string(graph_.values().size()), DType::f64, pick(0, 1) == 0 ? Shape{4} : Shape{4, 4});
  }
  double about(double x) { return pick(1, 6) == 1 ? x * 1.25 : x; }
  std::vector<std::int64_t> permutation() {
    return pick(0, 1) == 0 ? std::vector<std::int64_t>{0, 2, 1} : std::vector<std::int64_t>{0, 1, 2};
  }

  Value step() {
    const Value x = any();
    switch (pick(0, 13)) {
      case 0:
        return about(0.5) * x * (1 + ops::erf(x / about(std::sqrt(2.0))));
      case 1:
        return x * about(0.5) * (ops::tanh(std::sqrt(2 / std::numbers::pi) * (x + about(0.044715) * ops::cube(x))) + 1);
      case 2:
        return any() * ops::sigmoid(x);
      case 3: {
        const std::vector<std::int64_t> axes{pick(1, 6) == 1 ? 1 : 2};
        const Value d = x - ops::reduce_mean(x, axes, true);
        const Value y = d / ops::sqrt(ops::reduce_mean(d * (pick(1, 6) == 1 ? x : d), axes, true) + 0.5);
        return pick(0, 1) == 0 ? ops::tanh(y) : y * vector() + vector();
      }
      case 4:
        return vector() * (x * ops::rsqrt(ops::reduce_mean(ops::square(x), {2}, true) + 0.5));
      case 5:
      case 6: {
        const Value k = ops::transpose(any(), permutation());
        Value scores = ops::matmul(x * about(0.5), pick(0, 1) == 0 ? k : k * 0.5);
        if (pick(0, 1) == 0) scores = scores + ops::tanh(any());
        if (pick(0, 2) == 0) scores = ops::where(ops::less(any(), any()), scores, graph_.constant(Tensor::scalar(-1e30)));
        return ops::matmul(ops::softmax(scores, pick(1, 6) == 1 ? 1 : 2), any());
      }
      case 7:
        return ops::transpose(x, {0, 2, 1});
      case 8:
        return ops::transpose(ops::relu(ops::transpose(x, {0, 2, 1}) * 2.0 + any()), {0, 2, 1});
      case 9:
        return ops::matmul(ops::tanh(x), graph_.parameter("w" + std::to_string(graph_.values().size()), DType::f64, {4, 4})) *
               (pick(0, 1) == 0 ? vector() : any());
      case 10:
        return ops::tanh(x + any());
      case 11:
        return ops::tanh(x - any() * 0.5);
      case 12:
        return ops::reshape(ops::reshape(x, Shape{2, 16}), Shape{2, 4, 4});
      default: {
        const Value e = ops::exp(ops::tanh(x) - ops::reduce_max(ops::tanh(x), {2}, true));
        return e / ops::reduce_sum(e, {2}, true);
      }
    }
  }
};

}  // namespace

TEST_CASE("patterns: random graphs keep their results") {
  const std::uint32_t graphs = small_sizes() ? 40 : 150;
  std::size_t found = 0;
  for (std::uint32_t seed = 1; seed <= graphs; ++seed) {
    CAPTURE(seed);
    const Graph before = RandomGraph(seed).make();
    graph::PatternCounts counts;
    const Graph after = graph::recognize_patterns(before, &counts);
    for (const auto& [name, count] : counts.by_name) found += count;
    // a second pass finds nothing
    graph::PatternCounts again;
    graph::recognize_patterns(after, &again);
    CHECK(graph::str(again) == "recognized: nothing");
    check_close(results_of(before), results_of(after), 1e-6);
  }
  CHECK(found > graphs);
}
