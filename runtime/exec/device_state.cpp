#include "exec/device_state.h"

#include <fmt/core.h>

namespace tenon::exec {

DeviceState::DeviceState(std::shared_ptr<LoadedBackend> backend, std::uint32_t index, DeviceInfo described)
    : loaded(std::move(backend)), info(std::move(described)), table(loaded->backend->table()), generation(fork_generation()) {
  CallError error;
  check(table.device_open(loaded->backend->handle(), index, &handle, error.get()), error,
        fmt::format("device '{}' cannot be opened", info.name));
  const tenon_status status = table.stream_create(handle, &stream, error.get());
  if (status != TENON_OK) table.device_close(handle);
  check(status, error, fmt::format("device '{}' gives no stream", info.name));
}

DeviceState::~DeviceState() {
  if (generation != fork_generation() && !inline_streams()) return;  // the parent's device
  table.stream_destroy(stream);
  table.device_close(handle);
}

void DeviceState::check_process() const {
  if (generation == fork_generation() || inline_streams()) return;
  throw Error(Status::forked, fmt::format("device '{}' was opened before fork(); a child process opens its own context", info.name));
}

std::shared_ptr<Storage> DeviceState::allocate(std::uint64_t size_bytes, std::uint32_t kind) {
  check_process();
  CallError error;
  tenon_memory* memory = nullptr;
  std::uint64_t address = 0;
  const tenon_status status = table.memory_allocate(handle, kind, size_bytes, &memory, &address, error.get());
  if (status != TENON_OK) {
    const tenon_memory_stats now = stats();
    throw Error(static_cast<Status>(status), fmt::format("device '{}': no memory for {} bytes; {} are in use, {} at the peak ({})",
                                                         info.name, size_bytes, now.live_size_bytes, now.peak_size_bytes, error.text()));
  }
  auto storage = std::make_shared<Storage>();
  storage->address = address;
  storage->size_bytes = size_bytes;
  storage->device = shared_from_this();
  storage->owner = std::shared_ptr<void>(memory, [self = shared_from_this()](void* m) {
    if (self->generation != fork_generation() && !self->inline_streams()) return;
    self->table.memory_free(static_cast<tenon_memory*>(m));
  });
  return storage;
}

void DeviceState::copy(std::uint32_t direction, std::uint64_t destination, std::uint64_t source, std::uint64_t size_bytes,
                       tenon_device* peer) {
  if (size_bytes == 0) return;
  tenon_copy transfer{};
  transfer.struct_size = sizeof transfer;
  transfer.direction = direction;
  transfer.destination = destination;
  transfer.source = source;
  transfer.size_bytes = size_bytes;
  transfer.peer = peer;
  CallError error;
  const tenon_status status = table.copy(handle, &transfer, stream, error.get());
  if (status != TENON_OK) check(status, error, fmt::format("device '{}': a copy of {} bytes failed", info.name, size_bytes));
}

void DeviceState::synchronize() {
  if (inline_streams()) return;
  CallError error;
  const tenon_status status = table.stream_synchronize(stream, error.get());
  if (status != TENON_OK) check(status, error, fmt::format("device '{}'", info.name));
}

void DeviceState::download(std::uint64_t address, void* host, std::uint64_t size_bytes) {
  check_process();
  copy(TENON_COPY_DEVICE_TO_HOST, reinterpret_cast<std::uintptr_t>(host), address, size_bytes);
  synchronize();
}

void DeviceState::upload(std::uint64_t address, const void* host, std::uint64_t size_bytes) {
  check_process();
  copy(TENON_COPY_HOST_TO_DEVICE, address, reinterpret_cast<std::uintptr_t>(host), size_bytes);
  synchronize();
}

tenon_memory_stats DeviceState::stats() {
  tenon_memory_stats result{};
  result.struct_size = sizeof result;
  CallError error;
  check(table.memory_stats(handle, &result, error.get()), error, fmt::format("device '{}': memory statistics", info.name));
  return result;
}

}  // namespace tenon::exec

namespace tenon {

Tensor Tensor::to(const Device& device) const {
  if (storage_ != nullptr && storage_->device.get() == device.state().get() && is_dense()) return *this;
  Tensor copy = device.empty(dtype_, shape_);
  const Tensor host = on_host() && is_dense() ? *this : to_host();
  device.state()->upload(copy.address(), host.raw(), static_cast<std::uint64_t>(host.size_bytes()));
  return copy;
}

}  // namespace tenon
