// SPDX-License-Identifier: Apache-2.0
// Malformed graphs are rejected with a message by supports and plan_create, before anything is computed.
#include "sdk_testing.h"

#include <cstddef>
#include <functional>
#include <limits>

namespace tenon::sdk_test {
namespace {

constexpr std::int64_t big = std::int64_t{1} << 62;

using Bend = std::function<void(Net&)>;
using BendAbi = std::function<void(Net&, tenon_graph&)>;

/// y = -a, z = y + b, next to a constant; changed by `bend`, in either form.
struct Bent {
  Bent(const Bend& bend, const BendAbi& bend_abi) {
    const auto a = net.input({2, 3}), b = net.input({2, 3}), y = net.internal({2, 3}), z = net.output({2, 3});
    net.constant({2}, {1, 2});
    net.node(TENON_OP_Neg, {a}, {y});
    net.node(TENON_OP_Add, {y, b}, {z});
    if (bend) bend(net);
    graph = net.abi_graph();
    if (bend_abi) bend_abi(net, graph);
  }
  Net net;
  tenon_graph graph;
};

/// The whole graph is refused, because it cannot be read.
void refused(const char* part, const Bend& bend, const BendAbi& bend_abi = {}) {
  CAPTURE(part);
  Session session;
  const Bent bent(bend, bend_abi);
  tenon_answer answers[4] = {};
  const tenon_plan_options given = options();
  ErrorText error;
  CHECK(session.table->supports(session.device, &bent.graph, &given, answers, sizeof answers[0], error) == TENON_INVALID_ARGUMENT);
  CHECK_MESSAGE(error.says(part), error.text());
  CHECK(error.node_id() == 0);
  tenon_plan* plan = nullptr;
  ErrorText again;
  CHECK(session.table->plan_create(session.device, &bent.graph, &given, &plan, again) == TENON_INVALID_ARGUMENT);
  CHECK(again.text() == error.text());
  CHECK(plan == nullptr);
}

enum Touched : std::uint32_t { neg = 1, add = 2, both = 3 };
/// The nodes that use what is unknown are refused, for this reason, and the others are not; plan_create names the first.
void unsupported(Touched touched, std::uint32_t reason, const char* part, const Bend& bend, const BendAbi& bend_abi = {}) {
  CAPTURE(part);
  Session session;
  const Bent bent(bend, bend_abi);
  tenon_answer answers[2] = {};
  const tenon_plan_options given = options();
  ErrorText error;
  REQUIRE(session.table->supports(session.device, &bent.graph, &given, answers, sizeof answers[0], error) == TENON_OK);
  for (std::uint32_t n = 0; n < 2; ++n) {
    CAPTURE(n);
    const bool no = (touched >> n & 1) != 0;
    CHECK(answers[n].supported == (no ? 0 : 1));
    CHECK(answers[n].reason == (no ? reason : std::uint32_t{TENON_REASON_NONE}));
    CHECK_MESSAGE((!no || std::string(answers[n].text).find(part) != std::string::npos), answers[n].text);
  }
  tenon_plan* plan = nullptr;
  CHECK(session.table->plan_create(session.device, &bent.graph, &given, &plan, error) == TENON_UNSUPPORTED);
  CHECK_MESSAGE(error.says(part), error.text());
  CHECK(error.node_id() == bent.net.nodes[touched == add ? 1 : 0].id);
  CHECK(plan == nullptr);
}

constexpr std::uint32_t a = 0, b = 1, y = 2, z = 3, c = 4;

TEST_CASE("sdk: values that cannot be read are rejected") {
  refused("no shape", {}, [](Net& net, tenon_graph&) { net.abi_values[a].desc.shape = nullptr; });
  refused("constant 4 has no bytes", {}, [](Net& net, tenon_graph&) { net.abi_values[c].data = nullptr; });
  refused("dense", [](Net& net) { net.values[z].strides = {1, 2}; });
  refused("dense", [](Net& net) { net.values[y].strides = {1, 2}; });
  refused("dense", [](Net& net) { net.values[c].strides = {-1}; });
}

TEST_CASE("sdk: unknown values are a no for the nodes that use them") {
  unsupported(neg, TENON_REASON_SHAPE, "value 0: rank 9", {}, [](Net& net, tenon_graph&) { net.abi_values[a].desc.rank = 9; });
  unsupported(both, TENON_REASON_DTYPE, "value 2: unknown dtype 0", [](Net& net) { net.values[y].dtype = TENON_DTYPE_NONE; });
  unsupported(add, TENON_REASON_DTYPE, "value 1: unknown dtype 200", [](Net& net) { net.values[b].dtype = 200; });
  unsupported(neg, TENON_REASON_SHAPE, "dimension 1 is -3", [](Net& net) { net.values[a].shape = {2, -3}; });
  unsupported(neg, TENON_REASON_SHAPE, "too large", [](Net& net) { net.values[a].shape = {big, 4}; });
  // Fits in elements, but not in bytes.
  unsupported(neg, TENON_REASON_SHAPE, "too large", [](Net& net) { net.values[a].shape = {big / 2, 1}; });
  // The kernels of 16 bits work in f32.
  unsupported(neg, TENON_REASON_SHAPE, "too large", [](Net& net) {
    net.values[a].shape = {big / 4, 2}, net.values[a].dtype = TENON_DTYPE_F16;
  });
  unsupported(neg, TENON_REASON_SHAPE, "too large", [](Net& net) { net.values[a].shape = {0, big, big}; });
  unsupported(neg, TENON_REASON_SHAPE, "too large", [](Net& net) { net.values[a].strides = {big, 1}; });
  unsupported(neg, TENON_REASON_SHAPE, "too large", [](Net& net) {
    net.values[a].strides = {std::numeric_limits<std::int64_t>::min(), 1};
  });
  unsupported(both, TENON_REASON_GRAPH, "value 2: unknown kind 5", {}, [](Net& net, tenon_graph&) { net.abi_values[y].kind = 5; });
}

TEST_CASE("sdk: bits of needs are a no for the nodes that they touch") {
  unsupported(neg, TENON_REASON_NEEDS, "got 0x1:", {}, [](Net& net, tenon_graph&) { net.abi_nodes[0].needs = 1; });
  // Whatever else the value says may mean something else.
  unsupported(both, TENON_REASON_NEEDS, "got 0x80000000:", {}, [](Net& net, tenon_graph&) {
    net.abi_values[y].needs = TENON_NEEDS_TEST;
    net.abi_values[y].desc.shape = nullptr;
  });
  // The two sides of a donation are one address.
  static constexpr tenon_donation donation{a, z};
  unsupported(both, TENON_REASON_NEEDS, "got 0x2:", {}, [](Net& net, tenon_graph& graph) {
    net.abi_values[z].needs = 2;
    graph.donations = &donation;
    graph.donation_count = 1;
  });
}

TEST_CASE("sdk: bits of needs of a graph, its options, a copy or bindings refuse the call") {
  Session session;
  Bent bent({}, {});
  tenon_plan* plan = nullptr;
  ErrorText error;
  tenon_plan_options given = options();
  const auto no_plan = [&] {
    tenon_answer answers[2] = {};
    REQUIRE(session.table->supports(session.device, &bent.graph, &given, answers, sizeof answers[0], error) == TENON_OK);
    for (const tenon_answer& answer : answers) CHECK(answer.reason == TENON_REASON_NEEDS);
    CHECK(session.table->plan_create(session.device, &bent.graph, &given, &plan, error) == TENON_UNSUPPORTED);
    CHECK(error.says("got 0x4:"));
    bent.graph.node_count = bent.graph.value_count = bent.graph.binding_count = 0;  // no node is touched, and still no plan is made
    CHECK(session.table->plan_create(session.device, &bent.graph, &given, &plan, error) == TENON_UNSUPPORTED);
    CHECK(plan == nullptr);
  };
  bent.graph.needs = 4;
  no_plan();
  bent.graph = bent.net.abi_graph();
  given.needs = 4;
  no_plan();

  unsigned char byte = 7;
  tenon_copy copy{.struct_size = sizeof copy, .direction = TENON_COPY_HOST_TO_DEVICE, .needs = 8};
  copy.destination = copy.source = reinterpret_cast<std::uintptr_t>(&byte);
  copy.size_bytes = 1;
  CHECK(session.table->copy(session.device, &copy, session.stream, error) == TENON_UNSUPPORTED);
  CHECK(error.says("copy: expected no bits in `needs`, got 0x8"));

  Run run(session, bent.net);
  tenon_bindings bindings = run.bindings();
  bindings.needs = 16;
  CHECK(session.table->plan_execute(run.plan, &bindings, run.workspace, session.stream, error) == TENON_UNSUPPORTED);
  CHECK(error.says("plan_execute: expected no bits in `needs`, got 0x10"));
}

TEST_CASE("sdk: bindings that are out of range or shared are rejected") {
  refused("binding 7 of 3", {}, [](Net& net, tenon_graph&) { net.abi_values[b].binding = 7; });
  refused("binding 4294967295", {}, [](Net& net, tenon_graph&) { net.abi_values[z].binding = TENON_NO_INDEX; });
  refused("bound to the same address", {}, [](Net& net, tenon_graph&) { net.abi_values[z].binding = net.abi_values[a].binding; });
}

TEST_CASE("sdk: an internal value's binding is ignored") {
  Net net;
  const auto x = net.input({2}), inner = net.internal({2}), out = net.output({2});
  net.values[inner].binding = 0;
  net.node(TENON_OP_Tanh, {x}, {inner});
  net.node(TENON_OP_Tanh, {inner}, {out});
  Run run(net);
  run({{x, {1, 2}}});
  CHECK(run.get(x) == Floats{1, 2});
}

TEST_CASE("sdk: two inputs may share a binding") {
  Net net;
  const auto x = net.input({2, 3}), same = net.input({3, 2}, {1, 3}), out = net.output({2, 3}), turned = net.output({3, 2});
  net.values[same].binding = net.values[x].binding;
  net.values[out].binding = 1;
  net.values[turned].binding = 2;
  net.binding_count = 3;
  net.node(TENON_OP_Neg, {x}, {out});
  net.node(TENON_OP_Neg, {same}, {turned});
  Run run(net);
  run({{x, {1, 2, 3, 4, 5, 6}}});
  CHECK(run.get(turned) == Floats{-1, -4, -2, -5, -3, -6});
}

TEST_CASE("sdk: nodes with references out of range are rejected") {
  refused("names value 99", [](Net& net) { net.nodes[0].inputs = {99}; });
  refused("names value 99", [](Net& net) { net.nodes[1].outputs = {99}; });
  refused("attributes", {}, [](Net& net, tenon_graph&) { net.abi_nodes[0].attributes = nullptr; });
  unsupported(neg, TENON_REASON_ATTRIBUTES, "expected attributes of 8 bytes, got 4", [](Net& net) { net.nodes[0].attributes = {4}; });
  unsupported(neg, TENON_REASON_ATTRIBUTES, "expected attributes of 8 bytes, got 16", [](Net& net) { net.nodes[0].attributes = {16, 0}; });
  refused("no list of inputs", {}, [](Net& net, tenon_graph&) { net.abi_nodes[0].inputs = nullptr; });
}

TEST_CASE("sdk: a value is written once, by a node that comes before its readers") {
  refused("written twice", [](Net& net) { net.node(TENON_OP_Neg, {a}, {z}); });
  refused("written twice", [](Net& net) {
    net.nodes[1].outputs = {y};
    net.nodes[1].inputs = {a, b};
  });
  refused("which is neither an output nor internal", [](Net& net) { net.node(TENON_OP_Neg, {b}, {a}); });
  refused("which is neither an output nor internal", [](Net& net) { net.node(TENON_OP_Neg, {b}, {c}); });
  refused("before it is written", [](Net& net) { std::swap(net.nodes[0], net.nodes[1]); });
  refused("before it is written", [](Net& net) { net.nodes[0].inputs = {y}; });                        // reads itself
  refused("before it is written", [](Net& net) { net.nodes[1].inputs = {net.internal({2, 3}), b}; });  // has no writer
  refused("output 3 is written by no node", [](Net& net) { net.nodes.pop_back(); });
}

TEST_CASE("sdk: donations pair an input with an output of its size, once") {
  refused("does not exist", [](Net& net) { net.donate(a, 99); });
  refused("does not exist", [](Net& net) { net.donate(99, z); });
  refused("only inputs and parameters", [](Net& net) { net.donate(y, z); });
  refused("only inputs and parameters", [](Net& net) { net.donate(c, z); });
  refused("only outputs can take a donation", [](Net& net) { net.donate(a, y); });
  refused("28 and 24 bytes", [](Net& net) { net.donate(net.input({7}), z); });
  refused("more than one donation", [](Net& net) {
    const auto other = net.output({2, 3});
    net.node(TENON_OP_Neg, {b}, {other});
    net.donate(a, z);
    net.donate(a, other);
  });
  refused("more than one donation", [](Net& net) {
    net.donate(a, z);
    net.donate(b, z);
  });
  refused("bound to the same address", {}, [](Net& net, tenon_graph& graph) {
    static constexpr tenon_donation donation{a, z};
    net.abi_values[b].binding = net.abi_values[a].binding;  // b would be overwritten unnoticed
    graph.donations = &donation;
    graph.donation_count = 1;
  });
}

TEST_CASE("sdk: arrays that are missing or too narrow are rejected") {
  refused("but values is NULL", {}, [](Net&, tenon_graph& graph) { graph.values = nullptr; });
  refused("but nodes is NULL", {}, [](Net&, tenon_graph& graph) { graph.nodes = nullptr; });
  refused("but donations is NULL", {}, [](Net&, tenon_graph& graph) {
    graph.donation_count = 1;
    graph.donations = nullptr;
  });
  refused("value_stride", {}, [](Net&, tenon_graph& graph) { graph.value_stride = 8; });
  refused("node_stride", {}, [](Net&, tenon_graph& graph) { graph.node_stride = 0; });
  refused("multiples of 8", {}, [](Net&, tenon_graph& graph) { graph.value_stride += 4; });
  refused("binding_count is 4294967295", {}, [](Net&, tenon_graph& graph) { graph.binding_count = 0xffffffff; });
  refused("multiples of 8", {}, [](Net&, tenon_graph& graph) { graph.node_stride += 2; });
  refused("struct_size", {}, [](Net&, tenon_graph& graph) { graph.struct_size = 8; });
}

TEST_CASE("sdk: arrays of wider elements are read with their stride") {
  Session session;
  Net net;
  const auto x = net.input({2}), out = net.output({2});
  net.node(TENON_OP_Neg, {x}, {out});
  tenon_graph graph = net.abi_graph();
  struct WideValue {
    tenon_value value;
    std::uint64_t more;
  } values[2] = {{net.abi_values[0], 1}, {net.abi_values[1], 2}};
  struct WideNode {
    tenon_node node;
    std::uint64_t more;
  } nodes[1] = {{net.abi_nodes[0], 3}};
  graph.values = &values[0].value;
  graph.value_stride = sizeof(WideValue);
  graph.nodes = &nodes[0].node;
  graph.node_stride = sizeof(WideNode);
  tenon_plan* plan = nullptr;
  ErrorText error;
  REQUIRE(session.table->plan_create(session.device, &graph, nullptr, &plan, error) == TENON_OK);
  session.table->plan_destroy(plan);
}

TEST_CASE("sdk: a workspace size that overflows is out of memory") {
  Session session;
  Net net;
  const std::int64_t huge = std::int64_t{1} << 60;
  const auto x = net.input({1}), out = net.output({1}), last = net.output({1});
  std::uint32_t parts[5];
  for (std::uint32_t& part : parts) {
    part = net.internal({huge});
    net.node(TENON_OP_Tanh, {x}, {part});  // the core checks shapes, not sizes
  }
  for (int i = 1; i < 5; ++i) {
    const auto sum = net.internal({1});
    net.node(TENON_OP_ReduceSum, {parts[i]}, {sum}, axes({0}));
  }
  net.node(TENON_OP_ReduceSum, {parts[0]}, {out}, axes({0}));
  net.node(TENON_OP_Neg, {x}, {last});
  tenon_plan* plan = nullptr;
  ErrorText error;
  CHECK(session.table->plan_create(session.device, &net.abi_graph(), nullptr, &plan, error) == TENON_OUT_OF_MEMORY);
  CHECK(error.says("workspace"));
  if (plan != nullptr) session.table->plan_destroy(plan);
}

}  // namespace
}  // namespace tenon::sdk_test
