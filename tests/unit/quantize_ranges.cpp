// SPDX-License-Identifier: Apache-2.0
// Ranges of activations, scales, weights and biases.
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "quantize/parameters.h"
#include "quantize/ranges.h"
#include "testing.h"

using namespace tenon;
using namespace tenon::quantize;

namespace {

std::vector<float> uniform(std::size_t count, float low, float high) {
  std::mt19937 random(1);
  std::vector<float> elements(count);
  for (float& x : elements) x = std::uniform_real_distribution<float>(low, high)(random);
  return elements;
}

Range range_of(std::span<const float> elements) {
  Range range;
  REQUIRE(range.observe(elements));
  return range;
}

Histogram histogram_of(std::span<const float> elements, bool absolute = false) {
  Histogram histogram(range_of(elements), absolute);
  histogram.observe(elements);
  return histogram;
}

}  // namespace

TEST_CASE("quantize ranges: the range of batches is the union of theirs") {
  Range range;
  CHECK(range.empty());
  CHECK(range.observe(std::vector<float>{-1, 2}));
  CHECK(range.observe(std::vector<float>{3, 0.5F}));
  CHECK(range.low == -1);
  CHECK(range.high == 3);
}

TEST_CASE("quantize ranges: an element that is NaN or infinite is refused, and changes nothing") {
  Range range = range_of(std::vector<float>{-1, 2});
  for (const float x : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    CHECK_FALSE(range.observe(std::vector<float>{7, x}));
    CHECK(range.high == 2);
  }
}

TEST_CASE("quantize ranges: a histogram counts each element but zeros, in bins of equal width") {
  const std::vector<float> elements = {-1, -1, 0, 0, 0, 1, 3};
  const Histogram histogram = histogram_of(elements);
  CHECK(histogram.total() == 7);
  CHECK(histogram.bin_width() == 4.0 / 2048);
  CHECK(histogram.counts()[0] == 2);
  CHECK(histogram.counts()[1024] == 1);
  CHECK(histogram.counts()[2047] == 1);
  const Histogram absolute = histogram_of(elements, true);
  CHECK(absolute.low() == 0);
  CHECK(absolute.counts()[682] == 3);  // 1 / (3 / 2048) = 682.7
  CHECK(absolute.counts()[2047] == 1);
}

TEST_CASE("quantize ranges: a percentile of a uniform distribution cuts off its share on each side") {
  const std::vector<float> elements = uniform(100000, -2, 6);
  const Range range = percentile_range(histogram_of(elements), range_of(elements), 90);
  // 5 percent of 8 on each side; the error of a quantile of 100000 samples is below 0.01, and a bin is 0.004 wide.
  CHECK(range.low == doctest::Approx(-1.6).epsilon(0.01));
  CHECK(range.high == doctest::Approx(5.6).epsilon(0.01));
}

TEST_CASE("quantize ranges: percentile 100 keeps the observed range") {
  const std::vector<float> elements = uniform(1000, -3, 1);
  const Range observed = range_of(elements), range = percentile_range(histogram_of(elements), observed, 100);
  CHECK(range.low == observed.low);
  CHECK(range.high == doctest::Approx(observed.high));
}

TEST_CASE("quantize ranges: a percentile removes an outlier, and the range keeps 0") {
  std::vector<float> elements = uniform(100000, 0, 1);
  elements[17] = 1000;
  const Range observed = range_of(elements), range = percentile_range(histogram_of(elements), observed, 99.99);
  CHECK(observed.high == 1000);
  CHECK(range.low >= 0);
  CHECK(range.low < 1e-3F);
  CHECK(range.high == doctest::Approx(3 * 1000.0 / 2048));  // the bound of a bin, the third of which has 2 percent
}

TEST_CASE("quantize ranges: the entropy threshold keeps all of a distribution that levels represent exactly") {
  // Equal counts in every bin: with 128 levels each is 16 equal bins, so that the divergence of the whole range is 0.
  const std::vector<std::uint64_t> counts(2048, 10);
  CHECK(entropy_threshold(counts, 128) == 2048);
}

TEST_CASE("quantize ranges: the entropy threshold cuts off a few far elements") {
  std::vector<std::uint64_t> counts(2048);
  for (std::size_t i = 0; i < 256; ++i) counts[i] = 1000 + 500 * (i % 2);  // detail that wide levels lose
  counts[2047] = 1;
  const std::size_t bins = entropy_threshold(counts, 128);
  CHECK(bins >= 128);
  CHECK(bins <= 512);
}

TEST_CASE("quantize ranges: the entropy range of a Laplace distribution with one outlier is far below it") {
  std::mt19937 random(3);
  std::vector<float> elements(100000);
  for (float& x : elements) {
    const float size = std::exponential_distribution<float>(1)(random);
    x = (random() & 1) != 0 ? size : -size;
  }
  elements[5] = 100;
  const Range observed = range_of(elements), range = entropy_range(histogram_of(elements, true), observed, 256);
  CHECK(range.high < 30);
  CHECK(range.high > 3);
  CHECK(range.low >= observed.low);
}

TEST_CASE("quantize ranges: the entropy range of few elements is the observed one") {
  const std::vector<float> elements = uniform(500, 0, 1);
  const Range observed = range_of(elements), range = entropy_range(histogram_of(elements, true), observed, 256);
  CHECK(range.low == observed.low);
  CHECK(range.high == observed.high);
}

TEST_CASE("quantize parameters: u8 maps the range, extended to 0, to 0 to 255") {
  const Parameters both = parameters_of({-1, 3}, DType::u8);
  CHECK(both.scale == 4.0F / 255);
  CHECK(both.zero_point == 64);  // 63.75
  const Parameters positive = parameters_of({2, 5.1F}, DType::u8);
  CHECK(positive.scale == 5.1F / 255);
  CHECK(positive.zero_point == 0);
  const Parameters negative = parameters_of({-5.1F, -2}, DType::u8);
  CHECK(negative.zero_point == 255);
}

TEST_CASE("quantize parameters: i8 is symmetric") {
  const Parameters parameters = parameters_of({-1, 2.54F}, DType::i8);
  CHECK(parameters.scale == 2.54F / 127);
  CHECK(parameters.zero_point == 0);
}

TEST_CASE("quantize parameters: a range of zeros has the scale 1") {
  CHECK(parameters_of({0, 0}, DType::u8).scale == 1);
  CHECK(parameters_of({0, 0}, DType::i8).scale == 1);
  CHECK(parameters_of({0, 1e-44F}, DType::u8).scale == 1);  // a quotient by the subnormal scale would be infinite
}

TEST_CASE("quantize parameters: weights have a scale for each output channel, ties rounded to even") {
  const Tensor w = Tensor::of<float>({127, -127, 2.5F, 3.5F, 0, 0, 0, 0, -0.5F, 0.25F, 0.125F, 1}, {3, 4});
  const QuantizedWeights rows = quantize_weights(w, 0);
  CHECK(rows.scales == std::vector<float>{1, 1, 1.0F / 127});
  CHECK(rows.q.to_vector<std::int8_t>() == std::vector<std::int8_t>{127, -127, 2, 4, 0, 0, 0, 0, -64, 32, 16, 127});
  const QuantizedWeights columns = quantize_weights(w, 1);
  REQUIRE(columns.scales.size() == 4);
  CHECK(columns.scales[0] == 1);
  CHECK(columns.scales[3] == 3.5F / 127);
  CHECK(quantize_weights(w, -1).scales == std::vector<float>{1});
}

TEST_CASE("quantize parameters: each weight is within half a scale of its integer") {
  const std::vector<float> elements = uniform(3 * 5 * 7, -3, 2);
  const Tensor w = Tensor::of(elements, {3, 5, 7});
  const QuantizedWeights result = quantize_weights(w, 1);
  const auto* q = result.q.data<std::int8_t>();
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const float scale = result.scales[i / 7 % 5];
    CHECK(std::fabs(static_cast<float>(q[i]) * scale - elements[i]) <= scale * 0.5001F);
  }
}

TEST_CASE("quantize parameters: the scale of a bias is that of the products it is added to") {
  const Tensor bias = Tensor::of<float>({1, -0.5F}, {2});
  const QuantizedBias result = quantize_bias(bias, 0.25F, {0.5F, 0.125F});
  CHECK(result.scales == std::vector<float>{0.125F, 0.03125F});
  CHECK(result.q.to_vector<std::int32_t>() == std::vector<std::int32_t>{8, -16});
}

TEST_CASE("quantize parameters: weights of almost 0 get a scale with which their bias fits in 32 bits") {
  const Tensor w = Tensor::of<float>({1e-12F, 1}, {2, 1}), bias = Tensor::of<float>({100, 100}, {2});
  const float x_scale = 0.01F;
  const QuantizedWeights weights = quantize_weights(w, 0, bias, x_scale);
  const QuantizedBias result = quantize_bias(bias, x_scale, weights.scales);
  const std::vector<std::int32_t> q = result.q.to_vector<std::int32_t>();
  CHECK(std::abs(q[0]) <= (1 << 30) + 128);  // the scale is rounded to f32
  CHECK(static_cast<float>(q[0]) * result.scales[0] == doctest::Approx(100));
  CHECK(weights.scales[1] == 1.0F / 127);  // the other channel keeps its own
}

TEST_CASE("quantize parameters: the scale of a bias is a normal number, however small those of weights and activations are") {
  const Tensor w = Tensor::of<float>({1e-30F, 0, 1e-30F, 1}, {4, 1}), bias = Tensor::of<float>({0, 0, 1e-38F, 0}, {4});
  const float x_scale = 1e-20F, least = std::numeric_limits<float>::min();
  const QuantizedWeights weights = quantize_weights(w, 0, bias, x_scale);
  const QuantizedBias result = quantize_bias(bias, x_scale, weights.scales);
  for (std::size_t c = 0; c < 4; ++c) {
    CAPTURE(c);
    CHECK(result.scales[c] >= least);
    CHECK(result.scales[c] == x_scale * weights.scales[c]);
  }
  CHECK(weights.scales[1] == 1);  // zeros with a bias of 0
  CHECK(weights.scales[3] == 1.0F / 127);
  CHECK(result.q.to_vector<std::int32_t>() == std::vector<std::int32_t>{0, 0, 1, 0});
  // Whatever the scales, nothing is divided by 0.
  CHECK(quantize_bias(bias, x_scale, {1e-30F}).q.to_vector<std::int32_t>() == std::vector<std::int32_t>{0, 0, 0, 0});
}

TEST_CASE("quantize ranges: the first element that is not finite is named") {
  CHECK_FALSE(first_not_finite(std::vector<float>{1, -2}));
  CHECK(first_not_finite(std::vector<float>{1, -std::numeric_limits<float>::infinity()}) == "element 1 is -inf");
  CHECK(first_not_finite(std::vector<float>{std::numeric_limits<float>::quiet_NaN(), 1}) == "element 0 is nan");
}
