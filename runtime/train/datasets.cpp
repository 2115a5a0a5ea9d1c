// SPDX-License-Identifier: Apache-2.0
#include "train/datasets.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "core/log.h"
#include "data/disk_cache.h"
#include "train/dataset_rules.h"

namespace tenon::train {
namespace {

/// The data sets as they pass through the steps below. Padding is filled with `black`, the scaled value of a black pixel.
struct Prepared {
  ArrayPointer train, validation, test;  ///< validation may be null; test is null until it is split off
  std::vector<double> black = {0};
};

// ---------------------------------------------------------------- scaling

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

/// One scaling, or one per channel, for the stored values of all parts.
std::vector<Scaling> scalings_for(const DataDefinition& definition, const ArrayDataset& train) {
  const Tensor& x = train.x();
  const Shape& sample = train.x_type().shape;
  const bool bytes = x.dtype() == DType::u8, numbers = bytes || x.dtype() == DType::f32 || x.dtype() == DType::f64;
  const Normalize normalize = definition.normalize.value_or(bytes ? Normalize::unit : Normalize::none);
  const auto reject = [&](const std::string& expected) {
    throw Error(fmt::format("data: normalize: {}: {} holds {}, expected {}", name_of(normalize), train.name(), x.str(), expected));
  };
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

ArrayPointer rescaled(const ArrayPointer& data, const std::vector<Scaling>& scalings) {
  const bool one = scalings.size() == 1;
  return std::make_shared<ArrayDataset>(data->rescaled(one ? scalings[0] : Scaling::none(), one ? std::vector<Scaling>() : scalings));
}

// ---------------------------------------------------------------- parts

ArrayPointer first(const ArrayPointer& data, std::int64_t count) {
  if (count <= 0 || count >= data->size()) return data;
  return std::make_shared<ArrayDataset>(data->slice(0, count, data->name()));
}

/// Splits the fraction `part` off the end of the data.
ArrayPointer split_off(ArrayPointer& data, double part, const char* key, const std::string& name) {
  const auto kept = static_cast<std::int64_t>(static_cast<double>(data->size()) * (1 - part));
  if (kept < 1 || kept >= data->size())
    throw Error(fmt::format("data: {} {} of {} samples leaves one part empty", key, part, data->size()));
  const auto end = std::make_shared<ArrayDataset>(data->slice(kept, data->size(), name));
  data = std::make_shared<ArrayDataset>(data->slice(0, kept, data->name()));
  return end;
}

/// Reads, splits and scales the data.
Prepared prepare(const DataDefinition& definition, const std::string& path, std::uint64_t seed) {
  const DatasetParts read = rule_of(definition.source).load(definition, path, seed);
  Prepared parts{read.train, nullptr, read.test, {}};
  if (parts.test && definition.test_split > 0) {
    throw Error(fmt::format("data: test_split {}: {} has a test part of its own; remove test_split", definition.test_split, path));
  }
  if (!parts.test && definition.test_split == 0) {
    throw Error(fmt::format("data: {} has no test part; data.test_split: 0.1 takes the last tenth of it", path));
  }
  const std::string name = parts.train->name();
  if (!parts.test) parts.test = split_off(parts.train, definition.test_split, "test_split", name + " test");
  parts.train = first(parts.train, definition.train_count);
  parts.test = first(parts.test, definition.test_count);
  const std::vector<Scaling> scalings = scalings_for(definition, *parts.train);
  parts.train = rescaled(parts.train, scalings);
  parts.test = rescaled(parts.test, scalings);
  for (const Scaling& scaling : scalings) parts.black.push_back(scaling.offset);
  if (definition.validation_split > 0)
    parts.validation = split_off(parts.train, definition.validation_split, "validation_split", parts.train->name() + " validation");
  return parts;
}

// ---------------------------------------------------------------- caches

/// A key of all settings that influence prepare().
data::ContentKey options_key(const DataDefinition& d, std::uint64_t seed) {
  data::ContentKey key;
  key.add(fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}", TENON_VERSION, name_of(d.source), d.normalize ? name_of(*d.normalize) : "",
                      fmt::join(d.mean, ","), fmt::join(d.deviation, ","), d.train_count, d.test_count, d.validation_split, d.test_split));
  key.add(fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", d.features, d.noise, d.vocabulary, d.symbols, d.sequence, fmt::join(d.shape, ","),
                      d.classes, d.csv.delimiter, static_cast<int>(d.csv.header), static_cast<int>(d.csv.target), d.csv.label));
  if (!rule_of(d.source).reads_files()) key.add(std::to_string(seed));
  return key;
}

std::string text_of(const std::vector<double>& numbers) {
  std::string text;
  for (const double number : numbers) text += fmt::format("{}{:a}", text.empty() ? "" : " ", number);
  return text;
}

std::vector<double> numbers_of(const std::string& text) {
  std::vector<double> numbers;
  const char* at = text.c_str();
  for (char* end = nullptr;; at = end) {
    const double number = std::strtod(at, &end);
    if (end == at) return numbers.empty() ? std::vector<double>{0} : numbers;
    numbers.push_back(number);
  }
}

/// Maps the cache files for the same content and options, creating them first if needed.
Prepared from_disk(const DataDefinition& definition, const std::string& path, std::uint64_t seed) {
  const DatasetRule& rule = rule_of(definition.source);
  const data::DiskCache cache(data::DiskCache::folder_or_default(definition.cache_directory));
  data::ContentKey content;
  for (const Split split : {Split::train, Split::test}) {
    if (!rule.reads_files()) break;
    for (const std::string& file : rule.files(path, split)) {
      content.add_file(file);
      if (definition.source == DataSource::images) content.add(std::filesystem::path(file).lexically_relative(path).string());  // the class
    }
  }
  std::error_code ignored;
  const std::string place = rule.reads_files() ? std::filesystem::weakly_canonical(path, ignored).string() : "generated";
  const data::ContentKey options = options_key(definition, seed);
  const auto file_of = [&](const char* part) { return cache.path_of(fmt::format("{}-{}", rule.name, part), place, content, options); };
  const bool validates = definition.validation_split > 0;
  const auto open = [&] {
    Prepared parts;
    const data::CachedPart train = cache.open(file_of("train"));
    parts.train = train.data;
    parts.test = cache.open(file_of("test")).data;
    if (validates) parts.validation = cache.open(file_of("validation")).data;
    const auto black = train.metadata.find("black");
    if (black != train.metadata.end()) parts.black = numbers_of(black->second);
    return parts;
  };
  const auto is_complete = [&](const Prepared& parts) { return parts.train && parts.test && (parts.validation || !validates); };
  Prepared parts = open();
  if (is_complete(parts)) {
    log::info("cache: disk: {} is mapped from {}", parts.train->name(), file_of("train"));
    return parts;
  }
  const Prepared made = prepare(definition, path, seed);
  const std::string black = text_of(made.black);
  cache.store(file_of("train"), *made.train, {{"black", black}});
  cache.store(file_of("test"), *made.test, {{"black", black}});
  if (validates) cache.store(file_of("validation"), *made.validation, {{"black", black}});
  parts = open();
  if (is_complete(parts)) return parts;
  throw Error(Status::internal, file_of("train") + ": a cache that was just written cannot be read");
}

std::shared_ptr<const Dataset> kept_in_memory(const ArrayPointer& data) {
  if (!data) return nullptr;
  if (data->is_unscaled()) {
    log::info("cache: ram: {} needs no cache: its samples are unscaled and in memory", data->name());
    return data;
  }
  return cache_in_memory(data);
}

}  // namespace

DataSplits make_data(const DataDefinition& definition, const std::string& given, std::uint64_t run_seed) {
  const std::string path = given.empty() ? definition.directory : given;
  const DatasetRule& rule = rule_of(definition.source);
  if (rule.reads_files() && path.empty()) {
    throw Error(fmt::format("data: source {} expects {}; give --data DIR, or data.directory in the YAML", rule.name, rule.expected));
  }
  const std::uint64_t seed = definition.seed.value_or(run_seed);
  const bool on_disk = definition.cache == DataCache::disk;
  const Prepared parts = on_disk ? from_disk(definition, path, seed) : prepare(definition, path, seed);
  DataSplits splits{parts.train, parts.test, parts.validation};
  if (definition.cache == DataCache::ram)
    splits = {kept_in_memory(parts.train), kept_in_memory(parts.test), kept_in_memory(parts.validation)};
  AugmentOptions changes = definition.augment;
  changes.fill = parts.black;
  changes.seed = seed;
  splits.train = augment(splits.train, changes);
  if (definition.reconstruct) {
    for (std::shared_ptr<const Dataset>* part : {&splits.train, &splits.test, &splits.validation}) {
      if (*part) *part = reconstruct(*part);
    }
  }
  return splits;
}

std::function<Tensor(DType, const Shape&)> pinned_memory(const Device& device) {
  const auto warned = std::make_shared<std::atomic<bool>>(false);
  return [device, warned](DType dtype, const Shape& shape) {
    try {
      return device.empty_pinned(dtype, shape);
    } catch (const Error& error) {
      if (!warned->exchange(true))
        log::warning("data.pinned: no pinned memory on {}: {}; using pageable memory for batches", device.name(), error.what());
      return Tensor::empty(dtype, shape);
    }
  };
}

}  // namespace tenon::train
