// SPDX-License-Identifier: Apache-2.0
// Lifecycle: the query, backends created and destroyed in every order the header allows, devices, and processes that end without shutdown.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <string_view>
#include <thread>

#include "core.h"
#include "loader/self_check.h"
#include "platform/library.h"
#include "platform/path.h"
#include "text/counted.h"

namespace tenon::conformance {
namespace {

// ---------------------------------------------------------------- the query

/// The query function of the backend under test, which is loaded already.
tenon_backend_query_fn query_of(const CaseContext& context) {
  const Source& source = context.device.source();
  if (source.query != nullptr) return source.query;
  std::string reason;
  void* const library = platform::open_library(source.file, reason);
  if (library == nullptr) fail(fmt::format("{} cannot be opened again: {}", platform::text_of(source.file), reason));
  const auto query = reinterpret_cast<tenon_backend_query_fn>(platform::find_symbol(library, TENON_BACKEND_QUERY_SYMBOL));
  if (query == nullptr) fail("the library has lost " TENON_BACKEND_QUERY_SYMBOL);
  return query;
}

/// The loader queries twice and refuses a backend whose second answer differs; here the query is repeated while the backend is in use.
void query_again(CaseContext& context) {
  const Device again(context.device.source());
  if (const auto difference = loader::difference(context.device.info(), again.info()))
    fail("the second answer to the query differs: " + *difference);
  for (const std::string& warning : again.backend().record().warnings) fail("the loader warns: " + warning);
}

/// An older host has a smaller struct, a newer one a larger: the query fills what both know and returns that size.
void query_sizes(CaseContext& context) {
  constexpr std::uint32_t longer = 64;
  const tenon_backend_query_fn query = query_of(context);
  for (const std::size_t capacity : {offsetof(tenon_backend_info, name), offsetof(tenon_backend_info, create), sizeof(tenon_backend_info),
                                     sizeof(tenon_backend_info) + longer}) {
    struct {
      tenon_backend_info info;
      unsigned char later[2 * longer];
    } buffer;
    std::memset(static_cast<void*>(&buffer), 0xA5, sizeof buffer);
    const auto size = static_cast<std::uint32_t>(capacity);
    buffer.info.struct_size = size;
    const tenon_status status = query(&loader::host_info(), &buffer.info);
    if (status != TENON_OK) fail(fmt::format("with a struct of {} bytes, the query returns {}", size, status_name(status)));
    if (buffer.info.struct_size > size) {
      fail(fmt::format("the query had a struct of {} bytes and reports {} as written (struct_size)", size, buffer.info.struct_size));
    }
    const auto* bytes = reinterpret_cast<const unsigned char*>(&buffer);
    for (std::size_t i = buffer.info.struct_size; i < sizeof buffer; ++i) {
      if (bytes[i] != 0xA5)
        fail(fmt::format("the query had a struct of {} bytes, reports {} as written, and wrote byte {}", size, buffer.info.struct_size, i));
    }
    if (buffer.info.abi_major != TENON_ABI_MAJOR) fail(fmt::format("with a struct of {} bytes, the query does not set abi_major", size));
  }
}

/// A host of another major version gets INCOMPATIBLE and the plugin's own range, which the core's message names.
void query_of_another_host(CaseContext& context) {
  const tenon_backend_query_fn query = query_of(context);
  for (const bool major : {true, false}) {
    tenon_host_info host = loader::host_info();
    if (major) host.abi_major += 70;
    host.abi_minor_lowest = major ? 0 : 7000;
    host.abi_minor_highest = major ? 0 : 7001;
    tenon_backend_info info{.struct_size = sizeof info};
    const tenon_status status = query(&host, &info);
    const std::string who =
        fmt::format("a host of ABI {}.{} to {}.{}", host.abi_major, host.abi_minor_lowest, host.abi_major, host.abi_minor_highest);
    if (status != TENON_INCOMPATIBLE) fail(fmt::format("{}: expected INCOMPATIBLE, got {}", who, status_name(status)));
    if (info.abi_major != context.device.info().abi_major || info.abi_minor_lowest != context.device.info().abi_minor_lowest ||
        info.abi_minor_highest != context.device.info().abi_minor_highest) {
      fail(who + " gets a different range of versions than a compatible host");
    }
  }
}

// ---------------------------------------------------------------- create, shutdown, destroy

void create_and_destroy(CaseContext& context) {
  for (int round = 0; round < 5; ++round) {
    Another another(context);
    tenon_device* device = nullptr;
    expect_ok("device_open", another.table().device_open, another.backend, 0, &device);
    another.table().device_close(device);
    another.table().shutdown(another.backend);
    another.end();
  }
}

/// Several backends of one library at a time do not depend on each other's lifetime.
void several_at_once(CaseContext& context) {
  for (const bool last_first : {false, true}) {
    std::vector<std::unique_ptr<Device>> devices;
    for (int i = 0; i < 3; ++i) devices.push_back(std::make_unique<Device>(SecondInstance{context.device}));
    if (last_first) std::reverse(devices.begin(), devices.end());
    while (!devices.empty()) {
      for (const auto& device : devices) expect_sane(CaseContext(*device, nullptr, context.seed));
      devices.erase(devices.begin());
    }
    expect_sane(context);
  }
}

void create_on_threads(CaseContext& context) {
  on_threads(4, [&](int) {
    for (int round = 0; round < 3; ++round) {
      const Device device(SecondInstance{context.device});
      expect_sane(CaseContext(device, nullptr, context.seed));
    }
  });
  expect_sane(context);
}

void shutdown_twice(CaseContext& context) {
  Another another(context);
  another.table().shutdown(another.backend);
  another.table().shutdown(another.backend);
  another.end();
}

void destroy_without_shutdown(CaseContext& context) {
  Another another(context);
  another.end();
}

/// shutdown closes devices that are still open.
void shutdown_closes_devices(CaseContext& context) {
  Another another(context);
  const tenon_backend_table& table = another.table();
  tenon_device* device = nullptr;
  tenon_stream* stream = nullptr;
  expect_ok("device_open", table.device_open, another.backend, 0, &device);
  expect_ok("stream_create", table.stream_create, device, nullptr, &stream);
  table.stream_destroy(stream);
  table.shutdown(another.backend);
  another.end();
  expect_sane(context);
}

void floating_point_untouched(CaseContext& context) {
  const auto before = loader::FloatingPoint::current();
  {
    Another another(context);
    expect_sane(context);
  }
  if (const auto change = loader::FloatingPoint::current().change_since(before)) fail("creating and running " + *change);
}

// ---------------------------------------------------------------- the end of the process

/// A device that is never closed, of a backend that is never destroyed. It stays reachable, so that leak checkers do not report it.
Device& endless_device(const CaseContext& context) {
  static auto* const devices = new std::vector<std::unique_ptr<Device>>;
  devices->push_back(std::make_unique<Device>(SecondInstance{context.device}));
  return *devices->back();
}

void exit_without_shutdown(CaseContext& context) {
  expect_sane(CaseContext(endless_device(context), nullptr, context.seed));
}

void exit_without_destroy(CaseContext& context) {
  static auto* const another = new Another(context);
  another->table().shutdown(another->backend);
}

/// A thread executes while the process exits. What it uses is never destroyed.
void exit_while_busy(CaseContext& context) {
  require_relu(context);
  struct Work {
    explicit Work(const Device& on) : device(on), net(relu_net(20000)), plan(device, net), bindings(plan, 0xFF) {}
    const Device& device;
    Net net;
    Plan plan;
    Plan::Bindings bindings;
    std::atomic<int> rounds{0};
  };
  static auto* const work = new Work(endless_device(context));
  expect_ready(work->plan);
  std::thread([] {
    for (;;) {
      ErrorText error;
      if (work->bindings.execute_bare(1, error) != TENON_OK || work->device.synchronize(error) != TENON_OK) break;
      ++work->rounds;
    }
    work->rounds = -1;
  }).detach();
  while (work->rounds >= 0 && work->rounds < 10) std::this_thread::yield();
  if (work->rounds < 0) fail("an execution failed");
}

/// Work is queued on a stream and never waited for.
void exit_with_work_queued(CaseContext& context) {
  constexpr std::uint64_t size = 1 << 22;
  const CaseContext endless(endless_device(context), nullptr, context.seed);
  static auto* const memory = new Memory(endless, size);
  for (int round = 0; round < 50; ++round) {
    expect_ok("fill", endless.device.table().fill, endless.device.handle(), memory->address, size, static_cast<std::uint8_t>(round),
              endless.device.stream());
  }
}

// ---------------------------------------------------------------- devices

void device_out_of_range(CaseContext& context) {
  const tenon_backend_table& table = context.device.table();
  tenon_backend* backend = context.device.backend().handle();
  ErrorText error;
  std::uint32_t count = 0;
  expect_ok("device_count", table.device_count, backend, &count);
  tenon_device* device = nullptr;
  expect_refusal(table.device_open(backend, count, &device, error), error, {TENON_DEVICE_NOT_FOUND, TENON_INVALID_ARGUMENT},
                 "opening a device that does not exist");
  if (device != nullptr) fail("a failed device_open wrote its out-parameter");
  tenon_device_info info{.struct_size = sizeof info};
  ErrorText second;
  expect_refusal(table.device_info(backend, count + 7, &info, second), second, {TENON_DEVICE_NOT_FOUND, TENON_INVALID_ARGUMENT},
                 "describing a device that does not exist");
  expect_sane(context);
}

void device_described(CaseContext& context) {
  const tenon_device_info& info = context.device.device_info();
  if (info.name == nullptr || info.name[0] == 0) fail("the device has no name");
  if (info.identity == nullptr || info.identity[0] == 0) fail("the device has no identity that is stable across runs");
  const std::string_view identity = info.identity;
  for (std::size_t begin = 0, end = 0; identity.find('=') != std::string_view::npos && end != std::string_view::npos; begin = end + 1) {
    end = identity.find(' ', begin);
    const std::string_view pair = identity.substr(begin, end == std::string_view::npos ? end : end - begin);
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos || equals == 0 || equals + 1 == pair.size())
      fail(fmt::format("the identity '{}' is not a list of pairs key=value: '{}'", identity, pair));
  }
  if (info.kind < TENON_DEVICE_CPU || info.kind > TENON_DEVICE_ACCELERATOR)
    fail(fmt::format("kind {} is not defined by the header", info.kind));
  const std::uint64_t a = info.alignment_bytes;
  if (a == 0 || (a & (a - 1)) != 0) fail(fmt::format("an alignment of {} bytes is not a power of two", a));
  const std::uint64_t o = info.operand_alignment_bytes;
  if ((o & (o - 1)) != 0 || o > a)
    fail(fmt::format("operands aligned to {} bytes: expected a power of two up to {}, the alignment of memory", o, a));
  const std::uint64_t largest = info.max_allocation_size_bytes, size = info.memory_size_bytes;
  if (largest != 0 && (largest < a || (size != 0 && largest > size))) {
    fail(fmt::format("a largest allocation of {}: expected at least the alignment, {}, and at most the memory, {}",
                     counted(largest, "byte"), a, size));
  }
  if (!context.device.computes_with(TENON_DTYPE_F32)) fail("the device does not compute with f32");
}

void device_opened_twice(CaseContext& context) {
  const tenon_backend_table& table = context.device.table();
  ErrorText error;
  tenon_device* second = nullptr;
  const tenon_status status = table.device_open(context.device.backend().handle(), 0, &second, error);
  if (status != TENON_OK) {
    expect_refusal(status, error, {TENON_UNSUPPORTED}, "opening a device twice");
    return;
  }
  table.device_close(second);
  expect_sane(context);
}

/// For an older host with a smaller struct, the backend writes only the fields that fit.
void old_host_structs(CaseContext& context) {
  struct {
    tenon_device_info info;
    unsigned char guard[64];
  } buffer;
  std::memset(static_cast<void*>(&buffer), 0xA5, sizeof buffer);
  buffer.info.struct_size = offsetof(tenon_device_info, name);
  expect_ok("device_info", context.device.table().device_info, context.device.backend().handle(), 0, &buffer.info);
  const auto* bytes = reinterpret_cast<const unsigned char*>(&buffer);
  for (std::size_t i = offsetof(tenon_device_info, name); i < sizeof buffer; ++i) {
    if (bytes[i] != 0xA5) fail(fmt::format("device_info wrote byte {} of a struct of {} bytes", i, offsetof(tenon_device_info, name)));
  }
  if (buffer.info.kind != context.device.device_info().kind) fail("device_info left out a field that struct_size covers");
}

/// Error texts are cut to their buffer; a NULL tenon_error is allowed.
void small_error_text(CaseContext& context) {
  char text[16];
  std::memset(text, 0x7E, sizeof text);
  tenon_error error{.struct_size = sizeof error, .text = text, .text_capacity = 8};
  tenon_device* device = nullptr;
  const tenon_backend_table& table = context.device.table();
  if (table.device_open(context.device.backend().handle(), 1000, &device, &error) == TENON_OK) fail("device 1000 could be opened");
  if (std::memchr(text, 0, 8) == nullptr) fail("an error text of 8 bytes does not end in NUL");
  for (std::size_t i = 8; i < sizeof text; ++i) {
    if (text[i] != 0x7E) fail("an error text was written beyond text_capacity");
  }
  if (table.device_open(context.device.backend().handle(), 1000, &device, nullptr) == TENON_OK) fail("device 1000 could be opened");
}

}  // namespace

std::vector<Case> core_lifecycle_cases() {
  return core_cases({
      {"lifecycle/query_again", query_again},
      {"lifecycle/query_sizes", query_sizes},
      {"lifecycle/query_of_another_host", query_of_another_host},
      {"lifecycle/create_and_destroy", create_and_destroy},
      {"lifecycle/several_at_once", several_at_once},
      {"lifecycle/create_on_threads", create_on_threads},
      {"lifecycle/shutdown_twice", shutdown_twice},
      {"lifecycle/shutdown_closes_devices", shutdown_closes_devices},
      {"lifecycle/destroy_without_shutdown", destroy_without_shutdown},
      {"lifecycle/floating_point_untouched", floating_point_untouched},
      {"lifecycle/old_host_structs", old_host_structs},
      {"lifecycle/small_error_text", small_error_text},
      {"lifecycle/exit_without_shutdown", exit_without_shutdown, Ending::exits},
      {"lifecycle/exit_without_destroy", exit_without_destroy, Ending::exits},
      {"lifecycle/exit_while_busy", exit_while_busy, Ending::exits},
      {"lifecycle/exit_with_work_queued", exit_with_work_queued, Ending::exits},
      {"device/described", device_described},
      {"device/out_of_range", device_out_of_range},
      {"device/opened_twice", device_opened_twice},
  });
}

}  // namespace tenon::conformance
