// SPDX-License-Identifier: Apache-2.0
#include "train/datasets/dataset_rules.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include <tenon/error.h>

#include "core/log.h"
#include "data/files.h"

namespace tenon::train {
namespace {

// ---------------------------------------------------------------- files

template <class Load>
DatasetParts both(Load load) {
  return {load(Split::train), load(Split::test), {}};
}

DatasetParts read_idx(const DataDefinition&, const std::string& path, std::uint64_t) {
  return both([&](Split split) { return load_mnist(path, split, {.scaling = Scaling::none()}); });
}

DatasetParts read_cifar10(const DataDefinition&, const std::string& path, std::uint64_t) {
  Cifar10Options options;
  options.scaling = Scaling::none();
  return both([&](Split split) { return load_cifar10(path, split, options); });
}

DatasetParts read_numpy(const DataDefinition& definition, const std::string& path, std::uint64_t) {
  NumpyOptions options;
  options.input_arrays = definition.input_arrays;
  options.target_arrays = definition.target_arrays;
  return both([&](Split split) { return data::has_numpy(path, split, options) ? load_numpy(path, split, options) : nullptr; });
}

DatasetParts read_images(const DataDefinition& definition, const std::string& path, std::uint64_t) {
  ImageFolderOptions options;
  options.image = definition.image;
  options.scaling = Scaling::none();
  const ImageFolderData first = load_image_folder(path, Split::train, options);
  options.classes = first.classes;
  const bool has_test = data::is_folder(path + "/" + name_of(Split::test));
  return {first.data, has_test ? load_image_folder(path, Split::test, options).data : nullptr, first.classes};
}

DatasetParts read_csv(const DataDefinition& definition, const std::string& path, std::uint64_t) {
  const std::vector<std::string> train = data::csv_files(path, Split::train), test = data::csv_files(path, Split::test);
  const CsvData first = load_csv(train[0], definition.csv);
  if (test.empty()) return {first.data, nullptr, first.classes};
  // The test part uses the classes and the kind of target of the training part.
  CsvOptions options = definition.csv;
  options.classes = first.classes;
  options.target = first.data->num_classes() ? CsvOptions::Target::classes : CsvOptions::Target::values;
  const CsvData second = load_csv(test[0], options);
  if (second.features != first.features || second.label != first.label) {
    throw Error(fmt::format("{}: expected the columns of {}: {} and the label {}; got {} and {}", test[0], train[0],
                            fmt::join(first.features, ", "), first.label, fmt::join(second.features, ", "), second.label));
  }
  return {first.data, second.data, first.classes};
}

DatasetParts read_tokens(const DataDefinition& definition, const std::string& path, std::uint64_t) {
  const std::vector<std::string> train = data::token_files(path, Split::train), test = data::token_files(path, Split::test);
  TokenOptions options;
  options.vocabulary = definition.vocabulary;
  options.sequence = definition.sequence;
  const TokenData first = load_tokens(train[0], options);
  options.words = first.vocabulary;
  std::vector<std::string> words;
  for (std::int64_t id = 0; id < first.vocabulary->size(); ++id) words.push_back(first.vocabulary->word(id));
  return {first.data, test.empty() ? nullptr : load_tokens(test[0], options).data, words};
}

DatasetParts read_text(const DataDefinition& definition, const std::string& path, std::uint64_t) {
  const std::vector<std::string> train = data::token_files(path, Split::train), test = data::token_files(path, Split::test);
  TextOptions options;
  options.sequence = definition.sequence;
  const TextData first = load_text(train[0], options);
  options.alphabet = first.alphabet;
  const ArrayPointer second = test.empty() ? nullptr : load_text(test[0], options).data;
  log::info("text: {} has {} different characters", train[0], first.alphabet->size());
  return {first.data, second, first.alphabet->characters()};
}

// ---------------------------------------------------------------- generators

/// One part of a generated data set.
struct Part {
  const DataDefinition& definition;
  std::uint64_t seed;
  Split split;

  std::int64_t count() const { return split == Split::train ? definition.train_count : definition.test_count; }
  /// Sets what all generators have. The training part has the generator's own default count, the test part `test_count`.
  template <class Options>
  Options with(Options options, std::int64_t test_count) const {
    options.seed = seed;
    options.split = split;
    if (split == Split::test) options.count = test_count;
    if (count() > 0) options.count = count();
    return options;
  }
  /// The same for a stream of tokens, in which a sample is a sequence.
  template <class Options>
  Options stream(Options options) const {
    options.sequence = definition.sequence;
    options = with(options, 20000);
    if (count() > 0) options.count = count() * definition.sequence + 1;
    return options;
  }
};

template <ArrayPointer (*generate)(const Part&)>
DatasetParts generated(const DataDefinition& definition, const std::string&, std::uint64_t seed) {
  return both([&](Split split) { return generate({definition, seed, split}); });
}

template <auto generate>
ArrayPointer images_of(const Part& part) {
  GeneratedOptions options;
  options.scaling = Scaling::none();
  return generate(part.with(options, 2000));
}

ArrayPointer linear_of(const Part& part) {
  LinearOptions options;
  options.features = part.definition.features;
  options.noise = part.definition.noise;
  return generate_linear(part.with(options, options.count)).data;
}

ArrayPointer tokens_of(const Part& part) {
  TokenStreamOptions options;
  options.vocabulary = part.definition.vocabulary;
  return generate_tokens(part.stream(options));
}

ArrayPointer markov_of(const Part& part) {
  MarkovOptions options;
  options.symbols = part.definition.symbols;
  const MarkovStream stream = generate_markov(part.stream(options));
  if (part.split == Split::train) {
    log::info("markov: entropy rate {:.4f} nats, perplexity {:.3f}: the lower bound for any model", stream.entropy_rate,
              std::exp(stream.entropy_rate));
  }
  return stream.data;
}

ArrayPointer random_of(const Part& part) {
  RandomOptions options;
  options.shape = Shape(std::span<const std::int64_t>(part.definition.shape));
  options.classes = part.definition.classes;
  options.scaling = Scaling::none();
  return generate_random(part.with(options, 200));
}

// ---------------------------------------------------------------- the table

using Keys = std::vector<std::string_view>;

/// The sum of two lists of keys.
Keys operator+(Keys left, const Keys& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

const std::vector<DatasetRule>& table() {
  static const std::vector<DatasetRule> rules = [] {
    const Keys scaled = {"normalize"}, split = {"test_split"}, labels = {"targets", "class_names"};
    const Keys images = scaled + labels + Keys{"reconstruct", "augment", "image", "sample_weight"};
    const Keys csv = labels + Keys{"delimiter", "header", "label", "target", "sample_weight"};
    using Names = std::vector<std::string>;
    const Names digits = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
    const Names clothes = {"T-shirt/top", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot"};
    const Names cifar10 = {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};
    const char* const idx_files = "a folder with its IDX files";
    const char* const cifar10_files = "a folder with data_batch_1..5.bin and test_batch.bin";
    const char* const numpy_files = "an .npz file, or a folder with .npz or .npy files";
    const char* const class_folders = "a folder with one folder of images per class, or with such folders in train and test";
    const char* const csv_files = "a .csv file, or a folder with train.csv and test.csv";
    const char* const texts = "a text file, or a folder with train.txt and test.txt";
    using Source = DataSource;
    constexpr auto unit = Normalize::unit, none = Normalize::none;
    const std::optional<Normalize> by_dtype;
    return std::vector<DatasetRule>{
        {Source::mnist, "mnist", images, unit, idx_files, data::mnist_files, read_idx, digits},
        {Source::fashion_mnist, "fashion_mnist", images, unit, idx_files, data::mnist_files, read_idx, clothes},
        {Source::idx, "idx", images, unit, idx_files, data::mnist_files, read_idx},
        {Source::cifar10, "cifar10", images, unit, cifar10_files, data::cifar10_files, read_cifar10, cifar10},
        {Source::npz, "npz", images + split + Keys{"inputs"}, by_dtype, numpy_files, data::numpy_files, read_numpy},
        {Source::images, "images", images + split, unit, class_folders, data::image_files, read_images},
        {Source::csv, "csv", scaled + split + csv, by_dtype, csv_files, data::csv_files, read_csv},
        {Source::tokens, "tokens", split + Keys{"vocabulary", "sequence"}, none, texts, data::token_files, read_tokens},
        {Source::text, "text", split + Keys{"sequence"}, none, texts, data::token_files, read_text},
        {Source::digits, "digits", images, unit, nullptr, nullptr, generated<images_of<generate_digits>>, digits},
        {Source::linear_regression, "linear_regression", scaled + Keys{"features", "noise"}, none, nullptr, nullptr, generated<linear_of>},
        {Source::cifar_like, "cifar_like", images, unit, nullptr, nullptr, generated<images_of<generate_textures>>},
        {Source::signals, "signals", images, unit, nullptr, nullptr, generated<images_of<generate_signals>>},
        {Source::ptb_like, "ptb_like", {"vocabulary", "sequence"}, none, nullptr, nullptr, generated<tokens_of>},
        {Source::markov, "markov", {"symbols", "sequence"}, none, nullptr, nullptr, generated<markov_of>},
        {Source::random, "random", images + Keys{"shape", "classes"}, unit, nullptr, nullptr, generated<random_of>},
    };
  }();
  return rules;
}

}  // namespace

bool DatasetRule::takes(std::string_view key) const {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

std::span<const DatasetRule> dataset_rules() {
  return table();
}

const DatasetRule& rule_of(DataSource source) {
  for (const DatasetRule& rule : dataset_rules()) {
    if (rule.source == source) return rule;
  }
  throw Error(Status::internal, "a data set without a row in train/datasets/dataset_rules.cpp");
}

}  // namespace tenon::train

namespace tenon {

const char* name_of(DataSource source) {
  return train::rule_of(source).name;
}

}  // namespace tenon
