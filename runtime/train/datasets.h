// train/datasets.h - the data that a train.yaml names.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <tenon/data.h>

#include "config/model_yaml.h"

namespace tenon::train {

struct DataSplits {
  std::shared_ptr<const Dataset> train, test;
  std::shared_ptr<const Dataset> validation;  ///< null without validation_split
};

/// `directory` (from the command line) beats the definition's; `seed` is the run's, for generated data without one of its own.
/// Errors  a source that wants a folder and has none; those of the readers.
DataSplits make_data(const config::DataDefinition& definition, const std::string& directory, std::uint64_t seed);

}  // namespace tenon::train
