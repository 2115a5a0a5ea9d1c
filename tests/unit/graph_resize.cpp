// SPDX-License-Identifier: Apache-2.0
// Shapes and errors of resize and upsample.
#include <doctest/doctest.h>

#include <limits>

#include "graph_testing.h"

using namespace tenon;
using namespace tenon::test;

namespace {

struct Image {
  Graph g;
  Value x = g.input("x", DType::f32, {2, 3, 4, 6});

  std::string apply(const tenon_attributes_resize& a, const Shape& y) {
    return message_of([&] { g.apply(TENON_OP_Resize, {x}, Attributes::of(a), {.name = {}, .shape = y}); });
  }
};

tenon_attributes_resize twice() {
  tenon_attributes_resize a{};
  std::fill(std::begin(a.scales), std::end(a.scales), 1);
  a.scales[2] = a.scales[3] = 2;
  return a;
}

}  // namespace

TEST_CASE_FIXTURE(Image, "resize: the spatial sizes are those requested") {
  const Value y = ops::resize(x, {3, 9});
  CHECK(str(y) == "f32(2,3,3,9)");
  const auto& attributes = node_of(y).attributes.as<tenon_attributes_resize>();
  CHECK(attributes.scales[1] == 1);
  CHECK(attributes.scales[2] == 0.75);
  CHECK(attributes.scales[3] == 1.5);
  CHECK(ops::resize(x, {4, 6}).id() == x.id());
  CHECK(str(ops::upsample(x, {2, 3}, ops::ResizeMode::linear)) == "f32(2,3,8,18)");
  CHECK(str(ops::upsample(g.input("signal", DType::f64, {1, 2, 5}), {4})) == "f64(1,2,20)");
}

TEST_CASE_FIXTURE(Image, "resize: invalid sizes and factors are rejected") {
  CHECK_ERROR("resize: expected a size for each spatial dimension of an image (N, C, d...), got 1 for 'x' (2,3,4,6)", ops::resize(x, {3}));
  CHECK_ERROR("resize: expected sizes of 1 or more, got 0 for 'x' (2,3,4,6)", ops::resize(x, {3, 0}));
  CHECK_ERROR("upsample: expected factors of 1 or more, got 0 for 'x' (2,3,4,6)", ops::upsample(x, {0, 1}));
  CHECK_ERROR_CONTAINS("expected a factor for each spatial dimension", ops::upsample(x, {2}));
  CHECK_ERROR_CONTAINS("longer than a dimension can be", ops::upsample(x, {std::numeric_limits<std::int64_t>::max(), 1}));
  const Value nothing = g.input("nothing", DType::f32, {1, 1, 0});
  CHECK_ERROR("resize 'resize': axis 2 has no elements: from (1,1,0) to (1,1,3)", ops::resize(nothing, {3}));
}

TEST_CASE_FIXTURE(Image, "resize: a node with contradictory scales and sizes is rejected") {
  CHECK(apply(twice(), {2, 3, 8, 12}) == "no error");
  CHECK(contains(apply(twice(), {2, 3, 8, 18}), "a scale of 2 does not make 18 elements of 6 along axis 3"));
  CHECK(contains(apply(twice(), {2, 6, 8, 12}), "expected the batch size and channels of x (2,3,4,6) unchanged"));
  tenon_attributes_resize a = twice();
  a.scales[2] = 0;
  CHECK(contains(apply(a, {2, 3, 8, 12}), "expected a scale > 0, got 0 for axis 2"));
  a = twice();
  a.coordinates = 4;
  CHECK(contains(apply(a, {2, 3, 8, 12}), "coordinates is 4, expected 0 to 3"));
  a = twice();
  a.scales[3] = 2.1;  // sizes are rounded down
  CHECK(apply(a, {2, 3, 8, 12}) == "no error");
}

TEST_CASE("gradient: that of resize has the image's shape") {
  Graph g;
  const Value x = g.parameter("x", DType::f32, {2, 3, 4, 6});
  const Value dx = gradients(ops::reduce_sum(ops::resize(x, {9, 5}, {.mode = ops::ResizeMode::linear})), {x})[0];
  CHECK(node_of(dx).op == TENON_OP_ResizeGrad);
  CHECK(dx.shape() == x.shape());
}
