// SPDX-License-Identifier: Apache-2.0
// train/agreement.h - processes that train together begin with the same model, data and position.
#pragma once

#include <tenon/data.h>
#include <tenon/model.h>

#include "train/model_state.h"

namespace tenon::train {

/// Compares what a fit depends on among the processes, then gives all of them the parameters of process 0.
/// Errors  a difference: names the process, what differs, and both sides. All processes get the same one.
void agree(Model::State& state, const Dataset& data, const FitOptions& options);

}  // namespace tenon::train
