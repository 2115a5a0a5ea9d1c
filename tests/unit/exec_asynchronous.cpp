// SPDX-License-Identifier: Apache-2.0
// Errors of asynchronous devices: they are reported by the next synchronization and name op and node.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <future>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>

#include <tenon/trace.h>

#include "extra_device.h"
#include "testing.h"

namespace tenon::test {
namespace {

/// The reference backend under the name `late`: a failed plan is reported when its stream is synchronised.
struct Late : WrappedBackend<Late> {
  static constexpr const char* name = "late";
  static inline tenon_status failure;
  static inline std::uint64_t node_id;
  static inline char text[256];
  static inline bool names_node;

  static tenon_status execute(tenon_plan* plan, const tenon_bindings* bindings, std::uint64_t workspace, tenon_stream* stream,
                              tenon_error* error) {
    const tenon_status status = real->table().plan_execute(plan, bindings, workspace, stream, error);
    if (status == TENON_OK || failure != TENON_OK) return TENON_OK;
    failure = status;
    node_id = error->node_id;
    std::snprintf(text, sizeof text, "%s", error->text);
    return TENON_OK;
  }
  static tenon_status synchronize(tenon_stream* stream, tenon_error* error) {
    if (failure == TENON_OK) return real->table().stream_synchronize(stream, error);
    error->node_id = names_node ? node_id : 0;
    std::snprintf(error->text, error->text_capacity, "%s", text);
    const tenon_status status = failure;
    failure = TENON_OK;
    return status;
  }
  static void alter(tenon_backend_table& table) {
    table.plan_execute = execute;
    table.stream_synchronize = synchronize;
  }
};

/// The reference backend under the name `single`: it finds out whether two threads submit to one stream at the same time.
struct Single : WrappedBackend<Single> {
  static constexpr const char* name = "single";
  static inline std::atomic<int> submitting, overlaps, submissions;

  template <class Call>
  static tenon_status submit(const Call& call) {
    if (submitting.fetch_add(1) != 0) ++overlaps;
    ++submissions;
    std::this_thread::sleep_for(std::chrono::microseconds(200));  // so that a second thread comes meanwhile
    const tenon_status status = call();
    submitting.fetch_sub(1);
    return status;
  }
  static tenon_status execute(tenon_plan* plan, const tenon_bindings* bindings, std::uint64_t workspace, tenon_stream* stream,
                              tenon_error* error) {
    return submit([&] { return real->table().plan_execute(plan, bindings, workspace, stream, error); });
  }
  static tenon_status copy(tenon_device* device, const tenon_copy* transfer, tenon_stream* stream, tenon_error* error) {
    return submit([&] { return real->table().copy(device, transfer, stream, error); });
  }
  static void alter(tenon_backend_table& table) {
    table.plan_execute = execute;
    table.copy = copy;
    table.capture = nullptr;
  }
};

/// The reference backend under the name `shared`: two threads wait for its stream at the same time, and the first failure since the last
/// report is reported to one of them.
struct Shared : WrappedBackend<Shared> {
  static constexpr const char* name = "shared";
  static inline std::mutex mutex;  ///< guards the members below
  static inline std::condition_variable changed;
  static inline int waiting = 0;  ///< calls of stream_synchronize since it was set to 0
  static inline tenon_status failure = TENON_OK;
  static inline std::uint64_t node_id = 0;
  static inline std::string text;

  static tenon_status execute(tenon_plan* plan, const tenon_bindings* bindings, std::uint64_t workspace, tenon_stream* stream,
                              tenon_error* error) {
    const tenon_status status = real->table().plan_execute(plan, bindings, workspace, stream, error);
    const std::lock_guard lock(mutex);
    if (status == TENON_OK || failure != TENON_OK) return TENON_OK;
    failure = status;
    node_id = error->node_id;
    text = error->text;
    return TENON_OK;
  }
  static tenon_status synchronize(tenon_stream*, tenon_error* error) {
    std::unique_lock lock(mutex);
    ++waiting;
    changed.notify_all();
    changed.wait_for(lock, std::chrono::seconds(10), [] { return waiting >= 2; });
    if (failure == TENON_OK) return TENON_OK;
    error->node_id = node_id;
    std::snprintf(error->text, error->text_capacity, "%s", text.c_str());
    return std::exchange(failure, TENON_OK);
  }
  static void alter(tenon_backend_table& table) {
    table.plan_execute = execute;
    table.stream_synchronize = synchronize;
    table.capture = nullptr;
  }
};

/// A context with the additional device late:0.
Context with_late_device(const Config& config, bool names_node = true) {
  Context context(config);
  Late::failure = TENON_OK;
  Late::names_node = names_node;
  Late::add_to(context);
  return context;
}

/// A loss over labels, which fails for a label out of range, between two other nodes.
Graph labelled(const std::string& device, const std::string& then) {
  Graph graph;
  const Value scores = graph.input("scores", DType::f32, {2, 3});
  const Value labels = graph.input("labels", DType::i64, {2});
  Value loss;
  {
    const DeviceScope scope(graph, device);
    const NameScope name(graph, "head");
    loss = ops::softmax_cross_entropy(ops::tanh(scores), labels);
  }
  {
    const DeviceScope scope(graph, then);
    loss = ops::neg(loss);
  }
  const DeviceScope scope(graph, device);
  graph.output("y", ops::exp(loss));
  return graph;
}

const Tensor scores = Tensor::zeros(DType::f32, {2, 3});
Tensor labels(std::int64_t second) {
  return Tensor::of<std::int64_t>({0, second}, {2});
}

TEST_CASE("asynchronous errors: a synchronization reports device, node and op, and the program stays usable") {
  const Context context = with_late_device(test_config());
  Program program(context, labelled("late:0", "late:0"));
  CHECK(program.placement().partitions == 1);
  const std::string text = message_of([&] { program.run({scores, labels(7)}); });
  CHECK(contains(text, "device 'late:0', node 'head/softmax_cross_entropy' (SoftmaxCrossEntropyLoss): "));
  CHECK(contains(text, "label 7 at index 1"));
  CHECK_FALSE(contains(text, "sync_debug"));
  CHECK(floats(program.run({scores, labels(2)})[0])[0] == doctest::Approx(1.0 / 3));
}

TEST_CASE("asynchronous errors: without a node the message has the remedy, and sync_debug finds the node") {
  Config config = test_config();
  {
    const Context context = with_late_device(config, false);
    Program program(context, labelled("late:0", "late:0"));
    const std::string text = message_of([&] { program.run({scores, labels(7)}); });
    CHECK(contains(text, "device 'late:0': "));
    CHECK(contains(text, "label 7 at index 1"));
    CHECK(contains(text, "; set sync_debug: true to wait for each node and name the one that fails"));
  }
  config.sync_debug = true;
  const Context context = with_late_device(config, false);
  Program program(context, labelled("late:0", "late:0"));
  CHECK(program.placement().partitions == program.placement().nodes.size());
  const std::string text = message_of([&] { program.run({scores, labels(7)}); });
  CHECK(contains(text, "device 'late:0', node 'head/softmax_cross_entropy' (SoftmaxCrossEntropyLoss): "));
  CHECK_FALSE(contains(text, "sync_debug"));
  CHECK(floats(program.run({scores, labels(2)})[0])[0] == doctest::Approx(1.0 / 3));
}

TEST_CASE("asynchronous errors: a copy to another device waits and reports the failed device") {
  const Context context = with_late_device(test_config());
  Program program(context, labelled("late:0", "reference:0"));
  CHECK(program.placement().partitions == 3);
  const std::string text = message_of([&] { program.run({scores, labels(7)}); });
  CHECK(contains(text, "device 'late:0', node 'head/softmax_cross_entropy'"));
  CHECK(contains(text, "label 7 at index 1"));
  CHECK(floats(program.run({scores, labels(2)})[0])[0] == doctest::Approx(1.0 / 3));
}

TEST_CASE("asynchronous errors: of several plans on one stream, the one that failed is named") {
  const Context context = with_late_device(test_config());
  Graph graph;
  const Value scores_in = graph.input("scores", DType::f32, {2, 3}), labels_in = graph.input("labels", DType::i64, {2});
  {
    const DeviceScope scope(graph, "late:0");
    graph.output("loss", ops::softmax_cross_entropy(scores_in, labels_in));
  }
  Value other;
  {
    const DeviceScope scope(graph, "reference:0");
    other = ops::tanh(scores_in);
  }
  const DeviceScope scope(graph, "late:0");
  graph.output("other", ops::exp(other));
  Program program(context, graph);
  CHECK(program.placement().partitions == 3);
  CHECK(contains(message_of([&] {
                   program.run({scores, labels(7)});
                 }),
                 "device 'late:0', node 'softmax_cross_entropy' (SoftmaxCrossEntropyLoss): "));
}

TEST_CASE("asynchronous errors: a failure of another program is not attributed to this one") {
  const Context context = with_late_device(test_config());
  Program program(context, labelled("late:0", "late:0")), other(context, labelled("late:0", "late:0"));
  message_of([&] { other.run({scores, labels(7)}); });
  Late::failure = TENON_INVALID_ARGUMENT;  // again, of the node that `other` named
  const std::string text = message_of([&] { program.run({scores, labels(2)}); });
  CHECK(contains(text, "label 7 at index 1"));
  CHECK(contains(text, "; it is a failure of another program on this device"));
  CHECK_FALSE(contains(text, "node '"));
}

TEST_CASE("asynchronous errors: of two threads that wait for one failure of their device, one gets it, and both go on") {
  const Context context(test_config());
  Shared::add_to(context);
  Program failing(context, labelled("shared:0", "shared:0")), other(context, labelled("shared:0", "shared:0"));
  int named = 0;
  for (int round = 0; round < 20; ++round) {
    CAPTURE(round);
    {
      const std::lock_guard lock(Shared::mutex);
      Shared::waiting = 0;
    }
    const auto fail = [&] { return message_of([&] { failing.run({scores, labels(7)}); }); };
    const auto succeed = [&] { return message_of([&] { other.run({scores, labels(2)}); }); };
    std::string own, others;
    if (round % 2 == 0) {
      std::future<std::string> later = std::async(std::launch::async, succeed);
      own = fail();
      others = later.get();
    } else {
      std::future<std::string> later = std::async(std::launch::async, fail);
      others = succeed();
      own = later.get();
    }
    CHECK((own == "no error") != (others == "no error"));
    if (own != "no error") {
      ++named;
      CHECK_MESSAGE(contains(own, "device 'shared:0', node 'head/softmax_cross_entropy' (SoftmaxCrossEntropyLoss): "), own);
    } else {
      CHECK_MESSAGE(contains(others, "label 7 at index 1"), others);
      CHECK_MESSAGE(contains(others, "; it is a failure of another program on this device"), others);
    }
    const std::lock_guard lock(Shared::mutex);
    Shared::waiting = 2;
  }
  MESSAGE("the thread whose program failed got ", named, " of 20 failures");
  for (Program* program : {&failing, &other}) CHECK(floats(program->run({scores, labels(2)})[0])[0] == doctest::Approx(1.0 / 3));
}

TEST_CASE("streams: programs and copies of two threads take turns to submit to the stream of their device") {
  const Context context(test_config());
  Single::add_to(context);
  Single::overlaps = 0;
  Single::submissions = 0;
  Graph graph;
  const Value x = graph.input("x", DType::f32, {64});
  graph.output("y", ops::tanh(x));
  ProgramOptions options;
  options.device = "single:0";
  const auto work = [&] {
    Program program(context, graph, options);
    for (int run = 0; run < 20; ++run) CHECK(floats(program.run({Tensor::zeros(DType::f32, {64})})[0].to_host())[0] == 0);
  };
  std::future<void> other = std::async(std::launch::async, work);
  work();
  other.get();
  CHECK(Single::submissions.load() >= 2 * 20 * 3);  // an input, a plan and a result each
  CHECK(Single::overlaps.load() == 0);
}

TEST_CASE("sync_debug: the same results on synchronous devices") {
  Config config = test_config("openblas:0");
  const auto run = [&] {
    const Context context(config);
    Program program(context, labelled("openblas:0", "reference:0"));
    return floats(program.run({Tensor::of<float>({1, -2, 3, 0.5f, 0, 1}, {2, 3}), labels(1)})[0])[0];
  };
  const float expected = run();
  config.sync_debug = true;
  CHECK(run() == doctest::Approx(expected));
  CHECK(config_from_text("sync_debug: true").sync_debug);
}

TEST_CASE("trace: an asynchronous device is synchronised, and its kernels are inside their plans") {
  const Context context = with_late_device(test_config());
  Program program(context, labelled("late:0", "late:0"));
  const Trace trace(context);
  program.run({scores, labels(2)});
  const auto json = nlohmann::json::parse(trace.json());
  std::size_t kernels = 0, waits = 0, copies = 0;
  for (const auto& event : json["traceEvents"]) {
    if (event["ph"] != "X") continue;
    kernels += event["cat"] == "kernel" ? 1 : 0;
    copies += event["cat"] == "copy" ? 1 : 0;
    waits += contains(event["name"], "wait") ? 1 : 0;
  }
  CHECK(kernels >= 2);
  CHECK(copies == 2);  // both inputs: the device cannot access host memory
  CHECK(waits > 0);
}

}  // namespace
}  // namespace tenon::test
