// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "graph_testing.h"

using namespace tenon;
using namespace tenon::test;

namespace {

/// A graph that makes inputs of any dtype and shape.
struct Bench {
  Graph g;
  int count = 0;
  Value value(DType dtype, const Shape& shape) { return g.input("v" + std::to_string(count++), dtype, shape); }
  Value f32(const Shape& shape) { return value(DType::f32, shape); }
  Value f64(const Shape& shape) { return value(DType::f64, shape); }
  Value i64(const Shape& shape) { return value(DType::i64, shape); }
  Value key() { return value(DType::u64, {2}); }
};

}  // namespace

TEST_CASE("shapes: binary ops broadcast as NumPy does") {
  struct Row {
    Shape a, b;
    const char* y;
  };
  const Row rows[] = {
      {{8, 10}, {8, 10}, "f32(8,10)"},   {{8, 10}, {10}, "f32(8,10)"}, {{10}, {8, 1}, "f32(8,10)"}, {{}, {3}, "f32(3)"}, {{}, {}, "f32()"},
      {{2, 1, 4}, {3, 1}, "f32(2,3,4)"}, {{0, 4}, {1}, "f32(0,4)"},    {{0}, {1}, "f32(0)"}};
  for (const Row& row : rows) {
    Bench t;
    CAPTURE(row.y);
    CHECK(str(ops::add(t.f32(row.a), t.f32(row.b))) == row.y);
    CHECK(str(ops::sub(t.f32(row.a), t.f32(row.b))) == row.y);
    CHECK(str(ops::mul(t.f32(row.a), t.f32(row.b))) == row.y);
    CHECK(str(ops::div(t.f32(row.a), t.f32(row.b))) == row.y);
    CHECK(ops::equal(t.f32(row.a), t.f32(row.b)).dtype() == DType::boolean);
  }
}

TEST_CASE_FIXTURE(Bench, "shapes: binary ops name operands that do not fit") {
  CHECK_ERROR("add 'add': the shapes do not broadcast: a f32(8,10), b f32(11)", ops::add(f32({8, 10}), f32({11})));
  CHECK_ERROR("mul 'mul': expected equal dtypes, got a f32(8), b f64(8)", ops::mul(f32({8}), f64({8})));
  CHECK_ERROR("sub 'sub': expected numbers, got a bool(2)", ops::sub(value(DType::boolean, {2}), value(DType::boolean, {2})));
  CHECK_ERROR("equal 'equal': the shapes do not broadcast: a f32(0), b f32(2)", ops::equal(f32({0}), f32({2})));
  CHECK(str(ops::equal(value(DType::boolean, {2}), value(DType::boolean, {2}))) == "bool(2)");
  CHECK_ERROR("add 'add': expected 2 operands, got 1", g.apply(TENON_OP_Add, {f32({2})}));
}

TEST_CASE_FIXTURE(Bench, "shapes: a number stands for a scalar constant of the operand's dtype") {
  CHECK(str(ops::add(f64({3, 4}), 1.5)) == "f64(3,4)");
  CHECK(str(ops::mul(i64({3}), 2)) == "i64(3)");
  CHECK_ERROR("the constant 0.5 is not a value of i64", ops::mul(i64({3}), 0.5));
}

TEST_CASE_FIXTURE(Bench, "shapes: unary ops keep dtype and shape") {
  for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 0, 4}}) {
    const std::string expected = "f64" + shape.str();
    CHECK(str(ops::neg(f64(shape))) == expected);
    CHECK(str(ops::relu(f64(shape))) == expected);
    CHECK(str(ops::sigmoid(f64(shape))) == expected);
    CHECK(str(ops::tanh(f64(shape))) == expected);
  }
  CHECK_ERROR("sigmoid 'sigmoid_3': expected a floating dtype, got x i64(2)", ops::sigmoid(i64({2})));
  CHECK_ERROR("tanh 'tanh_3': expected a floating dtype, got x u8(2)", ops::tanh(value(DType::u8, {2})));
  CHECK_ERROR("relu 'relu_3': expected numbers, got x bool(2)", ops::relu(value(DType::boolean, {2})));
}

TEST_CASE("shapes: the gradients of unary ops expect dy and y of equal shape") {
  for (tenon_op op : {TENON_OP_ReluGrad, TENON_OP_SigmoidGrad, TENON_OP_TanhGrad}) {
    Bench t;
    CHECK(str(t.g.apply(op, {t.f32({2, 3}), t.f32({2, 3})})[0]) == "f32(2,3)");
    CHECK_ERROR_CONTAINS("expected equal shapes, got dy f32(2,3), y f32(3)", t.g.apply(op, {t.f32({2, 3}), t.f32({3})}));
    CHECK_ERROR_CONTAINS("expected equal dtypes, got dy f32(3), y f64(3)", t.g.apply(op, {t.f32({3}), t.f64({3})}));
  }
}

TEST_CASE_FIXTURE(Bench, "shapes: cast changes only the dtype") {
  CHECK(str(ops::cast(f32({2, 3}), DType::i64)) == "i64(2,3)");
  CHECK(str(ops::cast(value(DType::boolean, {}), DType::f64)) == "f64()");
  CHECK_ERROR("cast 'cast_2': expected a dtype to cast x f32(2) to, got 0", ops::cast(f32({2}), DType::none));
}

TEST_CASE("shapes: reductions resolve, sort and default their axes") {
  struct Row {
    std::vector<std::int64_t> axes;
    bool keepdims;
    const char* y;
    std::vector<std::int64_t> normal;
  };
  const Row rows[] = {{{}, false, "f32()", {0, 1, 2}},       {{}, true, "f32(1,1,1)", {0, 1, 2}}, {{1}, false, "f32(2,4)", {1}},
                      {{-1}, true, "f32(2,3,1)", {2}},       {{2, 0}, false, "f32(3)", {0, 2}},   {{-1, -3}, true, "f32(1,3,1)", {0, 2}},
                      {{0, 1, 2}, false, "f32()", {0, 1, 2}}};
  for (const Row& row : rows) {
    Bench t;
    CAPTURE(row.y);
    const Value sum = ops::reduce_sum(t.f32({2, 3, 4}), row.axes, row.keepdims);
    const Value mean = ops::reduce_mean(t.f32({2, 3, 4}), row.axes, row.keepdims);
    CHECK(str(sum) == row.y);
    CHECK(str(mean) == row.y);
    CHECK(axes_of(node_of(sum)) == row.normal);
    CHECK(axes_of(node_of(mean)) == row.normal);
  }
  Bench t;
  CHECK(str(ops::reduce_sum(t.f32({}))) == "f32()");
  CHECK(str(ops::reduce_sum(t.f32({0, 4}), {0})) == "f32(4)");
}

TEST_CASE_FIXTURE(Bench, "shapes: reductions reject axes that are out of range or repeated") {
  CHECK_ERROR("reduce_sum 'reduce_sum': axis 2 is out of range for x f32(8,10)", ops::reduce_sum(f32({8, 10}), {2}));
  CHECK_ERROR("reduce_mean 'reduce_mean': axis -3 is out of range for x f32(8,10)", ops::reduce_mean(f32({8, 10}), {-3}));
  CHECK_ERROR("reduce_sum 'reduce_sum': axis -1 of x f32(8,10) is repeated", ops::reduce_sum(f32({8, 10}), {1, -1}));
  CHECK_ERROR("reduce_sum 'reduce_sum': axis 0 is out of range for x f32()", ops::reduce_sum(f32({}), {0}));
  CHECK_ERROR("reduce_mean 'reduce_mean': expected a floating dtype, got x i64(2)", ops::reduce_mean(i64({2})));
  CHECK_ERROR("reduce_sum: expected at most 8 axes, got 9", ops::reduce_sum(f32({2}), std::vector<std::int64_t>(9, 0)));
}

TEST_CASE_FIXTURE(Bench, "shapes: arg_max gives i64 and resolves its axis") {
  const Value y = ops::arg_max(f32({8, 10}), -1);
  CHECK(str(y) == "i64(8)");
  CHECK(node_of(y).attributes.as<tenon_attributes_axis>().axis == 1);
  CHECK(str(ops::arg_max(f32({8, 10}), 0, true)) == "i64(1,10)");
  CHECK(str(ops::arg_max(f32({0, 10}), 1)) == "i64(0)");
  CHECK_ERROR("arg_max 'arg_max_3': axis 1 of x f32(8,0) has no elements to choose from", ops::arg_max(f32({8, 0}), 1));
  CHECK_ERROR("arg_max 'arg_max_3': axis 1 is out of range for x f32(8)", ops::arg_max(f32({8}), 1));
}

TEST_CASE_FIXTURE(Bench, "shapes: reshape keeps the count, -1 is inferred") {
  CHECK(str(ops::reshape(f32({8, 10}), {4, 20})) == "f32(4,20)");
  CHECK(str(ops::reshape(f32({8, 10}), {-1, 5})) == "f32(16,5)");
  CHECK(str(ops::reshape(f32({8, 10}), Shape{80})) == "f32(80)");
  CHECK(str(ops::reshape(f32({1, 1}), {})) == "f32()");
  CHECK(str(ops::reshape(f32({0, 3}), {3, 0})) == "f32(3,0)");
  const std::vector<std::int64_t> dims{2, -1};
  CHECK(str(ops::reshape(f32({8}), dims)) == "f32(2,4)");
  CHECK_ERROR("reshape 'reshape_6': expected equal counts: x f32(8,10) has 80 elements, (9,9) expects 81",
              ops::reshape(f32({8, 10}), {9, 9}));
  CHECK_ERROR("reshape of 'v7' f32(8,10) to (3,-1): the count is not divisible by the given sizes", ops::reshape(f32({8, 10}), {3, -1}));
  CHECK_ERROR("reshape of 'v8' f32(8) to (-1,-1): -1 occurs twice", ops::reshape(f32({8}), {-1, -1}));
  CHECK_ERROR("reshape of 'v9' f32(0) to (0,-1): -1 cannot be inferred with a size of 0", ops::reshape(f32({0}), {0, -1}));
  CHECK_ERROR("reshape of 'v10' f32(8) to (-2,4): expected sizes >= 0, or one -1", ops::reshape(f32({8}), {-2, 4}));
  CHECK_ERROR("reshape 'reshape_6': the result's shape is not given (NodeOptions::shape)", g.apply(TENON_OP_Reshape, {f32({2})}));
}

TEST_CASE_FIXTURE(Bench, "shapes: flatten merges the dimensions into two") {
  CHECK(str(ops::flatten(f32({8, 3, 4}))) == "f32(8,12)");
  CHECK(str(ops::flatten(f32({8, 3, 4}), 0)) == "f32(1,96)");
  CHECK(str(ops::flatten(f32({8, 3, 4}), 3)) == "f32(96,1)");
  CHECK(str(ops::flatten(f32({8, 3, 4}), -1)) == "f32(24,4)");
  CHECK(str(ops::flatten(f32({}), 0)) == "f32(1,1)");
  CHECK(str(ops::flatten(f32({0, 3}))) == "f32(0,3)");
  CHECK_ERROR("flatten 'flatten_6': axis 3 is out of range for x f32(8,3)", ops::flatten(f32({8, 3}), 3));
}

TEST_CASE_FIXTURE(Bench, "shapes: transpose expects a permutation, or reverses") {
  const Value reversed = ops::transpose(f32({2, 3, 4}));
  CHECK(str(reversed) == "f32(4,3,2)");
  CHECK(axes_of(node_of(reversed)) == std::vector<std::int64_t>{2, 1, 0});
  const Value permuted = ops::transpose(f32({2, 3, 4}), {-1, 0, 1});
  CHECK(str(permuted) == "f32(4,2,3)");
  CHECK(axes_of(node_of(permuted)) == std::vector<std::int64_t>{2, 0, 1});
  CHECK(str(ops::transpose(f32({}))) == "f32()");
  CHECK_ERROR("transpose 'transpose_3': axis 0 occurs twice in the permutation of x f32(2,3)", ops::transpose(f32({2, 3}), {0, 0}));
  CHECK_ERROR("transpose 'transpose_3': expected a permutation of 2 axes for x f32(2,3), got 1", ops::transpose(f32({2, 3}), {0}));
  CHECK_ERROR("transpose 'transpose_3': axis 2 is out of range for x f32(2,3)", ops::transpose(f32({2, 3}), {0, 2}));
}

TEST_CASE_FIXTURE(Bench, "shapes: expand broadcasts to a shape") {
  CHECK(str(ops::expand(f32({3, 1}), {2, 3, 4})) == "f32(2,3,4)");
  CHECK(str(ops::expand(f32({}), {5})) == "f32(5)");
  CHECK(str(ops::expand(f32({1}), {0})) == "f32(0)");
  CHECK_ERROR("expand 'expand_3': x f32(3,1) does not broadcast to (2,4)", ops::expand(f32({3, 1}), {2, 4}));
  CHECK_ERROR("expand 'expand_3': x f32(3,1) does not broadcast to (3)", ops::expand(f32({3, 1}), {3}));
  CHECK_ERROR("expand 'expand_3': x f32(3) does not broadcast to (1)", ops::expand(f32({3}), {1}));
}

TEST_CASE("shapes: matmul multiplies matrices, batches and vectors") {
  struct Row {
    Shape a, b;
    const char* y;
  };
  const Row rows[] = {{{8, 10}, {10, 3}, "f32(8,3)"},      {{10}, {10, 3}, "f32(3)"},
                      {{8, 10}, {10}, "f32(8)"},           {{10}, {10}, "f32()"},
                      {{5, 8, 10}, {10, 3}, "f32(5,8,3)"}, {{5, 1, 8, 10}, {7, 10, 3}, "f32(5,7,8,3)"},
                      {{8, 10}, {5, 10, 3}, "f32(5,8,3)"}, {{10}, {5, 10, 3}, "f32(5,3)"},
                      {{5, 8, 10}, {10}, "f32(5,8)"},      {{8, 0}, {0, 3}, "f32(8,3)"},
                      {{0, 10}, {10, 3}, "f32(0,3)"}};
  for (const Row& row : rows) {
    Bench t;
    CAPTURE(row.y);
    CHECK(str(ops::matmul(t.f32(row.a), t.f32(row.b))) == row.y);
  }
}

TEST_CASE_FIXTURE(Bench, "shapes: matmul names operands that do not fit") {
  CHECK_ERROR("matmul 'dense_1/matmul': expected equal inner sizes, got a f32(8,10), b f32(11,3)",
              g.apply(TENON_OP_MatMul, {f32({8, 10}), f32({11, 3})}, {}, {.name = "dense_1/matmul", .shape = {}}));
  CHECK_ERROR("matmul 'matmul': the batch dimensions do not broadcast: a f32(2,8,10), b f32(3,10,3)",
              ops::matmul(f32({2, 8, 10}), f32({3, 10, 3})));
  CHECK_ERROR("matmul 'matmul': expected a vector, a matrix or a batch of them, got a f32()", ops::matmul(f32({}), f32({3})));
  CHECK_ERROR("matmul 'matmul': expected equal dtypes, got a f32(3), b f64(3)", ops::matmul(f32({3}), f64({3})));
  CHECK_ERROR("matmul 'matmul': expected equal inner sizes, got a f32(3), b f32(4)", ops::matmul(f32({3}), f32({4})));
}

TEST_CASE_FIXTURE(Bench, "shapes: gemm with transposes and an addend that broadcasts") {
  CHECK(str(ops::gemm(f32({8, 10}), f32({10, 3}))) == "f32(8,3)");
  CHECK(str(ops::gemm(f32({10, 8}), f32({10, 3}), {}, {.trans_a = true})) == "f32(8,3)");
  CHECK(str(ops::gemm(f32({8, 10}), f32({3, 10}), {}, {.trans_b = true})) == "f32(8,3)");
  CHECK(str(ops::gemm(f32({10, 8}), f32({3, 10}), {}, {.trans_a = true, .trans_b = true})) == "f32(8,3)");
  for (const Shape& c : {Shape{}, Shape{3}, Shape{1}, Shape{8, 1}, Shape{1, 3}, Shape{8, 3}}) {
    CHECK(str(ops::gemm(f32({8, 10}), f32({10, 3}), f32(c))) == "f32(8,3)");
  }
}

TEST_CASE_FIXTURE(Bench, "shapes: gemm names operands that do not fit") {
  CHECK_ERROR("gemm 'gemm': expected equal inner sizes, got a f32(8,10), b f32(11,3)", ops::gemm(f32({8, 10}), f32({11, 3})));
  CHECK_ERROR("gemm 'gemm': expected equal inner sizes, got a f32(8,10) transposed, b f32(10,3)",
              ops::gemm(f32({8, 10}), f32({10, 3}), {}, {.trans_a = true}));
  CHECK_ERROR("gemm 'gemm': expected a matrix, got b f32(10)", ops::gemm(f32({8, 10}), f32({10})));
  CHECK_ERROR("gemm 'gemm': c f32(8) does not broadcast to (8,3)", ops::gemm(f32({8, 10}), f32({10, 3}), f32({8})));
  CHECK_ERROR("gemm 'gemm': c f32(8,3) does not broadcast to (1,3)", ops::gemm(f32({1, 10}), f32({10, 3}), f32({8, 3})));
  CHECK_ERROR("gemm 'gemm': expected equal dtypes, got a f32(8,10), c f64(3)", ops::gemm(f32({8, 10}), f32({10, 3}), f64({3})));
  tenon_attributes_gemm attributes{.trans_b = 2};
  CHECK_ERROR("gemm 'gemm': trans_b is 2, expected 0 or 1",
              g.apply(TENON_OP_Gemm, {f32({8, 10}), f32({10, 3})}, Attributes::of(attributes)));
}

TEST_CASE_FIXTURE(Bench, "shapes: softmax keeps the shape and resolves its axis") {
  const Value y = ops::softmax(f32({8, 10}));
  CHECK(str(y) == "f32(8,10)");
  CHECK(node_of(y).attributes.as<tenon_attributes_axis>().axis == 1);
  CHECK(node_of(ops::log_softmax(f32({8, 10}), -2)).attributes.as<tenon_attributes_axis>().axis == 0);
  CHECK(str(ops::softmax(f32({0, 4}))) == "f32(0,4)");
  CHECK_ERROR("softmax 'softmax_2': axis 3 is out of range for x f32(8,10)", ops::softmax(f32({8, 10}), 3));
  CHECK_ERROR("log_softmax 'log_softmax_1': axis -1 is out of range for x f32()", ops::log_softmax(f32({})));
  CHECK_ERROR("softmax 'softmax_2': expected a floating dtype, got x i64(2)", ops::softmax(i64({2})));
  for (tenon_op op : {TENON_OP_SoftmaxGrad, TENON_OP_LogSoftmaxGrad}) {
    const Attributes last = Attributes::of(tenon_attributes_axis{.struct_size = 0, .keepdims = 0, .axis = -1});
    const Value dx = g.apply(op, {f32({2, 3}), f32({2, 3})}, last)[0];
    CHECK(str(dx) == "f32(2,3)");
    CHECK(node_of(dx).attributes.as<tenon_attributes_axis>().axis == 1);
    CHECK_ERROR_CONTAINS("expected equal shapes, got dy f32(2,3), y f32(3,2)", g.apply(op, {f32({2, 3}), f32({3, 2})}, last));
  }
}

TEST_CASE_FIXTURE(Bench, "shapes: softmax_cross_entropy reduces to a scalar by default") {
  const Value labels = value(DType::i32, {8});
  CHECK(str(ops::softmax_cross_entropy(f32({8, 10}), labels)) == "f32()");
  CHECK(str(ops::softmax_cross_entropy(f32({8, 10}), labels, {.reduction = ops::Reduction::none, .ignore_index = {}, .weights = {}})) ==
        "f32(8)");
  CHECK(str(ops::softmax_cross_entropy(f64({8, 10, 5}), i64({8, 5}),
                                       {.reduction = ops::Reduction::none, .ignore_index = -1, .weights = f64({10})})) == "f64(8,5)");
  CHECK(str(ops::softmax_cross_entropy(f32({0, 10}), i64({0}))) == "f32()");
  const Value loss = ops::softmax_cross_entropy(f32({8, 10}), labels);
  REQUIRE(node_of(loss).outputs.size() == 2);
  CHECK(str(Value(&g, node_of(loss).outputs[1])) == "f32(8,10)");
}

TEST_CASE_FIXTURE(Bench, "shapes: softmax_cross_entropy names what does not fit") {
  const auto text = [&](Value scores, Value labels, Value weights = {}) {
    return message_of(
        [&] { ops::softmax_cross_entropy(scores, labels, {.reduction = ops::Reduction::mean, .ignore_index = {}, .weights = weights}); });
  };
  const std::string head = "softmax_cross_entropy 'softmax_cross_entropy': ";
  CHECK(text(f32({8}), i64({8})) == head + "expected scores of shape (N, classes, ...), got scores f32(8)");
  CHECK(text(f32({8, 10}), f32({8})) == head + "expected labels of i32 or i64, got labels f32(8)");
  CHECK(text(f32({8, 10}), i64({8, 10})) == head + "expected labels of shape (8) for scores f32(8,10), got labels i64(8,10)");
  CHECK(text(f32({8, 10, 4}), i64({8, 3})) == head + "expected labels of shape (8,4) for scores f32(8,10,4), got labels i64(8,3)");
  CHECK(text(f32({8, 10}), i64({8}), f32({9})) == head + "expected weights of shape (10) for scores f32(8,10), got weights f32(9)");
  CHECK(text(f32({8, 10}), i64({8}), f64({10})) == head + "expected equal dtypes, got scores f32(8,10), weights f64(10)");
  CHECK_ERROR(head + "reduction is 7, expected none (0), mean (1) or sum (2)",
              g.apply(TENON_OP_SoftmaxCrossEntropyLoss, {f32({8, 10}), i64({8})},
                      Attributes::of(tenon_attributes_cross_entropy{
                          .struct_size = 0, .reduction = 7, .has_ignore_index = 0, .reserved = 0, .ignore_index = 0})));
}

TEST_CASE_FIXTURE(Bench, "shapes: the gradient of softmax_cross_entropy has the shape of the scores") {
  tenon_attributes_cross_entropy none{};
  const Attributes per_label = Attributes::of(none);
  CHECK(str(g.apply(TENON_OP_SoftmaxCrossEntropyLossGrad, {f32({8}), f32({8, 10}), i64({8})}, per_label)[0]) == "f32(8,10)");
  CHECK_ERROR("softmax_cross_entropy_grad 'softmax_cross_entropy_grad_1': expected dloss of shape (8), got dloss f32()",
              g.apply(TENON_OP_SoftmaxCrossEntropyLossGrad, {f32({}), f32({8, 10}), i64({8})}, per_label));
}

TEST_CASE_FIXTURE(Bench, "shapes: random values take dtype and shape from the caller") {
  CHECK(str(ops::random_uniform(key(), DType::f32, {3, 4}, 1, -1, 1)) == "f32(3,4)");
  CHECK(str(ops::random_normal(key(), DType::f64, {5}, 2, 0, 0.1)) == "f64(5)");
  CHECK(str(ops::random_bernoulli(key(), DType::f32, {}, 3, 0.5)) == "f32()");
  CHECK_ERROR("random_uniform 'random_uniform_1': expected key as u64(2) (seed, step), got key i64(2)",
              ops::random_uniform(i64({2}), DType::f32, {3}, 1));
  CHECK_ERROR("random_uniform 'random_uniform_1': expected a floating dtype for the result, got i32",
              ops::random_uniform(key(), DType::i32, {3}, 1));
  CHECK_ERROR("random_uniform 'random_uniform_1': the range is [2, 1), expected finite low <= high",
              ops::random_uniform(key(), DType::f32, {3}, 1, 2, 1));
  CHECK_ERROR("random_normal 'random_normal_1': deviation is -1, expected a finite number >= 0",
              ops::random_normal(key(), DType::f32, {3}, 1, 0, -1));
  CHECK_ERROR("random_normal 'random_normal_1': mean is inf, expected a finite number",
              ops::random_normal(key(), DType::f32, {3}, 1, std::numeric_limits<double>::infinity(), 1));
  CHECK_ERROR("random_bernoulli 'random_bernoulli_1': probability is 1.5, expected 0 <= probability <= 1",
              ops::random_bernoulli(key(), DType::f32, {3}, 1, 1.5));
}

TEST_CASE("shapes: dropout expects 0 <= p < 1, and p = 0 is the identity") {
  Bench t;
  const Value x = t.f32({8, 10}), key = t.key();
  CHECK(str(ops::dropout(x, key, 0.5, 1)) == "f32(8,10)");
  CHECK(ops::dropout(x, key, 0, 1).id() == x.id());
  CHECK(t.g.nodes().size() == 1);
  tenon_attributes_random attributes{.a = 1.5};
  CHECK_ERROR("dropout 'd': p is 1.5, expected 0 <= p < 1",
              t.g.apply(TENON_OP_Dropout, {x, key}, Attributes::of(attributes), {.name = "d", .shape = {}}));
  CHECK_ERROR("dropout 'dropout_1': p is 1, expected 0 <= p < 1", ops::dropout(x, key, 1, 1));
  CHECK_ERROR("dropout 'dropout_1': p is -0.1, expected 0 <= p < 1", ops::dropout(x, key, -0.1, 1));
  CHECK_ERROR("dropout 'dropout_1': p is nan, expected 0 <= p < 1", ops::dropout(x, key, std::nan(""), 1));
  CHECK_ERROR("dropout 'dropout_1': expected key as u64(2) (seed, step), got key f32(8,10)", ops::dropout(x, x, 0.5, 1));
}

TEST_CASE_FIXTURE(Bench, "shapes: mse does not broadcast") {
  CHECK(str(ops::mse(f32({8, 1}), f32({8, 1}))) == "f32()");
  const Value y = f32({8, 1}), target = f32({8});
  CHECK_ERROR("mse: expected y and target of one shape, got 'v2' (8,1) and 'v3' (8)", ops::mse(y, target));
}

namespace {

struct Optimizers : Bench {
  Value w = g.parameter("w", DType::f32, {4, 3}), b = g.parameter("b", DType::f32, {3});
  Value m = g.parameter("m", DType::f32, {4, 3}), n = g.parameter("n", DType::f32, {3});
  Value m2 = g.parameter("m2", DType::f32, {4, 3}), n2 = g.parameter("n2", DType::f32, {3});
  Value dw = f32({4, 3}), db = f32({3}), lr = g.input("lr", DType::f64, {}), step = g.input("step", DType::i64, {});
};

}  // namespace

TEST_CASE("optimizers: a step registers the updates of parameters and state") {
  Optimizers t;
  tenon_attributes_adam attributes{.beta1 = 0.9, .beta2 = 0.999};
  ops::adam_step({t.w, t.b}, {t.dw, t.db}, {t.m, t.m2, t.n, t.n2}, t.lr, t.step, attributes);
  REQUIRE(t.g.nodes().size() == 1);
  CHECK(contains(t.g.str(), "AdamStep(lr, step, w, v0, m, m2, b, v1, n, n2)"));
  CHECK(contains(t.g.str(),
                 "update w = adam_step\nupdate m = adam_step.1\nupdate m2 = adam_step.2\n"
                 "update b = adam_step.3\nupdate n = adam_step.4\nupdate n2 = adam_step.5\n"));
}

TEST_CASE("optimizers: sgd without momentum has no state") {
  Optimizers t;
  ops::sgd_step({t.w, t.b}, {t.dw, t.db}, {}, t.lr, {});
  CHECK(t.g.nodes()[0].inputs.size() == 5);
  CHECK(t.g.nodes()[0].outputs.size() == 2);
  Optimizers u;
  tenon_attributes_sgd attributes{.momentum = 0.9};
  ops::sgd_step({u.w, u.b}, {u.dw, u.db}, {u.m, u.n}, u.lr, attributes);
  CHECK(u.g.nodes()[0].inputs.size() == 7);
  CHECK(u.g.updates().size() == 4);
}

TEST_CASE("optimizers: rmsprop has one state for each parameter") {
  Optimizers t;
  ops::rmsprop_step({t.w}, {t.dw}, {t.m}, t.lr, {.struct_size = 0, .epsilon_outside = 1, .rho = 0.9, .epsilon = 1e-7});
  CHECK(contains(t.g.str(), "rmsprop_step:f32(4,3), rmsprop_step.1:f32(4,3) = RmsPropStep(lr, w, v0, m)"));
}

TEST_CASE("optimizers: what does not fit is reported") {
  Optimizers t;
  CHECK_ERROR("sgd_step: for 2 parameters, expected 2 gradients and 0 values of state, got 1 and 0",
              ops::sgd_step({t.w, t.b}, {t.dw}, {}, t.lr, {}));
  CHECK_ERROR("sgd_step: expected one parameter or more, got none", ops::sgd_step({}, {}, {}, t.lr, {}));
  CHECK_ERROR("sgd_step 'sgd_step': expected equal dtypes and shapes within a group, got w 'w' f32(4,3), g 'v1' f32(3)",
              ops::sgd_step({t.w}, {t.db}, {}, t.lr, {}));
  CHECK_ERROR("sgd_step 'sgd_step': expected lr as f64(), got lr i64()", ops::sgd_step({t.w}, {t.dw}, {}, t.step, {}));
  CHECK_ERROR("adam_step 'adam_step': expected step as i64(), got step f64()", ops::adam_step({t.w}, {t.dw}, {t.m, t.m2}, t.lr, t.lr, {}));
  CHECK_ERROR("sgd_step 'sgd_step': expected parameters of one dtype, got w 'w' f32(4,3), w 'd' f64()",
              ops::sgd_step({t.w, t.g.parameter("d", DType::f64, {})}, {t.dw, t.f64({})}, {}, t.lr, {}));
  CHECK_ERROR("rmsprop_step 'rmsprop_step': expected 1 operand and groups of (w, g, v), got 3 operands",
              t.g.apply(TENON_OP_RmsPropStep, {t.lr, t.w, t.dw}, Attributes::of(tenon_attributes_rmsprop{})));
  CHECK_ERROR_CONTAINS("expected 1 operand, got 0", t.g.apply(TENON_OP_SgdStep, {}, Attributes::of(tenon_attributes_sgd{})));
  CHECK(t.g.updates().empty());
}

TEST_CASE("optimizers: hyperparameters out of range are reported") {
  Optimizers t;
  tenon_attributes_sgd sgd{.nesterov = 1};
  CHECK_ERROR("sgd_step 'sgd_step': nesterov: expected a momentum > 0, got 0", ops::sgd_step({t.w}, {t.dw}, {}, t.lr, sgd));
  sgd = {};
  sgd.momentum = 1;
  CHECK_ERROR("sgd_step 'sgd_step': momentum is 1, expected 0 <= momentum < 1", ops::sgd_step({t.w}, {t.dw}, {t.m}, t.lr, sgd));
  sgd = {};
  sgd.weight_decay = -1;
  CHECK_ERROR("sgd_step 'sgd_step': weight_decay is -1, expected weight_decay >= 0", ops::sgd_step({t.w}, {t.dw}, {}, t.lr, sgd));
  tenon_attributes_adam adam{.beta2 = 1};
  CHECK_ERROR("adam_step 'adam_step': beta2 is 1, expected 0 <= beta2 < 1", ops::adam_step({t.w}, {t.dw}, {t.m, t.m2}, t.lr, t.step, adam));
  tenon_attributes_rmsprop rmsprop{.epsilon = std::nan("")};
  CHECK_ERROR("rmsprop_step 'rmsprop_step': epsilon is nan, expected epsilon >= 0", ops::rmsprop_step({t.w}, {t.dw}, {t.m}, t.lr, rmsprop));
}
