// SPDX-License-Identifier: Apache-2.0
// Malformed graphs are rejected with a message by supports and plan_create, before anything is computed.
#include "sdk_testing.h"

#include <cstddef>
#include <functional>
#include <limits>

namespace tenon::sdk_test {
namespace {

constexpr std::int64_t big = std::int64_t{1} << 62;

/// y = -a, z = y + b; `bend` makes it malformed.
void refused(const char* part, const std::function<void(Net&)>& bend, const std::function<void(Net&, tenon_graph&)>& bend_abi = {}) {
  CAPTURE(part);
  Session session;
  Net net;
  const auto a = net.input({2, 3}), b = net.input({2, 3}), y = net.internal({2, 3}), z = net.output({2, 3});
  net.constant({2}, {1, 2});
  net.node(TENON_OP_Neg, {a}, {y});
  net.node(TENON_OP_Add, {y, b}, {z});
  if (bend) bend(net);
  tenon_graph graph = net.abi_graph();
  if (bend_abi) bend_abi(net, graph);
  tenon_answer answers[4] = {};
  const tenon_plan_options given = options();
  ErrorText error;
  CHECK(session.table->supports(session.device, &graph, &given, answers, error) == TENON_INVALID_ARGUMENT);
  CHECK_MESSAGE(error.says(part), error.text());
  CHECK(error.node() == TENON_NO_INDEX);
  tenon_plan* plan = nullptr;
  ErrorText again;
  CHECK(session.table->plan_create(session.device, &graph, &given, &plan, again) == TENON_INVALID_ARGUMENT);
  CHECK(again.text() == error.text());
  CHECK(plan == nullptr);
}

constexpr std::uint32_t a = 0, b = 1, y = 2, z = 3, c = 4;

TEST_CASE("sdk: invalid values are rejected") {
  refused("rank 9", {}, [](Net& net, tenon_graph&) { net.abi_values[a].desc.rank = 9; });
  refused("no shape", {}, [](Net& net, tenon_graph&) { net.abi_values[a].desc.shape = nullptr; });
  refused("element type", [](Net& net) { net.values[a].dtype = TENON_DTYPE_NONE; });
  refused("element type", [](Net& net) { net.values[a].dtype = 200; });
  refused("dimension 1 is -3", [](Net& net) { net.values[a].shape = {2, -3}; });
  refused("too large", [](Net& net) { net.values[a].shape = {big, 4}; });
  refused("too large", [](Net& net) { net.values[a].shape = {big / 2, 1}; });  // fits in elements, but not in bytes
  // The kernels of 16 bits work in f32.
  refused("too large", [](Net& net) { net.values[a].shape = {big / 4, 2}, net.values[a].dtype = TENON_DTYPE_F16; });
  refused("too large", [](Net& net) { net.values[a].shape = {0, big, big}; });
  refused("too large", [](Net& net) { net.values[a].strides = {big, 1}; });
  refused("too large", [](Net& net) { net.values[a].strides = {std::numeric_limits<std::int64_t>::min(), 1}; });
  refused("unknown kind", {}, [](Net& net, tenon_graph&) { net.abi_values[y].kind = 5; });
  refused("constant 4 has no bytes", {}, [](Net& net, tenon_graph&) { net.abi_values[c].data = nullptr; });
  refused("dense", [](Net& net) { net.values[z].strides = {1, 2}; });
  refused("dense", [](Net& net) { net.values[y].strides = {1, 2}; });
  refused("dense", [](Net& net) { net.values[c].strides = {-1}; });
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
  refused("expected attributes of 8 bytes, got 4", [](Net& net) { net.nodes[0].attributes = {4}; });
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
