// SPDX-License-Identifier: Apache-2.0
// Prediction: every shipped model, probabilities of every loss, files, and what a folder of checkpoints knows of its run.
#include <doctest/doctest.h>
#include <tenon/npy.h>
#include <tenon/tenon.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "temporary_folder.h"
#include "train/prediction_text.h"

using namespace tenon;
using namespace tenon::test;

namespace {

const std::vector<ConfigOverride> settings = {
    {"backends.search", std::string("[") + TENON_BACKEND_DIRECTORY + "]"}, {"device", "openblas:0"}, {"logging.level", "off"}};

std::vector<ConfigOverride> with_settings(std::vector<ConfigOverride> overrides) {
  overrides.insert(overrides.end(), settings.begin(), settings.end());
  return overrides;
}

TrainingRun run_of(const std::string& file, const std::vector<ConfigOverride>& overrides = {}) {
  return TrainingRun::load(file, with_settings(overrides));
}

/// A run on digits with `more` lines.
std::string digits_yaml(const std::string& more) {
  return "model: {input: {shape: [28, 28]}, layers: [flatten, {dense: {units: 10, activation: softmax}}]}\n"
         "loss: sparse_categorical_crossentropy\nepochs: 1\ncheckpoint: {directory: kept}\n" +
         more;
}

std::string pgm(std::int64_t height, std::int64_t width, const std::uint8_t* pixels) {
  return "P5 " + std::to_string(width) + " " + std::to_string(height) + " 255\n" +
         std::string(reinterpret_cast<const char*>(pixels), static_cast<std::size_t>(height * width));
}

std::int64_t commas(const std::string& text) {
  return std::count(text.begin(), text.end(), ',');
}

/// The model is one activation: its output for scores is known.
Model activation_model(const Context& context, Activation activation, const LossDefinition& loss) {
  Model model({layers::Dense{.units = 3, .activation = activation, .weights = {.bias = false}}});
  model.compile(context, {.loss = loss});
  model.build({3});
  model.parameters().set("dense/kernel", Tensor::of<float>({1, 0, 0, 0, 1, 0, 0, 0, 1}, {3, 3}));
  return model;
}

}  // namespace

TEST_CASE("predict: every shipped model predicts, whatever its outputs and targets are") {
  const std::filesystem::path models = std::filesystem::path(TENON_SOURCE_DIRECTORY) / "models";
  std::size_t found = 0;
  for (const auto& folder : std::filesystem::directory_iterator(models)) {
    const std::string file = (folder.path() / "train.yaml").string();
    if (!std::filesystem::exists(file)) continue;
    CAPTURE(file);
    std::vector<ConfigOverride> overrides = {{"data.train_count", "8"}, {"data.test_count", "4"}};
    const DataSource source = load_definition(file).data->source;
    if (source == DataSource::mnist || source == DataSource::fashion_mnist) overrides.push_back({"data.source", "digits"});
    const TemporaryFolder texts;
    if (source == DataSource::text) {
      std::string text;
      for (int i = 0; i < 400; ++i) text += "words and words\n";
      overrides.push_back({"data.directory", texts.write("text.txt", text)});
    }
    TrainingRun run = run_of(file, overrides);
    const DataSplits data = run.load_data();
    Predictor predictor(std::move(run));
    const std::vector<Prediction> all = predictor.predict_test(data, 3);
    REQUIRE(all.size() == 3);
    const train::PredictionText text{.top_k = 2};
    for (const Prediction& p : all) {
      CHECK_MESSAGE(contains(text.line(p), p.steps.defined()       ? "right"
                                           : p.output.count() > 10 ? "mean absolute error"
                                                                   : ", expected "),
                    text.line(p));
      CHECK(contains(text.json(p, 0), "\"expected\":"));
      CHECK(commas(text.csv(p)) == commas(text.csv_header(p)));
    }
    ++found;
  }
  CHECK(found >= 8);
}

TEST_CASE_FIXTURE(OnReference, "predict: scores become probabilities as the loss makes them") {
  const Tensor x = Tensor::of<float>({1, 2, 4}, {1, 3});
  const double total = std::exp(1.0) + std::exp(2.0) + std::exp(4.0);
  const auto check = [&](Activation activation, const LossDefinition& loss, const std::vector<double>& expected) {
    Model model = activation_model(context, activation, loss);
    const std::vector<float> got = model.predict_probabilities(x).to_vector<float>();
    REQUIRE(got.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) CHECK(got[i] == doctest::Approx(expected[i]).epsilon(1e-5));
  };
  const std::vector<double> softmax = {std::exp(1.0) / total, std::exp(2.0) / total, std::exp(4.0) / total};
  check(Activation::linear, {.loss = Loss::sparse_categorical_crossentropy, .from_logits = true}, softmax);
  check(Activation::linear, {.loss = Loss::categorical_crossentropy, .from_logits = true}, softmax);
  check(Activation::softmax, {.loss = Loss::sparse_categorical_crossentropy}, softmax);
  check(Activation::log_softmax, {.loss = Loss::nll}, softmax);
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  check(Activation::linear, {.loss = Loss::binary_crossentropy, .from_logits = true}, {sigmoid(1), sigmoid(2), sigmoid(4)});
  check(Activation::linear, {.loss = Loss::mse}, {1, 2, 4});
}

TEST_CASE_FIXTURE(OnReference, "predict: classes along the channels become the last axis") {
  Model model({layers::Conv1D{.filters = 2, .kernel_size = {1}}});
  model.compile(context, {.loss = {.loss = Loss::sparse_categorical_crossentropy, .from_logits = true}});
  const Tensor p = model.predict_probabilities(Tensor::zeros(DType::f32, {1, 3, 5}));
  CHECK(p.shape() == Shape{1, 5, 2});
  for (const float each : p.to_vector<float>()) CHECK(each == doctest::Approx(0.5));
}

TEST_CASE_FIXTURE(InFolder, "predict: images, arrays and folders, prepared as in training, by the folder of a run alone") {
  const std::string file =
      folder.write("train.yaml", digits_yaml("data: {source: digits, train_count: 200, test_count: 20, normalize: standard}\n"));
  TrainingRun run = run_of(file);
  const DataSplits data = run.load_data();
  run.fit(data);
  const TrainingRun::Predictions expected = run.predict(data, 4);
  const auto raw = generate_digits({.count = 20, .seed = 0, .split = Split::test, .scaling = Scaling::none()});
  const auto* pixels = raw->x().data<std::uint8_t>();
  std::filesystem::create_directory(folder.file("pictures"));
  for (int i = 0; i < 4; ++i) folder.write("pictures/" + std::to_string(i) + ".pgm", pgm(28, 28, pixels + i * 784));
  folder.write("pictures/notes.txt", std::string("left out"));
  save_npy(folder.file("four.npy"), raw->x().slice(0, 0, 4).to_host());

  Predictor predictor = Predictor::load(folder.file("kept"), "", settings);
  CHECK(predictor.preprocessing().scalings.size() == 1);
  CHECK(predictor.preprocessing().class_names[7] == "7");
  for (const std::string input : {"pictures", "four.npy"}) {
    const std::vector<Prediction> all = predictor.predict_files(folder.file(input));
    REQUIRE(all.size() == 4);
    for (std::int64_t i = 0; i < 4; ++i) {
      const Prediction& p = all[static_cast<std::size_t>(i)];
      CHECK(floats(p.output) == floats(expected.output.select(0, i)));
      CHECK(p.classes.size() == 10);
      CHECK(p.classes[0].score >= p.classes[1].score);
      CHECK(p.classes[0].name == std::to_string(p.classes[0].label));
      CHECK_FALSE(p.expected.defined());
    }
  }
  CHECK(contains(predictor.predict_files(folder.file("four.npy"))[2].input, "four.npy[2]"));
  CHECK(predictor.predict_files(folder.file("pictures/1.pgm")).size() == 1);
  // The same by the train.yaml, and by the YAML of a checkpoint.
  for (const char* name : {"train.yaml", "kept/epoch-000001.yaml"}) {
    const std::vector<float> got =
        floats(Predictor::load(folder.file(name), "", settings).predict_files(folder.file("pictures/0.pgm"))[0].output);
    for (std::size_t c = 0; c < 10; ++c)  // products of other sizes round differently
      CHECK(got[c] == doctest::Approx(floats(expected.output.select(0, 0))[c]).epsilon(1e-5));
  }

  const std::string wide = folder.write("wide.pgm", pgm(14, 56, pixels));
  CHECK_ERROR(
      wide +
          ": expected an image (1,28,28) (channels, height, width) for the model's samples (28,28), got (1,14,56); `image: {resize: "
          "[28, 28]}` in the block `data` resizes images (--set data.image.resize=[28,28])",
      predictor.predict_files(wide));
  CHECK(Predictor::load(folder.file("kept"), "", with_settings({{"data.image.resize", "[28,28]"}})).predict_files(wide).size() == 1);
  save_npy(folder.file("f.npy"), Tensor::zeros(DType::f32, {28, 28}));
  CHECK_ERROR_CONTAINS("f.npy: expected u8, as the training data has, got f32(1,28,28)", predictor.predict_files(folder.file("f.npy")));
  std::filesystem::create_directory(folder.file("empty"));
  CHECK_ERROR_CONTAINS("expected images (.jpg, .jpeg, .png, .pgm, .ppm or .npy), got a folder without any",
                       predictor.predict_files(folder.file("empty")));
  CHECK_ERROR_CONTAINS("expected a folder of checkpoints with run.json", Predictor::load(folder.file("empty")));
  std::filesystem::remove(folder.file("kept/run.json"));
  CHECK_ERROR_CONTAINS("expected a folder of checkpoints with run.json", Predictor::load(folder.file("kept")));
}

TEST_CASE_FIXTURE(InFolder, "predict: samples of different dtypes in a folder are batches of their own") {
  // Large enough that an i64 sample does not fit into the rest of a page behind a batch of f32.
  constexpr std::int64_t n = 1 << 20;
  const std::string file = folder.write("train.yaml", "model: {input: {shape: [" + std::to_string(n) +
                                                          "]}, layers: [{dense: {units: 1}}]}\nloss: mse\n"
                                                          "data: {source: npz, directory: none.npz, normalize: none}\n");
  std::filesystem::create_directory(folder.file("in"));
  save_npy(folder.file("in/a.npy"), Tensor::full(DType::f32, {n}, 1));
  save_npy(folder.file("in/b.npy"), Tensor::full(DType::i64, {n}, 1));
  save_npy(folder.file("in/c.npy"), Tensor::full(DType::f32, {n}, 1));
  Predictor predictor(run_of(file), Preprocessing{});
  const std::vector<Prediction> all = predictor.predict_files(folder.file("in"));
  REQUIRE(all.size() == 3);
  CHECK(contains(all[1].input, "b.npy"));
  CHECK(floats(all[0].output) == floats(all[2].output));
}

TEST_CASE_FIXTURE(InFolder, "predict: a source of images needs neither its folder nor labels, and names classes by its folders") {
  std::uint8_t dark[16] = {}, light[16];
  std::fill(std::begin(light), std::end(light), 255);
  for (const char* name : {"train/day", "train/night", "test/day", "test/night"})
    std::filesystem::create_directories(folder.file("data/" + std::string(name)));
  for (const char* split : {"train", "test"}) {
    folder.write("data/" + std::string(split) + "/day/a.pgm", pgm(4, 4, light));
    folder.write("data/" + std::string(split) + "/night/a.pgm", pgm(4, 4, dark));
  }
  const std::string file = folder.write(
      "train.yaml",
      std::string("model: {layers: [flatten, {dense: {units: 2}}]}\nloss: {name: sparse_categorical_crossentropy, from_logits: true}\n"
                  "optimizer: {name: sgd, learning_rate: 1}\nepochs: 20\ncheckpoint: {directory: kept}\n"
                  "data: {source: images, directory: data, image: {resize: [2, 2], channels: rgb}}\n"));
  TrainingRun run = run_of(file);
  run.fit(run.load_data());
  CHECK(run.model().sample_shape() == Shape{3, 2, 2});
  std::filesystem::rename(folder.file("data/train/day/a.pgm"), folder.file("photo.pgm"));
  std::filesystem::remove_all(folder.file("data"));
  const Prediction p = Predictor::load(folder.file("kept"), "", settings).predict_files(folder.file("photo.pgm"))[0];
  CHECK(p.classes[0].name == "day");
  const std::string line = train::PredictionText{.top_k = 2}.line(p);
  CHECK(contains(line, "photo.pgm: day ("));
  CHECK(contains(line, " %), night ("));
  CHECK(contains(train::PredictionText{}.json(p, 3), "\"top\":[{\"class\":0,\"name\":\"day\",\"probability\":"));
  CHECK(train::PredictionText{}.csv_header(p) == "input,class,name,probability");
}

TEST_CASE("predict: text quotes cells, summarises long outputs, and compares steps") {
  Prediction p;
  p.input = "a,b.png";
  p.output = Tensor::of<float>({0.25F, 0.75F}, {2});
  p.classes = {{1, "big \"cat\"", 0.75}, {0, "", 0.25}};
  p.expected = Tensor::of<float>({1, 0}, {2});
  const train::PredictionText two{.top_k = 5, .probabilities = false};
  CHECK(two.line(p) == "a,b.png: big \"cat\" (0.75), class 0 (0.25), expected class 0");
  CHECK(two.csv(p) == "\"a,b.png\",1,\"big \"\"cat\"\"\",0.75,0,,0.25,0");
  CHECK(two.csv_header(p) == "input,class,name,score,class_2,name_2,score_2,expected");
  p.input = "";
  CHECK(two.csv(p) == ",1,\"big \"\"cat\"\"\",0.75,0,,0.25,0");

  Prediction steps{.input = "1",
                   .output = Tensor::zeros(DType::f32, {3, 4}),
                   .expected = Tensor::of<std::int64_t>({1, 2, 3}, {3}),
                   .classes = {},
                   .steps = Tensor::of<std::int64_t>({1, 0, 3}, {3})};
  CHECK(train::PredictionText{}.line(steps) == "    1: classes 1 0 3, expected 1 2 3: 2 of 3 right");
  CHECK(train::PredictionText{}.csv(steps) == "1,1,0,3,1,2,3");
}
