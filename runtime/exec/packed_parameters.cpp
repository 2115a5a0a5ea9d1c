// SPDX-License-Identifier: Apache-2.0
#include "exec/packed_parameters.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "exec/call.h"
#include "exec/device_state.h"
#include "exec/program_memory.h"
#include "text/counted.h"

namespace tenon::exec {

PackedParameter::PackedParameter(std::shared_ptr<DeviceState> device, std::shared_ptr<const ParameterStore> store, tenon_packed* handle,
                                 std::uint64_t reserved_bytes)
    : device_(std::move(device)), store_(std::move(store)), handle_(handle), reserved_bytes_(reserved_bytes) {}

PackedParameter::~PackedParameter() {
  if (device_->in_its_process()) device_->table.pack->destroy(handle_);
  device_->allocator->unreserve(reserved_bytes_);
}

std::vector<tenon_packing> describe_packings(DeviceState& device, const tenon_graph& graph, const tenon_plan_options& options) {
  const tenon_pack_table* block = device.table.pack;
  if (block == nullptr || block->describe == nullptr || block->create == nullptr || block->destroy == nullptr) return {};
  const std::string what = fmt::format("device '{}': the packed forms of a graph", device.info.name);
  std::vector<tenon_packing> packings(graph.value_count);
  ErrorText error;
  const tenon_status status = guarded_call("pack.describe", error, [&] {
    return block->describe(device.handle, &graph, &options, packings.data(), sizeof(tenon_packing), error);
  });
  check(status, error, what);
  for (std::size_t v = 0; v < packings.size(); ++v) {
    const bool ends = std::memchr(packings[v].key, 0, sizeof packings[v].key) != nullptr;
    if (ends && packings[v].size_bytes <= max_plan_bytes) continue;
    throw Error(Status::internal,
                fmt::format("{}: value {}: expected a key that ends in NUL, for at most {} bytes, got {} for {} bytes; report this to the "
                            "plugin's vendor",
                            what, v, max_plan_bytes, ends ? "one" : "one without an end", packings[v].size_bytes));
  }
  return packings;
}

PackedList make_packed(const std::shared_ptr<DeviceState>& device, const std::shared_ptr<const ParameterStore>& store,
                       const tenon_graph& graph, const tenon_plan_options& options, const std::vector<ParameterPacking>& parameters,
                       bool reserves) {
  std::vector<std::uint32_t> values;
  std::uint64_t total = 0;
  for (const ParameterPacking& parameter : parameters) {
    values.push_back(parameter.value);
    total += reserves ? parameter.size_bytes : 0;
  }
  device->allocator->reserve(total, fmt::format("the plans that read {}", counted(parameters.size(), "parameter")));
  std::vector<tenon_packed*> handles(values.size(), nullptr);
  tenon_status status = TENON_OK;
  try {
    ErrorText error;
    status = guarded_call("pack.create", error, [&] {
      return device->table.pack->create(device->handle, &graph, &options, values.data(), static_cast<std::uint32_t>(values.size()),
                                        handles.data(), error);
    });
    const bool made = std::find(handles.begin(), handles.end(), nullptr) == handles.end();
    check_made(status, error, made, "pack.create",
               fmt::format("device '{}': {}", device->info.name, counted(values.size(), "packed parameter")));
  } catch (...) {
    for (tenon_packed* const handle : handles) {  // OK without all of them: those that are there are the caller's
      if (status == TENON_OK && handle != nullptr) device->table.pack->destroy(handle);
    }
    device->allocator->unreserve(total);
    throw;
  }
  PackedList made;
  for (std::size_t i = 0; i < handles.size(); ++i) {
    made.push_back(std::make_shared<PackedParameter>(device, store, handles[i], reserves ? parameters[i].size_bytes : 0));
  }
  return made;
}

}  // namespace tenon::exec
