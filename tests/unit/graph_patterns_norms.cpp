// SPDX-License-Identifier: Apache-2.0
// Expressions of exported models become norms.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "patterns_testing.h"

using namespace tenon;
using namespace tenon::test;

namespace {

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
