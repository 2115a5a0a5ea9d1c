// SPDX-License-Identifier: Apache-2.0
// The C interface of a C++ backend: query, devices, memory, events, answers.
#include "sdk_testing.h"

#include <tenon/sdk/backend.h>

#include <cstddef>
#include <limits>
#include <memory>

namespace tenon::sdk_test {
namespace {

/// A backend without ops that counts its devices.
int open_devices = 0;
class CountedDevice final : public sdk::CpuDevice {
 public:
  explicit CountedDevice(sdk::Host services) : CpuDevice(services) { ++open_devices; }
  ~CountedDevice() override { --open_devices; }
};
class CountedBackend final : public sdk::Backend {
 public:
  using Backend::Backend;
  std::uint32_t device_count() override { return 1; }
  const sdk::DeviceDescription& describe(std::uint32_t) override { return description_; }
  std::unique_ptr<sdk::Device> open(std::uint32_t) override { return std::make_unique<CountedDevice>(host); }

 private:
  sdk::DeviceDescription description_ = sdk::describe_cpu("counted");
};
const sdk::BackendSpec& counted_spec() {
  static constexpr sdk::BackendSpec spec{
      "counted", "0.1", "tests", "counted devices", nullptr, 1, 0, {}, [](sdk::Host host) -> std::unique_ptr<sdk::Backend> {
        return std::make_unique<CountedBackend>(host);
      }};
  return spec;
}
constexpr sdk::KernelRow no_rows[] = {{TENON_OP_NONE, 0, 0, nullptr}};
constexpr tenon_backend_query_fn query_counted = sdk::query<counted_spec, no_rows>;

TEST_CASE("sdk: the query is idempotent and fills the fields that the caller's struct covers") {
  const tenon_host_info asking = host_info();
  tenon_backend_info first{}, second{};
  first.struct_size = second.struct_size = sizeof first;
  REQUIRE(query_full(&asking, &first) == TENON_OK);
  REQUIRE(query_full(&asking, &second) == TENON_OK);
  CHECK(std::memcmp(&first, &second, sizeof first) == 0);
  CHECK(std::string(first.name) == "full");
  CHECK(std::string(first.version) == "1.2.3");
  CHECK(first.priority == 7);
  CHECK(first.option_count == 1);
  CHECK(std::string(first.options[0].name) == "level");
  CHECK(first.digest_count > 0);

  unsigned char storage[sizeof(tenon_backend_info)];
  std::memset(storage, 0xEE, sizeof storage);
  const std::uint32_t known = offsetof(tenon_backend_info, version);
  std::memcpy(storage, &known, sizeof known);
  REQUIRE(query_full(&asking, reinterpret_cast<tenon_backend_info*>(storage)) == TENON_OK);
  CHECK(std::memcmp(storage + 4, reinterpret_cast<const unsigned char*>(&first) + 4, known - 4) == 0);
  for (std::size_t i = known; i < sizeof storage; ++i) REQUIRE(storage[i] == 0xEE);
}

TEST_CASE("sdk: a host with other versions gets the plugin's range") {
  tenon_host_info newer = host_info(TENON_ABI_MINOR + 1, TENON_ABI_MINOR + 3), older_major = host_info(0, 99), newer_major = older_major;
  older_major.abi_major = TENON_ABI_MAJOR - 1;
  newer_major.abi_major = TENON_ABI_MAJOR + 1;
  for (const tenon_host_info& asking : {newer, older_major, newer_major}) {
    tenon_backend_info info{.struct_size = sizeof info};
    CHECK(query_full(&asking, &info) == TENON_INCOMPATIBLE);
    CHECK(info.abi_major == TENON_ABI_MAJOR);
    CHECK(info.abi_minor_lowest <= info.abi_minor_highest);
    CHECK(info.abi_minor_highest == TENON_ABI_MINOR);
    CHECK(std::string(info.name) == "full");
  }
  tenon_backend_info info{.struct_size = sizeof info};
  const tenon_host_info wide = host_info(0, 99);
  CHECK(query_full(&wide, &info) == TENON_OK);
}

TEST_CASE("sdk: two backends in one program keep their own capabilities and tables") {
  const tenon_host_info asking = host_info();
  tenon_backend_info full{}, small{};
  full.struct_size = small.struct_size = sizeof full;
  REQUIRE(query_full(&asking, &full) == TENON_OK);
  REQUIRE(query_small(&asking, &small) == TENON_OK);
  CHECK(full.capability_count == 21);
  REQUIRE(small.capability_count == 2);
  CHECK(small.capabilities[0].op == TENON_OP_Neg);
  CHECK(small.capabilities[0].dtypes == TENON_DTYPE_BIT(TENON_DTYPE_F32));
  CHECK(small.capabilities[0].features == (TENON_FEATURE_STRIDED | TENON_FEATURE_IN_PLACE));
  CHECK(small.capabilities[1].op == TENON_OP_Tanh);
  CHECK(small.capabilities[1].features == 0);
  CHECK(small.flags == TENON_BACKEND_UNLOADABLE);
  // bf16 through f32
  CHECK(full.capabilities[0].dtypes ==
        (TENON_DTYPE_BIT(TENON_DTYPE_BF16) | TENON_DTYPE_BIT(TENON_DTYPE_F32) | TENON_DTYPE_BIT(TENON_DTYPE_I64)));
  for (std::uint32_t i = 0; i < full.capability_count; ++i) {
    if (full.capabilities[i].op == TENON_OP_Gemm) CHECK(full.capabilities[i].features == (TENON_FEATURE_STRIDED | TENON_FEATURE_EPILOGUE));
  }

  TestHost host;
  ErrorText error;
  tenon_backend *first = nullptr, *second = nullptr;
  const tenon_backend_table *first_table = nullptr, *second_table = nullptr;
  REQUIRE(full.create(host.table(), &first, &first_table, error) == TENON_OK);
  REQUIRE(small.create(host.table(), &second, &second_table, error) == TENON_OK);
  CHECK(first_table->blas == nullptr);
  CHECK(second_table->blas != nullptr);
  CHECK(first_table->struct_size == sizeof(tenon_backend_table));
  first_table->destroy(first);
  second_table->destroy(second);
}

TEST_CASE("sdk: a backend without devices has a reason") {
  const tenon_host_info asking = host_info();
  tenon_backend_info info{.struct_size = sizeof info};
  REQUIRE(query_small(&asking, &info) == TENON_OK);
  TestHost host;
  ErrorText error;
  tenon_backend* backend = nullptr;
  const tenon_backend_table* table = nullptr;
  REQUIRE(info.create(host.table(), &backend, &table, error) == TENON_OK);
  std::uint32_t count = 7;
  CHECK(table->device_count(backend, &count, error) == TENON_OK);
  CHECK(count == 0);
  CHECK(error.text() == "no such device here: plug one in");
  tenon_device* device = nullptr;
  CHECK(table->device_open(backend, 0, &device, error) == TENON_DEVICE_NOT_FOUND);
  CHECK(device == nullptr);
  table->shutdown(backend);
  table->shutdown(backend);
  table->destroy(backend);
}

TEST_CASE("sdk: a missing device is not found, with the number of devices") {
  Session session;
  ErrorText error;
  std::uint32_t count = 0;
  REQUIRE(session.table->device_count(session.backend, &count, error) == TENON_OK);
  CHECK(count == 1);
  tenon_device* device = nullptr;
  CHECK(session.table->device_open(session.backend, 1, &device, error) == TENON_DEVICE_NOT_FOUND);
  CHECK(device == nullptr);
  CHECK(error.says("device 1 of 1"));
  tenon_device_info info{.struct_size = sizeof info};
  CHECK(session.table->device_info(session.backend, 9, &info, error) == TENON_DEVICE_NOT_FOUND);
  CHECK(session.table->device_info(session.backend, 9, &info, nullptr) == TENON_DEVICE_NOT_FOUND);
  REQUIRE(session.table->device_info(session.backend, 0, &info, error) == TENON_OK);
  CHECK(info.kind == TENON_DEVICE_CPU);
  CHECK((info.flags & TENON_DEVICE_HOST_ADDRESSABLE) != 0);
  CHECK(std::string(info.identity) == "host");
  CHECK(info.memory_size_bytes >= info.memory_free_bytes);
  tenon_device_info less{.struct_size = offsetof(tenon_device_info, name)};
  REQUIRE(session.table->device_info(session.backend, 0, &less, error) == TENON_OK);
  CHECK(less.kind == TENON_DEVICE_CPU);
  CHECK(less.name == nullptr);
  CHECK(less.struct_size == offsetof(tenon_device_info, name));
}

TEST_CASE("sdk: a range beyond the end of the address space is rejected") {
  Session session;
  ErrorText error;
  unsigned char bytes[16] = {};
  const auto here = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(bytes));
  const std::uint64_t too_long = ~std::uint64_t{0} - 8;
  for (const bool source : {true, false}) {
    const tenon_copy copy{sizeof copy, TENON_COPY_DEVICE_TO_DEVICE, source ? 0 : here, source ? here : 0, too_long, nullptr, 0, 0};
    CHECK(session.table->copy(session.device, &copy, session.stream, error) == TENON_INVALID_ARGUMENT);
    CHECK(error.says("exceed the address space"));
  }
  CHECK(session.table->fill(session.device, here, too_long, 1, session.stream, error) == TENON_INVALID_ARGUMENT);
  CHECK(error.says("fill: 18446744073709551607 bytes"));
}

TEST_CASE("sdk: unknown values of options are rejected by name") {
  Session session;
  Net net;
  const auto x = net.input({4}), y = net.output({4});
  net.node(TENON_OP_Neg, {x}, {y});
  for (auto field : {&tenon_plan_options::math, &tenon_plan_options::deterministic, &tenon_plan_options::fusion}) {
    tenon_plan_options options{.struct_size = sizeof options};
    options.*field = 77;
    tenon_answer answer{};
    ErrorText error;
    REQUIRE(session.table->supports(session.device, &net.abi_graph(), &options, &answer, sizeof answer, error) == TENON_OK);
    CHECK(answer.supported == 0);
    CHECK(answer.reason == TENON_REASON_OPTIONS);
    CHECK(std::string(answer.text).find("77") != std::string::npos);
    tenon_plan* plan = nullptr;
    CHECK(session.table->plan_create(session.device, &net.abi_graph(), &options, &plan, error) == TENON_UNSUPPORTED);
    CHECK(plan == nullptr);
  }
}

TEST_CASE("sdk: shutdown closes open devices") {
  TestHost host;
  const tenon_host_info asking = host_info();
  tenon_backend_info info{.struct_size = sizeof info};
  REQUIRE(query_counted(&asking, &info) == TENON_OK);
  ErrorText error;
  tenon_backend* backend = nullptr;
  const tenon_backend_table* table = nullptr;
  REQUIRE(info.create(host.table(), &backend, &table, error) == TENON_OK);
  tenon_device *closed = nullptr, *open = nullptr;
  REQUIRE(table->device_open(backend, 0, &closed, error) == TENON_OK);
  REQUIRE(table->device_open(backend, 0, &open, error) == TENON_OK);
  CHECK(open_devices == 2);
  table->device_close(closed);
  CHECK(open_devices == 1);
  table->shutdown(backend);
  CHECK(open_devices == 0);
  table->destroy(backend);
}

TEST_CASE("sdk: an error's text is truncated to its capacity") {
  Session session;
  char storage[16];
  std::memset(storage, 'x', sizeof storage);
  tenon_error error{};
  error.struct_size = sizeof error;
  error.text = storage;
  error.text_capacity = 8;
  tenon_device* device = nullptr;
  CHECK(session.table->device_open(session.backend, 5, &device, &error) == TENON_DEVICE_NOT_FOUND);
  CHECK(std::string(storage) == "device ");
  CHECK(storage[8] == 'x');
  error.text_capacity = 0;
  CHECK(session.table->device_open(session.backend, 5, &device, &error) == TENON_DEVICE_NOT_FOUND);
  error.text = nullptr;
  CHECK(session.table->device_open(session.backend, 5, &device, &error) == TENON_DEVICE_NOT_FOUND);
  CHECK(error.status == TENON_DEVICE_NOT_FOUND);
}

// ---------------------------------------------------------------- memory

tenon_memory_stats stats_of(Session& session) {
  tenon_memory_stats stats{.struct_size = sizeof stats};
  REQUIRE(session.table->memory_stats(session.device, &stats, nullptr) == TENON_OK);
  return stats;
}

tenon_status allocate(Session& session, std::uint32_t kind, std::uint64_t size_bytes, tenon_memory_result& out_result, tenon_error* error,
                      std::uint64_t alignment_bytes = 0) {
  const tenon_memory_request request{
      .struct_size = sizeof request, .kind = kind, .size_bytes = size_bytes, .alignment_bytes = alignment_bytes};
  return session.table->memory_allocate(session.device, &request, &out_result, error);
}
tenon_status import(Session& session, void* host, std::uint64_t size_bytes, std::uint32_t terms, tenon_memory_result& out_result,
                    tenon_error* error) {
  const tenon_memory_import given{.struct_size = sizeof given, .terms = terms, .host = host, .size_bytes = size_bytes};
  return session.table->memory_import(session.device, &given, &out_result, error);
}
constexpr tenon_memory_result no_memory{.struct_size = sizeof(tenon_memory_result)};

TEST_CASE("sdk: memory statistics follow what is allocated and freed") {
  Session session;
  ErrorText error;
  tenon_memory_result a = no_memory, b = no_memory, nothing = no_memory;
  REQUIRE(allocate(session, TENON_MEMORY_DEVICE, 1000, a, error, 16) == TENON_OK);
  REQUIRE(allocate(session, TENON_MEMORY_PINNED, 24, b, error) == TENON_OK);
  REQUIRE(allocate(session, TENON_MEMORY_HOST, 0, nothing, error, 64) == TENON_OK);
  CHECK(a.address % 64 == 0);
  CHECK(b.address % 64 == 0);
  CHECK(nothing.address != 0);
  for (const tenon_memory_result& made : {a, b, nothing}) CHECK(reinterpret_cast<std::uintptr_t>(made.host) == made.address);
  CHECK(stats_of(session).live_size_bytes == 1024);
  session.table->memory_free(a.memory);
  CHECK(stats_of(session).live_size_bytes == 24);
  CHECK(stats_of(session).peak_size_bytes == 1024);
  CHECK(stats_of(session).allocation_count == 3);
  session.table->memory_free(b.memory);
  session.table->memory_free(nothing.memory);
  CHECK(stats_of(session).live_size_bytes == 0);
  CHECK(session.host.live_blocks == 0);

  tenon_memory_stats less{.struct_size = offsetof(tenon_memory_stats, peak_size_bytes), .peak_size_bytes = 99};
  REQUIRE(session.table->memory_stats(session.device, &less, error) == TENON_OK);
  CHECK(less.peak_size_bytes == 99);
}

TEST_CASE("sdk: a failed allocation reports the requested bytes and those in use") {
  Session session;
  ErrorText error;
  tenon_memory_result some = no_memory, refused = no_memory;
  REQUIRE(allocate(session, TENON_MEMORY_DEVICE, 4096, some, error) == TENON_OK);
  CHECK(allocate(session, TENON_MEMORY_DEVICE, std::uint64_t{1} << 60, refused, error) == TENON_OUT_OF_MEMORY);
  CHECK(error.says("1152921504606846976 bytes"));
  CHECK(error.says("4096 in use"));
  CHECK(stats_of(session).live_size_bytes == 4096);
  CHECK(stats_of(session).allocation_count == 1);
  CHECK(allocate(session, 9, 64, refused, error) == TENON_UNSUPPORTED);
  CHECK(allocate(session, TENON_MEMORY_DEVICE, 64, refused, error, 48) == TENON_INVALID_ARGUMENT);
  CHECK(error.says("expected an alignment that is a power of two, got 48"));
  CHECK(allocate(session, TENON_MEMORY_DEVICE, 64, refused, error, 8192) == TENON_UNSUPPORTED);
  CHECK(error.says("expected an alignment of at most 64 bytes, got 8192"));
  CHECK(refused.memory == nullptr);
  CHECK(refused.address == 0);
  session.table->memory_free(some.memory);
}

TEST_CASE("sdk: imported memory is copied or borrowed as requested") {
  Session session;
  ErrorText error;
  Floats mine{1, 2, 3, 4};
  for (const std::uint32_t terms : {TENON_IMPORT_COPY, TENON_IMPORT_HOLD, TENON_IMPORT_BORROW_READ_ONLY, TENON_IMPORT_BORROW_READ_WRITE}) {
    tenon_memory_result imported = no_memory;
    REQUIRE(import(session, mine.data(), 16, terms, imported, error) == TENON_OK);
    const bool own = imported.address != reinterpret_cast<std::uintptr_t>(mine.data());
    CHECK(own == (terms == TENON_IMPORT_COPY));
    const auto* there = static_cast<const float*>(imported.host);
    CHECK(Floats(there, there + 4) == mine);
    CHECK(stats_of(session).live_size_bytes == (own ? 16 : 0));
    session.table->memory_free(imported.memory);
    CHECK(stats_of(session).live_size_bytes == 0);
  }
  tenon_memory_result refused = no_memory;
  CHECK(import(session, mine.data(), 16, 4, refused, error) == TENON_UNSUPPORTED);
  CHECK(import(session, nullptr, 16, TENON_IMPORT_COPY, refused, error) == TENON_INVALID_ARGUMENT);
  CHECK(refused.memory == nullptr);
}

TEST_CASE("sdk: importing nothing reads nothing") {
  Session session;
  ErrorText error;
  for (const std::uint32_t terms : {TENON_IMPORT_COPY, TENON_IMPORT_BORROW_READ_ONLY}) {
    tenon_memory_result imported = no_memory;
    REQUIRE(import(session, nullptr, 0, terms, imported, error) == TENON_OK);
    session.table->memory_free(imported.memory);
  }
  const std::vector<char> empty_end(8);
  tenon_memory_result imported = no_memory;
  void* end = const_cast<char*>(empty_end.data() + 8);
  REQUIRE(import(session, end, 0, TENON_IMPORT_COPY, imported, error) == TENON_OK);
  session.table->memory_free(imported.memory);
  CHECK(stats_of(session).live_size_bytes == 0);
}

TEST_CASE("sdk: copies and fills write only their range") {
  Session session;
  ErrorText error;
  unsigned char from[8] = {1, 2, 3, 4, 5, 6, 7, 8}, to[8] = {};
  tenon_copy copy{.struct_size = sizeof copy,
                  .direction = TENON_COPY_HOST_TO_DEVICE,
                  .destination = reinterpret_cast<std::uintptr_t>(to + 2),
                  .source = reinterpret_cast<std::uintptr_t>(from),
                  .size_bytes = 4};
  REQUIRE(session.table->copy(session.device, &copy, session.stream, error) == TENON_OK);
  REQUIRE(session.table->fill(session.device, reinterpret_cast<std::uintptr_t>(to + 7), 1, 0xAB, session.stream, error) == TENON_OK);
  const unsigned char expected[8] = {0, 0, 1, 2, 3, 4, 0, 0xAB};
  CHECK(std::memcmp(to, expected, 8) == 0);
  copy.size_bytes = 0;
  copy.destination = copy.source = 0;
  CHECK(session.table->copy(session.device, &copy, session.stream, error) == TENON_OK);
  CHECK(session.table->fill(session.device, 0, 0, 1, session.stream, error) == TENON_OK);
  copy.direction = 3;
  CHECK(session.table->copy(session.device, &copy, session.stream, error) == TENON_UNSUPPORTED);
  CHECK(session.table->stream_synchronize(session.stream, error) == TENON_OK);
}

TEST_CASE("sdk: events of an inline stream are done when recorded, and measure the time between them") {
  Session session;
  ErrorText error;
  tenon_event *begin = nullptr, *end = nullptr;
  REQUIRE(session.table->event_create(session.device, nullptr, &begin, error) == TENON_OK);
  REQUIRE(session.table->event_create(session.device, nullptr, &end, error) == TENON_OK);
  CHECK(session.table->event_query(begin, error) == TENON_OK);
  CHECK(session.table->event_wait(begin, session.stream, error) == TENON_OK);
  std::uint64_t ns = 5;
  CHECK(session.table->event_elapsed(begin, end, &ns, error) == TENON_INVALID_ARGUMENT);
  CHECK(ns == 5);
  REQUIRE(session.table->event_record(begin, session.stream, error) == TENON_OK);
  CHECK(session.table->event_elapsed(begin, end, &ns, error) == TENON_INVALID_ARGUMENT);
  REQUIRE(session.table->event_record(end, session.stream, error) == TENON_OK);
  CHECK(session.table->event_synchronize(end, error) == TENON_OK);
  CHECK(session.table->event_elapsed(begin, end, &ns, error) == TENON_OK);
  CHECK(ns < 10'000'000'000);
  REQUIRE(session.table->event_record(begin, session.stream, error) == TENON_OK);
  while (session.table->event_elapsed(begin, end, &ns, error) == TENON_OK) {
    session.table->event_record(begin, session.stream, error);  // until the clock has moved on
  }
  CHECK(error.says("before"));
  session.table->event_destroy(begin);
  session.table->event_destroy(end);
}

// ---------------------------------------------------------------- answers

tenon_answer answer_of(Session& session, Net& net) {
  ErrorText error;
  std::vector<tenon_answer> answers(net.nodes.size());
  const tenon_plan_options given = options();
  REQUIRE_MESSAGE(
      session.table->supports(session.device, &net.abi_graph(), &given, answers.data(), sizeof(tenon_answer), error) == TENON_OK,
      error.text());
  tenon_plan* plan = nullptr;
  bool all = true;
  for (const tenon_answer& answer : answers) all = all && answer.supported == 1;
  const tenon_status status = session.table->plan_create(session.device, &net.abi_graph(), &given, &plan, error);
  CHECK(status == (all ? TENON_OK : TENON_UNSUPPORTED));  // the answer of supports is binding
  if (plan != nullptr) session.table->plan_destroy(plan);
  return answers[0];
}

TEST_CASE("sdk: a rejection has a reason and a message") {
  Session session;
  const auto check = [&](Net& net, std::uint32_t reason, const char* text) {
    const tenon_answer answer = answer_of(session, net);
    CHECK(answer.supported == 0);
    CHECK(answer.reason == reason);
    CHECK(std::string(answer.text) == text);
  };
  Net absent, version, dtype, attributes, operands, mixed, labels, unwanted, extra;
  absent.node(TENON_OP_ArgMax, {absent.input({6})}, {absent.output({}, TENON_DTYPE_I64)}, axis(0));
  check(absent, TENON_REASON_OP, "ArgMax: version 13 has no kernel in this backend");
  version.node(TENON_OP_Neg, {version.input({6})}, {version.output({6})});
  version.nodes[0].version = 6;
  check(version, TENON_REASON_OP, "Neg: version 6 has no kernel in this backend");
  dtype.node(TENON_OP_Neg, {dtype.input({6}, {}, TENON_DTYPE_F64)}, {dtype.output({6}, TENON_DTYPE_F64)});
  check(dtype, TENON_REASON_DTYPE, "Neg: no kernel for f64");
  attributes.node(TENON_OP_LogSoftmax, {attributes.input({6})}, {attributes.output({6})}, axis(0));
  check(attributes, TENON_REASON_ATTRIBUTES, "LogSoftmax: vectors are not served");
  operands.node(TENON_OP_Add, {operands.input({6}), TENON_NO_INDEX}, {operands.output({6})});
  check(operands, TENON_REASON_SHAPE, "Add: input b is absent");
  mixed.node(TENON_OP_Add, {mixed.input({6}), mixed.input({6}, {}, TENON_DTYPE_F64)}, {mixed.output({6})});
  check(mixed, TENON_REASON_DTYPE, "Add: input b is f64, expected f32");
  labels.node(TENON_OP_SoftmaxCrossEntropyLoss, {labels.input({2, 3}), labels.input({2})}, {labels.output({})},
              tenon_attributes_cross_entropy{sizeof(tenon_attributes_cross_entropy), TENON_REDUCTION_SUM, 0, 0, 0});
  check(labels, TENON_REASON_DTYPE, "SoftmaxCrossEntropyLoss: input labels is f32, expected i32 or i64");
  unwanted.node(TENON_OP_Neg, {unwanted.input({6})}, {TENON_NO_INDEX});
  check(unwanted, TENON_REASON_SHAPE, "Neg: output y is absent");
  extra.node(TENON_OP_Neg, {extra.input({6}), extra.input({6})}, {extra.output({6})});
  check(extra, TENON_REASON_SHAPE, "Neg: expected at most 1 input, got 2");
}

TEST_CASE("sdk: groups of operands repeat as a whole, with or without their optional members") {
  Session session;
  for (const bool velocity : {false, true}) {
    Net net;
    std::vector<std::uint32_t> inputs{net.input({}, {}, TENON_DTYPE_F64)}, outputs;
    for (int group = 0; group < 2; ++group) {
      for (int k = 0; k < (velocity ? 3 : 2); ++k) inputs.push_back(net.input({6}));
      for (int k = 0; k < (velocity ? 2 : 1); ++k) outputs.push_back(net.output({6}));
    }
    net.node(TENON_OP_SgdStep, inputs, outputs, sgd_attributes(velocity ? 0.9 : 0.0));
    CHECK(answer_of(session, net).supported == 1);
    if (velocity) {
      net.nodes[0].inputs.pop_back();
    } else {
      net.nodes[0].inputs.insert(net.nodes[0].inputs.end(), {inputs[1], inputs[2]});
    }
    const tenon_answer answer = answer_of(session, net);
    CHECK(answer.supported == 0);
    CHECK(answer.reason == TENON_REASON_SHAPE);
  }
}

TEST_CASE("sdk: every node gets an answer, and none does in a malformed graph") {
  Session session;
  Net net;
  const auto x = net.input({6}), y = net.output({6}), z = net.output({}, TENON_DTYPE_I64);
  net.node(TENON_OP_Neg, {x}, {y});
  net.node(TENON_OP_ArgMax, {y}, {z}, axis(0));
  ErrorText error;
  tenon_answer answers[2];
  std::memset(answers, 0xEE, sizeof answers);
  REQUIRE(session.table->supports(session.device, &net.abi_graph(), nullptr, answers, sizeof answers[0], error) == TENON_OK);
  CHECK(answers[0].supported == 1);
  CHECK(answers[0].reason == TENON_REASON_NONE);
  CHECK(answers[1].supported == 0);

  std::memset(answers, 0xEE, sizeof answers);
  const tenon_graph& graph = net.abi_graph();
  net.abi_nodes[1].attributes = nullptr;
  CHECK(session.table->supports(session.device, &graph, nullptr, answers, sizeof answers[0], error) == TENON_INVALID_ARGUMENT);
  CHECK(answers[0].supported == 0xEEEEEEEE);
}

TEST_CASE("sdk: fields of plan_info beyond the caller's struct are not written") {
  Session session;
  Net net;
  const auto x = net.input({6}), y = net.output({6});
  net.node(TENON_OP_Neg, {x}, {y});
  const Run run(session, net);
  tenon_plan_info info{.struct_size = offsetof(tenon_plan_info, workspace_size_bytes), .packed_size_bytes = 99};
  REQUIRE(session.table->plan_info(run.plan, &info, nullptr) == TENON_OK);
  CHECK(info.kernel_count == 1);
  CHECK(info.packed_size_bytes == 99);
  CHECK(info.struct_size == offsetof(tenon_plan_info, workspace_size_bytes));
}

}  // namespace
}  // namespace tenon::sdk_test
