// SPDX-License-Identifier: Apache-2.0
// Profile core: what every backend must do whatever ops it has. One file of cases per subject: core_<subject>.cpp, recordings in
#include "core.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>

#include <tenon/sdk/kernel.h>

namespace tenon::conformance {

std::vector<Case> core_cases(std::initializer_list<CoreCase> list) {
  std::vector<Case> cases;
  for (const CoreCase& line : list) {
    cases.push_back({std::string("core/") + line.name, "core", "core", TENON_DTYPE_NONE, true, line.check, line.ending});
  }
  return cases;
}

std::vector<Case> core_case_list() {
  std::vector<Case> cases;
  for (const auto list : {core_library_cases, core_lifecycle_cases, core_process_cases, core_memory_cases, core_exhaustion_cases,
                          core_copy_cases, core_stream_cases, core_plan_cases, core_run_cases, core_malformed_cases, core_answer_cases,
                          core_graph_cases, core_random_graph_cases, capture_case_list, core_block_cases, core_pack_cases,
                          core_collective_cases, core_vendor_op_cases, core_extension_cases}) {
    std::vector<Case> more = list();
    std::move(more.begin(), more.end(), std::back_inserter(cases));
  }
  // The check of the host's memory comes last of the cases that share a process, followed by the cases that end theirs.
  const auto place = [](const Case& c) { return c.ending == Ending::exits ? 2 : c.name == "core/host/memory_intact" ? 1 : 0; };
  std::stable_sort(cases.begin(), cases.end(), [&](const Case& a, const Case& b) { return place(a) < place(b); });
  return cases;
}

void fail(const std::string& text) {
  throw Failure(text);
}

void expect_refusal(tenon_status status, const ErrorText& error, std::initializer_list<tenon_status> allowed, const std::string& what) {
  if (std::find(allowed.begin(), allowed.end(), status) == allowed.end()) {
    std::string names;
    for (const tenon_status s : allowed) names += (names.empty() ? "" : " or ") + status_name(s);
    fail(fmt::format("{}: expected {}, got {} ({})", what, names, status_name(status), error.text()));
  }
  if (error.text().empty()) fail(fmt::format("{}: {} without a text that says why", what, status_name(status)));
}

void on_threads(int count, const std::function<void(int)>& body) {
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      try {
        body(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

// ---------------------------------------------------------------- bytes

std::vector<unsigned char> pattern(std::size_t size, std::uint64_t seed) {
  Random random(seed);
  std::vector<unsigned char> bytes(size);
  for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random.bits());
  return bytes;
}

void upload(const CaseContext& context, std::uint64_t address, const std::vector<unsigned char>& bytes) {
  expect_ok("a copy to the device", &Device::upload, context.device, address, bytes.data(), bytes.size());
}

std::vector<unsigned char> download(const CaseContext& context, std::uint64_t address, std::size_t size) {
  std::vector<unsigned char> bytes(size);
  expect_ok("a copy from the device", &Device::download, context.device, bytes.data(), address, size);
  return bytes;
}

void expect_bytes(const std::vector<unsigned char>& expected, const std::vector<unsigned char>& got, const char* what) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (expected[i] != got[i])
      fail(fmt::format("{}: byte {} of {} is 0x{:02x}, expected 0x{:02x}", what, i, expected.size(), got[i], expected[i]));
  }
}

std::uint64_t address_of(const void* host) {
  return reinterpret_cast<std::uintptr_t>(host);
}

tenon_copy copy_of(std::uint32_t direction, std::uint64_t to, std::uint64_t from, std::uint64_t size) {
  return tenon_copy{.struct_size = sizeof(tenon_copy), .direction = direction, .destination = to, .source = from, .size_bytes = size};
}

tenon_memory_stats stats_of(const CaseContext& context) {
  tenon_memory_stats stats{.struct_size = sizeof stats};
  expect_ok("memory_stats", context.device.table().memory_stats, context.device.handle(), &stats);
  return stats;
}

// ---------------------------------------------------------------- objects

Another::Another(const CaseContext& context)
    : host_(context.device.info(), context.device.backend().abi_minor(), context.device.source().options) {
  const tenon_backend_table* sent = nullptr;
  expect_ok("create", context.device.info().create, host_.table(), &backend, &sent);
  if (backend == nullptr || sent == nullptr) fail("create returned OK and left an out-parameter NULL");
  loader::complete_table(*sent, table_);
}

Another::~Another() {
  if (backend != nullptr) table().destroy(backend);
}

void Another::end() {
  table().destroy(backend);
  backend = nullptr;
  if (host_.live_blocks() != 0) fail(fmt::format("{} blocks of host memory are left after destroy", host_.live_blocks()));
  if (!host_.damage().empty()) fail(host_.damage());
}

Stream::Stream(const CaseContext& context) : table_(context.device.table()) {
  expect_ok("stream_create", table_.stream_create, context.device.handle(), nullptr, &handle);
}

Event::Event(const CaseContext& context) : table_(context.device.table()) {
  expect_ok("event_create", table_.event_create, context.device.handle(), nullptr, &handle);
}

// ---------------------------------------------------------------- graphs

tenon_plan_options default_options() {
  return tenon_plan_options{.struct_size = sizeof(tenon_plan_options)};
}

void require_ops(const CaseContext& context, std::initializer_list<tenon_op> ops, tenon_dtype dtype) {
  for (const tenon_op op : ops) {
    const OpLine& line = line_of(op);
    if ((context.device.capability(op, line.version) & TENON_DTYPE_BIT(dtype)) != 0) continue;
    throw NotRun(fmt::format("not offered: the capability table has no {} for {}", line.name, sdk::name_of(dtype)));
  }
}

void require_graphs(const CaseContext& context) {
  if ((context.device.device_info().flags & TENON_DEVICE_SINGLE_NODE_PLANS) == 0) return;
  throw NotRun("the device takes plans of one node only (TENON_DEVICE_SINGLE_NODE_PLANS)");
}

void expect_ready(const Plan& plan) {
  if (!plan.failure().empty()) fail(plan.failure());
  if (!plan.ready()) throw Unsupported(plan.why());
}

Net relu_net(std::int64_t n) {
  Net net;
  Array x(TENON_DTYPE_F32, {n});
  for (std::int64_t i = 0; i < n; ++i) x.set(i, static_cast<double>(i - 3));
  const std::uint32_t in = net.input(std::move(x)), out = net.output(TENON_DTYPE_F32, {n});
  net.node(TENON_OP_Relu, line_of(TENON_OP_Relu).version, &no_attributes, {in}, {out});
  return net;
}

void expect_relu(const std::vector<Array>& outputs) {
  for (std::int64_t i = 0; i < outputs[0].count(); ++i) {
    const double expected = std::max(0.0, static_cast<double>(i - 3));
    if (outputs[0].at(i) != expected) fail(fmt::format("relu({}) is {}, expected {}", i - 3, outputs[0].str(i), expected));
  }
}

void require_relu(const CaseContext& context) {
  require_ops(context, {TENON_OP_Relu});
}

void expect_sane(const CaseContext& context) {
  const Memory memory(context, 4096);
  upload(context, memory.address, pattern(4096, 9));
  expect_bytes(pattern(4096, 9), download(context, memory.address, 4096), "copied to the device and back");
  const OpLine& line = line_of(TENON_OP_Relu);
  if ((context.device.capability(line.op, line.version) & TENON_DTYPE_BIT(TENON_DTYPE_F32)) != 0) expect_relu(context.run(relu_net()));
}

}  // namespace tenon::conformance
