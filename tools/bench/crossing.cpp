// SPDX-License-Identifier: Apache-2.0
// tenon bench crossing - overhead of the plugin ABI.
//
// An empty plan       is a graph without nodes, executed with plan_execute of the backend's table as the executor does. Program::run of an
//                     empty graph adds the work of the runtime around a plan.
// A plan of N nodes   is a chain of Relu on 8 floats, one kernel call per node. Overhead = time per node of the plan minus the kernel's own
//                     time. The kernel's own time comes from the plan's profile, which reads the clock right before and right after each
//                     call: the mean of all calls, minus the time between two clock reads with nothing between them.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include <tenon/functions.h>
#include <tenon/program.h>

#include "bench/benchmarks.h"
#include "bench/machine.h"
#include "bench/statistics.h"
#include "exec/device_state.h"

namespace tenon::bench {
namespace {

constexpr std::int64_t width = 8;

void check(tenon_status status, const exec::ErrorText& error, const char* what) {
  exec::check(status, error, what);
}

/// A plan that is called only through the backend's table: a chain of Relu from one buffer to another.
class Chain {
 public:
  Chain(const Device& device, std::uint32_t nodes) : device_(device.state()), table_(device_->table) {
    const std::int64_t shape[] = {width};
    std::vector<tenon_value> values(nodes == 0 ? 0 : nodes + 1);
    for (std::uint32_t v = 0; v < values.size(); ++v) {
      values[v] = {.desc = {shape, nullptr, 1, TENON_DTYPE_F32}, .kind = TENON_VALUE_INTERNAL, .binding = TENON_NO_INDEX};
    }
    if (nodes > 0) {
      values.front().kind = TENON_VALUE_INPUT, values.front().binding = 0;
      values.back().kind = TENON_VALUE_OUTPUT, values.back().binding = 1;
    }
    const Attributes none;
    std::vector<std::array<std::uint32_t, 2>> operands(nodes);
    std::vector<tenon_node> abi_nodes(nodes);
    for (std::uint32_t n = 0; n < nodes; ++n) {
      operands[n] = {n, n + 1};
      abi_nodes[n] = {TENON_OP_Relu, 14, &operands[n][0], &operands[n][1], 1, 1, none.data(), "relu", n + 1, 0, 0};
    }
    tenon_graph graph{};
    graph.struct_size = sizeof graph;
    graph.value_count = static_cast<std::uint32_t>(values.size());
    graph.values = values.data();
    graph.value_stride = sizeof(tenon_value);
    graph.node_count = nodes;
    graph.nodes = abi_nodes.data();
    graph.node_stride = sizeof(tenon_node);
    graph.binding_count = nodes > 0 ? 2 : 0;
    tenon_plan_options options{};
    options.struct_size = sizeof options;
    check(table_.plan_create(device_->handle, &graph, &options, &plan_, error_), error_, "plan_create");
    tenon_plan_info info{};
    info.struct_size = sizeof info;
    check(table_.plan_info(plan_, &info, error_), error_, "plan_info");
    kernels_ = info.kernel_count;
    buffers_ = device.empty(DType::f32, {2 * width});
    table_.fill(device_->handle, buffers_.address(), static_cast<std::uint64_t>(buffers_.size_bytes()), 0, device_->stream, error_);
    workspace_ = device.empty(DType::u8, {static_cast<std::int64_t>(std::max<std::uint64_t>(info.workspace_size_bytes, 1))});
    addresses_ = {buffers_.address(), buffers_.address() + width * sizeof(float)};
    bindings_.struct_size = sizeof bindings_;
    bindings_.address_count = graph.binding_count;
    bindings_.addresses = addresses_.data();
    bindings_.parameters_epoch = 1;
  }
  ~Chain() { table_.plan_destroy(plan_); }
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;

  /// Executes the plan repeatedly, then waits for the stream (inline streams need no wait).
  void run(std::int64_t repetitions) {
    tenon_status status = TENON_OK;
    for (std::int64_t i = 0; i < repetitions && status == TENON_OK; ++i) {
      status = table_.plan_execute(plan_, &bindings_, workspace_.address(), device_->stream, error_);
    }
    check(status, error_, "plan_execute");
    if (!device_->inline_streams()) device_->synchronize();
  }

  std::uint32_t kernels() const { return kernels_; }

  /// Mean time of a kernel call, as the median over `runs` profiled executions, minus the time of the clock reads. Empty if the backend
  /// has no profile.
  std::optional<double> kernel_ns(int runs, double clock_ns) {
    if (table_.profile == nullptr || kernels_ == 0) return std::nullopt;
    std::vector<tenon_profile_record> records(kernels_);
    std::vector<double> means;
    for (int r = 0; r < runs; ++r) {
      std::uint32_t count = 0;
      bindings_.execution_id = 1;
      run(1);
      bindings_.execution_id = 0;
      check(table_.profile->read(plan_, 1, records.data(), sizeof(tenon_profile_record), kernels_, &count, error_), error_, "profile");
      double total = 0;
      for (const tenon_profile_record& record : records) total += static_cast<double>(record.duration_ns);
      means.push_back(total / static_cast<double>(records.size()));
    }
    return median(means) - clock_ns;
  }

 private:
  std::shared_ptr<exec::DeviceState> device_;
  const tenon_backend_table& table_;
  std::uint32_t kernels_ = 0;
  tenon_plan* plan_ = nullptr;
  Tensor buffers_, workspace_;
  std::array<std::uint64_t, 2> addresses_{};
  tenon_bindings bindings_{};
  exec::ErrorText error_;
};

/// The measured time between two clock reads with nothing between them.
double clock_ns() {
  using Clock = std::chrono::steady_clock;
  std::vector<double> samples;
  for (int i = 0; i < 10001; ++i) {
    const auto begin = Clock::now();
    const auto end = Clock::now();
    samples.push_back(std::chrono::duration<double, std::nano>(end - begin).count());
  }
  double total = 0;  // the mean, because the clock's resolution may be as large as the time
  std::sort(samples.begin(), samples.end());
  samples.resize(samples.size() * 9 / 10);  // without the interrupts
  for (const double sample : samples) total += sample;
  return total / static_cast<double>(samples.size());
}

Program chain_program(const Context& context, std::uint32_t nodes) {
  Graph graph;
  if (nodes > 0) {
    Value x = graph.input("x", DType::f32, {width});
    for (std::uint32_t n = 0; n < nodes; ++n) x = ops::relu(x);
    graph.output("y", x);
  }
  return Program(context, graph);
}

}  // namespace

std::unique_ptr<Report> crossing(const Options& options) {
  const Context context = options.make_context(options.threads);
  const Device device = context.default_device();
  if ((device.info().flags & TENON_DEVICE_SINGLE_NODE_PLANS) != 0) {
    throw Error(
        Status::unsupported,
        fmt::format("bench crossing: expected a device that executes whole graphs, got '{}', whose plans have one node", device.name()));
  }
  auto report = std::make_unique<Report>("tenon bench crossing", describe_machine(context, options.threads));
  const Protocol protocol = options.protocol();

  // An empty plan through the table, and an empty program around it.
  Chain empty(device, 0);
  Program nothing = chain_program(context, 0);
  const auto run_program = [](Program& program, std::vector<Tensor>& inputs, std::int64_t repetitions) {
    for (std::int64_t i = 0; i < repetitions; ++i) static_cast<void>(program.run(inputs));
  };
  std::vector<Tensor> no_inputs;
  {
    auto samples = measure({[&](std::int64_t n) { empty.run(n); }, [&](std::int64_t n) { run_program(nothing, no_inputs, n); }}, protocol);
    Entry plan{.name = "empty plan, plan_execute", .samples = std::move(samples[0])};
    plan.extra.emplace_back("target_ns", 1000);
    report->add(std::move(plan));
    report->add({.name = "empty program, Program::run", .samples = std::move(samples[1])});
  }

  // Chains: the plan through the table, and the program around it.
  const std::vector<std::uint32_t> sizes = options.tiny ? std::vector<std::uint32_t>{1, 10} : std::vector<std::uint32_t>{1, 10, 100, 1000};
  const double clock = clock_ns();
  std::vector<double> counts, plan_ns;
  for (const std::uint32_t nodes : sizes) {
    Chain chain(device, nodes);
    Program program = chain_program(context, nodes);
    std::vector<Tensor> inputs{Tensor::zeros(DType::f32, {width}).to(device)};
    auto samples = measure({[&](std::int64_t n) { chain.run(n); }, [&](std::int64_t n) { run_program(program, inputs, n); }}, protocol);
    Entry plan{.name = fmt::format("{} nodes, plan_execute", nodes), .samples = std::move(samples[0])};
    const double per_node = plan.median_ns() / nodes;
    plan.extra.emplace_back("nodes", nodes);
    plan.extra.emplace_back("kernels", chain.kernels());
    plan.extra.emplace_back("ns_per_node", per_node);
    if (const auto kernel = chain.kernel_ns(options.tiny ? 3 : 301, clock)) {
      plan.extra.emplace_back("kernel_ns_per_node", *kernel);
      plan.extra.emplace_back("ns_per_node_above_kernels", per_node - *kernel);
    }
    counts.push_back(nodes);
    plan_ns.push_back(plan.median_ns());
    Entry around{.name = fmt::format("{} nodes, Program::run", nodes), .samples = std::move(samples[1])};
    around.extra.emplace_back("nodes", nodes);
    around.extra.emplace_back("kernels", program.placement().kernels);
    around.extra.emplace_back("ns_per_node", around.median_ns() / nodes);
    report->add(std::move(plan));
    report->add(std::move(around));
  }

  const Line line = fit_line(counts, plan_ns);
  double worst = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    worst = std::max(worst, std::abs(plan_ns[i] / (line.base + line.slope * counts[i]) - 1));
  }
  report->note(fmt::format("plan_execute takes {:.0f} ns + {:.1f} ns per node; the figures deviate from that line by at most {:.1f} %",
                           line.base, line.slope, worst * 100));
  report->note(fmt::format("kernel time: the plan's profile, clock reads around each call, minus {:.1f} ns for two reads", clock));
  report->note("targets: an empty plan below 1 us; with 100 nodes, an overhead below 100 ns per node");
  if (!device.state()->inline_streams()) report->note("the stream is not inline: each sample waits for the device once");
  return report;
}

}  // namespace tenon::bench
