// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include "config/model_yaml.h"
#include "config_testing.h"
#include "rooted.h"
#include "temporary_folder.h"

using namespace tenon;
using namespace tenon::config;
using namespace tenon::test;
using Optimizer = OptimizerDefinition;

namespace {

Optimizer optimizer(const std::string& text) {
  return train_of("optimizer: " + text + "\n").optimizer;
}

}  // namespace

TEST_CASE("train: options of losses, groups of parameters, and what is trainable") {
  const auto read = [](const std::string& text) {
    return train_from_text("model: {layers: [{dense: {units: 2}}]}\ndata: {source: digits}\n" + text, "train.yaml", "/base");
  };
  const TrainDefinition t = read(
      "loss: {name: categorical_crossentropy, label_smoothing: 0.1, class_weights: [1, 0.5]}\n"
      "trainable: [dense*, '*/bias']\n"
      "optimizer: {name: sgd, groups: [{match: '*/bias', weight_decay: 0}, {match: dense*, learning_rate_factor: 0.1}]}\n");
  CHECK(t.loss.label_smoothing == 0.1);
  CHECK(t.loss.class_weights == std::vector<double>{1, 0.5});
  CHECK(t.trainable == std::vector<std::string>{"dense*", "*/bias"});
  REQUIRE(t.optimizer.groups.size() == 2);
  CHECK(t.optimizer.groups[0].match == "*/bias");
  CHECK(t.optimizer.groups[0].weight_decay == 0);
  CHECK(t.optimizer.groups[1].learning_rate_factor == 0.1);
  CHECK_FALSE(t.optimizer.groups[1].weight_decay.has_value());
  CHECK(read("loss: {name: bce, positive_weight: 4}\ntrainable: head/*\n").loss.positive_weight == 4);
  CHECK(read("loss: mse\ntrainable: head/*\n").trainable == std::vector<std::string>{"head/*"});
  CHECK_ERROR_CONTAINS("key 'match' is missing", read("loss: mse\noptimizer: {name: sgd, groups: [{weight_decay: 0}]}\n"));
  CHECK_ERROR_CONTAINS("expected a number in [0, 1), got '1'", read("loss: {name: bce, label_smoothing: 1}\n"));
}

TEST_CASE("train: every key reaches its field") {
  const TrainDefinition t = train_from_text(R"(
model:
  name: inline
  layers: [flatten, {dense: {units: 10}}]
data: {source: idx, directory: data/x, normalize: gorgonia, train_count: 600, test_count: 100, seed: 9, validation_split: 0.1}
loss: {name: sparse_categorical_crossentropy, from_logits: true, ignore_index: -1}
optimizer: {name: adamw, learning_rate: 3e-4, beta1: 0.8, beta2: 0.99, epsilon: 1e-6, weight_decay: 0.1}
metrics: [accuracy]
batch_size: 100
epochs: 10
shuffle: false
verbose: 2
log_style: gorgonia
steps_per_epoch: 50
checkpoint: {directory: runs/ck, every_epochs: 2, keep: 3}
resume: auto
output: runs/out
device: cpu:0
seed: 42
deterministic: true
precision: tf32
fallback: warn
check_numerics: all
backends: {use: [openblas], options: {openblas: {threads: 2}}}
)",
                                            "train.yaml", "/base");
  CHECK(t.model.name == "inline");
  CHECK(t.model.layers.size() == 2);
  CHECK(t.data->source == DataSource::idx);
  CHECK(t.data->directory == rooted("/base/data/x"));
  CHECK(t.data->normalize == Normalize::gorgonia);
  CHECK(t.data->train_count == 600);
  CHECK(t.data->test_count == 100);
  CHECK(t.data->seed == 9);
  CHECK(t.data->validation_split == 0.1);
  CHECK(t.loss.loss == Loss::sparse_categorical_crossentropy);
  CHECK(t.loss.from_logits);
  CHECK(t.loss.ignore_index == -1);
  CHECK(t.optimizer.kind == Optimizer::Kind::adamw);
  CHECK(t.optimizer.learning_rate == 3e-4);
  CHECK(t.optimizer.beta1 == 0.8);
  CHECK(t.optimizer.beta2 == 0.99);
  CHECK(t.optimizer.epsilon == 1e-6);
  CHECK(t.optimizer.weight_decay == 0.1);
  CHECK(t.metrics == std::vector<MetricDefinition>{Metric::accuracy});
  CHECK(t.fit.batch_size == 100);
  CHECK(t.fit.epochs == 10);
  CHECK_FALSE(t.fit.shuffle);
  CHECK(t.verbose == 2);
  CHECK(t.log_style == LogStyle::gorgonia);
  CHECK(t.fit.steps_per_epoch == 50);
  REQUIRE(t.checkpoint.has_value());
  CHECK(t.checkpoint->directory == rooted("/base/runs/ck"));
  CHECK(t.checkpoint->every_epochs == 2);
  CHECK(t.checkpoint->keep == 3);
  CHECK(t.resume.kind == ResumeDefinition::Kind::automatic);
  CHECK(t.output == rooted("/base/runs/out"));
  CHECK(t.config.device == "cpu:0");
  CHECK(t.config.seed == 42);
  CHECK(t.config.deterministic);
  CHECK(t.config.precision == Precision::tf32);
  CHECK(t.config.fallback == Fallback::warn);
  CHECK(t.config.check_numerics == CheckNumerics::all);
  CHECK(t.config.backends.options.at("openblas").at("threads") == "2");
  CHECK(t.config.origin_of("seed") == "train.yaml:19:7");
}

TEST_CASE("train: the defaults are those of Keras") {
  const TrainDefinition t = train_of("");
  CHECK(t.fit.batch_size == 32);
  CHECK(t.fit.epochs == 1);
  CHECK(t.fit.shuffle);
  CHECK(t.verbose == 1);
  CHECK(t.log_style == LogStyle::keras);
  CHECK(t.metrics.empty());
  CHECK(t.fit.steps_per_epoch == 0);
  CHECK_FALSE(t.checkpoint.has_value());
  CHECK(t.resume.kind == ResumeDefinition::Kind::never);
  CHECK(t.output == "");
  CHECK(t.data->normalize == Normalize::unit);
  CHECK_FALSE(t.data->seed.has_value());
  CHECK(t.data->train_count == 0);
  CHECK_FALSE(t.loss.from_logits);
  CHECK_FALSE(t.loss.ignore_index.has_value());
  CHECK(t.optimizer.kind == Optimizer::Kind::adam);
  CHECK(t.config.origins.empty());
  const TrainDefinition line =
      train_from_text("model: {layers: [relu]}\ndata: {source: linear_regression}\nloss: mse\ncheckpoint: null\noutput: null\n");
  CHECK(line.data->normalize == Normalize::none);
  CHECK(line.loss.loss == Loss::mse);
  CHECK_FALSE(line.checkpoint.has_value());
}

TEST_CASE("train: optimizers have the defaults of their presets") {
  struct Row {
    const char* text;
    double learning_rate, epsilon, rho, weight_decay;
    bool outside;
  };
  // rho is read for rmsprop, weight_decay for adamw; fields without a meaning keep their defaults.
  const Row rows[] = {
      {"adam", 0.001, 1e-8, 0.999, 0, false},
      {"{name: adam, preset: torch}", 0.001, 1e-8, 0.999, 0, false},
      {"{name: adam, preset: keras}", 0.001, 1e-7, 0.999, 0, false},
      {"adamw", 0.001, 1e-8, 0.999, 0.01, false},
      {"{name: adamw, preset: keras}", 0.001, 1e-7, 0.999, 0.004, false},
      {"sgd", 0.01, 1e-8, 0.999, 0, false},
      {"rmsprop", 0.001, 1e-8, 0.999, 0, false},
      {"{name: rmsprop, preset: gorgonia}", 0.001, 1e-8, 0.999, 0, false},
      {"{name: rmsprop, preset: keras}", 0.001, 1e-7, 0.9, 0, false},
      {"{name: rmsprop, preset: torch}", 0.01, 1e-8, 0.99, 0, true},
      {"amsgrad", 0.001, 1e-8, 0.999, 0, false},
      {"{name: amsgrad, preset: keras}", 0.001, 1e-7, 0.999, 0, false},
      {"adagrad", 0.01, 1e-10, 0.999, 0, false},
      {"{name: adagrad, preset: torch}", 0.01, 1e-10, 0.999, 0, false},
      {"{name: adagrad, preset: keras}", 0.001, 1e-7, 0.999, 0, false},
      {"adadelta", 1, 1e-6, 0.9, 0, false},
      {"{name: adadelta, preset: keras}", 0.001, 1e-7, 0.95, 0, false},
      {"{name: rmsprop, preset: torch, rho: 0.5, learning_rate: 2}", 2, 1e-8, 0.5, 0, true},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const Optimizer o = optimizer(row.text);
    CHECK(o.learning_rate == row.learning_rate);
    CHECK(o.epsilon == row.epsilon);
    CHECK(o.rho == row.rho);
    CHECK(o.weight_decay == row.weight_decay);
    CHECK(o.epsilon_outside_root == row.outside);
    CHECK(o.beta1 == 0.9);
    CHECK(o.beta2 == 0.999);
    CHECK(o.momentum == 0);
  }
  CHECK(optimizer("adagrad").initial_accumulator == 0);
  CHECK(optimizer("{name: adagrad, preset: keras}").initial_accumulator == 0.1);
  CHECK(optimizer("{name: adagrad, initial_accumulator: 0.5, weight_decay: 0.1}").initial_accumulator == 0.5);
  CHECK_FALSE(optimizer("adam").amsgrad);
  CHECK(optimizer("{name: adam, amsgrad: true}").amsgrad);
  CHECK(optimizer("{name: adamw, amsgrad: true}").amsgrad);
  const Optimizer sgd = optimizer("{name: sgd, momentum: 0.9, nesterov: true, weight_decay: 1e-4}");
  CHECK(sgd.momentum == 0.9);
  CHECK(sgd.nesterov);
  CHECK(sgd.weight_decay == 1e-4);
}

TEST_CASE("train: resume takes a path or a keyword") {
  CHECK(train_of("resume: runs/ck/epoch-3\n").resume.path == rooted("/base/runs/ck/epoch-3"));
  CHECK(train_of("resume: never\n").resume.kind == ResumeDefinition::Kind::never);
}

TEST_CASE("train: overrides are applied before types are checked, and their errors name them") {
  CHECK(train_of("epochs: 5\n", {{"epochs", "2"}}).fit.epochs == 2);
  CHECK(train_of("", {{"data.train_count", "100"}}).data->train_count == 100);
  CHECK(train_of("", {{"optimizer.name", "sgd"}, {"optimizer.momentum", "0.5"}}).optimizer.momentum == 0.5);
  CHECK(train_of("", {{"model.dtype", "float64"}}).model.dtype == DType::f64);
  const TrainDefinition t = train_of("device: cpu:1\n", {{"device", "cpu:2"}});
  CHECK(t.config.device == "cpu:2");
  CHECK(t.config.origins.at("device").kind == Origin::Kind::command_line);
  CHECK(t.config.origin_of("device") == "--set device=cpu:2");
  CHECK(train_error("", {{"epochs", "abc"}}) == "--set epochs=abc: key 'epochs': expected an integer in [1, 1099511627776], got 'abc'");
  CHECK(train_error("", {{"epohcs", "3"}}) == "--set epohcs=3: unknown key 'epohcs'; did you mean 'epochs'?");
  CHECK(train_of("", {{"data.directory", "/a: b", "--data /a: b", true}}).data->directory == rooted("/a: b"));
}

TEST_CASE_FIXTURE(InFolder, "train: a model in a separate file is found next to train.yaml, and overrides reach into it") {
  folder.write("model.yaml", "name: m\nlayers:\n  - dense: {units: 3}\n");
  const std::string file = folder.write("train.yaml", "model: model.yaml\ndata: {source: digits}\nloss: sparse_categorical_crossentropy\n");
  const TrainDefinition t = load_definition(file, {{"model.layers.0.dense.units", "7"}});
  CHECK(t.file == file);
  CHECK(t.model.file == folder.file("model.yaml"));
  CHECK(std::get<layers::Dense>(t.model.layers[0].kind).units == 7);
  CHECK_ERROR("--set model.dtype=f16: key 'dtype': expected one of float32, float64, f32, f64, got 'f16'",
              load_definition(file, {{"model.dtype", "f16"}}));
  folder.write("model.yaml", "name: m\nlayers:\n  - dense: {unit: 3}\n");
  CHECK_ERROR(folder.file("model.yaml") + ":3:13: layers[0] dense: unknown key 'unit'; did you mean 'units'?", load_definition(file));
  CHECK_ERROR("--set model=" + folder.file("other.yaml") + ": key 'model': " + folder.file("other.yaml") + ": file not found",
              load_definition(file, {{"model", folder.file("other.yaml")}}));
}

TEST_CASE("train: the examples of docs/yaml.md are valid, and its stated defaults are right") {
  std::ifstream stream(std::string(TENON_SOURCE_DIRECTORY) + "/docs/yaml.md");
  std::vector<std::string> examples;
  bool inside = false;
  for (std::string line; std::getline(stream, line);) {
    if (line == "```yaml")
      examples.emplace_back();
    else if (inside && line != "```")
      examples.back() += line + "\n";
    inside = line == "```yaml" || (inside && line != "```");
  }
  REQUIRE(examples.size() == 3);
  const TemporaryFolder folder;
  folder.write("model.yaml", examples[0]);
  const TrainDefinition t = load_definition(folder.write("train.yaml", examples[1]));
  CHECK(t.model.layers.size() == 5);
  const TrainDefinition plain = train_of("");
  CHECK(t.optimizer.learning_rate == plain.optimizer.learning_rate);
  CHECK(t.optimizer.beta1 == plain.optimizer.beta1);
  CHECK(t.optimizer.beta2 == plain.optimizer.beta2);
  CHECK(t.optimizer.epsilon == plain.optimizer.epsilon);
  CHECK(t.fit.batch_size == plain.fit.batch_size);
  CHECK(t.fit.epochs == plain.fit.epochs);
  CHECK(t.fit.shuffle == plain.fit.shuffle);
  CHECK(t.verbose == plain.verbose);
  CHECK(t.log_style == plain.log_style);
  CHECK(t.fit.workers == plain.fit.workers);
  CHECK(t.fit.prefetch == plain.fit.prefetch);
  CHECK(t.data->normalize == plain.data->normalize);
  CHECK(t.resume.kind == plain.resume.kind);
  CHECK(t.output == plain.output);
}

TEST_CASE("train: metrics take their keys and must fit the loss") {
  const TrainDefinition t = train_of("metrics: [acc, {name: top_k, k: 3}, top_k, perplexity]\n");
  REQUIRE(t.metrics.size() == 4);
  CHECK(t.metrics[0] == MetricDefinition(Metric::accuracy));
  CHECK(t.metrics[1].name() == "top_3_accuracy");
  CHECK(t.metrics[2].name() == "top_5_accuracy");
  CHECK(t.metrics[3].metric == Metric::perplexity);
  CHECK(train_error("metrics: [{name: top_k, k: 0}]\n") ==
        "train.yaml:4:28: metrics[0]: key 'k': expected an integer in [1, 1099511627776], got '0'");
  CHECK(train_error("metrics: [{name: mae}]\n") ==
        "train.yaml:4:11: key 'metrics[0]': 'mae' cannot be used with the loss sparse_categorical_crossentropy; accuracy, "
        "sparse_categorical_accuracy, top_k, perplexity can");
}

TEST_CASE("train: every learning rate schedule is readable") {
  const Optimizer cosine =
      optimizer("{name: sgd, learning_rate: {schedule: cosine, initial: 0.2, per: epoch, length: 9, minimum: 0.01, warmup: 2}}");
  CHECK(cosine.learning_rate == 0.2);
  CHECK(cosine.schedule.kind == Schedule::Kind::cosine);
  CHECK(cosine.schedule.per == Schedule::Per::epoch);
  CHECK(cosine.schedule.length == 9);
  CHECK(cosine.schedule.minimum == 0.01);
  CHECK(cosine.schedule.warmup == 2);
  const Optimizer step = optimizer("{name: adam, learning_rate: {schedule: step, factor: 0.5, every: 100}}");
  CHECK(step.learning_rate == 0.001);
  CHECK(step.schedule.factor == 0.5);
  CHECK(step.schedule.every == 100);
  const Optimizer inv = optimizer("{name: sgd, learning_rate: {schedule: inv, gamma: 0.001, power: 0.5}}");
  CHECK(inv.schedule.gamma == 0.001);
  CHECK(inv.schedule.power == 0.5);
  CHECK(train_error("optimizer: {name: sgd, learning_rate: {schedule: cosin}}\n") ==
        "train.yaml:4:50: optimizer: learning_rate: key 'schedule': expected one of constant, step, exponential, cosine, inv, one_cycle, "
        "cyclic, on_plateau, "
        "got "
        "'cosin'; did you mean 'cosine'?");
  CHECK(contains(train_error("optimizer: {name: sgd, learning_rate: {schedule: step, length: 3}}\n"), "unknown key 'length'"));

  const TrainDefinition plateau = train_of("optimizer: {name: sgd, learning_rate: {schedule: on_plateau, patience: 2, factor: 0.5}}\n");
  REQUIRE(plateau.callbacks.size() == 1);
  const auto& options = std::get<ReduceOnPlateau::Options>(plateau.callbacks[0]);
  CHECK(options.patience == 2);
  CHECK(options.factor == 0.5);
  CHECK(options.monitor.min_delta == 1e-4);
}

TEST_CASE("train: every callback is readable and rejects the keys of others") {
  const TrainDefinition t = train_of(R"(
accumulate: 4
callbacks:
  - checkpoint: {directory: best, best: true, monitor: val_accuracy, mode: max}
  - early_stopping: {patience: 3, min_delta: 0.001, restore_best: true}
  - reduce_on_plateau: {cooldown: 1, minimum: 1e-5}
  - learning_rate: {schedule: exponential, factor: 0.9, initial: 0.3}
  - terminate_on_nan
  - csv: {file: log.csv}
  - json: {file: log.jsonl}
  - tensorboard: {directory: events}
  - curves: {file: curves.html, title: A title}
)");
  CHECK(t.fit.accumulate == 4);
  REQUIRE(t.callbacks.size() == 9);
  const auto& checkpoint = std::get<Checkpoint::Options>(t.callbacks[0]);
  CHECK(checkpoint.directory == rooted("/base/best"));
  CHECK(checkpoint.best);
  CHECK(checkpoint.monitor.name == "val_accuracy");
  CHECK(checkpoint.monitor.mode == Monitor::Mode::max);
  const auto& stopping = std::get<EarlyStopping::Options>(t.callbacks[1]);
  CHECK(stopping.patience == 3);
  CHECK(stopping.monitor.min_delta == 0.001);
  CHECK(stopping.restore_best);
  CHECK(std::get<ReduceOnPlateau::Options>(t.callbacks[2]).cooldown == 1);
  CHECK(std::get<LearningRateSchedule::Options>(t.callbacks[3]).initial == 0.3);
  CHECK(std::holds_alternative<TerminateOnNan::Options>(t.callbacks[4]));
  CHECK(std::get<CsvLog::Options>(t.callbacks[5]).file == rooted("/base/log.csv"));
  CHECK(std::get<JsonLines::Options>(t.callbacks[6]).file == rooted("/base/log.jsonl"));
  CHECK(std::get<TensorBoard::Options>(t.callbacks[7]).directory == rooted("/base/events"));
  CHECK(std::get<Curves::Options>(t.callbacks[8]).title == "A title");
  CHECK(contains(train_error("callbacks: [early_stoping]\n"), "did you mean 'early_stopping'?"));
  CHECK(train_error("callbacks: [{csv: {fil: x}}]\n") == "train.yaml:4:20: callbacks[0] csv: unknown key 'fil'; did you mean 'file'?");
  CHECK(contains(train_error("callbacks: [{early_stopping: {patiance: 3}}]\n"), "unknown key 'patiance'; did you mean 'patience'?"));
}

TEST_CASE("train: clipping and regularisation keys reach their fields") {
  const Optimizer clipped = optimizer("{name: sgd, clip_value: 0.5, clip_norm: 1, clip_global_norm: 2}");
  CHECK(clipped.clip.value == 0.5);
  CHECK(clipped.clip.norm == 1);
  CHECK(clipped.clip.global_norm == 2);
  CHECK_FALSE(optimizer("sgd").clip.value);
  CHECK(train_error("optimizer: {name: sgd, clip_norm: 0}\n") ==
        "train.yaml:4:35: optimizer: key 'clip_norm': expected a number above 0, got '0'");
  const ModelDefinition model = model_from_text("layers: [{dense: {units: 2, kernel_regularizer: {l1: 0.1, l2: 0.2}}}]");
  CHECK(std::get<layers::Dense>(model.layers[0].kind).weights.kernel_l1 == 0.1);
  CHECK(std::get<layers::Dense>(model.layers[0].kind).weights.kernel_l2 == 0.2);
}

TEST_CASE("train: the models of the repository are valid") {
  const std::string models = std::string(TENON_SOURCE_DIRECTORY) + "/models/";
  const TrainDefinition mnist = load_definition(models + "mnist_mlp/train.yaml");
  REQUIRE(mnist.model.layers.size() == 4);
  CHECK(std::get<layers::Dense>(mnist.model.layers[1].kind).units == 300);
  CHECK(std::get<layers::Dense>(mnist.model.layers[2].kind).units == 100);
  CHECK(std::get<layers::Dense>(mnist.model.layers[3].kind).units == 10);
  CHECK(std::get<layers::Dense>(mnist.model.layers[3].kind).activation == Activation::softmax);
  for (std::size_t i = 1; i < 4; ++i) {
    const layers::Weights& weights = std::get<layers::Dense>(mnist.model.layers[i].kind).weights;
    CHECK_FALSE(weights.bias);
    CHECK(weights.kernel_initializer->kind == Initializer::Kind::glorot_normal);
  }
  CHECK(mnist.data->source == DataSource::mnist);
  CHECK(mnist.fit.batch_size == 100);
  CHECK(mnist.fit.epochs == 10);
  CHECK(mnist.optimizer.kind == Optimizer::Kind::rmsprop);
  CHECK(mnist.optimizer.learning_rate == 0.001);
  CHECK(mnist.optimizer.rho == 0.999);
  CHECK(mnist.optimizer.epsilon == 1e-8);

  const TrainDefinition fashion = load_definition(models + "fashion_mnist/train.yaml");
  REQUIRE(fashion.model.layers.size() == 3);
  CHECK(std::get<layers::Dense>(fashion.model.layers[1].kind).units == 128);
  CHECK(std::get<layers::Dense>(fashion.model.layers[1].kind).weights.kernel_initializer->kind == Initializer::Kind::glorot_uniform);
  CHECK(fashion.optimizer.kind == Optimizer::Kind::adam);
  CHECK(fashion.fit.batch_size == 32);
  CHECK(fashion.fit.epochs == 5);

  const TrainDefinition line = load_definition(models + "linear_regression/train.yaml");
  CHECK(line.loss.loss == Loss::mse);
  CHECK(std::get<layers::Dense>(line.model.layers.at(0).kind).units == 1);
  CHECK(line.optimizer.kind == Optimizer::Kind::sgd);
  CHECK(line.optimizer.learning_rate == 0.05);
  CHECK(line.data->features == 3);
  CHECK(line.data->noise == 0.1);
}

TEST_CASE("train: losses of outputs by name, with targets, weights and metrics") {
  const auto read = [](const std::string& text, const std::vector<ConfigOverride>& overrides = {}) {
    return train_from_text("model: {onnx: net.onnx}\ndata: {source: digits}\n" + text, "train.yaml", "/base", overrides);
  };
  const TrainDefinition t = read(
      "losses:\n"
      "  start: {name: sparse_categorical_crossentropy, from_logits: true, weight: 0.5, metrics: [accuracy, {name: top_k, k: 2}]}\n"
      "  end: mse\n",
      {{"losses.end.target", "last"}});
  REQUIRE(t.losses.size() == 2);
  CHECK(t.losses[0].output == "start");
  CHECK(t.losses[0].loss.from_logits);
  CHECK(t.losses[0].weight == 0.5);
  CHECK(t.losses[0].target.empty());
  CHECK(t.losses[0].metrics == std::vector<MetricDefinition>{Metric::accuracy, {Metric::top_k, 2}});
  CHECK(t.losses[1].loss.loss == Loss::mse);
  CHECK(t.losses[1].target == "last");
  CHECK(t.losses[1].weight == 1);
  CHECK(read("losses: {name: mse}\n").losses[0].output == "name");  // an output may have any name
  const auto message = [&](const std::string& text) { return message_of([&] { read(text); }); };
  CHECK(message("loss: mse\nlosses: {a: mse}\n") == "train.yaml:4:9: key 'losses': expected one of loss and losses, got both");
  CHECK(
      contains(message("metrics: mae\nlosses: {a: mse}\n"), "key 'metrics': expected the metrics of each output in losses.OUTPUT.metrics"));
  CHECK(contains(message("losses: {a: mze}\n"), "key 'losses.a': expected one of sparse_categorical_crossentropy"));
  CHECK(contains(message("losses: {a: mze}\n"), "got 'mze'; did you mean 'mse'?"));
  CHECK(contains(message("losses: {a: {name: mse, wieght: 1}}\n"), "unknown key 'wieght'; did you mean 'weight'?"));
  CHECK(contains(message("losses: {a: {name: mse, weight: -1}}\n"), "key 'weight': expected a number of at least 0, got '-1'"));
  CHECK(contains(message("losses: {a: {name: mse, metrics: perplexity}}\n"), "'perplexity' cannot be used with the loss mse"));
  CHECK(contains(message("losses: {a: {weight: 1}}\n"), "key 'name' is missing"));
  CHECK(contains(message("losses: {}\n"), "expected a map of outputs and their losses"));
  CHECK(contains(message("losses: [mse]\n"), "expected a map of outputs and their losses"));
}

TEST_CASE("train: inputs and targets of npz are arrays of other names") {
  const auto data_of = [](const std::string& keys) {
    return *train_from_text("model: {layers: [relu]}\nloss: mse\ndata: {source: npz, " + keys + "}\n", "train.yaml").data;
  };
  const DataDefinition plain = data_of("directory: a.npz");
  CHECK(plain.input_arrays == ArrayNames{{"x", "x"}});
  CHECK(plain.target_arrays == ArrayNames{{"y", "y"}});
  const DataDefinition named = data_of("inputs: {ids: words, mask: m}, targets: [start, end]");
  CHECK(named.input_arrays == ArrayNames{{"ids", "words"}, {"mask", "m"}});
  CHECK(named.target_arrays == ArrayNames{{"start", "start"}, {"end", "end"}});
  CHECK(data_of("targets: one_hot").targets == Targets::one_hot);
  const auto message = [&](const std::string& keys) { return message_of([&] { data_of(keys); }); };
  CHECK(contains(message("inputs: ids"), "key 'data.inputs': expected a map of names and of the arrays that they are read from"));
  CHECK(contains(message("targets: {}"), "key 'data.targets': expected a map of names and of the arrays that they are read from"));
  CHECK(contains(message("targets: hot"), "key 'data.targets': expected one of as_given, one_hot"));
  CHECK(contains(message("inputs: [a, b], cache: disk"), "key 'data.cache': disk keeps the arrays x and y only"));
  CHECK_ERROR_CONTAINS("unknown key 'data.inputs'",
                       train_from_text("model: {layers: [relu]}\nloss: mse\ndata: {source: digits, inputs: [a]}\n", "train.yaml"));
}

TEST_CASE("train: devices divide batches, with or without the optimizer's state, or layers") {
  const auto parallel_of = [](const std::string& keys) {
    return train_of("parallel: {devices: ['cpu:0', 'cpu:1'], transport: null, " + keys + "}\n").parallel;
  };
  CHECK(parallel_of("mode: data").mode == ParallelOptions::Mode::data);
  CHECK_FALSE(parallel_of("mode: data, shard: none").shard_optimizer);
  CHECK(parallel_of("mode: data, shard: optimizer").shard_optimizer);
  CHECK(parallel_of("mode: pipeline").mode == ParallelOptions::Mode::pipeline);
  CHECK(parallel_of("mode: pipeline").micro_batches == 4);
  CHECK(parallel_of("mode: pipeline, micro_batches: 8").micro_batches == 8);
  CHECK_ERROR_CONTAINS("key 'parallel.micro_batches': expected an integer in [1, ", parallel_of("mode: pipeline, micro_batches: 0"));
}

TEST_CASE("train: huber takes a delta, ctc a blank") {
  const auto loss_of = [](const std::string& loss) {
    return train_from_text("model: {layers: [relu]}\ndata: {source: linear_regression}\nloss: " + loss + "\n", "train.yaml").loss;
  };
  CHECK(loss_of("huber").delta == 1);
  CHECK(loss_of("{name: huber, delta: 0.25}").delta == 0.25);
  CHECK(loss_of("negative_log_likelihood").loss == Loss::nll);
  CHECK_ERROR("train.yaml:3:28: loss: key 'delta': expected a number above 0, got '0'", loss_of("{name: huber, delta: 0}"));
  CHECK_ERROR_CONTAINS("unknown key 'delta'", loss_of("{name: mae, delta: 2}"));
  CHECK(loss_of("ctc").blank == 0);
  CHECK(loss_of("{name: ctc, blank: 3, from_logits: true}").blank == 3);
  CHECK_ERROR_CONTAINS("unknown key 'label_smoothing'", loss_of("{name: ctc, label_smoothing: 0.1}"));
  CHECK_ERROR_CONTAINS("neg_mean_prod, ctc, got 'custom'", loss_of("custom"));
}

TEST_CASE("train: an override reaches into a block that the file gives as a name") {
  const auto with = [](const std::string& more, const std::string& key, const std::string& value) {
    return train_of(more, {{key, value}});
  };
  CHECK(with("optimizer: sgd\n", "optimizer.learning_rate", "0.5").optimizer.kind == Optimizer::Kind::sgd);
  CHECK(with("optimizer: sgd\n", "optimizer.learning_rate", "0.5").optimizer.learning_rate == 0.5);
  CHECK(with("", "optimizer.learning_rate", "0.5").optimizer.kind == Optimizer::Kind::adam);
  CHECK(with("optimizer: {name: sgd, learning_rate: 0.3}\n", "optimizer.learning_rate.schedule", "cosine").optimizer.learning_rate == 0.3);
  const TrainDefinition scores = with("", "loss.from_logits", "true");
  CHECK(scores.loss.loss == Loss::sparse_categorical_crossentropy);
  CHECK(scores.loss.from_logits);
  CHECK(with("metrics: [top_k]\n", "metrics.0.k", "3").metrics[0].k == 3);
  const auto model = [](const std::string& layer, const std::string& key) {
    return train_from_text("model: {layers: [" + layer + "]}\ndata: {source: digits}\nloss: mse\n", "t", "", {{key, "2"}}).model.layers[0];
  };
  const LayerDefinition relu = model("{dense: {units: 3, activation: leaky_relu}}", "model.layers.0.dense.activation.alpha");
  CHECK(std::get<layers::Dense>(relu.kind).activation == layers::Activation(Activation::leaky_relu, 2));
  const LayerDefinition kernel =
      model("{dense: {units: 3, kernel_initializer: he_normal}}", "model.layers.0.dense.kernel_initializer.gain");
  CHECK(std::get<layers::Dense>(kernel.kind).weights.kernel_initializer->kind == Initializer::Kind::he_normal);
  CHECK(std::get<layers::Dense>(kernel.kind).weights.kernel_initializer->gain == 2);
}
