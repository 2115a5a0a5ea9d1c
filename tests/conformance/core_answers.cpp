// SPDX-License-Identifier: Apache-2.0
// The answers of `supports`: what a backend does not know is a no for the nodes that it touches, an array of answers grows by its stride,
// and a group is planned together or not at all.
#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>

#include "core.h"

namespace tenon::conformance {
namespace {

constexpr std::uint32_t middle = 1;  ///< the node that is changed, between two others

bool single_node(const CaseContext& context) {
  return (context.device.device_info().flags & TENON_DEVICE_SINGLE_NODE_PLANS) != 0;
}

/// Independent Relus; node n reads value 2n and writes value 2n + 1.
Net relus(std::uint32_t count) {
  Net net;
  for (std::uint32_t n = 0; n < count; ++n) {
    const std::uint32_t x = net.input(Array(TENON_DTYPE_F32, {16})), y = net.output(TENON_DTYPE_F32, {16});
    net.node(TENON_OP_Relu, line_of(TENON_OP_Relu).version, &no_attributes, {x}, {y});
  }
  return net;
}

std::vector<tenon_answer> answers_of(const CaseContext& context, const AbiGraph& graph, const tenon_plan_options& options,
                                     const std::string& what) {
  std::vector<tenon_answer> answers(graph.graph.node_count);
  expect_ok(("`supports` of " + what).c_str(), context.device.table().supports, context.device.handle(), &graph.graph, &options,
            answers.data(), static_cast<std::uint32_t>(sizeof(tenon_answer)));
  return answers;
}

/// `reason` NONE: any but that.
void expect_no(const tenon_answer& answer, std::uint32_t reason, const std::string& what) {
  if (answer.supported != 0) fail(fmt::format("{}: expected a no, got a yes from `supports`", what));
  if (answer.reason == TENON_REASON_NONE || answer.text[0] == '\0') fail(what + ": expected a reason code and a text with the no");
  if (reason != TENON_REASON_NONE && answer.reason != reason) {
    fail(fmt::format("{}: expected the reason {}, got {} ({})", what, reason, answer.reason, answer.text));
  }
}

/// Expects that no plan is made of the graph, on behalf of node `culprit`; TENON_NO_INDEX: of no node in particular.
void expect_no_plan(const CaseContext& context, const AbiGraph& graph, const tenon_plan_options& options, std::uint32_t culprit,
                    const std::string& what) {
  ErrorText error;
  tenon_plan* plan = nullptr;
  const tenon_status status = context.device.table().plan_create(context.device.handle(), &graph.graph, &options, &plan, error);
  if (status == TENON_OK) context.device.table().plan_destroy(plan);
  expect_refusal(status, error, {TENON_UNSUPPORTED}, what + " to plan_create");
  const std::uint64_t id = culprit == TENON_NO_INDEX ? 0 : graph.id_of(culprit);
  if (id != 0 && error.node_id() != id) {
    fail(fmt::format("{}: expected node {} in tenon_error.node_id of plan_create, got {}", what, id, error.node_id()));
  }
}

/// Changes one of three nodes by `spoil(graph, node)`: it is refused and the others are not. A plan of it is refused with its id.
template <class Spoil>
void expect_one_refused(const CaseContext& context, const std::string& what, std::uint32_t reason, Spoil spoil) {
  const tenon_plan_options options = default_options();
  const Net three = relus(3);
  AbiGraph graph(three);
  spoil(graph, middle);
  const std::vector<tenon_answer> answers = answers_of(context, graph, options, what);
  expect_no(answers[middle], reason, what);
  for (const std::uint32_t n : {middle - 1, middle + 1}) {
    if (answers[n].supported != 1)
      fail(fmt::format("{} touches node {}, yet node {} is refused too: {}", what, middle, n, answers[n].text));
  }
  const Net one = relus(1);
  AbiGraph alone(one);
  spoil(alone, 0);
  expect_no_plan(context, alone, options, 0, what);
  if (!single_node(context)) expect_no_plan(context, graph, options, middle, what);
}

std::uint32_t input_of(const AbiGraph& graph, std::uint32_t node) {
  return graph.nodes[node].inputs[0];
}
std::uint32_t output_of(const AbiGraph& graph, std::uint32_t node) {
  return graph.nodes[node].outputs[0];
}

void unknown_beside_known(CaseContext& context) {
  require_relu(context);
  static const std::int64_t negative[] = {-1}, huge[] = {1, 1, 1, 1, 1, 1, 1, 1, 16};
  static const tenon_attributes_axis longer{.struct_size = sizeof longer};
  const auto expect = [&](const char* what, auto spoil) { expect_one_refused(context, what, TENON_REASON_NONE, spoil); };
  expect("an op that does not exist", [](AbiGraph& graph, std::uint32_t n) { graph.nodes[n].op = 39999; });
  expect("an op of a vendor", [](AbiGraph& graph, std::uint32_t n) { graph.nodes[n].op = TENON_OP_VENDOR + 4711; });
  expect("a version that does not exist", [](AbiGraph& graph, std::uint32_t n) { graph.nodes[n].version = 4711; });
  expect("an attribute struct of another size", [](AbiGraph& graph, std::uint32_t n) { graph.nodes[n].attributes = &longer; });
  expect("a dtype that does not exist", [](AbiGraph& graph, std::uint32_t n) { graph.values[input_of(graph, n)].desc.dtype = 4000; });
  expect("a result of an unknown dtype", [](AbiGraph& graph, std::uint32_t n) { graph.values[output_of(graph, n)].desc.dtype = 4000; });
  expect("a kind of value that does not exist", [](AbiGraph& graph, std::uint32_t n) { graph.values[input_of(graph, n)].kind = 77; });
  expect("a result of an unknown kind", [](AbiGraph& graph, std::uint32_t n) { graph.values[output_of(graph, n)].kind = 77; });
  expect("a rank of 9", [](AbiGraph& graph, std::uint32_t n) {
    for (const std::uint32_t v : {input_of(graph, n), output_of(graph, n)}) {
      graph.values[v].desc.rank = 9;
      graph.values[v].desc.shape = huge;
    }
  });
  expect("a negative dimension", [](AbiGraph& graph, std::uint32_t n) {
    for (const std::uint32_t v : {input_of(graph, n), output_of(graph, n)}) graph.values[v].desc.shape = negative;
  });
  expect_sane(context);
}

/// A later core knows a longer answer than this backend.
void longer_answers(CaseContext& context) {
  require_relu(context);
  struct LongAnswer {
    tenon_answer answer;
    unsigned char later[72];
  };
  const Net net = relus(3);
  AbiGraph graph(net);
  graph.nodes[middle].version = 4711;
  const tenon_plan_options options = default_options();
  const std::vector<tenon_answer> expected = answers_of(context, graph, options, "three nodes");
  std::vector<LongAnswer> got(4);
  std::memset(static_cast<void*>(got.data()), 0, got.size() * sizeof(LongAnswer));
  const auto stride = static_cast<std::uint32_t>(sizeof(LongAnswer));
  expect_ok("`supports` with a longer answer", context.device.table().supports, context.device.handle(), &graph.graph, &options,
            &got[0].answer, stride);
  for (std::size_t n = 0; n < expected.size(); ++n) {
    if (got[n].answer.supported == expected[n].supported && got[n].answer.reason == expected[n].reason) continue;
    fail(fmt::format("answers that are {} bytes apart: expected supported {} and reason {} at node {}, got {} and {}", stride,
                     expected[n].supported, expected[n].reason, n, got[n].answer.supported, got[n].answer.reason));
  }
  for (std::size_t n = 0; n < got.size(); ++n) {
    const auto written = [](unsigned char byte) { return byte != 0; };
    if (std::any_of(std::begin(got[n].later), std::end(got[n].later), written) || (n == expected.size() && got[n].answer.supported != 0)) {
      fail(fmt::format("answers that are {} bytes apart: bytes behind answer {} were written, expected at most {} bytes of each", stride, n,
                       sizeof(tenon_answer)));
    }
  }
}

/// A chain of Relus, of which `nodes` are in the graph: what the others compute comes from outside, and what they read goes there.
Net links(const std::vector<std::uint32_t>& nodes) {
  Net net;
  const auto is_here = [&](std::uint32_t n) { return std::find(nodes.begin(), nodes.end(), n) != nodes.end(); };
  std::uint32_t result = 0;
  for (const std::uint32_t n : nodes) {
    const std::uint32_t x = n > 0 && is_here(n - 1) ? result : net.input(Array(TENON_DTYPE_F32, {16}));
    result = is_here(n + 1) ? net.internal(TENON_DTYPE_F32, {16}) : net.output(TENON_DTYPE_F32, {16});
    net.node(TENON_OP_Relu, line_of(TENON_OP_Relu).version, &no_attributes, {x}, {result});
  }
  return net;
}

void groups(CaseContext& context) {
  require_relu(context);
  require_graphs(context);
  std::vector<std::uint32_t> all(6);
  std::iota(all.begin(), all.end(), 0);
  const Net net = links(all);
  const tenon_plan_options options = default_options();
  for (const bool spoiled : {false, true}) {
    AbiGraph graph(net);
    if (spoiled) graph.nodes[3].version = 4711;
    std::map<std::uint32_t, std::vector<std::uint32_t>> members;
    const std::vector<tenon_answer> answers = answers_of(context, graph, options, "a chain of nodes");
    for (const std::uint32_t n : all) {
      if (answers[n].group != 0) members[answers[n].group].push_back(n);
    }
    for (const auto& [group, nodes] : members) {
      for (const std::uint32_t n : nodes) {
        if (answers[n].supported == answers[nodes[0]].supported) continue;
        fail(fmt::format("nodes {} and {} are in group {}, expected one answer for both, got supported {} and {}", nodes[0], n, group,
                         answers[nodes[0]].supported, answers[n].supported));
      }
      if (answers[nodes[0]].supported != 1) continue;
      const Net part = links(nodes);
      const Plan plan(context.device, part);
      if (!plan.ready())
        fail(fmt::format("group {} of {} nodes: expected a plan of the whole group, got: {}", group, nodes.size(), plan.why()));
    }
    context.remark = fmt::format("{} groups", members.size());
  }
}

// ---------------------------------------------------------------- bits of `needs`

void needs_of_nodes(CaseContext& context) {
  require_relu(context);
  expect_one_refused(context, "a bit of a node's needs", TENON_REASON_NEEDS,
                     [](AbiGraph& graph, std::uint32_t n) { graph.nodes[n].needs = TENON_NEEDS_TEST; });
  expect_sane(context);
}

void needs_of_values(CaseContext& context) {
  require_relu(context);
  expect_one_refused(context, "a bit of an input's needs", TENON_REASON_NEEDS,
                     [](AbiGraph& graph, std::uint32_t n) { graph.values[input_of(graph, n)].needs = TENON_NEEDS_TEST; });
  expect_one_refused(context, "a bit of an output's needs", TENON_REASON_NEEDS,
                     [](AbiGraph& graph, std::uint32_t n) { graph.values[output_of(graph, n)].needs = TENON_NEEDS_TEST; });
  expect_sane(context);
}

/// Bits that touch every node.
void expect_all_refused(CaseContext& context, const char* what, std::uint32_t graph_needs, std::uint32_t options_needs) {
  require_relu(context);
  const Net three = relus(3), one = relus(1);
  AbiGraph graph(three), alone(one);
  tenon_plan_options options = default_options();
  graph.graph.needs = alone.graph.needs = graph_needs;
  options.needs = options_needs;
  for (const tenon_answer& answer : answers_of(context, graph, options, what)) expect_no(answer, TENON_REASON_NEEDS, what);
  expect_no_plan(context, alone, options, TENON_NO_INDEX, what);
  expect_sane(context);
}

void needs_of_graphs(CaseContext& context) {
  expect_all_refused(context, "a bit of a graph's needs", TENON_NEEDS_TEST, 0);
}

void needs_of_options(CaseContext& context) {
  expect_all_refused(context, "a bit of the options' needs", 0, TENON_NEEDS_TEST);
}

void needs_of_copies(CaseContext& context) {
  constexpr std::size_t size = 256;
  const Memory memory(context, size);
  const auto before = pattern(size, 1), after = pattern(size, 2);
  upload(context, memory.address, before);
  tenon_copy copy = copy_of(TENON_COPY_HOST_TO_DEVICE, memory.address, address_of(after.data()), size);
  copy.needs = TENON_NEEDS_TEST;
  ErrorText error;
  const tenon_status status = context.device.table().copy(context.device.handle(), &copy, context.device.stream(), error);
  expect_refusal(status, error, {TENON_UNSUPPORTED}, "a bit of a copy's needs");
  expect_bytes(before, download(context, memory.address, size), "the destination of a copy that was refused");
  expect_sane(context);
}

void expect_no_memory(const CaseContext& context, const Made& made, const tenon_memory_stats& before, const char* what) {
  if (made.is_written()) fail(fmt::format("{}: a call that was refused wrote its result", what));
  if (stats_of(context).live_size_bytes != before.live_size_bytes) fail(fmt::format("{}: a call that was refused has taken memory", what));
}

void needs_of_memory_requests(CaseContext& context) {
  const char* const what = "a bit of a memory request's needs";
  const tenon_memory_stats before = stats_of(context);
  const tenon_memory_request request{
      .struct_size = sizeof request, .kind = TENON_MEMORY_DEVICE, .size_bytes = 256, .needs = TENON_NEEDS_TEST};
  Made made;
  ErrorText error;
  const tenon_status status = context.device.table().memory_allocate(context.device.handle(), &request, &made, error);
  if (status == TENON_OK) context.device.table().memory_free(made.memory);
  expect_refusal(status, error, {TENON_UNSUPPORTED}, what);
  expect_no_memory(context, made, before, what);
  expect_sane(context);
}

void needs_of_memory_imports(CaseContext& context) {
  const char* const what = "a bit of a memory import's needs";
  const tenon_memory_stats before = stats_of(context);
  std::vector<unsigned char> host = pattern(256, 4);
  const tenon_memory_import given{
      .struct_size = sizeof given, .terms = TENON_IMPORT_COPY, .host = host.data(), .size_bytes = host.size(), .needs = TENON_NEEDS_TEST};
  Made made;
  ErrorText error;
  const tenon_status status = context.device.table().memory_import(context.device.handle(), &given, &made, error);
  if (status == TENON_OK) context.device.table().memory_free(made.memory);
  expect_refusal(status, error, {TENON_UNSUPPORTED}, what);
  expect_no_memory(context, made, before, what);
  expect_sane(context);
}

void needs_of_stream_options(CaseContext& context) {
  const tenon_stream_options options{.struct_size = sizeof options, .needs = TENON_NEEDS_TEST};
  tenon_stream* stream = nullptr;
  ErrorText error;
  const tenon_status status = context.device.table().stream_create(context.device.handle(), &options, &stream, error);
  if (status == TENON_OK) context.device.table().stream_destroy(stream);
  expect_refusal(status, error, {TENON_UNSUPPORTED}, "a bit of a stream's needs");
  if (stream != nullptr) fail("a failed stream_create wrote its out-parameter");
  expect_sane(context);
}

void needs_of_event_options(CaseContext& context) {
  const tenon_event_options options{.struct_size = sizeof options, .needs = TENON_NEEDS_TEST};
  tenon_event* event = nullptr;
  ErrorText error;
  const tenon_status status = context.device.table().event_create(context.device.handle(), &options, &event, error);
  if (status == TENON_OK) context.device.table().event_destroy(event);
  expect_refusal(status, error, {TENON_UNSUPPORTED}, "a bit of an event's needs");
  if (event != nullptr) fail("a failed event_create wrote its out-parameter");
  expect_sane(context);
}

void needs_of_bindings(CaseContext& context) {
  require_relu(context);
  constexpr std::size_t size = 16 * sizeof(float);
  const Net net = relu_net();
  const Plan plan(context.device, net);
  expect_ready(plan);
  const Memory x(context, size), y(context, size), workspace(context, plan.info().workspace_size_bytes);
  upload(context, x.address, std::vector<unsigned char>(net.values[0].array.bytes(), net.values[0].array.bytes() + size));
  const auto before = pattern(size, 3);
  upload(context, y.address, before);
  const std::uint64_t addresses[] = {x.address, y.address};
  const tenon_bindings bindings{.struct_size = sizeof bindings, .address_count = 2, .addresses = addresses, .needs = TENON_NEEDS_TEST};
  ErrorText error;
  const tenon_status status =
      context.device.table().plan_execute(plan.handle(), &bindings, workspace.address, context.device.stream(), error);
  expect_refusal(status, error, {TENON_UNSUPPORTED}, "a bit of the bindings' needs");
  synchronize(context);
  expect_bytes(before, download(context, y.address, size), "the output of an execution that was refused");
  expect_sane(context);
}

}  // namespace

std::vector<Case> core_answer_cases() {
  return core_cases({
      {"answers/unknown_beside_known", unknown_beside_known},
      {"answers/longer", longer_answers},
      {"answers/groups", groups},
      {"needs/graph", needs_of_graphs},
      {"needs/options", needs_of_options},
      {"needs/value", needs_of_values},
      {"needs/node", needs_of_nodes},
      {"needs/copy", needs_of_copies},
      {"needs/bindings", needs_of_bindings},
      {"needs/memory_request", needs_of_memory_requests},
      {"needs/memory_import", needs_of_memory_imports},
      {"needs/stream_options", needs_of_stream_options},
      {"needs/event_options", needs_of_event_options},
  });
}

}  // namespace tenon::conformance
