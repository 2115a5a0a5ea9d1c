// SPDX-License-Identifier: Apache-2.0
// The host in tests of pairs of old and new: a program on libtenon that loads one plugin and prints the results.
//
//   abi_driver PLUGIN NAME
//
// "result" lines are the same for every pair with the same plugin, "feature" lines say which features of ABI 1.1 exist. Built with each
// frozen header (frozen.py).
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <tenon/backend.h>
#include <tenon/blas.h>
#include <tenon/context.h>
#include <tenon/functions.h>
#include <tenon/program.h>

#include "exec/context_state.h"

namespace tenon {
namespace {

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "abi_driver: %s\n", why.c_str());
  std::exit(1);
}

template <class T>
void print(const std::string& what, const T* values, std::size_t count) {
  std::string line = "result " + what;
  for (std::size_t i = 0; i < count; ++i) line += fmt::format(" {:a}", static_cast<double>(values[i]));
  std::puts(line.c_str());
}
void print(const std::string& what, const Tensor& tensor) {
  const Tensor host = tensor.to_host();
  print(what, host.data<float>(), static_cast<std::size_t>(host.count()));
}

/// Irregular numbers between -1 and 1.
Tensor numbers(const Shape& shape, int start) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < shape.count(); ++i) values.push_back(static_cast<float>(std::sin(start + 0.7 * static_cast<double>(i))));
  return Tensor::of<float>(values, shape);
}

// ---------------------------------------------------------------- calls of the plugin ABI: memory, streams, events, a plan

class Raw {
 public:
  explicit Raw(const loader::Backend& backend) : table_(backend.table()) {
    ok(table_.device_open(backend.handle(), 0, &device_, error()), "device_open");
    ok(table_.stream_create(device_, nullptr, &stream_, error()), "stream_create");
  }
  ~Raw() {
    for (tenon_memory* memory : memory_) table_.memory_free(memory);
    table_.stream_destroy(stream_);
    table_.device_close(device_);
  }
  Raw(const Raw&) = delete;
  Raw& operator=(const Raw&) = delete;

  void run() {
    memory_and_events();
    plan();
    features();
  }

 private:
  tenon_error* error() { return &error_; }
  void ok(tenon_status status, const char* call) const {
    if (status != TENON_OK) give_up(fmt::format("{}: status {}: {}", call, status, text_));
  }
  std::uint64_t allocate(std::uint64_t size_bytes) {
    tenon_memory_request request{};
    request.struct_size = sizeof request;
    request.kind = TENON_MEMORY_DEVICE;
    request.size_bytes = size_bytes;
    tenon_memory_result result{};
    result.struct_size = sizeof result;
    ok(table_.memory_allocate(device_, &request, &result, error()), "memory_allocate");
    memory_.push_back(result.memory);
    return result.address;
  }
  void copy(std::uint32_t direction, std::uint64_t to, std::uint64_t from, std::uint64_t size_bytes) {
    tenon_copy copy{};
    copy.struct_size = sizeof copy;
    copy.direction = direction;
    copy.destination = to;
    copy.source = from;
    copy.size_bytes = size_bytes;
    ok(table_.copy(device_, &copy, stream_, error()), "copy");
  }

  void memory_and_events() {
    const std::uint64_t address = allocate(64);
    tenon_event *first = nullptr, *second = nullptr;
    ok(table_.event_create(device_, nullptr, &first, error()), "event_create");
    ok(table_.event_create(device_, nullptr, &second, error()), "event_create");
    ok(table_.event_record(first, stream_, error()), "event_record");
    ok(table_.fill(device_, address, 64, 0x2a, stream_, error()), "fill");
    ok(table_.event_record(second, stream_, error()), "event_record");
    ok(table_.event_wait(second, stream_, error()), "event_wait");
    ok(table_.event_synchronize(second, error()), "event_synchronize");
    ok(table_.event_query(second, error()), "event_query");
    std::uint64_t elapsed_ns = 0;
    ok(table_.event_elapsed(first, second, &elapsed_ns, error()), "event_elapsed");
    std::array<std::uint8_t, 64> bytes{};
    copy(TENON_COPY_DEVICE_TO_HOST, reinterpret_cast<std::uint64_t>(bytes.data()), address, bytes.size());
    ok(table_.stream_synchronize(stream_, error()), "stream_synchronize");
    print("fill", bytes.data(), 4);
    table_.event_destroy(first);
    table_.event_destroy(second);
    tenon_memory_stats stats{};
    stats.struct_size = sizeof stats;
    ok(table_.memory_stats(device_, &stats, error()), "memory_stats");
    const std::uint64_t live[] = {stats.live_size_bytes};
    print("live_bytes", live, 1);
  }

  /// Relu, with a check of the bytes after the plan info: a newer plugin must not write beyond what this host knows.
  void plan() {
    const std::int64_t shape[] = {4};
    tenon_value values[2]{};
    values[0].desc = values[1].desc = {shape, nullptr, 1, TENON_DTYPE_F32};
    values[0].kind = TENON_VALUE_INPUT, values[0].binding = 0;
    values[1].kind = TENON_VALUE_OUTPUT, values[1].binding = 1;
    const std::uint32_t input = 0, output = 1;
    const tenon_attributes_none attributes{sizeof attributes, 0};
    tenon_node node{};
    node.op = TENON_OP_Relu, node.version = 14;
    node.inputs = &input, node.outputs = &output;
    node.input_count = node.output_count = 1;
    node.attributes = &attributes, node.name = "relu", node.id = 1;
    tenon_graph graph{};
    graph.struct_size = sizeof graph;
    graph.value_count = 2, graph.values = values, graph.value_stride = sizeof(tenon_value);
    graph.node_count = 1, graph.nodes = &node, graph.node_stride = sizeof(tenon_node);
    graph.binding_count = 2;
    tenon_plan_options options{};
    options.struct_size = sizeof options;
#if TENON_ABI_MINOR >= 1
    options.mark = 77;
    node.weight = 5;
#endif
    tenon_answer answer{};
    ok(table_.supports(device_, &graph, &options, &answer, sizeof answer, error()), "supports");
    if (!answer.supported) give_up(fmt::format("Relu-14 is refused: {}", answer.text));
    tenon_plan* plan = nullptr;
    ok(table_.plan_create(device_, &graph, &options, &plan, error()), "plan_create");
    struct {
      tenon_plan_info info;
      unsigned char guard[64];
    } buffer{};
    std::memset(buffer.guard, 0x5a, sizeof buffer.guard);
    buffer.info.struct_size = sizeof buffer.info;
    ok(table_.plan_info(plan, &buffer.info, error()), "plan_info");
    for (const unsigned char byte : buffer.guard) {
      if (byte != 0x5a) give_up("plan_info wrote beyond struct_size");
    }
    mark_ = buffer.info;
    const float x[] = {-2, -0.5f, 0.25f, 8};
    float y[4] = {};
    const std::uint64_t addresses[] = {allocate(sizeof x), allocate(sizeof y)};
    copy(TENON_COPY_HOST_TO_DEVICE, addresses[0], reinterpret_cast<std::uint64_t>(x), sizeof x);
    tenon_bindings bindings{};
    bindings.struct_size = sizeof bindings;
    bindings.address_count = 2;
    bindings.addresses = addresses;
    ok(table_.plan_execute(plan, &bindings, allocate(buffer.info.workspace_size_bytes), stream_, error()), "plan_execute");
    copy(TENON_COPY_DEVICE_TO_HOST, reinterpret_cast<std::uint64_t>(y), addresses[1], sizeof y);
    ok(table_.stream_synchronize(stream_, error()), "stream_synchronize");
    print("relu", y, 4);
    table_.plan_destroy(plan);
  }

  /// Prints the features of 1.1. An absent slot is NULL, an absent field 0.
  void features() {
#if TENON_ABI_MINOR >= 1
    std::printf("feature plan_info.mark %llu\n", static_cast<unsigned long long>(mark_.mark));
    std::uint64_t value = 0;
    if (table_.device_echo != nullptr) {
      ok(table_.device_echo(device_, 4711, &value, error()), "device_echo");
      std::printf("feature device_echo %llu\n", static_cast<unsigned long long>(value));
    } else {
      std::puts("feature device_echo absent");
    }
#endif
  }

  const tenon_backend_table& table_;
  tenon_device* device_ = nullptr;
  tenon_stream* stream_ = nullptr;
  std::vector<tenon_memory*> memory_;
  tenon_plan_info mark_{};
  char text_[512] = "";
  tenon_error error_{sizeof(tenon_error), TENON_OK, 0, text_, sizeof text_, 0};
};

// ---------------------------------------------------------------- the same through the runtime

void run_graph(const Context& context) {
  Graph graph;
  const Value a = graph.input("a", DType::f32, {2, 3});
  const Value b = graph.input("b", DType::f32, {2, 3});
  graph.output("y", ops::relu(ops::add(ops::add(a, b), a)));
  Program program(context, graph);
  print("graph", program.run({numbers({2, 3}, 1), numbers({2, 3}, 5)})[0]);
}

/// Five training steps of a network with an Elu.
void train(const Context& context) {
  Graph graph;
  const Value x = graph.input("x", DType::f32, {8, 6});
  const Value labels = graph.input("labels", DType::i64, {8});
  const Value w1 = graph.parameter("w1", DType::f32, {6, 5}), b1 = graph.parameter("b1", DType::f32, {5});
  const Value w2 = graph.parameter("w2", DType::f32, {5, 3});
  const Value hidden = ops::elu(ops::gemm(x, w1, b1), 0.5);
  const Value loss = ops::softmax_cross_entropy(ops::matmul(hidden, w2), labels);
  const std::vector<Value> parameters{w1, b1, w2};
  tenon_attributes_sgd sgd{};
  ops::sgd_step(parameters, gradients(loss, parameters), {}, graph.constant(Tensor::scalar<double>(0.5)), sgd);
  graph.output("loss", loss);
  Program program(context, graph);
  program.parameters()->set("w1", numbers({6, 5}, 2));
  program.parameters()->set("b1", numbers({5}, 3));
  program.parameters()->set("w2", numbers({5, 3}, 4));
  for (int step = 0; step < 5; ++step) {
    print(fmt::format("loss_{}", step), program.run({numbers({8, 6}, 9), Tensor::of<std::int64_t>({0, 1, 2, 0, 1, 2, 0, 1}, {8})})[0]);
  }
  print("w1", program.parameters()->get("w1"));
}

void multiply(const Context& context) {
  const Device device = context.default_device();
  const Tensor a = numbers({3, 4}, 1).to(device), b = numbers({4, 2}, 2).to(device), c = numbers({3, 2}, 3).to(device);
  blas::gemm(device, 2.0, a, b, 0.5, c);
  print("gemm", c);
}

#if TENON_ABI_MINOR >= 1
/// Runs an Elu with the attribute that only its newer version has.
void newer_elu(const Context& context, const loader::Backend& backend) {
  for (std::uint32_t i = 0; i < backend.info().capability_count; ++i) {
    const tenon_capability& offered = backend.info().capabilities[i];
    if (offered.op == TENON_OP_Relu) std::printf("feature capability.cost %llu\n", static_cast<unsigned long long>(offered.cost));
    if (offered.op == TENON_OP_Elu) std::printf("feature offers Elu-%u\n", offered.version);
  }
  tenon_attributes_elu attributes{};
  attributes.alpha = 0.5;
  attributes.gamma = 3;
  Graph graph;
  const Value x = graph.input("x", DType::f32, {4});
  graph.output("y", graph.apply(TENON_OP_Elu, {x}, Attributes::of(attributes))[0]);
  try {
    Program program(context, graph);
    const Tensor y = program.run({Tensor::of<float>({1, 2, 3, 4}, {4})})[0].to_host();
    std::printf("feature Elu-22 %g %g %g %g\n", y.data<float>()[0], y.data<float>()[1], y.data<float>()[2], y.data<float>()[3]);
  } catch (const Error& e) {
    std::printf("feature Elu-22 refused: %s\n", e.what());
  }
}
#endif

void drive(const char* plugin, const std::string& name) {
  Config config;
  config.backends.use = {name};
  config.device = name + ":0";
  config.threads = 2;
  const Context context(config, {plugin});
  const auto& backends = context.state()->report.backends;
  if (backends.size() != 1) give_up(fmt::format("expected only {}, got {} backends", plugin, backends.size()));
  const loader::Backend& backend = *backends[0];
  for (const std::string& warning : backend.record().warnings) std::printf("warning %s\n", warning.c_str());
  std::printf("speaks %u.%u\n", backend.info().abi_major, backend.abi_minor());
  Raw(backend).run();
  run_graph(context);
  if (backend.table().blas == nullptr) return;  // the template has only its two ops
  train(context);
  multiply(context);
#if TENON_ABI_MINOR >= 1
  newer_elu(context, backend);
#endif
}

}  // namespace
}  // namespace tenon

int main(int count, char** arguments) {
  if (count != 3) {
    std::fputs("usage: abi_driver PLUGIN NAME\n", stderr);
    return 2;
  }
  try {
    tenon::drive(arguments[1], arguments[2]);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "abi_driver: %s\n", e.what());
    return 1;
  }
  return 0;
}
