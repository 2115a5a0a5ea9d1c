// train/summary.h - a model as a table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tenon/model.h>

namespace tenon::train {

/// The table of appendix 2: Layer (type), Output Shape, Param #, FLOPs and device, then totals with bytes. `optimizer_parameters` counts
/// the numbers that optimizer state holds.
std::string summary_table(const std::string& name, const std::vector<LayerSummary>& layers, DType dtype, std::int64_t optimizer_parameters,
                          const std::string& device);

}  // namespace tenon::train
