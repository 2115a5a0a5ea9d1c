// SPDX-License-Identifier: Apache-2.0
// The list of a context's devices: those of its backends, divided as the configuration says.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "exec/context_state.h"
#include "loader/vendor_ops.h"

namespace tenon::exec {
namespace {

DeviceKind kind_of(std::uint32_t kind) {
  return kind == TENON_DEVICE_CPU ? DeviceKind::cpu : kind == TENON_DEVICE_GPU ? DeviceKind::gpu : DeviceKind::accelerator;
}

std::string text_or_empty(const char* text) {
  return text != nullptr ? text : "";
}

/// "Softmax-13"; ids of vendors' ops are the backend's own.
std::string name_of_op(const tenon_backend_info& backend, const tenon_capability& c) {
  return c.op >= TENON_OP_VENDOR ? loader::vendor_op_name(backend, c.op, c.version) : fmt::format("{}-{}", op_name(c.op), c.version);
}

DeviceInfo describe(const loader::Backend& backend, std::uint32_t index) {
  const tenon_device_info& d = backend.devices()[index];
  DeviceInfo info;
  info.backend = backend.name();
  info.name = fmt::format("{}:{}", backend.name(), index);
  info.kind = kind_of(d.kind);
  info.product = text_or_empty(d.name);
  info.identity = text_or_empty(d.identity);
  info.description = text_or_empty(d.description);
  info.memory_size_bytes = d.memory_size_bytes;
  info.memory_free_bytes = d.memory_free_bytes;
  info.max_allocation_size_bytes = d.max_allocation_size_bytes;
  info.compute_major = d.compute_major;
  info.compute_minor = d.compute_minor;
  info.clock_khz = d.clock_khz;
  info.flags = d.flags;
  info.alignment_bytes = std::max<std::uint64_t>(d.alignment_bytes, 1);
  info.operand_alignment_bytes = std::max<std::uint64_t>(d.operand_alignment_bytes, 1);
  for (tenon_dtype t = TENON_DTYPE_F16; t <= TENON_DTYPE_BOOL; ++t) {
    if (d.dtypes == 0 || (d.dtypes & TENON_DTYPE_BIT(t)) != 0) info.dtypes.push_back(static_cast<DType>(t));
  }
  const tenon_backend_info& b = backend.info();
  for (std::uint32_t i = 0; i < b.capability_count; ++i) {
    const auto& c =
        *reinterpret_cast<const tenon_capability*>(reinterpret_cast<const char*>(b.capabilities) + std::size_t{i} * b.capability_stride);
    if (backend.find_switched_off(c.op, c.version) == nullptr) info.ops.push_back(name_of_op(b, c));
  }
  return info;
}

/// What is known of the physical device of an entry before its name depends on the virtual devices.
std::vector<DeviceEntry> entries_of(const std::vector<std::shared_ptr<LoadedBackend>>& loaded) {
  std::vector<DeviceEntry> entries;
  for (const auto& backend : loaded) {
    for (std::uint32_t i = 0; i < backend->backend->devices().size(); ++i) {
      DeviceEntry entry{backend, i, describe(*backend->backend, i)};
      entry.account = entry.info.name;
      entries.push_back(std::move(entry));
    }
  }
  return entries;
}

void divide(std::vector<DeviceEntry>& entries, const VirtualDevice& rule) {
  std::vector<AvailableDevice> real;
  for (const DeviceEntry& entry : entries)
    real.push_back({entry.info.backend, static_cast<int>(entry.index), entry.info.kind, entry.info.identity});
  const std::size_t position = find_device(rule.of, real);
  const DeviceEntry original = entries[position];
  entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(position));
  for (int i = 0; i < rule.count; ++i) {
    DeviceEntry copy = original;
    copy.info.description +=
        fmt::format(" (virtual {} of {}{})", i + 1, rule.count, rule.limit_mb > 0 ? fmt::format(", at most {} MiB", rule.limit_mb) : "");
    copy.account += fmt::format(", virtual {} of {}", i + 1, rule.count);
    copy.virtual_limit_mb = rule.limit_mb;
    entries.insert(entries.begin() + static_cast<std::ptrdiff_t>(position) + i, copy);
  }
}

}  // namespace

void ContextState::list_devices() {
  std::map<std::pair<const LoadedBackend*, std::string>, std::weak_ptr<DeviceState>> open_before;
  for (std::size_t i = 0; i < entries.size(); ++i) open_before[{entries[i].loaded.get(), entries[i].info.name}] = opened[i];
  std::vector<DeviceEntry> listed = entries_of(loaded);
  // Without any device the rules have none to divide, and the caller says why there is none.
  for (const VirtualDevice& rule : config.virtual_devices) {
    if (!listed.empty()) divide(listed, rule);
  }
  entries = std::move(listed);
  infos.clear();
  available.clear();
  opened.clear();
  std::map<std::string, int> next;
  for (DeviceEntry& entry : entries) {
    const int index = next[entry.info.backend]++;
    entry.info.name = fmt::format("{}:{}", entry.info.backend, index);
    available.push_back({entry.info.backend, index, entry.info.kind, entry.info.identity});
    opened.push_back(open_before[{entry.loaded.get(), entry.info.name}]);
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    entries[i].info.alias = alias_of(available, i);
    infos.push_back(entries[i].info);
  }
}

}  // namespace tenon::exec
