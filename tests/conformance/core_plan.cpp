// SPDX-License-Identifier: Apache-2.0
// Plans: borrowed data, reported properties, numerics policies, and the cost of a call.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "core.h"

namespace tenon::conformance {
namespace {

void empty_graph(CaseContext& context) {
  require_graphs(context);
  const Net net;
  const Plan plan(context.device, net);
  if (!plan.ready()) fail("a graph without nodes: " + plan.why());
  const Outcome outcome = plan.run();
  if (!outcome.ok()) fail("executing a plan without nodes: " + outcome.text);
}

void missing_bindings(CaseContext& context) {
  require_relu(context);
  const Net net = relu_net();
  const Plan plan(context.device, net);
  if (!plan.ready()) throw Unsupported(plan.why());
  const Memory workspace(context, plan.info().workspace_size_bytes);
  tenon_bindings bindings{.struct_size = sizeof bindings};
  const std::uint64_t one = workspace.address;
  for (const std::uint32_t count : {0u, 1u}) {
    bindings.address_count = count;
    bindings.addresses = &one;
    ErrorText error;
    const tenon_status status =
        context.device.table().plan_execute(plan.handle(), &bindings, workspace.address, context.device.stream(), error);
    expect_refusal(status, error, {TENON_INVALID_ARGUMENT}, "executing with fewer addresses than the plan has bindings");
  }
  expect_sane(context);
}

void plan_info_sane(CaseContext& context) {
  require_relu(context);
  const Net net = relu_net();
  const Plan plan(context.device, net);
  if (!plan.ready()) throw Unsupported(plan.why());
  const tenon_plan_info& info = plan.info();
  if (info.kernel_count < 1) fail("a plan of one node launches no kernel");
  const std::uint64_t a = info.workspace_alignment_bytes;
  if (info.workspace_size_bytes > 0 && (a == 0 || (a & (a - 1)) != 0))
    fail(fmt::format("a workspace alignment of {} is not a power of two", a));
  if (a > context.device.device_info().alignment_bytes)
    fail(fmt::format("a workspace alignment of {} is more than the {} of the device's memory", a,
                     context.device.device_info().alignment_bytes));
  if (info.workspace_size_bytes > (1u << 26))
    fail(fmt::format("a relu of 16 elements needs a workspace of {} bytes", info.workspace_size_bytes));
}

/// A newer core's values and nodes are longer: backends must step by the strides.
void longer_elements(CaseContext& context) {
  require_relu(context);
  const Net net = relu_net();
  const AbiGraph abi_graph(net);
  struct LongValue {
    tenon_value value;
    std::uint64_t later[3];
  };
  struct LongNode {
    tenon_node node;
    std::uint64_t later[5];
  };
  std::vector<LongValue> values;
  for (const tenon_value& value : abi_graph.values) values.push_back({value, {~0ull, ~0ull, ~0ull}});
  std::vector<LongNode> nodes;
  for (const tenon_node& node : abi_graph.nodes) nodes.push_back({node, {~0ull, ~0ull, ~0ull, ~0ull, ~0ull}});
  tenon_graph graph = abi_graph.graph;
  graph.values = &values[0].value;
  graph.value_stride = sizeof(LongValue);
  graph.nodes = &nodes[0].node;
  graph.node_stride = sizeof(LongNode);
  const tenon_plan_options options = default_options();
  ErrorText error;
  tenon_plan* plan = nullptr;
  const tenon_status status = context.device.table().plan_create(context.device.handle(), &graph, &options, &plan, error);
  if (status == TENON_UNSUPPORTED) throw Unsupported(error.text());
  expect_ok(status, error, "plan_create of a graph with longer elements");
  context.device.table().plan_destroy(plan);
}

/// The caller may overwrite the graph once plan_create returns.
void plan_keeps_nothing_borrowed(CaseContext& context) {
  require_relu(context);
  auto net = std::make_unique<Net>(relu_net());
  auto abi_graph = std::make_unique<AbiGraph>(*net);
  const tenon_plan_options options = default_options();
  ErrorText error;
  tenon_plan* plan = nullptr;
  const tenon_status status = context.device.table().plan_create(context.device.handle(), &abi_graph->graph, &options, &plan, error);
  if (status == TENON_UNSUPPORTED) throw Unsupported(error.text());
  expect_ok(status, error, "plan_create");
  struct Destroy {
    const CaseContext& context;
    tenon_plan* plan;
    ~Destroy() { context.device.table().plan_destroy(plan); }
  } destroy_at_end{context, plan};
  std::memset(static_cast<void*>(abi_graph->values.data()), 0xFF, abi_graph->values.size() * sizeof(tenon_value));
  std::memset(static_cast<void*>(abi_graph->nodes.data()), 0xFF, abi_graph->nodes.size() * sizeof(tenon_node));
  std::fill(net->values[0].shape.begin(), net->values[0].shape.end(), -1);
  abi_graph.reset();
  net.reset();

  tenon_plan_info info{.struct_size = sizeof info};
  expect_ok("plan_info", context.device.table().plan_info, plan, &info);
  const Memory x(context, 64), y(context, 64), workspace(context, info.workspace_size_bytes);
  const Array bytes = relu_net().values[0].array;
  expect_ok("a copy to the device", &Device::upload, context.device, x.address, bytes.bytes(), 64);
  const std::uint64_t addresses[] = {x.address, y.address};
  tenon_bindings bindings{.struct_size = sizeof bindings, .address_count = 2, .addresses = addresses};
  expect_ok("plan_execute", context.device.table().plan_execute, plan, &bindings, workspace.address, context.device.stream());
  Array result(TENON_DTYPE_F32, {16});
  expect_ok("a copy from the device", &Device::download, context.device, result.bytes(), y.address, 64);
  expect_relu({result});
}

/// An execution of a warm plan neither allocates nor logs.
void quiet_execution(CaseContext& context) {
  require_relu(context);
  const Net net = relu_net(100000);
  const Plan plan(context.device, net);
  if (!plan.ready()) throw Unsupported(plan.why());
  Plan::Bindings bindings(plan, 0xFF);
  for (int round = 0; round < 3; ++round) expect_ok("plan_execute", &Plan::Bindings::execute_bare, bindings, 1);
  synchronize(context);
  const std::int64_t allocations = context.device.host().allocations(), lines = context.device.host().log_lines();
  const tenon_memory_stats before = stats_of(context);
  for (int round = 0; round < 10; ++round) expect_ok("plan_execute", &Plan::Bindings::execute_bare, bindings, 1);
  synchronize(context);
  if (context.device.host().allocations() != allocations || stats_of(context).allocation_count != before.allocation_count) {
    fail("executing a warm plan allocated memory");
  }
  if (context.device.host().log_lines() != lines) fail("executing a plan wrote to the log");
}

// ---------------------------------------------------------------- numerics policies

/// A backend's answer to plan options.
struct Answered {
  bool yes = false;          ///< `supports` said yes to every node
  std::uint32_t reason = 0;  ///< the reason of a no; NONE if `supports` itself failed
  std::string text;
};

/// Calls `supports` and plan_create, which have to agree; a plan is passed to `use`.
Answered ask(const CaseContext& context, const Net& net, const tenon_plan_options& options, const std::string& what,
             const std::function<void(tenon_plan*)>& use) {
  const AbiGraph abi_graph(net);
  std::vector<tenon_answer> answers(abi_graph.nodes.size());
  Answered answered;
  ErrorText error;
  const tenon_backend_table& table = context.device.table();
  const tenon_status status =
      table.supports(context.device.handle(), &abi_graph.graph, &options, answers.data(), sizeof(tenon_answer), error);
  if (status == TENON_OK) {
    answered.yes = std::all_of(answers.begin(), answers.end(), [](const tenon_answer& a) { return a.supported == 1; });
    for (const tenon_answer& a : answers) {
      if (a.supported == 1 || answered.reason != TENON_REASON_NONE) continue;
      answered.reason = a.reason;
      answered.text = a.text;
    }
    if (!answered.yes && answered.reason == TENON_REASON_NONE) fail(what + ": `supports` says no without a reason");
    if (!answered.yes && answered.text.empty()) fail(what + ": `supports` says no without a text that says why");
  } else {
    expect_refusal(status, error, {TENON_INVALID_ARGUMENT, TENON_UNSUPPORTED}, what + " to `supports`");
    answered.text = error.text();
  }
  tenon_plan* plan = nullptr;
  ErrorText second;
  const tenon_status made = table.plan_create(context.device.handle(), &abi_graph.graph, &options, &plan, second);
  if (made == TENON_OK) {
    struct Destroy {
      const tenon_backend_table& table;
      tenon_plan* plan;
      ~Destroy() { table.plan_destroy(plan); }
    } destroy_at_end{table, plan};
    if (!answered.yes) fail(fmt::format("{}: `supports` says no ({}), yet plan_create made a plan", what, answered.text));
    use(plan);
  } else {
    if (answered.yes)
      fail(fmt::format("{}: `supports` says yes, yet plan_create failed with {} ({})", what, status_name(made), second.text()));
    expect_refusal(made, second, {TENON_INVALID_ARGUMENT, TENON_UNSUPPORTED}, what + " to plan_create");
  }
  return answered;
}

/// A product with the identity, of numbers that are exact in f32 but not in TF32 and bf16.
Net fine_product() {
  Net net;
  Array a(TENON_DTYPE_F32, {8, 8}), b(TENON_DTYPE_F32, {8, 8});
  for (std::int64_t i = 0; i < 8; ++i) {
    for (std::int64_t j = 0; j < 8; ++j) a.set(i * 8 + j, 1 + std::ldexp(static_cast<double>(i * 8 + j + 1), -20));
    b.set(i * 8 + i, 1);  // y = a
  }
  const std::uint32_t x = net.input(a), w = net.input(b), y = net.output(TENON_DTYPE_F32, {8, 8});
  net.node(TENON_OP_MatMul, line_of(TENON_OP_MatMul).version, &no_attributes, {x, w}, {y});
  return net;
}

/// Runs a plan directly, since Plan does not support these options.
Array run_bare(const CaseContext& context, const Net& net, tenon_plan* plan) {
  tenon_plan_info info{.struct_size = sizeof info};
  const tenon_backend_table& table = context.device.table();
  expect_ok("plan_info", table.plan_info, plan, &info);
  const Memory workspace(context, info.workspace_size_bytes);
  std::vector<std::unique_ptr<Memory>> memory;
  std::vector<std::uint64_t> addresses;
  for (const Net::Value& value : net.values) {
    const std::uint64_t size = Array(value.dtype, value.shape).size_bytes();
    memory.push_back(std::make_unique<Memory>(context, size));
    addresses.push_back(memory.back()->address);
    if (value.kind != TENON_VALUE_OUTPUT)
      expect_ok("a copy to the device", &Device::upload, context.device, addresses.back(), value.array.bytes(), size);
  }
  tenon_bindings bindings{.struct_size = sizeof bindings,
                          .address_count = static_cast<std::uint32_t>(addresses.size()),
                          .addresses = addresses.data(),
                          .parameters_epoch = 1};
  expect_ok("plan_execute", table.plan_execute, plan, &bindings, workspace.address, context.device.stream());
  synchronize(context);
  Array result(net.values.back().dtype, net.values.back().shape);
  expect_ok("a copy from the device", &Device::download, context.device, result.bytes(), addresses.back(), result.size_bytes());
  return result;
}

/// Each value of `math` and `deterministic` is honoured or refused; unknown values are refused.
void math_policies(CaseContext& context) {
  const auto offers = [&](tenon_op op) {
    return (context.device.capability(op, line_of(op).version) & TENON_DTYPE_BIT(TENON_DTYPE_F32)) != 0;
  };
  const bool product = offers(TENON_OP_MatMul);
  if (!product) require_relu(context);
  const Net net = product ? fine_product() : relu_net();
  const auto judge = [&](tenon_plan* plan, double bound, const std::string& what) {
    const Array y = run_bare(context, net, plan);
    if (!product) return expect_relu({y});
    for (std::int64_t i = 0; i < y.count(); ++i) {
      const double expected = net.values[0].array.at(i);
      if (std::fabs(y.at(i) - expected) <= bound) continue;
      fail(fmt::format("{}: element {} of a product with the identity is {}, expected {} within {}", what, i, y.str(i),
                       net.values[0].array.str(i), bound));
    }
  };
  std::string honoured;
  static constexpr struct {
    std::uint32_t math;
    const char* name;
    double bound;
  } policies[] = {
      // 8 terms, each product and sum rounded by 2^-24 at most: algorithms that split operands may take twice that
      {TENON_MATH_STRICT, "STRICT", 32 * 0x1p-24},
      {TENON_MATH_TF32, "TF32", 0x1p-10},  // half a unit of 10 bits for each of the two operands, which are below 2
      {TENON_MATH_BF16, "BF16", 0x1p-7},   // half a unit of 7 bits, likewise
  };
  for (const auto& policy : policies) {
    for (const std::uint32_t deterministic : {0u, 1u}) {
      tenon_plan_options options = default_options();
      options.math = policy.math;
      options.deterministic = deterministic;
      const std::string what = fmt::format("math {}, deterministic {}", policy.name, deterministic);
      Array first;
      const Answered answered = ask(context, net, options, what, [&](tenon_plan* plan) {
        judge(plan, policy.bound, what);
        if (deterministic == 1 && !run_bare(context, net, plan).same_bits(run_bare(context, net, plan)))
          fail(what + ": different bits the second time");
      });
      if (answered.yes) {
        honoured += (honoured.empty() ? "" : "; ") + what;
      } else if (policy.math == TENON_MATH_STRICT && deterministic == 0) {
        fail("math STRICT must be supported by every plan, but is refused: " + answered.text);
      } else if (answered.reason != TENON_REASON_OPTIONS) {
        fail(fmt::format("{} is refused ({}): expected the reason OPTIONS, got {}", what, answered.text, answered.reason));
      }
    }
  }
  const auto unknown = [&](const char* name, std::uint32_t tenon_plan_options::*field) {
    tenon_plan_options options = default_options();
    options.*field = 77;
    const std::string what = fmt::format("{} = 77 in the plan's options", name);
    const Answered answered = ask(context, net, options, what, [](tenon_plan*) {});
    if (answered.yes) fail(what + " is not defined by the header: expected a no for TENON_REASON_OPTIONS, got a plan");
    if (answered.reason != TENON_REASON_NONE && answered.reason != TENON_REASON_OPTIONS) {
      fail(fmt::format("{}: expected the reason OPTIONS, got {} ({})", what, answered.reason, answered.text));
    }
  };
  unknown("math", &tenon_plan_options::math);
  unknown("deterministic", &tenon_plan_options::deterministic);
  unknown("fusion", &tenon_plan_options::fusion);
  expect_sane(context);
  context.remark = "honoured: " + honoured;
}

// ---------------------------------------------------------------- the cost of a call

/// The median time of many consecutive executions; it is reported, not judged.
double call_ns(const CaseContext& context, const Net& net) {
  const Plan plan(context.device, net);
  expect_ready(plan);
  Plan::Bindings bindings(plan, 0xFF);
  std::vector<double> times(small_sizes() ? 101 : 2001);
  ErrorText error;
  for (int round = 0; round < 10; ++round) expect_ok("plan_execute", &Plan::Bindings::execute_bare, bindings, 1);
  for (double& time : times) {
    const auto begin = std::chrono::steady_clock::now();
    const tenon_status status = bindings.execute_bare(1, error);
    time = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
    expect_ok(status, error, "plan_execute");
    synchronize(context);
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

void call_cost(CaseContext& context) {
  require_relu(context);
  const bool graphs = (context.device.device_info().flags & TENON_DEVICE_SINGLE_NODE_PLANS) == 0;
  std::string text;
  if (graphs) text = fmt::format("empty plan {:.2f} us, ", call_ns(context, Net{}) / 1000);
  text += fmt::format("relu of 16 {:.2f} us a call (median of {})", call_ns(context, relu_net()) / 1000, small_sizes() ? 101 : 2001);
  context.remark = text;
}

}  // namespace

std::vector<Case> core_plan_cases() {
  return core_cases({
      {"plan/empty_graph", empty_graph},
      {"plan/missing_bindings", missing_bindings},
      {"plan/info", plan_info_sane},
      {"plan/longer_elements", longer_elements},
      {"plan/keeps_nothing_borrowed", plan_keeps_nothing_borrowed},
      {"plan/quiet_execution", quiet_execution},
      {"plan/math_policies", math_policies},
      {"plan/call_cost", call_cost},
  });
}

}  // namespace tenon::conformance
