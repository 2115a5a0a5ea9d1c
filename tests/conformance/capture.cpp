// SPDX-License-Identifier: Apache-2.0
// The capture block, if offered: recording executes nothing, a replay does what was recorded, and packed parameters stay current.
#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <future>
#include <utility>
#include <vector>

#include "case.h"
#include "end_loop.h"
#include "memory.h"

namespace tenon::conformance {
namespace {

[[noreturn]] void fail(const std::string& text) {
  throw Failure(text);
}

const tenon_capture_table& block_of(const CaseContext& context) {
  const tenon_capture_table* block = context.device.table().capture;
  if (block == nullptr) throw Unsupported("the backend records nothing (tenon_backend_table.capture is NULL)");
  if (block->begin == nullptr || block->end == nullptr || block->replay == nullptr || block->destroy == nullptr) {
    fail("the capture block has an empty slot: begin, end, replay and destroy are needed together");
  }
  return *block;
}

/// A stream to record on, and the last recording.
class Recorder {
 public:
  explicit Recorder(const CaseContext& context) : context_(context), block_(block_of(context)) {
    expect_ok("stream_create", context.device.table().stream_create, context.device.handle(), nullptr, &stream);
  }
  ~Recorder() {
    drop();
    context_.device.table().stream_destroy(stream);
  }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  void begin() {
    ErrorText error;
    const tenon_status status = block_.begin(stream, error);
    if (status == TENON_UNSUPPORTED) throw Unsupported("this device records nothing: " + error.text());
    expect_ok(status, error, "capture begin");
  }
  void end() {
    drop();
    expect_ok("capture end", block_.end, stream, &capture_);
    if (capture_ == nullptr) fail("capture end returned OK and left its out-parameter NULL");
  }
  /// Ends a recording in which a call was refused. The status of `end` is the backend's choice.
  void give_up() {
    drop();
    ErrorText ignored;
    if (block_.end(stream, &capture_, ignored) != TENON_OK) capture_ = nullptr;
  }
  void submit(std::uint64_t execution_id = 0) {
    expect_ok("capture replay", block_.replay, capture_, context_.device.stream(), execution_id);
  }
  void replay(std::uint64_t execution_id = 0) {
    submit(execution_id);
    expect_ok("stream_synchronize", &Device::synchronize, context_.device);
  }
  void drop() {
    if (capture_ != nullptr) block_.destroy(std::exchange(capture_, nullptr));
  }
  tenon_stream* stream = nullptr;

 private:
  const CaseContext& context_;
  const tenon_capture_table& block_;
  tenon_capture* capture_ = nullptr;
};

using Floats = std::vector<float>;

/// Device memory of a few numbers.
struct Numbers {
  Numbers(const CaseContext& c, const Floats& start) : context(c), count(start.size()), memory(c, count * sizeof(float)) { set(start); }
  void set(const Floats& values) {
    expect_ok("a copy to the device", &Device::upload, context.device, memory.address, values.data(), count * sizeof(float));
  }
  void expect(const Floats& expected, const char* when) const {
    Floats got(count);
    expect_ok("a copy from the device", &Device::download, context.device, got.data(), memory.address, count * sizeof(float));
    for (std::size_t i = 0; i < count; ++i) {
      if (got[i] != expected[i]) fail(fmt::format("{}: element {} is {}, expected {}", when, i, got[i], expected[i]));
    }
  }
  const CaseContext& context;
  const std::size_t count;
  Memory memory;
};

/// A plan with its memory.
struct Work {
  Work(const CaseContext& c, const Net& net, std::vector<std::uint64_t> bound)
      : context(c), plan(c.device, net), addresses(std::move(bound)), workspace(c, plan.ready() ? plan.info().workspace_size_bytes : 0) {
    if (!plan.ready()) throw Unsupported(plan.why());
  }
  tenon_status enqueue(tenon_stream* stream, std::uint64_t epoch, tenon_error* error) const {
    tenon_bindings bindings{.struct_size = sizeof bindings,
                            .address_count = static_cast<std::uint32_t>(addresses.size()),
                            .addresses = addresses.data(),
                            .parameters_epoch = epoch,
                            .execution_id = execution_id};
    return context.device.table().plan_execute(plan.handle(), &bindings, workspace.address, stream, error);
  }
  void execute(std::uint64_t epoch = 1) const {
    expect_ok("plan_execute", &Work::enqueue, *this, context.device.stream(), epoch);
    synchronize(context);
  }
  /// Records an execution. Throws Unsupported for a refusal with a reason.
  void record(Recorder& recorder, std::uint64_t epoch = 1) const {
    recorder.begin();
    ErrorText error;
    const tenon_status status = enqueue(recorder.stream, epoch, error);
    if (status != TENON_OK) {
      recorder.give_up();
      if (status == TENON_UNSUPPORTED && !error.text().empty()) throw Unsupported(error.text());
      expect_ok(status, error, "plan_execute while recording");
    }
    recorder.end();
  }
  const CaseContext& context;
  const Plan plan;
  const std::vector<std::uint64_t> addresses;
  const Memory workspace;
  std::uint64_t execution_id = 0;
};

constexpr tenon_attributes_none no_attributes{sizeof(tenon_attributes_none), 0};

Net relu_net(std::int64_t n = 4) {
  Net net;
  const std::uint32_t x = net.input(Array(TENON_DTYPE_F32, {n})), y = net.output(TENON_DTYPE_F32, {n});
  net.node(TENON_OP_Relu, line_of(TENON_OP_Relu).version, &no_attributes, {x}, {y});
  return net;
}

// ---------------------------------------------------------------- cases

void replays_compute(CaseContext& context) {
  const Net net = relu_net();
  Numbers x(context, {1, -2, 3, -4}), y(context, {9, 9, 9, 9});
  const Work work(context, net, {x.memory.address, y.memory.address});
  Recorder recorder(context);
  work.execute();
  y.set({9, 9, 9, 9});
  work.record(recorder);
  y.expect({9, 9, 9, 9}, "after a recording, which executes nothing");
  recorder.replay();
  y.expect({1, 0, 3, 0}, "after a replay");
  x.set({-1, 2, -3, 4});
  recorder.replay();
  y.expect({0, 2, 0, 4}, "after a second replay on other numbers");
  recorder.drop();
  x.set({5, 6, 7, 8});
  work.execute();
  y.expect({5, 6, 7, 8}, "executed after the recording was destroyed");
}

void copies_in_order(CaseContext& context) {
  Numbers a(context, {1, 2, 3, 4}), b(context, {5, 6, 7, 8});
  Recorder recorder(context);
  recorder.begin();
  const std::uint64_t size = 4 * sizeof(float);
  const tenon_copy copy{sizeof copy, TENON_COPY_DEVICE_TO_DEVICE, b.memory.address, a.memory.address, size, nullptr, 0, 0};
  expect_ok("a copy within the device while recording", context.device.table().copy, context.device.handle(), &copy, recorder.stream);
  expect_ok("fill while recording", context.device.table().fill, context.device.handle(), a.memory.address, size, 0, recorder.stream);
  recorder.end();
  a.expect({1, 2, 3, 4}, "after a recording, which executes nothing");
  b.expect({5, 6, 7, 8}, "after a recording, which executes nothing");
  recorder.replay();
  a.expect({0, 0, 0, 0}, "filled after the copy");
  b.expect({1, 2, 3, 4}, "copied before the fill");
}

/// One thread waits for a stream while another replays a recording on it.
void waits_during_replays(CaseContext& context) {
  const Net net = relu_net();
  Numbers x(context, {1, -2, 3, -4}), y(context, {9, 9, 9, 9});
  const Work work(context, net, {x.memory.address, y.memory.address});
  Recorder recorder(context);
  work.execute();
  work.record(recorder);
  std::atomic<bool> replays{true};
  std::future<void> waiting = std::async(std::launch::async, [&] {
    while (replays) expect_ok("stream_synchronize", context.device.table().stream_synchronize, context.device.stream());
  });
  const EndLoop end(replays);
  for (int round = 0; round < 500; ++round) recorder.submit();
  replays = false;
  waiting.get();
  synchronize(context);
  y.expect({1, 0, 3, 0}, "after 500 replays while another thread waits");
}

void begin_and_end_pair(CaseContext& context) {
  const tenon_capture_table& block = block_of(context);
  Recorder recorder(context);
  recorder.begin();
  ErrorText error;
  if (block.begin(recorder.stream, error) == TENON_OK) fail("a second begin on a stream that is being recorded succeeded");
  if (error.text().empty()) fail("a second begin is refused without a text that says why");
  recorder.give_up();
  tenon_capture* capture = nullptr;
  ErrorText second;
  if (block.end(recorder.stream, &capture, second) == TENON_OK) fail("capture end without begin succeeded");
  if (capture != nullptr) fail("a failed capture end wrote its out-parameter");
  recorder.begin();
  recorder.end();
  recorder.replay();
}

/// Other streams execute while one is being recorded.
void only_its_stream(CaseContext& context) {
  const Net net = relu_net();
  Numbers x(context, {1, -2, 3, -4}), y(context, {9, 9, 9, 9});
  const Work work(context, net, {x.memory.address, y.memory.address});
  work.execute();
  y.set({9, 9, 9, 9});
  Recorder recorder(context);
  recorder.begin();
  work.execute();
  y.expect({1, 0, 3, 0}, "executed on the device's stream while another was recorded");
  recorder.end();
  y.set({9, 9, 9, 9});
  recorder.replay();
  y.expect({9, 9, 9, 9}, "after the replay of an empty recording");
}

/// A plan that packs parameters refuses to be recorded until it has packed them; others accept any epoch and read parameters in place.
void parameters(CaseContext& context) {
  Net net;
  Array weights(TENON_DTYPE_F32, {2, 2});
  const std::uint32_t a = net.input(Array(TENON_DTYPE_F32, {1, 2}));
  const std::uint32_t w = net.input(weights, {}, TENON_VALUE_PARAMETER), y = net.output(TENON_DTYPE_F32, {1, 2});
  net.node(TENON_OP_MatMul, line_of(TENON_OP_MatMul).version, &no_attributes, {a, w}, {y});
  Numbers left(context, {1, 1}), right(context, {1, 2, 3, 4}), result(context, {9, 9});
  const Work work(context, net, {left.memory.address, right.memory.address, result.memory.address});
  Recorder recorder(context);
  work.execute(1);
  result.expect({4, 6}, "executed");

  right.set({5, 6, 7, 8});
  recorder.begin();
  ErrorText error;
  const tenon_status status = work.enqueue(recorder.stream, 2, error);
  if (status == TENON_OK) {
    recorder.end();
    recorder.replay();
    result.expect({12, 14}, "recorded under a new parameters_epoch");
    right.set({1, 0, 0, 1});
    recorder.replay();
    result.expect({1, 1}, "replayed after the parameters had changed, though recording under a new parameters_epoch was accepted");
    return;
  }
  recorder.give_up();
  if (status != TENON_UNSUPPORTED || error.text().empty()) {
    fail(fmt::format("recording under a new parameters_epoch: expected OK, or UNSUPPORTED with a reason, got {} ({})", status_name(status),
                     error.text()));
  }
  work.execute(2);
  result.expect({12, 14}, "executed under a new parameters_epoch");
  work.record(recorder, 2);
  left.set({1, 0});
  recorder.replay();
  result.expect({5, 6}, "recorded under the epoch of the last execution");
}

/// A recording that is made with an execution id measures its kernels in every replay.
void replays_are_profiled(CaseContext& context) {
  const tenon_profile_table* profile = context.device.table().profile;
  if (profile == nullptr) throw Unsupported("the backend profiles nothing (tenon_backend_table.profile is NULL)");
  const Net net = relu_net(1 << 16);  // enough to take longer than any clock's resolution
  const Floats numbers(1 << 16, 1);
  Numbers x(context, numbers), y(context, numbers);
  Work work(context, net, {x.memory.address, y.memory.address});
  Recorder recorder(context);
  work.execute();
  work.execution_id = 1;
  work.record(recorder);
  for (const std::uint64_t id : {7, 8}) {
    recorder.replay(id);
    tenon_profile_record records[8] = {};
    std::uint32_t count = 0;
    expect_ok("profile read of a replay", profile->read, work.plan.handle(), id, records, sizeof records[0], 8, &count);
    if (count != work.plan.info().kernel_count)
      fail(fmt::format("a replay has {} profile records, plan_info reports {} kernels", count, work.plan.info().kernel_count));
    if (records[0].id != work.plan.id_of(0))
      fail(fmt::format("the kernel of node id {} is profiled as id {} in a replay", work.plan.id_of(0), records[0].id));
    if (records[0].duration_ns == 0 || records[0].duration_ns > 60'000'000'000u)
      fail(fmt::format("a replayed relu of {} elements took {} ns according to its profile", numbers.size(), records[0].duration_ns));
  }
  recorder.replay();
}

void nothing_left(CaseContext& context) {
  const Net net = relu_net();
  Numbers x(context, {1, -2, 3, -4}), y(context, {9, 9, 9, 9});
  const Work work(context, net, {x.memory.address, y.memory.address});
  Recorder recorder(context);
  const auto round = [&] {
    work.record(recorder);
    recorder.replay();
    recorder.drop();
  };
  work.execute();
  round();
  const auto live = [&] {
    tenon_memory_stats stats{.struct_size = sizeof stats};
    expect_ok("memory_stats", context.device.table().memory_stats, context.device.handle(), &stats);
    return stats.live_size_bytes;
  };
  const std::uint64_t before = live();
  const std::int64_t blocks = context.device.host().live_blocks();
  for (int i = 0; i < 10; ++i) round();
  if (live() != before) fail("recordings that were destroyed leaked device memory");
  if (context.device.host().live_blocks() != blocks) fail("recordings that were destroyed leaked host memory");
}

}  // namespace

std::vector<Case> capture_case_list() {
  std::vector<Case> cases;
  const auto add = [&](const char* name, void (*check)(CaseContext&)) {
    cases.push_back({std::string("core/capture/") + name, "core", "core", TENON_DTYPE_NONE, false, check});
  };
  add("replays_compute", replays_compute);
  add("copies_in_order", copies_in_order);
  add("waits_during_replays", waits_during_replays);
  add("begin_and_end_pair", begin_and_end_pair);
  add("only_its_stream", only_its_stream);
  add("parameters", parameters);
  add("replays_are_profiled", replays_are_profiled);
  add("nothing_left", nothing_left);
  return cases;
}

}  // namespace tenon::conformance
