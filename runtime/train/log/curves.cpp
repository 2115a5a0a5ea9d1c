// SPDX-License-Identifier: Apache-2.0
// The callback that plots training curves.
#include <chrono>
#include <exception>
#include <filesystem>
#include <map>

#include <tenon/callbacks.h>

#include "core/log.h"
#include "io/atomic_file.h"
#include "platform/path.h"
#include "train/log/curves_page.h"
#include "train/log/log_file.h"

namespace tenon {

namespace {

constexpr std::chrono::seconds interval{3};  ///< between two writes, whose time grows with the number of epochs

}  // namespace

Curves::~Curves() {
  try {
    train_end();
  } catch (const std::exception& error) {
    log::warning("{}", error.what());
  }
}

void Curves::train_begin(std::int64_t, std::int64_t) {
  history_.clear();
  written_ = 0;
  last_write_ = {};
  const LogFile check(options_.file, LogFile::Mode::append);
}

void Curves::epoch_end(const EpochLogs& logs) {
  history_.push_back(logs);
  if (last_write_ == decltype(last_write_){} || std::chrono::steady_clock::now() - last_write_ >= interval) write();
}

void Curves::train_end() {
  if (written_ != history_.size()) write();
}

void Curves::write() {
  const std::filesystem::path folder = platform::path_of(options_.file).parent_path();
  std::error_code code;
  if (!folder.empty()) std::filesystem::create_directories(folder, code);  // a failure is reported when the file is written
  written_ = history_.size();
  const std::string page = train::curves_page(options_.title.empty() ? "Training" : options_.title, history_);
  io::write_atomically(options_.file, page, io::Durability::until_crash);
  last_write_ = std::chrono::steady_clock::now();
}

// One f64 tensor (epochs, 2) of epoch and value per metric: "00 loss", "01 accuracy". The prefix keeps their order, since names are sorted.

CallbackState Curves::state() const {
  std::map<std::string, std::vector<double>> series;
  for (const EpochLogs& epoch : history_) {
    for (std::size_t i = 0; i < epoch.logs.size(); ++i) {
      const std::string position = std::to_string(i);
      std::vector<double>& own = series[(i < 10 ? "0" : "") + position + " " + epoch.logs[i].first];
      own.insert(own.end(), {static_cast<double>(epoch.epoch), epoch.logs[i].second});
    }
  }
  CallbackState state;
  for (const auto& [name, values] : series) {
    state.tensors.push_back({name, Tensor::of(values, {static_cast<std::int64_t>(values.size() / 2), 2})});
  }
  return state;
}

void Curves::restore(const CallbackState& state) {
  std::map<std::string, Tensor> sorted;
  for (const NamedTensor& series : state.tensors) sorted[series.name] = series.tensor;
  std::map<std::int64_t, EpochLogs> epochs;
  for (const auto& [name, series] : sorted) {
    const double* values = series.data<double>();
    for (std::int64_t i = 0; i < series.count() / 2; ++i) {
      const auto index = static_cast<std::int64_t>(values[2 * i]);
      EpochLogs& epoch = epochs[index];
      epoch.epoch = index;
      epoch.logs.emplace_back(name.substr(name.find(' ') + 1), values[2 * i + 1]);
    }
  }
  history_.clear();
  written_ = 0;
  for (auto& [index, epoch] : epochs) history_.push_back(std::move(epoch));
}

}  // namespace tenon
