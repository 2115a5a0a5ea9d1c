// Profile core: what every backend owes whatever it computes - lifecycle, memory, copies, streams and events, plans and their errors.
// Recordings are in capture.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

#include <tenon/sdk/kernel.h>

#include "case.h"
#include "loader/complete.h"
#include "loader/self_check.h"
#include "memory.h"

namespace tenon::conformance {
namespace {

[[noreturn]] void fail(const std::string& text) {
  throw Failure(text);
}

/// A failure that says what it is.
void expect_refusal(tenon_status status, const ErrorText& error, std::initializer_list<tenon_status> allowed, const char* what) {
  if (std::find(allowed.begin(), allowed.end(), status) == allowed.end()) {
    std::string names;
    for (const tenon_status s : allowed) names += (names.empty() ? "" : " or ") + status_name(s);
    fail(fmt::format("{}: wanted {}, got {} ({})", what, names, status_name(status), error.text()));
  }
  if (error.text().empty()) fail(fmt::format("{}: {} without a sentence that says why", what, status_name(status)));
}

std::vector<unsigned char> pattern(std::size_t size, std::uint64_t seed) {
  Random random(seed);
  std::vector<unsigned char> bytes(size);
  for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random.bits());
  return bytes;
}

void upload(const Kit& kit, std::uint64_t address, const std::vector<unsigned char>& bytes) {
  ErrorText error;
  expect_ok(kit.device.upload(address, bytes.data(), bytes.size(), error), error, "a copy to the device");
}
std::vector<unsigned char> download(const Kit& kit, std::uint64_t address, std::size_t size) {
  std::vector<unsigned char> bytes(size);
  ErrorText error;
  expect_ok(kit.device.download(bytes.data(), address, size, error), error, "a copy from the device");
  return bytes;
}
void expect_bytes(const std::vector<unsigned char>& want, const std::vector<unsigned char>& got, const char* what) {
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (want[i] != got[i]) fail(fmt::format("{}: byte {} of {} is 0x{:02x}, wanted 0x{:02x}", what, i, want.size(), got[i], want[i]));
  }
}

tenon_copy copy_of(std::uint32_t direction, std::uint64_t to, std::uint64_t from, std::uint64_t size) {
  tenon_copy copy{};
  copy.struct_size = sizeof copy;
  copy.direction = direction;
  copy.destination = to;
  copy.source = from;
  copy.size_bytes = size;
  return copy;
}

/// y = relu(x) on f32: the smallest thing a backend computes.
constexpr tenon_attributes_none no_attributes{sizeof(tenon_attributes_none), 0};
Net relu_net(std::int64_t n = 16) {
  Net net;
  Array x(TENON_DTYPE_F32, {n});
  for (std::int64_t i = 0; i < n; ++i) x.set(i, static_cast<double>(i - 3));
  const std::uint32_t in = net.input(std::move(x)), out = net.output(TENON_DTYPE_F32, {n});
  net.node(TENON_OP_Relu, line_of(TENON_OP_Relu).version, &no_attributes, {in}, {out});
  return net;
}
void expect_relu(const std::vector<Array>& outputs) {
  for (std::int64_t i = 0; i < outputs[0].count(); ++i) {
    const double want = std::max(0.0, static_cast<double>(i - 3));
    if (outputs[0].at(i) != want) fail(fmt::format("relu({}) is {}, wanted {}", i - 3, outputs[0].str(i), want));
  }
}
/// The device still works.
void expect_sane(const Kit& kit) {
  expect_relu(kit.run(relu_net()));
}

// ---------------------------------------------------------------- lifecycle

/// A second backend of the same library, with host services of its own.
class Another {
 public:
  explicit Another(const Kit& kit) : host_(kit.device.info(), kit.device.backend().abi_minor()) {
    ErrorText error;
    const tenon_backend_table* sent = nullptr;
    expect_ok(kit.device.info().create(host_.table(), &backend, &sent, error), error, "create");
    if (backend == nullptr || sent == nullptr) fail("create returned OK and left an out-parameter NULL");
    loader::complete_table(*sent, table_);
  }
  ~Another() {
    if (backend != nullptr) table().destroy(backend);
  }
  Another(const Another&) = delete;
  Another& operator=(const Another&) = delete;
  const tenon_backend_table& table() const { return table_.table; }
  Host& host() { return host_; }
  tenon_backend* backend = nullptr;

 private:
  Host host_;
  loader::Table table_;
};

/// The loader asks twice and refuses a backend that answers otherwise the second time; here it is asked again while it is at work.
void query_again(Kit& kit) {
  const Device again(kit.device.source());
  if (const auto difference = loader::difference(kit.device.info(), again.info()))
    fail("the second answer to the query differs: " + *difference);
  for (const std::string& warning : again.backend().record().warnings) fail("the loader warns: " + warning);
}

void create_and_destroy(Kit& kit) {
  for (int round = 0; round < 5; ++round) {
    Another another(kit);
    ErrorText error;
    tenon_device* device = nullptr;
    expect_ok(another.table().device_open(another.backend, 0, &device, error), error, "device_open");
    another.table().device_close(device);
    another.table().shutdown(another.backend);
    another.table().destroy(another.backend);
    another.backend = nullptr;
    if (another.host().live_blocks() != 0)
      fail(fmt::format("{} blocks of host memory are left after destroy", another.host().live_blocks()));
    if (!another.host().damage().empty()) fail(another.host().damage());
  }
}

void shutdown_twice(Kit& kit) {
  Another another(kit);
  another.table().shutdown(another.backend);
  another.table().shutdown(another.backend);
}

void destroy_without_shutdown(Kit& kit) {
  const Another another(kit);
}

void floating_point_untouched(Kit& kit) {
  const auto before = loader::FloatingPoint::current();
  {
    Another another(kit);
    expect_sane(kit);
  }
  if (const auto change = loader::FloatingPoint::current().change_since(before)) fail("creating and running " + *change);
}

void device_out_of_range(Kit& kit) {
  const tenon_backend_table& table = kit.device.table();
  tenon_backend* backend = kit.device.backend().handle();
  ErrorText error;
  std::uint32_t count = 0;
  expect_ok(table.device_count(backend, &count, error), error, "device_count");
  tenon_device* device = nullptr;
  expect_refusal(table.device_open(backend, count, &device, error), error, {TENON_DEVICE_NOT_FOUND, TENON_INVALID_ARGUMENT},
                 "opening a device that is not there");
  if (device != nullptr) fail("a failed device_open wrote its out-parameter");
  tenon_device_info info{};
  info.struct_size = sizeof info;
  ErrorText second;
  expect_refusal(table.device_info(backend, count + 7, &info, second), second, {TENON_DEVICE_NOT_FOUND, TENON_INVALID_ARGUMENT},
                 "describing a device that is not there");
  expect_sane(kit);
}

void device_described(Kit& kit) {
  const tenon_device_info& info = kit.device.device_info();
  if (info.name == nullptr || info.name[0] == 0) fail("the device has no name");
  if (info.identity == nullptr || info.identity[0] == 0) fail("the device has no identity that is stable across runs");
  if (info.kind < TENON_DEVICE_CPU || info.kind > TENON_DEVICE_ACCELERATOR) fail(fmt::format("kind {} is none of the header's", info.kind));
  const std::uint64_t a = info.alignment_bytes;
  if (a == 0 || (a & (a - 1)) != 0) fail(fmt::format("an alignment of {} bytes is no power of two", a));
  if ((info.dtypes & TENON_DTYPE_BIT(TENON_DTYPE_F32)) == 0) fail("device memory cannot hold f32");
}

void device_opened_twice(Kit& kit) {
  const tenon_backend_table& table = kit.device.table();
  ErrorText error;
  tenon_device* second = nullptr;
  const tenon_status status = table.device_open(kit.device.backend().handle(), 0, &second, error);
  if (status != TENON_OK) {
    expect_refusal(status, error, {TENON_UNSUPPORTED}, "opening a device twice");
    return;
  }
  table.device_close(second);
  expect_sane(kit);
}

/// A host that knows less of a struct than the backend gets only what it has room for.
void old_host_structs(Kit& kit) {
  struct {
    tenon_device_info info;
    unsigned char guard[64];
  } room;
  std::memset(static_cast<void*>(&room), 0xA5, sizeof room);
  room.info.struct_size = offsetof(tenon_device_info, name);
  ErrorText error;
  expect_ok(kit.device.table().device_info(kit.device.backend().handle(), 0, &room.info, error), error, "device_info");
  const auto* bytes = reinterpret_cast<const unsigned char*>(&room);
  for (std::size_t i = offsetof(tenon_device_info, name); i < sizeof room; ++i) {
    if (bytes[i] != 0xA5) fail(fmt::format("device_info wrote byte {} of a struct of {} bytes", i, offsetof(tenon_device_info, name)));
  }
  if (room.info.kind != kit.device.device_info().kind) fail("device_info left out a field that struct_size covers");
}

/// Error texts are cut to their room; no tenon_error at all is fine, too.
void small_error_text(Kit& kit) {
  char text[16];
  std::memset(text, 0x7E, sizeof text);
  tenon_error error{};
  error.struct_size = sizeof error;
  error.text = text;
  error.text_capacity = 8;
  tenon_device* device = nullptr;
  const tenon_backend_table& table = kit.device.table();
  if (table.device_open(kit.device.backend().handle(), 1000, &device, &error) == TENON_OK) fail("device 1000 could be opened");
  if (std::memchr(text, 0, 8) == nullptr) fail("an error text of 8 bytes does not end in NUL");
  for (std::size_t i = 8; i < sizeof text; ++i) {
    if (text[i] != 0x7E) fail("an error text was written beyond text_capacity");
  }
  if (table.device_open(kit.device.backend().handle(), 1000, &device, nullptr) == TENON_OK) fail("device 1000 could be opened");
}

// ---------------------------------------------------------------- memory

void alignment(Kit& kit) {
  for (const std::uint64_t size : {std::uint64_t{1}, std::uint64_t{63}, std::uint64_t{64}, std::uint64_t{4097}, std::uint64_t{1} << 20}) {
    const Memory memory(kit, size);
    if (memory.address % kit.device.device_info().alignment_bytes != 0) {
      fail(fmt::format("{} bytes were put at 0x{:x}, which is not aligned to {}", size, memory.address,
                       kit.device.device_info().alignment_bytes));
    }
  }
}

void zero_size(Kit& kit) {
  const Memory nothing(kit, 0), more(kit, 0);
}

void huge_size(Kit& kit) {
  for (const std::uint64_t size : {std::uint64_t{1} << 60, ~std::uint64_t{0}, ~std::uint64_t{0} - 63}) {
    ErrorText error;
    tenon_memory* memory = nullptr;
    std::uint64_t address = 0;
    const tenon_status status =
        kit.device.table().memory_allocate(kit.device.handle(), TENON_MEMORY_DEVICE, size, &memory, &address, error);
    expect_refusal(status, error, {TENON_OUT_OF_MEMORY, TENON_INVALID_ARGUMENT}, "allocating more than there is");
    if (memory != nullptr || address != 0) fail("a failed memory_allocate wrote its out-parameters");
  }
  expect_sane(kit);
}

void kinds(Kit& kit) {
  for (const std::uint32_t kind : {TENON_MEMORY_DEVICE, TENON_MEMORY_HOST, TENON_MEMORY_PINNED}) {
    ErrorText error;
    tenon_memory* memory = nullptr;
    std::uint64_t address = 0;
    const tenon_status status = kit.device.table().memory_allocate(kit.device.handle(), kind, 256, &memory, &address, error);
    if (status == TENON_OK) {
      kit.device.table().memory_free(memory);
    } else {
      expect_refusal(status, error, {TENON_UNSUPPORTED}, "a memory kind of the header");
      if (kind == TENON_MEMORY_DEVICE) fail("device memory is mandatory: " + error.text());
    }
  }
  ErrorText error;
  tenon_memory* memory = nullptr;
  std::uint64_t address = 0;
  expect_refusal(kit.device.table().memory_allocate(kit.device.handle(), 77, 256, &memory, &address, error), error,
                 {TENON_INVALID_ARGUMENT, TENON_UNSUPPORTED}, "memory of kind 77");
}

tenon_memory_stats stats_of(const Kit& kit) {
  tenon_memory_stats stats{};
  stats.struct_size = sizeof stats;
  ErrorText error;
  expect_ok(kit.device.table().memory_stats(kit.device.handle(), &stats, error), error, "memory_stats");
  return stats;
}

void stats(Kit& kit) {
  const tenon_memory_stats before = stats_of(kit);
  {
    const Memory memory(kit, 1 << 20);
    const tenon_memory_stats during = stats_of(kit);
    if (during.live_size_bytes < before.live_size_bytes + (1 << 20)) {
      fail(fmt::format("live bytes went from {} to {} by an allocation of {}", before.live_size_bytes, during.live_size_bytes, 1 << 20));
    }
    if (during.peak_size_bytes < during.live_size_bytes) fail("the peak is below what is live");
    if (during.allocation_count <= before.allocation_count) fail("an allocation was not counted");
  }
  const tenon_memory_stats after = stats_of(kit);
  if (after.live_size_bytes != before.live_size_bytes) {
    fail(fmt::format("live bytes are {} after the memory was freed, {} before it was allocated", after.live_size_bytes,
                     before.live_size_bytes));
  }
}

void plans_give_back(Kit& kit) {
  expect_sane(kit);
  const tenon_memory_stats before = stats_of(kit);
  const std::int64_t blocks = kit.device.host().live_blocks();
  for (int round = 0; round < 3; ++round) expect_sane(kit);
  if (stats_of(kit).live_size_bytes != before.live_size_bytes) fail("plans that were destroyed left device memory behind");
  if (kit.device.host().live_blocks() != blocks) fail("plans that were destroyed left host memory behind");
}

void distinct_blocks(Kit& kit) {
  std::list<Memory> blocks;
  for (std::uint64_t i = 0; i < 32; ++i) {
    blocks.emplace_back(kit, 100 + i);
    upload(kit, blocks.back().address, pattern(100 + i, i));
  }
  std::uint64_t i = 0;
  for (const Memory& block : blocks) {
    expect_bytes(pattern(100 + i, i), download(kit, block.address, 100 + i), "a block among 32");
    ++i;
  }
}

template <std::uint32_t terms>
void import_terms(Kit& kit) {
  // The header asks for no alignment; a page satisfies every device.
  std::vector<unsigned char> storage(3 * 4096);
  const std::size_t lead = 4096 - reinterpret_cast<std::uintptr_t>(storage.data()) % 4096;
  unsigned char* host = storage.data() + lead;
  const std::vector<unsigned char> bytes = pattern(4096, 5);
  std::copy(bytes.begin(), bytes.end(), host);
  ErrorText error;
  tenon_memory* memory = nullptr;
  std::uint64_t address = 0;
  const tenon_status status = kit.device.table().memory_import(kit.device.handle(), host, bytes.size(), terms, &memory, &address, error);
  if (status != TENON_OK) {
    if (terms == TENON_IMPORT_COPY) fail("memory_import by copy is always possible: " + error.text());
    expect_refusal(status, error, {TENON_UNSUPPORTED}, "memory_import");
    throw NotRun("the backend refuses these terms and says so: " + error.text());
  }
  struct Free {
    const Kit& kit;
    tenon_memory* memory;
    ~Free() { kit.device.table().memory_free(memory); }
  } free_at_end{kit, memory};
  expect_bytes(bytes, download(kit, address, bytes.size()), "imported memory");
  if (terms == TENON_IMPORT_COPY) {
    std::fill_n(host, bytes.size(), static_cast<unsigned char>(0));
    expect_bytes(bytes, download(kit, address, bytes.size()), "memory imported by copy, after the host changed its own");
  }
  if (terms == TENON_IMPORT_BORROW_READ_ONLY) {
    const std::vector<unsigned char> other = pattern(4096, 6);
    std::copy(other.begin(), other.end(), host);
    expect_bytes(other, download(kit, address, other.size()), "borrowed memory, after the host changed it");
  }
  if (terms == TENON_IMPORT_BORROW_READ_WRITE) {
    const std::vector<unsigned char> other = pattern(4096, 7);
    upload(kit, address, other);
    expect_bytes(other, std::vector<unsigned char>(host, host + other.size()), "borrowed memory that the device wrote");
  }
}

void import_of_nothing_known(Kit& kit) {
  unsigned char byte = 0;
  ErrorText error;
  tenon_memory* memory = nullptr;
  std::uint64_t address = 0;
  expect_refusal(kit.device.table().memory_import(kit.device.handle(), &byte, 1, 77, &memory, &address, error), error,
                 {TENON_INVALID_ARGUMENT, TENON_UNSUPPORTED}, "import under terms 77");
}

// ---------------------------------------------------------------- copies

void round_trip(Kit& kit) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{7}, std::size_t{4096}, std::size_t{1000003}}) {
    const Memory memory(kit, size);
    upload(kit, memory.address, pattern(size, size));
    expect_bytes(pattern(size, size), download(kit, memory.address, size), "there and back");
  }
}

void device_to_device(Kit& kit) {
  const Memory a(kit, 5000), b(kit, 5000);
  upload(kit, a.address, pattern(5000, 1));
  upload(kit, b.address, pattern(5000, 2));
  ErrorText error;
  const tenon_copy copy = copy_of(TENON_COPY_DEVICE_TO_DEVICE, b.address + 8, a.address + 16, 4000);
  expect_ok(kit.device.table().copy(kit.device.handle(), &copy, kit.device.stream(), error), error, "copy");
  expect_ok(kit.device.synchronize(error), error, "stream_synchronize");
  std::vector<unsigned char> want = pattern(5000, 2);
  const std::vector<unsigned char> source = pattern(5000, 1);
  std::copy_n(source.begin() + 16, 4000, want.begin() + 8);
  expect_bytes(want, download(kit, b.address, 5000), "device to device, inside both");
  expect_bytes(source, download(kit, a.address, 5000), "the source of a copy");
}

void copy_of_nothing(Kit& kit) {
  const Memory memory(kit, 16);
  upload(kit, memory.address, pattern(16, 3));
  ErrorText error;
  unsigned char byte = 0;
  for (const std::uint32_t direction : {TENON_COPY_HOST_TO_DEVICE, TENON_COPY_DEVICE_TO_HOST, TENON_COPY_DEVICE_TO_DEVICE}) {
    const bool down = direction == TENON_COPY_DEVICE_TO_HOST, up = direction == TENON_COPY_HOST_TO_DEVICE;
    const auto host = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&byte));
    const tenon_copy copy = copy_of(direction, down ? host : memory.address, up ? host : memory.address, 0);
    expect_ok(kit.device.table().copy(kit.device.handle(), &copy, kit.device.stream(), error), error, "a copy of no bytes");
  }
  expect_ok(kit.device.table().fill(kit.device.handle(), memory.address, 0, 0xEE, kit.device.stream(), error), error, "a fill of no bytes");
  expect_bytes(pattern(16, 3), download(kit, memory.address, 16), "after copies of no bytes");
}

void fill_bytes(Kit& kit) {
  const Memory memory(kit, 4099);
  upload(kit, memory.address, pattern(4099, 4));
  ErrorText error;
  expect_ok(kit.device.table().fill(kit.device.handle(), memory.address + 3, 4001, 0x5C, kit.device.stream(), error), error, "fill");
  expect_ok(kit.device.synchronize(error), error, "stream_synchronize");
  std::vector<unsigned char> want = pattern(4099, 4);
  std::fill_n(want.begin() + 3, 4001, static_cast<unsigned char>(0x5C));
  expect_bytes(want, download(kit, memory.address, 4099), "fill");
}

// ---------------------------------------------------------------- streams and events

class Stream {
 public:
  explicit Stream(const Kit& kit) : table_(kit.device.table()) {
    ErrorText error;
    expect_ok(table_.stream_create(kit.device.handle(), &handle, error), error, "stream_create");
  }
  ~Stream() { table_.stream_destroy(handle); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  tenon_stream* handle = nullptr;

 private:
  const tenon_backend_table& table_;
};
class Event {
 public:
  explicit Event(const Kit& kit) : table_(kit.device.table()) {
    ErrorText error;
    expect_ok(table_.event_create(kit.device.handle(), &handle, error), error, "event_create");
  }
  ~Event() { table_.event_destroy(handle); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  tenon_event* handle = nullptr;

 private:
  const tenon_backend_table& table_;
};

void empty_stream(Kit& kit) {
  for (int round = 0; round < 20; ++round) {
    const Stream stream(kit);
    ErrorText error;
    expect_ok(kit.device.table().stream_synchronize(stream.handle, error), error, "synchronizing a stream without work");
  }
}

void stream_order(Kit& kit) {
  constexpr std::uint64_t size = 1 << 20;
  const Memory a(kit, size), b(kit, size);
  const tenon_backend_table& table = kit.device.table();
  ErrorText error;
  for (int round = 0; round < 8; ++round) {
    const auto value = static_cast<std::uint8_t>(round + 1);
    expect_ok(table.fill(kit.device.handle(), a.address, size, value, kit.device.stream(), error), error, "fill");
    const tenon_copy copy = copy_of(TENON_COPY_DEVICE_TO_DEVICE, b.address, a.address, size);
    expect_ok(table.copy(kit.device.handle(), &copy, kit.device.stream(), error), error, "copy");
    expect_ok(table.fill(kit.device.handle(), a.address, size, 0, kit.device.stream(), error), error, "fill");
  }
  expect_ok(kit.device.synchronize(error), error, "stream_synchronize");
  expect_bytes(std::vector<unsigned char>(size, 8), download(kit, b.address, size), "the last of eight copies, given in order");
}

void events(Kit& kit) {
  const tenon_backend_table& table = kit.device.table();
  const Event event(kit);
  ErrorText error;
  expect_ok(table.event_query(event.handle, error), error, "querying an event never recorded, which is done,");
  expect_ok(table.event_synchronize(event.handle, error), error, "waiting for an event never recorded");
  expect_ok(table.event_wait(event.handle, kit.device.stream(), error), error, "a stream's waiting for an event never recorded");
  for (int round = 0; round < 3; ++round) {
    expect_ok(table.event_record(event.handle, kit.device.stream(), error), error, "event_record");
    expect_ok(table.event_synchronize(event.handle, error), error, "event_synchronize");
    expect_ok(table.event_query(event.handle, error), error, "event_query after event_synchronize");
  }
}

void event_between_streams(Kit& kit) {
  constexpr std::uint64_t size = 1 << 20;
  const Memory a(kit, size), b(kit, size);
  const Stream first(kit), second(kit);
  const Event written(kit);
  const tenon_backend_table& table = kit.device.table();
  ErrorText error;
  expect_ok(table.fill(kit.device.handle(), a.address, size, 0x11, first.handle, error), error, "fill");
  expect_ok(table.fill(kit.device.handle(), a.address, size, 0x22, first.handle, error), error, "fill");
  expect_ok(table.event_record(written.handle, first.handle, error), error, "event_record");
  expect_ok(table.event_wait(written.handle, second.handle, error), error, "event_wait");
  const tenon_copy copy = copy_of(TENON_COPY_DEVICE_TO_DEVICE, b.address, a.address, size);
  expect_ok(table.copy(kit.device.handle(), &copy, second.handle, error), error, "copy");
  expect_ok(table.stream_synchronize(second.handle, error), error, "stream_synchronize");
  expect_bytes(std::vector<unsigned char>(size, 0x22), download(kit, b.address, size),
               "what a stream copied after the event it waited for");
  expect_ok(table.stream_synchronize(first.handle, error), error, "stream_synchronize");
}

void event_times(Kit& kit) {
  const tenon_backend_table& table = kit.device.table();
  const Event begin(kit), end(kit);
  const Memory memory(kit, 1 << 22);
  ErrorText error;
  expect_ok(table.event_record(begin.handle, kit.device.stream(), error), error, "event_record");
  expect_ok(table.fill(kit.device.handle(), memory.address, 1 << 22, 1, kit.device.stream(), error), error, "fill");
  expect_ok(table.event_record(end.handle, kit.device.stream(), error), error, "event_record");
  expect_ok(table.event_synchronize(end.handle, error), error, "event_synchronize");
  std::uint64_t elapsed = 0;
  expect_ok(table.event_elapsed(begin.handle, end.handle, &elapsed, error), error, "event_elapsed");
  // 4 MiB take no device less than 100 ns, and none a minute.
  if (elapsed < 100 || elapsed > 60'000'000'000u) fail(fmt::format("filling 4 MiB took {} ns by the events", elapsed));
}

// ---------------------------------------------------------------- plans

tenon_plan_options default_options() {
  tenon_plan_options options{};
  options.struct_size = sizeof options;
  return options;
}

void empty_graph(Kit& kit) {
  const Net net;
  const Plan plan(kit.device, net);
  if (!plan.ready()) fail("a graph without nodes: " + plan.why());
  const Outcome outcome = plan.run();
  if (!outcome.ok()) fail("executing a plan without nodes: " + outcome.text);
}

void missing_bindings(Kit& kit) {
  const Net net = relu_net();
  const Plan plan(kit.device, net);
  if (!plan.ready()) throw Unsupported(plan.why());
  const Memory workspace(kit, plan.info().workspace_size_bytes);
  tenon_bindings bindings{};
  bindings.struct_size = sizeof bindings;
  const std::uint64_t one = workspace.address;
  for (const std::uint32_t count : {0u, 1u}) {
    bindings.address_count = count;
    bindings.addresses = &one;
    ErrorText error;
    const tenon_status status = kit.device.table().plan_execute(plan.handle(), &bindings, workspace.address, kit.device.stream(), error);
    expect_refusal(status, error, {TENON_INVALID_ARGUMENT}, "executing with fewer addresses than the plan has bindings");
  }
  expect_sane(kit);
}

void plan_info_sane(Kit& kit) {
  const Net net = relu_net();
  const Plan plan(kit.device, net);
  if (!plan.ready()) throw Unsupported(plan.why());
  const tenon_plan_info& info = plan.info();
  if (info.kernel_count < 1) fail("a plan of one node launches no kernel");
  const std::uint64_t a = info.workspace_alignment_bytes;
  if (info.workspace_size_bytes > 0 && (a == 0 || (a & (a - 1)) != 0))
    fail(fmt::format("a workspace alignment of {} is no power of two", a));
  if (info.workspace_size_bytes > (1u << 26))
    fail(fmt::format("16 elements of relu want a workspace of {} bytes", info.workspace_size_bytes));
}

/// A newer core's values and nodes are longer: the strides say where the next one is.
void longer_elements(Kit& kit) {
  const Net net = relu_net();
  const Wire wire(net);
  struct LongValue {
    tenon_value value;
    std::uint64_t later[3];
  };
  struct LongNode {
    tenon_node node;
    std::uint64_t later[5];
  };
  std::vector<LongValue> values;
  for (const tenon_value& value : wire.values) values.push_back({value, {~0ull, ~0ull, ~0ull}});
  std::vector<LongNode> nodes;
  for (const tenon_node& node : wire.nodes) nodes.push_back({node, {~0ull, ~0ull, ~0ull, ~0ull, ~0ull}});
  tenon_graph graph = wire.graph;
  graph.values = &values[0].value;
  graph.value_stride = sizeof(LongValue);
  graph.nodes = &nodes[0].node;
  graph.node_stride = sizeof(LongNode);
  const tenon_plan_options options = default_options();
  ErrorText error;
  tenon_plan* plan = nullptr;
  const tenon_status status = kit.device.table().plan_create(kit.device.handle(), &graph, &options, &plan, error);
  if (status == TENON_UNSUPPORTED) throw Unsupported(error.text());
  expect_ok(status, error, "plan_create of a graph with longer elements");
  kit.device.table().plan_destroy(plan);
}

/// The graph's bytes are the caller's again once plan_create returns.
void plan_keeps_nothing_borrowed(Kit& kit) {
  auto net = std::make_unique<Net>(relu_net());
  auto wire = std::make_unique<Wire>(*net);
  const tenon_plan_options options = default_options();
  ErrorText error;
  tenon_plan* plan = nullptr;
  const tenon_status status = kit.device.table().plan_create(kit.device.handle(), &wire->graph, &options, &plan, error);
  if (status == TENON_UNSUPPORTED) throw Unsupported(error.text());
  expect_ok(status, error, "plan_create");
  struct Destroy {
    const Kit& kit;
    tenon_plan* plan;
    ~Destroy() { kit.device.table().plan_destroy(plan); }
  } destroy_at_end{kit, plan};
  std::memset(static_cast<void*>(wire->values.data()), 0xFF, wire->values.size() * sizeof(tenon_value));
  std::memset(static_cast<void*>(wire->nodes.data()), 0xFF, wire->nodes.size() * sizeof(tenon_node));
  std::fill(net->values[0].shape.begin(), net->values[0].shape.end(), -1);
  wire.reset();
  net.reset();

  tenon_plan_info info{};
  info.struct_size = sizeof info;
  expect_ok(kit.device.table().plan_info(plan, &info, error), error, "plan_info");
  const Memory x(kit, 64), y(kit, 64), workspace(kit, info.workspace_size_bytes);
  const Array bytes = relu_net().values[0].array;
  expect_ok(kit.device.upload(x.address, bytes.bytes(), 64, error), error, "a copy to the device");
  const std::uint64_t addresses[] = {x.address, y.address};
  tenon_bindings bindings{};
  bindings.struct_size = sizeof bindings;
  bindings.address_count = 2;
  bindings.addresses = addresses;
  expect_ok(kit.device.table().plan_execute(plan, &bindings, workspace.address, kit.device.stream(), error), error, "plan_execute");
  Array result(TENON_DTYPE_F32, {16});
  expect_ok(kit.device.download(result.bytes(), y.address, 64, error), error, "a copy from the device");
  expect_relu({result});
}

template <class Spoil>
void expect_malformed(const Kit& kit, const char* what, Spoil spoil) {
  const Net net = relu_net();
  Wire wire(net);
  spoil(wire);
  const tenon_plan_options options = default_options();
  ErrorText error;
  tenon_plan* plan = nullptr;
  const tenon_status status = kit.device.table().plan_create(kit.device.handle(), &wire.graph, &options, &plan, error);
  if (status == TENON_OK) kit.device.table().plan_destroy(plan);
  expect_refusal(status, error, {TENON_INVALID_ARGUMENT, TENON_UNSUPPORTED}, what);
  std::vector<tenon_answer> answers(1);
  ErrorText second;
  const tenon_status asked = kit.device.table().supports(kit.device.handle(), &wire.graph, &options, answers.data(), second);
  if (asked == TENON_OK && answers[0].supported == 1) fail(fmt::format("{}: `supports` says yes", what));
}

void malformed_graphs(Kit& kit) {
  if (kit.device.capability(TENON_OP_Relu, line_of(TENON_OP_Relu).version) == 0) throw Unsupported("Relu is not offered");
  static const std::uint32_t outside[] = {99};
  static const std::int64_t negative[] = {-4};
  expect_malformed(kit, "a node that reads value 99 of 2", [](Wire& wire) { wire.nodes[0].inputs = outside; });
  expect_malformed(kit, "a node that writes value 99 of 2", [](Wire& wire) { wire.nodes[0].outputs = outside; });
  expect_malformed(kit, "a negative dimension", [](Wire& wire) { wire.values[0].desc.shape = negative; });
  expect_malformed(kit, "a rank of 9", [](Wire& wire) { wire.values[0].desc.rank = 9; });
  expect_malformed(kit, "a value of no dtype", [](Wire& wire) { wire.values[0].desc.dtype = TENON_DTYPE_NONE; });
  expect_malformed(kit, "an input bound outside the bindings", [](Wire& wire) { wire.values[0].binding = 7; });
  expect_malformed(kit, "an op that nobody knows", [](Wire& wire) { wire.nodes[0].op = 39999; });
  expect_sane(kit);
}

/// No allocation and no logging inside an execution, once the plan is warm.
void quiet_execution(Kit& kit) {
  const Net net = relu_net(100000);
  const Plan plan(kit.device, net);
  if (!plan.ready()) throw Unsupported(plan.why());
  Plan::Bindings bindings(plan, 0xFF);
  ErrorText error;
  for (int round = 0; round < 3; ++round) expect_ok(bindings.execute_bare(1, error), error, "plan_execute");
  expect_ok(kit.device.synchronize(error), error, "stream_synchronize");
  const std::int64_t allocations = kit.device.host().allocations(), lines = kit.device.host().log_lines();
  const tenon_memory_stats before = stats_of(kit);
  for (int round = 0; round < 10; ++round) expect_ok(bindings.execute_bare(1, error), error, "plan_execute");
  expect_ok(kit.device.synchronize(error), error, "stream_synchronize");
  if (kit.device.host().allocations() != allocations || stats_of(kit).allocation_count != before.allocation_count) {
    fail("executing a warm plan allocated memory");
  }
  if (kit.device.host().log_lines() != lines) fail("executing a plan wrote to the log");
}

void host_memory_intact(Kit& kit) {
  expect_sane(kit);
  if (!kit.device.host().damage().empty()) fail(kit.device.host().damage());
}

}  // namespace

std::vector<Case> core_case_list() {
  std::vector<Case> cases;
  const auto add = [&](const char* name, void (*check)(Kit&)) {
    cases.push_back({std::string("core/") + name, "core", "core", TENON_DTYPE_NONE, true, check});
  };
  add("lifecycle/query_again", query_again);
  add("lifecycle/create_and_destroy", create_and_destroy);
  add("lifecycle/shutdown_twice", shutdown_twice);
  add("lifecycle/destroy_without_shutdown", destroy_without_shutdown);
  add("lifecycle/floating_point_untouched", floating_point_untouched);
  add("lifecycle/old_host_structs", old_host_structs);
  add("lifecycle/small_error_text", small_error_text);
  add("device/described", device_described);
  add("device/out_of_range", device_out_of_range);
  add("device/opened_twice", device_opened_twice);
  add("memory/alignment", alignment);
  add("memory/zero_size", zero_size);
  add("memory/huge_size", huge_size);
  add("memory/kinds", kinds);
  add("memory/stats", stats);
  add("memory/plans_give_back", plans_give_back);
  add("memory/distinct_blocks", distinct_blocks);
  add("import/copy", import_terms<TENON_IMPORT_COPY>);
  add("import/hold", import_terms<TENON_IMPORT_HOLD>);
  add("import/borrow_read_only", import_terms<TENON_IMPORT_BORROW_READ_ONLY>);
  add("import/borrow_read_write", import_terms<TENON_IMPORT_BORROW_READ_WRITE>);
  add("import/unknown_terms", import_of_nothing_known);
  add("copy/round_trip", round_trip);
  add("copy/device_to_device", device_to_device);
  add("copy/nothing", copy_of_nothing);
  add("copy/fill", fill_bytes);
  add("stream/empty", empty_stream);
  add("stream/order", stream_order);
  add("event/lifecycle", events);
  add("event/between_streams", event_between_streams);
  add("event/times", event_times);
  add("plan/empty_graph", empty_graph);
  add("plan/missing_bindings", missing_bindings);
  add("plan/info", plan_info_sane);
  add("plan/longer_elements", longer_elements);
  add("plan/keeps_nothing_borrowed", plan_keeps_nothing_borrowed);
  add("plan/malformed_graphs", malformed_graphs);
  add("plan/quiet_execution", quiet_execution);
  const std::vector<Case> capture = capture_case_list();
  cases.insert(cases.end(), capture.begin(), capture.end());
  add("host/memory_intact", host_memory_intact);
  return cases;
}

}  // namespace tenon::conformance
