#include "train/datasets.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace tenon::train {
namespace {

using config::DataDefinition;
using config::DataSource;
using config::Normalize;
using ArrayPointer = std::shared_ptr<const ArrayDataset>;

/// Scaling that gives stored bytes mean 0 and deviation 1.
Scaling standard_scaling(const ArrayDataset& data) {
  const Tensor& x = data.x();
  if (x.dtype() != DType::u8) throw Error(fmt::format("normalize: standard: {} holds {}, wanted u8", data.name(), name_of(x.dtype())));
  const auto* bytes = x.data<std::uint8_t>();
  double sum = 0, squares = 0;
  for (std::int64_t i = 0; i < x.count(); ++i) {
    const double value = bytes[i] / 255.0;
    sum += value;
    squares += value * value;
  }
  const double count = static_cast<double>(x.count());
  const double mean = sum / count;
  return Scaling::standard(mean, std::max(std::sqrt(std::max(squares / count - mean * mean, 0.0)), 1e-12));
}

ArrayPointer first(const ArrayPointer& data, std::int64_t count) {
  if (count <= 0 || count >= data->size()) return data;
  return std::make_shared<ArrayDataset>(data->slice(0, count, data->name()));
}

/// Reads or makes one split with a given scaling.
ArrayPointer read(const DataDefinition& definition, const std::string& directory, std::uint64_t seed, Split split, const Scaling& scaling) {
  const std::int64_t count = split == Split::train ? definition.train_count : definition.test_count;
  switch (definition.source) {
    case DataSource::mnist:
    case DataSource::fashion_mnist:
    case DataSource::idx: {
      MnistOptions options;
      options.scaling = scaling;
      return first(load_mnist(directory, split, options), count);
    }
    case DataSource::linear_regression: {
      LinearOptions options;
      options.seed = seed;
      options.split = split;
      if (count > 0) options.count = count;
      return generate_linear(options).data;
    }
    case DataSource::digits:
    case DataSource::cifar_like: {
      GeneratedOptions options;
      options.seed = seed;
      options.split = split;
      options.scaling = scaling;
      if (split == Split::test) options.count = 2000;
      if (count > 0) options.count = count;
      return definition.source == DataSource::digits ? generate_digits(options) : generate_textures(options);
    }
  }
  throw Error("data: unknown source");
}

}  // namespace

DataSplits make_data(const DataDefinition& definition, const std::string& given, std::uint64_t run_seed) {
  const std::string directory = given.empty() ? definition.directory : given;
  const bool wants_folder =
      definition.source == DataSource::mnist || definition.source == DataSource::fashion_mnist || definition.source == DataSource::idx;
  if (wants_folder && directory.empty()) {
    throw Error(fmt::format("data: source {} wants a folder with its IDX files; give --data DIR, or data.directory in the YAML",
                            name_of(definition.source)));
  }
  const std::uint64_t seed = definition.seed.value_or(run_seed);
  Scaling scaling = Scaling::none();
  if (definition.source != DataSource::linear_regression) {
    if (definition.normalize == Normalize::unit) scaling = Scaling::unit();
    if (definition.normalize == Normalize::gorgonia) scaling = Scaling::gorgonia();
    if (definition.normalize == Normalize::standard)
      scaling = standard_scaling(*read(definition, directory, seed, Split::train, Scaling::unit()));
  }
  DataSplits splits;
  ArrayPointer train = read(definition, directory, seed, Split::train, scaling);
  splits.test = read(definition, directory, seed, Split::test, scaling);
  if (definition.validation_split > 0) {
    const auto kept = static_cast<std::int64_t>(static_cast<double>(train->size()) * (1 - definition.validation_split));
    if (kept < 1 || kept >= train->size()) {
      throw Error(
          fmt::format("data: validation_split {} of {} samples leaves nothing on one side", definition.validation_split, train->size()));
    }
    splits.validation = std::make_shared<ArrayDataset>(train->slice(kept, train->size(), train->name() + " validation"));
    train = std::make_shared<ArrayDataset>(train->slice(0, kept, train->name()));
  }
  splits.train = train;
  return splits;
}

}  // namespace tenon::train
