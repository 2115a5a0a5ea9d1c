// SPDX-License-Identifier: Apache-2.0
// Shapes and errors of slicing, concatenation and gathering.
#include <doctest/doctest.h>

#include <limits>

#include "graph_testing.h"

using namespace tenon;
using namespace tenon::test;

namespace {

struct Matrix {
  Graph g;
  Value x = g.input("x", DType::f32, {4, 6});
};

}  // namespace

TEST_CASE_FIXTURE(Matrix, "slice: begin and end are clamped as in Python") {
  constexpr std::int64_t far = std::numeric_limits<std::int64_t>::max();
  struct Row {
    std::int64_t begin, end, step, size;
  };
  for (const Row& row : {Row{1, 3, 1, 2}, Row{0, far, 1, 6}, Row{-2, far, 1, 2}, Row{3, 1, 1, 0}, Row{far, far, 1, 0}, Row{0, 6, 4, 2},
                         Row{5, -far, -1, 6}, Row{-1, 0, -2, 3}, Row{far, -far, -far, 1}, Row{-far, 2, 1, 2}, Row{0, 5, -1, 0}}) {
    CAPTURE(row.begin);
    CAPTURE(row.end);
    CAPTURE(row.step);
    CHECK(ops::slice(x, 1, row.begin, row.end, row.step).shape() == Shape{4, row.size});
  }
  CHECK_ERROR("slice: expected a step other than 0 along axis 1 of 'x' (4,6)", ops::slice(x, 1, 0, 3, 0));
}

TEST_CASE_FIXTURE(Matrix, "slice: a node that exceeds its operand is rejected") {
  tenon_attributes_slice attributes{};
  attributes.starts[1] = 4;
  attributes.steps[0] = attributes.steps[1] = 1;
  CHECK_ERROR("slice 'slice': 3 elements from 4 in steps of 1 exceed axis 1 of x f32(4,6)",
              g.apply(TENON_OP_Slice, {x}, Attributes::of(attributes), {.name = {}, .shape = Shape{4, 3}}));
  attributes.steps[1] = std::numeric_limits<std::int64_t>::min();
  CHECK_ERROR("slice 'slice': 2 elements from 4 in steps of -9223372036854775808 exceed axis 1 of x f32(4,6)",
              g.apply(TENON_OP_Slice, {x}, Attributes::of(attributes), {.name = {}, .shape = Shape{4, 2}}));
}

TEST_CASE_FIXTURE(Matrix, "pad: invalid widths and values are rejected") {
  CHECK(str(ops::pad(x, {{1, 2}, {0, 3}})) == "f32(7,9)");
  CHECK_ERROR("pad: expected one pair of widths per dimension of 'x' (4,6), got 1", ops::pad(x, {{1, 2}}));
  CHECK_ERROR("pad: the widths of axis 0 of 'x' (4,6) are (-1, 2), expected 0 or more; use slice to remove elements",
              ops::pad(x, {{-1, 2}, {0, 0}}));
  CHECK_ERROR("pad 'pad_1': reflect repeats at most 3 elements on either side of axis 0 of x f32(4,6), got 4 and 0",
              ops::pad(x, {{4, 0}, {0, 0}}, 0, ops::PadMode::reflect));
  const Value whole = g.input("whole", DType::i32, {2});
  CHECK(message_of([&] { ops::pad(whole, {{1, 0}}, 0.5); }).substr(0, 4) == "pad:");
}

TEST_CASE_FIXTURE(Matrix, "concat: sizes that differ outside the axis are reported") {
  const Value y = g.input("y", DType::f32, {4, 2}), z = g.input("z", DType::f32, {3, 2});
  CHECK(str(ops::concat({x, y, x}, 1)) == "f32(4,14)");
  CHECK_ERROR("concat 'concat_1': expected equal sizes except along axis 1, got operand 0 f32(4,6), operand 2 f32(3,2)",
              ops::concat({x, y, z}, -1));
  CHECK(str(ops::stack({x, x, x}, 1)) == "f32(4,3,6)");
  CHECK_ERROR("stack: expected values of one shape, got (4,6) and (4,2)", ops::stack({x, y}));
}

TEST_CASE_FIXTURE(Matrix, "concat: sizes whose sum overflows are rejected") {
  const Value empty = g.input("empty", DType::f32, {0, std::int64_t{1} << 62});
  CHECK_ERROR("concat 'concat': the sum of the sizes along axis 1 overflows 64 bits", ops::concat({empty, empty}, 1));
}

TEST_CASE_FIXTURE(Matrix, "split: sizes must sum to the axis") {
  const std::vector<Value> parts = ops::split(x, {1, 0, 5}, 1);
  REQUIRE(parts.size() == 3);
  CHECK(str(parts[0]) == "f32(4,1)");
  CHECK(str(parts[1]) == "f32(4,0)");
  CHECK(str(parts[2]) == "f32(4,5)");
  CHECK_ERROR("split 'split_1': the sizes (1,4) do not add up to axis 1 of x f32(4,6), 1 element is left", ops::split(x, {1, 4}, 1));
  CHECK_ERROR("split 'split_1': the sizes (1,6) do not add up to axis 1 of x f32(4,6)", ops::split(x, {1, 6}, 1));
}

TEST_CASE_FIXTURE(Matrix, "gather: a result of too many dimensions is rejected") {
  const Value i = g.input("i", DType::i64, {1, 1, 1, 1, 1, 1, 1, 2});
  CHECK_ERROR("gather 'gather': expected a result of at most 8 dimensions, got 9: x f32(4,6), indices i64(1,1,1,1,1,1,1,2)",
              ops::gather(x, i));
  CHECK_ERROR("gather 'gather': expected indices of i32 or i64, got indices f32(4,6)", ops::gather(x, x));
  CHECK_ERROR("embedding: expected weights of (rows, n), got 'i' (1,1,1,1,1,1,1,2)", ops::embedding(i, i));
}

TEST_CASE("gradient: that of an embedding is a scatter_add to zeros") {
  Graph g;
  const Value weights = g.parameter("weights", DType::f32, {10, 4}), i = g.input("i", DType::i64, {3});
  const Value loss = ops::reduce_sum(ops::embedding(weights, i));
  const std::size_t before = g.nodes().size();
  gradients(loss, {weights});
  CHECK(ops_of(g, before) == "Expand Expand ScatterAdd");
}

TEST_CASE("gradient: that of a concat is made only for requested operands") {
  Graph g;
  const Value a = g.parameter("a", DType::f32, {2, 3}), b = g.input("b", DType::f32, {2, 4});
  const Value loss = ops::reduce_sum(ops::concat({a, b}, 1));
  const std::size_t before = g.nodes().size();
  gradients(loss, {a});
  CHECK(ops_of(g, before) == "Expand Slice");
}

TEST_CASE("reductions: the maximum of an empty axis is rejected by name") {
  Graph g;
  const Value x = g.input("x", DType::f32, {3, 0});
  CHECK_ERROR("reduce_max 'reduce_max': axis 1 of x f32(3,0) has no elements to choose from", ops::reduce_max(x, {1}));
  CHECK_ERROR("arg_min 'arg_min': axis 1 of x f32(3,0) has no elements to choose from", ops::arg_min(x, 1));
  CHECK(str(ops::reduce_max(x, {0})) == "f32(0)");
  CHECK_ERROR("norm: p is 0, expected p > 0; infinity gives the largest magnitude", ops::norm(x, 0));
  CHECK_ERROR("variance: expected n >= 2 for the unbiased variance of 'one' (1), got n = 1",
              ops::variance(g.input("one", DType::f32, {1}), {}, false, true));
}

TEST_CASE("one_hot: the depth is a new dimension") {
  Graph g;
  const Value i = g.input("i", DType::i32, {2, 3});
  CHECK(str(ops::one_hot(i, 5, DType::f32)) == "f32(2,3,5)");
  CHECK(str(ops::one_hot(i, 5, DType::boolean, 0, 1, 0)) == "bool(5,2,3)");
  CHECK(message_of([&] { ops::one_hot(i, 5, DType::u8, 0, 256); }).substr(0, 12) == "one_hot: on:");
}

TEST_CASE("squeeze and unsqueeze: dimensions of size 1 are removed and added") {
  Graph g;
  const Value x = g.input("x", DType::f32, {1, 3, 1});
  CHECK(str(ops::squeeze(x)) == "f32(3)");
  CHECK(str(ops::squeeze(x, {-1})) == "f32(1,3)");
  CHECK(str(ops::unsqueeze(x, {0, -1})) == "f32(1,1,3,1,1)");
  CHECK_ERROR("squeeze: expected a size of 1 for axis 1 of 'x' (1,3,1), got 3", ops::squeeze(x, {1}));
}
