// SPDX-License-Identifier: Apache-2.0
#include "exec/import.h"

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

namespace {

/// What a tensor of imported memory keeps alive. The import ends before the exporter frees the memory.
struct Imported {
  std::shared_ptr<void> exporter;
  std::shared_ptr<void> memory;
};

}  // namespace

Tensor import_tensor(const Tensor& host, const Device& device) {
  if (!host.is_dense() || host.count() == 0) return {};
  DeviceState& state = *device.state();
  std::shared_ptr<Storage> storage = state.import(const_cast<void*>(host.raw()), static_cast<std::uint64_t>(host.size_bytes()));
  if (storage == nullptr || storage->address % state.alignment_of(host.dtype()) != 0) return {};
  const std::uint64_t address = storage->address;
  return Tensor::make(std::move(storage), address, host.dtype(), host.shape());
}

void keep_exporter(const Tensor& imported, std::shared_ptr<void> exporter) {
  std::shared_ptr<void>& owner = imported.storage()->owner;
  owner = std::make_shared<Imported>(Imported{std::move(exporter), std::move(owner)});
}

}  // namespace exec

Tensor from_dlpack(DLManagedTensor* managed, const Device& device) {
  const Tensor view = dlpack_view(managed);
  const Tensor imported = exec::import_tensor(view, device);
  if (!imported.defined()) {
    Tensor copy = view.to(device);
    dlpack_owner(managed).reset();
    return copy;
  }
  exec::keep_exporter(imported, dlpack_owner(managed));
  return imported;
}

}  // namespace tenon
