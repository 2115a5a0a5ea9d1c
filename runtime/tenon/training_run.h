// SPDX-License-Identifier: Apache-2.0
// tenon/training_run.h - trains, evaluates and resumes what a train.yaml describes, and loads models
// from their files. `tenon train`, `eval` and `predict` are these functions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tenon/api.h>
#include <tenon/context.h>
#include <tenon/data.h>
#include <tenon/model.h>
#include <tenon/train_definition.h>
#include <tenon/weights.h>

namespace tenon {

/// What is known of the samples of a training run, in order to prepare others in the same way.
struct Preprocessing {
  DType stored = DType::none;            ///< dtype of the samples before scaling; none: not known
  std::vector<Scaling> scalings;         ///< one, or one per index of a sample's first axis
  std::vector<std::string> class_names;  ///< by label; empty: classes have no names
};

/// The data of a training run.
struct DataSplits {
  std::shared_ptr<const Dataset> train;  ///< augmented if requested
  std::shared_ptr<const Dataset> test;
  std::shared_ptr<const Dataset> validation;  ///< null without data.validation_split
  Preprocessing preprocessing = {};
};

/// A model with the definition and the context of its training.
///
///   TrainingRun run = TrainingRun::load("models/mnist_mlp/train.yaml", {{"epochs", "3"}});
///   const DataSplits data = run.load_data();
///   run.resume();
///   run.fit(data);
///   const Logs test = run.evaluate(data);
///
/// Threads  one thread at a time, as its model.
class TENON_API TrainingRun {
 public:
  /// Compiles the model of the definition on the context.
  /// Errors  those of Model::compile.
  TrainingRun(TrainDefinition definition, const Context& context);
  /// The run of a train.yaml or model.yaml, as load_definition reads it, on a context of its own
  /// whose configuration is resolve_config with that file as a layer. To trust the file with
  /// keys like backends.search, resolve the configuration yourself (ConfigSources::trust_layers).
  static TrainingRun load(const std::string& path,
                          const std::vector<ConfigOverride>& overrides = {});

  /// The definition it was created from.
  const TrainDefinition& definition() const { return definition_; }
  /// The context that its model is compiled on.
  const Context& context() const { return context_; }
  /// Compiled; its parameters exist once the sample shape is known (see Model::build).
  Model& model() { return model_; }
  /// The same.
  const Model& model() const { return model_; }

  /// Reads or generates the data. `directory` replaces data.directory unless it is empty. A
  /// definition without data, that of a model.yaml, reads the files of MNIST.
  /// Errors  no directory for a source that reads files; those of the readers.
  DataSplits load_data(const std::string& directory = "") const;

  /// The checkpoint that a run starts from.
  struct Resumed {
    std::string checkpoint;  ///< its YAML file
    Model::Position position;
  };
  /// Loads the checkpoint that `resume` names. Nothing: there is none to resume from.
  /// Errors  those of Model::load (a folder whose checkpoints are all damaged is one), a checkpoint
  ///         of another seed.
  std::optional<Resumed> resume();
  /// Loads weights from a checkpoint: its YAML file, or a folder whose newest one is loaded. Empty:
  /// the folder of the definition, checkpoint.directory.
  /// Returns where they come from.
  /// Errors  no checkpoint is found; those of Model::load.
  Model::Position load_weights(const std::string& checkpoint = "");

  /// Starts from the file that the definition's `weights` names, unless it names none or the model
  /// has weights from a checkpoint. fit does so if it was not called before.
  /// Errors  those of import_weights.
  std::optional<WeightsReport> load_initial_weights(const DataSplits& data);

  /// Trains as the definition says, with its callbacks and those of `checkpoint` and `output`; each
  /// folder of checkpoints gets a file run.json, which names the definition and has data.preprocessing;
  /// `callbacks`, which must outlive the call, are called before them. `run` is that of FitOptions;
  /// Model::fit_end says how the fit ended.
  /// Errors  those of Model::fit.
  History fit(const DataSplits& data, const std::vector<Callback*>& callbacks = {},
              const RunOptions& run = {});
  /// Loss and metrics over data.test.
  Logs evaluate(const DataSplits& data);

  /// Results of predict.
  struct Predictions {
    Tensor output;    ///< (n, output...), on the host
    Tensor expected;  ///< the targets of the samples, (n, target...), on the host
  };
  /// Predictions for the first `count` samples of data.test, or all if it has fewer.
  /// Errors  a count below 1; several inputs or outputs, which Predictor has.
  Predictions predict(const DataSplits& data, std::int64_t count);

  /// Saves the state after an interrupted fit as <folder>/interrupted.yaml and returns that path, to
  /// be used as `resume`; if another run has left a checkpoint there, as interrupted-<run>.yaml. The
  /// folder is checkpoint.directory, else `output`, else "interrupted".
  std::string save_interrupted() const;
  /// A sentence for messages: which checkpoint of checkpoint.directory is the newest complete one, and
  /// how to go on from it. Empty: there is none, or none that can be read. Any thread.
  std::string last_checkpoint() const;

 private:
  /// Writes run.json into each folder of checkpoints.
  void save_description() const;

  TrainDefinition definition_;
  Context context_;
  Model model_;
  Preprocessing preprocessing_;  ///< that of the last fit
  bool has_weights_ = false;     ///< of a checkpoint or a file of weights
};

/// The model of a model.yaml or train.yaml, compiled as TrainingRun::load does, with the weights of
/// `checkpoint`: its YAML file, or a folder whose newest one is loaded. Empty: initial weights, made
/// by the first call that needs them.
/// Errors  those of load_definition and TrainingRun::load_weights.
TENON_API Model load_model(const std::string& path, const std::string& checkpoint = "",
                           const std::vector<ConfigOverride>& overrides = {});

}  // namespace tenon
