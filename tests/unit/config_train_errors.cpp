// SPDX-License-Identifier: Apache-2.0
// The errors of train.yaml: their texts, places and remedies.
#include <filesystem>
#include <string>

#include <doctest/doctest.h>

#include "config/model_yaml.h"
#include "config_testing.h"
#include "temporary_folder.h"

using namespace tenon;
using namespace tenon::config;
using namespace tenon::test;

TEST_CASE("train: an error has file, line and key") {
  struct Row {
    const char* text;
    const char* message;
  };
  const Row rows[] = {
      {"epohcs: 3\n", "train.yaml:4:1: unknown key 'epohcs'; did you mean 'epochs'?"},
      {"precison: tf32\n", "train.yaml:4:1: unknown key 'precison'; did you mean 'precision'?"},
      {"memory: {limit: 3}\n", "train.yaml:4:10: unknown key 'memory.limit'; did you mean 'memory.limit_mb'?"},
      {"epochs: abc\n", "train.yaml:4:9: key 'epochs': expected an integer in [1, 1099511627776], got 'abc'"},
      {"epochs: 0\n", "train.yaml:4:9: key 'epochs': expected an integer in [1, 1099511627776], got '0'"},
      {"batch_size: 1.5\n", "train.yaml:4:13: key 'batch_size': expected an integer in [1, 1099511627776], got '1.5'"},
      {"verbose: 3\n", "train.yaml:4:10: key 'verbose': expected an integer in [0, 2], got '3'"},
      {"shuffle: maybe\n", "train.yaml:4:10: key 'shuffle': expected true or false, got 'maybe'"},
      {"log_style: kears\n", "train.yaml:4:12: key 'log_style': expected one of keras, gorgonia, got 'kears'; did you mean 'keras'?"},
      {"steps_per_epoch: -1\n", "train.yaml:4:18: key 'steps_per_epoch': expected an integer in [1, 1099511627776], got '-1'"},
      {"optimizer: adm\n",
       "train.yaml:4:12: key 'optimizer': expected one of adam, adamw, amsgrad, sgd, rmsprop, adagrad, adadelta, radam, nadam, got 'adm'; "
       "did you mean "
       "'adam'?"},
      {"optimizer: [adam]\n",
       "train.yaml:4:12: key 'optimizer': expected one of adam, adamw, amsgrad, sgd, rmsprop, adagrad, adadelta, radam, nadam, got a list"},
      {"optimizer: {nme: sgd}\n", "train.yaml:4:13: optimizer: unknown key 'nme'; did you mean 'name'?"},
      {"optimizer: {name: sgd, beta1: 0.9}\n",
       "train.yaml:4:24: optimizer: unknown key 'beta1'; known keys: name, preset, learning_rate, momentum, nesterov, weight_decay, "
       "groups, clip_value, clip_norm, clip_global_norm"},
      {"optimizer: {name: adam, learnig_rate: 1}\n",
       "train.yaml:4:25: optimizer: unknown key 'learnig_rate'; did you mean 'learning_rate'?"},
      {"optimizer: {name: adam, learning_rate: -1}\n",
       "train.yaml:4:40: optimizer: key 'learning_rate': expected a number of at least 0, got '-1'"},
      {"optimizer: {name: adam, beta1: 1}\n", "train.yaml:4:32: optimizer: key 'beta1': expected a number in [0, 1), got '1'"},
      {"optimizer: {name: adam, epsilon: 0}\n", "train.yaml:4:34: optimizer: key 'epsilon': expected a number above 0, got '0'"},
      {"optimizer: {name: sgd, nesterov: true}\n", "train.yaml:4:34: optimizer: key 'nesterov': requires a momentum above 0"},
      {"metrics: [acuracy]\n",
       "train.yaml:4:11: key 'metrics[0]': expected one of accuracy, acc, sparse_categorical_accuracy, categorical_accuracy, "
       "binary_accuracy, top_k, top_k_categorical_accuracy, perplexity, mse, mean_squared_error, mae, mean_absolute_error, got 'acuracy'; "
       "did you mean 'accuracy'?"},
      {"metrics: [accuracy, accuracy]\n", "train.yaml:4:21: key 'metrics[1]': 'accuracy' is given twice"},
      {"metrics: mse\n",
       "train.yaml:4:10: key 'metrics': 'mse' cannot be used with the loss sparse_categorical_crossentropy; "
       "accuracy, sparse_categorical_accuracy, top_k, perplexity can"},
      {"checkpoint: {every_epochs: 2}\n", "train.yaml:4:13: key 'checkpoint.directory' is missing; expected a folder"},
      {"checkpoint: {directory: x, every_epochs: 0}\n",
       "train.yaml:4:42: key 'checkpoint.every_epochs': expected an integer in [1, 1099511627776], got '0'"},
      {"checkpoint: runs\n", "train.yaml:4:13: key 'checkpoint': expected a map, got 'runs'"},
      {"checkpoint: {directory: x, kep: 2}\n", "train.yaml:4:28: unknown key 'checkpoint.kep'; did you mean 'checkpoint.keep'?"},
      {"resume: auto\n",
       "train.yaml:4:9: key 'resume': 'auto' resumes from the newest checkpoint in checkpoint.directory, which is not set"},
      {"resume: [x]\n",
       "train.yaml:4:9: key 'resume': expected never, auto or the path of a checkpoint or of a folder of checkpoints, got a list"},
      {"output: [x]\n", "train.yaml:4:9: key 'output': expected a path, got a list"},
      {"parallel: {mode: dta, devices: [cpu]}\n",
       "train.yaml:4:18: key 'parallel.mode': expected one of data, pipeline, got 'dta'; did you mean 'data'?"},
      {"parallel: {mode: data, devices: [cpu, gpu], shard: optimiser}\n",
       "train.yaml:4:52: key 'parallel.shard': expected one of none, optimizer, got 'optimiser'; did you mean 'optimizer'?"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(train_error(row.text) == row.message);
  }
  const auto whole = [](const std::string& text) { return message_of([&] { train_from_text(text, "train.yaml"); }); };
  const std::string rest = "loss: mse\nmodel: {layers: [relu]}\n";
  CHECK(whole(rest) == "train.yaml:1:1: key 'data' is missing; expected a map with the key 'source'");
  CHECK(whole("data: digits\n" + rest) == "train.yaml:1:7: key 'data': expected a map with the key 'source', got 'digits'");
  CHECK(whole("data: {}\n" + rest) == "train.yaml:1:7: key 'data.source' is missing; expected the name of a data set");
  CHECK(whole("data: {source: minst}\n" + rest) ==
        "train.yaml:1:16: key 'data.source': expected one of mnist, fashion_mnist, idx, cifar10, npz, images, csv, tokens, text, digits, "
        "linear_regression, cifar_like, signals, ptb_like, markov, random, got 'minst'; did you mean 'mnist'?");
  CHECK(whole("data: {source: mnist, validation_split: 1}\n" + rest) ==
        "train.yaml:1:41: key 'data.validation_split': expected a number in [0, 1), got '1'");
  CHECK(whole("data: {source: mnist, normalise: unit}\n" + rest) ==
        "train.yaml:1:23: unknown key 'data.normalise'; did you mean 'data.normalize'?");
  CHECK(whole("data: {source: mnist, noise: 1}\n" + rest)
            .rfind("train.yaml:1:23: unknown key 'data.noise'; known keys: source, directory, ", 0) == 0);
  CHECK(whole("data: {source: mnist}\nmodel: {layers: [relu]}\n") == "train.yaml:1:1: key 'loss' is missing; expected the name of a loss");
  CHECK(whole("data: {source: mnist}\nloss: {name: mse, from_logits: true}\nmodel: {layers: [relu]}\n") ==
        "train.yaml:2:19: loss: unknown key 'from_logits'; known keys: name");
  CHECK(whole("data: {source: mnist}\nloss: mse\n") ==
        "train.yaml:1:1: key 'model' is missing; expected the path of a model.yaml, or an inline model");
  CHECK(whole("data: {source: mnist}\nloss: mse\nmodel: [relu]\n") ==
        "train.yaml:3:8: key 'model': expected the path of a model.yaml, or an inline model, got a list");
  CHECK(whole("data: {source: mnist}\nloss: mse\nmodel: {layers: [], nme: x}\n") ==
        "train.yaml:3:17: model: key 'layers': is empty; expected at least one layer\n"
        "train.yaml:3:21: model: unknown key 'nme'; did you mean 'name'?");
  CHECK(whole("") == "train.yaml:1:1: the file is empty; expected keys and values");
}

TEST_CASE("train.yaml: folders of models and ONNX files have their remedy") {
  const TemporaryFolder folder;
  folder.write("train.yaml", "data: {source: digits}\n");
  CHECK_ERROR(folder.path() + ": expected a file, got a folder; did you mean " + folder.file("train.yaml") + "?",
              load_definition(folder.path()));
  const std::string net = folder.write("net.onnx", "a: \"\\S\"");
  const std::string remedy =
      net +
      ": expected a YAML file, got an ONNX model; name it in a YAML file next to it: `model: {onnx: net.onnx}`, with `data` to train it";
  CHECK_ERROR(remedy, load_definition(net));
  CHECK_ERROR(remedy, config::load_any(net));
  CHECK_ERROR(remedy, load_definition(folder.write("of_net.yaml", "model: net.onnx\ndata: {source: digits}\nloss: mse\n")));
  // As `config check` and a train.yaml that names the folder of its model get them.
  CHECK_ERROR_CONTAINS("; did you mean " + folder.file("train.yaml") + "?", config::load_any(folder.path()));
  const std::string of_folder = folder.write("of_folder.yaml", "model: .\ndata: {source: digits}\nloss: mse\n");
  folder.write("model.yaml", "layers: [flatten]\n");
  CHECK_ERROR_CONTAINS("expected a file, got a folder; did you mean ", load_definition(of_folder));
  CHECK_ERROR_CONTAINS("model.yaml?", load_definition(of_folder));
  std::filesystem::remove(folder.file("train.yaml"));
  CHECK_ERROR(folder.path() + ": expected a file, got a folder; did you mean " + folder.file("model.yaml") + "?",
              load_definition(folder.path()));
  CHECK_ERROR(folder.file("none.onnx") + ": file not found", load_definition(folder.file("none.onnx")));
  // A path that the system does not take is an error of this file, not one of the search for a remedy.
  const std::string too_long(300, 'a');
  CHECK(message_of([&] { load_definition(too_long); }).starts_with(too_long + ": "));
}

TEST_CASE("train: an error has every mistake of the file, and of the model that it names") {
  std::string rest = message_of([] {
    train_from_text(R"(batch_size: -3
model: {layers: [{dense: {units: x, actvation: relu}}, nope, {dropout: {p: 2}}]}
data: {source: digits, workers: many, flip: 1}
loss: mse_loss
optimizer: {name: sgd, learning_rate: -1, momentum: big}
callbacks: [{early_stopping: {patience: -1}}, csv]
memory: 3
epoch: 3
)",
                    "t.yaml");
  });
  const char* const lines[] = {
      "t.yaml:7:9: key 'memory': expected a map, got '3'",
      "t.yaml:4:7: key 'loss': expected one of ",
      "t.yaml:5:39: optimizer: key 'learning_rate': expected a number of at least 0, got '-1'",
      "t.yaml:5:53: optimizer: key 'momentum': expected a number in [0, 1), got 'big'",
      "t.yaml:6:41: callbacks[0] early_stopping: key 'patience': expected an integer in [0, 1099511627776], got '-1'",
      "t.yaml:6:47: callbacks[1] csv: key 'file' is missing; expected the path of a file",
      "t.yaml:1:13: key 'batch_size': expected an integer in [1, 1099511627776], got '-3'",
      "t.yaml:3:33: key 'data.workers': expected an integer in [0, 256], got 'many'",
      "t.yaml:3:39: unknown key 'data.flip'; known keys: source, directory, ",
      "t.yaml:8:1: unknown key 'epoch'; did you mean 'epochs'?",
      "t.yaml:2:34: layers[0] dense: key 'units': expected an integer in [1, 1073741824], got 'x'",
      "t.yaml:2:37: layers[0] dense: unknown key 'actvation'; did you mean 'activation'?",
      "t.yaml:2:56: key 'layers[1]': expected one of ",
      "t.yaml:2:76: layers[2] dropout: key 'p': expected a number in [0, 1), got '2'",
  };
  for (const char* const line : lines) {
    CAPTURE(rest);
    CHECK(rest.starts_with(line));
    rest.erase(0, rest.find('\n') == std::string::npos ? rest.size() : rest.find('\n') + 1);
  }
  CHECK(rest.empty());
}

TEST_CASE("train: negative rates, threads, batches and steps are refused") {
  CHECK(train_error("optimizer: {name: sgd, learning_rate: -0.1}\n") ==
        "train.yaml:4:39: optimizer: key 'learning_rate': expected a number of at least 0, got '-0.1'");
  CHECK(train_error("threads: -1\n") == "train.yaml:4:10: key 'threads': expected an integer in [0, 4096], got '-1'");
  for (const char* key : {"batch_size", "epochs", "accumulate", "steps_per_epoch"}) {
    CHECK(contains(train_error(std::string(key) + ": -1\n"), std::string("key '") + key + "': expected an integer in [1, "));
  }
}

TEST_CASE("train: every foreign name leads to one of ours in the place of its kind") {
  struct Row {
    std::string kind, foreign, ours;
  };
  const Row rows[] = {
#define TENON_FOREIGN_NAME(kind, foreign, ours) {kind, foreign, ours},
#include "yaml/foreign_names.def"
#undef TENON_FOREIGN_NAME
  };
  const auto file = [](const std::string& kind, const std::string& word) -> std::string {
    const std::string model = "model: {layers: [flatten]}\n", data = "data: {source: digits}\n", rest = data + "loss: mse\n";
    const auto layers = [&](const std::string& layer) { return "model: {layers: [" + layer + "]}\n" + rest; };
    if (kind == "layer") return layers(word);
    if (kind == "activation") return layers("{dense: {units: 1, activation: " + word + "}}");
    if (kind == "initializer") return layers("{dense: {units: 1, kernel_initializer: " + word + "}}");
    if (kind == "loss") return model + data + "loss: " + word + "\n";
    if (kind == "metric") return model + rest + "metrics: [" + word + "]\n";
    if (kind == "optimizer") return model + rest + "optimizer: " + word + "\n";
    if (kind == "schedule") return model + rest + "optimizer: {learning_rate: {schedule: " + word + "}}\n";
    if (kind == "callback") return model + rest + "callbacks: [" + word + "]\n";
    if (kind == "value of precision") return model + rest + "precision: " + word + "\n";
    if (kind == "value of dtype") return "model: {layers: [flatten], dtype: " + word + "}\n" + rest;
    if (kind == "key of train.yaml") return model + rest + word + ": 1\n";
    if (kind == "key of adam") return model + rest + "optimizer: {name: adam, " + word + ": 1}\n";
    return layers("{" + kind.substr(std::string("key of ").size()) + ": {" + word + ": 1}}");
  };
  for (const Row& row : rows) {
    CAPTURE(row.kind);
    CAPTURE(row.foreign);
    CHECK_ERROR_CONTAINS("; did you mean '" + row.ours + "'?", train_from_text(file(row.kind, row.foreign)));
  }
}
