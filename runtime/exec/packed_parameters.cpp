// SPDX-License-Identifier: Apache-2.0
#include "exec/packed_parameters.h"

#include <fmt/core.h>

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
  device_->allocator->unreserve(reserved_bytes_);
  if (device_->in_its_process()) device_->table.pack->destroy(handle_);
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
  if (std::memchr(packing.key, 0, sizeof packing.key) == nullptr || packing.key[0] == 0 || packing.size_bytes > max_plan_bytes) {
    throw Error(
        Status::internal,
        fmt::format("{}: expected a key that ends in NUL and is not empty and at most {} bytes, got a key of {} bytes and {} bytes; "
                    "report this to the plugin's vendor",
                    what, max_plan_bytes, strnlen(packing.key, sizeof packing.key), packing.size_bytes));
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
    if (handle != nullptr) device->table.pack->destroy(handle);
    device->allocator->unreserve(reserved);
    throw;
  }
}

}  // namespace tenon::exec
