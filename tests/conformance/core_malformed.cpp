// SPDX-License-Identifier: Apache-2.0
// Graphs that break the header's rules: plan_create refuses them, `supports` does not say yes, and nothing crashes.
#include <limits>

#include "core.h"

namespace tenon::conformance {
namespace {

bool single_node(const CaseContext& context) {
  return (context.device.device_info().flags & TENON_DEVICE_SINGLE_NODE_PLANS) != 0;
}

/// Corrupts a valid graph and expects a refusal.
template <class Spoil>
void expect_malformed(const CaseContext& context, const Net& net, const char* what, Spoil spoil) {
  AbiGraph abi_graph(net);
  spoil(abi_graph);
  const tenon_plan_options options = default_options();
  ErrorText error;
  tenon_plan* plan = nullptr;
  const tenon_status status = context.device.table().plan_create(context.device.handle(), &abi_graph.graph, &options, &plan, error);
  if (status == TENON_OK) context.device.table().plan_destroy(plan);
  expect_refusal(status, error, {TENON_INVALID_ARGUMENT, TENON_UNSUPPORTED}, what);
  if (plan != nullptr) fail(fmt::format("{}: plan_create failed but wrote its out-parameter", what));
  std::vector<tenon_answer> answers(abi_graph.graph.node_count);
  ErrorText second;
  const tenon_status answered =
      context.device.table().supports(context.device.handle(), &abi_graph.graph, &options, answers.data(), sizeof(tenon_answer), second);
  // A single-node backend refuses such a graph anyway, but may support each of its nodes.
  if (answered != TENON_OK || (single_node(context) && abi_graph.graph.node_count > 1)) return;
  if (std::all_of(answers.begin(), answers.end(), [](const tenon_answer& a) { return a.supported == 1; })) {
    fail(fmt::format("{}: `supports` says yes", what));
  }
}

void malformed_graphs(CaseContext& context) {
  require_relu(context);
  const Net net = relu_net();
  static const std::uint32_t outside[] = {99}, absent[] = {TENON_NO_INDEX}, input[] = {0}, output[] = {1};
  static const std::int64_t negative[] = {-4};
  expect_malformed(context, net, "a node that reads value 99 of 2", [](AbiGraph& abi_graph) { abi_graph.nodes[0].inputs = outside; });
  expect_malformed(context, net, "a node that writes value 99 of 2", [](AbiGraph& abi_graph) { abi_graph.nodes[0].outputs = outside; });
  expect_malformed(context, net, "a negative dimension", [](AbiGraph& abi_graph) { abi_graph.values[0].desc.shape = negative; });
  expect_malformed(context, net, "a rank of 9", [](AbiGraph& abi_graph) { abi_graph.values[0].desc.rank = 9; });
  expect_malformed(context, net, "a value of no dtype", [](AbiGraph& abi_graph) { abi_graph.values[0].desc.dtype = TENON_DTYPE_NONE; });
  expect_malformed(context, net, "a dtype that does not exist", [](AbiGraph& abi_graph) { abi_graph.values[0].desc.dtype = 4000; });
  expect_malformed(context, net, "an input bound outside the bindings", [](AbiGraph& abi_graph) { abi_graph.values[0].binding = 7; });
  expect_malformed(context, net, "an output bound outside the bindings",
                   [](AbiGraph& abi_graph) { abi_graph.values[1].binding = TENON_NO_INDEX; });
  expect_malformed(context, net, "an op that does not exist", [](AbiGraph& abi_graph) { abi_graph.nodes[0].op = 39999; });
  expect_malformed(context, net, "a version that does not exist", [](AbiGraph& abi_graph) { abi_graph.nodes[0].version = 4711; });
  expect_malformed(context, net, "a node without its operand", [](AbiGraph& abi_graph) { abi_graph.nodes[0].inputs = absent; });
  expect_malformed(context, net, "a node without its result", [](AbiGraph& abi_graph) { abi_graph.nodes[0].outputs = absent; });
  expect_malformed(context, net, "a node with no inputs", [](AbiGraph& abi_graph) { abi_graph.nodes[0].input_count = 0; });
  expect_malformed(context, net, "a node with no outputs", [](AbiGraph& abi_graph) { abi_graph.nodes[0].output_count = 0; });
  expect_malformed(context, net, "a node that reads its own result", [](AbiGraph& abi_graph) { abi_graph.nodes[0].inputs = output; });
  expect_malformed(context, net, "a node that writes an input", [](AbiGraph& abi_graph) { abi_graph.nodes[0].outputs = input; });
  expect_malformed(context, net, "a value of an unknown kind", [](AbiGraph& abi_graph) { abi_graph.values[0].kind = 77; });
  expect_malformed(context, net, "a constant without bytes", [](AbiGraph& abi_graph) {
    abi_graph.values[0].kind = TENON_VALUE_CONSTANT;
    abi_graph.values[0].data = nullptr;
  });
  expect_malformed(context, net, "an operand and a result of different dtypes",
                   [](AbiGraph& abi_graph) { abi_graph.values[1].desc.dtype = TENON_DTYPE_F64; });
  expect_malformed(context, net, "more elements than can be addressed", [](AbiGraph& abi_graph) {
    static const std::int64_t many[] = {std::numeric_limits<std::int64_t>::max() / 2};
    abi_graph.values[0].desc.shape = many;
    abi_graph.values[1].desc.shape = many;
  });
  expect_malformed(context, net, "dimensions whose product wraps around to 0", [](AbiGraph& abi_graph) {
    static const std::int64_t wraps[] = {std::int64_t{1} << 62, 4, 16};  // 2^64 is 0 in 64 bits
    for (tenon_value& value : abi_graph.values) {
      value.desc.shape = wraps;
      value.desc.rank = 3;
    }
  });
  expect_sane(context);
}

/// Rules that need more than one node, or a donation.
void malformed_connections(CaseContext& context) {
  require_ops(context, {TENON_OP_Relu, TENON_OP_Add});
  Net net;  // t = relu(x); y = t + x
  const Dims shape{16};
  const std::uint32_t x = net.input(Array(TENON_DTYPE_F32, shape)), z = net.input(Array(TENON_DTYPE_F32, shape));
  const std::uint32_t t = net.internal(TENON_DTYPE_F32, shape), y = net.output(TENON_DTYPE_F32, shape);
  net.node(TENON_OP_Relu, line_of(TENON_OP_Relu).version, &no_attributes, {x}, {t});
  net.node(TENON_OP_Add, line_of(TENON_OP_Add).version, &no_attributes, {t, z}, {y});
  if (!single_node(context)) {
    const Plan plan(context.device, net);
    expect_ready(plan);  // the graph is valid before it is corrupted below
  }
  static const std::uint32_t list_y[] = {3}, list_yy[] = {3, 3}, list_yz[] = {3, 1};
  expect_malformed(context, net, "two nodes in an order in which they cannot run",
                   [](AbiGraph& abi_graph) { std::swap(abi_graph.nodes[0], abi_graph.nodes[1]); });
  expect_malformed(context, net, "two nodes that wait for each other", [](AbiGraph& abi_graph) { abi_graph.nodes[0].inputs = list_y; });
  expect_malformed(context, net, "a value that two nodes write", [](AbiGraph& abi_graph) { abi_graph.nodes[0].outputs = list_y; });
  expect_malformed(context, net, "an internal value that no node writes", [](AbiGraph& abi_graph) {
    abi_graph.graph.nodes = &abi_graph.nodes[1];
    abi_graph.graph.node_count = 1;
  });
  expect_malformed(context, net, "an output that no node writes", [](AbiGraph& abi_graph) { abi_graph.graph.node_count = 1; });
  expect_malformed(context, net, "a node that adds its own result to itself",
                   [](AbiGraph& abi_graph) { abi_graph.nodes[1].inputs = list_yy; });
  expect_malformed(context, net, "a node that reads its own result", [](AbiGraph& abi_graph) { abi_graph.nodes[1].inputs = list_yz; });
  expect_malformed(context, net, "a constant that a node writes",
                   [](AbiGraph& abi_graph) { abi_graph.values[2].kind = TENON_VALUE_CONSTANT; });
  static tenon_donation donation;
  const auto donate = [&](const char* what, tenon_donation wrong) {
    donation = wrong;
    expect_malformed(context, net, what, [](AbiGraph& abi_graph) {
      abi_graph.graph.donations = &donation;
      abi_graph.graph.donation_count = 1;
    });
  };
  donate("a donation of a value that does not exist", {99, y});
  donate("a donation to a value that does not exist", {x, 99});
  donate("a donation of an output", {y, y});
  donate("a donation of an internal value", {t, y});
  donate("a donation to an input", {x, z});
  expect_sane(context);
}

/// Unusual graphs that are allowed.
void allowed_oddities(CaseContext& context) {
  require_relu(context);
  const auto expect_good = [&](const char* what, const std::function<void(AbiGraph&)>& change) {
    const Net net = relu_net();
    AbiGraph abi_graph(net);
    change(abi_graph);
    const tenon_plan_options options = default_options();
    tenon_answer answer{};
    const std::string prefix = std::string(what) + " is allowed; ";
    expect_ok((prefix + "`supports`").c_str(), context.device.table().supports, context.device.handle(), &abi_graph.graph, &options,
              &answer, static_cast<std::uint32_t>(sizeof answer));
    if (answer.supported != 1) fail(fmt::format("{} is allowed, and `supports` says no: {}", what, answer.text));
    tenon_plan* plan = nullptr;
    expect_ok((prefix + "plan_create").c_str(), context.device.table().plan_create, context.device.handle(), &abi_graph.graph, &options,
              &plan);
    context.device.table().plan_destroy(plan);
  };
  expect_good("a node without a name", [](AbiGraph& abi_graph) { abi_graph.nodes[0].name = nullptr; });
  expect_good("a node whose id is 0", [](AbiGraph& abi_graph) { abi_graph.nodes[0].id = 0; });
  expect_good("a name of 4000 characters", [](AbiGraph& abi_graph) {
    static const std::string name(4000, 'n');
    abi_graph.nodes[0].name = name.c_str();
  });
  expect_good("a value that no node reads", [](AbiGraph& abi_graph) {
    tenon_value value = abi_graph.values[0];
    value.binding = abi_graph.graph.binding_count++;
    abi_graph.values.push_back(value);
    abi_graph.graph.values = abi_graph.values.data();
    abi_graph.graph.value_count++;
  });
  expect_good("strides that are equal to dense ones", [](AbiGraph& abi_graph) {
    static const std::int64_t dense[] = {1};
    for (tenon_value& value : abi_graph.values) value.desc.strides = dense;
  });
  expect_sane(context);
}

/// Attributes that are shorter than the op's struct must be refused.
void short_attributes(CaseContext& context) {
  const auto& lines = op_lines();
  const auto with_attributes = [](const OpLine& line) { return line.op == TENON_OP_Gather || line.op == TENON_OP_LeakyRelu; };
  const auto line = std::find_if(lines.begin(), lines.end(), [&](const OpLine& l) {
    return with_attributes(l) && (context.device.capability(l.op, l.version) & TENON_DTYPE_BIT(TENON_DTYPE_F32)) != 0;
  });
  if (line == lines.end()) throw NotRun("not offered: the capability table has neither LeakyRelu nor Gather for f32");
  for (const std::uint32_t size : {0u, 4u, 8u}) {
    const bool gather = line->op == TENON_OP_Gather;
    Net net;
    const std::uint32_t x = net.input(Array(TENON_DTYPE_F32, {4}));
    std::vector<std::uint32_t> inputs{x};
    if (gather) inputs.push_back(net.input(Array(TENON_DTYPE_I64, {4})));
    const std::uint32_t y = net.output(TENON_DTYPE_F32, {4});
    const AttributeBytes attributes = gather ? AttributeBytes(tenon_attributes_axis{}) : AttributeBytes(tenon_attributes_alpha{});
    net.node(line->op, line->version, attributes.data(), inputs, {y});
    std::memcpy(net.nodes[0].attributes.data(), &size, sizeof size);
    expect_malformed(context, net, fmt::format("attributes of {} whose struct_size is {}", line->name, size).c_str(), [](AbiGraph&) {});
  }
  expect_sane(context);
}

}  // namespace

std::vector<Case> core_malformed_cases() {
  return core_cases({
      {"plan/malformed_graphs", malformed_graphs},
      {"plan/malformed_connections", malformed_connections},
      {"plan/short_attributes", short_attributes},
      {"plan/allowed_oddities", allowed_oddities},
  });
}

}  // namespace tenon::conformance
