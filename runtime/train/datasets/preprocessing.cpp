// SPDX-License-Identifier: Apache-2.0
#include "train/datasets/preprocessing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#include <tenon/error.h>

#include "train/datasets/dataset_rules.h"
#include "yaml/json.h"

namespace tenon::train {
namespace {

struct Moments {
  double mean = 0, deviation = 1;
};

/// Mean and deviation of elements [begin, begin + part) of all samples; bytes are divided by 255 first.
template <class T>
Moments moments_of(const Tensor& x, std::int64_t begin, std::int64_t part) {
  const std::int64_t samples = x.shape()[0], row = samples > 0 ? x.count() / samples : 0;
  const double unit = x.dtype() == DType::u8 ? 1.0 / 255 : 1.0;
  double sum = 0, squares = 0;
  for (std::int64_t s = 0; s < samples; ++s) {
    const T* values = x.data<T>() + s * row + begin;
    for (std::int64_t i = 0; i < part; ++i) {
      const double value = static_cast<double>(values[i]) * unit;
      sum += value;
      squares += value * value;
    }
  }
  const double count = std::max(1.0, static_cast<double>(samples * part));
  const double mean = sum / count;
  const double deviation = std::sqrt(std::max(squares / count - mean * mean, 0.0));
  return {mean, deviation > 1e-12 ? deviation : 1};  // constant values are only shifted to 0
}

Moments moments_of(const Tensor& x, std::int64_t begin, std::int64_t part) {
  if (x.dtype() == DType::u8) return moments_of<std::uint8_t>(x, begin, part);
  return x.dtype() == DType::f32 ? moments_of<float>(x, begin, part) : moments_of<double>(x, begin, part);
}

}  // namespace

std::vector<Scaling> scalings_for(const DataDefinition& definition, const ArrayDataset& train) {
  const Tensor& x = train.x();
  const Shape& sample = train.x_type().shape;
  const bool bytes = x.dtype() == DType::u8, numbers = bytes || x.dtype() == DType::f32 || x.dtype() == DType::f64;
  const Normalize normalize = definition.normalize.value_or(bytes ? Normalize::unit : Normalize::none);
  const auto reject = [&](const std::string& expected) {
    throw Error(fmt::format("data: normalize: {}: {} holds {}, expected {}", name_of(normalize), train.name(), x.str(), expected));
  };
  if (train.inputs().size() > 1) {
    if (definition.normalize.value_or(Normalize::none) != Normalize::none) reject("one input");
    return {Scaling::none()};
  }
  const auto scaling_of = [&](const Moments& m) {
    return bytes ? Scaling::standard(m.mean, m.deviation) : Scaling{1 / m.deviation, -m.mean / m.deviation};
  };
  switch (normalize) {
    case Normalize::none:
      return {Scaling::none()};
    case Normalize::unit:
    case Normalize::gorgonia:
      if (!bytes) reject("bytes (u8)");
      return {normalize == Normalize::unit ? Scaling::unit() : Scaling::gorgonia()};
    case Normalize::standard:
      if (!numbers) reject("u8, f32 or f64");
      return {scaling_of(moments_of(x, 0, sample.count()))};
    case Normalize::per_channel: {
      if (!numbers) reject("u8, f32 or f64");
      if (sample.rank() != 1 && sample.rank() != 3) reject("samples (C,H,W) or (columns); use 'standard' for one scaling of all values");
      std::vector<Scaling> channels;
      const std::int64_t part = sample.count() / std::max<std::int64_t>(sample[0], 1);
      for (std::int64_t c = 0; c < sample[0]; ++c) channels.push_back(scaling_of(moments_of(x, c * part, part)));
      return channels;
    }
    case Normalize::given: {
      if (!numbers) reject("u8, f32 or f64");
      if (definition.mean.size() != 1 && (sample.rank() < 1 || static_cast<std::int64_t>(definition.mean.size()) != sample[0])) {
        reject(fmt::format("samples whose first axis is {}, the number of means", definition.mean.size()));
      }
      std::vector<Scaling> channels;
      for (std::size_t c = 0; c < definition.mean.size(); ++c)
        channels.push_back(scaling_of({definition.mean[c], definition.deviation[c]}));
      return channels;
    }
  }
  return {Scaling::none()};
}

ArrayOptions with_scalings(ArrayOptions options, const std::vector<Scaling>& scalings) {
  const bool one = scalings.size() == 1;
  options.scaling = one ? scalings[0] : Scaling::none();
  options.channels = one ? std::vector<Scaling>() : scalings;
  return options;
}

std::vector<std::string> class_names_of(const DataDefinition& definition, const std::vector<std::string>& in_files,
                                        std::optional<std::int64_t> classes) {
  const std::vector<std::string>& given = definition.class_names;
  if (given.empty()) {
    if (!in_files.empty()) return in_files;
    const std::vector<std::string>& known = rule_of(definition.source).class_names;
    return classes.value_or(static_cast<std::int64_t>(known.size())) == static_cast<std::int64_t>(known.size())
               ? known
               : std::vector<std::string>();
  }
  if (!classes || *classes == static_cast<std::int64_t>(given.size())) return given;
  throw Error(fmt::format("data: class_names: expected {} names, one for each class, got {}", *classes, given.size()));
}

bool defines_preprocessing(const DataDefinition& definition) {
  return definition.normalize != Normalize::standard && definition.normalize != Normalize::per_channel;
}

Tensor prepare_samples(const Tensor& stored, const DataDefinition& definition, const Preprocessing& preprocessing,
                       const std::string& name) {
  const bool numbers = stored.dtype() == DType::f32 || stored.dtype() == DType::f64;
  const bool expects_numbers = preprocessing.stored == DType::f32 || preprocessing.stored == DType::f64;
  if (preprocessing.stored != DType::none && preprocessing.stored != stored.dtype() && !(numbers && expects_numbers)) {
    throw Error(fmt::format("{}: expected {}, as the training data has, got {}", name, name_of(preprocessing.stored), stored.str()));
  }
  const std::int64_t count = stored.shape()[0];
  ArrayOptions options;
  options.name = name;
  if (stored.dtype() != DType::u8 && !numbers) options.x_dtype = stored.dtype();
  const Tensor y = Tensor::zeros(DType::f32, {count, 1});
  std::vector<Scaling> scalings = preprocessing.scalings;
  if (scalings.empty()) {
    ArrayOptions unscaled = options;
    unscaled.x_dtype = stored.dtype();
    scalings = scalings_for(definition, ArrayDataset(stored, y, unscaled));
  }
  const ArrayDataset data(stored, y, with_scalings(options, scalings));
  Tensor x = Tensor::empty(data.x_type().dtype, data.x_type().shape.with_batch(count));
  Tensor unused = Tensor::empty(DType::f32, {count, 1});
  std::vector<std::int64_t> indices(static_cast<std::size_t>(count));
  std::iota(indices.begin(), indices.end(), 0);
  data.gather(indices, x, unused);
  return x;
}

std::string preprocessing_to_json(const Preprocessing& preprocessing) {
  Json scalings = Json::array();
  for (const Scaling& s : preprocessing.scalings) scalings.push_back({{"scale", s.scale}, {"offset", s.offset}});
  return json_text({{"stored", name_of(preprocessing.stored)}, {"scalings", scalings}, {"class_names", preprocessing.class_names}});
}

Preprocessing preprocessing_from_json(const std::string& text) try {
  const Json json = parse_json(text);
  Preprocessing result;
  for (const DType dtype : {DType::u8, DType::f32, DType::f64, DType::i32, DType::i64}) {
    if (json.at("stored") == name_of(dtype)) result.stored = dtype;
  }
  for (const auto& scaling : json.at("scalings")) result.scalings.push_back({scaling.at("scale"), scaling.at("offset")});
  result.class_names = json.at("class_names").get<std::vector<std::string>>();
  return result;
} catch (const Json::exception& problem) {
  throw Error(
      fmt::format("expected {{\"stored\": ..., \"scalings\": ..., \"class_names\": ...}}, got a text that is not: {}", problem.what()));
}

}  // namespace tenon::train
