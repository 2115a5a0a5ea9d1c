// SPDX-License-Identifier: Apache-2.0
// The data section of train.yaml: every source, scalings, splits, caches, and errors.
#include <doctest/doctest.h>
#include <tenon/npy.h>

#include <chrono>
#include <cmath>
#include <filesystem>

#include "config/model_yaml.h"
#include "data_testing.h"
#include "rooted.h"
#include "temporary_folder.h"
#include "train/datasets/datasets.h"

using namespace tenon;
using namespace tenon::test;

namespace {

TrainDefinition train_of(const std::string& data, const std::string& more = "") {
  const std::string text = "model: {layers: [softmax]}\nloss: mse\ndata: {" + data + "}\n" + more;
  return config::train_from_text(text, "t.yaml", "/base");
}

DataDefinition definition_of(const std::string& data, const std::string& more = "") {
  return *train_of(data, more).data;
}

std::string yaml_refusal_of(const std::string& data, const std::string& more = "") {
  return message_of([&] { definition_of(data, more); });
}

DataSplits make(const std::string& data, const std::string& directory = "", std::uint64_t seed = 5) {
  return train::make_data(definition_of(data), directory, seed);
}

std::string refusal_of(const std::string& data, const std::string& directory = "") {
  return message_of([&] { make(data, directory); });
}

/// Every element of x, in order.
std::vector<float> all_x(const Dataset& data) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(data.size()));
  for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<std::int64_t>(i);
  return values_of<float>(gather(data, indices).x);
}

struct Moments {
  double mean, deviation;
};
/// Mean and deviation of every `step`-th value from `begin` on, in runs of `run`.
Moments moments_of(const std::vector<float>& values, std::size_t begin, std::size_t run, std::size_t step) {
  double sum = 0, squares = 0, count = 0;
  for (std::size_t at = begin; at < values.size(); at += step) {
    for (std::size_t i = at; i < at + run; ++i) {
      sum += static_cast<double>(values[i]);
      squares += static_cast<double>(values[i]) * static_cast<double>(values[i]);
      ++count;
    }
  }
  const double mean = sum / count;
  return {mean, std::sqrt(squares / count - mean * mean)};
}

const std::string iris = "length,width,species\n5.1,3.5,setosa\n6.2,2.9,versicolor\n4.9,3.0,setosa\n5.0,3.1,setosa\n";

}  // namespace

TEST_CASE("splits: every generated source gives both parts") {
  for (const char* source : {"digits", "cifar_like", "random, shape: [3, 8, 8], classes: 4", "linear_regression, features: 7, noise: 0",
                             "ptb_like, vocabulary: 50, sequence: 6", "markov, symbols: 5, sequence: 6"}) {
    CAPTURE(source);
    const DataSplits data = make(std::string("source: ") + source + ", train_count: 30, test_count: 20");
    CHECK(data.train->size() == 30);
    CHECK(data.test->size() == 20);
    CHECK(data.validation == nullptr);
  }
  CHECK(make("source: random, shape: [3, 8, 8], train_count: 3").train->x_type().shape == Shape{3, 8, 8});
  CHECK(make("source: linear_regression, features: 7, train_count: 3").train->x_type().shape == Shape{7});
  CHECK(make("source: ptb_like, sequence: 6, train_count: 3").train->y_type().shape == Shape{6});
  CHECK(make("source: markov, sequence: 6, train_count: 3").train->y_type().shape == Shape{6});
}

TEST_CASE_FIXTURE(InFolder, "splits: every classification source has one-hot targets on request, and class names where they are known") {
  folder.write("iris.csv", iris);
  for (const char* source : {"digits", "cifar_like", "signals", "random, shape: [2], classes: 10"}) {
    CAPTURE(source);
    const DataSplits data = make(std::string("source: ") + source + ", train_count: 3, test_count: 2, targets: one_hot");
    CHECK(data.train->y_type().dtype == DType::f32);
    CHECK(data.train->y_type().shape == Shape{10});
    CHECK(data.test->y_type().shape == Shape{10});
  }
  const DataSplits table = make("source: csv, test_split: 0.5, targets: soft_one_hot", folder.file("iris.csv"));
  CHECK(values_of<float>(gather(*table.train, {1}).y) == std::vector<float>{0.1F, 0.9F});
  CHECK(table.preprocessing.class_names == std::vector<std::string>{"setosa", "versicolor"});
  CHECK(make("source: digits, train_count: 3").preprocessing.class_names[3] == "3");
  folder.write("names.txt", std::string("no\r\nyes\n"));
  CHECK(
      make("source: random, shape: [2], classes: 2, train_count: 3, class_names: " + folder.file("names.txt")).preprocessing.class_names ==
      std::vector<std::string>{"no", "yes"});
  CHECK(refusal_of("source: random, shape: [2], classes: 3, train_count: 3, class_names: [no, yes]") ==
        "data: class_names: expected 3 names, one for each class, got 2");
  folder.write("numbers.csv", "1,0.5\n2,0.25\n");
  CHECK(refusal_of("source: csv, test_split: 0.5, targets: one_hot", folder.file("numbers.csv")) ==
        "data: targets: one_hot: expected one class label per sample, numbers.csv has targets f32(1,1); remove the key");
}

TEST_CASE("splits: `image` gives arrays of images another size and other channels") {
  CHECK(make("source: digits, train_count: 3, test_count: 2, image: {resize: [14, 7]}").test->x_type().shape == Shape{14, 7});
  CHECK(make("source: digits, train_count: 3, image: {crop: 20, channels: rgb}").train->x_type().shape == Shape{3, 20, 20});
  CHECK(make("source: cifar_like, train_count: 3, image: {channels: grayscale}").train->x_type().shape == Shape{1, 32, 32});
  CHECK(contains(refusal_of("source: random, shape: [2], classes: 2, train_count: 3, image: {resize: 4}"),
                 "data: image: expected images of bytes, (H,W) or (C,H,W), "));
  CHECK(contains(yaml_refusal_of("source: digits, image: {resize: [1, 2, 3]}"),
                 "key 'data.image.resize': expected a size or [height, width]"));
}

TEST_CASE("splits: CIFAR-10, arrays, tables and text are selected by name") {
  const TemporaryFolder cifar, arrays, tables, text;
  for (const char* file :
       {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"})
    cifar.write(file, std::string(3073, '\1'));
  CHECK(make("source: cifar10", cifar.path()).train->x_type().shape == Shape{3, 32, 32});
  CHECK(all_x(*make("source: cifar10", cifar.path()).test)[0] == doctest::Approx(1.0 / 255));

  const Tensor x = Tensor::of<std::uint8_t>({0, 51, 102, 255}, {4, 1}), y = Tensor::of<std::int64_t>({0, 1, 1, 0}, {4});
  save_npz(arrays.file("a.npz"), {{"x_train", x}, {"y_train", y}, {"x_test", x}, {"y_test", y}});
  CHECK(all_x(*make("source: npz", arrays.file("a.npz")).train)[3] == 1.0f);  // bytes are scaled
  CHECK(all_x(*make("source: npz, normalize: none", arrays.file("a.npz")).test)[3] == 255.0f);

  tables.write("train.csv", iris);
  tables.write("test.csv", "length,width,species\n1,2,versicolor\n");
  const DataSplits table = make("source: csv", tables.path());
  CHECK(table.train->x_type().shape == Shape{2});
  CHECK(all_x(*table.train)[1] == 3.5f);  // numbers are not
  CHECK(values_of<std::int64_t>(gather(*table.test, {0}).y) == std::vector<std::int64_t>{1});

  text.write("ptb.train.txt", "a b\na c\n");
  text.write("ptb.test.txt", "c d\n");
  const DataSplits tokens = make("source: tokens, sequence: 2, vocabulary: 5", text.path());
  CHECK(values_of<std::int64_t>(gather(*tokens.train, {0, 1}).x) == std::vector<std::int64_t>{2, 3, 1, 2});
  CHECK(values_of<std::int64_t>(gather(*tokens.test, {0}).y) == std::vector<std::int64_t>{0, 1});
}

TEST_CASE_FIXTURE(InFolder, "splits: a source without a test split gives a part of its samples on request") {
  const std::string path = folder.write("iris.csv", iris);
  CHECK(refusal_of("source: csv", path) == "data: " + path + " has no test part; data.test_split: 0.1 takes the last tenth of it");
  const DataSplits data = make("source: csv, test_split: 0.25, validation_split: 0.34", path);
  CHECK(data.train->size() == 1);
  CHECK(data.validation->size() == 2);
  CHECK(data.test->size() == 1);
  CHECK(all_x(*data.test)[0] == 5.0f);
  CHECK(refusal_of("source: csv, test_split: 0.9", path) == "data: test_split 0.9 of 4 samples leaves one part empty");
  folder.write("train.csv", iris);
  folder.write("test.csv", iris);
  CHECK(refusal_of("source: csv, test_split: 0.5", folder.path()) ==
        "data: test_split 0.5: " + folder.path() + " has a test part of its own; remove test_split");
  folder.write("test.csv", "length,height,species\n1,2,setosa\n");
  CHECK(refusal_of("source: csv", folder.path()) == folder.file("test.csv") + ": expected the columns of " + folder.file("train.csv") +
                                                        ": length, width and the label species; got length, height and species");
  folder.write("test.csv", "length,width,species\n1,2,virginica\n");
  CHECK(refusal_of("source: csv", folder.path()) ==
        folder.file("test.csv") + ":2:5: column 'species': expected a class of setosa, versicolor, got 'virginica'");
}

TEST_CASE("splits: standard and per_channel scale the training set to mean 0 and deviation 1") {
  const std::vector<float> standard = all_x(*make("source: cifar_like, normalize: standard, train_count: 50").train);
  CHECK(moments_of(standard, 0, standard.size(), standard.size()).mean == doctest::Approx(0).epsilon(1e-4));
  CHECK(moments_of(standard, 0, standard.size(), standard.size()).deviation == doctest::Approx(1).epsilon(1e-4));
  const std::vector<float> channels = all_x(*make("source: cifar_like, normalize: per_channel, train_count: 50").train);
  for (std::size_t c = 0; c < 3; ++c) {
    CHECK(moments_of(channels, 1024 * c, 1024, 3072).mean == doctest::Approx(0).epsilon(1e-4));
    CHECK(moments_of(channels, 1024 * c, 1024, 3072).deviation == doctest::Approx(1).epsilon(1e-4));
  }
  const TemporaryFolder folder;
  const std::vector<float> table = all_x(
      *make("source: csv, normalize: per_channel, test_split: 0.25", folder.write("c.csv", "1,10,0\n3,10,1\n5,10,0\n9,10,1\n")).train);
  CHECK(table[0] == doctest::Approx(-std::sqrt(1.5)));
  CHECK(table[2] == doctest::Approx(0));
  CHECK(table[1] == 0.0f);  // a constant column
}

TEST_CASE("splits: mean and std may be given, for all or for each channel") {
  const std::vector<float> plain = all_x(*make("source: cifar_like, train_count: 2").train);
  const std::vector<float> given =
      all_x(*make("source: cifar_like, train_count: 2, normalize: {mean: [0.4914, 0.4822, 0.4465], std: [0.2470, 0.2435, 0.2616]}").train);
  CHECK(given[0] == doctest::Approx((plain[0] - 0.4914f) / 0.2470f).epsilon(1e-5));
  CHECK(given[1024] == doctest::Approx((plain[1024] - 0.4822f) / 0.2435f).epsilon(1e-5));
  const std::vector<float> same = all_x(*make("source: digits, train_count: 2, normalize: {mean: 0.1307, std: 0.3081}").train);
  CHECK(same[0] == doctest::Approx((all_x(*make("source: digits, train_count: 2").train)[0] - 0.1307f) / 0.3081f).epsilon(1e-5));
  CHECK(refusal_of("source: cifar_like, train_count: 2, normalize: {mean: [0, 0], std: [1, 1]}") ==
        "data: normalize: mean and std: textures train holds u8(2,3,32,32), expected samples whose first axis is 2, the number of means");
  CHECK(refusal_of("source: digits, train_count: 2, normalize: per_channel") ==
        "data: normalize: per_channel: digits train holds u8(2,28,28), expected samples (C,H,W) or (columns); use 'standard' for one "
        "scaling of all values");
  CHECK(contains(refusal_of("source: linear_regression, normalize: unit"), "expected bytes (u8)"));
}

TEST_CASE("splits: training is augmented with black padding; validation and test are not") {
  const DataSplits data = make(
      "source: cifar_like, train_count: 40, test_count: 4, validation_split: 0.25, normalize: {mean: 0.5, std: 0.5}, "
      "augment: {crop: {padding: 8}, flip: [horizontal, vertical]}");
  CHECK(data.train->size() == 30);
  for (const auto& part : {data.validation, data.test}) CHECK(equal(gather_augmented(*part, {0, 1}, 1).x, gather(*part, {0, 1}).x));
  CHECK_FALSE(equal(gather_augmented(*data.train, {0, 1}, 1).x, gather(*data.train, {0, 1}).x));
  CHECK_FALSE(equal(gather_augmented(*data.train, {0, 1}, 1).x, gather_augmented(*data.train, {0, 1}, 2).x));
  std::int64_t black = 0;
  for (std::uint64_t epoch = 0; epoch < 10; ++epoch) {
    for (const float value : values_of<float>(gather_augmented(*data.train, {3}, epoch).x)) black += value == -1.0f;
  }
  CHECK(black > 1000);
}

TEST_CASE("splits: a cache on disk is reused, and rewritten when a file changes") {
  const TemporaryFolder folder, cache;
  const std::string path = folder.write("iris.csv", iris);
  const std::string yaml =
      "source: csv, test_split: 0.25, validation_split: 0.34, normalize: per_channel, cache: disk, cache_directory: " + cache.path();
  const DataSplits plain = make("source: csv, test_split: 0.25, validation_split: 0.34, normalize: per_channel", path);
  const auto same = [](const Dataset& a, const Dataset& b) {
    std::vector<std::int64_t> indices;
    for (std::int64_t i = 0; i < a.size(); ++i) indices.push_back(i);
    const auto [ax, ay] = gather(a, indices);
    const auto [bx, by] = gather(b, indices);
    return equal(ax, bx) && equal(ay, by) && a.name() == b.name() && a.num_classes() == b.num_classes();
  };
  std::filesystem::file_time_type written;
  for (int run = 0; run < 2; ++run) {
    if (run == 1) {
      // In whole seconds: what each system and file system keeps.
      written = std::chrono::floor<std::chrono::seconds>(std::filesystem::file_time_type::clock::now()) - std::chrono::hours(1);
      for (const auto& entry : std::filesystem::directory_iterator(cache.path())) std::filesystem::last_write_time(entry, written);
    }
    const DataSplits cached = make(yaml, path);
    CHECK(same(*cached.train, *plain.train));
    CHECK(same(*cached.validation, *plain.validation));
    CHECK(same(*cached.test, *plain.test));
    CHECK(cache.count_files() == 3);
  }
  // A file is rewritten only if it cannot be used: the second run read what the first had written. A damaged one is rewritten.
  std::string damaged;
  for (const auto& entry : std::filesystem::directory_iterator(cache.path())) {
    CHECK(entry.last_write_time() == written);
    const std::string name = entry.path().filename().string();
    if (name.find("csv-train-") == 0) damaged = name;
  }
  const std::string whole = cache.read(damaged);
  std::string bytes = whole;
  bytes.back() ^= 1;
  cache.write(damaged, bytes);
  CHECK(same(*make(yaml, path).train, *plain.train));
  CHECK(cache.read(damaged) == whole);
  folder.write("iris.csv", "length,width,species\n9,9,setosa\n6,2,versicolor\n4,3,setosa\n5.0,3.1,setosa\n");
  CHECK_FALSE(same(*make(yaml, path).train, *plain.train));
  CHECK(cache.count_files() == 3);  // those of the old content were removed
  CHECK_NOTHROW(make("source: csv, test_split: 0.25, cache: disk, cache_directory: " + cache.path(), path));
  CHECK(cache.count_files() == 5);  // other options have separate files
  const std::string digits = "source: digits, train_count: 20, test_count: 5";
  const std::string on_disk = digits + ", cache: disk, cache_directory: " + cache.path();
  CHECK(same(*make(on_disk).train, *make(digits).train));
  CHECK(same(*make(on_disk, "", 6).train, *make(digits, "", 6).train));  // the seed is part of the key
  CHECK_FALSE(same(*make(on_disk, "", 6).train, *make(on_disk).train));
}

TEST_CASE("splits: padding from a disk cache is as black as without one") {
  const TemporaryFolder cache;
  const std::string yaml = "source: cifar_like, train_count: 4, test_count: 2, normalize: per_channel, augment: {crop: {padding: 9}}";
  const auto plain = make(yaml), made = make(yaml + ", cache: disk, cache_directory: " + cache.path()),
             mapped = make(yaml + ", cache: disk, cache_directory: " + cache.path()), kept = make(yaml + ", cache: ram");
  for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
    const Tensor expected = gather_augmented(*plain.train, {0, 1, 2, 3}, epoch).x;
    CHECK(equal(gather_augmented(*made.train, {0, 1, 2, 3}, epoch).x, expected));
    CHECK(equal(gather_augmented(*mapped.train, {0, 1, 2, 3}, epoch).x, expected));
    CHECK(equal(gather_augmented(*kept.train, {0, 1, 2, 3}, epoch).x, expected));
  }
}

TEST_CASE("splits: file sources need a path") {
  CHECK(refusal_of("source: mnist") ==
        "data: source mnist expects a folder with its IDX files; give --data DIR, or data.directory in the YAML");
  CHECK(
      refusal_of("source: cifar10") ==
      "data: source cifar10 expects a folder with data_batch_1..5.bin and test_batch.bin; give --data DIR, or data.directory in the YAML");
  CHECK(contains(refusal_of("source: csv"), "a .csv file, or a folder with train.csv and test.csv"));
}

TEST_CASE("data yaml: every key reaches its field") {
  const TrainDefinition run = train_of(
      "source: csv, directory: d, delimiter: tab, header: false, label: -1, target: classes, test_split: 0.2, seed: 4, "
      "workers: 3, prefetch: 5, pinned: true, shuffle_buffer: 100, cache: disk, cache_directory: c");
  const DataDefinition& csv = *run.data;
  CHECK(csv.directory == rooted("/base/d"));
  CHECK(csv.csv.delimiter == '\t');
  CHECK(csv.csv.header == CsvOptions::Header::absent);
  CHECK(csv.csv.label == "-1");
  CHECK(csv.csv.target == CsvOptions::Target::classes);
  CHECK(csv.test_split == 0.2);
  CHECK(run.fit.workers == 3);
  CHECK(run.fit.prefetch == 5);
  CHECK(run.fit.pinned);
  CHECK(run.fit.shuffle_buffer == 100);
  CHECK(csv.cache == DataCache::disk);
  CHECK(csv.cache_directory == rooted("/base/c"));
  CHECK_FALSE(csv.normalize.has_value());
  const DataDefinition images =
      definition_of("source: cifar10, normalize: {mean: [1, 2, 3], std: [4, 5, 6]}, augment: {crop: {padding: 4}, flip: horizontal}");
  CHECK(images.normalize == Normalize::given);
  CHECK(images.mean == std::vector<double>{1, 2, 3});
  CHECK(images.deviation == std::vector<double>{4, 5, 6});
  CHECK(images.augment.crop_padding == 4);
  CHECK(images.augment.flip_horizontal);
  CHECK_FALSE(images.augment.flip_vertical);
  const DataDefinition text = definition_of("source: tokens, vocabulary: 500, sequence: 20");
  CHECK(text.vocabulary == 500);
  CHECK(text.sequence == 20);
}

TEST_CASE("data yaml: meaningless keys are rejected with their position") {
  const auto known = [](const std::string& text, const char* key) {
    return text.find(std::string("unknown key 'data.") + key) != std::string::npos;
  };
  CHECK(known(yaml_refusal_of("source: csv, augment: {flip: horizontal}"), "augment"));
  CHECK(known(yaml_refusal_of("source: tokens, normalize: unit"), "normalize"));
  CHECK(known(yaml_refusal_of("source: mnist, test_split: 0.1"), "test_split"));
  CHECK(known(yaml_refusal_of("source: digits, delimiter: ','"), "delimiter"));
  CHECK(known(yaml_refusal_of("source: digits, vocabulary: 10"), "vocabulary"));
  CHECK(known(yaml_refusal_of("source: cifar10, augment: {rotate: 3}"), "augment.rotate"));
  CHECK(yaml_refusal_of("source: digits, workers: 0, prefetch: 3") ==
        "t.yaml:3:46: key 'data.prefetch': has no effect with workers: 0; remove it, or set workers to at least 1");
  CHECK(yaml_refusal_of("source: digits, cache: ram, cache_directory: x") ==
        "t.yaml:3:53: key 'data.cache_directory': has no effect without cache: disk");
  CHECK(yaml_refusal_of("source: digits, cache: tape") == "t.yaml:3:31: key 'data.cache': expected one of none, ram, disk, got 'tape'");
  CHECK(yaml_refusal_of("source: digits, shuffle_buffer: 5", "shuffle: false\n") ==
        "t.yaml:4:10: key 'shuffle': data.shuffle_buffer has no effect without shuffling");
  CHECK(contains(yaml_refusal_of("source: digits, shuffle_buffer: 0"), "expected an integer in [1, "));
  CHECK(yaml_refusal_of("source: digits, augment: {flip: sideways}") ==
        "t.yaml:3:40: key 'data.augment.flip': expected horizontal, vertical or [horizontal, vertical], got 'sideways'");
  CHECK(contains(yaml_refusal_of("source: digits, augment: {crop: {}}"), "key 'data.augment.crop.padding' is missing"));
  CHECK(yaml_refusal_of("source: cifar10, normalize: {mean: [1, 2], std: 1}") ==
        "t.yaml:3:56: key 'data.normalize.std': expected as many values as 'mean' has (2), got 1");
  CHECK(contains(yaml_refusal_of("source: cifar10, normalize: {mean: 1, std: 0}"), "expected a number above 0, got '0'"));
  CHECK(contains(yaml_refusal_of("source: csv, delimiter: ab"), "expected one character, or tab, got 'ab'"));
  CHECK(contains(yaml_refusal_of("source: random, shape: []"), "expected a list of 1 to 7 sizes"));
}

TEST_CASE("data: sample weights of a file or a column go to the samples of all parts, through every cache") {
  const TemporaryFolder folder;
  const auto numbers = [](std::int64_t n) {
    Tensor t = Tensor::empty(DType::f32, {n});
    for (std::int64_t i = 0; i < n; ++i) t.data<float>()[i] = static_cast<float>(i);
    return t;
  };
  const auto shown = [](const std::shared_ptr<const Dataset>& part) { return values_of<float>(part->sample_weights()); };
  save_npy(folder.path() + "/weights.npy", numbers(10));
  save_npy(folder.path() + "/x.npy", numbers(10).reshape({10, 1}));
  save_npy(folder.path() + "/y.npy", numbers(10));
  const std::string files = "sample_weight: " + folder.path() + "/weights.npy, ";
  const std::string own = "source: npz, test_split: 0.3, validation_split: 0.2, train_count: 5, " + files;
  for (const std::string& more :
       {std::string("cache: none"), std::string("cache: ram, normalize: standard"), std::string("reconstruct: true"),
        "cache: disk, cache_directory: " + folder.path(), "cache: disk, cache_directory: " + folder.path()}) {
    CAPTURE(more);
    const DataSplits parts = make(own + more, folder.path());
    CHECK(shown(parts.train) == std::vector<float>{0, 1, 2, 3});
    CHECK(shown(parts.validation) == std::vector<float>{4});
    CHECK(shown(parts.test) == std::vector<float>{7, 8, 9});
  }
  CHECK_FALSE(make("source: npz, test_split: 0.3, cache: disk, cache_directory: " + folder.path(), folder.path())
                  .train->sample_weights()
                  .defined());
  const DataSplits images = make("source: digits, train_count: 10, test_count: 2, augment: {flip: horizontal}, " + files + "cache: none");
  CHECK(shown(images.train).size() == 10);
  CHECK_FALSE(images.test->sample_weights().defined());
  CHECK(refusal_of("source: digits, train_count: 9, test_count: 2, " + files + "cache: none") ==
        "data: sample_weight " + folder.file("weights.npy") +
            ": digits train: expected one sample weight per sample, 9 numbers, got f32(10)");

  folder.write("train.csv", "a,w,label\n1,2,0\n3,4,1\n");
  folder.write("test.csv", "a,w,label\n1,5,0\n");
  const DataSplits table = make("source: csv, sample_weight: w", folder.path());
  CHECK(shown(table.train) == std::vector<float>{2, 4});
  CHECK(shown(table.test) == std::vector<float>{5});
  CHECK(table.train->x_type().shape == Shape{1});
  CHECK(definition_of("source: idx, sample_weight: w.npy").sample_weights == rooted("/base/w.npy"));
  CHECK(contains(yaml_refusal_of("source: markov, sample_weight: w.npy"), "unknown key 'data.sample_weight'"));
}
