// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/checkpoint_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include "core/log.h"
#include "platform/file.h"
#include "platform/file_facts.h"
#include "platform/folder.h"
#include "platform/path.h"

namespace tenon::train {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "epoch-";

/// The number in the name of an epoch's checkpoint.
std::optional<std::int64_t> epoch_of(const std::string& name) {
  std::int64_t epoch = 0;
  if (!name.starts_with(prefix)) return std::nullopt;
  const char* end = name.data() + name.size();
  const auto [last, error] = std::from_chars(name.data() + prefix.size(), end, epoch);
  if (error != std::errc() || last != end || CheckpointFolder::name_of_epoch(epoch) != name) return std::nullopt;
  return epoch;
}

std::string name_of(const CheckpointFile& checkpoint) {
  return platform::text_of(platform::path_of(checkpoint.file).stem());
}

/// A YAML file that should be a checkpoint.
struct Unreadable {
  std::string file, reason;
};

struct Listing {
  std::vector<CheckpointFile> checkpoints;
  std::vector<Unreadable> unreadable;
};

/// The checkpoints of a folder: the last run to write there first, within a run those of later steps first.
Listing list(const std::string& folder) {
  Listing listing;
  std::map<std::string, fs::file_time_type> last_write;  // of each run
  std::error_code code;
  for (const auto& [name, kind] : platform::entries_of(folder, code)) {
    if (!name.ends_with(".yaml") || kind != platform::FileKind::regular) continue;
    const fs::path path = platform::path_of(folder) / platform::path_of(name);
    const std::string file = platform::text_of(path);
    std::error_code ignored;
    const bool has_weights = fs::exists(fs::path(path).replace_extension(".safetensors"), ignored);
    if (!has_weights && !is_checkpoint_file(file)) continue;
    try {
      listing.checkpoints.push_back(read_checkpoint_file(file));
      fs::file_time_type& time = last_write.try_emplace(listing.checkpoints.back().progress.run, fs::file_time_type::min()).first->second;
      time = std::max(time, platform::write_time(path));
    } catch (const Error& error) {
      listing.unreadable.push_back({file, error.what()});
    }
  }
  if (code && code != std::errc::no_such_file_or_directory)
    throw Error(fmt::format("{}: the folder cannot be read: {}", folder, code.message()));
  std::sort(listing.checkpoints.begin(), listing.checkpoints.end(), [&](const CheckpointFile& a, const CheckpointFile& b) {
    const auto key = [&](const CheckpointFile& c) {
      return std::tuple(last_write[c.progress.run], c.progress.run, c.progress.step, c.file);
    };
    return key(a) > key(b);
  });
  return listing;
}

/// The lock of a folder, one for all checkpoint callbacks of a run in this process.
std::shared_ptr<io::LockFile> lock(const std::string& folder, const std::string& run) {
  struct Owned {
    std::string run;
    std::weak_ptr<io::LockFile> lock;
  };
  static std::mutex mutex;
  static std::map<std::string, Owned> locks;
  std::error_code code;
  const std::string canonical = platform::canonical_path(folder, code);
  if (code) throw Error(fmt::format("{}: {}", folder, platform::message_of(code)));
  const std::string path = platform::text_of(platform::path_of(canonical) / "checkpoint.lock");
  const std::lock_guard guard(mutex);
  Owned& owned = locks[path];
  std::shared_ptr<io::LockFile> lock = owned.lock.lock();
  if (lock != nullptr && owned.run != run) throw Error(path + ": locked by another run of this process");
  if (lock == nullptr) {
    lock = std::make_shared<io::LockFile>(path);
    if (!lock->held()) log::warning("{}: the file system has no locks: nothing keeps a second run from writing to this folder", folder);
    owned = {run, lock};
  }
  return lock;
}

bool is_damaged(const CheckpointFile& checkpoint) {
  try {
    check_weights(checkpoint);
    return false;
  } catch (const DamagedCheckpoint&) {
    return true;
  }
}

constexpr const char* other_folder = "set checkpoint.directory (in C++ Checkpoint::Options::directory) to another folder";

}  // namespace

CheckpointWeights::CheckpointWeights(const CheckpointFile& checkpoint) : checkpoint_(checkpoint) {
  guarded([&] { file_.emplace(checkpoint.weights, checkpoint.checksum); });
}

void CheckpointWeights::guarded(const std::function<void()>& read) const {
  try {
    read();
  } catch (const Error& error) {
    throw DamagedCheckpoint(fmt::format("{}: its weights: {}", checkpoint_.file, error.what()));
  }
}

const std::vector<io::TensorEntry>& CheckpointWeights::entries() const {
  return file_->header().tensors;
}

const io::TensorEntry* CheckpointWeights::find(const std::string& name) const {
  const auto found = std::ranges::find(entries(), name, &io::TensorEntry::name);
  return found == entries().end() ? nullptr : &*found;
}

std::vector<NamedTensor> CheckpointWeights::read(const std::function<bool(const std::string& name)>& is_requested) {
  std::vector<NamedTensor> tensors;
  guarded([&] { tensors = file_->read(is_requested); });
  log::debug("{}: read {} of {} bytes", checkpoint_.weights, file_->read_size_bytes(), file_->size_bytes());
  return tensors;
}

void CheckpointWeights::check() {
  guarded([&] { file_->check(); });
}

void check_weights(const CheckpointFile& checkpoint) {
  CheckpointWeights(checkpoint).check();
}

std::string take_newest(const std::string& folder, const std::function<void(const CheckpointFile&)>& take) {
  const Listing listing = list(folder);
  std::vector<std::string> damaged;
  for (const Unreadable& found : listing.unreadable) damaged.push_back(found.reason);
  for (const CheckpointFile& checkpoint : listing.checkpoints) {
    try {
      take(checkpoint);
      for (const std::string& reason : damaged) log::warning("{}; {} is taken instead", reason, checkpoint.str());
      return checkpoint.file;
    } catch (const DamagedCheckpoint& error) {
      damaged.emplace_back(error.what());
    }
  }
  if (damaged.empty()) return "";
  throw Error(fmt::format("{}: every checkpoint is damaged: {}; restore one from a copy, or remove them to start again", folder,
                          fmt::join(damaged, "; ")));
}

bool has_checkpoints(const std::string& folder) {
  const Listing listing = list(folder);
  return !listing.checkpoints.empty() || !listing.unreadable.empty();
}

bool is_of_another_run(const std::string& file, const std::string& run) {
  std::error_code ignored;
  if (!fs::exists(platform::path_of(file), ignored)) return false;
  try {
    return read_checkpoint_file(file).progress.run != run;
  } catch (const Error&) {
    return true;
  }
}

std::string CheckpointFolder::name_of_epoch(std::int64_t epoch) {
  return fmt::format("{}{:06}", prefix, epoch);
}

CheckpointFolder::CheckpointFolder(const std::string& path, const Start& start) : path_(path) {
  std::error_code code;
  fs::create_directories(platform::path_of(path), code);
  if (code) throw Error(fmt::format("checkpoint folder {} cannot be created: {}; {}", path, code.message(), other_folder));
  try {
    lock_ = lock(path, start.run);
  } catch (const Error& error) {
    throw Error(fmt::format("checkpoint folder {} cannot be used: {}; {}", path, error.what(), other_folder));
  }
  const Listing listing = list(path);
  const auto refuse = [&](const std::string& what, const std::string& resume) {
    throw Error(fmt::format("checkpoint folder {} has {}: {}replace it (tenon train --overwrite, checkpoint.overwrite: true), or {}", path,
                            what, resume, other_folder));
  };
  for (const CheckpointFile& found : listing.checkpoints) {
    const bool same_run = found.progress.run == start.run;
    if (same_run && found.progress.step <= start.step) {
      if (const auto epoch = epoch_of(name_of(found))) epochs_.insert(*epoch);
      continue;
    }
    if (same_run && is_damaged(found)) continue;  // `resume: auto` passed it over, with a warning
    foreign_.push_back({name_of(found), platform::write_time(platform::path_of(found.file))});
    if (start.overwrite) continue;
    if (same_run) {
      refuse(fmt::format("{} of this run, which is resumed from step {} and would replace it", found.str(), start.step),
             "resume from the newest checkpoint (resume: auto), ");
    }
    refuse(fmt::format("{} of another run, {}{}; this run is {}", found.str(), found.model.empty() ? "" : "'" + found.model + "' ",
                       found.progress.run, start.run),
           "resume that run (resume: auto), ");
  }
  if (start.step > 0) return;
  for (const Unreadable& found : listing.unreadable) {
    foreign_.push_back({platform::text_of(platform::path_of(found.file).stem()), platform::write_time(platform::path_of(found.file))});
    if (!start.overwrite) refuse(fmt::format("a checkpoint that cannot be read: {}", found.reason), "");
  }
}

void CheckpointFolder::add(std::int64_t epoch, std::int64_t keep) {
  remove_foreign();
  epochs_.insert(epoch);
  while (keep > 0 && epochs_.size() > static_cast<std::size_t>(keep)) {
    remove(name_of_epoch(*epochs_.begin()));
    epochs_.erase(epochs_.begin());
  }
}

void CheckpointFolder::remove_foreign() {
  for (const Foreign& found : std::exchange(foreign_, {})) {
    if (platform::write_time(platform::path_of(path_) / platform::path_of(found.name + ".yaml")) == found.written) remove(found.name);
  }
}

void CheckpointFolder::remove(const std::string& name) const {
  // The YAML file is removed last: what remains of an interrupted removal is still known as a checkpoint, and removed by the next run.
  std::error_code ignored;
  for (const char* ending : {".safetensors", ".old.safetensors", ".yaml"})
    fs::remove(platform::path_of(path_) / platform::path_of(name + ending), ignored);
}

}  // namespace tenon::train
