// train/checkpoint_callback.h - a checkpoint every few epochs, the newest ones kept.
#pragma once

#include <cstdint>
#include <string>

#include <tenon/model.h>

namespace tenon::train {

class CheckpointCallback final : public Callback {
 public:
  /// Writes <folder>/epoch-<n>.{safetensors,yaml}; `keep` newest stay, 0: all.
  CheckpointCallback(Model& model, std::string folder, std::int64_t every_epochs, std::int64_t keep, std::uint64_t seed);
  void epoch_end(const EpochLogs& logs) override;

 private:
  void prune() const;
  Model& model_;
  std::string folder_;
  std::int64_t every_epochs_, keep_;
  std::uint64_t seed_;
};

}  // namespace tenon::train
