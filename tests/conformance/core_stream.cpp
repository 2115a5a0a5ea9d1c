// SPDX-License-Identifier: Apache-2.0
// Streams and events: work on a stream runs in order, work that waits for an event runs after it, and failures are reported once.
#include <atomic>
#include <chrono>
#include <future>
#include <limits>
#include <thread>

#include "core.h"
#include "end_loop.h"

namespace tenon::conformance {
namespace {

/// Calls on one device that must succeed.
class Worker {
 public:
  explicit Worker(const CaseContext& context) : device_(context.device.handle()), table_(context.device.table()) {}
  void fill(std::uint64_t address, std::uint64_t size, int value, tenon_stream* stream) {
    expect_ok("fill", table_.fill, device_, address, size, static_cast<std::uint8_t>(value), stream);
  }
  void copy(std::uint64_t to, std::uint64_t from, std::uint64_t size, tenon_stream* stream) {
    const tenon_copy copy = copy_of(TENON_COPY_DEVICE_TO_DEVICE, to, from, size);
    expect_ok("copy", table_.copy, device_, &copy, stream);
  }
  void record(tenon_event* event, tenon_stream* stream) { expect_ok("event_record", table_.event_record, event, stream); }
  void wait(tenon_event* event, tenon_stream* stream) { expect_ok("event_wait", table_.event_wait, event, stream); }
  void synchronize(tenon_event* event) { expect_ok("event_synchronize", table_.event_synchronize, event); }
  void synchronize(tenon_stream* stream) { expect_ok("stream_synchronize", table_.stream_synchronize, stream); }

 private:
  tenon_device* device_;
  const tenon_backend_table& table_;
};

std::vector<unsigned char> all_of(std::size_t size, int value) {
  return std::vector<unsigned char>(size, static_cast<unsigned char>(value));
}

std::uint64_t large() {
  return small_sizes() ? 1 << 16 : 1 << 20;
}

void empty_stream(CaseContext& context) {
  for (int round = 0; round < 20; ++round) {
    const Stream stream(context);
    expect_ok("synchronizing a stream without work", context.device.table().stream_synchronize, stream.handle);
  }
}

void stream_order(CaseContext& context) {
  constexpr std::uint64_t size = 1 << 20;
  const Memory a(context, size), b(context, size);
  Worker worker(context);
  for (int round = 1; round <= 8; ++round) {
    worker.fill(a.address, size, round, context.device.stream());
    worker.copy(b.address, a.address, size, context.device.stream());
    worker.fill(a.address, size, 0, context.device.stream());
  }
  synchronize(context);
  expect_bytes(all_of(size, 8), download(context, b.address, size), "the last of eight copies on one stream");
}

/// One thread waits for a stream while another submits to it.
void waits_during_submissions(CaseContext& context) {
  constexpr std::uint64_t size = 1 << 12;
  constexpr int rounds = 200;
  const Memory a(context, size), b(context, size);
  const Stream stream(context);
  std::atomic<bool> submits{true};
  std::future<void> waiting = std::async(std::launch::async, [&] {
    Worker worker(context);
    while (submits) worker.synchronize(stream);
  });
  const EndLoop end(submits);
  Worker worker(context);
  for (int round = 1; round <= rounds; ++round) {
    worker.fill(a.address, size, round, stream);
    worker.copy(b.address, a.address, size, stream);
  }
  submits = false;
  waiting.get();
  worker.synchronize(stream);
  expect_bytes(all_of(size, rounds), download(context, b.address, size), "the last of 200 copies while another thread waits");
}

/// A chain of executions, copies and fills, each of which reads what the one before it wrote.
void long_chain(CaseContext& context) {
  require_relu(context);
  constexpr std::int64_t n = 10000;
  constexpr std::uint64_t bytes = n * sizeof(float);
  const Net net = relu_net(n);
  const Plan plan(context.device, net);
  expect_ready(plan);
  const Memory a(context, bytes), b(context, bytes), workspace(context, plan.info().workspace_size_bytes);
  const Stream stream(context);
  Worker worker(context);
  const Array x = net.values[0].array;
  upload(context, a.address, std::vector<unsigned char>(x.bytes(), x.bytes() + bytes));
  const std::uint64_t addresses[] = {a.address, b.address};
  tenon_bindings bindings{.struct_size = sizeof bindings, .address_count = 2, .addresses = addresses};
  const int rounds = small_sizes() ? 16 : 128;
  for (int round = 0; round < rounds; ++round) {
    expect_ok("plan_execute", context.device.table().plan_execute, plan.handle(), &bindings, workspace.address, stream.handle);
    worker.fill(a.address, bytes, 0xFF, stream);  // NaN, in case an execution runs too late
    worker.copy(a.address, b.address, bytes, stream);
    worker.fill(b.address, bytes, 0xFF, stream);
  }
  worker.synchronize(stream);
  Array y(TENON_DTYPE_F32, {n});
  expect_ok("a copy from the device", &Device::download, context.device, y.bytes(), a.address, bytes);
  expect_relu({y});
}

/// Two streams wait for each other alternately.
void cross_wait(CaseContext& context) {
  const std::uint64_t size = large();
  const Memory a(context, size), b(context, size);
  const Stream first(context), second(context);
  const Event there(context), back(context);
  Worker worker(context);
  for (int round = 1; round <= 16; ++round) {
    worker.fill(a.address, size, 0xEE, first);
    worker.fill(a.address, size, round, first);
    worker.record(there, first);
    worker.wait(there, second);
    worker.copy(b.address, a.address, size, second);
    worker.record(back, second);
    worker.wait(back, first);
    worker.copy(a.address, b.address, size, first);  // what the other stream wrote
    worker.synchronize(first);
    expect_bytes(all_of(size, round), download(context, b.address, size), "what the second stream copied after it waited for the first");
    expect_bytes(all_of(size, round), download(context, a.address, size),
                 "what the first stream copied back after it waited for the second");
  }
  worker.synchronize(second);
  // The same without checks in between: 64 hand-overs that only the events keep in order.
  for (int round = 1; round <= 64; ++round) {
    const bool even = round % 2 == 0;
    worker.copy(even ? a.address : b.address, even ? b.address : a.address, size, even ? second : first);
    worker.fill(even ? b.address : a.address, size, 0x80 + round, even ? second : first);
    worker.record(even ? back : there, even ? second : first);
    worker.wait(even ? back : there, even ? first : second);
  }
  worker.synchronize(first);
  worker.synchronize(second);
  expect_bytes(all_of(size, 16), download(context, a.address, size), "what two streams passed to each other 64 times");
  expect_bytes(all_of(size, 0x80 + 64), download(context, b.address, size), "what the last of 64 fills wrote");
}

/// Two streams wait for a first one and run concurrently; a fourth waits for both.
void diamond(CaseContext& context) {
  const std::uint64_t size = large();
  const Memory top(context, size), left(context, size), right(context, size), bottom(context, 2 * size);
  const Stream opens(context), goes_left(context), goes_right(context), closes(context);
  const Event opened(context), left_done(context), right_done(context), closed(context);
  Worker worker(context);
  for (int round = 1; round <= 8; ++round) {
    worker.wait(closed, opens);  // not recorded yet in the first round, which counts as done
    worker.fill(top.address, size, round, opens);
    worker.record(opened, opens);
    worker.wait(opened, goes_left);
    worker.wait(opened, goes_right);
    worker.copy(left.address, top.address, size, goes_left);
    worker.record(left_done, goes_left);
    worker.copy(right.address, top.address, size, goes_right);
    worker.record(right_done, goes_right);
    worker.wait(left_done, closes);
    worker.wait(right_done, closes);
    worker.copy(bottom.address, left.address, size, closes);
    worker.copy(bottom.address + size, right.address, size, closes);
    worker.fill(left.address, size, 0, closes);
    worker.fill(right.address, size, 0, closes);
    worker.record(closed, closes);
  }
  worker.synchronize(closes);
  expect_bytes(all_of(2 * size, 8), download(context, bottom.address, 2 * size), "what two streams passed to a third, eight times");
  for (const Stream* stream : {&opens, &goes_left, &goes_right}) worker.synchronize(*stream);
}

/// Streams of different threads share only the device.
void streams_on_threads(CaseContext& context) {
  const std::uint64_t size = large() / 4;
  on_threads(4, [&](int thread) {
    const Memory a(context, size), b(context, size);
    const Stream stream(context);
    const Event event(context);
    Worker worker(context);
    for (int round = 0; round < 16; ++round) {
      const int value = 16 * thread + round;
      worker.fill(a.address, size, value, stream);
      worker.copy(b.address, a.address, size, stream);
      worker.fill(a.address, size, 0, stream);
      worker.record(event, stream);
      worker.synchronize(event);
      std::vector<unsigned char> got(size);
      const tenon_copy copy = copy_of(TENON_COPY_DEVICE_TO_HOST, address_of(got.data()), b.address, size);
      expect_ok("copy", context.device.table().copy, context.device.handle(), &copy, stream.handle);
      worker.synchronize(stream);
      expect_bytes(all_of(size, value), got, fmt::format("thread {} on a stream of its own", thread).c_str());
    }
  });
}

/// Work runs although nobody waits for it: the caller only asks whether it is done.
void progress(CaseContext& context) {
  const std::uint64_t size = large();
  const Memory a(context, size), b(context, size);
  const Stream stream(context);
  const Event event(context);
  Worker worker(context);
  worker.fill(a.address, size, 0x3C, stream);
  worker.copy(b.address, a.address, size, stream);
  worker.record(event, stream);
  const auto patience = std::chrono::seconds(small_sizes() ? 10 : 60);
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    ErrorText error;
    const tenon_status status = context.device.table().event_query(event.handle, error);
    if (status == TENON_OK) break;
    if (status != TENON_NOT_READY)
      fail(fmt::format("event_query: expected OK or NOT_READY, got {} ({})", status_name(status), error.text()));
    if (std::chrono::steady_clock::now() - begin > patience) {
      fail(fmt::format("a fill and a copy are not done after {} s of event_query: submitted work must make progress without another call",
                       patience.count()));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  worker.synchronize(stream);
  expect_bytes(all_of(size, 0x3C), download(context, b.address, size), "what was written before an event that is done");
}

/// Priorities are hints: any is taken, and streams with one work as others do.
void stream_options(CaseContext& context) {
  constexpr std::uint64_t size = 4096;
  const Memory a(context, size), b(context, size);
  Worker worker(context);
  int value = 0;
  for (const std::int32_t priority : {0, 1, -1, 5, std::numeric_limits<std::int32_t>::max(), std::numeric_limits<std::int32_t>::min()}) {
    const Longer options(tenon_stream_options{.priority = priority});
    tenon_stream* made = nullptr;
    expect_ok(fmt::format("stream_create with priority {}, in a longer struct", priority).c_str(), context.device.table().stream_create,
              context.device.handle(), &options.head, &made);
    const Stream stream(context, made);
    worker.fill(a.address, size, ++value, stream);
    worker.copy(b.address, a.address, size, stream);
    worker.synchronize(stream);
    expect_bytes(all_of(size, value), download(context, b.address, size), "what a stream with a priority copied");
  }
}

/// A failure at execution is reported once, with its node, by plan_execute or the next stream_synchronize.
void error_propagation(CaseContext& context) {
  require_ops(context, {TENON_OP_Gather});
  tenon_attributes_axis attributes{.struct_size = sizeof attributes};
  const bool graphs = (context.device.device_info().flags & TENON_DEVICE_SINGLE_NODE_PLANS) == 0 &&
                      context.device.capability(TENON_OP_Relu, line_of(TENON_OP_Relu).version) != 0;
  Net net;
  Array good(TENON_DTYPE_I64, {4}), bad(TENON_DTYPE_I64, {4});
  bad.put<std::int64_t>(2, 1234);
  std::uint32_t x = net.input(Array(TENON_DTYPE_F32, {10, 3}));
  const std::uint32_t indices = net.input(good);
  if (graphs) {  // another node before it, so that its index is not 0
    const std::uint32_t positive = net.internal(TENON_DTYPE_F32, {10, 3});
    net.node(TENON_OP_Relu, line_of(TENON_OP_Relu).version, &no_attributes, {x}, {positive});
    x = positive;
  }
  const std::uint32_t y = net.output(TENON_DTYPE_F32, {4, 3});
  net.node(TENON_OP_Gather, line_of(TENON_OP_Gather).version, &attributes, {x, indices}, {y});
  const Plan plan(context.device, net);
  expect_ready(plan);
  const std::uint32_t culprit = graphs ? 1 : 0;
  const Stream stream(context);
  Plan::Bindings bindings(plan, 0xFF);
  for (int round = 0; round < 3; ++round) {
    bindings.set(indices, good);
    Outcome outcome = bindings.execute(1, stream.handle);
    if (!outcome.ok())
      fail(fmt::format("round {}: an execution with good indices failed with {}: {}", round, status_name(outcome.status), outcome.text));
    bindings.set(indices, bad);
    outcome = bindings.execute(1, stream.handle);
    if (outcome.ok()) fail("index 1234 of 10: expected INVALID_ARGUMENT from plan_execute or stream_synchronize, got OK");
    if (outcome.status != TENON_INVALID_ARGUMENT) {
      fail(fmt::format("index 1234 of 10: expected INVALID_ARGUMENT, got {} ({})", status_name(outcome.status), outcome.text));
    }
    if (outcome.text.empty()) fail("index 1234 of 10: INVALID_ARGUMENT without a text that says why");
    if (outcome.node_id != plan.id_of(culprit)) {
      fail(fmt::format("index 1234 of 10: expected node {} in tenon_error.node_id, got {}", plan.id_of(culprit), outcome.node_id));
    }
    expect_ok("stream_synchronize after the failure was reported", context.device.table().stream_synchronize, stream.handle);
  }
  bindings.set(indices, good);
  const Outcome outcome = bindings.execute(1, stream.handle);
  if (!outcome.ok())
    fail(fmt::format("after failures, an execution with good indices failed with {}: {}", status_name(outcome.status), outcome.text));
  // Another stream of the device is not affected.
  expect_sane(context);
}

/// A failure that is found later names its node, not that of another plan on the same stream.
void failure_of_one_plan(CaseContext& context) {
  require_ops(context, {TENON_OP_Gather});
  const tenon_attributes_axis attributes{.struct_size = sizeof attributes};
  constexpr std::uint32_t x = 0, indices = 1;
  const auto rows_of = [&](std::int64_t index) {
    Net net;
    Array list(TENON_DTYPE_I64, {4});
    list.put<std::int64_t>(2, index);
    net.input(Array(TENON_DTYPE_F32, {10, 3}));
    net.input(list);
    net.node(TENON_OP_Gather, line_of(TENON_OP_Gather).version, &attributes, {x, indices}, {net.output(TENON_DTYPE_F32, {4, 3})});
    return net;
  };
  const Net good = rows_of(1), bad = rows_of(1234);
  const Plan first(context.device, good), culprit(context.device, bad), last(context.device, good);
  std::vector<std::unique_ptr<Plan::Bindings>> bindings;
  for (const Plan* plan : {&first, &culprit, &last}) {
    expect_ready(*plan);
    bindings.push_back(std::make_unique<Plan::Bindings>(*plan, 0xFF));
    bindings.back()->execute();  // so that the operands are on the device
  }
  ErrorText error;
  tenon_status status = TENON_OK;
  for (const auto& one : bindings) {
    if (status == TENON_OK) status = one->execute_bare(1, error);
  }
  if (status == TENON_OK) status = context.device.synchronize(error);
  expect_refusal(status, error, {TENON_INVALID_ARGUMENT}, "index 1234 of 10 in one of three plans on a stream");
  if (error.node_id() != culprit.id_of(0)) {
    fail(fmt::format("index 1234 of 10 in the second of three plans on a stream: expected node {} in tenon_error.node_id, got {}",
                     culprit.id_of(0), error.node_id()));
  }
  synchronize(context);
  expect_sane(context);
}

// ---------------------------------------------------------------- events

void events(CaseContext& context) {
  const tenon_backend_table& table = context.device.table();
  const Event event(context);
  expect_ok("event_query of an event that was never recorded", table.event_query, event.handle);
  expect_ok("event_synchronize on an event that was never recorded", table.event_synchronize, event.handle);
  expect_ok("event_wait for an event that was never recorded", table.event_wait, event.handle, context.device.stream());
  constexpr std::uint64_t size = 1 << 20;
  const Memory memory(context, size);
  for (int round = 0; round < 3; ++round) {
    expect_ok("fill", table.fill, context.device.handle(), memory.address, size, static_cast<std::uint8_t>(round), context.device.stream());
    expect_ok("event_record", table.event_record, event.handle, context.device.stream());
    expect_ok("event_synchronize", table.event_synchronize, event.handle);
    expect_ok("event_query after event_synchronize", table.event_query, event.handle);
  }
  synchronize(context);
}

void event_between_streams(CaseContext& context) {
  constexpr std::uint64_t size = 1 << 20;
  const Memory a(context, size), b(context, size);
  const Stream first(context), second(context);
  const Event written(context);
  Worker worker(context);
  worker.fill(a.address, size, 0x11, first);
  worker.fill(a.address, size, 0x22, first);
  worker.record(written, first);
  worker.wait(written, second);
  worker.copy(b.address, a.address, size, second);
  worker.synchronize(second);
  expect_bytes(all_of(size, 0x22), download(context, b.address, size), "what a stream copied after the event it waited for");
  worker.synchronize(first);
}

/// An event that measures no time orders work as others do.
void event_without_timing(CaseContext& context) {
  const tenon_backend_table& table = context.device.table();
  constexpr std::uint64_t size = 1 << 20;
  const Memory a(context, size), b(context, size);
  const Stream first(context), second(context);
  const Longer options(tenon_event_options{.flags = TENON_EVENT_NO_TIMING});
  tenon_event* made = nullptr;
  expect_ok("event_create with TENON_EVENT_NO_TIMING, in a longer struct", table.event_create, context.device.handle(), &options.head,
            &made);
  const Event written(context, made), end(context);
  Worker worker(context);
  worker.fill(a.address, size, 0x33, first);
  worker.fill(a.address, size, 0x44, first);
  worker.record(written, first);
  worker.wait(written, second);
  worker.copy(b.address, a.address, size, second);
  worker.record(end, second);
  worker.synchronize(end);
  expect_bytes(all_of(size, 0x44), download(context, b.address, size), "what a stream copied after an event without timing");
  std::uint64_t elapsed = 0;
  ErrorText error;
  const tenon_status status = table.event_elapsed(written.handle, end.handle, &elapsed, error);
  if (status != TENON_OK) expect_refusal(status, error, {TENON_INVALID_ARGUMENT}, "event_elapsed since an event without timing");
  worker.synchronize(first);
  worker.synchronize(second);
}

/// An event that is recorded again stands for its new point.
void event_again(CaseContext& context) {
  const std::uint64_t size = large();
  const Memory a(context, size), b(context, size);
  const Stream first(context), second(context);
  const Event event(context);
  Worker worker(context);
  for (int round = 1; round <= 8; ++round) {
    worker.fill(a.address, size, 0xEE, first);
    worker.record(event, first);
    worker.fill(a.address, size, round, first);
    worker.record(event, first);
    worker.wait(event, second);
    worker.copy(b.address, a.address, size, second);
    worker.record(event, second);  // on another stream now
    worker.wait(event, first);
  }
  worker.synchronize(event);
  expect_bytes(all_of(size, 8), download(context, b.address, size), "what was copied after an event that was recorded again");
  worker.synchronize(first);
  worker.synchronize(second);
}

/// event_query of a pending event returns NOT_READY and then OK, nothing else, and never OK before its work is done.
void event_pending(CaseContext& context) {
  const std::uint64_t size = 4 * large();
  const Memory a(context, size), b(context, size);
  const Stream stream(context);
  const Event event(context);
  Worker worker(context);
  const auto done = [&] {
    ErrorText error;
    const tenon_status status = context.device.table().event_query(event.handle, error);
    if (status != TENON_OK && status != TENON_NOT_READY) {
      fail(fmt::format("event_query: expected OK or NOT_READY, got {} ({})", status_name(status), error.text()));
    }
    return status == TENON_OK;
  };
  for (int round = 1; round <= 4; ++round) {
    for (int i = 0; i < 8; ++i) worker.fill(a.address, size, i, stream);
    worker.fill(a.address, size, round, stream);
    worker.copy(b.address, a.address, size, stream);
    worker.record(event, stream);
    int patience = 2000;
    while (!done() && --patience > 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
    if (patience == 0) {
      worker.synchronize(stream);
      if (!done()) fail("event_query says NOT_READY after its stream was synchronized");
    }
    // Read on a stream that waits for nothing: only the event says that the bytes are there.
    const Stream other(context);
    std::vector<unsigned char> got(size);
    const tenon_copy copy = copy_of(TENON_COPY_DEVICE_TO_HOST, address_of(got.data()), b.address, size);
    expect_ok("copy", context.device.table().copy, context.device.handle(), &copy, other.handle);
    worker.synchronize(other);
    expect_bytes(all_of(size, round), got, "what was written before an event that is done");
  }
  worker.synchronize(stream);
}

void event_on_another_thread(CaseContext& context) {
  const std::uint64_t size = large();
  const Memory a(context, size), b(context, size);
  const Stream stream(context);
  const Event event(context);
  Worker worker(context);
  for (int round = 1; round <= 8; ++round) {
    worker.fill(a.address, size, round, stream);
    worker.copy(b.address, a.address, size, stream);
    worker.record(event, stream);
    on_threads(1, [&](int) {
      Worker there(context);
      there.synchronize(event);
      const Stream own(context);
      there.copy(a.address, b.address, size, own);
      there.synchronize(own);
    });
    expect_bytes(all_of(size, round), download(context, a.address, size), "what another thread copied after it waited for the event");
  }
}

void event_times(CaseContext& context) {
  const Event begin(context), end(context);
  const Memory memory(context, 1 << 22);
  Worker worker(context);
  worker.record(begin, context.device.stream());
  worker.fill(memory.address, 1 << 22, 1, context.device.stream());
  worker.record(end, context.device.stream());
  worker.synchronize(end);
  std::uint64_t elapsed = 0;
  expect_ok("event_elapsed", context.device.table().event_elapsed, begin.handle, end.handle, &elapsed);
  // No device needs less than 100 ns or more than a minute for 4 MiB.
  if (elapsed < 100 || elapsed > 60'000'000'000u) fail(fmt::format("filling 4 MiB took {} ns according to the events", elapsed));
}

}  // namespace

std::vector<Case> core_stream_cases() {
  return core_cases({
      {"stream/empty", empty_stream},
      {"stream/order", stream_order},
      {"stream/waits_during_submissions", waits_during_submissions},
      {"stream/long_chain", long_chain},
      {"stream/cross_wait", cross_wait},
      {"stream/diamond", diamond},
      {"stream/on_threads", streams_on_threads},
      {"stream/progress", progress},
      {"stream/options", stream_options},
      {"stream/error_propagation", error_propagation},
      {"stream/failure_of_one_plan", failure_of_one_plan},
      {"event/lifecycle", events},
      {"event/between_streams", event_between_streams},
      {"event/without_timing", event_without_timing},
      {"event/again", event_again},
      {"event/pending", event_pending},
      {"event/on_another_thread", event_on_another_thread},
      {"event/times", event_times},
  });
}

}  // namespace tenon::conformance
