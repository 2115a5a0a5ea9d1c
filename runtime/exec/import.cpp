// SPDX-License-Identifier: Apache-2.0
#include "exec/import.h"

#include <fmt/core.h>
#include <tenon/dlpack.h>
#include <tenon/dlpack_extension.h>

#include <memory>
#include <utility>

#include "core/dlpack.h"
#include "exec/device_state.h"

namespace tenon {
namespace exec {

std::shared_ptr<Storage> DeviceState::import(void* host, std::uint64_t size_bytes, std::uint32_t terms) {
  check_process();
  tenon_memory_import request{};
  request.struct_size = sizeof request;
  request.terms = terms;
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

Tensor import_tensor(const Tensor& host, const Device& device, bool read_only) {
  if (!host.is_dense() || host.count() == 0) return {};
  DeviceState& state = *device.state();
  std::shared_ptr<Storage> storage = state.import(const_cast<void*>(host.raw()), static_cast<std::uint64_t>(host.size_bytes()),
                                                  read_only ? TENON_IMPORT_BORROW_READ_ONLY : TENON_IMPORT_BORROW_READ_WRITE);
  if (storage == nullptr || storage->address % state.alignment_of(host.dtype()) != 0) return {};
  const std::uint64_t address = storage->address;
  return Tensor::make(std::move(storage), address, host.dtype(), host.shape());
}

void keep_exporter(const Tensor& imported, std::shared_ptr<void> exporter) {
  std::shared_ptr<void>& owner = imported.storage()->owner;
  owner = std::make_shared<Imported>(Imported{std::move(exporter), std::move(owner)});
}

namespace {

/// The exporter's tensor as memory of the device, and whether it must not be written to.
template <class Managed>
ImportedTensor import_managed(Managed* managed, const Device& device) {
  const DLTensor& from = dlpack_tensor(managed);
  const bool read_only = is_read_only(managed);
  const std::shared_ptr<DeviceState>& state = device.state();
  if (state->dlpack_device() == DlpackDevice{from.device.device_type, from.device.device_id}) {
    const Tensor in_place = dlpack_view(from, state);
    in_place.storage()->owner = dlpack_owner(managed);
    return {in_place, read_only};
  }
  const Tensor view = dlpack_view(from);
  const Tensor imported = import_tensor(view, device, read_only);
  if (imported.defined()) {
    keep_exporter(imported, dlpack_owner(managed));
    return {imported, read_only};
  }
  const Tensor copy = view.to(device);
  dlpack_owner(managed).reset();
  return {copy, false};
}

}  // namespace
}  // namespace exec

Tensor from_dlpack(DLManagedTensor* managed, const Device& device) {
  return exec::import_managed(managed, device).tensor;
}
ImportedTensor from_dlpack(DLManagedTensorVersioned* managed, const Device& device) {
  return exec::import_managed(managed, device);
}

std::optional<DlpackDevice> exec::DeviceState::dlpack_device() const {
  if (host_addressable()) return std::nullopt;  // its memory is the host's
  if (table.extension == nullptr) return std::nullopt;
  const void* offered = table.extension(loaded->backend->handle(), TENON_DLPACK_EXTENSION, TENON_DLPACK_EXTENSION_VERSION);
  if (offered == nullptr) return std::nullopt;
  DlpackDevice place;
  place.type = static_cast<const tenon_dlpack_extension*>(offered)->device_type;
  place.id = static_cast<std::int32_t>(index);
  return place;
}

}  // namespace tenon
