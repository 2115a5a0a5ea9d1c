// exec/context_state.h - what a Context holds.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tenon/context.h>
#include <tenon/program.h>

#include "exec/device_state.h"

namespace tenon::exec {

/// Recently used programs by key; the least recently used goes first.
/// Threads  one at a time.
class ProgramCache {
 public:
  explicit ProgramCache(std::size_t capacity) : capacity_(capacity) {}
  /// The program under `key`, made by `make` if it is not there.
  template <class Make>
  Program& get(const std::string& key, Make&& make) {
    if (const auto found = index_.find(key); found != index_.end()) {
      entries_.splice(entries_.begin(), entries_, found->second);
      return *found->second->second;
    }
    entries_.emplace_front(key, std::make_unique<Program>(make()));
    index_[key] = entries_.begin();
    if (entries_.size() > capacity_) {
      index_.erase(entries_.back().first);
      entries_.pop_back();
    }
    return *entries_.front().second;
  }
  std::size_t size() const { return entries_.size(); }

 private:
  using Entry = std::pair<std::string, std::unique_ptr<Program>>;
  std::size_t capacity_;
  std::list<Entry> entries_;
  std::unordered_map<std::string, std::list<Entry>::iterator> index_;
};

/// A device that can be opened: which backend, and its index there (a virtual device has another index than its name says).
struct DeviceEntry {
  std::shared_ptr<LoadedBackend> loaded;
  std::uint32_t index = 0;
  DeviceInfo info;
};

struct ContextState : std::enable_shared_from_this<ContextState> {
  Config config;
  std::vector<std::shared_ptr<HostServices>> services;  ///< before `report`: they outlive every backend in it
  loader::Result report;
  std::vector<DeviceEntry> entries;
  std::vector<DeviceInfo> infos;           ///< of entries
  std::vector<AvailableDevice> available;  ///< of entries, for names
  std::shared_ptr<CopyTally> tally = std::make_shared<CopyTally>();
  std::mutex mutex;  ///< guards opened
  std::vector<std::weak_ptr<DeviceState>> opened;
  std::mutex immediate_mutex;  ///< guards immediate and its programs
  ProgramCache immediate{256};

  std::shared_ptr<DeviceState> open(std::size_t position);
  std::shared_ptr<DeviceState> open(const std::string& name) { return open(find_device(name, available)); }
};

}  // namespace tenon::exec
