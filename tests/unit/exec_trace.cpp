// SPDX-License-Identifier: Apache-2.0
// Traces: recorded events, nesting of spans, matching ids, and no recording without a trace.
#include "testing.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include <tenon/trace.h>

#include "exec/context_state.h"
#include "temporary_folder.h"

namespace tenon::test {
namespace {

using Json = nlohmann::json;

std::vector<Json> events_of(const Json& trace, const std::string& phase, const std::string& category = "") {
  std::vector<Json> result;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == phase && (category.empty() || event.value("cat", "") == category)) result.push_back(event);
  }
  return result;
}

/// Checks what Perfetto requires of a file: fields by phase, and spans on each track that are disjoint or nested.
void check_form(const Json& trace) {
  std::map<std::pair<int, int>, std::vector<std::pair<std::int64_t, std::int64_t>>> tracks;  // in nanoseconds
  std::map<std::uint64_t, int> flows;
  for (const Json& event : trace["traceEvents"]) {
    const std::string phase = event["ph"];
    REQUIRE(event["pid"].is_number_unsigned());
    REQUIRE(event["name"].is_string());
    if (phase == "M") {
      REQUIRE(event["args"].is_object());
      continue;
    }
    REQUIRE(event["ts"].get<double>() >= 0);
    const auto ns = [](const Json& us) { return static_cast<std::int64_t>(us.get<double>() * 1000 + 0.5); };
    if (phase == "X") {
      REQUIRE(event["dur"].get<double>() >= 0);
      tracks[{event["pid"].get<int>(), event["tid"].get<int>()}].emplace_back(ns(event["ts"]), ns(event["ts"]) + ns(event["dur"]));
    } else if (phase == "s" || phase == "f") {
      flows[event["id"].get<std::uint64_t>()] += phase == "s" ? 1 : -1;
    } else {
      REQUIRE(phase == "C");
      REQUIRE(event["args"]["live_size_bytes"].is_number_unsigned());
    }
  }
  for (const auto& flow : flows) CHECK(flow.second == 0);
  for (auto& track : tracks) {
    auto& spans = track.second;
    std::sort(spans.begin(), spans.end(),
              [](const auto& a, const auto& b) { return a.first != b.first ? a.first < b.first : a.second > b.second; });
    std::vector<std::int64_t> open;  // ends
    for (const auto& [begin, end] : spans) {
      while (!open.empty() && open.back() <= begin) open.pop_back();
      if (!open.empty()) CHECK(end <= open.back());
      open.push_back(end);
    }
  }
}

Graph two_layers() {
  Graph graph;
  const Value x = graph.input("x", DType::f32, {16, 8});
  const Value w = graph.parameter("w", DType::f32, {8, 4});
  const Value h = graph.apply(TENON_OP_MatMul, {x, w}, {}, {.name = "product", .shape = {}})[0];
  graph.output("y", ops::softmax(ops::relu(h)));
  return graph;
}

TEST_CASE_FIXTURE(OnOpenblas, "trace: kernels with node, algorithm, device, work and ids, each inside its plan") {
  const Graph graph = two_layers();
  Program program(context, graph);
  program.parameters()->set("w", Tensor::full(DType::f32, {8, 4}, 0.25));
  const Tensor x = Tensor::full(DType::f32, {16, 8}, 0.5);
  program.run({x});
  Trace trace(context);
  const std::vector<float> traced = floats(program.run({x})[0]);
  program.run({x});
  trace.stop();
  CHECK(floats(program.run({x})[0]) == traced);

  const Json json = Json::parse(trace.json());
  check_form(json);
  const auto kernels = events_of(json, "X", "kernel"), plans = events_of(json, "X", "plan");
  REQUIRE(plans.size() == 2);
  REQUIRE(kernels.size() == 4);
  CHECK(kernels[0]["name"] == "product");
  CHECK(kernels[0]["args"]["op"] == "MatMul");
  CHECK(kernels[0]["args"]["algorithm"] == "MatMul+relu");
  CHECK(kernels[0]["args"]["device"] == "openblas:0");
  CHECK(kernels[0]["args"]["nodes"] == 2);
  CHECK(kernels[0]["args"]["flops"] == 2 * 16 * 8 * 4 + 16 * 4);
  CHECK(kernels[0]["args"]["size_bytes"] == 4 * (16 * 8 + 8 * 4 + 16 * 4));
  CHECK(kernels[0]["args"]["node_id"] == graph.nodes()[0].id);
  CHECK(kernels[1]["args"]["algorithm"] == "Softmax");
  for (std::size_t k = 0; k < 4; ++k) {
    const Json& plan = plans[k / 2];
    CHECK(kernels[k]["args"]["correlation"] == plan["args"]["correlation"]);
    CHECK(kernels[k]["ts"].get<double>() >= plan["ts"].get<double>());
    CHECK(kernels[k]["ts"].get<double>() + kernels[k]["dur"].get<double>() <= plan["ts"].get<double>() + plan["dur"].get<double>());
  }
  CHECK(plans[0]["args"]["correlation"] != plans[1]["args"]["correlation"]);
  CHECK(plans[0]["args"]["kernels"] == 2);
  CHECK(events_of(json, "s").size() == 2);
  CHECK(events_of(json, "X", "host").size() == 2);  // two runs
  CHECK_FALSE(events_of(json, "C").empty());

  const std::vector<Trace::Kernel> sums = trace.kernels();
  REQUIRE(sums.size() == 2);
  CHECK(sums[0].node == "product");
  CHECK(sums[0].runs == 2);
  CHECK(sums[0].best_ns <= sums[0].duration_ns / 2);
  CHECK(sums[0].nodes == 2);
}

TEST_CASE_FIXTURE(OnOpenblas, "trace: the dtype of a kernel is that of the operands of its products") {
  Graph graph;
  const Value x = graph.input("x", DType::f32, {16, 8});
  const Value narrow = ops::cast(x, DType::bf16);
  graph.output("y", ops::relu(ops::matmul(narrow, ops::transpose(narrow, {1, 0}))));
  Program program(context, graph);
  const Trace trace(context);
  program.run({Tensor::full(DType::f32, {16, 8}, 0.5)});
  bool found = false;
  for (const Trace::Kernel& kernel : trace.kernels()) {
    if (kernel.op == "Cast") CHECK(kernel.dtype == DType::f32);
    if (kernel.op != "MatMul") continue;
    CHECK(kernel.dtype == DType::bf16);
    found = true;
  }
  CHECK(found);
}

TEST_CASE_FIXTURE(OnOpenblas, "trace: a change of layout moves bytes and computes nothing; its node's kernel has the node's work") {
  Graph graph;
  const Value x = graph.input("x", DType::f32, {2, 8, 12, 12});
  const Value w = graph.parameter("w", DType::f32, {16, 8, 3, 3});
  graph.output("y", ops::conv(x, w, {}));
  Program program(context, graph);
  program.parameters()->set("w", Tensor::full(DType::f32, {16, 8, 3, 3}, 0.25));
  const Trace trace(context);
  program.run({Tensor::full(DType::f32, {2, 8, 12, 12}, 0.5)});
  int convolutions = 0, conversions = 0;
  for (const Trace::Kernel& kernel : trace.kernels()) {
    CAPTURE(kernel.algorithm);
    const bool moves = kernel.algorithm.starts_with("Transpose");
    CHECK(kernel.size_bytes > 0);
    CHECK((kernel.flops == 0) == moves);
    (moves ? conversions : convolutions) += 1;
    if (moves) CHECK(kernel.size_bytes % (2 * 4) == 0);  // read and written
    if (!moves) CHECK(kernel.flops == 2 * 2 * 16 * 10 * 10 * 8 * 9);
  }
  CHECK(convolutions == 1);
  CHECK(conversions >= 1);
}

TEST_CASE_FIXTURE(OnOpenblas, "trace: without one nothing is recorded and plans are not timed") {
  Program program(context, two_layers());
  program.parameters()->set("w", Tensor::zeros(DType::f32, {8, 4}));
  const Tensor x = Tensor::zeros(DType::f32, {16, 8});
  {
    const Trace trace(context);
    program.run({x});
    CHECK(trace.event_count() > 0);
  }
  const std::size_t before = context.state()->trace->event_count();
  program.run({x});
  { const TraceSpan span(context, "nothing"); }
  CHECK(context.state()->trace->event_count() == before);
  const std::vector<Program::KernelTime> old = program.profile();
  program.run({x});
  const std::vector<Program::KernelTime> same = program.profile();  // of the last run that was timed
  REQUIRE(old.size() == same.size());
  for (std::size_t i = 0; i < old.size(); ++i) CHECK(old[i].duration_ns == same[i].duration_ns);
}

TEST_CASE("trace: copies between devices, memory and the caller's spans") {
  Config config = test_config("openblas:0");
  const Context context(config);
  Graph graph;
  Value y = ops::neg(graph.input("x", DType::f32, {256}));
  {
    const DeviceScope scope(graph, "reference:0");
    y = ops::relu(y);
  }
  graph.output("y", y);
  Program program(context, graph);
  Trace trace(context);
  {
    const TraceSpan outer(context, "outer");
    const TraceSpan inner(context, "inner \"quoted\"");
    program.run({Tensor::zeros(DType::f32, {256})});
    const Tensor held = context.default_device().empty(DType::f32, {1000});
  }
  const Json json = Json::parse(trace.json());
  check_form(json);
  const auto copies = events_of(json, "X", "copy");
  REQUIRE(copies.size() == 1);
  CHECK(copies[0]["args"]["size_bytes"] == 1024);
  std::set<std::string> names;
  for (const Json& span : events_of(json, "X", "host")) names.insert(span["name"]);
  CHECK(names == std::set<std::string>{"outer", "inner \"quoted\"", "run"});
  std::uint64_t largest = 0, smallest = ~std::uint64_t{0};
  for (const Json& counter : events_of(json, "C")) {
    largest = std::max(largest, counter["args"]["live_size_bytes"].get<std::uint64_t>());
    smallest = std::min(smallest, counter["args"]["live_size_bytes"].get<std::uint64_t>());
  }
  CHECK(largest >= smallest + 4000);
  std::set<std::string> processes;
  for (const Json& event : events_of(json, "M")) {
    if (event["name"] == "process_name") processes.insert(event["args"]["name"].get<std::string>());
  }
  CHECK(processes == std::set<std::string>{"host", "openblas:0", "reference:0"});
}

TEST_CASE_FIXTURE(OnOpenblas, "trace: the spans of a backend appear, such as the creation of a plan") {
  const Trace trace(context);
  const Program program(context, two_layers());
  const Json json = Json::parse(trace.json());
  check_form(json);
  std::size_t created = 0;
  for (const Json& span : events_of(json, "X", "host")) created += span["name"] == "plan_create" ? 1 : 0;
  CHECK(created > 0);
}

TEST_CASE_FIXTURE(OnReference, "trace: two threads on one device keep their kernels apart") {
  Trace trace(context);
  const auto work = [&] {
    Program program(context, two_layers());
    program.parameters()->set("w", Tensor::zeros(DType::f32, {8, 4}));
    for (int i = 0; i < 50; ++i) program.run({Tensor::zeros(DType::f32, {16, 8})});
  };
  std::thread other(work);
  work();
  other.join();
  trace.stop();
  const Json json = Json::parse(trace.json());
  check_form(json);
  CHECK(events_of(json, "X", "plan").size() == 100);
}

TEST_CASE_FIXTURE(OnReference, "trace: only one at a time; the next one starts empty") {
  {
    const Trace trace(context);
    CHECK_ERROR_CONTAINS("this context is already being traced", const Trace second(context));
    (void)context.apply(TENON_OP_Neg, {Tensor::scalar(1.0f)});
    CHECK(trace.kernels().size() == 1);
  }
  const Trace trace(context);
  CHECK(trace.event_count() == 0);
  (void)context.apply(TENON_OP_Neg, {Tensor::scalar(1.0f)});
  CHECK(trace.kernels().size() == 1);
  const TemporaryFolder folder;
  trace.write(folder.file("trace.json"));
  CHECK(Json::parse(folder.read("trace.json"))["otherData"]["program"] == "tenon");
  CHECK_THROWS_AS(trace.write(folder.file("no/such/folder.json")), Error);
}

TEST_CASE_FIXTURE(OnReference, "trace: gathering of batches appears on the threads that do it") {
  const Tensor x = Tensor::zeros(DType::f32, {20, 3}), y = Tensor::zeros(DType::i64, {20});
  ArrayOptions options;
  options.name = "small";
  const Trace trace(context);
  Batches batches(trace.watch(std::make_shared<ArrayDataset>(x, y, options)), {.batch_size = 5, .workers = 2});
  batches.start(0);
  while (batches.next() != nullptr) {
  }
  const Json json = Json::parse(trace.json());
  check_form(json);
  std::size_t gathered = 0;
  for (const Json& span : events_of(json, "X", "host")) gathered += span["name"] == "gather small" ? 1 : 0;
  CHECK(gathered == 4);
}

TEST_CASE_FIXTURE(OnOpenblas, "profile: kernels have their nodes, work and start time") {
  Program program(context, two_layers());
  program.parameters()->set("w", Tensor::zeros(DType::f32, {8, 4}));
  program.enable_profile(true);
  program.run({Tensor::zeros(DType::f32, {16, 8})});
  const std::vector<Program::KernelTime> kernels = program.profile();
  REQUIRE(kernels.size() == 2);
  CHECK(kernels[0].nodes == std::vector<std::string>{"product", "relu"});
  CHECK(kernels[0].op == "MatMul");
  CHECK(kernels[0].size_bytes == 4 * (16 * 8 + 8 * 4 + 16 * 4));
  CHECK(kernels[1].begin_ns >= kernels[0].begin_ns + kernels[0].duration_ns);
}

}  // namespace
}  // namespace tenon::test
