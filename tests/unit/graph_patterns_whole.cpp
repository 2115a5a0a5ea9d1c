// SPDX-License-Identifier: Apache-2.0
// Whole blocks and random graphs keep their results when their expressions become ops.
#include <cmath>
#include <numbers>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "patterns_testing.h"

using namespace tenon;
using namespace tenon::test;

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
