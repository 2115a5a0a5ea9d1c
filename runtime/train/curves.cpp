// The callback that draws.
#include <cmath>
#include <cstdlib>
#include <filesystem>

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
  if (!folder.empty()) std::filesystem::create_directories(folder, code);  // a failure shows when the file is written
  io::write_atomically(options_.file, train::curves_page(options_.title.empty() ? "Training" : options_.title, history_));
}

namespace {

/// A number of an epoch in a state: "000003 1 val_loss", which sorts as it was logged.
std::string key_of(const EpochLogs& epoch, std::size_t index) {
  std::string number = std::to_string(epoch.epoch), position = std::to_string(index);
  number.insert(0, number.size() < 6 ? 6 - number.size() : 0, '0');
  position.insert(0, position.size() < 2 ? 2 - position.size() : 0, '0');
  return number + " " + position + " " + epoch.logs[index].first;
}

}  // namespace

CallbackState Curves::state() const {
  CallbackState state;
  for (const EpochLogs& epoch : history_) {
    for (std::size_t i = 0; i < epoch.logs.size(); ++i) {
      if (std::isfinite(epoch.logs[i].second)) state.numbers[key_of(epoch, i)] = epoch.logs[i].second;
    }
  }
  return state;
}

void Curves::restore(const CallbackState& state) {
  history_.clear();
  for (const auto& [key, value] : state.numbers) {
    const std::size_t first = key.find(' '), second = key.find(' ', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::int64_t epoch = std::atoll(key.c_str());
    if (history_.empty() || history_.back().epoch != epoch) history_.push_back({.epoch = epoch, .logs = {}});
    history_.back().logs.emplace_back(key.substr(second + 1), value);
  }
}

}  // namespace tenon
