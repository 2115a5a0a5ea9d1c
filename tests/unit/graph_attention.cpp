// SPDX-License-Identifier: Apache-2.0
// Shapes and errors of attention, rotary positions, top_k and cum_sum.
#include <doctest/doctest.h>

#include <limits>

#include "graph_testing.h"

using namespace tenon;
using namespace tenon::test;

namespace {

struct Heads {
  Graph g;
  Value q = g.input("q", DType::f32, {2, 6, 5, 4});
  Value k = g.input("k", DType::f32, {2, 3, 7, 4});
  Value v = g.input("v", DType::f32, {2, 3, 7, 8});
  Value other(const Shape& shape, DType dtype = DType::f32) { return g.input("x" + std::to_string(next_++), dtype, shape); }

 private:
  int next_ = 0;
};

ops::AttentionOptions masked(Value mask) {
  ops::AttentionOptions options;
  options.mask = mask;
  return options;
}

}  // namespace

TEST_CASE_FIXTURE(Heads, "attention: heads of q share those of k and v, and the scale defaults to 1 / sqrt(size)") {
  const Value y = ops::attention(q, k, v);
  CHECK(str(y) == "f32(2,6,5,8)");
  CHECK(node_of(y).attributes.as<tenon_attributes_attention>().scale == 0.5);
  ops::AttentionOptions options;
  options.scale = 3;
  options.causal = true;
  const auto& attributes = node_of(ops::attention(q, k, v, options)).attributes.as<tenon_attributes_attention>();
  CHECK(attributes.scale == 3);
  CHECK(attributes.causal == 1);
  for (const Shape& mask : {Shape{}, Shape{7}, Shape{5, 1}, Shape{6, 5, 7}, Shape{2, 1, 1, 7}}) {
    CHECK(str(ops::attention(q, k, v, masked(other(mask)))) == "f32(2,6,5,8)");
  }
  const std::vector<Value> grads = gradients(ops::reduce_sum(y), {q, k, v});
  CHECK(str(grads[1]) == "f32(2,3,7,4)");
  CHECK(op_name(node_of(grads[2]).op) == std::string("AttentionGrad"));
}

TEST_CASE("attention: what does not fit is rejected by name") {
  Heads h;
  const auto with = [](Value q, Value k, Value v, const ops::AttentionOptions& options = {}) {
    return message_of([&] { ops::attention(q, k, v, options); });
  };
  CHECK(with(h.other({2, 4, 5, 4}), h.k, h.v) ==
        "attention 'attention': the 3 heads of k f32(2,3,7,4) do not divide the 4 of q f32(2,4,5,4)");
  CHECK(with(h.q, h.other({2, 3, 7, 5}), h.v) == "attention 'attention': expected equal head sizes, got q f32(2,6,5,4), k f32(2,3,7,5)");
  CHECK(with(h.q, h.k, h.other({2, 3, 6, 8})) == "attention 'attention': expected equal lengths, got k f32(2,3,7,4), v f32(2,3,6,8)");
  CHECK(with(h.q, h.k, h.other({2, 1, 7, 8})) ==
        "attention 'attention': expected equal numbers of heads, got k f32(2,3,7,4), v f32(2,1,7,8)");
  CHECK(with(h.other({1, 6, 5, 4}), h.k, h.v) ==
        "attention 'attention': expected equal batch sizes, got q f32(1,6,5,4), k f32(2,3,7,4), v f32(2,3,7,8)");
  CHECK(with(h.other({6, 5, 4}), h.k, h.v) == "attention 'attention': expected (batch, heads, length, size), got q f32(6,5,4)");
  CHECK(with(h.other({2, 6, 5, 0}), h.other({2, 3, 7, 0}), h.v) ==
        "attention 'attention': expected heads with elements, got q f32(2,6,5,0)");
  CHECK(with(h.q, h.k, h.v, masked(h.other({6, 7}))) == "attention 'attention': mask f32(6,7) does not broadcast to the scores (2,6,5,7)");
  CHECK(with(h.q, h.k, h.v, masked(h.other({5, 7}, DType::f64))) ==
        "attention 'attention': expected equal dtypes, got q f32(2,6,5,4), mask f64(5,7)");
  ops::AttentionOptions options;
  options.scale = std::numeric_limits<double>::infinity();
  CHECK(with(h.q, h.k, h.v, options) == "attention 'attention': expected a finite scale, got inf");
}

TEST_CASE_FIXTURE(Heads, "rotary_embedding expects pairs with an angle each") {
  const Value c = other({5, 2}), s = other({5, 2});
  CHECK(str(ops::rotary_embedding(q, c, s)) == "f32(2,6,5,4)");
  CHECK(str(ops::rotary_embedding(q, c, s, true)) == "f32(2,6,5,4)");
  CHECK_ERROR("rotary_embedding of 'k' (2,3,7,4): expected cosines and sines of (7,2), got 'x0' (5,2)", ops::rotary_embedding(k, c, s));
  CHECK_ERROR("rotary_embedding of 'x2' (5,3): expected (..., S, D) with an even D", ops::rotary_embedding(other({5, 3}), c, s));
}

TEST_CASE_FIXTURE(Heads, "top_k: k is at most the size of the axis") {
  const auto [values, indices] = ops::top_k(q, 3, 2);
  CHECK(str(values) == "f32(2,6,3,4)");
  CHECK(str(indices) == "i64(2,6,3,4)");
  CHECK(str(ops::top_k(other({9}, DType::i32), 9, -1, false).first) == "i32(9)");
  CHECK(str(ops::top_k(q, 0).first) == "f32(2,6,5,0)");
  CHECK_ERROR("top_k 'top_k_3': expected 0 to 5 elements along axis 2 of x f32(2,6,5,4), got k = 6", ops::top_k(q, 6, 2));
  CHECK_ERROR("top_k 'top_k_3': expected 0 to 5 elements along axis 2 of x f32(2,6,5,4), got k = -1", ops::top_k(q, -1, 2));
  CHECK_ERROR_CONTAINS("axis 4", ops::top_k(q, 1, 4));
  CHECK_ERROR("top_k 'top_k_3': expected numbers, got x bool(3)", ops::top_k(other({3}, DType::boolean), 1));
}

TEST_CASE_FIXTURE(Heads, "cum_sum keeps shape and dtype, and its gradient sums in the opposite direction") {
  CHECK(str(ops::cum_sum(q, -2)) == "f32(2,6,5,4)");
  CHECK(str(ops::cum_sum(other({3}, DType::i64))) == "i64(3)");
  CHECK_ERROR_CONTAINS("axis 4", ops::cum_sum(q, 4));
  CHECK_ERROR("cum_sum 'cum_sum_2': expected numbers, got x bool(3)", ops::cum_sum(other({3}, DType::boolean)));
  const Value d = gradients(ops::reduce_sum(ops::square(ops::cum_sum(q, 2, true))), {q})[0];
  const auto& attributes = node_of(d).attributes.as<tenon_attributes_cum_sum>();
  CHECK(op_name(node_of(d).op) == std::string("CumSum"));
  CHECK(attributes.axis == 2);
  CHECK(attributes.exclusive == 1);
  CHECK(attributes.reverse == 1);
}
