// SPDX-License-Identifier: Apache-2.0
// train/agreement.h - processes that train together begin with the same model, data and position.
#pragma once

#include <exception>

#include <tenon/data.h>
#include <tenon/model.h>

#include "train/checkpoint_file.h"
#include "train/model_state.h"

namespace tenon::train {

/// Compares what a fit depends on among the processes, then gives all of them the parameters of process 0.
/// Errors  a difference: names the process, what differs, and both sides. All processes get the same one.
void agree(Model::State& state, const Dataset& data, const FitOptions& options);

/// Called by every process when it has read its part of a checkpoint, or has failed to: what one of them has found, all of them throw.
/// Errors  `failure`; else that of another process, which is named: DamagedCheckpoint if it was one; another process reads another
/// checkpoint.
void agree_on_checkpoint(exec::ProcessGroup& processes, const CheckpointFile& checkpoint, const std::exception_ptr& failure);

}  // namespace tenon::train
