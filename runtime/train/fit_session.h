// SPDX-License-Identifier: Apache-2.0
// train/fit_session.h - what lasts for a call of fit.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <tenon/model.h>

#include "train/checkpoint/training_progress.h"
#include "train/datasets/feed.h"

namespace tenon::train {

/// The callbacks, the length and the end of the current or the last fit.
class FitSession {
 public:
  /// Callbacks that save are called after all others.
  void begin(std::vector<Callback*> callbacks, const FitLength& length, std::vector<std::string> logged_names);
  /// Forgets the callbacks, which the caller may destroy, and the length.
  void end();

  /// Those of the current fit; empty outside.
  const std::vector<Callback*>& callbacks() const { return callbacks_; }
  /// The name of each callback, with a suffix if several share it.
  std::vector<std::string> callback_names() const;
  /// The states of the callbacks that have any, by these names.
  std::map<std::string, CallbackState> callback_states() const;
  const FitLength& length() const { return length_; }
  /// The names of the values of an epoch; empty outside.
  const std::vector<std::string>& logged_names() const { return logged_names_; }

  /// Requests that the fit stops after the current step. The first call decides.
  void stop(FitEnd how, const std::string& reason);
  /// How the fit ended, or is about to.
  FitEnd how() const { return how_; }
  const std::string& stop_reason() const { return stop_reason_; }

  FeedBuffers training_buffers, evaluation_buffers;  ///< separate, since callbacks may evaluate during an epoch

 private:
  std::vector<Callback*> callbacks_;
  FitLength length_;
  std::vector<std::string> logged_names_;
  FitEnd how_ = FitEnd::finished;
  std::string stop_reason_;
};

}  // namespace tenon::train
