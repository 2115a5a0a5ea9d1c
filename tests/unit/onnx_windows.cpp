// SPDX-License-Identifier: Apache-2.0
// Importing ONNX operators with windows over three spatial dimensions.
#include <array>
#include <cmath>

#include "onnx_testing.h"

using namespace tenon;
using namespace tenon::test;

namespace {

using Sizes = std::array<std::int64_t, 3>;

std::vector<float> small_integers(std::size_t n, int start) {
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<float>((static_cast<int>(i) * 7 + start) % 5 - 2);
  return values;
}

struct Convolution {
  Sizes image, kernel, stride, dilation, before, after;
  std::int64_t channels, filters, groups;
};

/// The definition, for one sample: sums of small integers, which are exact.
std::vector<float> convolved(const Convolution& c, const std::vector<float>& x, const std::vector<float>& w, const std::vector<float>& b) {
  const std::int64_t group = c.channels / c.groups;
  Sizes out{};
  for (std::size_t i = 0; i < 3; ++i) {
    out[i] = (c.image[i] + c.before[i] + c.after[i] - (c.kernel[i] - 1) * c.dilation[i] - 1) / c.stride[i] + 1;
  }
  std::vector<float> y;
  for (std::int64_t at = 0; at < c.filters * out[0] * out[1] * out[2]; ++at) {
    const std::int64_t o = at / (out[0] * out[1] * out[2]);
    const Sizes place{at / (out[1] * out[2]) % out[0], at / out[2] % out[1], at % out[2]};
    float sum = b[static_cast<std::size_t>(o)];
    for (std::int64_t tap = 0; tap < group * c.kernel[0] * c.kernel[1] * c.kernel[2]; ++tap) {
      const std::int64_t channel = o / (c.filters / c.groups) * group + tap / (c.kernel[0] * c.kernel[1] * c.kernel[2]);
      const Sizes k{tap / (c.kernel[1] * c.kernel[2]) % c.kernel[0], tap / c.kernel[2] % c.kernel[1], tap % c.kernel[2]};
      std::int64_t from = channel;
      bool inside = true;
      for (std::size_t i = 0; i < 3; ++i) {
        const std::int64_t position = place[i] * c.stride[i] + k[i] * c.dilation[i] - c.before[i];
        inside = inside && position >= 0 && position < c.image[i];
        from = from * c.image[i] + position;
      }
      const auto weight = static_cast<std::size_t>(o * group * c.kernel[0] * c.kernel[1] * c.kernel[2] + tap);
      if (inside) sum += x[static_cast<std::size_t>(from)] * w[weight];
    }
    y.push_back(sum);
  }
  return y;
}

}  // namespace

TEST_CASE("onnx import: Resize of opset 10 rounds up along axes that become shorter, and Upsample rounds down") {
  const OnnxFiles files;
  const auto resized = [&](std::string_view op, std::int64_t opset, std::vector<float> scales, std::int64_t n) {
    onnx::Model model = files.load(test::model(onnx_graph({node(op, {"x", "scales"}, {"y"}, {text("mode", "nearest")})}, {f32("x", {2, n})},
                                                          {f32("y", {-1, -1})}, {floats("scales", std::move(scales), {2})}),
                                               opset));
    std::vector<float> values;
    for (std::int64_t i = 0; i < 2 * n; ++i) values.push_back(static_cast<float>(i + 1));
    return model.run({{"x", Tensor::of(values, {2, n})}})[0].to_vector<float>();
  };
  using Floats = std::vector<float>;
  CHECK(resized("Resize", 10, {0.6F, 0.6F}, 4) == Floats{1, 3});  // ONNX's test_resize_downsample_nearest
  CHECK(resized("Resize", 10, {2, 0.5F}, 4) == Floats{1, 3, 1, 3, 5, 7, 5, 7});
  CHECK(resized("Resize", 10, {1, 0.7F}, 12) == Floats{1, 3, 4, 6, 7, 9, 10, 11, 13, 15, 16, 18, 19, 21, 22, 23});
  CHECK(resized("Resize", 10, {1, 1.5F}, 2) == Floats{1, 1, 2, 3, 3, 4});
  CHECK(resized("Upsample", 9, {1, 0.6F}, 4) == Floats{1, 2, 5, 6});
}

TEST_CASE("onnx import: Slice backwards begins at the first element if its start is before that") {
  const OnnxFiles files;
  const auto sliced = [&](std::int64_t n, std::int64_t start, std::int64_t end) {
    onnx::Model model = files.load(
        test::model(onnx_graph({node("Slice", {"x", "start", "end", "axis", "step"}, {"y"})}, {f32("x", {n})}, {f32("y", {-1})},
                               {indices("start", {start}), indices("end", {end}), indices("axis", {0}), indices("step", {-1})})));
    std::vector<float> values;
    for (std::int64_t i = 0; i < n; ++i) values.push_back(static_cast<float>(i));
    return model.run({{"x", Tensor::of(values, {n})}})[0].to_vector<float>();
  };
  using Floats = std::vector<float>;
  CHECK(sliced(5, -100, -1000) == Floats{0});
  CHECK(sliced(5, -6, -7) == Floats{0});
  CHECK(sliced(5, -5, -6) == Floats{0});
  CHECK(sliced(5, -100, 0) == Floats{});
  CHECK(sliced(5, 100, 2) == Floats{4, 3});
  CHECK(sliced(0, -100, -1000) == Floats{});
}

TEST_CASE_FIXTURE(OnReference, "onnx import: a convolution over three dimensions is that of its definition") {
  const OnnxFiles files;
  const std::vector<Convolution> cases = {
      {{5, 4, 6}, {3, 3, 2}, {1, 1, 1}, {1, 1, 1}, {1, 1, 0}, {1, 1, 1}, 4, 6, 2},
      {{7, 4, 6}, {2, 3, 2}, {2, 1, 2}, {2, 1, 1}, {0, 1, 0}, {1, 0, 1}, 2, 3, 1},
      {{7, 2, 3}, {3, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 0, 0}, {1, 0, 0}, 4, 6, 1},
      {{7, 2, 3}, {3, 1, 1}, {2, 1, 1}, {2, 1, 1}, {2, 0, 0}, {0, 0, 0}, 4, 4, 4},
      {{7, 3, 3}, {3, 1, 1}, {1, 2, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}, 2, 2, 1},
      {{3, 2, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}, 2, 5, 1},
  };
  for (const Convolution& c : cases) {
    CAPTURE(&c - cases.data());
    const auto volume = [](const Sizes& s) { return s[0] * s[1] * s[2]; };
    const std::vector<float> x = small_integers(static_cast<std::size_t>(c.channels * volume(c.image)), 1), b = small_integers(6, 2);
    const std::vector<float> w = small_integers(static_cast<std::size_t>(c.filters * c.channels / c.groups * volume(c.kernel)), 3);
    const std::vector<float> bias(b.begin(), b.begin() + c.filters);
    const auto list = [](const Sizes& s) { return std::vector<std::int64_t>(s.begin(), s.end()); };
    std::vector<std::int64_t> pads = list(c.before);
    pads.insert(pads.end(), c.after.begin(), c.after.end());
    onnx::Model model = onnx::Model::load(
        files.write(test::model(onnx_graph(
            {node("Conv", {"x", "w", "b"}, {"y"},
                  {integers("strides", list(c.stride)), integers("dilations", list(c.dilation)), integers("pads", pads),
                   integer("group", c.groups)})},
            {f32("x", {1, c.channels, c.image[0], c.image[1], c.image[2]})}, {f32("y", {-1, -1, -1, -1, -1})},
            {floats("w", w, {c.filters, c.channels / c.groups, c.kernel[0], c.kernel[1], c.kernel[2]}), floats("b", bias, {c.filters})}))),
        context);
    const Tensor y = model.run({{"x", Tensor::of(x, Shape{1, c.channels, c.image[0], c.image[1], c.image[2]})}})[0];
    CHECK(y.to_vector<float>() == convolved(c, x, w, bias));
  }
}
