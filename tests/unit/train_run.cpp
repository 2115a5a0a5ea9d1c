// SPDX-License-Identifier: Apache-2.0
// Training runs by the public headers only: load_definition, TrainingRun, load_model.
#include <doctest/doctest.h>
#include <tenon/tenon.h>

#include <filesystem>
#include <functional>
#include <stop_token>
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

TEST_CASE_FIXTURE(InFolder, "training run: a definition made in code, without a file and without data, names the data it would need") {
  TrainDefinition definition = load_definition(write_files(folder), search);
  definition.file.clear();
  definition.data.reset();
  ConfigSources sources;
  sources.layers = {definition.config};
  const TrainingRun run(definition, Context(resolve_config(sources)));
  CHECK_ERROR_CONTAINS("data: source mnist expects a folder with its IDX files", run.load_data());
}

TEST_CASE_FIXTURE(InFolder, "training run: another run of a model without a name is told by its digits") {
  const std::string file = write_files(folder);
  folder.write("model.yaml", "input: {shape: [2]}\nlayers: [{dense: {units: 1, name: out}}]\n");
  TrainingRun first = run_of(file);
  first.fit(first.load_data());
  TrainingRun second = run_of(file, {{"resume", "never"}});
  const std::string text = message_of([&] { second.fit(second.load_data()); });
  CHECK(text.find("of another run, ") != std::string::npos);
  CHECK(text.find("''") == std::string::npos);
}

TEST_CASE_FIXTURE(InFolder, "training run: the checkpoints of another run are resumed, overwritten on request, or refused") {
  const std::string file = write_files(folder);
  const auto train = [&](std::vector<ConfigOverride> overrides) {
    TrainingRun run = run_of(file, std::move(overrides));
    run.resume();
    return run.fit(run.load_data()).size();
  };
  CHECK(train({}) == 2);
  CHECK_ERROR_CONTAINS("of another run, 'line' ", train({{"resume", "never"}}));
  CHECK(train({{"resume", "never"}, {"checkpoint.overwrite", "true"}, {"epochs", "1"}}) == 1);
  CHECK(std::filesystem::path(newest_checkpoint(folder.file("kept"))) == std::filesystem::path(folder.file("kept/epoch-000001.yaml")));
  CHECK(train({}) == 1);

  // All damaged: no silent start at epoch 1.
  std::filesystem::resize_file(folder.file("kept/epoch-000002.safetensors"), 5);
  CHECK_ERROR_CONTAINS("every checkpoint is damaged", train({}));
  CHECK_ERROR_CONTAINS("every checkpoint is damaged", load_model(file, folder.file("kept"), search));

  // An interrupted run does not replace the checkpoint of another interrupted run.
  const std::string interrupted = folder.file("out");
  const std::vector<ConfigOverride> other = {{"checkpoint", "null"}, {"resume", "never"}, {"output", interrupted}};
  std::vector<std::string> saved;
  for (int i = 0; i < 2; ++i) {
    TrainingRun run = run_of(file, other);
    run.fit(run.load_data());
    saved.push_back(run.save_interrupted());
    CHECK(run.save_interrupted() == saved.back());
  }
  CHECK(saved[0] == interrupted + "/interrupted.yaml");
  CHECK(saved[1] != saved[0]);
}

TEST_CASE_FIXTURE(InFolder, "training run: it starts from the weights of a file, unless it is resumed") {
  const std::string file = write_files(folder);
  folder.write("map", "out/kernel: w transposed\nout/bias: b\n");
  save_npz(folder.file("w.npz"), {{"w", Tensor::of<float>({5, 6}, {1, 2})}, {"b", Tensor::of<float>({7}, {1})}});
  const std::string weights = "{file: " + folder.file("w.npz") + ", map: " + folder.file("map") + "}";
  TrainingRun run = run_of(file, {{"weights", weights}, {"optimizer.learning_rate", "0"}});
  const DataSplits data = run.load_data();
  run.fit(data);
  CHECK(run.model().parameters().get("out/kernel").to_host().to_vector<float>() == std::vector<float>{5, 6});

  TrainingRun resumed = run_of(file, {{"weights", folder.file("none.npz")}, {"optimizer.learning_rate", "0"}});
  CHECK_ERROR_CONTAINS("none.npz: file not found", resumed.load_initial_weights(data));
  REQUIRE(resumed.resume().has_value());
  CHECK_FALSE(resumed.load_initial_weights(data).has_value());
  CHECK_ERROR_CONTAINS("the path of a file of weights", run_of(file, {{"weights", "[a]"}}));
}

TEST_CASE_FIXTURE(InFolder, "training run: callbacks see the fit, and a stop request interrupts it") {
  TrainingRun run = run_of(write_files(folder));
  const DataSplits data = run.load_data();
  std::stop_source stop;
  std::int64_t batches = 0;
  LambdaCallback counter({.batch_end = [&](std::int64_t, const Logs&, const BatchResult&) {
    if (++batches == 3) stop.request_stop();
  }});
  run.fit(data, {&counter}, {.stop = stop.get_token()});
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
