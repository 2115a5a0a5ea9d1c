// train/datasets.h - the data that a train.yaml names.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <tenon/context.h>
#include <tenon/data.h>

#include "config/data_yaml.h"

namespace tenon::train {

struct DataSplits {
  std::shared_ptr<const Dataset> train, test;  ///< train is augmented if the definition says so
  std::shared_ptr<const Dataset> validation;   ///< null without validation_split
};

/// `directory` (from the command line) beats the definition's; `seed` is the run's, for generated data and augmentation without one of
/// their own. Errors  a source of files that has none; those of the readers.
DataSplits make_data(const config::DataDefinition& definition, const std::string& directory, std::uint64_t seed);

/// Memory of batches that the device copies from without staging. A device that has none left gives plain memory, and says so once.
std::function<Tensor(DType, const Shape&)> pinned_memory(const Device& device);

}  // namespace tenon::train
