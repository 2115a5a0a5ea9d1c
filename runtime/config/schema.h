// SPDX-License-Identifier: Apache-2.0
// config/schema.h - every key of model.yaml and train.yaml, as their readers know it.
#pragma once

#include <string>
#include <vector>

#include "yaml/reader.h"

namespace tenon::config {

/// The keys of one thing: of "train.yaml" or "model.yaml", or of a layer, loss, optimizer and so on by its name.
struct SchemaBlock {
  std::string kind;  ///< "layer"; "" for a file
  std::string name;  ///< "dense", "train.yaml"
  std::vector<yaml::KnownKey> keys;
};

/// Asks the readers: each reads a file that has the thing and nothing else.
std::vector<SchemaBlock> schema_of_readers();

/// config_schema(), followed by the blocks as comments.
std::string whole_schema();

}  // namespace tenon::config
