#include "exec/device_state.h"

#include <fmt/core.h>

#include <chrono>

namespace tenon::exec {

namespace {

/// Nanoseconds since `begin`.
std::uint64_t since(std::chrono::steady_clock::time_point begin) {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin).count());
}

}  // namespace

DeviceState::DeviceState(std::shared_ptr<LoadedBackend> backend, std::uint32_t index, DeviceInfo described,
                         std::shared_ptr<CopyTally> shared_tally)
    : loaded(std::move(backend)),
      info(std::move(described)),
      table(loaded->backend->table()),
      generation(fork_generation()),
      tally(shared_tally != nullptr ? std::move(shared_tally) : std::make_shared<CopyTally>()) {
  CallError error;
  check(table.device_open(loaded->backend->handle(), index, &handle, error.get()), error,
        fmt::format("device '{}' cannot be opened", info.name));
  const tenon_status status = table.stream_create(handle, &stream, error.get());
  if (status != TENON_OK) table.device_close(handle);
  check(status, error, fmt::format("device '{}' gives no stream", info.name));
}

DeviceState::~DeviceState() {
  if (!in_its_process()) return;  // the parent's device
  table.stream_destroy(stream);
  table.device_close(handle);
}

void DeviceState::check_process() const {
  if (in_its_process()) return;
  throw Error(Status::forked, fmt::format("device '{}' was opened before fork(); a child process opens its own context", info.name));
}

std::shared_ptr<Storage> DeviceState::allocate(std::uint64_t size_bytes) {
  auto storage = allocate_kind(size_bytes, TENON_MEMORY_DEVICE);
  storage->device = shared_from_this();
  return storage;
}

std::shared_ptr<Storage> DeviceState::allocate_pinned(std::uint64_t size_bytes) {
  return allocate_kind(size_bytes, TENON_MEMORY_PINNED);
}

std::shared_ptr<Storage> DeviceState::allocate_kind(std::uint64_t size_bytes, std::uint32_t kind) {
  check_process();
  CallError error;
  tenon_memory* memory = nullptr;
  std::uint64_t address = 0;
  const tenon_status status = table.memory_allocate(handle, kind, size_bytes, &memory, &address, error.get());
  if (status != TENON_OK) {
    const tenon_memory_stats now = stats();
    throw Error(static_cast<Status>(status), fmt::format("device '{}': no {}memory for {} bytes; {} are in use, {} at the peak ({})",
                                                         info.name, kind == TENON_MEMORY_PINNED ? "pinned " : "", size_bytes,
                                                         now.live_size_bytes, now.peak_size_bytes, error.text()));
  }
  auto storage = std::make_shared<Storage>();
  storage->address = address;
  storage->size_bytes = size_bytes;
  storage->owner = std::shared_ptr<void>(memory, [self = shared_from_this()](void* m) {
    if (self->in_its_process()) self->table.memory_free(static_cast<tenon_memory*>(m));
  });
  return storage;
}

void DeviceState::copy(std::uint32_t direction, std::uint64_t destination, std::uint64_t source, std::uint64_t size_bytes,
                       tenon_device* peer, tenon_stream* other_stream) {
  if (size_bytes == 0) return;
  tenon_copy transfer{};
  transfer.struct_size = sizeof transfer;
  transfer.direction = direction;
  transfer.destination = destination;
  transfer.source = source;
  transfer.size_bytes = size_bytes;
  transfer.peer = peer;
  CallError error;
  const auto begin = std::chrono::steady_clock::now();
  const tenon_status status = table.copy(handle, &transfer, other_stream != nullptr ? other_stream : stream, error.get());
  if (status != TENON_OK) check(status, error, fmt::format("device '{}': a copy of {} bytes failed", info.name, size_bytes));
  tally->add_copy(direction, size_bytes);
  if (inline_streams()) tally->add_time(direction, since(begin));
}

void DeviceState::copy_now(std::uint32_t direction, std::uint64_t destination, std::uint64_t source, std::uint64_t size_bytes) {
  check_process();
  const auto begin = std::chrono::steady_clock::now();
  copy(direction, destination, source, size_bytes);
  if (inline_streams()) return;
  synchronize();
  tally->add_time(direction, since(begin));
}

void DeviceState::synchronize() {
  if (inline_streams()) return;
  CallError error;
  const tenon_status status = table.stream_synchronize(stream, error.get());
  if (status != TENON_OK) check(status, error, fmt::format("device '{}'", info.name));
}

void DeviceState::download(std::uint64_t address, void* host, std::uint64_t size_bytes) {
  copy_now(TENON_COPY_DEVICE_TO_HOST, reinterpret_cast<std::uintptr_t>(host), address, size_bytes);
}

void DeviceState::upload(std::uint64_t address, const void* host, std::uint64_t size_bytes) {
  copy_now(TENON_COPY_HOST_TO_DEVICE, address, reinterpret_cast<std::uintptr_t>(host), size_bytes);
}

void DeviceState::move(std::uint64_t to, std::uint64_t from, std::uint64_t size_bytes) {
  copy_now(TENON_COPY_DEVICE_TO_DEVICE, to, from, size_bytes);
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
  if (!defined()) throw Error(fmt::format("Tensor::to '{}': got an undefined tensor", device.name()));
  if (storage_->device.get() == device.state().get() && is_dense()) return *this;
  Tensor copy = device.empty(dtype_, shape_);
  const Tensor host = on_host() && is_dense() ? *this : to_host();
  // Through the device even where the host could write there itself: that counts the copy.
  device.state()->upload(copy.address(), host.raw(), static_cast<std::uint64_t>(host.size_bytes()));
  return copy;
}

}  // namespace tenon
