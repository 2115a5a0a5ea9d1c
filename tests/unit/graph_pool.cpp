// SPDX-License-Identifier: Apache-2.0
// Shapes and errors of pools.
#include <doctest/doctest.h>

#include "graph_testing.h"

using namespace tenon;
using namespace tenon::test;

namespace {

struct Image {
  Graph g;
  Value x = g.input("x", DType::f32, {2, 3, 7, 8});
};

ops::WindowOptions windows(std::vector<std::int64_t> strides, std::vector<std::pair<std::int64_t, std::int64_t>> padding = {}) {
  ops::WindowOptions options;
  options.strides = std::move(strides);
  options.padding = std::move(padding);
  return options;
}

}  // namespace

TEST_CASE_FIXTURE(Image, "pool: windows are counted as in ONNX") {
  CHECK(str(ops::max_pool(x, {2, 2})) == "f32(2,3,3,4)");  // strides are the kernel's
  CHECK(str(ops::max_pool(x, {3, 3}, windows({2, 2}))) == "f32(2,3,3,3)");
  CHECK(str(ops::max_pool(x, {3, 3}, windows({2, 2}, {{1, 1}, {1, 1}}))) == "f32(2,3,4,4)");
  ops::WindowOptions cut = windows({2, 2});
  cut.ceil_mode = true;
  CHECK(str(ops::max_pool(x, {3, 3}, cut)) == "f32(2,3,3,4)");
  cut.padding = {{0, 0}, {1, 1}};
  CHECK(str(ops::average_pool(x, {3, 3}, cut)) == "f32(2,3,3,5)");
  cut = windows({4, 3}, {{0, 2}, {0, 2}});  // 8 is after the 7 elements: a window there would see only padding
  cut.ceil_mode = true;
  CHECK(str(ops::max_pool(x, {3, 3}, cut)) == "f32(2,3,2,3)");
  ops::WindowOptions same = windows({2, 3});
  same.same = true;
  CHECK(str(ops::max_pool(x, {3, 3}, same)) == "f32(2,3,4,3)");
  ops::WindowOptions wide = windows({1, 1});
  wide.dilations = {3, 2};
  CHECK(str(ops::max_pool(x, {3, 3}, wide)) == "f32(2,3,1,4)");
  const Value signal = g.input("signal", DType::f16, {4, 2, 9});
  CHECK(str(ops::average_pool(signal, {4}, windows({2}))) == "f16(4,2,3)");
}

TEST_CASE("pool: in ceil_mode a kernel may exceed the padded image by less than a stride") {
  Graph g;
  const Value x = g.input("x", DType::f32, {1, 1, 3});
  ops::WindowOptions cut = windows({5});
  cut.ceil_mode = true;
  CHECK(str(ops::max_pool(x, {4}, cut)) == "f32(1,1,1)");
  CHECK(str(ops::average_pool(x, {7}, cut)) == "f32(1,1,1)");
  CHECK_ERROR_CONTAINS("the kernel's extent 8 exceeds the padded size 3 by a stride or more in spatial dimension 0",
                       ops::max_pool(x, {8}, cut));
  cut.ceil_mode = false;
  CHECK_ERROR_CONTAINS("the kernel's extent 4 exceeds the padded size 3 in spatial dimension 0", ops::max_pool(x, {4}, cut));
}

TEST_CASE_FIXTURE(Image, "pool: an odd element of padding comes after the image") {
  ops::WindowOptions same = windows({1, 1});
  same.same = true;
  const auto& attributes = node_of(ops::max_pool(x, {2, 5}, same)).attributes.as<tenon_attributes_window>();
  CHECK(attributes.pads_before[0] == 0);
  CHECK(attributes.pads_after[0] == 1);
  CHECK(attributes.pads_before[1] == 2);
  CHECK(attributes.pads_after[1] == 2);
}

TEST_CASE("pool: channels may be last") {
  Graph g;
  const Value x = g.input("x", DType::f32, {2, 8, 6, 3});
  ops::WindowOptions options;
  options.channels_last = true;
  CHECK(str(ops::max_pool(x, {2, 2}, options)) == "f32(2,4,3,3)");
  CHECK(str(ops::average_pool(x, {2, 3}, options)) == "f32(2,4,2,3)");
  const auto [y, indices] = ops::max_pool_with_indices(x, {2, 2}, options);
  CHECK(str(y) == "f32(2,4,3,3)");
  CHECK(str(indices) == "i64(2,4,3,3)");
}

TEST_CASE_FIXTURE(Image, "pool: a kernel larger than the padded image is rejected with all values") {
  CHECK_ERROR(
      "max_pool 'max_pool': the kernel's extent 9 exceeds the padded size 8 in spatial dimension 0: size 7, kernel 9, stride 1, dilation "
      "1, padding 0 and 1",
      ops::max_pool(x, {9, 2}, windows({1, 1}, {{0, 1}, {0, 0}})));
  ops::WindowOptions cut = windows({1, 1});
  cut.ceil_mode = true;
  CHECK_ERROR_CONTAINS("the kernel's extent 9 exceeds the padded size 8", ops::average_pool(x, {2, 9}, cut));
}

TEST_CASE_FIXTURE(Image, "pool: invalid strides, kernels and padding are rejected") {
  CHECK_ERROR("max_pool 'max_pool': expected a stride of 1 to 2147483647, got 0 for spatial dimension 0",
              ops::max_pool(x, {2, 2}, windows({0, 1})));
  CHECK_ERROR("max_pool 'max_pool': expected a kernel of 1 to 2147483647, got 0 for spatial dimension 1",
              ops::max_pool(x, {2, 0}, windows({1, 1})));
  CHECK_ERROR("average_pool 'average_pool': expected a padding of 0 to 2147483647, got -1 for spatial dimension 1",
              ops::average_pool(x, {2, 2}, windows({1, 1}, {{0, 0}, {-1, 0}})));
  CHECK_ERROR(
      "max_pool 'max_pool': expected padding of less than the 2 elements that the kernel covers in spatial dimension 0: size 7, kernel 2, "
      "stride 1, dilation 1, padding 0 and 2",
      ops::max_pool(x, {2, 2}, windows({1, 1}, {{0, 2}, {0, 0}})));
  ops::WindowOptions wide;
  wide.dilations = {2, 1};
  CHECK_ERROR("average_pool 'average_pool': expected a dilation of 1, got 2 for spatial dimension 0", ops::average_pool(x, {2, 2}, wide));
  CHECK_ERROR("max_pool: expected a kernel of 2 dimensions for x (2,3,7,8), got 1", ops::max_pool(x, {2}));
  CHECK_ERROR_CONTAINS("expected 2 strides", ops::max_pool(x, {2, 2}, windows({1})));
  const Value flat = g.input("flat", DType::f32, {2, 3});
  CHECK_ERROR("max_pool 'max_pool': expected an image (N, C, L) or (N, C, H, W), got x f32(2,3)", ops::max_pool(flat, {}));
  const Value whole = g.input("whole", DType::i32, {2, 3, 4});
  CHECK_ERROR("max_pool 'max_pool': expected a floating dtype, got x i32(2,3,4)", ops::max_pool(whole, {2}));
}

TEST_CASE("pool: a window of only padding has no maximum") {
  Graph g;
  const Value x = g.input("x", DType::f32, {1, 1, 4});
  ops::WindowOptions wide = windows({1}, {{1, 1}});
  wide.dilations = {5};
  CHECK_ERROR(
      "max_pool 'max_pool': a window covers only padding in spatial dimension 0: size 4, kernel 2, stride 1, dilation 5, padding 1 and 1",
      ops::max_pool(x, {2}, wide));
  const Value nothing = g.input("nothing", DType::f32, {1, 1, 0});
  CHECK_ERROR_CONTAINS("a window covers only padding", ops::average_pool(nothing, {2}, windows({1}, {{1, 1}})));
}

TEST_CASE("gradient: only the gradient of max_pool requests the indices") {
  Graph g;
  const Value x = g.parameter("x", DType::f32, {2, 3, 8, 8});
  const Value loss = ops::reduce_sum(ops::max_pool(x, {2, 2}));
  const std::size_t before = g.nodes().size();
  const Value dx = gradients(loss, {x})[0];
  CHECK(contains(ops_of(g, before), "MaxPoolGrad"));
  CHECK(dx.shape() == x.shape());
  CHECK(g.info(node_of(dx).inputs[1]).dtype == DType::i64);
}

TEST_CASE("gradient: that of average_pool has the image's size") {
  Graph g;
  const Value x = g.parameter("x", DType::f32, {2, 3, 6, 9});
  ops::WindowOptions cut = windows({2, 2});
  cut.ceil_mode = true;
  const Value dx = gradients(ops::reduce_sum(ops::average_pool(x, {3, 2}, cut)), {x})[0];
  CHECK(node_of(dx).op == TENON_OP_AveragePoolGrad);
  CHECK(dx.shape() == x.shape());
}

TEST_CASE("pool gradients: mismatched shapes are rejected") {
  Graph g;
  const Value dy = g.input("dy", DType::f32, {2, 3, 4}), indices = g.input("indices", DType::i64, {2, 3, 4});
  const auto apply = [&](Value places, const Shape& x) {
    return message_of([&] { g.apply(TENON_OP_MaxPoolGrad, {dy, places}, {}, {.name = {}, .shape = x}); });
  };
  CHECK(apply(indices, {2, 3, 8}) == "no error");
  CHECK(contains(apply(indices, {2, 4, 8}), "expected a result with the rank, batch size and channels of dy f32(2,3,4), got (2,4,8)"));
  CHECK(contains(apply(dy, {2, 3, 8}), "expected indices of i64, got indices f32(2,3,4)"));
  tenon_attributes_window a{};
  std::fill(std::begin(a.kernel), std::end(a.kernel), 2);
  std::fill(std::begin(a.strides), std::end(a.strides), 2);
  std::fill(std::begin(a.dilations), std::end(a.dilations), 1);
  const auto average = [&](const Shape& x) {
    return message_of([&] { g.apply(TENON_OP_AveragePoolGrad, {dy}, Attributes::of(a), {.name = {}, .shape = x}); });
  };
  CHECK(average({2, 3, 8}) == "no error");
  CHECK(average({2, 3, 7}) == "no error");  // the last window is cut short
  CHECK(contains(average({2, 3, 10}), "windows in spatial dimension 0"));
}

TEST_CASE_FIXTURE(Image, "adaptive_average_pool: divisible sizes become windows, others gather theirs") {
  CHECK(str(ops::adaptive_average_pool(x, {7, 2})) == "f32(2,3,7,2)");
  CHECK(ops_of(g) == "AveragePool");
  const std::size_t before = g.nodes().size();
  CHECK(str(ops::adaptive_average_pool(x, {3, 5})) == "f32(2,3,3,5)");
  CHECK(contains(ops_of(g, before), "Gather"));
  CHECK_ERROR("adaptive_average_pool: expected 2 sizes, one for each spatial dimension of 'x' (2,3,7,8), got 1",
              ops::adaptive_average_pool(x, {3}));
  CHECK_ERROR_CONTAINS("got 0 out of 8 in spatial dimension 1", ops::adaptive_average_pool(x, {3, 0}));
}

TEST_CASE_FIXTURE(Image, "global pools: reductions over the spatial dimensions") {
  CHECK(str(ops::global_average_pool(x)) == "f32(2,3,1,1)");
  CHECK(str(ops::global_max_pool(x, false)) == "f32(2,3)");
  CHECK(ops_of(g) == "ReduceMean ReduceMax");
  const Value flat = g.input("flat", DType::f32, {2, 3});
  CHECK_ERROR("global_average_pool: expected an image (N, C, d...), got 'flat' (2,3)", ops::global_average_pool(flat));
}
