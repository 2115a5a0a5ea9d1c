// SPDX-License-Identifier: Apache-2.0
// The C side of a C++ backend: tenon_backend_table, each slot of it under the guard that turns exceptions into statuses, and the slots for
// the backend and its devices.
#include "boundary.h"

#include <algorithm>
#include <memory>
#include <string>

#include <tenon/sdk/backend.h>
#include <tenon/sdk/blas.h>

#include "guarded.h"
#include "handles.h"

namespace tenon::sdk {
namespace {

void close(tenon_device* device) {
  guarded(nullptr, [&] { device->device.reset(); });
  delete device;
}

void shutdown(tenon_backend* self) {
  if (self->shut_down) return;
  self->shut_down = true;
  for (tenon_device* device : self->open) close(device);
  self->open.clear();
  guarded(nullptr, [&] { self->backend->shutdown(); });
}

void destroy(tenon_backend* self) {
  shutdown(self);
  guarded(nullptr, [&] { self->backend.reset(); });
  delete self;
}

tenon_status device_count(tenon_backend* self, std::uint32_t* out_count, tenon_error* error) {
  return guarded(error, [&] {
    const std::uint32_t count = self->backend->device_count();
    if (count == 0) report(error, TENON_OK, self->backend->no_device_reason().c_str());
    *out_count = count;
  });
}

void check_index(tenon_backend* self, std::uint32_t index) {
  const std::uint32_t count = self->backend->device_count();
  if (index >= count) {
    throw Error(TENON_DEVICE_NOT_FOUND, "device " + std::to_string(index) + " of " + std::to_string(count) + " does not exist");
  }
}

tenon_status device_info(tenon_backend* self, std::uint32_t index, tenon_device_info* out_info, tenon_error* error) {
  return guarded(error, [&] {
    check_index(self, index);
    const DeviceDescription& d = self->backend->describe(index);
    tenon_device_info info{};
    info.kind = d.kind;
    info.flags = d.flags;
    info.compute_major = d.compute_major;
    info.compute_minor = d.compute_minor;
    info.clock_khz = d.clock_khz;
    info.name = d.name.c_str();
    info.identity = d.identity.c_str();
    info.description = d.description.c_str();
    info.memory_size_bytes = d.memory_size_bytes;
    info.memory_free_bytes = d.memory_free_bytes;
    info.alignment_bytes = d.alignment_bytes;
    info.dtypes = d.dtypes;
    info.operand_alignment_bytes = d.operand_alignment_bytes;
    info.max_allocation_size_bytes = d.max_allocation_size_bytes;
    hand_over(info, out_info);
  });
}

tenon_status device_open(tenon_backend* self, std::uint32_t index, tenon_device** out_device, tenon_error* error) {
  return guarded(error, [&] {
    check_index(self, index);
    auto device = std::make_unique<tenon_device>();
    device->backend = self;
    device->device = self->backend->open(index);
    const DeviceDescription& described = self->backend->describe(index);
    device->device->alignment_bytes = described.alignment_bytes;
    device->device->operand_alignment_bytes = std::max<std::uint64_t>(described.operand_alignment_bytes, 1);
    device->device->inline_streams = (described.flags & TENON_DEVICE_INLINE_STREAMS) != 0;
    device->rows = self->rows;
    const std::lock_guard lock(self->mutex);
    self->open.insert(device.get());
    *out_device = device.release();
  });
}

void device_close(tenon_device* self) {
  {
    const std::lock_guard lock(self->backend->mutex);
    self->backend->open.erase(self);
  }
  close(self);
}

const void* extension(tenon_backend* self, const char* name, std::uint32_t version) {
  const void* found = nullptr;
  guarded(nullptr, [&] { found = self->backend->extension(name, version); });
  return found;
}

}  // namespace

namespace detail {

const Host& host_of(const tenon_device* device) {
  return device->device->host;
}

tenon_backend_table make_table(const BackendSpec& spec, const tenon_blas_table* blas, const tenon_collectives_table* collectives,
                               const KernelRow* rows) {
  tenon_backend_table table{};
  table.struct_size = sizeof table;
  table.shutdown = shutdown;
  table.destroy = destroy;
  table.device_count = device_count;
  table.device_info = device_info;
  table.device_open = device_open;
  table.device_close = device_close;
  add_memory_slots(table);
  add_stream_slots(table, spec.captures);
  add_plan_slots(table, rows);
  table.blas = blas;
  table.extension = extension;
  table.collectives = spec.combined_dtypes != 0 ? collectives : nullptr;
  return table;
}

tenon_status create(const Registration& registration, const tenon_host* host, tenon_backend** out_backend,
                    const tenon_backend_table** out_table, tenon_error* error) {
  return guarded(error, [&] {
    auto backend = std::make_unique<tenon_backend>();
    backend->backend = registration.spec.create(Host(host));
    backend->rows = registration.rows;
    backend->combined_dtypes = registration.spec.combined_dtypes;
    *out_table = &registration.table;
    *out_backend = backend.release();
  });
}

}  // namespace detail
}  // namespace tenon::sdk
