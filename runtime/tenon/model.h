// tenon/model.h - layers that learn: build, compile, fit, evaluate, predict, save.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tenon/context.h>
#include <tenon/data.h>
#include <tenon/definition.h>
#include <tenon/program.h>

namespace tenon {

/// Named numbers in the order in which they are shown: loss first.
using Logs = std::vector<std::pair<std::string, double>>;

struct EpochLogs {
  std::int64_t epoch = 0;  ///< from 0
  Logs logs;               ///< loss, metrics, then val_loss, val_...
  double seconds = 0;
  std::int64_t samples = 0;
};
using History = std::vector<EpochLogs>;

/// What happens during fit, in the order of appendix 2: train begin; per epoch: begin, batches, validation, end; train end.
/// Threads  called on fit's own thread. An exception ends the fit and leaves it.
class Callback {
 public:
  virtual ~Callback() = default;
  virtual void train_begin(std::int64_t epochs, std::int64_t batches) { static_cast<void>(epochs), static_cast<void>(batches); }
  virtual void epoch_begin(std::int64_t epoch) { static_cast<void>(epoch); }
  /// `logs`: running means of this epoch, weighted by batch size.
  virtual void batch_end(std::int64_t batch, const Logs& logs) { static_cast<void>(batch), static_cast<void>(logs); }
  virtual void epoch_end(const EpochLogs& logs) { static_cast<void>(logs); }
  virtual void train_end() {}
};

struct CompileOptions {
  OptimizerDefinition optimizer = {};
  LossDefinition loss = {};
  std::vector<Metric> metrics = {};
};

struct FitOptions {
  std::int64_t batch_size = 32;
  std::int64_t epochs = 1;  ///< in all, those before a resume included
  bool shuffle = true;
  int workers = 1;                                      ///< threads that gather batches; 0: none
  std::int64_t steps_per_epoch = 0;                     ///< 0: the whole data set
  std::shared_ptr<const Dataset> validation = nullptr;  ///< evaluated after each epoch; may be null
  std::vector<Callback*> callbacks = {};
};

/// One row of the summary.
struct LayerSummary {
  std::string name, type;  ///< "dense_1", "Dense"
  Shape output;            ///< without the batch axis
  std::int64_t parameters = 0;
  std::int64_t flops = 0;  ///< of a forward pass, per sample
  std::string device;      ///< as asked for; empty: the model's
};

/// A sequence of layers with its parameters, optimizer state and step count.
/// Threads  one thread at a time; different models may be used at the same time.
class Model {
 public:
  /// Errors  a definition without layers, names given twice.
  explicit Model(ModelDefinition definition);
  explicit Model(std::vector<LayerDefinition> layers);
  ~Model();
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;

  /// Chooses context, optimizer, loss and metrics. Seed, determinism, precision and device are the context's configuration.
  /// Errors  a loss that does not fit the last layer.
  void compile(const Context& context, CompileOptions options);
  /// Makes the parameters for samples of this shape; fit, evaluate and predict do it by themselves.
  void build(const Shape& sample);

  /// Errors  a loss that is not finite (epoch and step are named; parameters stay as that step left them), and those of data and devices.
  History fit(const std::shared_ptr<const Dataset>& data, const FitOptions& options = {});
  /// Loss and metrics over the whole set, without dropout or gradients.
  Logs evaluate(const std::shared_ptr<const Dataset>& data, std::int64_t batch_size = 32);
  /// The model's output for x (n, sample...), as a host tensor (n, output...).
  Tensor predict(const Tensor& x, std::int64_t batch_size = 32);

  /// One training step on one batch; returns loss and metrics of that batch. What fit is made of.
  const Logs& train_batch(const Tensor& x, const Tensor& y);
  /// Steps taken since the parameters were made.
  std::int64_t step() const;

  const ModelDefinition& definition() const;
  /// Per layer; needs parameters (build). Errors  the shape is not known yet.
  std::vector<LayerSummary> layers() const;
  /// The table of appendix 2.
  std::string summary() const;
  ParameterStore& parameters();
  /// Where each node of a training step (or, without a loss, of a prediction) for this batch size goes.
  PlacementReport explain(std::int64_t batch_size);

  /// Weights, optimizer state, step and `position` as one checkpoint: <folder>/<name>.safetensors and <name>.yaml, each written to a
  /// temporary file, synced and renamed, the YAML last: a checkpoint without it does not exist.
  struct Position {
    std::int64_t epoch = 0;  ///< epochs finished
    std::uint64_t seed = 0;
  };
  void save(const std::string& folder, const std::string& name, const Position& position) const;
  /// Reads what save wrote into this model, which is built from it if need be. Errors  name the file: missing, damaged, made by another
  /// model (the first differing parameter is named). Nothing of the model changes then.
  Position load(const std::string& yaml_file);
  /// Epochs that fit has finished in this model's life, loads included.
  std::int64_t epochs_done() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The newest complete checkpoint in a folder; empty if there is none.
std::string newest_checkpoint(const std::string& folder);

}  // namespace tenon
