// SPDX-License-Identifier: Apache-2.0
// train/agreement.h - processes that train together begin with the same model, data and position.
#pragma once

#include <cstddef>
#include <exception>
#include <string>
#include <vector>

#include <tenon/data.h>
#include <tenon/model.h>

#include "train/checkpoint/checkpoint_file.h"
#include "train/model_state.h"

namespace tenon::train {

/// Compares what a fit depends on among the processes, then gives all of them the parameters of process 0.
/// Errors  a difference: names the process, what differs, and both sides. All processes get the same one.
void agree(Model::State& state, const Dataset& data, const FitOptions& options);

/// What one process has found of a checkpoint that each reads a part of.
struct CheckpointAnswer {
  enum class Kind { good, damaged, failed };
  std::string checkpoint = {};  ///< which one it reads; empty: it failed before it had one
  Kind kind = Kind::good;
  std::string reason = {};  ///< unless it is good
};
/// What process `rank` throws, if it is not good. The kind is the same on all processes: in this order, `failed` if they read different
/// checkpoints, `failed` if one of them has failed, and `damaged` if one has found damage, which lets all of them go on to the next one.
CheckpointAnswer verdict_on(const std::vector<CheckpointAnswer>& answers, std::size_t rank);

/// Called by every process when it has read its part of a checkpoint, or has failed to. `checkpoint`: null if it has not come to one.
/// Errors  of the same kind on all processes, see verdict_on: `failure` if it is of that kind, else that of another process, which is
/// named.
void agree_on_checkpoint(exec::ProcessGroup& processes, const CheckpointFile* checkpoint, const std::exception_ptr& failure);

}  // namespace tenon::train
