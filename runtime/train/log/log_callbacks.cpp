// SPDX-License-Identifier: Apache-2.0
// Callbacks that write logs: CSV, JSON Lines, TensorBoard.
#include <fmt/core.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>

#include <tenon/callbacks.h>

#include "io/atomic_file.h"
#include "io/csv_row.h"
#include "platform/path.h"
#include "platform/system.h"
#include "train/log/event_file.h"
#include "train/log/log_file.h"
#include "yaml/json.h"

namespace tenon {
namespace {

double unix_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// The header and the lines of the first `epochs` epochs of a log; empty if there is no such file or it is empty.
std::string lines_before(const std::string& path, std::int64_t epochs) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(platform::path_of(path), ignored)) return "";
  std::ifstream file(platform::path_of(path), std::ios::binary);
  std::string kept, line;
  while (std::getline(file, line)) {
    std::int64_t epoch = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), epoch);
    const bool whole = !file.eof();  // the last line of a killed run may be cut off
    if (whole && (kept.empty() || (error == std::errc() && epoch <= epochs))) kept += line + "\n";
  }
  return kept;
}

}  // namespace

// ---------------------------------------------------------------- CSV

CsvLog::CsvLog(Options options) : options_(std::move(options)) {}
CsvLog::~CsvLog() = default;

void CsvLog::train_begin(std::int64_t, std::int64_t) {
  const LogFile check(options_.file, LogFile::Mode::append);  // nothing is lost if another callback refuses to begin
}

void CsvLog::epoch_end(const EpochLogs& logs) {
  if (file_ == nullptr) {
    // What an earlier part of the same run wrote is kept, but for epochs that are repeated, as after a kill.
    const std::string kept = logs.epoch > 0 ? lines_before(options_.file, logs.epoch) : "";
    if (!kept.empty()) io::write_atomically(options_.file, kept, io::Durability::until_crash);
    file_ = std::make_unique<LogFile>(options_.file, kept.empty() ? LogFile::Mode::truncate : LogFile::Mode::append);
    for (const auto& [name, value] : logs.logs) columns_.push_back(name);
    std::vector<std::string> header{"epoch"};
    header.insert(header.end(), columns_.begin(), columns_.end());
    header.insert(header.end(), {"learning_rate", "seconds", "samples_per_second"});
    if (kept.empty()) file_->write(io::csv_row(header) + "\n");
  }
  std::string line = std::to_string(logs.epoch + 1);
  for (const std::string& column : columns_) {
    line += ",";
    for (const auto& [name, value] : logs.logs) {
      if (name == column) line += fmt::format("{}", value);
    }
  }
  file_->write(fmt::format("{},{},{:.3f},{:.1f}\n", line, logs.learning_rate, logs.seconds, logs.samples_per_second()));
}

// ---------------------------------------------------------------- JSON Lines

JsonLines::JsonLines(Options options) : file_(std::make_unique<LogFile>(options.file)) {}
JsonLines::~JsonLines() = default;

void JsonLines::epoch_end(const EpochLogs& logs) {
  Json object;
  object["epoch"] = logs.epoch + 1;
  for (const auto& [name, value] : logs.logs) object[name] = value;
  object["learning_rate"] = logs.learning_rate;
  object["seconds"] = logs.seconds;
  object["samples_per_second"] = logs.samples_per_second();
  file_->write(json_text(object) + "\n");
}

void JsonLines::test(const Logs& logs) {
  Json object;
  object["event"] = "test";
  for (const auto& [name, value] : logs) object[name] = value;
  file_->write(json_text(object) + "\n");
}

void JsonLines::confusion(const Tensor& matrix) {
  Json rows = Json::array();
  const std::int64_t* counts = matrix.data<std::int64_t>();
  const std::int64_t classes = matrix.shape()[0];
  for (std::int64_t r = 0; r < classes; ++r) rows.push_back(std::vector<std::int64_t>(counts + r * classes, counts + (r + 1) * classes));
  Json object;
  object["event"] = "confusion";
  object["matrix"] = rows;
  file_->write(json_text(object) + "\n");
}

// ---------------------------------------------------------------- TensorBoard

TensorBoard::TensorBoard(Options options) : options_(std::move(options)) {}
TensorBoard::~TensorBoard() = default;

LogFile& TensorBoard::writer(const char* part) {
  std::unique_ptr<LogFile>& file = part == std::string_view("train") ? train_ : validation_;
  if (file == nullptr) {
    const double now = unix_seconds();
    // TensorBoard reads the files of a folder in the order of their names.
    static std::atomic<int> number{0};
    const std::string path = fmt::format("{}/{}/events.out.tfevents.{:010}.{}.{}.{}", options_.directory, part,
                                         static_cast<std::int64_t>(now), platform::host_name(), platform::process_id(), number++);
    file = std::make_unique<LogFile>(path);
    file->write(train::tf_record(train::version_event(now)));
  }
  return *file;
}

void TensorBoard::train_begin(std::int64_t, std::int64_t) {
  writer("train");
}

void TensorBoard::epoch_end(const EpochLogs& logs) {
  Logs train, validation;
  for (const auto& [name, value] : logs.logs) {
    const bool of_validation = name.starts_with("val_");
    (of_validation ? validation : train).emplace_back("epoch_" + (of_validation ? name.substr(4) : name), value);
  }
  train.emplace_back("epoch_learning_rate", logs.learning_rate);
  const double now = unix_seconds();
  writer("train").write(train::tf_record(train::scalars_event(now, logs.epoch, train)));
  if (!validation.empty()) writer("validation").write(train::tf_record(train::scalars_event(now, logs.epoch, validation)));
}

}  // namespace tenon
