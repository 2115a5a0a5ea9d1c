// SPDX-License-Identifier: Apache-2.0
#include "train/log/progress.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <utility>

#include "io/utf8.h"
#include "platform/streams.h"
#include "platform/system.h"

namespace tenon::train {
namespace {

constexpr int bar_width = 20;
constexpr double redraw_seconds = 0.05;
constexpr const char* segment = "\u2501";  // ━

std::string repeated(const char* text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

/// "2026/01/02 03:04:05", local time.
std::string now() {
  const std::tm local = platform::local_time(std::time(nullptr));
  char text[32];
  std::strftime(text, sizeof text, "%Y/%m/%d %H:%M:%S", &local);
  return text;
}

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

std::string format_value(double value) {
  return std::abs(value) > 1e-3 ? fmt::format("{:.4f}", value) : fmt::format("{:.4e}", value);
}

std::string format_remaining(double seconds) {
  const auto s = static_cast<std::int64_t>(seconds);
  if (s > 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s % 3600 / 60, s % 60);
  if (s > 60) return fmt::format("{}:{:02}", s / 60, s % 60);
  return fmt::format("{}s", s);
}

std::string format_per_step(double seconds) {
  if (seconds >= 1 || seconds == 0) return fmt::format(" {:.0f}s/step", seconds);
  if (seconds >= 1e-3) return fmt::format(" {:.0f}ms/step", seconds * 1e3);
  return fmt::format(" {:.0f}us/step", seconds * 1e6);
}

ProgressOptions progress_on_stdout(int verbose, std::function<void(const std::string&)> write) {
  const char* const no_colour = std::getenv("NO_COLOR");
  return {.verbose = verbose,
          .terminal = platform::obeys_escape_sequences(stdout),
          .write = std::move(write),
          .clock = nullptr,
          .colour = no_colour == nullptr || *no_colour == '\0',
          .columns = [] { return platform::terminal_columns(stdout); }};
}

ProgressBar::ProgressBar(ProgressOptions options) : options_(std::move(options)) {
  if (!options_.clock) options_.clock = steady_seconds;
}

ProgressBar::~ProgressBar() {
  try {
    ProgressBar::train_end();
  } catch (...) {  // the text is lost
  }
}

void ProgressBar::train_begin(std::int64_t epochs, std::int64_t batches) {
  epochs_ = epochs;
  batches_ = batches;
}

void ProgressBar::epoch_begin(std::int64_t epoch) {
  if (options_.verbose > 0 && epochs_ > 1) options_.write(fmt::format("Epoch {}/{}\n", epoch + 1, epochs_));
  begin_ = options_.clock();
  after_first_ = drawn_ = begin_;
  done_ = 0;
}

std::string ProgressBar::line(std::int64_t done, const std::string& time, const Logs& logs, double per_step) const {
  const int width = static_cast<int>(std::to_string(batches_).size());
  const std::string count = fmt::format("{:>{}}/{} ", done, width, batches_);
  const bool lines = options_.verbose == 2;
  std::string rest = (lines ? "- " + time + " -" : time) + format_per_step(per_step);
  Logs sorted = logs;
  std::sort(sorted.begin(), sorted.end());  // as Keras shows them: accuracy before loss
  for (const auto& [name, value] : sorted) rest += " - " + name + ": " + format_value(value);
  if (lines) return count + rest;

  const int columns = options_.terminal && options_.columns ? options_.columns() : 0;
  if (columns > 0 && count.size() + bar_width + 1 + rest.size() >= static_cast<std::size_t>(columns)) {
    const std::string text = count + rest;
    return done < batches_ ? text.substr(0, character_begin(text, static_cast<std::size_t>(columns - 1))) : text;
  }
  const int green = batches_ > 0 ? static_cast<int>(bar_width * done / batches_) : bar_width;
  const std::string left = repeated(segment, green), right = repeated(segment, bar_width - green);
  const bool colour = options_.terminal && options_.colour;
  return count + (colour ? "\033[32m" + left + "\033[0m\033[37m" + right + "\033[0m" : left + right) + " " + rest;
}

void ProgressBar::batch_end(std::int64_t batch, const Logs& logs, const BatchResult&) {
  const double now = options_.clock();
  done_ = batch + 1;
  if (batch == 0) after_first_ = now;  // compilation and first touches would distort the time per step
  if (options_.verbose != 1 || !options_.terminal || done_ == batches_ || now - drawn_ < redraw_seconds) return;
  drawn_ = now;
  const double per_step = done_ > 1 ? (now - after_first_) / static_cast<double>(done_ - 1) : now - begin_;
  options_.write("\r" + line(done_, format_remaining(per_step * static_cast<double>(batches_ - done_)), logs, per_step) + "\033[K");
  line_open_ = true;
}

void ProgressBar::epoch_end(const EpochLogs& logs) {
  if (options_.verbose == 0) return;
  const double now = options_.clock();
  const double per_step = done_ > 1 ? (now - after_first_) / static_cast<double>(done_ - 1) : now - begin_;
  const std::string text = line(batches_, fmt::format("{:.0f}s", now - begin_), logs.logs, per_step);
  options_.write((options_.terminal && options_.verbose == 1 ? "\r" + text + "\033[K" : text) + "\n");
  line_open_ = false;
}

void ProgressBar::train_end() {
  if (line_open_) options_.write("\n");
  line_open_ = false;
}

GorgoniaLog::GorgoniaLog(std::string device, std::function<void(const std::string&)> write, std::function<std::string()> date_time)
    : device_(std::move(device)), write_(std::move(write)), date_time_(std::move(date_time)) {
  if (!date_time_) date_time_ = now;
}

void GorgoniaLog::print(const std::string& text) const {
  write_(date_time_() + " " + text + "\n");
}

void GorgoniaLog::train_begin(std::int64_t, std::int64_t batches) {
  print(fmt::format("Using backend {} ({})", device_.substr(0, device_.find(':')), device_));
  print(fmt::format("Batches {}", batches));
}

void GorgoniaLog::epoch_end(const EpochLogs& logs) {
  print(fmt::format("Epoch {} | cost {:.4f}", logs.epoch, logs.logs[0].second));
}
void GorgoniaLog::test_begin() {
  print("Run Tests");
}
void GorgoniaLog::test_end(double cost) {
  print(fmt::format("Epoch Test | cost {:.4f}", cost));
}

}  // namespace tenon::train
