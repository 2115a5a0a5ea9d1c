// SPDX-License-Identifier: Apache-2.0
// Optional blocks, if offered: profiles, and the host's store of measurements. Recordings are in capture.cpp, packed operands in
// core_pack.cpp, BLAS is a profile of its own.
#include <algorithm>
#include <cstring>

#include "core.h"

namespace tenon::conformance {
namespace {

/// y = x w on integers.
struct Product {
  Product() {
    Array a(TENON_DTYPE_F32, {4, 8}), b(TENON_DTYPE_F32, {8, 6});
    for (std::int64_t i = 0; i < a.count(); ++i) a.set(i, static_cast<double>(i % 7 - 3));
    for (std::int64_t i = 0; i < b.count(); ++i) b.set(i, static_cast<double>(i % 5 - 2));
    expected = Array(TENON_DTYPE_F32, {4, 6});
    for (std::int64_t i = 0; i < expected.count(); ++i) {
      double sum = 0;
      for (std::int64_t k = 0; k < 8; ++k) sum += a.at(i / 6 * 8 + k) * b.at(k * 6 + i % 6);
      expected.set(i, sum);
    }
    const std::uint32_t x = net.input(std::move(a)), w = net.input(std::move(b)), y = net.output(TENON_DTYPE_F32, {4, 6});
    net.node(TENON_OP_MatMul, line_of(TENON_OP_MatMul).version, &no_attributes, {x, w}, {y});
  }
  void expect(const Outcome& outcome, const char* when) const {
    if (!outcome.ok()) fail(fmt::format("{}: execution failed with {}: {}", when, status_name(outcome.status), outcome.text));
    if (!outcome.damage.empty()) fail(fmt::format("{}: the execution {}", when, outcome.damage));
    const std::string wrong = compare(expected, outcome.outputs[0], {});
    if (!wrong.empty()) fail(fmt::format("{}: {}", when, wrong));
  }
  Net net;
  Array expected;
};

// ---------------------------------------------------------------- profiles

constexpr std::uint32_t record_size = sizeof(tenon_profile_record);

void profile(CaseContext& context) {
  const tenon_profile_table& block = block_of(context.device.table().profile, "profile");
  require_relu(context);
  constexpr std::int64_t elements = 1 << 20;  // enough to take longer than any clock's resolution
  const Net net = relu_net(elements);
  const Plan plan(context.device, net);
  expect_ready(plan);
  Plan::Bindings bindings(plan, 0xFF);
  for (bindings.execution_id = 1; bindings.execution_id <= 2; ++bindings.execution_id) {
    const Outcome outcome = bindings.execute(1);
    if (!outcome.ok()) fail(fmt::format("a profiled execution failed with {}: {}", status_name(outcome.status), outcome.text));
    expect_relu(outcome.outputs);
  }
  std::vector<tenon_profile_record> records(8);
  std::memset(static_cast<void*>(records.data()), 0x7E, records.size() * sizeof records[0]);
  std::uint32_t count = 0;
  if (block.kept < 1) fail("tenon_profile_table.kept is 0: expected the number of executions that can be read, at least 1");
  expect_ok("profile read", block.read, plan.handle(), 2, records.data(), record_size, 8, &count);
  if (count != plan.info().kernel_count)
    fail(fmt::format("{} kernels were profiled, plan_info reports {} kernels", count, plan.info().kernel_count));
  for (std::uint32_t i = 0; i < std::min<std::uint32_t>(count, 8); ++i) {
    const tenon_profile_record& record = records[i];
    if (std::memchr(record.algorithm, 0, sizeof record.algorithm) == nullptr) fail("the name of a profiled kernel does not end in NUL");
    if (record.algorithm[0] == 0) fail("a profiled kernel has no name");
    if (record.node != 0 || record.id != plan.id_of(0))
      fail(fmt::format("the kernel of node 0, id {}, is profiled as node {}, id {}", plan.id_of(0), record.node, record.id));
    if (record.fused_count < 1) fail("a profiled kernel has fused_count 0");
    if (record.duration_ns == 0 || record.duration_ns > 60'000'000'000u)
      fail(fmt::format("a relu of {} elements took {} ns according to its profile", elements, record.duration_ns));
  }
  std::uint32_t again = 0;
  tenon_profile_record guard;
  std::memset(static_cast<void*>(&guard), 0x7E, sizeof guard);
  const tenon_profile_record before = guard;
  expect_ok("profile read without a buffer", block.read, plan.handle(), 2, &guard, record_size, 0, &again);
  if (again != count) fail(fmt::format("profile read counts {} records with a buffer of 8 and {} without a buffer", count, again));
  if (std::memcmp(&guard, &before, sizeof guard) != 0) fail("profile read wrote a record without a buffer");
  bindings.execution_id = 0;
  expect_relu(bindings.execute(1).outputs);
  std::uint32_t listed = 0;
  expect_ok("profile read of id 0", block.read, plan.handle(), 0, records.data(), record_size, 8, &listed);
  if (listed != 0 && listed != count) fail(fmt::format("{} kernels are listed under id 0, {} were profiled", listed, count));
  if (listed > 0 && (records[0].begin_ns != 0 || records[0].duration_ns != 0)) fail("a kernel listed under id 0 has times");
}

/// Executions at the same time have records of their own, each `record_stride` after the one before.
void profile_of_each_execution(CaseContext& context) {
  const tenon_profile_table& block = block_of(context.device.table().profile, "profile");
  require_relu(context);
  const bool graphs = (context.device.device_info().flags & TENON_DEVICE_SINGLE_NODE_PLANS) == 0;
  constexpr std::int64_t elements = 1 << 16;
  Net net;
  std::uint32_t x = net.input(Array(TENON_DTYPE_F32, {elements}));
  for (const bool last : graphs ? std::vector{false, true} : std::vector{true}) {
    const std::uint32_t y = last ? net.output(TENON_DTYPE_F32, {elements}) : net.internal(TENON_DTYPE_F32, {elements});
    net.node(TENON_OP_Relu, line_of(TENON_OP_Relu).version, &no_attributes, {x}, {y});
    x = y;
  }
  const Plan plan(context.device, net, {.fusion = TENON_FUSION_OFF});
  expect_ready(plan);
  Plan::Bindings bindings[2] = {{plan, 0xFF}, {plan, 0xFF}};
  const Stream streams[2] = {Stream(context), Stream(context)};
  const auto read = [&](std::uint64_t id) {
    constexpr std::uint32_t longer = record_size + 16;
    std::vector<unsigned char> bytes(std::size_t{2} * longer, 0x7E);
    std::uint32_t count = 0;
    expect_ok(fmt::format("profile read of execution {}", id).c_str(), block.read, plan.handle(), id,
              reinterpret_cast<tenon_profile_record*>(bytes.data()), longer, 2, &count);
    if (count != plan.info().kernel_count)
      fail(fmt::format("execution {} has {} records, plan_info reports {} kernels", id, count, plan.info().kernel_count));
    tenon_profile_record record{};
    for (std::uint32_t i = 0; i < std::min(count, 2u); ++i) {
      std::memcpy(static_cast<void*>(&record), bytes.data() + std::size_t{i} * longer, sizeof record);
      if (record.node >= net.nodes.size() || record.id != plan.id_of(record.node))
        fail(fmt::format(
            "record {}, {} bytes after the first, has node {} and id {}: expected each record_stride bytes after the one before", i,
            i * longer, record.node, record.id));
    }
    return record;
  };
  bool different = block.kept < 2;
  std::uint64_t id = 0;
  for (int round = 0; round < 8; ++round, id += 2) {
    on_threads(2, [&](int t) {
      bindings[t].execution_id = id + 1 + static_cast<std::uint64_t>(t);
      const Outcome outcome = bindings[t].execute(1, streams[t]);
      if (!outcome.ok()) fail(fmt::format("a profiled execution failed with {}: {}", status_name(outcome.status), outcome.text));
    });
    if (block.kept < 2) continue;
    const tenon_profile_record first = read(id + 1), second = read(id + 2), again = read(id + 1);
    if (first.duration_ns != again.duration_ns) fail("the records of an execution differ from one read to the next");
    different = different || first.duration_ns != second.duration_ns;
  }
  if (!different) fail("executions at the same time had the same records 8 times: expected each to have its own");
  tenon_profile_record record;
  std::uint32_t count = 0;
  ErrorText error;
  const tenon_status status = block.read(plan.handle(), id + 99, &record, record_size, 1, &count, error);
  expect_refusal(status, error, {TENON_INVALID_ARGUMENT}, "reading the profile of an execution that never was");
}

// ---------------------------------------------------------------- the host's services

/// The host returns stored measurements; corrupt ones are measured again.
void autotune(CaseContext& context) {
  require_ops(context, {TENON_OP_MatMul});
  const Product product;
  const Device device(SecondInstance{context.device});
  const auto run = [&](const char* when) {
    const Plan plan(device, product.net);
    expect_ready(plan);
    product.expect(plan.run(), when);
  };
  run("a plan made without stored measurements");
  const auto kept = device.host().choices();
  run("a plan made with stored measurements");
  if (kept.empty()) throw NotRun("the backend stores no measurements with the host");
  for (const auto& [key, value] : kept) {
    if (key.empty() || value.empty()) fail(fmt::format("autotune_put of {} bytes under the key '{}'", value.size(), key));
  }
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{300}, std::size_t{5000}}) {
    auto broken = kept;
    for (auto& [key, value] : broken) value = pattern(size, size);
    device.host().set_choices(broken);
    run("a plan made with corrupt measurements");
  }
}

}  // namespace

std::vector<Case> core_block_cases() {
  return core_cases({
      {"profile/records", profile},
      {"profile/each_execution", profile_of_each_execution},
      {"host/autotune", autotune},
  });
}

}  // namespace tenon::conformance
