// SPDX-License-Identifier: Apache-2.0
// train/checkpoint/checkpoint_folder.h - a folder of checkpoints: finds those of the last run, and keeps those of the current one (ADR 29).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <tenon/safetensors.h>

#include "io/lock_file.h"
#include "io/safetensors_file.h"
#include "train/checkpoint/checkpoint_file.h"

namespace tenon::train {

/// Offers `take` the checkpoints of the run that wrote to the folder last, newest first, until it takes one. Those that it finds to be
/// damaged, and files that cannot be read, are passed over with a warning that names them and the one that is taken instead.
/// Returns the YAML file of the one taken; empty: the folder has no checkpoint, damaged or not.
/// Errors  those of `take` but DamagedCheckpoint; all are damaged.
std::string take_newest(const std::string& folder, const std::function<void(const CheckpointFile&)>& take);

/// True if the folder has a checkpoint, damaged or not.
bool has_checkpoints(const std::string& folder);
/// True if the YAML file of a checkpoint is there and is not one of this run, or cannot be read.
bool is_of_another_run(const std::string& file, const std::string& run);

/// The weights of a checkpoint, of which only what is asked for is read and checked. Keeps a reference to the checkpoint.
/// Errors  DamagedCheckpoint: they are missing, or what is read is not what was saved.
class CheckpointWeights {
 public:
  explicit CheckpointWeights(const CheckpointFile& checkpoint);

  const std::vector<io::TensorEntry>& entries() const;
  /// The entry of that name, or null.
  const io::TensorEntry* find(const std::string& name) const;
  /// The tensors whose names are wanted.
  std::vector<NamedTensor> read(const std::function<bool(const std::string& name)>& is_requested);
  /// Checks all of them.
  void check();

 private:
  void guarded(const std::function<void()>& read) const;

  const CheckpointFile& checkpoint_;
  std::optional<io::SafetensorsFile> file_;
};
/// CheckpointWeights::check.
void check_weights(const CheckpointFile& checkpoint);

/// The folder that a fit writes its checkpoints to, locked against other processes and against other runs of this one.
class CheckpointFolder {
 public:
  /// The run, and the position that it starts from.
  struct Start {
    std::string run;
    std::int64_t step = 0;
    bool overwrite = false;  ///< checkpoints that the run does not continue are removed by the first add
  };
  /// Makes the folder if necessary.
  /// Errors  it cannot be written; it is locked; it has checkpoints that the run does not continue, of another run or of later steps,
  ///         without `overwrite`; a run that is not resumed also refuses those that cannot be read.
  CheckpointFolder(const std::string& path, const Start& start);

  static std::string name_of_epoch(std::int64_t epoch);
  /// Called after name_of_epoch(epoch) was saved: removes those of this run but the newest `keep`; 0: all are kept.
  void add(std::int64_t epoch, std::int64_t keep);
  /// Called after the checkpoint of another name was saved.
  void add_other() { remove_foreign(); }

 private:
  /// A checkpoint that the run does not continue. It may be gone, or replaced by one of this run, when it is to be removed.
  struct Foreign {
    std::string name;
    std::filesystem::file_time_type written;
  };
  void remove_foreign();
  void remove(const std::string& name) const;

  std::string path_;
  std::shared_ptr<io::LockFile> lock_;
  std::set<std::int64_t> epochs_;  ///< of this run
  std::vector<Foreign> foreign_;   ///< to be removed
};

}  // namespace tenon::train
