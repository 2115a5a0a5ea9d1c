// SPDX-License-Identifier: Apache-2.0
#include <tenon/context.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <limits>

#include "core/log.h"
#include "exec/context_state.h"
#include "exec/immediate.h"
#include "exec/load_report.h"
#include "exec/loading.h"
#include "exec/placement.h"
#include "exec/registered.h"
#include "platform/path.h"
#include "platform/per_thread.h"

namespace tenon {
namespace exec {
namespace {

void set_up_logging(const Config& config) {
  log::set_level(config.logging.level);
  if (!config.logging.file.empty()) log::set_file(config.logging.file);
}

/// Warns about `memory` and `virtual` settings that have no effect here.
void check_memory_keys(const Config& config, const std::vector<DeviceEntry>& entries) {
  for (const DeviceEntry& entry : entries) {
    const std::int64_t limit_mb = entry.virtual_limit_mb > 0 ? entry.virtual_limit_mb : config.memory.limit_mb;
    const std::uint64_t there = entry.info.memory_size_bytes >> 20;
    if (limit_mb > 0 && there > 0 && static_cast<std::uint64_t>(limit_mb) > there) {
      log::warning("device '{}': a limit of {} MiB is more than its {} MiB and has no effect", entry.info.name, limit_mb, there);
    }
    if (entry.virtual_limit_mb > 0 && config.memory.limit_mb > 0 && entry.virtual_limit_mb != config.memory.limit_mb) {
      log::info("device '{}': its own limit of {} MiB overrides memory.limit_mb: {}", entry.info.name, entry.virtual_limit_mb,
                config.memory.limit_mb);
    }
  }
}

}  // namespace

std::shared_ptr<DeviceState> ContextState::open(std::size_t position) {
  std::lock_guard lock(mutex);
  if (auto device = opened[position].lock()) return device;
  const DeviceEntry& entry = entries[position];
  auto device = std::make_shared<DeviceState>(
      entry.loaded, entry.index, entry.info,
      DeviceSettings{copy_counters, trace, memory_policy(entry), weak_from_this(), plan_options(config, config.precision)});
  opened[position] = device;
  return device;
}

ContextState::~ContextState() {
  for (const auto& weak : opened) {
    const auto device = weak.lock();
    if (device == nullptr) continue;
    const std::uint64_t live = device->allocator->use().live_size_bytes;
    if (live > 0) log::debug("device '{}': {} bytes outlive their context, in tensors or programs", device->info.name, live);
  }
}

MemoryPolicy ContextState::memory_policy(const DeviceEntry& entry) const {
  const bool own = entry.virtual_limit_mb > 0;
  const std::int64_t limit_mb = own ? entry.virtual_limit_mb : config.memory.limit_mb;
  MemoryPolicy policy;
  policy.limit_size_bytes = static_cast<std::uint64_t>(limit_mb) << 20;
  const char* key = own ? "virtual" : "memory.limit_mb";
  if (limit_mb > 0) policy.limit_text = fmt::format("{}: {} MiB ({})", own ? "virtual: limit_mb" : key, limit_mb, config.origin_of(key));
  policy.pool = config.memory.pool;
  policy.growth = config.memory.growth;
  policy.account = entry.account;
  return policy;
}

void ContextState::report_choice(std::size_t position) {
  {
    const std::lock_guard lock(mutex);
    if (!missed.insert("auto").second) return;
  }
  const DeviceEntry& entry = entries[position];
  const std::string others = why_not_chosen(report);
  const bool asked_for = !config.backends.use.empty() || !config.backends.allow.empty();
  if ((entry.loaded->backend->info().flags & TENON_BACKEND_ORACLE) == 0 || asked_for) {
    log::info("device: auto means {}{}", entry.info.name, others.empty() ? "" : "; not " + others);
    return;
  }
  log::warning(
      "device: auto means {}, which computes correctly and slowly: {}. Without this warning: device: {}", entry.info.name,
      others.empty() ? "no other backend was found; `tenon doctor` shows where it looked" : "no other backend can be used; " + others,
      entry.info.backend);
}

std::size_t ContextState::find(const DeviceName& name) {
  try {
    const std::size_t position = find_device(name, available);
    if (name.kind == DeviceName::Kind::automatic) report_choice(position);
    return position;
  } catch (const Error& error) {
    if (error.status() != Status::device_not_found) throw;
    if (!config.soft_placement) {
      const std::string others = why_not_chosen(report);
      if (name.kind != DeviceName::Kind::backend && !others.empty()) {
        throw Error(Status::device_not_found, fmt::format("{}; backends that cannot be used: {}", error.what(), others));
      }
      for (const loader::Record& record : report.records) {
        if (name.kind != DeviceName::Kind::backend || record.name != name.backend || record.healthy || record.shadowed) continue;
        throw Error(Status::device_not_found,
                    fmt::format("{}; backend '{}' is {}: {}", error.what(), record.name,
                                record.reached == loader::Stage::created ? "loaded but has no devices" : "not usable", record.text));
      }
      throw;
    }
    const auto first = [&](const auto& fits) {
      return static_cast<std::size_t>(std::find_if(available.begin(), available.end(), fits) - available.begin());
    };
    std::size_t next = available.size();
    if (name.kind == DeviceName::Kind::backend) next = first([&](const AvailableDevice& d) { return d.backend == name.backend; });
    if (name.kind == DeviceName::Kind::alias_gpu) next = first([](const AvailableDevice& d) { return d.kind == DeviceKind::gpu; });
    if (name.kind == DeviceName::Kind::alias_cpu) next = first([](const AvailableDevice& d) { return d.kind == DeviceKind::cpu; });
    if (next == available.size()) next = 0;
    const std::lock_guard lock(mutex);
    if (missed.insert(name.typed).second) log::warning("{}; soft_placement uses {} instead", error.what(), available[next].name());
    return next;
  }
}

}  // namespace exec

Context::Context(const Config& config, const std::vector<std::filesystem::path>& plugins,
                 const std::vector<std::filesystem::path>& command_line_plugins, const std::vector<HostExtension>& extensions,
                 const std::vector<std::string>& plugin_origins)
    : state_(std::make_shared<exec::ContextState>()) {
  exec::ContextState& state = *state_;
  state.config = config;
  state.extensions = extensions;
  exec::set_up_logging(config);
  if (config.threads < 0) throw Error(fmt::format("threads is {}, expected 0 (as many as this process has cores) or more", config.threads));
  if (config.thread_spin_us < 0) throw Error(fmt::format("thread_spin_us is {}, expected 0 or more microseconds", config.thread_spin_us));
  loader::Options options = exec::loader_options(config, plugins, command_line_plugins, plugin_origins);
  options.registered = exec::registered_backends();
  state.report = state.load(options);
  exec::check_requests(config, state.report);
  exec::log_loading(state.report);

  for (const auto& backend : exec::in_order(state.report, config.backends.use)) {
    state.loaded.push_back(state.use(backend, state.report));
  }
  state.load_report = exec::load_report_of(state.report);
  state.list_devices();
  if (state.entries.empty()) {
    std::string text = "no healthy backend was found";
    for (const loader::Record& record : state.report.records) {
      if (!record.healthy && !record.shadowed) text += fmt::format("\n  {}: {}", record.name, record.text);
    }
    for (const loader::PlaceRecord& place : state.report.places)
      text += fmt::format("\n  looked in {} ({}): {}", platform::text_of(place.path), place.origin, place.text);
    throw Error(Status::device_not_found, text + "\nrun `tenon doctor` for details about each candidate");
  }

  exec::check_memory_keys(config, state.entries);
  if (config.log_device_placement) log::print(device_mapping());
}

Context::~Context() = default;

const Config& Context::config() const {
  return state_->config;
}
const std::vector<DeviceInfo>& Context::devices() const {
  return state_->infos;
}
const LoadReport& Context::load_report() const {
  return state_->load_report;
}

void Context::reload_backend(const std::string& name) {
  state_->reload(name);
}

const void* Context::backend_extension(const std::string& backend, const std::string& name, std::uint32_t version) const {
  std::vector<std::string> names;
  for (const auto& loaded : state_->loaded) {
    const loader::Backend& own = *loaded->backend;
    names.push_back(own.name());
    if (own.name() != backend) continue;
    const auto extension = own.table().extension;
    return extension == nullptr ? nullptr : extension(own.handle(), name.c_str(), version);
  }
  throw Error(Status::device_not_found,
              fmt::format("backend_extension: no backend '{}' is in use; in use: {}", backend, fmt::join(names, ", ")));
}

Device Context::device(const std::string& name) const {
  return Device(state_->open(name));
}

namespace {

/// The PlacementScopes of this thread, outermost first.
constinit const platform::PerThread<std::vector<std::pair<std::shared_ptr<exec::ContextState>, Device>>> scopes;

CopyCounts counts_of(const exec::CopyCounters::Direction& direction) {
  return {direction.copies.load(), direction.size_bytes.load(), direction.duration_ns.load()};
}

/// The size of a tensor in bytes. Errors: a size that does not fit 63 bits.
std::uint64_t bytes_of(const Device& device, DType dtype, const Shape& shape) {
  const std::int64_t size = size_of(dtype);
  if (size == 0) throw Error(fmt::format("device '{}': expected memory of a dtype, got none", device.name()));
  if (shape.count() > std::numeric_limits<std::int64_t>::max() / size) {
    throw Error(Status::out_of_memory,
                fmt::format("device '{}': {}{} needs more bytes than any memory has", device.name(), name_of(dtype), shape.str()));
  }
  return static_cast<std::uint64_t>(shape.count() * size);
}

}  // namespace

PlacementScope::PlacementScope(const Context& context, const std::string& device) {
  scopes->emplace_back(context.state(), context.device(device));
}
PlacementScope::~PlacementScope() {
  scopes->pop_back();
}

ContextProfile Context::profile() const {
  const auto& directions = state_->copy_counters->directions;
  return {counts_of(directions[TENON_COPY_HOST_TO_DEVICE]), counts_of(directions[TENON_COPY_DEVICE_TO_HOST]),
          counts_of(directions[TENON_COPY_DEVICE_TO_DEVICE])};
}

Device Context::default_device() const {
  for (auto scope = scopes->rbegin(); scope != scopes->rend(); ++scope) {
    if (scope->first == state_) return scope->second;
  }
  return Device(state_->open_found(state_->config.device));
}

std::string Context::device_mapping() const {
  std::string text = "Device mapping:\n";
  for (const DeviceInfo& info : state_->infos) {
    text += fmt::format("{}{} -> {}, {}\n", info.name, info.alias.empty() ? "" : " (" + info.alias + ")", info.product, info.description);
  }
  return text;
}

std::optional<std::string> Context::default_gpu() const noexcept {
  for (const DeviceInfo& info : state_->infos) {
    if (info.kind == DeviceKind::gpu) return info.name;
  }
  return std::nullopt;
}

std::vector<Tensor> Context::apply(const Device& device, tenon_op op, const std::vector<Tensor>& inputs, const Attributes& attributes,
                                   const NodeOptions& options) const {
  return exec::run_immediately(*this, device, op, inputs, attributes, options);
}

std::vector<Tensor> Context::apply(tenon_op op, const std::vector<Tensor>& inputs, const Attributes& attributes,
                                   const NodeOptions& options) const {
  return apply(default_device(), op, inputs, attributes, options);
}

std::vector<DeviceInfo> list_devices() {
  return Context().devices();
}

std::string default_gpu() noexcept {
  try {
    return Context().default_gpu().value_or("");
  } catch (...) {  // an invalid configuration or no backend: no GPU
    return {};
  }
}

const std::string& Device::name() const {
  return state_->info.name;
}
const DeviceInfo& Device::info() const {
  return state_->info;
}
Tensor Device::empty(DType dtype, const Shape& shape) const {
  auto storage = state_->allocate(bytes_of(*this, dtype, shape));
  const std::uint64_t address = storage->address;
  return Tensor::make(std::move(storage), address, dtype, shape);
}
Tensor Device::zeros(DType dtype, const Shape& shape) const {
  Tensor t = empty(dtype, shape);
  state_->fill(t.address(), static_cast<std::uint64_t>(t.size_bytes()), 0);
  return t;
}
Tensor Device::empty_pinned(DType dtype, const Shape& shape) const {
  auto storage = state_->allocate_pinned(bytes_of(*this, dtype, shape));
  const std::uint64_t address = storage->address;
  return Tensor::make(std::move(storage), address, dtype, shape);
}
std::uint64_t Device::live_size_bytes() const {
  return memory().live_size_bytes;
}
std::uint64_t Device::peak_size_bytes() const {
  return memory().peak_size_bytes;
}
MemoryUse Device::memory() const {
  return state_->allocator->use();
}
void Device::trim() const {
  state_->allocator->trim();
}

}  // namespace tenon
