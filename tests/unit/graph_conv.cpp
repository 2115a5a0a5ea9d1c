// SPDX-License-Identifier: Apache-2.0
// Shapes, forms and errors of convolution, its transpose and im2col.
#include <doctest/doctest.h>

#include <limits>

#include "graph_testing.h"

using namespace tenon;
using namespace tenon::test;

namespace {

struct Image {
  Graph g;
  Value x = g.input("x", DType::f32, {2, 4, 8, 9});
  Value filters(std::int64_t count, std::int64_t channels, std::int64_t height, std::int64_t width) {
    return g.input(names(), DType::f32, {count, channels, height, width});
  }
  Value line(const Shape& shape) { return g.input(names(), DType::f32, shape); }

 private:
  std::string names() { return "v" + std::to_string(next_++); }
  int next_ = 0;
};

/// A builder of options.
struct With : ops::ConvOptions {
  using Sizes = std::vector<std::int64_t>;
  With& stride(const Sizes& list) { return strides = list, *this; }
  With& dilation(const Sizes& list) { return dilations = list, *this; }
  With& pad(const std::vector<std::pair<std::int64_t, std::int64_t>>& list) { return padding = list, *this; }
  With& grouped(std::int64_t count) { return groups = count, *this; }
  With& padded_same(bool value = true) { return same = value, *this; }
  With& ceil() { return ceil_mode = true, *this; }
  With& last() { return channels_last = true, *this; }
};

const tenon_attributes_conv& conv_of(Value y) {
  return node_of(y).attributes.as<tenon_attributes_conv>();
}

}  // namespace

TEST_CASE_FIXTURE(Image, "conv: sizes follow from padding, stride and dilation") {
  const Value w = filters(6, 4, 3, 3);
  CHECK(str(ops::conv(x, w)) == "f32(2,6,6,7)");
  CHECK(str(ops::conv(x, w, {}, With().pad({{1, 1}, {1, 1}}))) == "f32(2,6,8,9)");
  CHECK(str(ops::conv(x, w, {}, With().stride({2, 3}))) == "f32(2,6,3,3)");
  CHECK(str(ops::conv(x, w, {}, With().dilation({2, 3}))) == "f32(2,6,4,3)");
  CHECK(str(ops::conv(x, w, {}, With().pad({{2, 0}, {0, 3}}))) == "f32(2,6,8,10)");
  CHECK(str(ops::conv(x, filters(6, 2, 1, 1), {}, With().grouped(2))) == "f32(2,6,8,9)");
  CHECK(str(ops::conv(x, filters(8, 1, 3, 3), line({8}), With().grouped(4))) == "f32(2,8,6,7)");
  CHECK(str(ops::conv(line({0, 3, 5}), line({2, 3, 5}))) == "f32(0,2,1)");
}

TEST_CASE_FIXTURE(Image, "conv: same padding gives ceil(size / stride) results, with an odd element after the image") {
  for (const std::int64_t stride : {1, 2, 3, 4}) {
    for (const std::int64_t kernel : {1, 2, 3, 5}) {
      CAPTURE(stride);
      CAPTURE(kernel);
      const Value y = ops::conv(x, filters(2, 4, kernel, kernel), {}, With().stride({stride, stride}).padded_same());
      CHECK(y.shape() == Shape{2, 2, (8 + stride - 1) / stride, (9 + stride - 1) / stride});
      for (const int i : {0, 1}) {
        const std::int64_t more = conv_of(y).pads_after[i] - conv_of(y).pads_before[i];
        CHECK((more == 0 || more == 1));
      }
    }
  }
  const Value y = ops::conv(x, filters(2, 4, 4, 3), {}, With().padded_same());
  CHECK(conv_of(y).pads_before[0] == 1);
  CHECK(conv_of(y).pads_after[0] == 2);
  CHECK_ERROR("conv of x (2,4,8,9): `same` and `padding` are both given",
              ops::conv(x, filters(2, 4, 3, 3), {}, With().pad({{1, 1}, {1, 1}}).padded_same()));
}

TEST_CASE("conv: channels last adds transposes around it") {
  Image m;
  const Value x = m.line({2, 8, 9, 4});
  const Value y = ops::conv(x, m.filters(6, 4, 3, 3), {}, With().stride({2, 1}).padded_same().last());
  CHECK(str(y) == "f32(2,4,9,6)");
  CHECK(ops_of(m.g) == "Transpose Conv Transpose");
  CHECK(str(ops::conv1d(m.line({2, 9, 4}), m.line({6, 4, 2}), {}, With().last())) == "f32(2,8,6)");
}

TEST_CASE_FIXTURE(Image, "conv: mismatched operands are rejected with all values") {
  const auto with = [&](Value w, const ops::ConvOptions& options = {}, Value b = {}) {
    return message_of([&] { ops::conv(x, w, b, options); });
  };
  const Value w = filters(6, 4, 3, 3);
  CHECK(with(filters(6, 4, 9, 3)) ==
        "conv 'conv': the kernel's extent 9 exceeds the padded size 8 in spatial dimension 0: size 8, kernel 9, stride 1, dilation 1, "
        "padding 0 and 0");
  CHECK(with(w, With().dilation({1, 6}).pad({{0, 0}, {1, 2}})) ==
        "conv 'conv': the kernel's extent 13 exceeds the padded size 12 in spatial dimension 1: size 9, kernel 3, stride 1, dilation 6, "
        "padding 1 and 2");
  CHECK(with(w, With().stride({1, 0})) == "conv 'conv': expected a stride of 1 to 2147483647, got 0 for spatial dimension 1");
  CHECK(with(w, With().dilation({0, 1})) == "conv 'conv': expected a dilation of 1 to 2147483647, got 0 for spatial dimension 0");
  CHECK(with(w, With().pad({{0, 0}, {0, -1}})) == "conv 'conv': expected a padding of 0 to 2147483647, got -1 for spatial dimension 1");
  CHECK(with(w, With().grouped(3)) == "conv 'conv': 3 groups do not divide the 4 channels of x f32(2,4,8,9)");
  CHECK(contains(with(filters(5, 2, 3, 3), With().grouped(2)), "2 groups do not divide the 5 filters of w f32(5,2,3,3)"));
  CHECK(with(w, With().grouped(2)) == "conv 'conv': expected filters over 2 channels, 4 of x f32(2,4,8,9) in 2 groups, got w f32(6,4,3,3)");
  CHECK(with(w, With().grouped(0)) == "conv of x (2,4,8,9): expected 1 or more groups, got 0");
  CHECK(with(w, {}, line({5})) == "conv 'conv': expected b of (6), one for each filter of w f32(6,4,3,3), got b f32(5)");
  CHECK(with(w, With().stride({1})) == "conv of x (2,4,8,9): expected 2 strides, one per dimension of the kernel, got 1");
  CHECK(with(w, With().ceil()) == "conv of x (2,4,8,9): ceil_mode is for pools");
  CHECK(with(line({6, 4, 3})) == "conv 'conv': expected a kernel of 4 dimensions for x f32(2,4,8,9), got w f32(6,4,3)");
  CHECK(with(line({6, 4})) == "conv 'conv': expected a kernel of 4 dimensions for x f32(2,4,8,9), got w f32(6,4)");
  CHECK(with(filters(6, 4, 0, 3)) == "conv 'conv': expected a kernel with elements, got w f32(6,4,0,3)");
  CHECK(with(g.input("double", DType::f64, {6, 4, 3, 3})) == "conv 'conv': expected equal dtypes, got x f32(2,4,8,9), w f64(6,4,3,3)");
  CHECK_ERROR("conv 'conv': expected an image (N, C, L) or (N, C, H, W), got x f32(2,4,8,9,9)",
              ops::conv(line({2, 4, 8, 9, 9}), line({2, 4, 1, 1, 1})));
  CHECK_ERROR("conv 'conv': expected an image with channels and elements, got x f32(2,4,0)",
              ops::conv(line({2, 4, 0}), line({2, 4, 1}), {}, With().pad({{1, 1}})));
  constexpr std::int64_t far = std::numeric_limits<std::int64_t>::max();
  for (const bool same : {false, true}) {
    CHECK(contains(with(w, With().dilation({far, far}).padded_same(same)), "expected a dilation of"));
    CHECK(contains(with(w, With().stride({far, far}).padded_same(same)), "expected a stride of"));
  }
}

TEST_CASE_FIXTURE(Image, "conv: an error names the layer") {
  const NameScope scope(g, "features/stem");
  CHECK_ERROR("conv 'features/stem/conv': expected filters over 4 channels, 4 of x f32(2,4,8,9) in 1 group, got w f32(6,3,3,3)",
              ops::conv(x, filters(6, 3, 3, 3)));
}

TEST_CASE_FIXTURE(Image, "conv1d takes (N, C, L) and (N, C, 1, L), conv2d (N, C, H, W)") {
  const Value w = line({6, 2, 3});
  const With options = With().stride({2}).dilation({2}).pad({{1, 2}}).grouped(2);
  CHECK(str(ops::conv1d(line({5, 4, 11}), w, {}, options)) == "f32(5,6,5)");
  CHECK(str(ops::conv1d(line({5, 4, 1, 11}), w, {}, options)) == "f32(5,6,1,5)");
  CHECK(str(ops::conv1d(line({5, 1, 11, 4}), w, {}, With().padded_same().last().grouped(2))) == "f32(5,1,11,6)");
  CHECK_ERROR("conv1d: expected an x of four dimensions to have height 1, got 8 of 'x' (2,4,8,9)", ops::conv1d(x, line({6, 4, 3})));
  CHECK(message_of([&] {
          ops::conv1d(x, filters(6, 4, 1, 3));
        }).find("conv1d: expected x (N, C, L) or (N, C, 1, L) and w (O, C / groups, K)") == 0);
  CHECK(str(ops::conv2d(x, filters(6, 4, 1, 3))) == "f32(2,6,8,7)");
  CHECK(message_of([&] { ops::conv2d(line({5, 4, 11}), w); }).find("conv2d: expected x (N, C, H, W) and w (O") == 0);
}

TEST_CASE_FIXTURE(Image, "conv's gradients are rejected for inconsistent shapes") {
  const Value w = filters(6, 4, 3, 3), dy = line({2, 6, 6, 7});
  tenon_attributes_conv attributes = conv_of(ops::conv(x, w));
  CHECK(str(ops::conv_input_grad(dy, w, {2, 4, 8, 9}, attributes)) == "f32(2,4,8,9)");
  CHECK(str(ops::conv_weight_grad(dy, x, {6, 4, 3, 3}, attributes)) == "f32(6,4,3,3)");
  CHECK_ERROR(
      "conv_input_grad 'conv_input_grad_1': an image of the given shape (2,4,8,8) has a result of (2,6,6,6), expected that of dy "
      "f32(2,6,6,7)",
      ops::conv_input_grad(dy, w, {2, 4, 8, 8}, attributes));
  CHECK_ERROR(
      "conv_weight_grad 'conv_weight_grad_1': x f32(2,4,8,9) and filters of the given shape (6,4,3,2) have a result of (2,6,6,8), "
      "expected that of dy f32(2,6,6,7)",
      ops::conv_weight_grad(dy, x, {6, 4, 3, 2}, attributes));
  CHECK_ERROR("conv_input_grad 'conv_input_grad_1': the result's shape is not given (NodeOptions::shape)",
              g.apply(TENON_OP_ConvInputGrad, {dy, w}, Attributes::of(attributes)));
  attributes.groups = 0;
  CHECK_ERROR("conv_input_grad 'conv_input_grad_1': expected 1 or more groups, got 0",
              ops::conv_input_grad(dy, w, {2, 4, 8, 9}, attributes));
}

TEST_CASE_FIXTURE(Image, "conv: each gradient uses the other two ops, and these are differentiable") {
  const Value w = filters(6, 4, 3, 3), b = line({6});
  const Value loss = ops::reduce_sum(ops::square(ops::conv(x, w, b)));
  const std::vector<Value> first = gradients(loss, {x, w, b});
  CHECK(str(first[0]) == "f32(2,4,8,9)");
  CHECK(str(first[1]) == "f32(6,4,3,3)");
  CHECK(str(first[2]) == "f32(6)");
  CHECK(op_name(node_of(first[0]).op) == std::string("ConvInputGrad"));
  CHECK(op_name(node_of(first[1]).op) == std::string("ConvWeightGrad"));
  for (const Value gradient : {first[0], first[1]}) {
    const std::vector<Value> second = gradients(ops::reduce_sum(ops::square(gradient)), {x, w});
    CHECK(second[0].shape() == x.shape());
    CHECK(second[1].shape() == w.shape());
  }
}

TEST_CASE_FIXTURE(Image, "conv_transpose: sizes are those that conv maps back") {
  const Value w = filters(4, 3, 3, 2);
  CHECK(str(ops::conv_transpose(x, w)) == "f32(2,3,10,10)");
  CHECK(str(ops::conv_transpose(x, w, line({3}), With().stride({2, 3}))) == "f32(2,3,17,26)");
  CHECK(str(ops::conv_transpose(x, w, {}, With().stride({2, 3}).pad({{1, 1}, {0, 1}}), {1, 2})) == "f32(2,3,16,27)");
  CHECK(str(ops::conv_transpose(x, w, {}, With().stride({2, 3}).padded_same())) == "f32(2,3,16,27)");
  CHECK(str(ops::conv_transpose(x, w, {}, With().dilation({2, 2}))) == "f32(2,3,12,11)");
  CHECK(str(ops::conv_transpose(x, filters(4, 3, 2, 2), {}, With().stride({2, 2}).grouped(2))) == "f32(2,6,16,18)");
  CHECK(str(ops::conv_transpose(line({1, 7, 4}), line({4, 5, 3}), {}, With().last())) == "f32(1,9,5)");
  const auto fails = [&](const ops::ConvOptions& options, const std::vector<std::int64_t>& output_padding = {}, Value b = {}) {
    return message_of([&] { ops::conv_transpose(x, w, b, options, output_padding); });
  };
  const std::string start = "conv_transpose of 'x' (2,4,8,9) with 'v0' (4,3,3,2): ";
  CHECK(fails(With().stride({2, 3}), {2, 0}) ==
        start + "expected output padding of at least 0 and less than the stride 2 in spatial dimension 0, got 2");
  CHECK(fails(With().stride({2, 3}), {0, -1}) ==
        start + "expected output padding of at least 0 and less than the stride 3 in spatial dimension 1, got -1");
  CHECK(fails(With().stride({2, 3}), {1}) == start + "expected 2 entries of output padding, got 1");
  CHECK(fails(With().stride({0, 3})) == start + "expected strides and dilations of 1 to 2147483647, got 0 and 1");
  CHECK(fails(With().pad({{5, 5}, {0, 0}})) ==
        start + "spatial dimension 0 of the result would have 0 elements: 10 minus padding 5 and 5, plus 0");
  CHECK(fails(With().pad({{-1, 0}, {0, 0}})) == start + "expected padding of 0 to 2147483647, got -1");
  CHECK(fails(With().grouped(3)) == "conv_transpose 'conv_transpose_7': 3 groups do not divide the 4 channels of x f32(2,4,8,9)");
  CHECK(fails({}, {}, line({4})) ==
        "conv_transpose 'conv_transpose_7': expected b of (3), 1 group of 3 filters of w f32(4,3,3,2), got b f32(4)");
  CHECK_ERROR("conv_transpose 'conv_transpose_7': expected a filter for each of the 4 channels of x f32(2,4,8,9), got w f32(3,4,3,3)",
              ops::conv_transpose(x, filters(3, 4, 3, 3)));
  CHECK_ERROR(
      "conv_transpose 'conv_transpose_7': the given shape has 10 windows in spatial dimension 1 (size 11, kernel 2, stride 1, dilation "
      "1, padding 0 and 0), expected the 9 of x f32(2,4,8,9)",
      g.apply(TENON_OP_ConvTranspose, {x, w}, Attributes::of(tenon_attributes_conv{0, 1, {1, 1, 1}, {1, 1, 1}, {}, {}}),
              {.name = {}, .shape = Shape{2, 3, 10, 11}}));
}

TEST_CASE_FIXTURE(Image, "im2col and col2im have inverse shapes") {
  const With options = With().stride({2, 1}).dilation({1, 2}).pad({{1, 0}, {0, 2}});
  const Value columns = ops::im2col(x, {3, 2}, options);
  CHECK(str(columns) == "f32(2,24,36)");
  CHECK(str(ops::col2im(columns, {8, 9}, {3, 2}, options)) == "f32(2,4,8,9)");
  CHECK(str(ops::im2col(line({2, 8, 9, 4}), {3, 3}, With().last())) == "f32(2,42,36)");
  CHECK(str(ops::im2col(g.input("whole", DType::i32, {1, 2, 5}), {2}, With().padded_same())) == "i32(1,4,5)");
  CHECK_ERROR(
      "im2col 'im2col_3': the kernel's extent 9 exceeds the padded size 8 in spatial dimension 0: size 8, kernel 9, stride 1, dilation "
      "1, padding 0 and 0",
      ops::im2col(x, {9, 1}));
  CHECK_ERROR("im2col 'im2col_3': expected a kernel of 1 to 2147483647, got 0 for spatial dimension 0", ops::im2col(x, {0, 1}));
  CHECK_ERROR("col2im 'col2im_1': expected columns (2,24,32) for an image (2,4,8,8), got x f32(2,24,36)",
              ops::col2im(columns, {8, 8}, {3, 2}, options));
  CHECK_ERROR_CONTAINS("a kernel of 10 elements does not divide the 24 rows", ops::col2im(columns, {8, 9}, {5, 2}));
  CHECK_ERROR_CONTAINS("expected 2 sizes", ops::col2im(columns, {8}, {3, 2}));
  const Value loss = ops::reduce_sum(ops::square(columns));
  CHECK(op_name(node_of(gradients(loss, {x})[0]).op) == std::string("Col2Im"));
}
