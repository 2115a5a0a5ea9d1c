// tenon/model.h - layers that learn: build, compile, fit, evaluate, predict, save.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tenon/context.h>
#include <tenon/data.h>
#include <tenon/definition.h>
#include <tenon/program.h>
#include <tenon/safetensors.h>

namespace tenon {

class Model;

/// Named numbers in the order in which they are shown: loss first.
using Logs = std::vector<std::pair<std::string, double>>;

/// What an epoch came to.
struct EpochLogs {
  std::int64_t epoch = 0;  ///< from 0
  Logs logs;               ///< loss, metrics, then val_loss, val_...
  double seconds = 0;      ///< training alone, without validation
  std::int64_t samples = 0;
  double learning_rate = 0;  ///< of the epoch's last step

  /// 0 for an epoch without time.
  double samples_per_second() const { return seconds > 0 ? static_cast<double>(samples) / seconds : 0; }
};
using History = std::vector<EpochLogs>;

/// What a callback remembers from one epoch to the next; part of a checkpoint. Numbers are finite.
struct CallbackState {
  std::map<std::string, double> numbers;
  std::vector<NamedTensor> tensors;
};

/// What happens during fit, in the order of appendix 2: train begin; per epoch: begin, batches, validation, end; train end.
/// Those of tenon/callbacks.h cover the usual wishes.
/// Threads  called on fit's own thread. An exception ends the fit, which throws an Error that names the callback; the model stays as the
///          last step left it and may be saved, or fitted further.
class Callback {
 public:
  virtual ~Callback() = default;
  /// How messages and checkpoints call it: "early_stopping". By default the class's own name.
  virtual std::string name() const;
  /// Before anything else: the model whose fit this is.
  void attach(Model& model) { model_ = &model; }

  /// Before the first epoch; `batches` in each.
  virtual void train_begin(std::int64_t epochs, std::int64_t batches) { static_cast<void>(epochs), static_cast<void>(batches); }
  /// Before the first batch of an epoch.
  virtual void epoch_begin(std::int64_t epoch) { static_cast<void>(epoch); }
  /// `logs`: running means of this epoch, weighted by batch size.
  virtual void batch_end(std::int64_t batch, const Logs& logs) { static_cast<void>(batch), static_cast<void>(logs); }
  /// After the epoch, validation included.
  virtual void epoch_end(const EpochLogs& logs) { static_cast<void>(logs); }
  /// Also after a stop; not after an error.
  virtual void train_end() {}

  /// What a checkpoint keeps of it.
  virtual CallbackState state() const { return {}; }
  /// Between train_begin and the first epoch of a resumed fit, if the checkpoint has a state of this name.
  virtual void restore(const CallbackState& state) { static_cast<void>(state); }
  /// True of those that save: their turn comes when all others have had theirs.
  virtual bool goes_last() const { return false; }

 protected:
  /// Errors  a callback that no fit has attached.
  Model& model() const;

 private:
  Model* model_ = nullptr;
};

/// How a model learns.
struct CompileOptions {
  OptimizerDefinition optimizer = {};
  LossDefinition loss = {};
  std::vector<MetricDefinition> metrics = {};
  /// Data parallelism: each batch is split evenly over these devices, each computes the gradients of its part with the same weights, and
  /// their mean, weighted by what counts in each part, is what the step on the first one takes. Empty, or one: no parallelism.
  /// Results are those of one device up to the order of sums; dropout masks differ from those of one device.
  std::vector<std::string> parallel_devices = {};
};

/// How long it learns, on what, and who watches.
struct FitOptions {
  std::int64_t batch_size = 32;
  std::int64_t epochs = 1;  ///< in all, those before a resume included
  bool shuffle = true;
  int workers = 1;   ///< threads that gather batches; 0: none
  int prefetch = 2;  ///< batches gathered ahead
  /// Batches in host memory that the device copies from without staging. Means nothing to devices that use the host's memory as it is.
  bool pinned = true;
  std::int64_t shuffle_buffer = 0;                      ///< as in BatchOptions
  std::int64_t steps_per_epoch = 0;                     ///< 0: the whole data set
  std::int64_t accumulate = 1;                          ///< batches whose gradients are summed up for one step
  double validation_split = 0;                          ///< part of the data, from its end and before shuffling, kept for validation
  std::shared_ptr<const Dataset> validation = nullptr;  ///< evaluated after each epoch; may be null
  std::vector<Callback*> callbacks = {};
  const std::atomic<bool>* stop = nullptr;  ///< once true, fit returns after the running step; any thread or signal handler may set it
};

/// How the last fit ended.
enum class FitEnd {
  finished,  ///< all epochs
  stopped,   ///< Model::stop, which callbacks call
  asked,     ///< FitOptions::stop
};

/// One row of the summary.
struct LayerSummary {
  std::string name, type;  ///< "dense_1", "Dense"
  Shape output;            ///< without the batch axis
  std::int64_t parameters = 0;
  std::int64_t non_trainable = 0;  ///< of them: running statistics
  std::int64_t flops = 0;          ///< of a forward pass, per sample
  std::string device;              ///< as asked for; empty: the model's
};

/// A sequence of layers with its parameters, optimizer state and step count.
/// Threads  one thread at a time; different models may be used at the same time.
class Model {
 public:
  /// Errors  a definition without layers, names given twice.
  explicit Model(ModelDefinition definition);
  /// Of layers alone; the rest is default.
  explicit Model(std::vector<LayerDefinition> layers);
  ~Model();
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;

  /// Chooses context, optimizer, loss and metrics. Seed, determinism, precision and device are the context's configuration.
  /// Errors  a loss that does not fit the last layer, a mixed precision for a model that is not of f32.
  void compile(const Context& context, CompileOptions options);
  /// Makes the parameters for samples of this shape; fit, evaluate and predict do it by themselves.
  void build(const Shape& sample);

  /// Trains up to options.epochs, from where the model stands: an epoch that was left in its middle is gone on with if its batches are
  /// still as many.
  /// With precision mixed_float16, steps whose gradients are not finite are skipped, and counted like others.
  /// Errors  a loss that is not finite (epoch and step are named; parameters stay as that step left them), gradients that are not at the
  ///         smallest loss scale, a callback's, and those of data and devices.
  History fit(const std::shared_ptr<const Dataset>& data, const FitOptions& options = {});
  /// Loss and metrics over the whole set, without dropout or gradients.
  Logs evaluate(const std::shared_ptr<const Dataset>& data, std::int64_t batch_size = 32);
  /// The model's output for x (n, sample...), as a host tensor (n, output...).
  Tensor predict(const Tensor& x, std::int64_t batch_size = 32);
  /// A program of its own that predicts for batches of this size, input x and output as predict's, with the parameters as they are now for
  /// constants. It outlives the model and takes less memory: weights that a backend packs exist packed alone once the model is gone.
  /// Errors  no context or shape of a sample yet.
  Program freeze(std::int64_t batch_size);
  /// i64 (classes, classes): how many samples of class [row] were taken for class [column]. Targets are labels, or one value per class.
  Tensor confusion_matrix(const std::shared_ptr<const Dataset>& data, std::int64_t batch_size = 32);

  // The parts of a training step, on one batch each.

  /// The output in the present mode, as a host tensor. Takes no memory for gradients.
  Tensor forward(const Tensor& x);
  /// Loss and metrics of a batch, with gradients that are added to those of earlier calls, weighted by batch size.
  const Logs& backward(const Tensor& x, const Tensor& y);
  /// One optimizer step with the mean of the gradients since the last one. Errors  there are none.
  void apply();
  /// backward and apply at once, faster; returns loss and metrics of that batch. What fit is made of.
  const Logs& train_batch(const Tensor& x, const Tensor& y);
  /// Loss and metrics of a batch, as evaluate sees them.
  const Logs& test_batch(const Tensor& x, const Tensor& y);
  /// The mean gradient of a parameter since the last apply, as a host tensor. Errors  unknown name, no backward yet.
  Tensor gradient(const std::string& parameter) const;
  /// The switch between training (dropout drops) and inference, which is the default. It rules forward; the other calls say in their
  /// names what they are for and keep to it.
  void set_training(bool training);
  /// The switch as it stands.
  bool training() const;

  /// Of the next step: what the schedule makes of the initial rate, times the scale. Errors  those of Schedule::at.
  double learning_rate() const;
  /// Replaces the initial rate and forgets the scale.
  void set_learning_rate(double rate);
  /// Multiplies every rate from now on.
  void scale_learning_rate(double factor);
  /// `initial`: a new initial rate; the scale stays.
  void set_schedule(const Schedule& schedule, std::optional<double> initial = {});
  /// Ends the running fit after its step; `reason` is for people.
  void stop(const std::string& reason);
  /// How the last fit ended.
  FitEnd fit_end() const;
  /// Why the last fit stopped; "" if it finished.
  const std::string& stop_reason() const;

  /// Steps taken since the parameters were made.
  std::int64_t step() const;
  /// What it was made from.
  const ModelDefinition& definition() const;
  /// Per layer; needs parameters (build). Errors  the shape is not known yet.
  std::vector<LayerSummary> layers() const;
  /// The table of appendix 2.
  std::string summary() const;
  /// Weights by "<layer>/kernel" and the like, beside what is_training_state names.
  ParameterStore& parameters();
  /// Where each node of a training step (or, without a loss, of a prediction) for this batch size goes.
  PlacementReport explain(std::int64_t batch_size);
  /// The program of a training step (or, without a loss, of a prediction) for this batch size; valid until the model is changed or used.
  const Program& program_of_step(std::int64_t batch_size);

  /// How far training has come.
  struct Position {
    std::int64_t epoch = 0;  ///< epochs finished
    std::int64_t batch = 0;  ///< batches of the next one that are done
    std::uint64_t seed = 0;
  };
  /// Weights, optimizer state, learning rate, the callbacks' states and the position as one checkpoint: <folder>/<name>.safetensors and
  /// <name>.yaml, each written to a temporary file, synced and renamed, the YAML last: without it there is none, or still the former one.
  void save(const std::string& folder, const std::string& name) const;
  /// How much of a checkpoint is taken.
  enum class Load {
    all,      ///< to go on training
    weights,  ///< to evaluate and predict
  };
  /// Reads what save wrote into this model, which is built from it if need be. Errors  name the file: missing, damaged, made by another
  /// model (the first differing parameter is named). Nothing of the model changes then.
  Position load(const std::string& yaml_file, Load what = Load::all);
  /// Epochs that fit has finished in this model's life, loads included.
  std::int64_t epochs_done() const;

  struct State;  ///< the runtime's own

 private:
  std::unique_ptr<State> state_;
};

/// True of the names of parameters that only training needs: optimizer state, gradients that wait.
bool is_training_state(const std::string& parameter);

/// The newest complete checkpoint in a folder; empty if there is none.
std::string newest_checkpoint(const std::string& folder);

}  // namespace tenon
