// SPDX-License-Identifier: Apache-2.0
// Expressions of exported models become attention.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "patterns_testing.h"

using namespace tenon;
using namespace tenon::test;

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
