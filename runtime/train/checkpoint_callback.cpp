#include "train/checkpoint_callback.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <vector>

namespace tenon::train {

namespace fs = std::filesystem;

CheckpointCallback::CheckpointCallback(Model& model, std::string folder, std::int64_t every_epochs, std::int64_t keep, std::uint64_t seed)
    : model_(model), folder_(std::move(folder)), every_epochs_(every_epochs), keep_(keep), seed_(seed) {}

void CheckpointCallback::epoch_end(const EpochLogs& logs) {
  if ((logs.epoch + 1) % every_epochs_ != 0) return;
  model_.save(folder_, fmt::format("epoch-{:06}", logs.epoch + 1), {logs.epoch + 1, seed_});
  if (keep_ > 0) prune();
}

void CheckpointCallback::prune() const {
  std::vector<fs::path> files;  // their names sort by epoch
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
    const fs::path& path = entry.path();
    if (path.extension() == ".yaml" && path.stem().string().starts_with("epoch-")) files.push_back(path);
  }
  std::sort(files.begin(), files.end());
  while (files.size() > static_cast<std::size_t>(keep_)) {
    // The YAML goes first: what is left of a removal cut short is no checkpoint.
    std::error_code code;
    fs::remove(files.front(), code);
    fs::remove(files.front().replace_extension(".safetensors"), code);
    files.erase(files.begin());
  }
}

}  // namespace tenon::train
