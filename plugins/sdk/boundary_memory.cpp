// SPDX-License-Identifier: Apache-2.0
// boundary_memory.cpp - the slots for memory: allocating, importing, copying and filling it.
#include <cstdint>
#include <memory>
#include <string>

#include <tenon/sdk/needs.h>

#include "address.h"
#include "boundary.h"
#include "guarded.h"
#include "handles.h"

struct tenon_memory {
  tenon_device* owner;
  std::uint32_t kind;
  std::uint64_t address, size;  ///< size as requested: for 0, one byte is allocated
  bool borrowed;                ///< the bytes are the host's, used in place
  void* host;                   ///< its address, if borrowed
};

namespace tenon::sdk {
namespace {

/// Device memory, at least one byte: every allocation has an address of its own.
std::uint64_t allocate(tenon_device* self, std::uint32_t kind, std::uint64_t size) {
  try {
    return self->device->allocate(kind, size == 0 ? 1 : size);
  } catch (const Error& e) {
    if (e.status() != TENON_OUT_OF_MEMORY) throw;
    const tenon_memory_stats stats = self->memory_stats.read();
    throw Error(TENON_OUT_OF_MEMORY, std::string(e.what()) + " (" + std::to_string(stats.live_size_bytes) + " in use, " +
                                         std::to_string(stats.peak_size_bytes) + " at the peak)");
  }
}

void hand_over_memory(std::unique_ptr<tenon_memory> memory, tenon_memory_result* out_result) {
  const bool on_host = memory->kind != TENON_MEMORY_DEVICE || memory->owner->device->host_addressable();
  tenon_memory_result result{};
  result.address = memory->address;
  result.host = on_host ? pointer(memory->address) : memory->host;
  result.memory = memory.release();
  hand_over(result, out_result);
}

/// Refuses an alignment that the device's memory does not have.
void check_alignment(const Device& device, std::uint64_t alignment) {
  if ((alignment & (alignment - 1)) != 0) {
    throw Error(TENON_INVALID_ARGUMENT, "memory_allocate: expected an alignment that is a power of two, got " + std::to_string(alignment));
  }
  if (alignment > device.alignment_bytes) {
    throw Error(TENON_UNSUPPORTED, "memory_allocate: expected an alignment of at most " + std::to_string(device.alignment_bytes) +
                                       " bytes, got " + std::to_string(alignment));
  }
}

tenon_status memory_allocate(tenon_device* self, const tenon_memory_request* request, tenon_memory_result* out_result, tenon_error* error) {
  return guarded(error, [&] {
    check_needs("memory_allocate", request->needs);
    const std::uint32_t kind = request->kind;
    if (kind > TENON_MEMORY_PINNED) throw Error(TENON_UNSUPPORTED, "memory_allocate: kind " + std::to_string(kind) + " is unknown");
    check_alignment(*self->device, request->alignment_bytes);
    auto memory = std::make_unique<tenon_memory>(tenon_memory{self, kind, 0, request->size_bytes, false, nullptr});
    memory->address = allocate(self, kind, request->size_bytes);
    self->memory_stats.add(request->size_bytes);
    hand_over_memory(std::move(memory), out_result);
  });
}

tenon_status memory_import(tenon_device* self, const tenon_memory_import* given, tenon_memory_result* out_result, tenon_error* error) {
  return guarded(error, [&] {
    check_needs("memory_import", given->needs);
    void* const host = given->host;
    const std::uint64_t size = given->size_bytes;
    const std::uint32_t terms = given->terms;
    if (terms > TENON_IMPORT_BORROW_READ_WRITE) {
      throw Error(TENON_UNSUPPORTED, "memory_import: terms " + std::to_string(terms) + " are unknown");
    }
    if (host == nullptr && size > 0) {
      throw Error(TENON_INVALID_ARGUMENT, "memory_import: " + std::to_string(size) + " bytes at a NULL pointer");
    }
    const bool borrowed = self->device->borrows(terms);
    auto memory = std::make_unique<tenon_memory>(tenon_memory{self, TENON_MEMORY_DEVICE, 0, size, borrowed, borrowed ? host : nullptr});
    if (size > 0) {
      memory->address = self->device->import_host(host, size, terms);
    } else {
      memory->address = borrowed ? reinterpret_cast<std::uintptr_t>(host) : allocate(self, TENON_MEMORY_DEVICE, 0);
    }
    if (!borrowed) self->memory_stats.add(size);
    hand_over_memory(std::move(memory), out_result);
  });
}

void memory_free(tenon_memory* memory) {
  guarded(nullptr, [&] {
    tenon_device* owner = memory->owner;
    if (memory->borrowed) {
      if (memory->size > 0) owner->device->end_import(memory->host, memory->size);
      return;
    }
    owner->memory_stats.remove(memory->size);
    owner->device->deallocate(memory->kind, memory->address, memory->size == 0 ? 1 : memory->size);
  });
  delete memory;
}

tenon_status memory_stats(tenon_device* self, tenon_memory_stats* out_stats, tenon_error* error) {
  return guarded(error, [&] { hand_over(self->memory_stats.read(), out_stats); });
}

void check_range(const char* slot, std::uint64_t address, std::uint64_t size) {
  if (address + size >= address) return;
  throw Error(TENON_INVALID_ARGUMENT, std::string(slot) + ": " + std::to_string(size) + " bytes from address " + std::to_string(address) +
                                          " on exceed the address space");
}

tenon_status copy(tenon_device* self, const tenon_copy* transfer, tenon_stream* stream, tenon_error* error) {
  return guarded(error, [&] {
    check_needs("copy", transfer->needs);
    if (transfer->direction > TENON_COPY_DEVICE_TO_DEVICE) {
      throw Error(TENON_UNSUPPORTED, "copy: direction " + std::to_string(transfer->direction) + " is unknown");
    }
    check_range("copy", transfer->destination, transfer->size_bytes);
    check_range("copy", transfer->source, transfer->size_bytes);
    self->device->copy(*transfer, *stream->stream);
  });
}

tenon_status fill(tenon_device* self, std::uint64_t address, std::uint64_t size, std::uint8_t value, tenon_stream* stream,
                  tenon_error* error) {
  return guarded(error, [&] {
    check_range("fill", address, size);
    self->device->fill(address, size, value, *stream->stream);
  });
}

}  // namespace

Device& device_of(tenon_device* handle) {
  return *handle->device;
}

void add_memory_slots(tenon_backend_table& table) {
  table.memory_allocate = memory_allocate;
  table.memory_import = memory_import;
  table.memory_free = memory_free;
  table.memory_stats = memory_stats;
  table.copy = copy;
  table.fill = fill;
}

}  // namespace tenon::sdk
