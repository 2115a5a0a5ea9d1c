// SPDX-License-Identifier: Apache-2.0
// Training runs by the public headers only: load_definition, TrainingRun, load_model.
#include <doctest/doctest.h>
#include <tenon/tenon.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <variant>

#include "temporary_folder.h"

using namespace tenon;
using namespace tenon::test;

namespace {

constexpr const char* model_text = "name: line\ninput: {shape: [2]}\nlayers: [{dense: {units: 1, name: out}}]\n";
constexpr const char* train_text =
    "model: model.yaml\n"
    "data: {source: linear_regression, features: 2, train_count: 40, test_count: 20}\n"
    "loss: mse\n"
    "optimizer: {name: sgd, learning_rate: 0.1}\n"
    "batch_size: 10\n"
    "epochs: 2\n"
    "device: reference:0\n"
    "checkpoint: {directory: kept}\n"
    "resume: auto\n";

/// The two files in a folder; the path of train.yaml.
std::string write_files(const TemporaryFolder& folder) {
  folder.write("model.yaml", model_text);
  return folder.write("train.yaml", train_text);
}

const std::vector<ConfigOverride> search = {{"backends.search", std::string("[") + TENON_BACKEND_DIRECTORY + "]"}};

TrainingRun run_of(const std::string& file, std::vector<ConfigOverride> overrides = {}) {
  overrides.insert(overrides.end(), search.begin(), search.end());
  return TrainingRun::load(file, overrides);
}

}  // namespace

TEST_CASE_FIXTURE(InFolder, "training run: fit, evaluate and resume go on where a run without an interruption would be") {
  const std::string file = write_files(folder);
  TrainingRun whole = run_of(file, {{"epochs", "4"}, {"checkpoint", "null"}, {"resume", "never"}});
  const DataSplits data = whole.load_data();
  CHECK(data.train->size() == 40);
  CHECK(data.test->size() == 20);
  CHECK_FALSE(whole.resume().has_value());
  CHECK(whole.fit(data).size() == 4);
  const Logs expected = whole.evaluate(data);
  CHECK(expected[0].first == "loss");

  TrainingRun first = run_of(file);
  CHECK_FALSE(first.resume().has_value());  // `auto` without a checkpoint
  CHECK(first.fit(first.load_data()).size() == 2);
  CHECK(first.model().fit_end() == FitEnd::finished);

  TrainingRun second = run_of(file, {{"epochs", "4"}});
  const auto resumed = second.resume();
  REQUIRE(resumed.has_value());
  CHECK(resumed->position.epoch == 2);
  CHECK(std::filesystem::path(resumed->checkpoint).parent_path().filename() == "kept");
  CHECK(second.fit(second.load_data()).size() == 2);
  CHECK(second.evaluate(second.load_data()) == expected);

  CHECK_ERROR_CONTAINS("expected a checkpoint of seed 7, got seed 0", run_of(file, {{"seed", "7"}}).resume());
}

TEST_CASE_FIXTURE(InFolder, "training run: callbacks see the fit, and `stop` interrupts it") {
  TrainingRun run = run_of(write_files(folder));
  const DataSplits data = run.load_data();
  std::atomic<bool> stop = false;
  std::int64_t batches = 0;
  LambdaCallback counter({.batch_end = [&](std::int64_t, const Logs&) { stop = ++batches == 3; }});
  run.fit(data, {&counter}, &stop);
  CHECK(batches == 3);
  CHECK(run.model().fit_end() == FitEnd::interrupted);
  const std::string saved = run.save_interrupted();
  CHECK(std::filesystem::path(saved).lexically_relative(folder.file("kept")) == "interrupted.yaml");
  TrainingRun next = run_of(run.definition().file, {{"resume", saved}});
  const auto resumed = next.resume();
  REQUIRE(resumed.has_value());
  CHECK(resumed->position.batch == 3);
}

TEST_CASE_FIXTURE(InFolder, "load_model: the model of either file, with the weights of a checkpoint") {
  const std::string file = write_files(folder);
  TrainingRun run = run_of(file);
  const DataSplits data = run.load_data();
  run.fit(data);
  const auto [output, expected] = run.predict(data, 3);
  CHECK(output.shape() == Shape{3, 1});
  CHECK(expected.shape()[0] == 3);
  CHECK(run.predict(data, 1000).output.shape()[0] == 20);
  CHECK_ERROR("predict: expected a count of at least 1, got 0", run.predict(data, 0));

  const Tensor x = Tensor::of<float>({1, 2, 3, 4}, {2, 2});
  const std::vector<float> trained = run.model().predict(x).to_vector<float>();
  Model from_folder = load_model(file, folder.file("kept"), search);
  CHECK(from_folder.predict(x).to_vector<float>() == trained);
  Model untrained = load_model(file, "", search);
  CHECK(untrained.predict(x).to_vector<float>() != trained);
  const TrainDefinition bare = load_definition(folder.file("model.yaml"));
  CHECK_FALSE(bare.data.has_value());
  CHECK(bare.model.layers.size() == 1);
  CHECK(bare.loss.loss == Loss::mse);
  TrainingRun on_context(bare, run.context());
  on_context.load_weights(newest_checkpoint(folder.file("kept")));
  CHECK(on_context.model().predict(x).to_vector<float>() == trained);

  CHECK_ERROR("no weights: pass --checkpoint, or set checkpoint.directory in the YAML", on_context.load_weights());
  CHECK_ERROR_CONTAINS("train the model first", on_context.load_weights(folder.path()));
  CHECK_ERROR_CONTAINS("file not found", load_model(folder.file("none.yaml")));
}

TEST_CASE_FIXTURE(InFolder, "load_definition: a softmax at the end of a model.yaml chooses loss and metrics") {
  const std::string file = folder.write("model.yaml", "layers: [{dense: {units: 3, activation: softmax}}]\n");
  const TrainDefinition definition = load_definition(file, {{"layers.0.dense.units", "4"}});
  CHECK(std::get<layers::Dense>(definition.model.layers[0].kind).units == 4);
  CHECK(definition.loss.loss == Loss::sparse_categorical_crossentropy);
  CHECK(definition.metrics == std::vector<MetricDefinition>{Metric::accuracy});
  CHECK(definition.fit.batch_size == 32);
}
