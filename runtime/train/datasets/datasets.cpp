// SPDX-License-Identifier: Apache-2.0
#include "train/datasets/datasets.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <vector>

#include <tenon/npy.h>

#include "core/log.h"
#include "data/disk_cache.h"
#include "platform/path.h"
#include "train/datasets/dataset_rules.h"
#include "train/datasets/preprocessing.h"

namespace tenon::train {
namespace {

/// The data sets as they pass through the steps below.
struct Prepared {
  ArrayPointer train, validation, test;  ///< validation may be null; test is null until it is split off
  Preprocessing preprocessing;
};

/// The scaled value of a black pixel, per channel, which fills padding.
std::vector<double> black_of(const Preprocessing& preprocessing) {
  std::vector<double> black;
  for (const Scaling& scaling : preprocessing.scalings) black.push_back(scaling.offset);
  return black.empty() ? std::vector<double>{0} : black;
}

/// The data with its scalings and the form of its targets.
ArrayPointer prepared(const ArrayPointer& data, const DataDefinition& definition, const std::vector<Scaling>& scalings) {
  ArrayOptions options = with_scalings(data->options(), scalings);
  options.targets = definition.targets;
  if (definition.targets != Targets::as_given && !options.num_classes) {
    throw Error(fmt::format("data: targets: {}: expected one class label per sample, {} has targets {}; remove the key",
                            name_of(definition.targets), data->name(), data->y().str()));
  }
  return std::make_shared<ArrayDataset>(data->input_arrays(), data->target_arrays(), options);
}

/// Images of bytes with the size and channels of `data.image`. A folder of images has them already, and keeps them.
ArrayPointer transformed(const ArrayPointer& data, const ImageOptions& options) {
  if (!data || options.is_identity()) return data;
  const Tensor& x = data->x();
  const std::size_t rank = x.shape().rank();
  if (data->inputs().size() != 1)
    throw Error(fmt::format("data: image: expected one input, {} has {}", data->name(), data->inputs().size()));
  if (x.dtype() != DType::u8 || rank < 3 || rank > 4) {
    throw Error(fmt::format("data: image: expected images of bytes, (H,W) or (C,H,W), {} holds {}; remove the key", data->name(), x.str()));
  }
  Tensor all;
  for (std::int64_t i = 0; i < data->size(); ++i) {
    const Tensor sample = x.select(0, i);
    const Tensor image = transform_image(rank == 4 ? sample : sample.reshape({1, sample.shape()[0], sample.shape()[1]}), options);
    const bool flat = rank == 3 && image.shape()[0] == 1;
    const Shape shape = flat ? Shape{image.shape()[1], image.shape()[2]} : image.shape();
    if (i == 0) all = Tensor::empty(DType::u8, shape.with_batch(data->size()));
    std::copy_n(image.data<std::uint8_t>(), image.count(), all.data<std::uint8_t>() + i * image.count());
  }
  if (!all.defined()) return data;
  return std::make_shared<ArrayDataset>(std::vector<NamedTensor>{{data->x_type().name, all}}, data->target_arrays(), data->options());
}

/// The data with the weights of a file.
ArrayPointer weighted(const ArrayPointer& data, const std::string& file) {
  ArrayOptions options = data->options();
  options.sample_weights = load_npy(file);
  try {
    return std::make_shared<ArrayDataset>(data->input_arrays(), data->target_arrays(), options);
  } catch (const Error& error) {
    throw Error(fmt::format("data: sample_weight {}: {}", file, error.what()));
  }
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
  if (!definition.sample_weights.empty()) parts.train = weighted(parts.train, definition.sample_weights);
  if (!parts.test) parts.test = split_off(parts.train, definition.test_split, "test_split", name + " test");
  parts.train = first(parts.train, definition.train_count);
  parts.test = first(parts.test, definition.test_count);
  if (definition.source != DataSource::images) {
    for (ArrayPointer* part : {&parts.train, &parts.test}) *part = transformed(*part, definition.image);
  }
  parts.preprocessing = {parts.train->x().dtype(), scalings_for(definition, *parts.train),
                         class_names_of(definition, read.class_names, parts.train->num_classes())};
  parts.train = prepared(parts.train, definition, parts.preprocessing.scalings);
  parts.test = prepared(parts.test, definition, parts.preprocessing.scalings);
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
  key.add(d.csv.sample_weight);
  key.add(fmt::format("{}|{}|{}|{}|{}", name_of(d.targets), fmt::join(d.class_names, ","), fmt::join(d.image.resize, ","),
                      fmt::join(d.image.crop, ","), d.image.channels));
  if (!rule_of(d.source).reads_files()) key.add(std::to_string(seed));
  return key;
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
      if (definition.source != DataSource::images) continue;
      content.add(platform::portable_text_of(platform::path_of(file).lexically_relative(platform::path_of(path))));  // the class
    }
  }
  if (!definition.sample_weights.empty()) content.add_file(definition.sample_weights);
  std::error_code ignored;
  const std::string place = rule.reads_files() ? platform::canonical_path(path, ignored) : "generated";
  const data::ContentKey options = options_key(definition, seed);
  const auto file_of = [&](const char* part) { return cache.path_of(fmt::format("{}-{}", rule.name, part), place, content, options); };
  const bool validates = definition.validation_split > 0;
  const auto open = [&] {
    Prepared parts;
    const data::CachedPart train = cache.open(file_of("train"));
    parts.train = train.data;
    parts.test = cache.open(file_of("test")).data;
    if (validates) parts.validation = cache.open(file_of("validation")).data;
    const auto text = train.metadata.find("preprocessing");
    if (text != train.metadata.end()) parts.preprocessing = preprocessing_from_json(text->second);
    return parts;
  };
  const auto is_complete = [&](const Prepared& parts) { return parts.train && parts.test && (parts.validation || !validates); };
  Prepared parts = open();
  if (is_complete(parts)) {
    log::info("cache: disk: {} is mapped from {}", parts.train->name(), file_of("train"));
    return parts;
  }
  const Prepared made = prepare(definition, path, seed);
  cache.store(file_of("train"), *made.train, {{"preprocessing", preprocessing_to_json(made.preprocessing)}});
  cache.store(file_of("test"), *made.test, {});
  if (validates) cache.store(file_of("validation"), *made.validation, {});
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
  DataSplits splits{parts.train, parts.test, parts.validation, parts.preprocessing};
  if (definition.cache == DataCache::ram)
    splits = {kept_in_memory(parts.train), kept_in_memory(parts.test), kept_in_memory(parts.validation), parts.preprocessing};
  AugmentOptions changes = definition.augment;
  changes.fill = black_of(parts.preprocessing);
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
