// SPDX-License-Identifier: Apache-2.0
// train/log/progress.h - progress output during training, in the style of Keras or Gorgonia.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <tenon/model.h>

namespace tenon::train {

/// "0.4982", "3.1000e-05": four digits after the point, with an exponent up to 1e-3.
std::string format_value(double value);
/// "5s", "1:05", "1:01:05": the remaining time.
std::string format_remaining(double seconds);
/// " 2ms/step", in the unit that fits.
std::string format_per_step(double seconds);

using Clock = std::function<double()>;  ///< seconds from an arbitrary start

struct ProgressOptions {
  int verbose = 1;                                ///< 0: nothing; 1: bar; 2: a line per epoch
  bool terminal = false;                          ///< redraw, at most every 0.05 s; otherwise one line per epoch
  std::function<void(const std::string&)> write;  ///< receives the text
  Clock clock;                                    ///< null: the steady clock
  bool colour = true;                             ///< of what is redrawn
  std::function<int()> columns;                   ///< the width of the terminal; null or 0: not known
};

/// For a program's standard output, as it is: a file, a terminal of some width, one without escape sequences (TERM=dumb) or without
/// colours (NO_COLOR, https://no-color.org).
ProgressOptions progress_on_stdout(int verbose, std::function<void(const std::string&)> write);

/// Keras-like: "Epoch 1/5", "1875/1875 ━━━━ 3s 2ms/step - loss: 0.4982 - accuracy: 0.8254".
class ProgressBar final : public Callback {
 public:
  explicit ProgressBar(ProgressOptions options);
  /// Ends a line that is open after an error, for what is written next.
  ~ProgressBar() override;
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  std::string name() const override { return "progress"; }
  bool allows_late_batch_end() const override { return true; }
  void train_begin(std::int64_t epochs, std::int64_t batches) override;
  void epoch_begin(std::int64_t epoch) override;
  void batch_end(std::int64_t batch, const Logs& logs, const BatchResult& result) override;
  void epoch_end(const EpochLogs& logs) override;
  /// Ends the line of an epoch that was stopped early.
  void train_end() override;

 private:
  /// What is wider than the terminal, which cannot redraw such a line, leaves out the bar, and until the epoch is complete also its end.
  std::string line(std::int64_t done, const std::string& time, const Logs& logs, double per_step) const;

  ProgressOptions options_;
  std::int64_t epochs_ = 0, batches_ = 0, done_ = 0;
  double begin_ = 0, after_first_ = 0, drawn_ = 0;
  bool line_open_ = false;  ///< the cursor is after a progress bar
};

/// log_style: gorgonia. Lines "<date time> Batches 600", "<date time> Epoch 0 | cost 0.1234".
class GorgoniaLog final : public Callback {
 public:
  GorgoniaLog(std::string device, std::function<void(const std::string&)> write, std::function<std::string()> date_time = nullptr);
  std::string name() const override { return "gorgonia log"; }
  bool allows_late_batch_end() const override { return true; }
  void train_begin(std::int64_t epochs, std::int64_t batches) override;
  void epoch_end(const EpochLogs& logs) override;
  /// "Run Tests", then "Epoch Test | cost ...".
  void test_begin();
  void test_end(double cost);

 private:
  void print(const std::string& text) const;
  std::string device_;
  std::function<void(const std::string&)> write_;
  std::function<std::string()> date_time_;
};

}  // namespace tenon::train
