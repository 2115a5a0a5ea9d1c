// SPDX-License-Identifier: Apache-2.0
// shortage.h - wraps a backend of this build so that its host memory, device memory or memory for copies runs out at a chosen request. One
// file of a program includes it.
//
// The plugin gets the core's host table with other `allocate` and `release`; the core gets the plugin's table with other memory_allocate,
// memory_free and copy. The devices report that the host cannot read their memory, so that the core uses the code path for GPUs.
#pragma once

#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <list>
#include <string>

#include <tenon/backend.h>

#include "loader/find.h"
#include "platform/library.h"
#include "platform/path.h"

namespace tenon::test::shortage {

/// Requests of one kind: their number, which of them fail, and the number of live allocations.
struct Supply {
  std::atomic<std::int64_t> requests{0};
  std::atomic<std::int64_t> first = std::numeric_limits<std::int64_t>::max();  ///< the first request that fails, from 0
  std::atomic<bool> lasting{false};                                            ///< all later requests fail as well
  std::atomic<std::int64_t> held{0};                                           ///< allocated and not freed

  bool refuses() {
    const std::int64_t request = requests.fetch_add(1);
    return lasting ? request >= first : request == first;
  }
  void never_fail() { first = std::numeric_limits<std::int64_t>::max(); }
  void fail_at(std::int64_t request, bool for_good) {
    requests = 0;
    lasting = for_good;
    first = request;
  }
};
inline Supply host_memory, device_memory, copies;

struct Plugin {
  tenon_backend_query_fn query = nullptr;
  decltype(tenon_backend_info::create) create = nullptr;
  const tenon_backend_table* table = nullptr;
  tenon_backend_table altered{};
};
inline Plugin plugin;

/// The core's original table, and a modified one per backend; these outlive every backend of the program.
inline tenon_host core{};
inline std::list<tenon_host> tables;

inline void* allocate(tenon_host_context* context, std::uint64_t size, std::uint64_t alignment) {
  if (host_memory.refuses()) return nullptr;
  void* const memory = core.allocate(context, size, alignment);
  if (memory != nullptr) ++host_memory.held;
  return memory;
}
inline void release(tenon_host_context* context, void* memory, std::uint64_t size) {
  if (memory != nullptr) --host_memory.held;
  core.release(context, memory, size);
}

inline tenon_status memory_allocate(tenon_device* device, const tenon_memory_request* request, tenon_memory_result* out_result,
                                    tenon_error* error) {
  if (device_memory.refuses()) {
    if (error != nullptr && error->text != nullptr) std::snprintf(error->text, error->text_capacity, "out of device memory for the test");
    return TENON_OUT_OF_MEMORY;
  }
  const tenon_status status = plugin.table->memory_allocate(device, request, out_result, error);
  if (status == TENON_OK) ++device_memory.held;
  return status;
}
inline void memory_free(tenon_memory* memory) {
  if (memory != nullptr) --device_memory.held;
  plugin.table->memory_free(memory);
}

inline tenon_status copy(tenon_device* device, const tenon_copy* what, tenon_stream* stream, tenon_error* error) {
  if (copies.refuses()) {
    if (error != nullptr && error->text != nullptr) std::snprintf(error->text, error->text_capacity, "no memory to stage a copy in");
    return TENON_OUT_OF_MEMORY;
  }
  return plugin.table->copy(device, what, stream, error);
}
inline tenon_status device_info(tenon_backend* backend, std::uint32_t index, tenon_device_info* out_info, tenon_error* error) {
  const tenon_status status = plugin.table->device_info(backend, index, out_info, error);
  if (status == TENON_OK) out_info->flags &= ~static_cast<std::uint32_t>(TENON_DEVICE_HOST_ADDRESSABLE);
  return status;
}

inline tenon_status create(const tenon_host* host, tenon_backend** out_backend, const tenon_backend_table** out_table, tenon_error* error) {
  core = *host;
  tenon_host& own = tables.emplace_back(core);
  own.allocate = allocate;
  own.release = release;
  const tenon_status status = plugin.create(&own, out_backend, &plugin.table, error);
  if (status != TENON_OK) return status;
  plugin.altered = *plugin.table;
  plugin.altered.memory_allocate = memory_allocate;
  plugin.altered.memory_free = memory_free;
  plugin.altered.copy = copy;
  plugin.altered.device_info = device_info;
  *out_table = &plugin.altered;
  return TENON_OK;
}

inline tenon_status query(const tenon_host_info* host, tenon_backend_info* out_info) {
  const tenon_status status = plugin.query(host, out_info);
  if (status != TENON_OK) return status;
  plugin.create = out_info->create;
  out_info->create = create;
  return status;
}

/// Makes `query` that of this backend.
inline void use_backend(const std::string& backend) {
  std::string reason;
  void* const library = platform::open_library(platform::path_of(TENON_BACKEND_DIRECTORY) / loader::backend_file_name(backend), reason);
  REQUIRE_MESSAGE(library != nullptr, reason);
  plugin = {};
  plugin.query = reinterpret_cast<tenon_backend_query_fn>(platform::find_symbol(library, TENON_BACKEND_QUERY_SYMBOL));
}

}  // namespace tenon::test::shortage
