// SPDX-License-Identifier: Apache-2.0
// Shapes: limits, strides, broadcasting, axes.
#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include <tenon/error.h>
#include <tenon/shape.h>

#include "testing.h"

using namespace tenon;

TEST_CASE("shape: a scalar has rank 0, one element and the text ()") {
  const Shape s;
  CHECK(s.rank() == 0);
  CHECK(s.count() == 1);
  CHECK(s.str() == "()");
}

TEST_CASE("shape: dimensions keep their order") {
  const Shape s{8, 10, 1};
  CHECK(s.rank() == 3);
  CHECK(s[1] == 10);
  CHECK(s.count() == 80);
  CHECK(s.str() == "(8,10,1)");
  CHECK(s == Shape{8, 10, 1});
  CHECK_FALSE(s == Shape{8, 10});
  CHECK(Shape{4, 0, 7}.count() == 0);
}

TEST_CASE("shape: a ninth dimension is rejected") {
  const std::vector<std::int64_t> nine(9, 1);
  CHECK_ERROR("shape (1,1,1,1,1,1,1,1,1): expected at most 8 dimensions, got 9", Shape{std::span<const std::int64_t>(nine)});
  Shape eight{1, 2, 1, 1, 1, 1, 1, 1};
  CHECK_ERROR("shape (1,2,1,1,1,1,1,1): already has 8 dimensions, another one of size 3 does not fit", eight.push_back(3));
}

TEST_CASE("shape: a negative size is rejected") {
  CHECK_ERROR("shape (4,-1): expected sizes of 0 or more, got -1", (Shape{4, -1}));
  Shape s{4};
  CHECK_THROWS_AS(s.push_back(-2), Error);
  CHECK(s == Shape{4});
}

TEST_CASE("shape: more than 2^62 elements are rejected, even with a size of zero") {
  const std::int64_t half = std::int64_t{1} << 31;
  CHECK(Shape{half, half}.count() == std::int64_t{1} << 62);
  CHECK_THROWS_AS((Shape{half, half, 2}), Error);
  CHECK_THROWS_AS((Shape{0, half, half, 2}), Error);
  CHECK_THROWS_AS((Shape{std::numeric_limits<std::int64_t>::max()}), Error);
}

TEST_CASE("shape: dense strides are row-major, and positive for empty shapes") {
  const auto strides = dense_strides({2, 3, 4});
  CHECK(strides[0] == 12);
  CHECK(strides[1] == 4);
  CHECK(strides[2] == 1);
  CHECK(dense_strides({2, 0, 4})[0] == 4);
}

TEST_CASE("shape: broadcasting follows NumPy") {
  CHECK(broadcast({8, 1, 6}, {7, 1}) == Shape{8, 7, 6});
  CHECK(broadcast({}, {3}) == Shape{3});
  CHECK(broadcast({1}, {0}) == Shape{0});
  CHECK_ERROR("shapes (2,3) and (4) do not broadcast: sizes 3 and 4 meet, expected equal sizes or a 1", broadcast({2, 3}, {4}));
}

TEST_CASE("shape: negative axes count from the end") {
  CHECK(resolve_axis(-1, 3, "softmax") == 2);
  CHECK(resolve_axis(0, 3, "softmax") == 0);
  CHECK_ERROR("softmax: axis 3 is out of range for rank 3, expected -3 to 2", resolve_axis(3, 3, "softmax"));
  CHECK_ERROR("softmax: axis 0 is out of range for rank 0, a scalar has no axes", resolve_axis(0, 0, "softmax"));
}

TEST_CASE("shape: a changed size is checked against the same bounds") {
  Shape shape{2, 3};
  shape.set(1, 0);
  CHECK(shape == Shape{2, 0});
  CHECK_ERROR("shape (2,0): dimension 2 is out of range for rank 2", shape.set(2, 1));
  CHECK_ERROR("shape (2,-1): expected sizes of 0 or more, got -1", shape.set(1, -1));
  CHECK_THROWS_AS(shape.set(0, INT64_MAX), Error);
  CHECK(shape == Shape{2, 0});  // a rejected change has no effect
}
