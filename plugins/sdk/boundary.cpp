// SPDX-License-Identifier: Apache-2.0
// The C side of a C++ backend: the slots of tenon_backend_table, each under the guard that turns exceptions into statuses.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/op_digests.h>
#include <tenon/sdk/backend.h>
#include <tenon/sdk/blas.h>
#include <tenon/sdk/needs.h>

#include "guarded.h"
#include "handles.h"
#include "packed.h"
#include "plan.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TENON_BUILT_WITH TENON_SANITIZER_ADDRESS
#elif __has_feature(thread_sanitizer)
#define TENON_BUILT_WITH TENON_SANITIZER_THREAD
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define TENON_BUILT_WITH TENON_SANITIZER_ADDRESS
#elif defined(__SANITIZE_THREAD__)
#define TENON_BUILT_WITH TENON_SANITIZER_THREAD
#endif
#ifndef TENON_BUILT_WITH
#define TENON_BUILT_WITH TENON_SANITIZER_NONE
#endif

// The ABI's opaque handles that only this file uses.
struct tenon_memory {
  tenon_device* owner;
  std::uint32_t kind;
  std::uint64_t address, size;  ///< size as requested: for 0, one byte is allocated
  bool borrowed;                ///< the bytes are the host's, used in place
  void* host;                   ///< its address, if borrowed
};
struct tenon_event {
  std::unique_ptr<tenon::sdk::Event> event;
  bool timed;
};
struct tenon_plan {
  std::unique_ptr<tenon::sdk::Plan> plan;
};
struct tenon_capture {
  std::vector<std::shared_ptr<tenon::sdk::Timing>> timings;
  std::unique_ptr<tenon::sdk::Capture> capture;
};

namespace tenon::sdk {
namespace {

tenon_status report(tenon_error* error, tenon_status status, const char* text, std::uint64_t node_id = 0) {
  if (error != nullptr) {
    error->status = status;
    error->node_id = node_id;
    if (error->text != nullptr && error->text_capacity > 0) std::snprintf(error->text, error->text_capacity, "%s", text);
  }
  return status;
}

/// Copies as much of `value` as the receiver's struct_size covers, and sets struct_size to the bytes written.
template <class Struct>
void hand_over(Struct value, Struct* out) {
  const std::uint32_t capacity = out->struct_size;
  const auto size = static_cast<std::uint32_t>(capacity < sizeof value ? capacity : sizeof value);
  value.struct_size = size;
  std::memcpy(out, &value, size);
}

/// The fields that the sender's struct_size covers, the others 0; all 0 for NULL.
template <class Struct>
Struct sent(const Struct* given) {
  Struct options{};
  if (given != nullptr) std::memcpy(&options, given, given->struct_size < sizeof options ? given->struct_size : sizeof options);
  options.struct_size = sizeof options;
  return options;
}

// ---------------------------------------------------------------- backend and devices

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

// ---------------------------------------------------------------- memory

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
  result.host = on_host ? reinterpret_cast<void*>(static_cast<std::uintptr_t>(memory->address)) : memory->host;
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

// ---------------------------------------------------------------- streams and events

/// Refuses a stream that is being recorded: it would not execute the work.
void check_executes(const tenon_stream& stream, const char* slot) {
  if (stream.recording) throw Error(TENON_INVALID_ARGUMENT, std::string(slot) + ": the stream is being recorded; end the recording first");
}

tenon_status stream_create(tenon_device* self, const tenon_stream_options* given, tenon_stream** out_stream, tenon_error* error) {
  return guarded(error, [&] {
    const auto options = sent(given);
    check_needs("stream_create", options.needs);
    *out_stream = new tenon_stream{self->device->make_stream({.priority = options.priority})};
  });
}
void stream_destroy(tenon_stream* stream) {
  delete stream;
}
tenon_status stream_synchronize(tenon_stream* stream, tenon_error* error) {
  return guarded(error, [&] {
    check_executes(*stream, "stream_synchronize");
    stream->stream->synchronize();
  });
}

tenon_status event_create(tenon_device* self, const tenon_event_options* given, tenon_event** out_event, tenon_error* error) {
  return guarded(error, [&] {
    const auto options = sent(given);
    check_needs("event_create", options.needs);
    const bool timed = (options.flags & TENON_EVENT_NO_TIMING) == 0;
    *out_event = new tenon_event{self->device->make_event({.timed = timed}), timed};
  });
}
void event_destroy(tenon_event* event) {
  delete event;
}
tenon_status event_record(tenon_event* event, tenon_stream* stream, tenon_error* error) {
  return guarded(error, [&] { event->event->record(*stream->stream); });
}
tenon_status event_wait(tenon_event* event, tenon_stream* stream, tenon_error* error) {
  return guarded(error, [&] { event->event->wait(*stream->stream); });
}
tenon_status event_query(tenon_event* event, tenon_error* error) {
  bool done = false;
  const tenon_status status = guarded(error, [&] { done = event->event->done(); });
  if (status != TENON_OK || done) return status;
  return TENON_NOT_READY;
}
tenon_status event_synchronize(tenon_event* event, tenon_error* error) {
  return guarded(error, [&] { event->event->synchronize(); });
}
tenon_status event_elapsed(tenon_event* begin, tenon_event* end, std::uint64_t* out_ns, tenon_error* error) {
  return guarded(error, [&] {
    if (!begin->timed || !end->timed) {
      throw Error(TENON_INVALID_ARGUMENT, "event_elapsed: expected events with times, got one that was created with TENON_EVENT_NO_TIMING");
    }
    *out_ns = end->event->nanoseconds_since(*begin->event);
  });
}

// ---------------------------------------------------------------- plans

// The size of an answer in the first header.
constexpr std::uint32_t answer_size_v1 = offsetof(tenon_answer, text) + sizeof(tenon_answer::text);

tenon_status supports(tenon_device* self, const tenon_graph* graph, const tenon_plan_options* given, tenon_answer* out_answers,
                      std::uint32_t answer_stride, tenon_error* error) {
  return guarded(error, [&] {
    GraphModel model = GraphModel::read(*graph, sent(given), self->rows);
    if (!model.nodes.empty() && (out_answers == nullptr || answer_stride < answer_size_v1)) {
      throw Error(TENON_INVALID_ARGUMENT, "supports: expected answers of at least " + std::to_string(answer_size_v1) + " bytes, got " +
                                              std::to_string(out_answers == nullptr ? 0 : answer_stride));
    }
    model.host = self->device->host;
    model.device = self->device.get();
    if (const ElementwiseFusion* fusion = self->device->elementwise_fusion()) model.fusion = fusion;
    auto* out = reinterpret_cast<char*>(out_answers);
    for (const tenon_answer& answer : answer_all(model, self->rows)) {
      std::memcpy(out, &answer, std::min<std::size_t>(answer_stride, sizeof answer));
      out += answer_stride;
    }
  });
}

tenon_status plan_create(tenon_device* self, const tenon_graph* graph, const tenon_plan_options* options, tenon_plan** out_plan,
                         tenon_error* error) {
  return guarded(error, [&] {
    const Span span(self->device->host, "plan_create");
    auto plan = std::make_unique<tenon_plan>();
    plan->plan = std::make_unique<Plan>(*self->device, self->memory_stats, *graph, sent(options), self->rows);
    *out_plan = plan.release();
  });
}
void plan_destroy(tenon_plan* plan) {
  guarded(nullptr, [&] { plan->plan.reset(); });
  delete plan;
}
tenon_status plan_info(tenon_plan* plan, tenon_plan_info* out_info, tenon_error* error) {
  return guarded(error, [&] { hand_over(plan->plan->info(), out_info); });
}
tenon_status plan_execute(tenon_plan* plan, const tenon_bindings* bindings, std::uint64_t workspace, tenon_stream* stream,
                          tenon_error* error) {
  std::uint64_t node_id = 0;
  const tenon_status status = guarded(error, [&] {
    plan->plan->execute(*bindings, workspace, stream, &node_id);
    stream->stream->flush();
  });
  if (status != TENON_OK && error != nullptr) error->node_id = node_id;
  return status;
}

const void* extension(tenon_backend* self, const char* name, std::uint32_t version) {
  const void* found = nullptr;
  guarded(nullptr, [&] { found = self->backend->extension(name, version); });
  return found;
}

tenon_status profile_read(tenon_plan* plan, std::uint64_t execution_id, tenon_profile_record* out_records, std::uint32_t record_stride,
                          std::uint32_t capacity, std::uint32_t* out_count, tenon_error* error) {
  return guarded(error, [&] { *out_count = plan->plan->read_profile(execution_id, out_records, record_stride, capacity); });
}

// ---------------------------------------------------------------- packed operands

tenon_status pack_describe(tenon_device* self, const tenon_graph* graph, const tenon_plan_options* options, tenon_packing* out_packings,
                           std::uint32_t packing_stride, tenon_error* error) {
  return guarded(error, [&] { describe_packings(*self->device, *graph, sent(options), self->rows, out_packings, packing_stride); });
}
tenon_status pack_create(tenon_device* self, const tenon_graph* graph, const tenon_plan_options* options, const std::uint32_t* values,
                         std::uint32_t value_count, tenon_packed** out_packed, tenon_error* error) {
  return guarded(error, [&] {
    std::vector<std::unique_ptr<tenon_packed>> handles;
    for (auto& packed : make_packed(*self->device, self->memory_stats, *graph, sent(options), self->rows, {values, value_count})) {
      handles.push_back(std::make_unique<tenon_packed>(tenon_packed{std::move(packed)}));
    }
    for (std::uint32_t i = 0; i < value_count; ++i) out_packed[i] = handles[i].release();
  });
}
void pack_destroy(tenon_packed* packed) {
  guarded(nullptr, [&] { packed->packed.reset(); });
  delete packed;
}
constexpr tenon_pack_table pack_table{sizeof(tenon_pack_table), 0, pack_describe, pack_create, pack_destroy};

// ---------------------------------------------------------------- capture

tenon_status capture_begin(tenon_stream* stream, tenon_error* error) {
  return guarded(error, [&] {
    check_executes(*stream, "capture begin");
    if (!stream->stream->captures()) throw Error(TENON_UNSUPPORTED, "capture begin: this device's streams cannot be recorded");
    stream->stream->begin_capture();
    stream->recording = true;
    stream->timings.clear();
  });
}
tenon_status capture_end(tenon_stream* stream, tenon_capture** out_capture, tenon_error* error) {
  return guarded(error, [&] {
    if (!stream->recording) throw Error(TENON_INVALID_ARGUMENT, "capture end: the stream is not being recorded; begin comes first");
    stream->recording = false;
    auto capture = std::make_unique<tenon_capture>();
    capture->timings = std::move(stream->timings);
    capture->capture = stream->stream->end_capture();
    *out_capture = capture.release();
  });
}
tenon_status capture_replay(tenon_capture* capture, tenon_stream* stream, std::uint64_t execution_id, tenon_error* error) {
  return guarded(error, [&] {
    check_executes(*stream, "capture replay");
    for (const std::shared_ptr<Timing>& timing : capture->timings) timing->execution = execution_id;
    capture->capture->replay(*stream->stream);
  });
}
void capture_destroy(tenon_capture* capture) {
  guarded(nullptr, [&] { capture->capture.reset(); });
  delete capture;
}
constexpr tenon_capture_table capture_table{sizeof(tenon_capture_table), 0, capture_begin, capture_end, capture_replay, capture_destroy};

constexpr tenon_profile_table profile_table{sizeof(tenon_profile_table), Profile::kept, profile_read};

}  // namespace

Stream& stream_of(tenon_stream* handle) {
  return *handle->stream;
}

namespace detail {

tenon_status report_current_exception(tenon_error* error) noexcept {
  try {
    throw;
  } catch (const Error& e) {
    return report(error, e.status(), e.what(), e.node_id());
  } catch (const std::bad_alloc& e) {
    const bool says_more = std::string_view(e.what()) != std::bad_alloc().what();
    return report(error, TENON_OUT_OF_MEMORY, says_more ? e.what() : "out of host memory");
  } catch (const std::exception& e) {
    return report(error, TENON_INTERNAL, e.what());
  } catch (...) {
    return report(error, TENON_INTERNAL, "an exception of unknown type");
  }
}

const Host& host_of(const tenon_device* device) {
  return device->device->host;
}

void refuse_blas_call(const char* routine, const tenon_blas_call& call) {
  std::string text = std::string("it does not take ") + name_of(call.dtype);
  if (call.needs != 0) text = "this backend knows no bit of `needs`, got " + std::to_string(call.needs);
  if (call.math > TENON_MATH_BF16) text = "expected one of TENON_MATH_*, got " + std::to_string(call.math);
  if (call.deterministic > 1) text = "expected deterministic to be 0 or 1, got " + std::to_string(call.deterministic);
  throw Error(TENON_UNSUPPORTED, std::string(routine) + ": " + text);
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
  table.memory_allocate = memory_allocate;
  table.memory_import = memory_import;
  table.memory_free = memory_free;
  table.memory_stats = memory_stats;
  table.copy = copy;
  table.fill = fill;
  table.stream_create = stream_create;
  table.stream_destroy = stream_destroy;
  table.stream_synchronize = stream_synchronize;
  table.event_create = event_create;
  table.event_destroy = event_destroy;
  table.event_record = event_record;
  table.event_wait = event_wait;
  table.event_query = event_query;
  table.event_synchronize = event_synchronize;
  table.event_elapsed = event_elapsed;
  table.supports = supports;
  table.plan_create = plan_create;
  table.plan_destroy = plan_destroy;
  table.plan_info = plan_info;
  table.plan_execute = plan_execute;
  table.blas = blas;
  table.capture = spec.captures ? &capture_table : nullptr;
  for (const KernelRow* row = rows; row->kernel != nullptr; ++row) {
    if (row->kernel->traits.pack_form != nullptr) table.pack = &pack_table;
  }
  table.profile = &profile_table;
  table.extension = extension;
  table.collectives = spec.combined_dtypes != 0 ? collectives : nullptr;
  return table;
}

}  // namespace detail

// ---------------------------------------------------------------- the query

namespace {

constexpr tenon_op_digest digests[] = TENON_OP_DIGESTS;

constexpr const char* compiler =
#if defined(__clang__)
    "clang " __clang_version__;
#elif defined(__GNUC__)
    "gcc " __VERSION__;
#else
    "unknown compiler";
#endif

/// "gcc 12.2.0, ABI 1.0", in static memory: the query allocates nothing.
const char* build_id() {
  static const auto text = [] {
    std::array<char, 160> line{};
    std::snprintf(line.data(), line.size(), "%s, ABI %u.%u", compiler, TENON_ABI_MAJOR, TENON_ABI_MINOR);
    return line;
  }();
  return text.data();
}

constexpr const char* platform =
#if defined(_WIN32)
    "windows-"
#elif defined(__APPLE__)
    "macos-"
#else
    "linux-"
#endif
#if defined(__aarch64__) || defined(_M_ARM64)
    "aarch64";
#else
    "x86_64";
#endif

}  // namespace

namespace detail {

static tenon_capability capability_of(const KernelRow& row, const KernelRow* rows, bool captures) {
  tenon_capability capability{};
  capability.op = row.op;
  capability.version = row.version;
  for (tenon_dtype t = 0; t < TENON_DTYPE_COUNT; ++t) {
    if (row.kernel->functions[t] != nullptr || widens(rows, row, t)) capability.dtypes |= TENON_DTYPE_BIT(t);
  }
  const Traits& traits = row.kernel->traits;
  capability.features = (traits.strided ? TENON_FEATURE_STRIDED : 0) | (traits.in_place ? TENON_FEATURE_IN_PLACE : 0) |
                        (traits.epilogue ? TENON_FEATURE_EPILOGUE : 0) | (captures && traits.capture_safe ? TENON_FEATURE_CAPTURE_SAFE : 0);
  return capability;
}

std::size_t list_capabilities(const KernelRow* rows, bool captures, tenon_capability* out_list) {
  tenon_capability* next = out_list;
  for (const KernelRow* row = rows; row->kernel != nullptr; ++row) {
    const tenon_capability capability = *next++ = capability_of(*row, rows, captures);
    for (const OlderVersion& older : older_versions()) {
      if (older.op != row->op || older.newest != row->version) continue;
      *next = capability;
      next++->version = older.version;
    }
  }
  return static_cast<std::size_t>(next - out_list);
}

std::size_t list_vendor_ops(const KernelRow* rows, tenon_vendor_op* out_list) {
  tenon_vendor_op* next = out_list;
  for (const KernelRow* row = rows; row->kernel != nullptr; ++row) {
    if (row->vendor_op != nullptr) *next++ = *row->vendor_op;
  }
  return static_cast<std::size_t>(next - out_list);
}

tenon_status query(const Registration& registration, const tenon_host_info* host, tenon_backend_info* out_info) {
  const BackendSpec& spec = registration.spec;
  tenon_backend_info info{};
  info.abi_major = TENON_ABI_MAJOR;
  info.abi_minor_lowest = TENON_ABI_MINOR_LOWEST;
  info.abi_minor_highest = TENON_ABI_MINOR;
  info.flags = spec.flags;
  info.sanitizer = TENON_BUILT_WITH;
  info.priority = spec.priority;
  info.digest_count = static_cast<std::uint32_t>(sizeof digests / sizeof digests[0]);
  info.name = spec.name;
  info.version = spec.version;
  info.build_id = build_id();
  info.platform = platform;
  info.vendor = spec.vendor;
  info.description = spec.description;
  info.requirements = spec.requirements;
  info.digests = digests;
  info.capabilities = registration.capabilities.data();
  info.capability_count = static_cast<std::uint32_t>(registration.capabilities.size());
  info.capability_stride = sizeof(tenon_capability);
  info.options = spec.options.data();
  info.option_count = static_cast<std::uint32_t>(spec.options.size());
  info.option_stride = sizeof(tenon_option);
  info.vendor_ops = registration.vendor_ops.data();
  info.vendor_op_count = static_cast<std::uint32_t>(registration.vendor_ops.size());
  info.vendor_op_stride = sizeof(tenon_vendor_op);
  info.create = registration.create;
  hand_over(info, out_info);
  const bool meets = host->abi_major == info.abi_major && host->abi_minor_lowest <= info.abi_minor_highest &&
                     info.abi_minor_lowest <= host->abi_minor_highest;
  return meets ? TENON_OK : TENON_INCOMPATIBLE;
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
