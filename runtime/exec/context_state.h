// SPDX-License-Identifier: Apache-2.0
// exec/context_state.h - the state of a Context.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tenon/context.h>

#include "exec/device_state.h"
#include "exec/program_cache.h"

namespace tenon::exec {

/// A device that can be opened: its backend and its index there (which differs from that in its name for a virtual device).
struct DeviceEntry {
  std::shared_ptr<LoadedBackend> loaded;
  std::uint32_t index = 0;
  DeviceInfo info;
  std::string account = {};           ///< identifies the physical device in the process
  std::int64_t virtual_limit_mb = 0;  ///< 0: that of the configuration
};

struct ContextState : std::enable_shared_from_this<ContextState> {
  Config config;
  std::vector<HostExtension> extensions = {};                       ///< that the application offers to backends
  std::map<std::uint32_t, std::shared_ptr<ThreadPool>> pools = {};  ///< by their number of threads
  std::vector<std::shared_ptr<HostServices>> services;              ///< declared before `report`, whose backends they must outlive
  loader::Result report;
  LoadReport load_report;                              ///< `report` for users
  std::vector<std::shared_ptr<LoadedBackend>> loaded;  ///< the usable backends, in the order in which devices are listed
  std::vector<DeviceEntry> entries;
  std::vector<DeviceInfo> infos;           ///< parallel to entries
  std::vector<AvailableDevice> available;  ///< parallel to entries, for name lookup
  std::shared_ptr<CopyCounters> copy_counters = std::make_shared<CopyCounters>();
  std::shared_ptr<TraceRecorder> trace = std::make_shared<TraceRecorder>();
  std::mutex mutex;  ///< guards opened, missed, checked_rules and failed_queries
  std::vector<std::weak_ptr<DeviceState>> opened;
  std::set<std::string> missed;          ///< device names that soft_placement has replaced, as written, and `auto` once it is reported
  std::set<std::string> checked_rules;   ///< placement rules that check_rules() has looked at
  std::set<std::string> failed_queries;  ///< backends that failed a capability query as a whole, of which the user has been told
  std::mutex immediate_mutex;            ///< guards immediate, its programs and immediate_ops
  ProgramCache immediate{{.programs = 256}};
  std::unordered_map<std::string, std::string> immediate_ops;  ///< the key in `immediate` by op, attributes and operands

  ~ContextState();
  /// Loads what the options name with services of this context, which it adds to `services`.
  /// Errors  options of a backend that its declarations do not allow.
  loader::Result load(loader::Options options);
  /// A backend of `from` with its services, its ops made known to the process. An op that it has another schema for than the process is a
  /// warning in its record.
  std::shared_ptr<LoadedBackend> use(const std::shared_ptr<loader::Backend>& backend, loader::Result& from) const;
  /// The services in `services` that this backend was created with.
  std::shared_ptr<HostServices> services_of(const loader::Backend& backend) const;
  /// Fills entries, infos, available and opened from `loaded` and the virtual devices of the configuration.
  void list_devices();
  /// Context::reload_backend.
  void reload(const std::string& name);
  std::shared_ptr<DeviceState> open(std::size_t position);
  std::shared_ptr<DeviceState> open(const std::string& name) { return open(find_device(name, available)); }
  /// Position of the device that the name means. With soft_placement, a missing device is replaced by the next best one (of its backend,
  /// else of its kind, else the first), with one warning per name. Errors: DEVICE_NOT_FOUND.
  std::size_t find(const DeviceName& name);
  std::shared_ptr<DeviceState> open_found(const std::string& name) { return open(find(parse_device_name(name))); }

 private:
  /// Logs, once, which device `auto` means and why no other: a warning if it is the oracle that nobody asked for.
  void report_choice(std::size_t position);
  std::shared_ptr<ThreadPool> pool_of(std::uint32_t threads);
  MemoryPolicy memory_policy(const DeviceEntry& entry) const;
};

}  // namespace tenon::exec
