// SPDX-License-Identifier: Apache-2.0
// Programs on a device with capture: what is recorded and when, results of replays, and when runs are executed anyway.
#include <algorithm>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include <tenon/communicator.h>
#include <tenon/trace.h>

#include "core/log.h"
#include "exec/replay.h"
#include "extra_device.h"
#include "malloc_counter.h"
#include "recording_backend.h"
#include "temporary_folder.h"
#include "testing.h"

namespace tenon::test {
namespace {

using recording::tape;
using Floats = std::vector<float>;

/// A context with the additional device tape:0.
Context with_tape(const Config& config = test_config(), tenon_backend_query_fn query = recording::query) {
  tape = {};
  Context context(config);
  exec::DeviceEntry entry = context.state()->entries.back();
  entry.info.flags = 0;
  add_device(context, "tape", query, entry);
  return context;
}

struct OnTape {
  const Context context = with_tape();
};
const ProgramOptions on_tape{.device = "tape:0"};

/// The same backend with slots that return invalid answers.
tenon_backend_table bent;
template <tenon_status (*create_bent)(const tenon_backend_table&)>
tenon_status query_bent(const tenon_host_info* host, tenon_backend_info* out_info) {
  static tenon_status (*create)(const tenon_host*, tenon_backend**, const tenon_backend_table**, tenon_error*) = nullptr;
  const tenon_status status = recording::query(host, out_info);
  create = out_info->create;
  out_info->create = [](const tenon_host* services, tenon_backend** out_backend, const tenon_backend_table** out_table,
                        tenon_error* error) {
    const tenon_status created = create(services, out_backend, out_table, error);
    if (created != TENON_OK) return created;
    const tenon_status bending = create_bent(**out_table);
    *out_table = &bent;
    return bending;
  };
  return status;
}
tenon_status refuse_without_end(const tenon_backend_table& table) {
  bent = table;
  bent.supports = [](tenon_device*, const tenon_graph* graph, const tenon_plan_options*, tenon_answer* out_answers, std::uint32_t,
                     tenon_error*) {
    for (std::uint32_t i = 0; i < graph->node_count; ++i) {
      out_answers[i].reason = 99;
      std::memset(out_answers[i].text, 'n', sizeof out_answers[i].text);
    }
    return tenon_status{TENON_OK};
  };
  return TENON_OK;
}
tenon_status fail_without_end(const tenon_backend_table& table) {
  bent = table;
  bent.plan_create = [](tenon_device*, const tenon_graph*, const tenon_plan_options*, tenon_plan**, tenon_error* error) {
    std::memset(error->text, 'f', error->text_capacity);
    return tenon_status{4711};
  };
  return TENON_OK;
}
tenon_status expect_everything(const tenon_backend_table& table) {
  bent = table;
  bent.plan_info = [](tenon_plan*, tenon_plan_info* out_info, tenon_error*) {
    out_info->workspace_size_bytes = ~std::uint64_t{0};
    return tenon_status{TENON_OK};
  };
  return TENON_OK;
}

Tensor pair(float a, float b) {
  return Tensor::of<float>({a, b}, {2});
}

/// y = -(x + x): two kernels.
Graph doubled() {
  Graph graph;
  const Value x = graph.input("x", DType::f32, {2});
  graph.output("y", ops::neg(x + x));
  return graph;
}

/// y = -(x w), w (2, 2): a product that packs its parameter, and a kernel after it.
Graph projected() {
  Graph graph;
  const Value x = graph.input("x", DType::f32, {1, 2});
  graph.output("y", ops::neg(ops::matmul(x, graph.parameter("w", DType::f32, {2, 2}))));
  return graph;
}
const Tensor ones = Tensor::full(DType::f32, {1, 2}, 1);
void set_weights(Program& program, float value) {
  program.parameters()->set("w", Tensor::full(DType::f32, {2, 2}, value));
}

TEST_CASE("replay: unterminated text of a backend is cut at its capacity") {
  const Context refusing = with_tape(test_config(), query_bent<refuse_without_end>);
  const std::string refusal = message_of([&] { Program(refusing, doubled(), on_tape); });
  CHECK_MESSAGE(contains(refusal, std::string(239, 'n')), refusal);
  CHECK_FALSE(contains(refusal, std::string(240, 'n')));
  const Context failing = with_tape(test_config(), query_bent<fail_without_end>);
  const std::string failure = message_of([&] { Program(failing, doubled(), on_tape); });
  CHECK_MESSAGE(contains(failure, std::string(1024, 'f')), failure);
  CHECK_FALSE(contains(failure, std::string(1025, 'f')));
}

TEST_CASE("replay: a workspace that no memory can hold is rejected") {
  const Context context = with_tape(test_config(), query_bent<expect_everything>);
  const std::string refusal = message_of([&] { Program(context, doubled(), on_tape); });
  CHECK_MESSAGE(contains(refusal, "bytes of workspace, got 18446744073709551615"), refusal);
}

TEST_CASE("replay: the third run is recorded, and later runs replay it with their own inputs") {
  {
    const Context context = with_tape();
    Program program(context, doubled(), on_tape);
    for (int run = 1; run <= 6; ++run) {
      const auto x = static_cast<float>(run);
      CHECK(floats(program.run({pair(x, 10)})[0]) == Floats{-2 * x, -20});
      CHECK(tape.recorded == (run < 3 ? 0 : 1));
      CHECK(tape.replayed == std::max(run - 2, 0));
      CHECK(tape.kernels == 2 * run);
    }
    const PlacementReport& report = program.placement();
    CHECK(report.records == 1);
    CHECK(report.replays == 4);
    CHECK(contains(report.str(), "replay: from the third run at the same addresses on; 1 recorded, 4 replayed"));
    CHECK(nlohmann::json::parse(report.json())["replays"] == 4);
    CHECK(tape.live == 1);
  }
  CHECK(tape.live == 0);
}

TEST_CASE_FIXTURE(OnTape, "replay: inputs on the device are read in place; alternating buffers have separate recordings") {
  Program program(context, doubled(), on_tape);
  const Device device = context.device("tape:0");
  const Tensor even = pair(1, 2).to(device), odd = pair(3, 4).to(device);
  for (int run = 0; run < 10; ++run) {
    CHECK(floats(program.run({run % 2 == 0 ? even : odd})[0]) == (run % 2 == 0 ? Floats{-2, -4} : Floats{-6, -8}));
  }
  CHECK(tape.recorded == 2);
  CHECK(tape.replayed == 6);
}

TEST_CASE_FIXTURE(OnTape, "replay: results may be written to the caller's tensors") {
  Program program(context, doubled(), on_tape);
  std::vector<Tensor> first{program.make_output(0)}, second{program.make_output(0)};
  const std::vector<Tensor> inputs{pair(1, 2)};
  for (int run = 0; run < 5; ++run) {
    program.run(inputs, first);
    program.run(inputs, second);
  }
  CHECK(tape.recorded == 2);
  CHECK(tape.replayed == 6);
  CHECK(floats(first[0]) == Floats{-2, -4});
  CHECK(floats(second[0]) == Floats{-2, -4});
}

TEST_CASE_FIXTURE(OnTape, "replay: addresses that never recur are not recorded, and of many sets the last used are kept") {
  Program program(context, doubled(), on_tape);
  const Device device = context.device("tape:0");
  std::vector<Tensor> inputs;
  for (int i = 0; i < 6; ++i) inputs.push_back(pair(1, static_cast<float>(i)).to(device));
  for (int round = 0; round < 4; ++round) {
    for (const Tensor& x : inputs) program.run({x});
  }
  CHECK(tape.recorded == 0);
  for (const Tensor& x : inputs) {
    for (int run = 0; run < 4; ++run) CHECK(floats(program.run({x})[0])[1] == -2 * x.to_host().data<float>()[1]);
  }
  CHECK(tape.recorded == 6);
  CHECK(tape.live == 4);
}

TEST_CASE_FIXTURE(OnTape, "replay: changed parameters are packed again by an execution") {
  Program program(context, projected(), on_tape);
  float weight = 1;
  for (int change = 0; change < 8; ++change, weight += 1) {
    set_weights(program, weight);
    for (int run = 0; run < 6; ++run) CHECK(floats(program.run({ones})[0]) == Floats{-2 * weight, -2 * weight});
    CHECK(tape.packs == change + 1);
    CHECK(program.placement().records == static_cast<std::uint64_t>(change + 1));
  }
  CHECK(tape.replayed == 4 + 7 * 5);
}

TEST_CASE_FIXTURE(OnTape, "replay: of programs that share a packed parameter each executes once in every epoch") {
  const auto store = std::make_shared<ParameterStore>();
  const ProgramOptions shared{.device = "tape:0", .parameters = store};
  Graph wide;
  wide.output("y", ops::neg(ops::matmul(wide.input("x", DType::f32, {3, 2}), wide.parameter("w", DType::f32, {2, 2}))));
  Program one(context, projected(), shared), three(context, wide, shared);
  const Tensor more = Tensor::full(DType::f32, {3, 2}, 1);
  for (int change = 1; change < 5; ++change) {
    set_weights(one, static_cast<float>(change));
    for (int run = 0; run < 6; ++run) {  // the other program comes first in every second epoch
      for (Program* program : {change % 2 == 0 ? &three : &one, change % 2 == 0 ? &one : &three}) {
        CHECK(floats(program->run({program == &one ? ones : more})[0])[0] == static_cast<float>(-2 * change));
      }
    }
    CHECK(tape.packs == change);
  }
  CHECK(one.placement().records == 4);
  CHECK(three.placement().records == 4);
}

TEST_CASE_FIXTURE(OnTape, "replay: if parameters change in almost every run the program executes instead") {
  Program program(context, projected(), on_tape);
  for (int change = 0; change < 10; ++change) {
    set_weights(program, static_cast<float>(change));
    const int runs = change == 0 ? 3 : 2;
    for (int run = 0; run < runs; ++run) CHECK(floats(program.run({ones})[0])[0] == static_cast<float>(-2 * change));
  }
  CHECK(program.placement().records == 4);
  CHECK(tape.live == 0);
  CHECK(contains(program.placement().replay, "no longer: 4 consecutive recordings were used only once"));
}

TEST_CASE_FIXTURE(OnTape, "replay: an update is visible to the next replay, although it starts a new epoch each time") {
  Graph graph;
  const Value x = graph.input("x", DType::f32, {2}), sum = graph.parameter("sum", DType::f32, {2});
  const Value next = sum + ops::neg(x);
  graph.update(sum, next);
  graph.output("old", ops::neg(sum));
  Program program(context, graph, on_tape);
  program.parameters()->set("sum", pair(0, 100));
  for (int run = 0; run < 8; ++run) {
    const auto done = static_cast<float>(run);
    CHECK(floats(program.run({pair(1, 2)})[0]) == Floats{done, 2 * done - 100});
  }
  CHECK(floats(program.parameters()->get("sum")) == Floats{-8, 84});
  CHECK(tape.recorded == 1);
  CHECK(tape.replayed == 6);
}

TEST_CASE_FIXTURE(OnTape, "replay: values that depend only on parameters are recomputed when these change, and replays read them") {
  Graph graph;
  const Value x = graph.input("x", DType::f32, {2}), w = graph.parameter("w", DType::f32, {2});
  graph.output("y", ops::neg(x + ops::neg(w * w)));
  Program program(context, graph, on_tape);
  for (int change = 1; change <= 5; ++change) {
    const auto weight = static_cast<float>(change);
    program.parameters()->set("w", pair(weight, 0));
    for (int run = 0; run < 4; ++run) CHECK(floats(program.run({pair(1, 2)})[0]) == Floats{weight * weight - 1, -2});
  }
  CHECK(program.placement().records == 2);  // before and after the first change, which shows that the plan tolerates changes
  CHECK(program.placement().replays == 18);
}

TEST_CASE_FIXTURE(OnTape, "replay: a training step whose products pack parameters is executed each time, with right results") {
  Graph graph;
  const Value x = graph.input("x", DType::f32, {1, 2}), w = graph.parameter("w", DType::f32, {2, 2});
  graph.output("y", ops::matmul(x, w));
  graph.update(w, w + w);
  Program program(context, graph, on_tape);
  set_weights(program, 1);
  float weight = 1;
  for (int run = 0; run < 6; ++run, weight *= 2) CHECK(floats(program.run({ones})[0])[0] == 2 * weight);
  CHECK(tape.replayed == 0);
  CHECK(tape.live == 0);
  CHECK(program.placement().replay == "from the third run at the same addresses on");
}

TEST_CASE_FIXTURE(OnTape, "replay: an error of a replayed kernel names its node, and the next replay succeeds") {
  Graph graph;
  const Value x = graph.input("x", DType::f32, {2});
  {
    const NameScope name(graph, "head");
    graph.output("y", ops::log(ops::neg(x)));
  }
  Program program(context, graph, on_tape);
  for (int run = 0; run < 4; ++run) program.run({pair(-1, -1)});
  REQUIRE(tape.replayed == 2);
  const std::string text = message_of([&] { program.run({pair(1, -1)}); });
  CHECK(tape.replayed == 3);
  CHECK(contains(text, "device 'tape:0', node 'head/log' (Log): log: of a negative number"));
  CHECK(floats(program.run({pair(-1, -1)})[0]) == Floats{0, 0});
  CHECK(tape.recorded == 1);
}

TEST_CASE_FIXTURE(OnTape, "replay: after a failed recording the program executes and never records again") {
  Program program(context, doubled(), on_tape);
  tape.fail_end = true;
  const TemporaryFolder folder;
  const std::uint32_t level = log::level();
  log::set_level(TENON_LOG_WARNING);
  log::set_file(folder.file("log"));
  for (int run = 0; run < 5; ++run) CHECK(floats(program.run({pair(1, 2)})[0]) == Floats{-2, -4});
  log::set_file("");
  log::set_level(level);
  CHECK(contains(folder.read("log"), "device 'tape:0': a recording failed, so its program is slower from now on: cannot end a recording"));
  CHECK(tape.kernels == 10);
  CHECK(program.placement().replay == "no longer: cannot end a recording: the tape has torn");
}

TEST_CASE_FIXTURE(OnTape, "replay: a replay that cannot be enqueued is an error, and the next run records again") {
  Program program(context, doubled(), on_tape);
  for (int run = 0; run < 4; ++run) program.run({pair(1, 2)});
  tape.fail_replay = 1;
  CHECK_ERROR_CONTAINS("device 'tape:0'", program.run({pair(1, 2)}));
  CHECK(floats(program.run({pair(2, 3)})[0]) == Floats{-4, -6});
  CHECK(tape.recorded == 2);
  CHECK(tape.live == 1);
}

TEST_CASE_FIXTURE(OnTape, "replay: traced and measured runs are replayed too, from a recording that measures its kernels") {
  Program program(context, doubled(), on_tape);
  for (int run = 0; run < 4; ++run) program.run({pair(1, 2)});
  REQUIRE(tape.replayed == 2);
  {
    const Trace trace(context);
    program.run({pair(1, 2)});
    const auto json = nlohmann::json::parse(trace.json());
    std::size_t kernels = 0;
    for (const auto& event : json["traceEvents"]) kernels += event.value("cat", "") == "kernel" ? 1 : 0;
    CHECK(kernels == 2);
  }
  CHECK(tape.recorded == 2);
  program.enable_profile(true);
  for (int run = 0; run < 3; ++run) {
    CHECK(floats(program.run({pair(1, 2)})[0]) == Floats{-2, -4});
    const std::vector<Program::KernelTime> times = program.profile();
    REQUIRE(times.size() == 2);
    CHECK(times[0].op != times[1].op);
    CHECK(times[1].begin_ns >= times[0].begin_ns + times[0].duration_ns);
    CHECK(times[1].begin_ns > 0);
  }
  CHECK(tape.recorded == 2);
  CHECK(tape.replayed == 6);
  program.enable_profile(false);
  CHECK(floats(program.run({pair(2, 3)})[0]) == Floats{-4, -6});
  CHECK(program.profile().empty());
  CHECK(tape.recorded == 3);  // without events
  CHECK(tape.replayed == 7);
  CHECK(tape.live == 1);
}

TEST_CASE("replay: never if disabled, debugged, checked, a single launch, or on several devices; the report has the reason") {
  const auto reason = [](const Config& config, const Graph& graph) {
    const Context context = with_tape(config);
    Program program(context, graph, on_tape);
    for (int run = 0; run < 5; ++run) program.run({pair(1, 2)});
    CHECK(tape.recorded == 0);
    return program.placement().replay;
  };
  Config config = test_config();
  config.capture = Capture::off;
  CHECK(reason(config, doubled()) == "never: capture is off");
  config = test_config();
  config.sync_debug = true;
  CHECK(reason(config, doubled()) == "never: sync_debug waits for each node");
  config = test_config();
  config.check_numerics = CheckNumerics::outputs;
  CHECK(reason(config, doubled()) == "never: check_numerics reads results");

  Graph one;
  one.output("y", ops::neg(one.input("x", DType::f32, {2})));
  CHECK(reason(test_config(), one) == "never: it is one launch already");
  Graph host;
  host.output("y", ops::tanh(ops::neg(host.input("x", DType::f32, {2}))));
  CHECK(contains(reason(test_config(), host), "never: Tanh '"));
  Graph two;
  Value between = ops::neg(two.input("x", DType::f32, {2}));
  {
    const DeviceScope scope(two, "reference:0");
    between = ops::exp(between);
  }
  two.output("y", between + between);
  CHECK(reason(test_config(), two) == "never: it runs on several devices");

  const Context context = with_tape();
  CHECK(Program(context, doubled(), {.device = "reference:0"}).placement().replay.empty());
}

TEST_CASE_FIXTURE(OnTape, "replay: copies within the device are part of the recording and counted in every run") {
  Graph graph;
  const Value a = graph.parameter("a", DType::f32, {2}), b = graph.parameter("b", DType::f32, {2});
  graph.update(a, b);
  graph.update(b, a);
  Program program(context, graph, on_tape);
  program.parameters()->set("a", pair(1, 1));
  program.parameters()->set("b", pair(2, 2));
  for (int run = 0; run < 7; ++run) program.run(std::initializer_list<Tensor>{});
  CHECK(floats(program.parameters()->get("a")) == Floats{2, 2});
  CHECK(floats(program.parameters()->get("b")) == Floats{1, 1});
}

/// Two ranks, one of them on the tape: each has collectives between its plans.
struct Ranks {
  explicit Ranks(const Context& context) {
    for (int r = 0; r < 2; ++r) {
      Graph graph;
      const Value x = graph.input("x", DType::f32, {2});
      const Value sum = ops::all_reduce({ops::neg(x + x)})[0];
      const Value again = ops::all_reduce({ops::relu(sum * sum) + x})[0];
      graph.output("y", ops::neg(again));
      graph.output("own", ops::relu(x));
      graph.output("sent", ops::broadcast({ops::relu(ops::neg(x))}, 1)[0]);
      programs.push_back(std::make_unique<Program>(
          context, graph, ProgramOptions{.device = r == 0 ? "tape:0" : "reference:0", .communicator = ranks[static_cast<std::size_t>(r)]}));
    }
  }
  /// The results of the rank on the tape and the errors of both.
  std::pair<std::vector<Floats>, std::vector<std::string>> run(float a, float b, const RunOptions& options = {}) {
    std::vector<std::string> errors(2);
    std::vector<Floats> results;
    std::thread other([&] { errors[1] = message_of([&] { programs[1]->run({pair(b, b)}); }); });
    errors[0] = message_of([&] {
      for (const Tensor& result : programs[0]->run({pair(a, a)}, options)) results.push_back(floats(result));
    });
    other.join();
    return {results, errors};
  }
  void check(float a, float b) {
    const auto [results, errors] = run(a, b);
    for (const std::string& error : errors) REQUIRE(error == "no error");
    const float sum = -2 * a - 2 * b, again = 2 * sum * sum + a + b;
    CHECK(results[0] == Floats{-again, -again});
    CHECK(results[1] == Floats{std::max(a, 0.0f), std::max(a, 0.0f)});
    CHECK(results[2] == Floats{std::max(-b, 0.0f), std::max(-b, 0.0f)});
  }
  std::vector<std::shared_ptr<Communicator>> ranks = local_communicators(2);
  std::vector<std::unique_ptr<Program>> programs;
};

TEST_CASE_FIXTURE(OnTape, "replay: collectives are executed between the pieces of a recording; each rank replays by itself") {
  Ranks both(context);
  for (int run = 1; run <= 6; ++run) both.check(static_cast<float>(run), 1 - static_cast<float>(run));
  const PlacementReport& report = both.programs[0]->placement();
  CHECK(report.replay == "from the third run at the same addresses on, between its collectives");
  CHECK(report.records == 1);
  CHECK(report.replays == 4);
  CHECK(tape.recorded >= 3);  // before, between and after the two sums
  CHECK(tape.replayed == 4 * tape.recorded);
  CHECK(both.programs[1]->placement().replay.empty());
}

TEST_CASE_FIXTURE(OnTape, "replay: a rank whose recording fails executes, and the others do not notice") {
  Ranks both(context);
  tape.fail_end = true;
  for (int run = 1; run <= 4; ++run) both.check(static_cast<float>(run), 2);
  CHECK(tape.live == 0);
  CHECK(both.programs[0]->placement().replays == 0);
  CHECK(contains(both.programs[0]->placement().replay, "no longer: cannot end a recording"));
}

TEST_CASE_FIXTURE(OnTape,
                  "replay: a replay that fails between collectives ends the ranks with its reason, when the pieces before have run") {
  int pieces = 0;
  bool pending = false;
  for (int failing = 1; failing == 1 || failing <= pieces; ++failing) {
    CAPTURE(failing);
    tape = {};
    {
      Ranks both(context);
      for (int run = 1; run <= 4; ++run) both.check(1, 2);
      pieces = tape.recorded;
      tape.fail_replay = failing;
      const std::vector<std::string> errors = both.run(1, 2).second;
      CHECK_MESSAGE(contains(errors[0], "the tape does not turn"), errors[0]);
      CHECK_MESSAGE(contains(errors[1], "rank 0 ended the group: "), errors[1]);
      pending = pending || tape.pending_at_failure;
      CHECK(tape.replayed == 2 * pieces + failing - 1);
    }
    CHECK(tape.live == 0);
    CHECK(tape.destroyed_early == 0);
  }
  CHECK(pieces >= 3);
  CHECK(pending);
}

TEST_CASE_FIXTURE(OnTape, "replay: recordings outlive their work if a collective between them fails") {
  const std::vector<std::shared_ptr<Communicator>> ranks = local_communicators(2);
  Graph graph;
  const Value x = graph.input("x", DType::f32, {2});
  graph.output("y", ops::neg(ops::broadcast({ops::neg(x + x)}, 1)[0]));
  {
    Program here(context, graph, {.device = "tape:0", .communicator = ranks[0]});
    Program there(context, graph, {.device = "reference:0", .communicator = ranks[1]});
    for (int run = 0; run < 4; ++run) {
      std::thread other([&] { there.run({pair(1, 2)}); });
      CHECK(floats(here.run({pair(3, 4)})[0]) == Floats{2, 4});
      other.join();
    }
    REQUIRE(here.placement().replays == 2);
    const int replayed = tape.replayed;
    ranks[1]->abort("no more");
    CHECK_ERROR_CONTAINS("rank 1 ended the group: no more", here.run({pair(3, 4)}));
    CHECK(tape.replayed == replayed + 1);
  }
  CHECK(tape.live == 0);
  CHECK(tape.destroyed_early == 0);
}

TEST_CASE_FIXTURE(OnTape, "replay: a recording that ends with another exception is closed, and the next one is made") {
  exec::Replay replay(context.device("tape:0").state());
  const std::vector<std::uint64_t> addresses{1};
  const auto record = [&] {
    while (replay.next(addresses, 1, false) == exec::Replay::Action::execute) replay.executed(1);
    return replay.record(1, 2, [&](std::size_t piece, tenon_stream*) {
      if (piece == 1) throw std::bad_alloc();
    });
  };
  CHECK_THROWS_AS(record(), std::bad_alloc);
  CHECK(tape.live == 0);
  CHECK_THROWS_AS(record(), std::bad_alloc);  // the stream is not recording any more
  CHECK(tape.recorded == 4);
  CHECK(tape.live == 0);
}

#ifndef TENON_MALLOC_IS_TAKEN
TEST_CASE_FIXTURE(OnTape, "replay: a replay allocates nothing") {
  Program program(context, projected(), on_tape);
  set_weights(program, 1);
  const std::vector<Tensor> inputs{ones};
  for (int run = 0; run < 4; ++run) program.run(inputs);
  const long before = allocations.load();
  for (int run = 0; run < 10; ++run) program.run(inputs);
  CHECK(allocations.load() == before);
  CHECK(tape.replayed == 12);
}
#endif

}  // namespace
}  // namespace tenon::test
