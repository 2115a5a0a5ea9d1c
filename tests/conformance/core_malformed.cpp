// Graphs that break the header's rules: refused by plan_create, no yes to them by `supports`, and never the end of the process.
#include <limits>

#include "core.h"

namespace tenon::conformance {
namespace {

bool single_node(const Kit& kit) {
  return (kit.device.device_info().flags & TENON_DEVICE_SINGLE_NODE_PLANS) != 0;
}

/// Spoils a graph that is good and looks what becomes of it.
template <class Spoil>
void expect_malformed(const Kit& kit, const Net& net, const char* what, Spoil spoil) {
  Wire wire(net);
  spoil(wire);
  const tenon_plan_options options = default_options();
  ErrorText error;
  tenon_plan* plan = nullptr;
  const tenon_status status = kit.device.table().plan_create(kit.device.handle(), &wire.graph, &options, &plan, error);
  if (status == TENON_OK) kit.device.table().plan_destroy(plan);
  expect_refusal(status, error, {TENON_INVALID_ARGUMENT, TENON_UNSUPPORTED}, what);
  if (plan != nullptr) fail(fmt::format("{}: plan_create failed and wrote its out-parameter all the same", what));
  std::vector<tenon_answer> answers(wire.graph.node_count);
  ErrorText second;
  const tenon_status asked = kit.device.table().supports(kit.device.handle(), &wire.graph, &options, answers.data(), second);
  // Nodes of a graph that a single-node backend does not take anyway may each be served alone.
  if (asked != TENON_OK || (single_node(kit) && wire.graph.node_count > 1)) return;
  if (std::all_of(answers.begin(), answers.end(), [](const tenon_answer& a) { return a.supported == 1; })) {
    fail(fmt::format("{}: `supports` says yes", what));
  }
}

void malformed_graphs(Kit& kit) {
  require_relu(kit);
  const Net net = relu_net();
  static const std::uint32_t outside[] = {99}, absent[] = {TENON_NO_INDEX}, input[] = {0}, output[] = {1};
  static const std::int64_t negative[] = {-4};
  expect_malformed(kit, net, "a node that reads value 99 of 2", [](Wire& wire) { wire.nodes[0].inputs = outside; });
  expect_malformed(kit, net, "a node that writes value 99 of 2", [](Wire& wire) { wire.nodes[0].outputs = outside; });
  expect_malformed(kit, net, "a negative dimension", [](Wire& wire) { wire.values[0].desc.shape = negative; });
  expect_malformed(kit, net, "a rank of 9", [](Wire& wire) { wire.values[0].desc.rank = 9; });
  expect_malformed(kit, net, "a value of no dtype", [](Wire& wire) { wire.values[0].desc.dtype = TENON_DTYPE_NONE; });
  expect_malformed(kit, net, "a dtype that nobody knows", [](Wire& wire) { wire.values[0].desc.dtype = 4000; });
  expect_malformed(kit, net, "an input bound outside the bindings", [](Wire& wire) { wire.values[0].binding = 7; });
  expect_malformed(kit, net, "an output bound outside the bindings", [](Wire& wire) { wire.values[1].binding = TENON_NO_INDEX; });
  expect_malformed(kit, net, "an op that nobody knows", [](Wire& wire) { wire.nodes[0].op = 39999; });
  expect_malformed(kit, net, "a version that nobody knows", [](Wire& wire) { wire.nodes[0].version = 4711; });
  expect_malformed(kit, net, "a node without its operand", [](Wire& wire) { wire.nodes[0].inputs = absent; });
  expect_malformed(kit, net, "a node without its result", [](Wire& wire) { wire.nodes[0].outputs = absent; });
  expect_malformed(kit, net, "a node with no inputs", [](Wire& wire) { wire.nodes[0].input_count = 0; });
  expect_malformed(kit, net, "a node with no outputs", [](Wire& wire) { wire.nodes[0].output_count = 0; });
  expect_malformed(kit, net, "a node that reads its own result", [](Wire& wire) { wire.nodes[0].inputs = output; });
  expect_malformed(kit, net, "a node that writes an input", [](Wire& wire) { wire.nodes[0].outputs = input; });
  expect_malformed(kit, net, "a value of an unknown kind", [](Wire& wire) { wire.values[0].kind = 77; });
  expect_malformed(kit, net, "a constant without bytes", [](Wire& wire) {
    wire.values[0].kind = TENON_VALUE_CONSTANT;
    wire.values[0].data = nullptr;
  });
  expect_malformed(kit, net, "an operand and a result of different dtypes",
                   [](Wire& wire) { wire.values[1].desc.dtype = TENON_DTYPE_F64; });
  expect_malformed(kit, net, "more elements than can be addressed", [](Wire& wire) {
    static const std::int64_t many[] = {std::numeric_limits<std::int64_t>::max() / 2};
    wire.values[0].desc.shape = many;
    wire.values[1].desc.shape = many;
  });
  expect_malformed(kit, net, "dimensions whose product wraps around to 0", [](Wire& wire) {
    static const std::int64_t wraps[] = {std::int64_t{1} << 62, 4, 16};  // 2^64 is 0 in 64 bits
    for (tenon_value& value : wire.values) {
      value.desc.shape = wraps;
      value.desc.rank = 3;
    }
  });
  expect_sane(kit);
}

/// Rules that need more than one node, or a donation.
void malformed_company(Kit& kit) {
  require_ops(kit, {TENON_OP_Relu, TENON_OP_Add});
  Net net;  // t = relu(x); y = t + x
  const Dims shape{16};
  const std::uint32_t x = net.input(Array(TENON_DTYPE_F32, shape)), z = net.input(Array(TENON_DTYPE_F32, shape));
  const std::uint32_t t = net.internal(TENON_DTYPE_F32, shape), y = net.output(TENON_DTYPE_F32, shape);
  net.node(TENON_OP_Relu, line_of(TENON_OP_Relu).version, &no_attributes, {x}, {t});
  net.node(TENON_OP_Add, line_of(TENON_OP_Add).version, &no_attributes, {t, z}, {y});
  if (!single_node(kit)) {
    const Plan plan(kit.device, net);
    expect_ready(plan);  // spoilt below, it was good
  }
  static const std::uint32_t list_y[] = {3}, list_yy[] = {3, 3}, list_yz[] = {3, 1};
  expect_malformed(kit, net, "two nodes in an order in which they cannot run", [](Wire& wire) { std::swap(wire.nodes[0], wire.nodes[1]); });
  expect_malformed(kit, net, "two nodes that wait for each other", [](Wire& wire) { wire.nodes[0].inputs = list_y; });
  expect_malformed(kit, net, "a value that two nodes write", [](Wire& wire) { wire.nodes[0].outputs = list_y; });
  expect_malformed(kit, net, "an internal value that nobody writes", [](Wire& wire) {
    wire.graph.nodes = &wire.nodes[1];
    wire.graph.node_count = 1;
  });
  expect_malformed(kit, net, "an output that nobody writes", [](Wire& wire) { wire.graph.node_count = 1; });
  expect_malformed(kit, net, "a node that adds its own result to itself", [](Wire& wire) { wire.nodes[1].inputs = list_yy; });
  expect_malformed(kit, net, "a node that reads its own result", [](Wire& wire) { wire.nodes[1].inputs = list_yz; });
  expect_malformed(kit, net, "a constant that a node writes", [](Wire& wire) { wire.values[2].kind = TENON_VALUE_CONSTANT; });
  static tenon_donation donation;
  const auto donate = [&](const char* what, tenon_donation wrong) {
    donation = wrong;
    expect_malformed(kit, net, what, [](Wire& wire) {
      wire.graph.donations = &donation;
      wire.graph.donation_count = 1;
    });
  };
  donate("a donation of a value that is not there", {99, y});
  donate("a donation to a value that is not there", {x, 99});
  donate("a donation of an output", {y, y});
  donate("a donation of an internal value", {t, y});
  donate("a donation to an input", {x, z});
  expect_sane(kit);
}

/// What looks odd and is allowed.
void allowed_oddities(Kit& kit) {
  require_relu(kit);
  const auto expect_good = [&](const char* what, const std::function<void(Wire&)>& change) {
    const Net net = relu_net();
    Wire wire(net);
    change(wire);
    const tenon_plan_options options = default_options();
    tenon_answer answer{};
    ErrorText error;
    const std::string said = std::string(what) + " is allowed; ";
    expect_ok(kit.device.table().supports(kit.device.handle(), &wire.graph, &options, &answer, error), error,
              (said + "`supports`").c_str());
    if (answer.supported != 1) fail(fmt::format("{} is allowed, and `supports` says no: {}", what, answer.text));
    tenon_plan* plan = nullptr;
    expect_ok(kit.device.table().plan_create(kit.device.handle(), &wire.graph, &options, &plan, error), error,
              (said + "plan_create").c_str());
    kit.device.table().plan_destroy(plan);
  };
  expect_good("a node without a name", [](Wire& wire) { wire.nodes[0].name = nullptr; });
  expect_good("a node whose id is 0", [](Wire& wire) { wire.nodes[0].id = 0; });
  expect_good("a name of 4000 characters", [](Wire& wire) {
    static const std::string name(4000, 'n');
    wire.nodes[0].name = name.c_str();
  });
  expect_good("a value that nobody reads", [](Wire& wire) {
    tenon_value value = wire.values[0];
    value.binding = wire.graph.binding_count++;
    wire.values.push_back(value);
    wire.graph.values = wire.values.data();
    wire.graph.value_count++;
  });
  expect_good("strides that say what dense means", [](Wire& wire) {
    static const std::int64_t dense[] = {1};
    for (tenon_value& value : wire.values) value.desc.strides = dense;
  });
  expect_sane(kit);
}

/// Attributes say how long they are: shorter than the op's struct is no struct of that op.
void short_attributes(Kit& kit) {
  const auto& lines = op_lines();
  const auto with_attributes = [](const OpLine& line) { return line.op == TENON_OP_Gather || line.op == TENON_OP_LeakyRelu; };
  const auto line = std::find_if(lines.begin(), lines.end(), [&](const OpLine& l) {
    return with_attributes(l) && (kit.device.capability(l.op, l.version) & TENON_DTYPE_BIT(TENON_DTYPE_F32)) != 0;
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
    expect_malformed(kit, net, fmt::format("attributes of {} whose struct_size is {}", line->name, size).c_str(), [](Wire&) {});
  }
  expect_sane(kit);
}

}  // namespace

std::vector<Case> core_malformed_cases() {
  return core_cases({
      {"plan/malformed_graphs", malformed_graphs},
      {"plan/malformed_company", malformed_company},
      {"plan/short_attributes", short_attributes},
      {"plan/allowed_oddities", allowed_oddities},
  });
}

}  // namespace tenon::conformance
