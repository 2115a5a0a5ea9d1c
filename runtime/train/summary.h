// SPDX-License-Identifier: Apache-2.0
// train/summary.h - the summary of a model as a table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tenon/model.h>

namespace tenon::train {

/// A table of Layer (type), Output Shape, Param #, FLOPs and Device, then totals with bytes. `optimizer_parameters` is the number of
/// elements of the optimizer state.
std::string summary_table(const std::string& name, const std::vector<LayerSummary>& layers, DType dtype, std::int64_t optimizer_parameters,
                          const std::string& device);

}  // namespace tenon::train
