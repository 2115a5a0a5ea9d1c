// SPDX-License-Identifier: Apache-2.0
// Generated data sets: the same bytes everywhere, different splits, separable classes.
#include <doctest/doctest.h>
#include <zlib.h>

#include <cmath>
#include <cstring>

#include <tenon/data.h>

#include "testing.h"

using namespace tenon;

namespace {

std::uint32_t checksum(const Tensor& t) {
  return static_cast<std::uint32_t>(crc32(0, static_cast<const Bytef*>(t.raw()), static_cast<uInt>(t.size_bytes())));
}

GeneratedOptions options_of(std::int64_t count, std::uint64_t seed = 1, Split split = Split::train) {
  return {.count = count, .seed = seed, .split = split};
}

using Generator = std::shared_ptr<const ArrayDataset> (*)(const GeneratedOptions&);
const Generator generators[] = {generate_digits, generate_textures, generate_signals};

/// Accuracy on `test` of the nearest neighbour in `train` by squared distance of pixels.
double nearest_neighbour(const ArrayDataset& train, const ArrayDataset& test) {
  const std::int64_t size = train.x_type().shape.count();
  int right = 0;
  for (std::int64_t t = 0; t < test.size(); ++t) {
    const auto* expected = test.x().data<std::uint8_t>() + t * size;
    std::int64_t best = -1, best_distance = 0;
    for (std::int64_t i = 0; i < train.size(); ++i) {
      const auto* candidate = train.x().data<std::uint8_t>() + i * size;
      std::int32_t distance = 0;
      for (std::int64_t p = 0; p < size; ++p) distance += (expected[p] - candidate[p]) * (expected[p] - candidate[p]);
      if (best < 0 || distance < best_distance) {
        best = i;
        best_distance = distance;
      }
    }
    right += train.y().data<std::int64_t>()[best] == test.y().data<std::int64_t>()[t];
  }
  return static_cast<double>(right) / static_cast<double>(test.size());
}

}  // namespace

TEST_CASE("generated: shapes, ranges and names are those of the imitated data sets") {
  const auto digits = generate_digits(options_of(50));
  CHECK(digits->size() == 50);
  CHECK(digits->x_type().shape == Shape{28, 28});
  CHECK(digits->x_type().dtype == DType::f32);
  CHECK(digits->num_classes() == 10);
  CHECK(digits->name() == "digits train");
  const auto textures = generate_textures(options_of(50, 1, Split::test));
  CHECK(textures->x_type().shape == Shape{3, 32, 32});
  CHECK(textures->name() == "textures test");
}

TEST_CASE("generated: the bytes are the same on every machine and with every compiler") {
  CHECK(checksum(generate_digits(options_of(200))->x()) == 1140453923u);
  CHECK(checksum(generate_textures(options_of(100))->x()) == 3769750687u);
  const auto digits = generate_digits(options_of(10));
  const auto* label = digits->y().data<std::int64_t>();
  CHECK(label[0] == 9);
  CHECK(label[1] == 7);
  CHECK(label[2] == 7);
}

TEST_CASE("generated: a sample does not depend on the number of samples") {
  for (const Generator generate : generators) {
    const auto few = generate(options_of(5)), many = generate(options_of(20));
    CHECK(std::memcmp(few->x().raw(), many->x().raw(), static_cast<std::size_t>(few->x().size_bytes())) == 0);
  }
}

TEST_CASE("generated: another seed and the other split are other samples") {
  for (const Generator generate : generators) {
    const std::uint32_t first = checksum(generate(options_of(10))->x());
    CHECK(checksum(generate(options_of(10))->x()) == first);
    CHECK(checksum(generate(options_of(10, 2))->x()) != first);
    CHECK(checksum(generate(options_of(10, 1, Split::test))->x()) != first);
  }
}

TEST_CASE("generated: the classes are equally frequent") {
  for (const Generator generate : generators) {
    const auto data = generate(options_of(2000));
    std::vector<int> per_class(10);
    for (std::int64_t i = 0; i < data->size(); ++i) ++per_class[static_cast<std::size_t>(data->y().data<std::int64_t>()[i])];
    for (const int count : per_class) CHECK(std::abs(count - 200) < 70);  // five deviations of 13.4
  }
}

TEST_CASE("generated: digits can be learned, but not from a few examples") {
  const auto test = generate_digits(options_of(100, 1, Split::test));
  const double few = nearest_neighbour(*generate_digits(options_of(100)), *test);
  const double many = nearest_neighbour(*generate_digits(options_of(2000)), *test);
  CHECK(few > 0.3);
  CHECK(few < 0.9);
  CHECK(many > few);
  CHECK(many > 0.75);
}

TEST_CASE("generated: an invalid count is reported") {
  CHECK_ERROR("digits: expected a count of 1 to 2^32, got 0", generate_digits(options_of(0)));
  CHECK_ERROR("textures: expected a count of 1 to 2^32, got -5", generate_textures(options_of(-5)));
  LinearOptions linear{.features = 0};
  CHECK_ERROR("linear: expected at least 1 feature, got 0", generate_linear(linear));
  linear.features = 1;
  linear.noise = -1;
  CHECK_ERROR("linear: expected a noise of at least 0, got -1.000000", generate_linear(linear));
}

TEST_CASE("linear: without noise y is x.w + b, with noise it has the standard deviation") {
  LinearOptions options{.count = 5000, .features = 4, .noise = 0};
  const auto strays = [&] {
    const LinearProblem problem = generate_linear(options);
    const auto* x = problem.data->x().data<float>();
    const auto* y = problem.data->y().data<float>();
    double squares = 0;
    for (std::int64_t i = 0; i < options.count; ++i) {
      double expected = problem.b;
      for (std::int64_t j = 0; j < 4; ++j) expected += static_cast<double>(x[4 * i + j]) * static_cast<double>(problem.w.data<float>()[j]);
      squares += (static_cast<double>(y[i]) - expected) * (static_cast<double>(y[i]) - expected);
    }
    return std::sqrt(squares / static_cast<double>(options.count));
  };
  CHECK(strays() < 1e-6);
  options.noise = 0.25;
  CHECK(strays() == doctest::Approx(0.25).epsilon(0.05));  // 5000 samples: one deviation is 1 %
}

TEST_CASE("linear: w and b depend on the seed, the samples also on the split") {
  LinearOptions options{.count = 8};
  const LinearProblem train = generate_linear(options);
  options.split = Split::test;
  const LinearProblem test = generate_linear(options);
  options.seed = 2;
  const LinearProblem other = generate_linear(options);
  CHECK(checksum(train.w) == checksum(test.w));
  CHECK(train.b == test.b);
  CHECK(checksum(train.w) != checksum(other.w));
  CHECK(checksum(train.data->x()) != checksum(test.data->x()));
  CHECK(train.data->x_type().shape == Shape{3});
  CHECK(train.data->y_type().shape == Shape{1});
}
