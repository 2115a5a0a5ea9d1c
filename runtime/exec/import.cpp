// SPDX-License-Identifier: Apache-2.0
// Host memory of another library as memory of a device.
#include <fmt/core.h>
#include <tenon/dlpack.h>

#include <memory>
#include <utility>

#include "core/dlpack.h"
#include "exec/device_state.h"

namespace tenon {
namespace exec {

std::shared_ptr<Storage> DeviceState::import(void* host, std::uint64_t size_bytes) {
  check_process();
  tenon_memory_import request{};
  request.struct_size = sizeof request;
  request.terms = TENON_IMPORT_BORROW_READ_WRITE;
  request.host = host;
  request.size_bytes = size_bytes;
  tenon_memory_result result{};
  result.struct_size = sizeof result;
  ErrorText error;
  const tenon_status status = table.memory_import(handle, &request, &result, error);
  if (status == TENON_UNSUPPORTED) return nullptr;
  const bool whole = result.memory != nullptr && (result.address != 0 || size_bytes == 0);
  if (status == TENON_OK && !whole && result.memory != nullptr) table.memory_free(result.memory);
  check_made(status, error, whole, "memory_import", fmt::format("device '{}': {} bytes of host memory", info.name, size_bytes));
  auto storage = std::make_shared<Storage>();
  storage->address = result.address;
  storage->size_bytes = size_bytes;
  storage->owner = std::shared_ptr<void>(result.memory, [self = shared_from_this()](void* memory) {
    if (self->in_its_process()) self->table.memory_free(static_cast<tenon_memory*>(memory));
  });
  storage->device = shared_from_this();
  return storage;
}

}  // namespace exec

namespace {

/// What a tensor of imported memory keeps alive. The import ends before the exporter frees the memory.
struct Imported {
  std::shared_ptr<void> exporter;
  std::shared_ptr<void> memory;
};

}  // namespace

Tensor from_dlpack(DLManagedTensor* managed, const Device& device) {
  Tensor view = dlpack_view(managed);
  exec::DeviceState& state = *device.state();
  std::shared_ptr<Storage> storage;
  if (view.is_dense() && view.count() > 0) storage = state.import(view.raw(), static_cast<std::uint64_t>(view.size_bytes()));
  if (storage == nullptr || storage->address % state.alignment_of(view.dtype()) != 0) {
    Tensor copy = view.to(device);
    dlpack_owner(managed).reset();
    return copy;
  }
  auto owner = std::make_shared<Imported>();
  owner->memory = std::move(storage->owner);
  owner->exporter = dlpack_owner(managed);
  storage->owner = std::move(owner);
  const std::uint64_t address = storage->address;
  return Tensor::make(std::move(storage), address, view.dtype(), view.shape());
}

}  // namespace tenon
