// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <fstream>

#include "config/train_blocks.h"
#include "platform/path.h"
#include "train/datasets/dataset_rules.h"
#include "train/names.h"

namespace tenon::config {
namespace {

const std::vector<Choice<CsvOptions::Target>> csv_targets = {
    {"detect", CsvOptions::Target::detect}, {"classes", CsvOptions::Target::classes}, {"values", CsvOptions::Target::values}};

std::vector<Choice<Targets>> target_forms() {
  std::vector<Choice<Targets>> words;
  for (const Targets form : {Targets::as_given, Targets::one_hot, Targets::soft_one_hot}) words.push_back({name_of(form), form});
  return words;
}

const std::vector<Choice<std::int64_t>> image_channels = {{"greyscale", 1}, {"grayscale", 1}, {"rgb", 3}};

std::vector<Choice<DataSource>> sources() {
  std::vector<Choice<DataSource>> words;
  for (const train::DatasetRule& rule : train::dataset_rules()) words.push_back({rule.name, rule.source});
  return words;
}

std::vector<double> read_numbers(const Value& value, Range<double> range) {
  if (value.is_scalar()) return {value.as_number(range)};
  std::vector<double> numbers;
  for (const Value& item : value.items("a number or a list of numbers")) numbers.push_back(item.as_number(range));
  if (numbers.empty()) value.fail_expected("a number or a list of numbers");
  return numbers;
}

void read_normalize(Section& section, DataDefinition& data) {
  const std::optional<Value> value = section.find("normalize", "a name, or a map with the keys mean and std");
  if (!value) return;
  if (!value->is_map()) {
    data.normalize = value->as_choice(train::normalizations());
    return;
  }
  Section given = *section.child("normalize");
  data.normalize = Normalize::given;
  given.attempt_keys([&] {
    data.mean = read_numbers(given.require_value("mean", "a number, or one per channel"), {});
    data.deviation = read_numbers(given.require_value("std", "a number above 0, or one per channel"), above_zero);
    if (data.mean.size() != data.deviation.size()) {
      given.find("std")->fail(fmt::format("expected as many values as 'mean' has ({}), got {}", data.mean.size(), data.deviation.size()));
    }
  });
}

void read_csv(Section& section, CsvOptions& csv) {
  if (const auto delimiter = section.find("delimiter", "one character, or tab")) {
    const std::string text = delimiter->as_text("one character, or tab");
    if (text != "tab" && (text.size() != 1 || text == "\"" || text == "\n")) delimiter->fail_expected("one character, or tab");
    csv.delimiter = text == "tab" ? '\t' : text[0];
  }
  if (const auto header = section.find("header", "true or false"); header && !header->is_null()) {
    csv.header = header->as_bool() ? CsvOptions::Header::present : CsvOptions::Header::absent;
  }
  if (const auto label = section.find("label", "the name or index of a column", "the last"); label && !label->is_null())
    csv.label = label->as_text("the name or index of a column");
  csv.target = section.choice("target", csv.target, csv_targets);
  if (const auto weight = section.find("sample_weight", "the name or index of a column", "none"); weight && !weight->is_null())
    csv.sample_weight = weight->as_text("the name or index of a column");
}

void read_shape(Section& section, std::vector<std::int64_t>& out_shape) {
  const auto shape = section.find("shape", "a list of 1 to 7 sizes");
  if (!shape) return;
  out_shape.clear();
  for (const Value& size : shape->items("a list of 1 to 7 sizes")) out_shape.push_back(size.as_integer({1, 1 << 20}));
  if (out_shape.empty() || out_shape.size() > 7) shape->fail_expected("a list of 1 to 7 sizes");
}

/// Reads a list of names, or the path of a file with a name per line.
std::vector<std::string> read_class_names(const Value& value) {
  std::vector<std::string> names;
  if (!value.is_scalar()) {
    for (const Value& item : value.items("a list of names, or the path of a file with a name per line")) names.push_back(item.as_text());
  } else {
    const std::string path = value.as_path();
    std::ifstream file(platform::path_of(path), std::ios::binary);
    for (std::string line; std::getline(file, line);) {
      while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
      if (!line.empty()) names.push_back(line);
    }
  }
  if (names.empty()) value.fail_expected("a list of names, or the path of a file with a name per line");
  return names;
}

/// Reads one side, or [height, width].
std::vector<std::int64_t> read_sides(Section& section, const char* key) {
  const auto value = section.find(key, "a size or [height, width]", "null");
  if (!value || value->is_null()) return {};
  const Range<std::int64_t> range{1, 1 << 16};
  if (value->is_scalar()) return {value->as_integer(range)};
  std::vector<std::int64_t> sides;
  for (const Value& item : value->items("a size or [height, width]")) sides.push_back(item.as_integer(range));
  if (sides.size() != 2) value->fail_expected("a size or [height, width]");
  return sides;
}

/// Reads a map of inputs or targets and names of arrays, or a list of names that are both.
ArrayNames read_arrays(const Value& value) {
  const char* const expected = "a map of names and of the arrays that they are read from, or a list of names that are both";
  ArrayNames arrays;
  if (value.is_map()) {
    for (const auto& [name, array] : value.entries()) arrays.emplace_back(name, array.as_text("the name of an array"));
  } else {
    for (const Value& item : value.items(expected)) arrays.emplace_back(item.as_text(), item.as_text());
  }
  if (arrays.empty()) value.fail_expected(expected);
  return arrays;
}

/// Reads the form of labels or, of a source of named arrays, these.
void read_targets(Section& section, bool takes_arrays, DataDefinition& data) {
  const auto value = section.find("targets");
  if (value && takes_arrays && !value->is_scalar() && !value->is_null()) {
    data.target_arrays = read_arrays(*value);
  } else {
    data.targets = section.choice("targets", data.targets, target_forms());
  }
}

void read_image(Section& section, ImageOptions& image) {
  std::optional<Section> changes = section.child("image");
  if (!changes) return;
  image.resize = read_sides(*changes, "resize");
  image.crop = read_sides(*changes, "crop");
  image.channels = changes->choice("channels", image.channels, image_channels);
}

void read_augment(Section& section, AugmentOptions& augment) {
  std::optional<Section> changes = section.child("augment");
  if (!changes) return;
  if (std::optional<Section> crop = changes->child("crop")) {
    augment.crop_padding = crop->require<std::int64_t>("padding", "pixels around the image", {1, 1 << 16});
  }
  if (const auto flip = changes->find("flip", "horizontal, vertical or [horizontal, vertical]"); flip && !flip->is_null()) {
    for (const std::string& direction : flip->as_names()) {
      if (direction != "horizontal" && direction != "vertical") flip->fail_expected("horizontal, vertical or [horizontal, vertical]");
      (direction == "horizontal" ? augment.flip_horizontal : augment.flip_vertical) = true;
    }
  }
}

void read_loading(Section& section, DataDefinition& data, FitOptions& out_fit) {
  read_batch_keys(section, out_fit);
  data.cache = section.choice("cache", data.cache, train::caches());
  if (const auto folder = section.find("cache_directory", "a path"); folder && !folder->is_null()) {
    data.cache_directory = folder->as_path();
    if (data.cache != DataCache::disk) folder->fail("has no effect without cache: disk");
  }
}

}  // namespace

void read_batch_keys(Section& section, FitOptions& out_fit) {
  out_fit.workers = section.get<int>("workers", out_fit.workers, {0, 256});
  const std::optional<Value> prefetch = section.find("prefetch", "an integer in [1, 1024]");
  if (prefetch) {
    out_fit.prefetch = prefetch->as<int>({1, 1024});
    if (out_fit.workers == 0) prefetch->fail("has no effect with workers: 0; remove it, or set workers to at least 1");
  }
  out_fit.pinned = section.get<bool>("pinned", out_fit.pinned);
  out_fit.shuffle_buffer = section.get_optional<std::int64_t>("shuffle_buffer", {1, max_count}).value_or(0);
}

DataDefinition read_data(Section& top, FitOptions& out_fit) {
  const Value value = top.require_value("data", "a map with the key 'source'");
  if (!value.is_map()) value.fail_expected("a map with the key 'source'");
  Section section = *top.child("data");
  DataDefinition data;
  data.where = value.mark().str();
  section.attempt_keys([&] {
    data.source = section.require_value("source", "the name of a data set").as_choice(sources());
    const train::DatasetRule& rule = train::rule_of(data.source);
    if (const auto directory = section.find("directory", "a path"); directory && !directory->is_null())
      data.directory = directory->as_path();
    data.normalize = rule.normalize;
    if (rule.takes("normalize")) read_normalize(section, data);
    data.train_count = section.get_optional<std::int64_t>("train_count", {1, max_count}).value_or(0);
    data.test_count = section.get_optional<std::int64_t>("test_count", {1, max_count}).value_or(0);
    data.seed = section.get_optional<std::uint64_t>("seed");
    data.validation_split = section.get<double>("validation_split", 0, below_one);
    if (rule.takes("test_split")) data.test_split = section.get<double>("test_split", 0, below_one);
    if (rule.takes("features")) data.features = section.get<std::int64_t>("features", data.features, {1, 1 << 20});
    if (rule.takes("noise")) data.noise = section.get<double>("noise", data.noise, from_zero);
    if (rule.takes("delimiter")) read_csv(section, data.csv);
    if (rule.takes("image")) {
      if (const auto weights = section.find("sample_weight", "the path of an .npy file", "none"); weights && !weights->is_null())
        data.sample_weights = weights->as_path();
    }
    if (rule.takes("symbols")) data.symbols = section.get<std::int64_t>("symbols", data.symbols, {2, 4096});
    if (rule.takes("vocabulary")) data.vocabulary = section.get<std::int64_t>("vocabulary", data.vocabulary, {3, std::int64_t{1} << 31});
    if (rule.takes("sequence")) data.sequence = section.get<std::int64_t>("sequence", data.sequence, {1, 1 << 20});
    if (rule.takes("shape")) read_shape(section, data.shape);
    if (rule.takes("classes")) data.classes = section.get<std::int64_t>("classes", data.classes, {1, 1 << 30});
    if (rule.takes("reconstruct")) data.reconstruct = section.get<bool>("reconstruct", false);
    const bool takes_arrays = rule.takes("inputs");
    if (takes_arrays) {
      if (const auto inputs = section.find("inputs", "a map of names and arrays", "x"); inputs && !inputs->is_null())
        data.input_arrays = read_arrays(*inputs);
    }
    if (rule.takes("targets")) read_targets(section, takes_arrays, data);
    if (rule.takes("class_names")) {
      if (const auto names = section.find("class_names", "a list of names, or the path of a file", "null"); names && !names->is_null())
        data.class_names = read_class_names(*names);
    }
    if (rule.takes("image")) read_image(section, data.image);
    if (rule.takes("augment")) read_augment(section, data.augment);
    read_loading(section, data, out_fit);
    const DataDefinition plain;
    if (data.cache == DataCache::disk && (data.input_arrays != plain.input_arrays || data.target_arrays != plain.target_arrays))
      section.find("cache")->fail("disk keeps the arrays x and y only; expected none or ram with inputs and targets of other names");
  });
  return data;
}

}  // namespace tenon::config
