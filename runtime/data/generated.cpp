// SPDX-License-Identifier: Apache-2.0
// data/generated.cpp - shared code of the generated image sets, and the linear problem.
#include "data/generated.h"

#include <vector>

#include "data/streams.h"

namespace tenon {
namespace data {

void check_count(const std::string& name, std::int64_t count) {
  constexpr std::int64_t max_count = std::int64_t{1} << 32;  // the sample index is 32 bits of the random key
  if (count < 1 || count > max_count) throw Error(name + ": expected a count of 1 to 2^32, got " + std::to_string(count));
}

std::shared_ptr<const ArrayDataset> generate_images(const std::string& name, const Shape& image, std::uint32_t stream,
                                                    const GeneratedOptions& options, const ImageMaker& make) {
  check_count(name, options.count);
  Tensor x = Tensor::empty(DType::u8, image.with_batch(options.count));
  Tensor y = Tensor::empty(DType::i64, {options.count});
  for (std::int64_t i = 0; i < options.count; ++i) {
    Draw draw(options.seed, i, stream + static_cast<std::uint32_t>(options.split));
    y.data<std::int64_t>()[i] = make(draw, x.data<std::uint8_t>() + i * image.count());
  }
  ArrayOptions array;
  array.name = name + " " + name_of(options.split);
  array.scaling = options.scaling;
  array.targets = options.targets;
  array.num_classes = 10;
  return std::make_shared<const ArrayDataset>(x, y, array);
}

}  // namespace data

LinearProblem generate_linear(const LinearOptions& options) {
  data::check_count("linear", options.count);
  if (options.features < 1) throw Error("linear: expected at least 1 feature, got " + std::to_string(options.features));
  if (!(options.noise >= 0)) throw Error("linear: expected a noise of at least 0, got " + std::to_string(options.noise));
  LinearProblem problem;
  problem.w = Tensor::empty(DType::f32, {options.features, 1});
  data::Draw weights(options.seed, 0, data::stream_of_weights);
  float* w = problem.w.data<float>();
  for (std::int64_t j = 0; j < options.features; ++j) w[j] = weights.uniform(-2, 2);
  const float b = weights.uniform(-1, 1);
  problem.b = static_cast<double>(b);

  Tensor x = Tensor::empty(DType::f32, {options.count, options.features});
  Tensor y = Tensor::empty(DType::f32, {options.count, 1});
  const std::uint32_t stream = data::stream_of_linear + 2 * static_cast<std::uint32_t>(options.split);
  sdk::random::fill_uniform(x.data<float>(), 0, x.count(), {options.seed, 0, stream}, -1.0, 1.0);
  sdk::random::fill_normal(y.data<float>(), 0, y.count(), {options.seed, 0, stream + 1}, 0.0, options.noise);
  for (std::int64_t i = 0; i < options.count; ++i) {
    double sum = problem.b;
    for (std::int64_t j = 0; j < options.features; ++j)
      sum += static_cast<double>(x.data<float>()[i * options.features + j]) * static_cast<double>(w[j]);
    y.data<float>()[i] += static_cast<float>(sum);
  }
  ArrayOptions array;
  array.name = std::string("linear ") + name_of(options.split);
  problem.data = std::make_shared<const ArrayDataset>(x, y, array);
  return problem;
}

}  // namespace tenon
