// SPDX-License-Identifier: Apache-2.0
// The callback that plots training curves.
#include <filesystem>
#include <map>

#include <tenon/callbacks.h>

#include "io/atomic_file.h"
#include "train/curves_page.h"

namespace tenon {

void Curves::train_begin(std::int64_t, std::int64_t) {
  history_.clear();
}

void Curves::epoch_end(const EpochLogs& logs) {
  history_.push_back(logs);
  const std::filesystem::path folder = std::filesystem::path(options_.file).parent_path();
  std::error_code code;
  if (!folder.empty()) std::filesystem::create_directories(folder, code);  // a failure is reported when the file is written
  io::write_atomically(options_.file, train::curves_page(options_.title.empty() ? "Training" : options_.title, history_));
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
  for (auto& [index, epoch] : epochs) history_.push_back(std::move(epoch));
}

}  // namespace tenon
