// SPDX-License-Identifier: Apache-2.0
#include "train/fit_session.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace tenon::train {

void FitSession::begin(std::vector<Callback*> callbacks, const FitLength& length, std::vector<std::string> logged_names) {
  callbacks_ = std::move(callbacks);
  std::stable_partition(callbacks_.begin(), callbacks_.end(), [](const Callback* callback) { return !callback->runs_last(); });
  length_ = length;
  logged_names_ = std::move(logged_names);
  how_ = FitEnd::finished;
  stop_reason_.clear();
}

void FitSession::end() {
  callbacks_.clear();
  length_ = {};
  logged_names_.clear();
}

std::vector<std::string> FitSession::callback_names() const {
  std::vector<std::string> names;
  std::map<std::string, int> next_index;
  for (const Callback* callback : callbacks_) {
    const std::string name = callback->name();
    const int index = next_index[name]++;
    names.push_back(index == 0 ? name : fmt::format("{}_{}", name, index));
  }
  return names;
}

std::map<std::string, CallbackState> FitSession::callback_states() const {
  std::map<std::string, CallbackState> states;
  const std::vector<std::string> names = callback_names();
  for (std::size_t i = 0; i < names.size(); ++i) {
    CallbackState state = callbacks_[i]->state();
    if (!state.numbers.empty() || !state.tensors.empty()) states[names[i]] = std::move(state);
  }
  return states;
}

void FitSession::stop(FitEnd how, const std::string& reason) {
  if (how_ != FitEnd::finished) return;
  how_ = how;
  stop_reason_ = reason;
}

}  // namespace tenon::train
