// SPDX-License-Identifier: Apache-2.0
// tenon/callbacks.h - callbacks for fit: checkpoints, early stopping, learning rate schedules,
// logs, curves.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <tenon/api.h>
#include <tenon/model.h>

namespace tenon {

/// The logged value that a callback monitors over the epochs.
struct Monitor {
  /// Which direction is an improvement.
  enum class Mode { automatic, min, max };  ///< automatic: max for accuracies, else min
  std::string name = {};                    ///< empty: val_loss, or loss without validation data
  Mode mode = Mode::automatic;
  double min_delta = 0;  ///< the value must improve by more than this
};

/// The best value of a monitor so far.
class TENON_API Best {
 public:
  /// Starts without a value.
  explicit Best(Monitor monitor) : monitor_(std::move(monitor)) {}
  /// True if this epoch's value is better than all before; NaN never is. Errors: no logged value of
  /// that name; the text lists those there are.
  bool improved(const EpochLogs& logs);
  /// Errors  none of these values is the monitored one; the text lists them.
  void check(const std::vector<std::string>& logged) const;
  /// The best value so far; nothing before the first epoch.
  const std::optional<double>& value() const { return value_; }
  /// Restores the value of an earlier run.
  void set(double value) { value_ = value; }
  /// Forgets the value.
  void clear() { value_.reset(); }

 private:
  /// The name of the monitored value.
  std::string resolve(const std::vector<std::string>& logged) const;
  Monitor monitor_;
  std::optional<double> value_;
};

namespace train {
class CheckpointFolder;
}

/// Saves a checkpoint every few epochs as <directory>/epoch-<n>, or <directory>/best whenever the
/// monitor improves. Of the epochs of its run the newest `keep` are kept; it removes nothing else.
/// During fit the folder is locked against other runs (<directory>/checkpoint.lock).
/// Errors  before the first epoch: a folder that cannot be written, that another run writes to, or
///         that has checkpoints of another run, or of later steps than this one starts from.
class TENON_API Checkpoint final : public Callback {
 public:
  /// The options of the callback.
  struct Options {
    /// The callback class.
    using Of = Checkpoint;
    std::string directory = {};
    std::int64_t every_epochs = 1;
    std::int64_t keep = 1;  ///< how many to keep; 0: all
    bool best = false;
    Monitor monitor = {};  ///< decides what is best
    /// replace the checkpoints that would be an error: they are removed when the first is saved
    bool overwrite = false;
  };
  /// Creates the callback.
  explicit Checkpoint(Options options);
  ~Checkpoint() override;
  std::string name() const override { return options_.best ? "checkpoint best" : "checkpoint"; }
  void train_begin(std::int64_t epochs, std::int64_t batches) override;
  void epoch_end(const EpochLogs& logs) override;
  CallbackState state() const override;
  void restore(const CallbackState& state) override;
  void train_end() override;
  bool runs_last() const override { return true; }
  bool allows_late_batch_end() const override { return true; }

 private:
  Options options_;
  Best best_;
  std::unique_ptr<train::CheckpointFolder> folder_;  // during fit
};

/// Stops when the monitor has not improved for `patience` epochs.
class TENON_API EarlyStopping final : public Callback {
 public:
  /// The options of the callback.
  struct Options {
    /// The callback class.
    using Of = EarlyStopping;
    Monitor monitor = {};
    std::int64_t patience = 0;
    bool restore_best = false;  ///< at the end of fit, restore the weights of the best epoch
  };
  /// Creates the callback.
  explicit EarlyStopping(Options options) : options_(std::move(options)), best_(options_.monitor) {}
  std::string name() const override { return "early_stopping"; }
  bool allows_late_batch_end() const override { return true; }
  void train_begin(std::int64_t epochs, std::int64_t batches) override;
  void epoch_end(const EpochLogs& logs) override;
  void train_end() override;
  CallbackState state() const override;
  void restore(const CallbackState& state) override;

 private:
  Options options_;
  Best best_;
  std::int64_t waited_ = 0;
  std::vector<NamedTensor> weights_;  ///< those of the best epoch, on the host
};

/// Multiplies the learning rate by `factor` when the monitor has not improved for `patience`
/// epochs.
class TENON_API ReduceOnPlateau final : public Callback {
 public:
  /// The options of the callback.
  struct Options {
    /// The callback class.
    using Of = ReduceOnPlateau;
    Monitor monitor = {};
    double factor = 0.1;
    std::int64_t patience = 10;
    std::int64_t cooldown = 0;  ///< epochs after a reduction that do not count towards `patience`
    double minimum = 0;         ///< lower bound of the rate
  };
  /// Creates the callback.
  explicit ReduceOnPlateau(Options options)
      : options_(std::move(options)), best_(options_.monitor) {}
  std::string name() const override { return "reduce_on_plateau"; }
  bool allows_late_batch_end() const override { return true; }
  void train_begin(std::int64_t epochs, std::int64_t batches) override;
  void epoch_end(const EpochLogs& logs) override;
  CallbackState state() const override;
  void restore(const CallbackState& state) override;

 private:
  Options options_;
  Best best_;
  std::int64_t waited_ = 0, cooling_ = 0;
};

/// Gives the optimizer a schedule, or computes the rate of each epoch with a function.
class TENON_API LearningRateSchedule final : public Callback {
 public:
  /// The options of the callback.
  struct Options {
    /// The callback class.
    using Of = LearningRateSchedule;
    Schedule schedule = {};
    std::optional<double> initial = {};  ///< nothing: the optimizer's initial rate
  };
  /// Creates the callback.
  explicit LearningRateSchedule(Options options) : options_(options) {}
  /// `function` maps (epoch from 0, current rate) to the rate of that epoch.
  explicit LearningRateSchedule(std::function<double(std::int64_t, double)> function)
      : function_(std::move(function)) {}
  std::string name() const override { return "learning_rate"; }
  bool allows_late_batch_end() const override { return true; }
  void train_begin(std::int64_t epochs, std::int64_t batches) override;
  void epoch_begin(std::int64_t epoch) override;

 private:
  Options options_;
  std::function<double(std::int64_t, double)> function_;
};

/// Stops the fit at a loss that is NaN or infinite instead of failing it.
class TENON_API TerminateOnNan final : public Callback {
 public:
  /// The options of the callback.
  struct Options {
    /// The callback class.
    using Of = TerminateOnNan;
  };
  /// Creates the callback.
  explicit TerminateOnNan(Options = {}) {}
  std::string name() const override { return "terminate_on_nan"; }
  void batch_end(std::int64_t batch, const Logs& logs, const BatchResult& result) override;
};

class LogFile;

/// Writes one line per epoch: epoch,loss,...,learning_rate,seconds. A resumed fit replaces the lines
/// of the epochs that it repeats and appends to the others, any other fit overwrites the file.
/// Errors  before the first epoch: a file that cannot be written.
class TENON_API CsvLog final : public Callback {
 public:
  /// The options of the callback.
  struct Options {
    /// The callback class.
    using Of = CsvLog;
    std::string file = {};
  };
  /// Creates the callback.
  explicit CsvLog(Options options);
  ~CsvLog() override;
  std::string name() const override { return "csv"; }
  bool allows_late_batch_end() const override { return true; }
  void train_begin(std::int64_t epochs, std::int64_t batches) override;
  void epoch_end(const EpochLogs& logs) override;

 private:
  Options options_;
  std::unique_ptr<LogFile> file_;
  std::vector<std::string> columns_;
};

/// Appends one JSON object per epoch to a file, and {"event":"test",...} at the end.
class TENON_API JsonLines final : public Callback {
 public:
  /// The options of the callback.
  struct Options {
    /// The callback class.
    using Of = JsonLines;
    std::string file = {};
  };
  /// Errors  a file that cannot be written.
  explicit JsonLines(Options options);
  ~JsonLines() override;
  std::string name() const override { return "json"; }
  bool allows_late_batch_end() const override { return true; }
  void epoch_end(const EpochLogs& logs) override;
  /// Writes the result of a test run.
  void test(const Logs& logs);
  /// Writes {"event":"confusion","matrix":[[...],...]}.
  void confusion(const Tensor& matrix);

 private:
  std::unique_ptr<LogFile> file_;
};

/// Writes event files for TensorBoard: <directory>/train and <directory>/validation, tags
/// epoch_loss, epoch_accuracy, ...
/// Errors  before the first epoch: a folder that cannot be written.
class TENON_API TensorBoard final : public Callback {
 public:
  /// The options of the callback.
  struct Options {
    /// The callback class.
    using Of = TensorBoard;
    std::string directory = {};
  };
  /// Creates the callback.
  explicit TensorBoard(Options options);
  ~TensorBoard() override;
  std::string name() const override { return "tensorboard"; }
  bool allows_late_batch_end() const override { return true; }
  void train_begin(std::int64_t epochs, std::int64_t batches) override;
  void epoch_end(const EpochLogs& logs) override;

 private:
  LogFile& writer(const char* part);
  Options options_;
  std::unique_ptr<LogFile> train_, validation_;
};

/// Writes loss and metrics over the epochs as a self-contained HTML page: at the end of the first
/// epoch and of the fit, and in between at the end of an epoch if the page is older than 3 seconds.
/// Errors  before the first epoch: a file that cannot be written.
class TENON_API Curves final : public Callback {
 public:
  /// The options of the callback.
  struct Options {
    /// The callback class.
    using Of = Curves;
    std::string file = {};
    std::string title = {};  ///< empty: "Training"
  };
  /// Creates the callback.
  explicit Curves(Options options) : options_(std::move(options)) {}
  /// Writes the page if a fit ended by an error after the last one.
  ~Curves() override;
  std::string name() const override { return "curves"; }
  bool allows_late_batch_end() const override { return true; }
  void train_begin(std::int64_t epochs, std::int64_t batches) override;
  void epoch_end(const EpochLogs& logs) override;
  void train_end() override;
  CallbackState state() const override;
  void restore(const CallbackState& state) override;

 private:
  void write();
  Options options_;
  History history_;
  std::size_t written_ = 0;                                // epochs on the page
  std::chrono::steady_clock::time_point last_write_ = {};  // none yet
};

/// Calls the caller's functions.
class TENON_API LambdaCallback final : public Callback {
 public:
  /// Empty functions are not called.
  struct Functions {
    std::string name = "lambda";
    std::function<void(std::int64_t epochs, std::int64_t batches)> train_begin = nullptr;
    std::function<void(std::int64_t epoch)> epoch_begin = nullptr;
    std::function<void(std::int64_t batch, const Logs&, const BatchResult&)> batch_end = nullptr;
    std::function<void(const EpochLogs&)> epoch_end = nullptr;
    std::function<void()> train_end = nullptr;
    bool late_batch_end = false;  ///< see Callback::allows_late_batch_end
  };
  /// Creates the callback.
  explicit LambdaCallback(Functions functions) : functions_(std::move(functions)) {}
  std::string name() const override { return functions_.name; }
  bool allows_late_batch_end() const override {
    return functions_.late_batch_end || functions_.batch_end == nullptr;
  }
  void train_begin(std::int64_t epochs, std::int64_t batches) override;
  void epoch_begin(std::int64_t epoch) override;
  void batch_end(std::int64_t batch, const Logs& logs, const BatchResult& result) override;
  void epoch_end(const EpochLogs& logs) override;
  void train_end() override;

 private:
  Functions functions_;
};

/// Every callback that a train.yaml may name.
using CallbackDefinition =
    std::variant<Checkpoint::Options, EarlyStopping::Options, ReduceOnPlateau::Options,
                 LearningRateSchedule::Options, TerminateOnNan::Options, CsvLog::Options,
                 JsonLines::Options, TensorBoard::Options, Curves::Options>;
TENON_API std::unique_ptr<Callback> make_callback(const CallbackDefinition& definition);

}  // namespace tenon
