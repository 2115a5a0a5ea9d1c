// SPDX-License-Identifier: Apache-2.0
// tenon/model.h - trainable models: build, compile, fit, evaluate, predict, save.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tenon/api.h>
#include <tenon/batch_source.h>
#include <tenon/communicator.h>
#include <tenon/context.h>
#include <tenon/data.h>
#include <tenon/definition.h>
#include <tenon/onnx.h>
#include <tenon/program.h>
#include <tenon/run_options.h>
#include <tenon/safetensors.h>

namespace tenon {

class Model;

/// Named values in display order, loss first.
using Logs = std::vector<std::pair<std::string, double>>;

/// Loss and metrics of one batch.
struct BatchResult {
  Logs logs;  ///< loss, then metrics
  /// in means over batches: its samples, its labels that are not ignored, or the sum of their sample
  /// weights
  double weight = 0;
  bool step_taken = false;  ///< false where no step belongs to the call or mixed_float16 skipped it

  /// The first of the logs.
  double loss() const { return logs.front().second; }
};

/// Results of one epoch.
struct EpochLogs {
  std::int64_t epoch = 0;  ///< from 0
  Logs logs;               ///< loss, metrics, then val_loss, val_...
  double seconds = 0;      ///< training only, without validation
  std::int64_t samples = 0;
  double learning_rate = 0;  ///< that of the epoch's last step

  /// Training throughput; 0 for an epoch without time.
  double samples_per_second() const {
    return seconds > 0 ? static_cast<double>(samples) / seconds : 0;
  }
};
using History = std::vector<EpochLogs>;

/// State of a callback that a checkpoint keeps. Numbers are finite.
struct CallbackState {
  std::map<std::string, double> numbers;
  std::vector<NamedTensor> tensors;
};

/// Hooks into fit, called in this order: train begin; per epoch: begin, batches, validation, end;
/// train end. tenon/callbacks.h has the common ones.
/// Threads  called on fit's thread. An exception ends the fit, which throws an Error that names the
///          callback; the model keeps the state after the last step and may be saved or fitted
///          further.
class TENON_API Callback {
 public:
  virtual ~Callback() = default;
  /// The name in messages and checkpoints: "early_stopping". Default: the class name.
  virtual std::string name() const;
  /// Called first, with the model being fitted.
  void attach(Model& model) { model_ = &model; }

  /// Before the first epoch; `batches` is the number per epoch, 0 if a BatchSource does not know it.
  virtual void train_begin(std::int64_t epochs, std::int64_t batches) {
    static_cast<void>(epochs), static_cast<void>(batches);
  }
  /// Before the first batch of an epoch.
  virtual void epoch_begin(std::int64_t epoch) { static_cast<void>(epoch); }
  /// `logs`: means over the batches of this epoch so far, weighted by BatchResult::weight. `result`:
  /// of this batch alone.
  virtual void batch_end(std::int64_t batch, const Logs& logs, const BatchResult& result) {
    static_cast<void>(batch), static_cast<void>(logs), static_cast<void>(result);
  }
  /// After the epoch, validation included.
  virtual void epoch_end(const EpochLogs& logs) { static_cast<void>(logs); }
  /// Also called after a stop, but not after an error.
  virtual void train_end() {}

  /// The state to keep in a checkpoint.
  virtual CallbackState state() const { return {}; }
  /// Called between train_begin and the first epoch of a resumed fit, if the checkpoint has state
  /// under this name.
  virtual void restore(const CallbackState& state) { static_cast<void>(state); }
  /// True for callbacks that save: they are called after all others.
  virtual bool runs_last() const { return false; }
  /// Whether batch_end may be called one step late: true for callbacks whose batch_end uses nothing but
  /// its arguments, or does nothing. If all callbacks of a fit say so, a device that works by itself
  /// (a GPU) computes the next step while the host reads the results of this one: when batch_end is
  /// called, the weights and the step of the model may be those of the next step, and Model::stop takes
  /// effect after that one. All else is as without: every batch has its call, in order and with the
  /// same values, before the validation and the end of its epoch; but for the step that is computed
  /// when the fit ends by an error. False: the device waits after each
  /// step, and batch_end sees the model as its batch left it.
  virtual bool allows_late_batch_end() const { return false; }

 protected:
  /// The model being fitted. Errors: a callback that is not attached.
  Model& model() const;

 private:
  Model* model_ = nullptr;
};

/// Training on several devices at the same time. Devices of one processor share its threads. Results
/// are the same bits again for the same devices; dropout masks differ from those of one device.
///
/// Mode data: over devices of this process, or over processes. Each has a copy of the parameters and
/// computes the gradients of its part of every batch; these are summed, weighted by what counts in
/// each part, and every device takes the same step. Results equal those of one device up to the order
/// of summation.
///
/// Mode pipeline: over devices of this process. Each is a stage, which has consecutive layers and their
/// parameters: those that name its device in LayerDefinition::device, else a share of the work. The
/// micro-batches of a batch follow each other through the stages, forward and backward, and one step is
/// taken with their gradients. Results equal those of one device up to the order of summation, but for
/// batch normalisation, which uses the statistics of each micro-batch. Takes `devices` and
/// `micro_batches` only. Errors  fewer than two devices, a layer on another device, a stage without
/// layers, a `batch_size` or a batch of a single step with fewer samples than micro-batches; the last
/// batch of an epoch may be smaller.
struct ParallelOptions {
  /// What devices divide: the samples of a batch, or the layers of the model.
  enum class Mode { data, pipeline };
  std::vector<std::string> devices = {};  ///< empty or one: no parallelism
  Mode mode = Mode::data;
  /// Of mode pipeline: how many parts of a batch follow each other through the stages.
  std::int64_t micro_batches = 4;
  /// How many samples of a batch each device gets, in proportion to each other: {3, 1}. Empty: even
  /// parts.
  std::vector<double> shares = {};
  /// Batch normalisation uses the statistics of the whole batch, and waits for all devices in each
  /// layer. Otherwise each device uses those of its part, and running statistics are means of them.
  bool sync_batch_norm = false;
  /// MiB of gradients that are summed together, while the backward pass goes on; 0: all, after it.
  /// Nothing: as suits what connects the devices.
  std::optional<double> bucket_mb = {};
  /// Each rank keeps the optimizer state of a part of the parameters only, takes their step and sends
  /// their new values to the others. Otherwise every rank keeps all of it and takes the whole step.
  /// Checkpoints are the same. Errors  one rank.
  bool shard_optimizer = false;
  /// A slower link between the devices than there is, for tests and predictions.
  LinkOptions link = {};
  /// Several processes, as a launcher like mpirun starts them, each with these devices, as many on all:
  /// the name of the transport plugin that connects them ("mpi"), or its file. Every process calls the
  /// same functions with the same arguments; train_batch and backward get the whole batch. Empty: none.
  std::string transport = {};
  /// A process that shows no sign of life for so many seconds, because it was stopped or its host has
  /// gone, is an error of the others; 0: they wait for ever. With a transport.
  double timeout_s = 20;
};

/// Options of Model::compile.
struct CompileOptions {
  OptimizerDefinition optimizer = {};
  LossDefinition loss = {};  ///< of the only output
  std::vector<MetricDefinition> metrics = {};
  /// In place of both, losses of outputs by name, with their metrics. What is minimised is their sum
  /// by their weights; it is logged as "loss", the others as "<output>_loss" and
  /// "<output>_<metric>". Outputs without a loss are only predicted. Means over batches, accumulated
  /// gradients and parallel devices weigh a batch by its samples, whatever labels the losses ignore.
  std::vector<OutputLoss> losses = {};
  ParallelOptions parallel = {};
  /// Globs of the parameters that learn: {"dense*"}, {"*/kernel"}; empty: all. The others are
  /// frozen: they have no gradient and no optimizer state, regularisation leaves them out, and batch
  /// normalisation whose parameters are frozen uses and keeps its running statistics.
  std::vector<std::string> trainable = {};
  /// Globs of parameters that are frozen though `trainable` may match them: {"encoder.*"}.
  std::vector<std::string> frozen = {};
};

/// Options of Model::fit.
struct FitOptions {
  std::int64_t batch_size = 32;
  std::int64_t epochs = 1;  ///< in total, including those before a resume
  /// Given, the fit trains epochs - initial_epoch epochs from the model's position on, whatever
  /// epochs the model had before, and callbacks and history count them from initial_epoch, as in
  /// Keras. An epoch that was interrupted is the first of them.
  std::optional<std::int64_t> initial_epoch = {};
  bool shuffle = true;
  /// Threads that gather batches; 0: none. With 1, and a CPU device with all threads of the process,
  /// the threads of the steps gather data in memory.
  int workers = 1;
  int prefetch = 2;  ///< batches gathered ahead
  /// Use pinned host memory for batches, which the device copies without staging. No effect on
  /// devices that use host memory directly.
  bool pinned = true;
  std::int64_t shuffle_buffer = 0;   ///< as in BatchOptions
  std::int64_t steps_per_epoch = 0;  ///< 0: the whole data set
  /// batches whose gradients are accumulated for one step
  std::int64_t accumulate = 1;
  /// fraction of the data, taken from its end before shuffling, used for validation
  double validation_split = 0;
  std::shared_ptr<const Dataset> validation = nullptr;  ///< evaluated after each epoch; may be null
  BatchSource* validation_batches = nullptr;            ///< likewise, in place of `validation`
  std::vector<Callback*> callbacks = {};
  /// A stop request ends the fit at the next kernel: the step in progress is dropped, unless it
  /// updates parameters already, as it does once one of several batches has been accumulated.
  RunOptions run = {};
};

/// How the last fit ended.
enum class FitEnd {
  finished,     ///< all epochs
  stopped,      ///< Model::stop, called by callbacks
  interrupted,  ///< FitOptions::run.stop; the model is as the last complete step left it
};

/// One row of Model::summary.
struct LayerSummary {
  std::string name, type;  ///< "dense_1", "Dense"
  Shape output;            ///< without the batch axis
  std::int64_t parameters = 0;
  std::int64_t non_trainable = 0;  ///< those of `parameters` that do not learn
  std::int64_t frozen = 0;  ///< those of `non_trainable` that CompileOptions::trainable leaves out
  std::int64_t flops = 0;   ///< forward pass, per sample
  std::string device;       ///< requested device; empty: the model's
};

/// A sequence of layers with parameters, optimizer state and step count. It has one input and one
/// output, x and y, unless it is one layer `onnx`: then those of the file, by their names.
/// Threads  one thread at a time; different models may be used at the same time.
class TENON_API Model {
 public:
  /// Errors  a definition without layers, duplicate names; a file of the layer onnx that cannot be read
  ///         or does not have what the layer names.
  explicit Model(ModelDefinition definition);
  /// A model of these layers; the rest of the definition has its defaults.
  explicit Model(std::vector<LayerDefinition> layers);
  ~Model();
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;

  /// Sets context, optimizer, loss and metrics. Seed, determinism, precision and device are those
  /// of the context's configuration.
  /// Errors  a loss that does not fit the last layer, mixed precision for a model that is not f32,
  ///         a glob of trainable, frozen or of the optimizer's groups that matches no parameter;
  ///         losses of an output that the model does not have, or two of one.
  void compile(const Context& context, CompileOptions options);
  /// Sets the context alone, for a model that predicts. Fit, evaluate and the parts of a training
  /// step then are errors that ask for a loss. Errors  mixed precision, as above.
  void compile(const Context& context);
  /// Creates the parameters for samples of this shape; fit, evaluate and predict do so if
  /// necessary. Errors  several inputs.
  void build(const Shape& sample);
  /// The same for samples of this data, whose inputs are bound to those of the model by name; an
  /// only input takes an only one of any name. Errors  an input that one of both does not have.
  void build_for(const Dataset& data);
  /// True once the parameters exist.
  bool built() const;
  /// Replaces the layers after the one named `after` by `head`: "dense_1", or a value of the graph of
  /// a layer `onnx`, whose output it becomes. Layers that stay keep their weights and statistics.
  /// Training starts anew: call compile again. Errors  no layer and no value of that name.
  void replace_head(const std::string& after, std::vector<LayerDefinition> head);

  /// Trains up to options.epochs from the current position, or, with options.initial_epoch, by so
  /// many more: an epoch that was interrupted is resumed if it still has the same number of batches.
  /// With mixed_float16, steps with non-finite gradients are skipped but counted. With Dataset::sample_weights, loss and metrics of a batch are
  /// means weighted by them, sum(w * l) / sum(w), also over batches: a weight of 2 is a sample that
  /// occurs twice.
  /// Errors  a loss that is not finite (epoch and step are named; parameters stay as that step left
  ///         them), gradients that are not finite at the smallest loss scale, and those of
  ///         callbacks, data and devices.
  History fit(const std::shared_ptr<const Dataset>& data, const FitOptions& options = {});
  /// The same with the batches of a source. Of the options, those that say how samples are divided
  /// into batches and read have no effect. To resume an epoch, its first batches are read and
  /// dropped. A schedule that needs the length of the fit needs a source that knows its batches, or
  /// steps_per_epoch.
  /// Errors  also: a validation_split; batches of other types than the source states.
  History fit(BatchSource& batches, const FitOptions& options = {});
  /// Loss and metrics over the whole data set, without dropout or gradients.
  Logs evaluate(const std::shared_ptr<const Dataset>& data, std::int64_t batch_size = 32,
                const RunOptions& run = {});
  /// The same over an epoch of a source.
  Logs evaluate(BatchSource& batches, const RunOptions& run = {});
  /// The model's output for x (n, sample...), as a host tensor (n, output...).
  Tensor predict(const Tensor& x, std::int64_t batch_size = 32, const RunOptions& run = {});
  /// The same by name: all outputs for all inputs. Here and below an only input has any name.
  NamedTensors predict(const NamedTensors& inputs, std::int64_t batch_size = 32,
                       const RunOptions& run = {});
  /// As predict, with scores turned into probabilities as the loss does: softmax for a categorical
  /// cross-entropy from logits, exp for nll, sigmoid for a binary cross-entropy from logits.
  /// Classes are the last axis: (n, classes) or (n, steps..., classes).
  Tensor predict_probabilities(const Tensor& x, std::int64_t batch_size = 32);
  /// The same by name; outputs without a loss are as they are.
  NamedTensors predict_probabilities(const NamedTensors& inputs, std::int64_t batch_size = 32);
  /// A self-contained program that predicts for batches of this size, with predict's input x and
  /// output (or inputs() and outputs(), in that order), and the current parameters as constants. It
  /// outlives the model and needs less memory: once the model is gone, only the backend's packed copy
  /// of packed weights exists.
  /// Errors  no
  ///         context, or the sample shape is not known yet.
  Program freeze(std::int64_t batch_size);
  /// Writes what predict computes as an ONNX model, with the current parameters: input x (batch,
  /// sample...), output y (batch, output...), several by their names, unless the options name them
  /// otherwise. The sample shape is fixed.
  /// Errors  the sample shape is not known yet; those of onnx::export_graph.
  void export_onnx(const std::string& path, const onnx::ExportOptions& options = {}) const;
  /// i64 (classes, classes): element [row, column] counts samples of class `row` predicted as
  /// `column`. Targets are labels, or one value per class. Errors  several outputs.
  Tensor confusion_matrix(const std::shared_ptr<const Dataset>& data, std::int64_t batch_size = 32);

  // The parts of a training step, on one batch each. Sample weights are f32 or f64 (n); undefined: 1
  // each. Inputs and targets by name are bound to inputs and losses as those of a data set are.

  /// The output in the current mode, as a host tensor. Keeps nothing for gradients.
  Tensor forward(const Tensor& x);
  /// The same by name.
  NamedTensors forward(const NamedTensors& inputs);
  /// Loss and metrics of a batch. Accumulates gradients, weighted by batch size or, where the loss
  /// has weights, by what it was divided by.
  BatchResult backward(const Tensor& x, const Tensor& y, const Tensor& sample_weights = {});
  /// The same by name.
  BatchResult backward(const NamedTensors& inputs, const NamedTensors& targets,
                       const Tensor& sample_weights = {});
  /// One optimizer step with the mean of the gradients accumulated since the last one; false if
  /// mixed_float16 skipped it. Errors: no gradients.
  bool apply();
  /// backward and apply in one, faster. Errors: a run that is cancelled, which takes no step.
  BatchResult train_batch(const Tensor& x, const Tensor& y, const Tensor& sample_weights = {},
                          const RunOptions& run = {});
  /// The same by name.
  BatchResult train_batch(const NamedTensors& inputs, const NamedTensors& targets,
                          const Tensor& sample_weights = {}, const RunOptions& run = {});
  /// Loss and metrics of a batch, as evaluate sees them.
  BatchResult test_batch(const Tensor& x, const Tensor& y, const Tensor& sample_weights = {});
  /// The same by name.
  BatchResult test_batch(const NamedTensors& inputs, const NamedTensors& targets,
                         const Tensor& sample_weights = {});
  /// The mean gradient of a parameter since the last apply, as a host tensor. Errors: unknown name,
  /// no backward yet.
  Tensor gradient(const std::string& parameter) const;
  /// Switches forward between training (with dropout) and inference, the default. The other calls
  /// have a fixed mode.
  void set_training(bool training);
  /// The current mode.
  bool training() const;

  /// Learning rate of the next step: the scheduled rate times the scale. Errors: those of
  /// Schedule::at.
  double learning_rate() const;
  /// Replaces the initial rate and resets the scale. Errors here and below: a rate or factor that is
  /// negative or not finite.
  void set_learning_rate(double rate);
  /// Multiplies all rates from now on.
  void scale_learning_rate(double factor);
  /// `initial` replaces the initial rate if given; the scale stays.
  void set_schedule(const Schedule& schedule, std::optional<double> initial = {});
  /// Ends the running fit after the current step; `reason` is shown to the user.
  void stop(const std::string& reason);
  /// How the last fit ended.
  FitEnd fit_end() const;
  /// Why the last fit stopped; empty if it finished.
  const std::string& stop_reason() const;
  /// The names of the values that Callback::epoch_end gets in the running fit; empty outside.
  const std::vector<std::string>& logged_names() const;

  /// The shape of a sample of the first input. Errors, here and below: it is not known yet.
  const Shape& sample_shape() const;
  /// Name, dtype and shape of a sample for each input.
  const std::vector<SampleType>& inputs() const;
  /// Name, dtype and shape for a sample of each output.
  const std::vector<SampleType>& outputs() const;
  /// Steps taken since the parameters were created.
  std::int64_t step() const;
  /// The definition it was created from.
  const ModelDefinition& definition() const;
  /// One entry per layer; needs parameters (see build). Errors: the sample shape is not known yet.
  std::vector<LayerSummary> layers() const;
  /// The layers as a table, with totals and, for a batch size, memory().
  std::string summary(std::int64_t batch_size = 0) const;
  /// The memory of a training step and of a prediction.
  struct Memory {
    std::vector<MemoryPlan> training, prediction;  ///< per device; no training without a loss
  };
  /// The memory that they need for this batch size, with the parameters and, in training, the
  /// optimizer state; nothing is allocated. A fit keeps the programs of its other batch sizes and of
  /// its validation as well, and on a device with memory of its own a second batch.
  /// Errors  those of training and predicting, except for a lack of memory.
  Memory memory(std::int64_t batch_size) const;
  /// The model's programs, at most 24: one for each type of batch and each kind of call.
  const ProgramCounts& program_counts() const;
  /// The sums over the parallel devices, as the first of them saw them; none without such devices.
  CommunicationCounts communication() const;
  /// The index of this process among those that train the model together, from 0, and their number; 0
  /// and 1 without a transport. Process 0 is the one that writes files and messages.
  int rank() const;
  /// The number of these processes.
  int rank_count() const;
  /// Weights, named "<layer>/kernel" and the like, and the parameters that is_training_state
  /// identifies.
  ParameterStore& parameters();
  /// Placement of each node of a training step (without a loss: of a prediction) for this batch
  /// size, also if some nodes cannot run: they have no device, and a reason.
  PlacementReport explain(std::int64_t batch_size);
  /// The program of a training step (without a loss: of a prediction) for this batch size; valid
  /// until the model is changed or used.
  const Program& program_of_step(std::int64_t batch_size);

  /// The identity of the training, random digits made with the model. Its checkpoints carry it, and
  /// load (of all, not of weights) takes over that of the checkpoint.
  const std::string& run() const;

  /// Progress of training.
  struct Position {
    std::int64_t epoch = 0;  ///< finished epochs
    std::int64_t batch = 0;  ///< finished batches of the next epoch
    std::uint64_t seed = 0;
    std::string file = {};  ///< the YAML file of the checkpoint
    std::int64_t step = 0;
  };
  /// Saves weights, optimizer state, learning rate, callback states and position as a checkpoint:
  /// <folder>/<name>.safetensors and <name>.yaml, which has checksums of both. Each is written to a
  /// temporary file, synced and renamed, the YAML last, so that the previous checkpoint or none
  /// remains if saving fails. A checkpoint of the same name is replaced, whichever run it is of; the
  /// callback Checkpoint refuses the folders of other runs.
  /// Of optimizer state that is sharded over processes, process 0 has all at the end of an epoch, after
  /// fit, and before the first step after a load; saving at another time is an error.
  void save(const std::string& folder, const std::string& name) const;
  /// Which part of a checkpoint to load.
  enum class Load {
    all,      ///< to resume training
    weights,  ///< to evaluate and predict
  };
  /// Loads what save wrote; builds the model first if necessary. To resume with a custom loss, compile
  /// the model with the loss of that name first. `checkpoint` is its YAML file, or a
  /// folder: then the checkpoint of the latest step of the run that wrote there last is loaded, and
  /// a damaged one is passed over with a warning that names it and the one loaded instead;
  /// Position::file is the one loaded.
  /// Errors name the file: missing, damaged, or saved by another model (the first difference is
  /// named); a folder without a checkpoint, or whose checkpoints are all damaged. On an error the
  /// model is unchanged, except that it may have been built.
  /// With optimizer state that is sharded over processes, Load::all is a call that all of them make:
  /// each reads a part, and all get an error if one of them does, or if they load different ones.
  Position load(const std::string& checkpoint, Load what = Load::all);
  /// Epochs that fit has finished, including those before a load.
  std::int64_t epochs_done() const;

  struct TENON_HIDDEN State;  ///< the runtime's own

 private:
  friend class Decoder;
  std::unique_ptr<State> state_;
};

/// True for parameters that only training needs: optimizer state and accumulated gradients.
TENON_API bool is_training_state(const std::string& parameter);

/// The checkpoint that Model::load takes of a folder; empty if there is none. Reads its weights to
/// check them. Errors  all are damaged.
TENON_API std::string newest_checkpoint(const std::string& folder);

}  // namespace tenon
