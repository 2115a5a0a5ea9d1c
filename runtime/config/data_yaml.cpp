#include "config/data_yaml.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/yaml_reader.h"

namespace tenon::config {
namespace {

const std::vector<Choice<DataSource>> sources = {{"mnist", DataSource::mnist},
                                                 {"fashion_mnist", DataSource::fashion_mnist},
                                                 {"idx", DataSource::idx},
                                                 {"cifar10", DataSource::cifar10},
                                                 {"npz", DataSource::npz},
                                                 {"images", DataSource::images},
                                                 {"csv", DataSource::csv},
                                                 {"tokens", DataSource::tokens},
                                                 {"digits", DataSource::digits},
                                                 {"linear_regression", DataSource::linear_regression},
                                                 {"cifar_like", DataSource::cifar_like},
                                                 {"signals", DataSource::signals},
                                                 {"ptb_like", DataSource::ptb_like},
                                                 {"markov", DataSource::markov},
                                                 {"random", DataSource::random}};
const std::vector<Choice<Normalize>> normalizations = {{"unit", Normalize::unit},
                                                       {"gorgonia", Normalize::gorgonia},
                                                       {"standard", Normalize::standard},
                                                       {"per_channel", Normalize::per_channel},
                                                       {"none", Normalize::none}};
const std::vector<Choice<Cache>> caches = {{"none", Cache::none}, {"ram", Cache::ram}, {"disk", Cache::disk}};
const std::vector<Choice<CsvOptions::Target>> targets = {
    {"detect", CsvOptions::Target::detect}, {"classes", CsvOptions::Target::classes}, {"values", CsvOptions::Target::values}};

constexpr std::int64_t max_count = std::int64_t{1} << 40;  // far beyond any use, far below overflow
constexpr Range<double> below_one{.lowest = 0, .highest = 1, .below_highest = true};

bool is_text(DataSource source) {
  return source == DataSource::tokens || source == DataSource::ptb_like || source == DataSource::markov;
}
bool has_images(DataSource source) {
  return !is_text(source) && source != DataSource::csv && source != DataSource::linear_regression;
}
bool may_lack_test_part(DataSource source) {
  return source == DataSource::npz || source == DataSource::images || source == DataSource::csv || source == DataSource::tokens;
}

std::vector<double> read_numbers(const Value& value, Range<double> range) {
  if (value.is_scalar()) return {value.as_number(range)};
  std::vector<double> numbers;
  for (const Value& item : value.items("a number or a list of numbers")) numbers.push_back(item.as_number(range));
  if (numbers.empty()) value.fail_expected("a number or a list of numbers");
  return numbers;
}

void read_normalize(Section& section, DataDefinition& data) {
  // Images are bytes and need scaling; generated regression data needs none; for arrays and tables it depends on the dtype.
  if (data.source == DataSource::linear_regression) data.normalize = Normalize::none;
  if (data.source == DataSource::npz || data.source == DataSource::csv) data.normalize.reset();
  if (is_text(data.source)) {
    data.normalize = Normalize::none;
    return;
  }
  const std::optional<Value> value = section.find("normalize");
  if (!value) return;
  if (!value->is_map()) {
    data.normalize = value->as_choice(normalizations);
    return;
  }
  Section given = *section.child("normalize");
  data.normalize = Normalize::given;
  data.mean = read_numbers(given.require_value("mean", "a number, or one per channel"), {});
  data.deviation = read_numbers(given.require_value("std", "a number above 0, or one per channel"), {.lowest = 0, .above_lowest = true});
  if (data.mean.size() != data.deviation.size()) {
    given.find("std")->fail(fmt::format("expected as many values as 'mean' has ({}), got {}", data.mean.size(), data.deviation.size()));
  }
}

void read_csv(Section& section, CsvOptions& csv) {
  if (const auto delimiter = section.find("delimiter")) {
    const std::string text = delimiter->as_text("one character, or tab");
    if (text != "tab" && (text.size() != 1 || text == "\"" || text == "\n")) delimiter->fail_expected("one character, or tab");
    csv.delimiter = text == "tab" ? '\t' : text[0];
  }
  if (const auto header = section.find("header"); header && !header->is_null()) {
    csv.header = header->as_bool() ? CsvOptions::Header::present : CsvOptions::Header::absent;
  }
  if (const auto label = section.find("label"); label && !label->is_null()) csv.label = label->as_text("the name or index of a column");
  csv.target = section.choice("target", csv.target, targets);
}

void read_augment(Section& section, AugmentOptions& augment) {
  std::optional<Section> changes = section.child("augment");
  if (!changes) return;
  if (std::optional<Section> crop = changes->child("crop")) {
    augment.crop_padding = crop->require<std::int64_t>("padding", "pixels around the image", {1, 1 << 16});
  }
  if (const auto flip = changes->find("flip"); flip && !flip->is_null()) {
    for (const std::string& direction : flip->as_names()) {
      if (direction != "horizontal" && direction != "vertical") flip->fail_expected("horizontal, vertical or [horizontal, vertical]");
      (direction == "horizontal" ? augment.flip_horizontal : augment.flip_vertical) = true;
    }
  }
}

void read_loading(Section& section, DataDefinition& data) {
  data.workers = section.get<int>("workers", data.workers, {0, 256});
  const std::optional<Value> prefetch = section.find("prefetch");
  if (prefetch) {
    data.prefetch = prefetch->as<int>({1, 1024});
    if (data.workers == 0) prefetch->fail("has no effect with workers: 0; remove it, or set workers to at least 1");
  }
  data.pinned = section.get<bool>("pinned", data.pinned);
  data.shuffle_buffer = section.get_optional<std::int64_t>("shuffle_buffer", {1, max_count}).value_or(0);
  data.cache = section.choice("cache", data.cache, caches);
  if (const auto folder = section.find("cache_directory"); folder && !folder->is_null()) {
    data.cache_directory = folder->as_path();
    if (data.cache != Cache::disk) folder->fail("has no effect without cache: disk");
  }
}

}  // namespace

DataDefinition read_data(Section& top) {
  const Value value = top.require_value("data", "a map with the key 'source'");
  if (!value.is_map()) value.fail_expected("a map with the key 'source'");
  Section section = *top.child("data");
  DataDefinition data;
  data.where = value.mark().str();
  data.source = section.require_value("source", "the name of a data set").as_choice(sources);
  if (const auto directory = section.find("directory"); directory && !directory->is_null()) data.directory = directory->as_path();
  read_normalize(section, data);
  data.train_count = section.get_optional<std::int64_t>("train_count", {1, max_count}).value_or(0);
  data.test_count = section.get_optional<std::int64_t>("test_count", {1, max_count}).value_or(0);
  data.seed = section.get_optional<std::uint64_t>("seed");
  data.validation_split = section.get<double>("validation_split", 0, below_one);
  if (may_lack_test_part(data.source)) data.test_split = section.get<double>("test_split", 0, below_one);
  if (data.source == DataSource::linear_regression) {
    data.features = section.get<std::int64_t>("features", data.features, {1, 1 << 20});
    data.noise = section.get<double>("noise", data.noise, {.lowest = 0});
  }
  if (data.source == DataSource::csv) read_csv(section, data.csv);
  if (is_text(data.source)) {
    if (data.source == DataSource::markov) {
      data.symbols = section.get<std::int64_t>("symbols", data.symbols, {2, 4096});
    } else {
      data.vocabulary = section.get<std::int64_t>("vocabulary", data.vocabulary, {3, std::int64_t{1} << 31});
    }
    data.sequence = section.get<std::int64_t>("sequence", data.sequence, {1, 1 << 20});
  }
  if (data.source == DataSource::random) {
    if (const auto shape = section.find("shape")) {
      data.shape.clear();
      for (const Value& size : shape->items("a list of 1 to 7 sizes")) data.shape.push_back(size.as_integer({1, 1 << 20}));
      if (data.shape.empty() || data.shape.size() > 7) shape->fail_expected("a list of 1 to 7 sizes");
    }
    data.classes = section.get<std::int64_t>("classes", data.classes, {1, 1 << 30});
  }
  if (has_images(data.source)) {
    data.reconstruct = section.get<bool>("reconstruct", false);
    read_augment(section, data.augment);
  }
  read_loading(section, data);
  return data;
}

const char* name_of(DataSource source) {
  return word_of(sources, source);
}
const char* name_of(Normalize normalize) {
  return normalize == Normalize::given ? "mean and std" : word_of(normalizations, normalize);
}
const char* name_of(Cache cache) {
  return word_of(caches, cache);
}

}  // namespace tenon::config
