// SPDX-License-Identifier: Apache-2.0
// plugins/template, through its table: it works, and refuses what it should. TENON_TEMPLATE_PLUGIN names the file.
#include <doctest/doctest.h>

#include <algorithm>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "loader/error_text.h"
#include "loader/loader.h"
#include "loader/plain_host.h"

using namespace tenon::loader;

namespace {

using Shape = std::vector<std::int64_t>;

/// The template, loaded, with its device open and one stream.
class Template {
 public:
  Template() {
    const char* const file = std::getenv("TENON_TEMPLATE_PLUGIN");
    REQUIRE_MESSAGE(file != nullptr, "TENON_TEMPLATE_PLUGIN names no file");
    Options options;
    options.places = {{file, "API"}};
    options.make_host = [this](const tenon_backend_info&, std::uint32_t) { return host.table(); };
    Result result = load(options);
    REQUIRE(result.records.size() == 1);
    REQUIRE_MESSAGE(result.records[0].healthy, describe(result.records[0]));
    backend = result.backends.at(0);
    table = &backend->table();
    REQUIRE(table->device_open(backend->handle(), 0, &device, error) == TENON_OK);
    REQUIRE(table->stream_create(device, nullptr, &stream, error) == TENON_OK);
  }
  ~Template() {
    table->stream_destroy(stream);
    table->device_close(device);
    backend.reset();
    CHECK(host.live_bytes == 0);
  }
  Template(const Template&) = delete;
  Template& operator=(const Template&) = delete;

  PlainHost host;
  std::shared_ptr<Backend> backend;
  const tenon_backend_table* table = nullptr;
  tenon_device* device = nullptr;
  tenon_stream* stream = nullptr;
  ErrorText error;
};

/// A graph of one node whose operands are bound in order: inputs, then the output.
struct OneNode {
  OneNode(tenon_op op, std::uint32_t version, std::vector<Shape> operand_shapes, tenon_dtype dtype = TENON_DTYPE_F32)
      : shapes(std::move(operand_shapes)) {
    const auto count = static_cast<std::uint32_t>(shapes.size());
    for (std::uint32_t i = 0; i < count; ++i) {
      tenon_value value{};
      value.desc = {shapes[i].data(), nullptr, static_cast<std::uint32_t>(shapes[i].size()), dtype};
      value.kind = i + 1 < count ? TENON_VALUE_INPUT : TENON_VALUE_OUTPUT;
      value.binding = i;
      values.push_back(value);
      if (i + 1 < count) inputs.push_back(i);
    }
    output = count - 1;
    node.op = op;
    node.version = version;
    node.inputs = inputs.data();
    node.outputs = &output;
    node.input_count = count - 1;
    node.output_count = 1;
    node.attributes = &attributes;
    node.name = "layer1";
  }
  OneNode(const OneNode&) = delete;
  OneNode& operator=(const OneNode&) = delete;

  tenon_graph graph(std::uint32_t node_count = 1) const {
    tenon_graph g{};
    g.struct_size = sizeof g;
    g.value_count = static_cast<std::uint32_t>(values.size());
    g.values = values.data();
    g.value_stride = sizeof(tenon_value);
    g.node_count = node_count;
    g.nodes = &node;
    g.node_stride = 0;  // the same node repeated, which suffices for a count
    const auto is_bound = [](const tenon_value& value) { return value.binding != TENON_NO_INDEX; };
    g.binding_count = static_cast<std::uint32_t>(std::count_if(values.begin(), values.end(), is_bound));
    return g;
  }

  std::vector<Shape> shapes;
  std::vector<tenon_value> values;
  std::vector<std::uint32_t> inputs;
  std::uint32_t output = 0;
  tenon_attributes_none attributes{sizeof(tenon_attributes_none), 0};
  tenon_node node{};
};

std::uint64_t address_of(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

const tenon_plan_options strict{.struct_size = sizeof(tenon_plan_options), .deterministic = 1};

tenon_answer ask(const Template& t, const OneNode& one) {
  const tenon_graph graph = one.graph();
  tenon_answer answer{};
  CHECK(t.table->supports(t.device, &graph, &strict, &answer, sizeof answer, nullptr) == TENON_OK);
  return answer;
}

tenon_status run(Template& t, const OneNode& one, const std::vector<const void*>& operands) {
  const tenon_graph graph = one.graph();
  tenon_plan* plan = nullptr;
  const tenon_status created = t.table->plan_create(t.device, &graph, &strict, &plan, t.error);
  if (created != TENON_OK) return created;
  std::vector<std::uint64_t> addresses;
  for (const void* operand : operands) addresses.push_back(address_of(operand));
  const tenon_bindings bindings{
      .struct_size = sizeof bindings, .address_count = static_cast<std::uint32_t>(addresses.size()), .addresses = addresses.data()};
  const tenon_status status = t.table->plan_execute(plan, &bindings, 0, t.stream, t.error);
  t.table->plan_destroy(plan);
  return status == TENON_OK ? t.table->stream_synchronize(t.stream, t.error) : status;
}

void check_refused(const Template& t, const OneNode& one, std::uint32_t reason, const std::string& part) {
  const tenon_answer answer = ask(t, one);
  CHECK(answer.supported == 0);
  CHECK(answer.reason == reason);
  CHECK_MESSAGE(std::string(answer.text).find(part) != std::string::npos, answer.text);
}

}  // namespace

TEST_CASE("template: it reports its name and one CPU device") {
  const Template t;
  CHECK(t.backend->name() == "template");
  for (const std::string& warning : t.backend->record().warnings) {
    // The template is never built with a sanitizer; a sanitized host may warn about that.
    CHECK_MESSAGE(warning.find("it was built without ThreadSanitizer") == 0, warning);
  }
  REQUIRE(t.backend->devices().size() == 1);
  const tenon_device_info& device = t.backend->devices()[0];
  CHECK(device.kind == TENON_DEVICE_CPU);
  CHECK(device.flags == (TENON_DEVICE_HOST_ADDRESSABLE | TENON_DEVICE_INLINE_STREAMS | TENON_DEVICE_SINGLE_NODE_PLANS));
  CHECK(device.alignment_bytes >= 64);
}

TEST_CASE("template: relu keeps positive elements and NaN") {
  Template t;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x{-2.0f, 0.0f, 3.5f, nan, -0.5f, 1e-40f};
  std::vector<float> y(6, -1.0f);
  REQUIRE(run(t, OneNode(TENON_OP_Relu, 14, {{2, 3}, {2, 3}}), {x.data(), y.data()}) == TENON_OK);
  CHECK(y[0] == 0.0f);
  CHECK(y[1] == 0.0f);
  CHECK(y[2] == 3.5f);
  CHECK(std::isnan(y[3]));
  CHECK(y[4] == 0.0f);
  CHECK(y[5] == 1e-40f);
}

TEST_CASE("template: add adds, in place too, and without elements does nothing") {
  Template t;
  const std::vector<float> a{1, 2, 3}, b{10, 20, 30};
  std::vector<float> y(3);
  REQUIRE(run(t, OneNode(TENON_OP_Add, 14, {{3}, {3}, {3}}), {a.data(), b.data(), y.data()}) == TENON_OK);
  CHECK(y == std::vector<float>{11, 22, 33});
  REQUIRE(run(t, OneNode(TENON_OP_Add, 14, {{3}, {3}, {3}}), {y.data(), b.data(), y.data()}) == TENON_OK);
  CHECK(y == std::vector<float>{21, 42, 63});
  CHECK(run(t, OneNode(TENON_OP_Add, 14, {{0, 4}, {0, 4}, {0, 4}}), {nullptr, nullptr, nullptr}) == TENON_OK);
}

TEST_CASE("template: a constant is copied when the plan is made") {
  Template t;
  std::vector<float> constant{5, 6};
  const std::vector<float> a{1, 1};
  std::vector<float> y(2);
  OneNode one(TENON_OP_Add, 14, {{2}, {2}, {2}});
  one.values[1].kind = TENON_VALUE_CONSTANT;
  one.values[1].binding = TENON_NO_INDEX;
  one.values[1].data = constant.data();
  one.values[2].binding = 1;
  const tenon_graph graph = one.graph();
  tenon_plan* plan = nullptr;
  REQUIRE(t.table->plan_create(t.device, &graph, &strict, &plan, t.error) == TENON_OK);
  constant = {0, 0};
  const std::uint64_t addresses[] = {address_of(a.data()), address_of(y.data())};
  const tenon_bindings bindings{.struct_size = sizeof bindings, .address_count = 2, .addresses = addresses};
  CHECK(t.table->plan_execute(plan, &bindings, 0, t.stream, t.error) == TENON_OK);
  CHECK(y == std::vector<float>{6, 7});
  tenon_plan_info info{};
  info.struct_size = sizeof info;
  CHECK(t.table->plan_info(plan, &info, t.error) == TENON_OK);
  CHECK(info.workspace_size_bytes == 0);
  CHECK(info.kernel_count == 1);
  t.table->plan_destroy(plan);
}

TEST_CASE("template: supports refuses what it lacks with a reason, and plan_create agrees") {
  Template t;
  check_refused(t, OneNode(TENON_OP_Conv, 11, {{2}, {2}, {2}}), TENON_REASON_OP, "op 'Conv' version 11 is not implemented");
  check_refused(t, OneNode(TENON_OP_Relu, 13, {{2}, {2}}), TENON_REASON_OP,
                "op 'Relu' version 13 is not implemented: this backend has Add-14");
  check_refused(t, OneNode(39999, 1, {{2}, {2}}), TENON_REASON_OP, "op 'unknown' version 1");
  check_refused(t, OneNode(TENON_OP_Relu, 14, {{2}, {2}, {2}}), TENON_REASON_OP, "expected inputs: 1, outputs: 1");
  check_refused(t, OneNode(TENON_OP_Relu, 14, {{2}, {2}}, TENON_DTYPE_F64), TENON_REASON_DTYPE, "only f32 is supported");
  check_refused(t, OneNode(TENON_OP_Add, 14, {{2, 3}, {3}, {2, 3}}), TENON_REASON_SHAPE, "broadcasting is not supported");
  const Shape transposed{1, 2};
  OneNode strided(TENON_OP_Relu, 14, {{2, 2}, {2, 2}});
  strided.values[0].desc.strides = transposed.data();
  check_refused(t, strided, TENON_REASON_STRIDES, "not dense row-major");
  const Shape dense{2, 1};
  strided.values[0].desc.strides = dense.data();
  CHECK(ask(t, strided).supported == 1);

  CHECK(run(t, OneNode(TENON_OP_Sub, 14, {{2}, {2}, {2}}), {}) == TENON_UNSUPPORTED);
  CHECK(t.error.text().find("layer1: op 'Sub' version 14 ") == 0);
  const OneNode one(TENON_OP_Relu, 14, {{2}, {2}});
  const tenon_graph two = one.graph(2);
  tenon_plan* plan = nullptr;
  CHECK(t.table->plan_create(t.device, &two, &strict, &plan, t.error) == TENON_UNSUPPORTED);
  CHECK(t.error.text() == "template: expected 1 node, got 2");
  CHECK(plan == nullptr);
}

tenon_status allocate(Template& t, std::uint32_t kind, std::uint64_t size_bytes, tenon_memory_result& out_result) {
  const tenon_memory_request request{.struct_size = sizeof request, .kind = kind, .size_bytes = size_bytes};
  return t.table->memory_allocate(t.device, &request, &out_result, t.error);
}
tenon_status import(Template& t, int& number, std::uint32_t terms, tenon_memory_result& out_result) {
  const tenon_memory_import given{.struct_size = sizeof given, .terms = terms, .host = &number, .size_bytes = sizeof number};
  return t.table->memory_import(t.device, &given, &out_result, t.error);
}

TEST_CASE("template: memory is aligned, counted, filled, copied and imported") {
  Template t;
  const tenon_memory_result empty{.struct_size = sizeof empty};
  tenon_memory_result memory = empty;
  REQUIRE(allocate(t, TENON_MEMORY_DEVICE, 100, memory) == TENON_OK);
  const std::uint64_t address = memory.address;
  CHECK(address_of(memory.host) == address);
  CHECK(address % t.backend->devices()[0].alignment_bytes == 0);
  CHECK(t.table->fill(t.device, address, 100, 0x5a, t.stream, t.error) == TENON_OK);
  unsigned char back[100] = {};
  const tenon_copy copy{sizeof(tenon_copy), TENON_COPY_DEVICE_TO_HOST, address_of(back), address, 100, nullptr, 0, 0};
  CHECK(t.table->copy(t.device, &copy, t.stream, t.error) == TENON_OK);
  CHECK(back[0] == 0x5a);
  CHECK(back[99] == 0x5a);

  int number = 7;
  tenon_memory_result copied = empty, borrowed = empty;
  CHECK(import(t, number, TENON_IMPORT_COPY, copied) == TENON_OK);
  CHECK(import(t, number, TENON_IMPORT_BORROW_READ_WRITE, borrowed) == TENON_OK);
  number = 8;
  CHECK(*static_cast<const int*>(copied.host) == 7);
  CHECK(borrowed.address == address_of(&number));

  tenon_memory_stats stats{};
  stats.struct_size = sizeof stats;
  CHECK(t.table->memory_stats(t.device, &stats, t.error) == TENON_OK);
  CHECK(stats.live_size_bytes == 100 + sizeof number);
  CHECK(stats.peak_size_bytes == stats.live_size_bytes);
  t.table->memory_free(borrowed.memory);
  t.table->memory_free(copied.memory);
  t.table->memory_free(memory.memory);
  CHECK(t.table->memory_stats(t.device, &stats, t.error) == TENON_OK);
  CHECK(stats.live_size_bytes == 0);
  CHECK(stats.peak_size_bytes == 100 + sizeof number);

  tenon_memory_result none = empty;
  CHECK(allocate(t, TENON_MEMORY_DEVICE, std::numeric_limits<std::uint64_t>::max(), none) == TENON_OUT_OF_MEMORY);
  CHECK(allocate(t, 9, 1, none) == TENON_UNSUPPORTED);
  CHECK(import(t, number, 9, none) == TENON_UNSUPPORTED);
  const tenon_memory_request aligned{.struct_size = sizeof aligned, .kind = TENON_MEMORY_DEVICE, .size_bytes = 1, .alignment_bytes = 4096};
  CHECK(t.table->memory_allocate(t.device, &aligned, &none, t.error) == TENON_UNSUPPORTED);
  CHECK(t.error.text() == "template: expected an alignment of at most 64 and no bits in needs, got 4096 and 0x0");
  CHECK(none.memory == nullptr);
}

TEST_CASE("template: events are done when they are recorded and measure the time between them") {
  Template t;
  tenon_event *begin = nullptr, *end = nullptr;
  REQUIRE(t.table->event_create(t.device, nullptr, &begin, t.error) == TENON_OK);
  REQUIRE(t.table->event_create(t.device, nullptr, &end, t.error) == TENON_OK);
  CHECK(t.table->event_query(begin, t.error) == TENON_OK);
  CHECK(t.table->event_record(begin, t.stream, t.error) == TENON_OK);
  CHECK(t.table->event_wait(begin, t.stream, t.error) == TENON_OK);
  CHECK(t.table->event_record(end, t.stream, t.error) == TENON_OK);
  CHECK(t.table->event_synchronize(end, t.error) == TENON_OK);
  std::uint64_t elapsed = std::numeric_limits<std::uint64_t>::max();
  CHECK(t.table->event_elapsed(begin, end, &elapsed, t.error) == TENON_OK);
  CHECK(elapsed < 60'000'000'000u);
  t.table->event_destroy(end);
  t.table->event_destroy(begin);
}

TEST_CASE("template: an unknown device index is refused by name") {
  Template t;
  tenon_device* other = nullptr;
  CHECK(t.table->device_open(t.backend->handle(), 3, &other, t.error) == TENON_DEVICE_NOT_FOUND);
  CHECK(t.error.text() == "template:3 does not exist: the only device is template:0");
  CHECK(other == nullptr);
  CHECK(t.error.status() == TENON_DEVICE_NOT_FOUND);
}
