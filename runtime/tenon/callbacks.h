// tenon/callbacks.h - what fit can do besides training: stop early, save the best, write logs, draw curves.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <tenon/model.h>

namespace tenon {

/// The number that a callback watches over the epochs.
struct Monitor {
  /// Which way is better.
  enum class Mode { automatic, min, max };  ///< automatic: max for accuracies, else min
  std::string name = {};                    ///< "": val_loss, or loss without validation data
  Mode mode = Mode::automatic;
  double min_delta = 0;  ///< an improvement is more than this
};

/// The best value of a monitor so far.
class Best {
 public:
  /// Nothing seen yet.
  explicit Best(Monitor monitor) : monitor_(std::move(monitor)) {}
  /// True if this epoch is better than all before. NaN never is.
  /// Errors  nothing of that name is logged; it lists what is.
  bool improved(const EpochLogs& logs);
  /// The best so far; nothing before the first.
  const std::optional<double>& value() const { return value_; }
  /// Takes up an earlier run.
  void set(double value) { value_ = value; }
  /// Forgets.
  void clear() { value_.reset(); }

 private:
  Monitor monitor_;
  std::optional<double> value_;
};

/// A checkpoint every few epochs, <directory>/epoch-<n>, the newest ones kept; or <directory>/best whenever the monitor improves.
class Checkpoint final : public Callback {
 public:
  /// What the user may choose.
  struct Options {
    /// The callback that these are for.
    using Of = Checkpoint;
    std::string directory = {};
    std::int64_t every_epochs = 1;
    std::int64_t keep = 1;  ///< newest that stay; 0: all
    bool best = false;
    Monitor monitor = {};  ///< of best
  };
  /// With these options.
  explicit Checkpoint(Options options) : options_(std::move(options)), best_(options_.monitor) {}
  std::string name() const override { return options_.best ? "checkpoint best" : "checkpoint"; }
  void epoch_end(const EpochLogs& logs) override;
  CallbackState state() const override;
  void restore(const CallbackState& state) override;
  bool goes_last() const override { return true; }

 private:
  void prune() const;
  Options options_;
  Best best_;
};

/// Stops when the monitor has not improved for `patience` epochs.
class EarlyStopping final : public Callback {
 public:
  /// What the user may choose.
  struct Options {
    /// The callback that these are for.
    using Of = EarlyStopping;
    Monitor monitor = {};
    std::int64_t patience = 0;
    bool restore_best = false;  ///< at the end of fit the weights are those of the best epoch
  };
  /// With these options.
  explicit EarlyStopping(Options options) : options_(std::move(options)), best_(options_.monitor) {}
  std::string name() const override { return "early_stopping"; }
  void train_begin(std::int64_t epochs, std::int64_t batches) override;
  void epoch_end(const EpochLogs& logs) override;
  void train_end() override;
  CallbackState state() const override;
  void restore(const CallbackState& state) override;

 private:
  Options options_;
  Best best_;
  std::int64_t waited_ = 0;
  std::vector<NamedTensor> weights_;  ///< of the best epoch, on the host
};

/// Multiplies the learning rate by `factor` when the monitor has not improved for `patience` epochs.
class ReduceOnPlateau final : public Callback {
 public:
  /// What the user may choose.
  struct Options {
    /// The callback that these are for.
    using Of = ReduceOnPlateau;
    Monitor monitor = {};
    double factor = 0.1;
    std::int64_t patience = 10;
    std::int64_t cooldown = 0;  ///< epochs after a cut in which none is counted
    double minimum = 0;         ///< the rate never goes below
  };
  /// With these options.
  explicit ReduceOnPlateau(Options options) : options_(std::move(options)), best_(options_.monitor) {}
  std::string name() const override { return "reduce_on_plateau"; }
  void train_begin(std::int64_t epochs, std::int64_t batches) override;
  void epoch_end(const EpochLogs& logs) override;
  CallbackState state() const override;
  void restore(const CallbackState& state) override;

 private:
  Options options_;
  Best best_;
  std::int64_t waited_ = 0, cooling_ = 0;
};

/// Gives the optimizer a schedule, or calls a function for the rate of each epoch.
class LearningRateSchedule final : public Callback {
 public:
  /// What the user may choose.
  struct Options {
    /// The callback that these are for.
    using Of = LearningRateSchedule;
    Schedule schedule = {};
    std::optional<double> initial = {};  ///< nothing: the optimizer's own
  };
  /// With these options.
  explicit LearningRateSchedule(Options options) : options_(options) {}
  /// rate = function(epoch from 0, the rate so far).
  explicit LearningRateSchedule(std::function<double(std::int64_t, double)> function) : function_(std::move(function)) {}
  std::string name() const override { return "learning_rate"; }
  void train_begin(std::int64_t epochs, std::int64_t batches) override;
  void epoch_begin(std::int64_t epoch) override;

 private:
  Options options_;
  std::function<double(std::int64_t, double)> function_;
};

/// A loss that is NaN or infinite stops the fit instead of failing it.
class TerminateOnNan final : public Callback {
 public:
  /// What the user may choose.
  struct Options {
    /// The callback that these are for.
    using Of = TerminateOnNan;
  };
  /// With these options.
  explicit TerminateOnNan(Options = {}) {}
  std::string name() const override { return "terminate_on_nan"; }
  void batch_end(std::int64_t batch, const Logs& logs) override;
};

class LogFile;

/// One line per epoch: epoch,loss,...,learning_rate,seconds. A resumed fit appends to the file, another one starts it anew.
class CsvLog final : public Callback {
 public:
  /// What the user may choose.
  struct Options {
    /// The callback that these are for.
    using Of = CsvLog;
    std::string file = {};
  };
  /// With these options.
  explicit CsvLog(Options options);
  ~CsvLog() override;
  std::string name() const override { return "csv"; }
  void epoch_end(const EpochLogs& logs) override;

 private:
  Options options_;
  std::unique_ptr<LogFile> file_;
  std::vector<std::string> columns_;
};

/// One JSON object per epoch, and last {"event":"test",...}, appended to a file as they happen.
class JsonLines final : public Callback {
 public:
  /// What the user may choose.
  struct Options {
    /// The callback that these are for.
    using Of = JsonLines;
    std::string file = {};
  };
  /// Errors  a file that cannot be written.
  explicit JsonLines(Options options);
  ~JsonLines() override;
  std::string name() const override { return "json"; }
  void epoch_end(const EpochLogs& logs) override;
  /// Writes the result of a test.
  void test(const Logs& logs);
  /// {"event":"confusion","matrix":[[...],...]}
  void confusion(const Tensor& matrix);

 private:
  std::unique_ptr<LogFile> file_;
};

/// Event files for TensorBoard: <directory>/train and <directory>/validation, tags epoch_loss, epoch_accuracy, ...
class TensorBoard final : public Callback {
 public:
  /// What the user may choose.
  struct Options {
    /// The callback that these are for.
    using Of = TensorBoard;
    std::string directory = {};
  };
  /// With these options.
  explicit TensorBoard(Options options);
  ~TensorBoard() override;
  std::string name() const override { return "tensorboard"; }
  void epoch_end(const EpochLogs& logs) override;

 private:
  LogFile& writer(const char* part);
  Options options_;
  std::unique_ptr<LogFile> train_, validation_;
};

/// Loss and metrics over the epochs as a page of HTML that needs nothing else; written anew after each epoch.
class Curves final : public Callback {
 public:
  /// What the user may choose.
  struct Options {
    /// The callback that these are for.
    using Of = Curves;
    std::string file = {};
    std::string title = {};  ///< "": Training
  };
  /// With these options.
  explicit Curves(Options options) : options_(std::move(options)) {}
  std::string name() const override { return "curves"; }
  void train_begin(std::int64_t epochs, std::int64_t batches) override;
  void epoch_end(const EpochLogs& logs) override;
  CallbackState state() const override;
  void restore(const CallbackState& state) override;

 private:
  Options options_;
  History history_;
};

/// Functions of the caller's; those left empty are not called.
class LambdaCallback final : public Callback {
 public:
  /// Each may be empty.
  struct Functions {
    std::string name = "lambda";
    std::function<void(std::int64_t epochs, std::int64_t batches)> train_begin = nullptr;
    std::function<void(std::int64_t epoch)> epoch_begin = nullptr;
    std::function<void(std::int64_t batch, const Logs&)> batch_end = nullptr;
    std::function<void(const EpochLogs&)> epoch_end = nullptr;
    std::function<void()> train_end = nullptr;
  };
  /// Calls these.
  explicit LambdaCallback(Functions functions) : functions_(std::move(functions)) {}
  std::string name() const override { return functions_.name; }
  void train_begin(std::int64_t epochs, std::int64_t batches) override;
  void epoch_begin(std::int64_t epoch) override;
  void batch_end(std::int64_t batch, const Logs& logs) override;
  void epoch_end(const EpochLogs& logs) override;
  void train_end() override;

 private:
  Functions functions_;
};

/// Every callback that a train.yaml may name. A new one is a class with Options, a line here and its reader in config/callbacks_yaml.cpp.
using CallbackDefinition =
    std::variant<Checkpoint::Options, EarlyStopping::Options, ReduceOnPlateau::Options, LearningRateSchedule::Options,
                 TerminateOnNan::Options, CsvLog::Options, JsonLines::Options, TensorBoard::Options, Curves::Options>;
std::unique_ptr<Callback> make_callback(const CallbackDefinition& definition);

}  // namespace tenon
