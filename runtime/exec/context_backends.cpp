// SPDX-License-Identifier: Apache-2.0
// The backends of a context: loading them with its services, and replacing one of them.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <utility>

#include <tenon/error.h>

#include "core/log.h"
#include "exec/context_state.h"
#include "exec/load_report.h"
#include "exec/loading.h"
#include "exec/thread_pool.h"
#include "loader/vendor_ops.h"
#include "platform/path.h"
#include "text/counted.h"

namespace tenon::exec {

std::shared_ptr<ThreadPool> ContextState::pool_of(std::uint32_t threads) {
  auto& pool = pools[threads];
  if (pool == nullptr) pool = std::make_shared<ThreadPool>(threads, static_cast<std::uint32_t>(config.thread_spin_us));
  return pool;
}

std::shared_ptr<HostServices> ContextState::services_of(const loader::Backend& backend) const {
  const auto made_for = [&](const std::shared_ptr<HostServices>& made) { return made->backend_name() == backend.name(); };
  const auto last = std::find_if(services.rbegin(), services.rend(), made_for);
  return last == services.rend() ? nullptr : *last;
}

std::shared_ptr<LoadedBackend> ContextState::use(const std::shared_ptr<loader::Backend>& backend, loader::Result& from) const {
  auto used = std::make_shared<LoadedBackend>(
      LoadedBackend{services_of(*backend), backend, {backend->name(), loader::vendor_ops_of(backend->info())}});
  for (const std::string& conflict : used->vendor_ops.conflicts()) {
    log::warning("backend '{}': {}", backend->name(), conflict);
    for (loader::Record& record : from.records) {
      if (record.name == backend->name() && record.healthy) record.warnings.push_back(conflict);
    }
  }
  return used;
}

loader::Result ContextState::load(loader::Options options) {
  const auto budget = config.threads > 0 ? static_cast<std::uint32_t>(config.threads) : available_threads();
  std::exception_ptr bad_option;  // a user error, not the plugin's: rethrown
  options.make_host = [&](const tenon_backend_info& info, std::uint32_t abi_minor) -> const tenon_host* {
    std::map<std::string, std::string> values;
    if (const auto found = config.backends.options.find(info.name); found != config.backends.options.end()) values = found->second;
    try {
      // `threads` is an option of many backends with the same meaning: the budget of parallel_for.
      std::uint32_t threads = budget;
      if (const auto given = values.find("threads"); given != values.end() && std::atoi(given->second.c_str()) > 0) {
        threads = static_cast<std::uint32_t>(std::atoi(given->second.c_str()));
      }
      services.push_back(std::make_shared<HostServices>(info, abi_minor, pool_of(threads), values, trace, extensions));
      return services.back()->table();
    } catch (...) {
      bad_option = std::current_exception();
      throw;
    }
  };
  loader::Result result = loader::load(options);
  if (bad_option) std::rethrow_exception(bad_option);
  return result;
}

namespace {

/// What holds an open device: "device 'cuda:0' is held by 3 tensors, programs, streams or Device objects, with 4096 bytes in use".
std::string use_of(const std::shared_ptr<DeviceState>& device) {
  return fmt::format(
      "device '{}' is held by {}, with {} in use", device->info.name,
      counted(device.use_count() - 1, "tensor, program, stream or Device object", "tensors, programs, streams or Device objects"),
      counted(device->allocator->use().live_size_bytes, "byte"));
}

std::string names_of(const std::vector<std::shared_ptr<LoadedBackend>>& loaded) {
  std::string names;
  for (const auto& backend : loaded) names += (names.empty() ? "" : ", ") + backend->backend->name();
  return names;
}

}  // namespace

void ContextState::reload(const std::string& name) {
  const auto replaced =
      std::find_if(loaded.begin(), loaded.end(), [&](const std::shared_ptr<LoadedBackend>& b) { return b->backend->name() == name; });
  if (replaced == loaded.end()) throw Error(fmt::format("reload_backend: no backend '{}' is in use; in use: {}", name, names_of(loaded)));
  const std::filesystem::path path = (*replaced)->backend->record().path;
  if (path.empty()) throw Error(fmt::format("reload_backend: '{}' is part of this program, not a file", name));
  {
    const std::lock_guard lock(immediate_mutex);
    immediate.clear();
    immediate_ops.clear();
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].loaded != *replaced) continue;
    if (const std::shared_ptr<DeviceState> device = opened[i].lock())
      throw Error(fmt::format("reload_backend: '{}' is in use: {}; destroy them first", name, use_of(device)));
  }

  loader::Options options = loader_options(config, {}, {});
  options.places = {{path, "reload"}};
  options.opens_copies = true;
  const std::size_t services_before = services.size();
  loader::Result result = load(std::move(options));
  const auto keep_old = [&](Status status, const std::string& why) {
    result.backends.clear();  // before the services that they use
    services.resize(services_before);
    throw Error(status, fmt::format("reload_backend: '{}' stays as it was: {}", name, why));
  };
  if (result.records.empty()) keep_old(Status::device_not_found, platform::text_of(path) + ": there is no such file");
  const loader::Record& record = result.records.front();
  if (!record.healthy) keep_old(static_cast<Status>(record.status), loader::describe(record));
  if (record.name != name)
    keep_old(Status::invalid_argument, fmt::format("{} now calls itself '{}'", platform::text_of(path), record.name));

  const std::shared_ptr<LoadedBackend> old = *replaced;
  const std::shared_ptr<loader::Backend> fresh = result.backends.front();
  *replaced = use(fresh, result);
  try {
    list_devices();
  } catch (const Error& error) {  // virtual devices of a device that is gone
    *replaced = old;
    throw Error(error.status(), fmt::format("reload_backend: '{}' stays as it was: {}", name, error.what()));
  }
  log_loading(result);
  std::replace(report.backends.begin(), report.backends.end(), old->backend, fresh);
  for (loader::Record& known : report.records) {
    if (known.path == path) known = record;
  }
  load_report = load_report_of(report);
  const std::shared_ptr<HostServices> used = old->services;
  old->vendor_ops.end();
  old->backend.reset();  // shut down before its services end
  std::erase(services, used);
}

}  // namespace tenon::exec
