// SPDX-License-Identifier: Apache-2.0
// train/datasets/datasets.h - loads the data of a train.yaml.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <tenon/context.h>
#include <tenon/data.h>
#include <tenon/training_run.h>

namespace tenon::train {

/// `directory` overrides that of the definition unless it is empty. `seed` is the run's seed, used if the definition has none.
/// Errors  no directory for a file source; those of the readers.
DataSplits make_data(const DataDefinition& definition, const std::string& directory, std::uint64_t seed);

/// An allocator of pinned host memory. If the device has none left, it returns pageable memory and logs one warning.
std::function<Tensor(DType, const Shape&)> pinned_memory(const Device& device);

}  // namespace tenon::train
