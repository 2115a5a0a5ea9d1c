// SPDX-License-Identifier: Apache-2.0
// A run's context: an execution that is not wanted any more stops in time and leaves no half of an update; loops are the run's.
#include "core.h"

namespace tenon::conformance {
namespace {

tenon_run run_of(CaseContext& context, std::uint32_t threads) {
  return {sizeof(tenon_run), threads, 0, 0, context.device.host().run_context()};
}

/// A long computation that updates p in its middle and q at its end: p' = p + 4 x, q' = q + 32 x, y = relu(32 x).
struct TwoUpdates {
  static constexpr std::int64_t elements = 64;
  TwoUpdates() {
    const auto numbers = [](double first) {
      Array array(TENON_DTYPE_F32, {elements});
      for (std::int64_t i = 0; i < elements; ++i) array.set(i, first + static_cast<double>(i));
      return array;
    };
    const std::uint32_t x = net.input(numbers(-8));
    const std::uint32_t p = net.input(numbers(100), {}, TENON_VALUE_PARAMETER), q = net.input(numbers(200), {}, TENON_VALUE_PARAMETER);
    std::uint32_t sum = x;
    const auto add = [&](std::uint32_t a, std::uint32_t b, std::uint32_t c) {
      net.node(TENON_OP_Add, line_of(TENON_OP_Add).version, &no_attributes, {a, b}, {c});
      return c;
    };
    const auto update = [&](std::uint32_t parameter) {
      net.donate(parameter, add(parameter, sum, net.output(TENON_DTYPE_F32, {elements})));
      unchanged.push_back(net.values[parameter].array);
      updated.push_back(net.values[parameter].array);
      for (std::int64_t i = 0; i < elements; ++i) updated.back().set(i, updated.back().at(i) + factor * net.values[x].array.at(i));
    };
    for (int doubled = 1; doubled <= 5; ++doubled) {
      sum = add(sum, sum, net.internal(TENON_DTYPE_F32, {elements}));
      factor *= 2;
      if (doubled == 2) update(p);
    }
    update(q);
    net.node(TENON_OP_Relu, line_of(TENON_OP_Relu).version, &no_attributes, {sum}, {net.output(TENON_DTYPE_F32, {elements})});
  }
  /// Checks the parameters after an execution.
  void expect(const Outcome& outcome, const std::vector<Array>& expected, const std::string& when) const {
    if (!outcome.damage.empty()) fail(fmt::format("{}: the execution {}", when, outcome.damage));
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const std::string wrong = compare(expected[i], outcome.outputs[i], {});
      if (!wrong.empty()) fail(fmt::format("{}: updated parameter {}: {}", when, i, wrong));
    }
  }
  Net net;
  double factor = 1;
  std::vector<Array> unchanged, updated;  ///< p and q before and after an execution
};

void cancelled(CaseContext& context) {
  require_graphs(context);
  require_ops(context, {TENON_OP_Add, TENON_OP_Relu});
  const TwoUpdates work;
  const Plan plan(context.device, work.net, {.fusion = TENON_FUSION_OFF});
  expect_ready(plan);
  Plan::Bindings bindings(plan, 0xFF);
  const tenon_run run = run_of(context, 0);
  bindings.run = &run;
  Host& host = context.device.host();
  const bool is_inline = (context.device.device_info().flags & TENON_DEVICE_INLINE_STREAMS) != 0;
  std::int64_t stops = 0;
  for (std::int64_t number = 1; number <= 12; ++number) {
    host.cancel_from(number);
    const Outcome outcome = bindings.execute(1);
    const std::string when = fmt::format("cancelled from question {} on", number);
    if (outcome.ok()) {
      if (number == 1 && is_inline && plan.info().kernel_count > 1) {
        fail(fmt::format(
            "{}: the execution of {} kernels returned OK after {} questions: expected CANCELLED, since cancel_requested is asked "
            "between kernels that run inside the call",
            when, plan.info().kernel_count, host.questions()));
      }
      work.expect(outcome, work.updated, when + ", and finished");
      continue;
    }
    if (outcome.status != TENON_CANCELLED)
      fail(fmt::format("{}: expected OK or CANCELLED, got {} ({})", when, status_name(outcome.status), outcome.text));
    if (host.questions() < number) fail(fmt::format("{}: CANCELLED after {} questions, all answered with 0", when, host.questions()));
    if (outcome.text.empty()) fail(fmt::format("{}: CANCELLED without a text that says where", when));
    work.expect(outcome, work.unchanged, when + ", and stopped");
    ++stops;
  }
  host.cancel_from(std::int64_t{1} << 62);
  const Outcome outcome = bindings.execute(1);
  if (!outcome.ok()) fail(fmt::format("after cancelled executions: {}: {}", status_name(outcome.status), outcome.text));
  work.expect(outcome, work.updated, "after cancelled executions");
  expect_sane(context);
  context.remark = fmt::format("{} of 12 executions stopped", stops);
}

void threads(CaseContext& context) {
  require_relu(context);
  const Net net = relu_net(1 << 20);  // enough to be split
  const Plan plan(context.device, net);
  expect_ready(plan);
  Plan::Bindings bindings(plan, 0xFF);
  const tenon_run run = run_of(context, 1);
  bindings.run = &run;
  const std::int64_t before = context.device.host().loops_outside_runs();
  const Outcome outcome = bindings.execute(1);
  if (!outcome.ok()) fail(fmt::format("an execution on one thread failed with {}: {}", status_name(outcome.status), outcome.text));
  expect_relu(outcome.outputs);
  const std::int64_t loops = context.device.host().loops_outside_runs() - before;
  if (loops > 0) {
    fail(fmt::format("{} calls of parallel_for without the run of the execution, which limits it to one thread: pass tenon_bindings.run on",
                     loops));
  }
}

/// Each span of the host's trace ends, also where a call fails.
void spans_end(CaseContext& context) {
  const std::int64_t before = context.device.host().open_spans();
  expect_sane(context);
  const Net net = relu_net();
  AbiGraph unknown(net);
  unknown.nodes[0].version = 4711;
  const tenon_plan_options options = default_options();
  tenon_plan* plan = nullptr;
  ErrorText error;
  const tenon_status status = context.device.table().plan_create(context.device.handle(), &unknown.graph, &options, &plan, error);
  expect_refusal(status, error, {TENON_UNSUPPORTED, TENON_INVALID_ARGUMENT}, "plan_create of a version that does not exist");
  const std::int64_t after = context.device.host().open_spans();
  if (after != before)
    fail(fmt::format("expected as many calls of trace_end as of trace_begin, got {} more spans that are open", after - before));
}

}  // namespace

std::vector<Case> core_run_cases() {
  return core_cases({{"run/cancelled", cancelled}, {"run/threads", threads}, {"run/spans_end", spans_end}});
}

}  // namespace tenon::conformance
