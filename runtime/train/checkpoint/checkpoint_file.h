// SPDX-License-Identifier: Apache-2.0
// train/checkpoint/checkpoint_file.h - the YAML file of a checkpoint. Its last line is the checksum of all before it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <tenon/error.h>

#include "io/checksum.h"
#include "train/checkpoint/training_progress.h"

namespace tenon::train {

/// A checkpoint whose files do not hold what was written.
struct DamagedCheckpoint : Error {
  using Error::Error;
};

/// What the YAML file of a checkpoint says.
struct CheckpointFile {
  std::string file;           ///< its path; not part of the text
  std::string model;          ///< the name of the definition
  std::string weights;        ///< path of the safetensors file; its name in the text
  io::FileChecksum checksum;  ///< of the weights, in parts unless an earlier version wrote them
  std::string optimizer;
  std::string custom_loss;                                   ///< its name; empty: a loss of the library
  std::map<std::string, std::vector<std::int64_t>> samples;  ///< shapes by input; of an only one under any name
  std::uint64_t seed = 0;
  SavedProgress progress;  ///< without the tensors of callbacks

  /// "c/epoch-000003.yaml (epoch 3, step 300, seed 1)"
  std::string str() const;
};

/// Prefix of the names of a callback's tensors.
std::string callback_prefix(const std::string& key);

/// Reads the YAML file; the weights are not opened.
/// Errors  not a checkpoint, or one of another version; DamagedCheckpoint: the text is not what was written.
CheckpointFile read_checkpoint_file(const std::string& path);
/// The text of the file; `file` is not used.
std::string checkpoint_text(const CheckpointFile& checkpoint);
/// True if the file begins as the YAML of a checkpoint of any version.
bool is_checkpoint_file(const std::string& path);

}  // namespace tenon::train
