// SPDX-License-Identifier: Apache-2.0
#include "exec/device_state.h"

#include <fmt/core.h>

#include <chrono>

#include "core/log.h"

namespace tenon::exec {

namespace {

/// Nanoseconds since `begin`.
std::uint64_t since(std::chrono::steady_clock::time_point begin) {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin).count());
}

}  // namespace

namespace {

/// Errors  an alignment of operands that allocations do not have.
void check_alignment(const DeviceInfo& info) {
  const auto is_power_of_two = [](std::uint64_t n) { return n != 0 && (n & (n - 1)) == 0; };
  const std::uint64_t memory = info.alignment_bytes, operands = info.operand_alignment_bytes;
  if (is_power_of_two(memory) && is_power_of_two(operands) && operands <= memory) return;
  throw Error(Status::unsupported,
              fmt::format("device '{}': expected alignments that are powers of two, of operands at most that of memory, got {} bytes for "
                          "operands and {} for memory; report this to the plugin's vendor",
                          info.name, operands, memory));
}

/// Errors  a largest allocation that is less than what every program needs, or more than the device has.
void check_max_allocation(const DeviceInfo& info) {
  const std::uint64_t max = info.max_allocation_size_bytes, least = std::max(info.alignment_bytes, MemoryPool::min_alignment);
  if (max == 0 || (max >= least && (info.memory_size_bytes == 0 || max <= info.memory_size_bytes))) return;
  const std::string most =
      info.memory_size_bytes == 0 ? "" : fmt::format(" and at most {}, the size of its memory", info.memory_size_bytes);
  throw Error(Status::unsupported,
              fmt::format("device '{}': expected max_allocation_size_bytes of 0, or at least {} bytes{}, got {}; report "
                          "this to the plugin's vendor",
                          info.name, least, most, max));
}

}  // namespace

DeviceState::DeviceState(std::shared_ptr<LoadedBackend> backend, std::uint32_t index_there, DeviceInfo described, DeviceSettings settings)
    : loaded(std::move(backend)),
      info(std::move(described)),
      table(loaded->backend->table()),
      index(index_there),
      generation(fork_generation()),
      copy_counters(settings.copy_counters != nullptr ? std::move(settings.copy_counters) : std::make_shared<CopyCounters>()),
      trace(settings.trace != nullptr ? std::move(settings.trace) : std::make_shared<TraceRecorder>()),
      context(std::move(settings.context)),
      arithmetic(settings.arithmetic) {
  check_alignment(info);
  check_max_allocation(info);
  ErrorText error;
  tenon_status status = table.device_open(loaded->backend->handle(), index, &handle, error);
  check_made(status, error, handle != nullptr, "device_open", fmt::format("device '{}' cannot be opened", info.name));
  status = table.stream_create(handle, nullptr, &stream, error);
  if (status != TENON_OK || stream == nullptr) table.device_close(handle);
  check_made(status, error, stream != nullptr, "stream_create", fmt::format("device '{}' cannot create a stream", info.name));
  const bool growth = settings.memory.growth;
  const auto allocate_device = [this](std::uint64_t size_bytes) {
    MemoryPool::Block block{0, size_bytes, nullptr};
    block.owner = allocate_kind(size_bytes, TENON_MEMORY_DEVICE, &block.address);
    return block;
  };
  const auto free_device = [this](const MemoryPool::Block& block) {
    if (in_its_process()) table.memory_free(static_cast<tenon_memory*>(block.owner));
  };
  try {
    settings.memory.alignment_bytes = info.operand_alignment_bytes;
    settings.memory.max_allocation_size_bytes = info.max_allocation_size_bytes;
    allocator.emplace(info.name, std::move(settings.memory), allocate_device, free_device, [this] { return free_size_bytes(); });
    if (!growth) allocator->preallocate();
  } catch (...) {
    allocator.reset();
    table.stream_destroy(stream);
    table.device_close(handle);
    throw;
  }
}

std::uint64_t DeviceState::alignment_of(DType dtype) const {
  const bool is_complex = dtype == DType::c64 || dtype == DType::c128;
  return std::max(info.operand_alignment_bytes, static_cast<std::uint64_t>(is_complex ? size_of(dtype) / 2 : size_of(dtype)));
}

DeviceState::~DeviceState() {
  allocator.reset();
  if (!in_its_process()) return;  // the parent's device
  ErrorText ignored;
  tenon_memory_stats left{};
  left.struct_size = sizeof left;
  if (table.memory_stats(handle, &left, ignored) == TENON_OK && left.live_size_bytes != 0) {
    log::debug("device '{}': closes while its backend reports {} live bytes", info.name, left.live_size_bytes);
  }
  table.stream_destroy(stream);
  table.device_close(handle);
}

bool DeviceState::records() const {
  const tenon_capture_table* const block = table.capture;
  return block != nullptr && block->begin != nullptr && block->end != nullptr && block->replay != nullptr && block->destroy != nullptr;
}

void DeviceState::check_process() const {
  if (in_its_process()) return;
  throw Error(Status::forked, fmt::format("device '{}' was opened before fork(); a child process opens its own context", info.name));
}

std::shared_ptr<Storage> DeviceState::allocate(std::uint64_t size_bytes) {
  check_process();
  const MemoryPool::Block piece = allocator->allocate(size_bytes);
  std::shared_ptr<DeviceState> self = shared_from_this();
  auto storage = std::make_shared<Storage>();
  storage->address = piece.address;
  storage->size_bytes = size_bytes;
  storage->owner = std::shared_ptr<void>(piece.owner, [self, piece](void*) {
    if (!self->in_its_process()) return;
    self->allocator->release(piece);
    if (self->trace->on()) self->trace->add_memory(self->info.name, self->allocator->use().live_size_bytes);
  });
  storage->device = std::move(self);
  if (trace->on()) trace->add_memory(info.name, allocator->use().live_size_bytes);
  return storage;
}

std::shared_ptr<Storage> DeviceState::allocate_pinned(std::uint64_t size_bytes) {
  check_process();
  auto storage = std::make_shared<Storage>();
  tenon_memory* memory = allocate_kind(size_bytes, TENON_MEMORY_PINNED, &storage->address);
  storage->size_bytes = size_bytes;
  storage->owner = std::shared_ptr<void>(memory, [self = shared_from_this()](void* m) {
    if (self->in_its_process()) self->table.memory_free(static_cast<tenon_memory*>(m));
  });
  return storage;
}

tenon_memory* DeviceState::allocate_kind(std::uint64_t size_bytes, std::uint32_t kind, std::uint64_t* out_address) {
  if (info.max_allocation_size_bytes != 0 && size_bytes > info.max_allocation_size_bytes) {
    throw Error(Status::out_of_memory,
                fmt::format("device '{}': expected at most {} bytes in one allocation, the most that the device takes "
                            "(max_allocation_size_bytes), got {}",
                            info.name, info.max_allocation_size_bytes, size_bytes));
  }
  ErrorText error;
  tenon_memory_request request{};
  request.struct_size = sizeof request;
  request.kind = kind;
  request.size_bytes = size_bytes;
  tenon_memory_result result{};
  result.struct_size = sizeof result;
  const tenon_status status = table.memory_allocate(handle, &request, &result, error);
  const bool is_host_memory = kind != TENON_MEMORY_DEVICE;
  const bool whole = result.memory != nullptr && result.address != 0 && result.address + size_bytes >= result.address &&
                     (!is_host_memory || reinterpret_cast<std::uintptr_t>(result.host) == result.address);
  if (status != TENON_OK || (!whole && size_bytes > 0)) {
    if (status == TENON_OK && result.memory != nullptr) table.memory_free(result.memory);
    check_made(status, error, false, "memory_allocate",
               fmt::format("device '{}': {} bytes of {} memory", info.name, size_bytes, is_host_memory ? "pinned" : "device"));
  }
  *out_address = result.address;
  return result.memory;
}

std::uint64_t DeviceState::free_size_bytes() const {
  ErrorText ignored;
  tenon_device_info now{};
  now.struct_size = sizeof now;
  const tenon_status status = table.device_info(loaded->backend->handle(), index, &now, ignored);
  return status == TENON_OK && TENON_HAS(&now, tenon_device_info, memory_free_bytes) ? now.memory_free_bytes : 0;
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
  ErrorText error;
  const auto begin = std::chrono::steady_clock::now();
  const tenon_status status = [&] {
    tenon_stream* const to = other_stream != nullptr ? other_stream : stream;
    const auto lock = submission(to);
    return table.copy(handle, &transfer, to, error);
  }();
  if (status != TENON_OK) check(status, error, fmt::format("device '{}': a copy of {} bytes failed", info.name, size_bytes));
  copy_counters->add_copy(direction, size_bytes);
  if (inline_streams()) copy_counters->add_time(direction, since(begin));
  if (trace->on()) trace_copy(direction, size_bytes, begin, other_stream != nullptr);
}

void DeviceState::trace_copy(std::uint32_t direction, std::uint64_t size_bytes, std::chrono::steady_clock::time_point begin,
                             bool on_other_stream) {
  // For copies on a user's stream only the submission is timed, since waiting would make them synchronous.
  if (!on_other_stream) synchronize();
  static constexpr const char* names[] = {"host to device", "device to host", "device to device"};
  TraceEvent event;
  event.kind = TraceEvent::Kind::copy;
  event.device = trace->label(info.name);
  event.name =
      trace->label(on_other_stream && !inline_streams() ? std::string(names[direction]) + ", submitted to a stream" : names[direction]);
  event.duration_ns = since(begin);
  event.begin_ns = TraceRecorder::now_ns() - event.duration_ns;
  event.value = size_bytes;
  trace->add(event);
}

void DeviceState::copy_now(std::uint32_t direction, std::uint64_t destination, std::uint64_t source, std::uint64_t size_bytes) {
  check_process();
  const auto begin = std::chrono::steady_clock::now();
  copy(direction, destination, source, size_bytes);
  if (inline_streams()) return;
  synchronize();
  copy_counters->add_time(direction, since(begin));
}

void DeviceState::synchronize() {
  if (inline_streams()) return;
  const TraceScope scope(*trace, trace->on() ? "wait for " + info.name : std::string());
  ErrorText error;
  const tenon_status status = table.stream_synchronize(stream, error);
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

void DeviceState::fill(std::uint64_t address, std::uint64_t size_bytes, std::uint8_t value) {
  check_process();
  if (size_bytes == 0) return;
  ErrorText error;
  const tenon_status status = [&] {
    const auto lock = submission(stream);
    return table.fill(handle, address, size_bytes, value, stream, error);
  }();
  check(status, error, fmt::format("device '{}': filling {} bytes failed", info.name, size_bytes));
  synchronize();
}

tenon_memory_stats DeviceState::stats() {
  tenon_memory_stats result{};
  result.struct_size = sizeof result;
  ErrorText error;
  check(table.memory_stats(handle, &result, error), error, fmt::format("device '{}': memory statistics", info.name));
  return result;
}

}  // namespace tenon::exec

namespace tenon {

Tensor Tensor::to(const Device& device) const {
  if (!defined()) throw Error(fmt::format("Tensor::to '{}': got an undefined tensor", device.name()));
  if (storage_->device.get() == device.state().get() && is_dense()) return *this;
  Tensor copy = device.empty(dtype_, shape_);
  const Tensor host = on_host() && is_dense() ? *this : to_host();
  // Copy through the device even if the host could write there, so that the copy is counted.
  device.state()->upload(copy.address(), host.raw(), static_cast<std::uint64_t>(host.size_bytes()));
  return copy;
}

}  // namespace tenon
