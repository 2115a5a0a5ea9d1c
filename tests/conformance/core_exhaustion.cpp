// SPDX-License-Identifier: Apache-2.0
// Injected out-of-memory failures: the host's n-th allocation and all later ones fail, for n = 0, 1, 2, ... until the call succeeds. Each
// failure must be a clean OUT_OF_MEMORY without leaks, and the same call must succeed afterwards.
#include "core.h"

namespace tenon::conformance {
namespace {

/// More allocations than any of these small calls needs.
constexpr int max_allocations = 200;

/// One call that may run out of memory.
struct Attempt {
  const char* what;
  std::function<tenon_status(tenon_error*)> call;
  std::function<void()> undo;                          ///< after it succeeded
  std::function<bool()> wrote = [] { return false; };  ///< a failed call touched its out-parameters
};

/// Counts of injected failures, for the report.
struct FailureCounts {
  std::int64_t refused = 0, absorbed = 0;
};

void exhaust(Host& host, const Attempt& attempt, FailureCounts& counts) {
  for (int n = 0;; ++n) {
    if (n == max_allocations) fail(fmt::format("{} needs more than {} allocations of host memory", attempt.what, max_allocations));
    const std::int64_t blocks = host.live_blocks(), refusals = host.refusals();
    ErrorText error;
    host.fail_after(n);
    const tenon_status status = attempt.call(error);
    host.fail_never();
    const bool injected = host.refusals() != refusals;
    if (status == TENON_OK) {
      attempt.undo();
      if (!injected) return;
      ++counts.absorbed;
      continue;
    }
    const std::string where = fmt::format("{} with the host out of memory from its allocation {} on", attempt.what, n + 1);
    if (!injected) fail(fmt::format("{} failed with {}: {}", attempt.what, status_name(status), error.text()));
    expect_refusal(status, error, {TENON_OUT_OF_MEMORY}, where);
    if (attempt.wrote()) fail(where + " failed and wrote its out-parameters");
    if (host.live_blocks() != blocks)
      fail(fmt::format("{} failed and leaked {} blocks of host memory", where, host.live_blocks() - blocks));
    ++counts.refused;
    // Without a tenon_error the failure must be the same.
    host.fail_after(n);
    const tenon_status again = attempt.call(nullptr);
    host.fail_never();
    if (again == TENON_OK) {
      attempt.undo();
    } else if (again != TENON_OUT_OF_MEMORY) {
      fail(fmt::format("{}: OUT_OF_MEMORY the first time, {} the second", where, status_name(again)));
    }
    ErrorText after;
    expect_ok(attempt.call(after), after, (where + ": the same call afterwards").c_str());
    attempt.undo();
  }
}

/// A graph that needs many allocations: products with constants and parameters if the backend has MatMul, else a relu.
Net demanding_net(const CaseContext& context) {
  const auto offers = [&](tenon_op op) {
    return (context.device.capability(op, line_of(op).version) & TENON_DTYPE_BIT(TENON_DTYPE_F32)) != 0;
  };
  if (!offers(TENON_OP_MatMul)) return relu_net(1000);
  Net net;
  const std::uint32_t x = net.input(Array(TENON_DTYPE_F32, {32, 32}));
  const std::uint32_t w = net.input(Array(TENON_DTYPE_F32, {32, 32}), {}, TENON_VALUE_CONSTANT);
  const std::uint32_t y = net.output(TENON_DTYPE_F32, {32, 32});
  const bool graphs = (context.device.device_info().flags & TENON_DEVICE_SINGLE_NODE_PLANS) == 0;
  if (!graphs) {
    net.node(TENON_OP_MatMul, line_of(TENON_OP_MatMul).version, &no_attributes, {x, w}, {y});
    return net;
  }
  const std::uint32_t p = net.input(Array(TENON_DTYPE_F32, {32, 32}), {}, TENON_VALUE_PARAMETER);
  const std::uint32_t t = net.internal(TENON_DTYPE_F32, {32, 32});
  net.node(TENON_OP_MatMul, line_of(TENON_OP_MatMul).version, &no_attributes, {x, w}, {t});
  net.node(TENON_OP_MatMul, line_of(TENON_OP_MatMul).version, &no_attributes, {t, p}, {y});
  return net;
}

void out_of_memory(CaseContext& context) {
  FailureCounts counts;
  {
    Host host(context.device.info(), context.device.backend().abi_minor(), context.device.source().options);
    tenon_backend* backend = nullptr;
    const tenon_backend_table* sent = nullptr;
    exhaust(host,
            {"create", [&](tenon_error* error) { return context.device.info().create(host.table(), &backend, &sent, error); },
             [&] {
               sent->destroy(std::exchange(backend, nullptr));
               sent = nullptr;
             },
             [&] { return backend != nullptr || sent != nullptr; }},
            counts);
    if (host.live_blocks() != 0 || !host.damage().empty()) {
      fail(fmt::format("{} blocks of host memory are left after failed and undone `create`s {}", host.live_blocks(), host.damage()));
    }
  }

  Another another(context);
  Host& host = another.host();
  const tenon_backend_table& table = another.table();
  tenon_device* device = nullptr;
  exhaust(host,
          {"device_open", [&](tenon_error* error) { return table.device_open(another.backend, 0, &device, error); },
           [&] { table.device_close(std::exchange(device, nullptr)); }, [&] { return device != nullptr; }},
          counts);
  expect_ok("device_open", table.device_open, another.backend, 0, &device);
  tenon_stream* stream = nullptr;
  exhaust(host,
          {"stream_create", [&](tenon_error* e) { return table.stream_create(device, nullptr, &stream, e); },
           [&] { table.stream_destroy(std::exchange(stream, nullptr)); }, [&] { return stream != nullptr; }},
          counts);
  expect_ok("stream_create", table.stream_create, device, nullptr, &stream);
  tenon_event* event = nullptr;
  exhaust(host,
          {"event_create", [&](tenon_error* e) { return table.event_create(device, nullptr, &event, e); },
           [&] { table.event_destroy(std::exchange(event, nullptr)); }, [&] { return event != nullptr; }},
          counts);
  Made made;
  const auto free_memory = [&] { table.memory_free(std::exchange(made, Made()).memory); };
  const auto memory_written = [&] { return made.is_written(); };
  exhaust(host,
          {"memory_allocate", [&](tenon_error* e) { return allocate(table, device, TENON_MEMORY_DEVICE, 5000, made, e); }, free_memory,
           memory_written},
          counts);
  std::vector<unsigned char> bytes = pattern(5000, 3);
  exhaust(host,
          {"memory_import", [&](tenon_error* e) { return import(table, device, bytes.data(), bytes.size(), TENON_IMPORT_COPY, made, e); },
           free_memory, memory_written},
          counts);

  const Net net = demanding_net(context);
  const AbiGraph abi_graph(net);
  const tenon_plan_options options = default_options();
  std::vector<tenon_answer> answers(abi_graph.nodes.size());
  expect_ok("supports", table.supports, device, &abi_graph.graph, &options, answers.data(),
            static_cast<std::uint32_t>(sizeof(tenon_answer)));
  const bool served = std::all_of(answers.begin(), answers.end(), [](const tenon_answer& a) { return a.supported == 1; });
  if (served) {
    tenon_plan* plan = nullptr;
    exhaust(host,
            {"plan_create", [&](tenon_error* e) { return table.plan_create(device, &abi_graph.graph, &options, &plan, e); },
             [&] { table.plan_destroy(std::exchange(plan, nullptr)); }, [&] { return plan != nullptr; }},
            counts);
    expect_ok("plan_create", table.plan_create, device, &abi_graph.graph, &options, &plan);
    tenon_plan_info info{.struct_size = sizeof info};
    expect_ok("plan_info", table.plan_info, plan, &info);
    // Inputs, outputs and the workspace at aligned addresses of one block.
    constexpr std::uint64_t step = 1 << 16;
    const std::uint64_t required = step * (abi_graph.bound.size() + 1) + info.workspace_size_bytes;
    expect_ok("memory_allocate", allocate, table, device, TENON_MEMORY_DEVICE, required, made);
    const std::uint64_t address = made.address;
    expect_ok("fill", table.fill, device, address, required, 0, stream);
    std::vector<std::uint64_t> addresses;
    for (std::size_t i = 0; i < abi_graph.bound.size(); ++i) addresses.push_back(address + i * step);
    tenon_bindings bindings{
        .struct_size = sizeof bindings, .address_count = static_cast<std::uint32_t>(addresses.size()), .addresses = addresses.data()};
    // An asynchronous device may report the failure at the next stream_synchronize.
    exhaust(host,
            {"plan_execute",
             [&](tenon_error* e) {
               ++bindings.parameters_epoch;
               const tenon_status status = table.plan_execute(plan, &bindings, address + step * abi_graph.bound.size(), stream, e);
               const tenon_status waited = table.stream_synchronize(stream, status == TENON_OK ? e : nullptr);
               return status == TENON_OK ? waited : status;
             },
             [] {}},
            counts);
    table.plan_destroy(plan);
    free_memory();
  }
  table.stream_destroy(stream);
  table.device_close(device);
  another.end();
  expect_sane(context);
  context.remark =
      fmt::format("{} of {} injected failures were reported as OUT_OF_MEMORY, in the others the calls succeeded without the memory",
                  counts.refused, counts.refused + counts.absorbed);
}

}  // namespace

std::vector<Case> core_exhaustion_cases() {
  return core_cases({{"memory/out_of_memory", out_of_memory}});
}

}  // namespace tenon::conformance
