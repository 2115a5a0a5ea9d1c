// SPDX-License-Identifier: Apache-2.0
#include "exec/packed_parameters.h"

#include <fmt/core.h>

#include <cstddef>
#include <cstring>
#include <utility>

#include "exec/call.h"
#include "exec/device_state.h"
#include "exec/program_memory.h"

namespace tenon::exec {

PackedParameter::PackedParameter(std::shared_ptr<DeviceState> device, std::shared_ptr<const ParameterStore> store, tenon_packed* handle,
                                 std::uint64_t reserved_bytes)
    : device_(std::move(device)), store_(std::move(store)), handle_(handle), reserved_bytes_(reserved_bytes) {}

PackedParameter::~PackedParameter() {
  if (device_->in_its_process()) device_->table.pack->destroy(handle_);
  device_->allocator->unreserve(reserved_bytes_);
}

bool offers_packing(const DeviceState& device) {
  const tenon_pack_table* block = device.table.pack;
  return block != nullptr && block->describe != nullptr && block->create != nullptr && block->destroy != nullptr;
}

ParameterPacking describe_packing(DeviceState& device, const tenon_graph& graph, const tenon_plan_options& options, std::uint32_t value) {
  const std::string what = fmt::format("device '{}': the packed form of value {}", device.info.name, value);
  ErrorText error;
  tenon_packing packing{};
  packing.struct_size = sizeof packing;
  const tenon_status status = guarded_call(
      "pack.describe", error, [&] { return device.table.pack->describe(device.handle, &graph, &options, value, &packing, error); });
  if (status == TENON_UNSUPPORTED) return {};
  check(status, error, what);
  const auto* const end = static_cast<const char*>(std::memchr(packing.key, 0, sizeof packing.key));
  const std::size_t length = end == nullptr ? sizeof packing.key : static_cast<std::size_t>(end - packing.key);
  if (length == 0 || end == nullptr || packing.size_bytes > max_plan_bytes) {
    throw Error(
        Status::internal,
        fmt::format("{}: expected a key of 1 to {} characters, for at most {} bytes, got one of {} characters, for {} bytes; report "
                    "this to the plugin's vendor",
                    what, sizeof packing.key - 1, max_plan_bytes, length, packing.size_bytes));
  }
  return {packing.key, packing.size_bytes};
}

std::shared_ptr<PackedParameter> make_packed(const std::shared_ptr<DeviceState>& device, std::shared_ptr<const ParameterStore> store,
                                             const tenon_graph& graph, const tenon_plan_options& options, std::uint32_t value,
                                             const std::string& name, std::uint64_t size_bytes, bool reserves) {
  const std::string what = fmt::format("device '{}': parameter '{}', packed", device->info.name, name);
  const std::uint64_t reserved = reserves ? size_bytes : 0;
  device->allocator->reserve(reserved, fmt::format("the plans that read parameter '{}'", name));
  ErrorText error;
  tenon_packed* handle = nullptr;
  try {
    const tenon_status status = guarded_call(
        "pack.create", error, [&] { return device->table.pack->create(device->handle, &graph, &options, value, &handle, error); });
    check_made(status, error, handle != nullptr, "pack.create", what);
    return std::make_shared<PackedParameter>(device, std::move(store), handle, reserved);
  } catch (...) {
    device->allocator->unreserve(reserved);
    throw;
  }
}

}  // namespace tenon::exec
