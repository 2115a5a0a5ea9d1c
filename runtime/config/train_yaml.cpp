// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>
#include <tenon/error.h>

#include "config/config_table.h"
#include "config/model_yaml.h"
#include "config/train_blocks.h"
#include "platform/system.h"
#include "train/names.h"
#include "train/program/optimizers.h"

namespace tenon::config {
namespace {

std::optional<CheckpointDefinition> read_checkpoint(Section& top) {
  std::optional<Section> section = top.child("checkpoint");
  if (!section) return std::nullopt;
  CheckpointDefinition checkpoint;
  section->attempt([&] { checkpoint.directory = section->require_value("directory", "a folder").as_path(); });
  checkpoint.every_epochs = section->get<std::int64_t>("every_epochs", 1, {1, max_count});
  checkpoint.keep = section->get<std::int64_t>("keep", 1, {0, max_count});
  checkpoint.overwrite = section->get<bool>("overwrite", false);
  return checkpoint;
}

/// "mpi" in a process that mpirun or srun has started; else empty.
std::string transport_of_launcher() {
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"}) {
    if (platform::environment_variable(variable)) return "mpi";
  }
  return {};
}

/// `parallel: {mode: data, devices: [gpu:0, gpu:1]}`, or with mode: pipeline
ParallelOptions read_parallel(Section& top) {
  ParallelOptions parallel;
  std::optional<Section> section = top.child("parallel");
  if (!section) return parallel;
  std::vector<std::string>& names = parallel.devices;
  bool is_pipeline = false;
  section->attempt([&] { is_pipeline = section->require_value("mode", "data or pipeline").as_word({"data", "pipeline"}) == 1; });
  parallel.mode = is_pipeline ? ParallelOptions::Mode::pipeline : ParallelOptions::Mode::data;
  parallel.micro_batches = section->get<std::int64_t>("micro_batches", parallel.micro_batches, {1, max_count});
  section->attempt([&] {
    const std::optional<Value> transport = section->find("transport", "the name of a transport plugin, or its file", "none");
    if (!transport && !is_pipeline) parallel.transport = transport_of_launcher();
    if (transport && !transport->is_null()) parallel.transport = transport->as_text("the name of a transport plugin, or its file");
  });
  section->attempt([&] {
    const std::optional<Value> devices = section->find("devices", "a list of devices", "with a transport: the default device");
    if (!devices || devices->is_null()) {
      if (parallel.transport.empty()) static_cast<void>(section->require_value("devices", "a list of devices, or a transport, or mpirun"));
      return;
    }
    names = devices->as_names();
    if (names.empty()) devices->fail("expected at least one device");
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (std::find(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(i), names[i]) !=
          names.begin() + static_cast<std::ptrdiff_t>(i)) {
        devices->fail(fmt::format("'{}' is given twice", names[i]));
      }
    }
  });
  section->attempt([&] {
    const std::optional<Value> shares = section->find("shares", "a list of numbers, one for each device", "even");
    if (!shares || shares->is_null()) return;
    for (const Value& share : shares->items("a list of numbers")) parallel.shares.push_back(share.as_number(above_zero));
    if (parallel.shares.size() != names.size())
      shares->fail(fmt::format("expected one number for each of the {} devices, got {}", names.size(), parallel.shares.size()));
  });
  parallel.sync_batch_norm = section->get<bool>("sync_bn", false);
  parallel.bucket_mb = section->get_optional<double>("bucket_mb", {.lowest = 0});
  if (const auto shard = section->find("shard", "optimizer", "none"); shard && !shard->is_null())
    section->attempt([&] { parallel.shard_optimizer = shard->as_word({"none", "optimizer"}) == 1; });
  parallel.timeout_s = section->get<double>("timeout_s", parallel.timeout_s, {.lowest = 0});
  return parallel;
}

/// The loss and the metrics, of the only output or of each one.
void read_objective(Section& top, CompileOptions& out_options) {
  const auto metrics = top.find("metrics", "a metric, or a list of metrics", "[]");
  const auto losses = top.find("losses", "in place of loss and metrics, a map of outputs and their losses", "none");
  top.attempt([&] {
    if (losses && !losses->is_null()) {
      const auto loss = top.find("loss");
      if (loss && !loss->is_null()) losses->fail("expected one of loss and losses, got both");
      if (metrics && !metrics->is_null())
        metrics->fail("expected the metrics of each output in losses.OUTPUT.metrics, got them at the top");
      out_options.losses = read_losses(*losses);
      return;
    }
    out_options.loss = read_loss(top.require_value("loss", "the name of a loss"));
    if (metrics && !metrics->is_null()) out_options.metrics = read_metrics(*metrics, out_options.loss);
  });
}

void read_optimizer_key(Section& top, CompileDefinition& out_definition) {
  out_definition.options.optimizer = train::with_defaults({});
  if (const auto optimizer = top.find("optimizer", "a name, or a map with the key name", "adam"))
    top.attempt([&] { out_definition.options.optimizer = read_optimizer(*optimizer, out_definition.callbacks); });
}

/// What learns, and where.
void read_parts(Section& top, CompileOptions& out_options) {
  top.attempt([&] { out_options.parallel = read_parallel(top); });
  if (const auto globs = top.find("trainable", "a glob or a list of globs", "all"); globs && !globs->is_null())
    out_options.trainable = globs->as_names();
  if (const auto globs = top.find("frozen", "a glob or a list of globs", "none"); globs && !globs->is_null())
    out_options.frozen = globs->as_names();
}

ResumeDefinition read_resume(const Value& value, bool has_checkpoint) {
  ResumeDefinition resume;
  const std::string text = value.as_text("never, auto or the path of a checkpoint or of a folder of checkpoints");
  if (text == "never") return resume;
  resume.kind = text == "auto" ? ResumeDefinition::Kind::automatic : ResumeDefinition::Kind::path;
  if (resume.kind == ResumeDefinition::Kind::path)
    resume.path = value.as_path();
  else if (!has_checkpoint)
    value.fail("'auto' resumes from the newest checkpoint in checkpoint.directory, which is not set");
  return resume;
}

/// Reads the model: the file that `model` names, with the overrides of its keys, or an inline map.
ModelDefinition read_model_of(Files& files, Section& top, const std::vector<ConfigOverride>& model_overrides) {
  const Value value = top.require_value("model", "the path of a model.yaml, or an inline model");
  if (value.is_scalar()) {
    const std::string path = value.as_shown_path();
    try {
      files.load(path, "model.yaml");
    } catch (const Error& problem) {
      const std::string text = problem.what();
      if (text.rfind(path + ": file not found", 0) == 0) value.fail(text);  // also name the key that refers to the file
      throw;
    }
    return load_model_file(files, path, model_overrides);
  }
  if (!value.is_map()) value.fail_expected("the path of a model.yaml, or an inline model");
  return read_model(value.node(), "model");
}

TrainDefinition read_train(Files& files, Node tree, const std::vector<ConfigOverride>& overrides) {
  std::vector<ConfigOverride> of_model;
  // "model.dtype" applies to the model's file if `model` is a path, possibly set by an earlier override.
  for (const ConfigOverride& change : overrides) {
    const bool inside = change.key.rfind("model.", 0) == 0;
    const Node::Entry* model = tree.find("model");
    if (inside && model != nullptr && model->value.kind == Node::Kind::scalar) {
      ConfigOverride inner = change;
      inner.text = change.text.empty() ? fmt::format("--set {}={}", change.key, change.value) : change.text;
      inner.key = change.key.substr(6);
      of_model.push_back(inner);
    } else {
      apply_overrides(tree, {change});
    }
  }

  Section top(tree);
  TrainDefinition train;
  read_config(top, train.config);
  top.attempt([&] { train.data = read_data(top, train.fit); });
  CompileDefinition compile;
  read_objective(top, compile.options);
  read_optimizer_key(top, compile);
  if (const auto callbacks = top.find("callbacks", "a list of callbacks", "[]"); callbacks && !callbacks->is_null())
    top.attempt([&] { train.callbacks = read_callbacks(*callbacks); });
  train.callbacks.insert(train.callbacks.end(), compile.callbacks.begin(), compile.callbacks.end());
  FitOptions& fit = train.fit;
  read_fit_keys(top, fit);
  read_parts(top, compile.options);
  train.loss = std::move(compile.options.loss);
  train.losses = std::move(compile.options.losses);
  train.metrics = std::move(compile.options.metrics);
  train.optimizer = std::move(compile.options.optimizer);
  train.parallel = std::move(compile.options.parallel);
  train.trainable = std::move(compile.options.trainable);
  train.frozen = std::move(compile.options.frozen);
  check_shuffle_buffer(top, fit, "data.shuffle_buffer");
  train.verbose = top.get<int>("verbose", train.verbose, {0, 2});
  train.log_style = top.choice("log_style", train.log_style, train::log_styles());
  top.attempt([&] { train.checkpoint = read_checkpoint(top); });
  if (const auto resume = top.find("resume", "never, auto or the path of a checkpoint", "never"))
    top.attempt([&] { train.resume = read_resume(*resume, train.checkpoint.has_value()); });
  top.attempt([&] { train.weights = read_weights(top); });
  if (const auto output = top.find("output", "a folder", "null"); output && !output->is_null())
    top.attempt([&] { train.output = output->as_path(); });
  top.find("model", "the path of a model.yaml, or an inline model; required");
  yaml::Mistakes mistakes;  // first those of this file, then those of the model's
  mistakes.attempt([&] { top.finish(); });
  mistakes.attempt([&] { train.model = read_model_of(files, top, of_model); });
  mistakes.raise();
  return train;
}

}  // namespace

void read_compile_keys(Section& top, CompileDefinition& out_definition) {
  read_objective(top, out_definition.options);
  read_optimizer_key(top, out_definition);
  read_parts(top, out_definition.options);
}

void read_fit_keys(Section& top, FitOptions& out_fit) {
  out_fit.batch_size = top.get<std::int64_t>("batch_size", out_fit.batch_size, {1, max_count});
  out_fit.epochs = top.get<std::int64_t>("epochs", out_fit.epochs, {1, max_count});
  out_fit.accumulate = top.get<std::int64_t>("accumulate", out_fit.accumulate, {1, max_count});
  out_fit.shuffle = top.get<bool>("shuffle", out_fit.shuffle);
  out_fit.steps_per_epoch = top.get_optional<std::int64_t>("steps_per_epoch", {1, max_count}).value_or(0);
}

void check_shuffle_buffer(Section& top, const FitOptions& fit, const std::string& key) {
  if (fit.shuffle || fit.shuffle_buffer == 0) return;
  top.attempt([&] { top.find("shuffle")->fail(key + " has no effect without shuffling"); });
}

TrainDefinition load_train_file(Files& files, const std::string& path, const std::vector<ConfigOverride>& overrides) {
  TrainDefinition train = read_train(files, files.load(path), overrides);
  train.file = path;
  train.overrides = overrides;
  return train;
}

TrainDefinition train_from_text(const std::string& text, const std::string& name, const std::string& folder,
                                const std::vector<ConfigOverride>& overrides) {
  Files files;
  return read_train(files, yaml::parse(text, std::make_shared<Source>(Source{name, folder, Origin::Kind::yaml})), overrides);
}

}  // namespace tenon::config
