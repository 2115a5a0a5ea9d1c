// SPDX-License-Identifier: Apache-2.0
// Answers of `supports` that need a second question: a backend that fails the first, and groups that plans split.
#include <cstdio>

#include "extra_device.h"
#include "log_file.h"
#include "testing.h"

namespace tenon::test {
namespace {

bool has(const tenon_graph& graph, tenon_op op) {
  for (std::uint32_t n = 0; n < graph.node_count; ++n) {
    if (graph.nodes[n].op == op) return true;
  }
  return false;
}

/// Fails every question about a graph with Tanh.
struct Moody : WrappedBackend<Moody> {
  static constexpr const char* name = "moody";
  static inline int questions = 0;
  static inline tenon_status failure = TENON_INTERNAL;

  static tenon_status supports(tenon_device* device, const tenon_graph* graph, const tenon_plan_options* options, tenon_answer* out_answers,
                               std::uint32_t answer_stride, tenon_error* error) {
    ++questions;
    if (!has(*graph, TENON_OP_Tanh)) return real->table().supports(device, graph, options, out_answers, answer_stride, error);
    std::snprintf(error->text, error->text_capacity, "no idea what Tanh is");
    return failure;
  }
  static void alter(tenon_backend_table& table) { table.supports = supports; }
};

/// Puts all nodes into one group, which it supports only as Relu and Neg together.
struct Tied : WrappedBackend<Tied> {
  static constexpr const char* name = "tied";

  static tenon_status supports(tenon_device*, const tenon_graph* graph, const tenon_plan_options*, tenon_answer* out_answers, std::uint32_t,
                               tenon_error*) {
    const bool whole = has(*graph, TENON_OP_Relu) && has(*graph, TENON_OP_Neg);
    for (std::uint32_t n = 0; n < graph->node_count; ++n) {
      out_answers[n].supported = whole ? 1 : 0;
      out_answers[n].reason = whole ? TENON_REASON_NONE : TENON_REASON_GRAPH;
      out_answers[n].group = 1;
      if (!whole) std::snprintf(out_answers[n].text, sizeof out_answers[n].text, "Relu and Neg only together");
    }
    return TENON_OK;
  }
  static void alter(tenon_backend_table& table) { table.supports = supports; }
};

/// neg(tanh(relu(x))) with tanh on a device of its own.
Graph chain(const std::string& device, const std::string& middle) {
  Graph graph;
  graph.set_device(device);
  Value y = ops::relu(graph.input("x", DType::f32, {3}));
  {
    const DeviceScope scope(graph, middle);
    y = ops::tanh(y);
  }
  graph.output("y", ops::neg(y));
  return graph;
}

Config warning_config(Fallback fallback) {
  Config config = test_config();
  config.fallback = fallback;
  config.logging.level = LogLevel::warning;
  return config;
}

const Placement& placement_of(const Program& program, const std::string& node) {
  const auto& nodes = program.placement().nodes;
  return *std::find_if(nodes.begin(), nodes.end(), [&](const Placement& p) { return p.node == node; });
}

TEST_CASE("answers: a backend that fails the question is asked about each node, with one warning") {
  Config config = warning_config(Fallback::allow);
  LogFile file(config);
  const Context context(config);
  Moody::failure = TENON_INTERNAL;
  Moody::add_to(context);
  Moody::questions = 0;
  Program program(context, chain("moody:0", "moody:0"));
  CHECK(Moody::questions == 4);  // all together, then each of three
  CHECK(placement_of(program, "relu").device == "moody:0");
  CHECK(placement_of(program, "neg").device == "moody:0");
  CHECK(placement_of(program, "tanh").device != "moody:0");
  CHECK(placement_of(program, "tanh").reason == "the capability query failed: no idea what Tanh is");
  CHECK(floats(program.run({Tensor::of<float>({-1, 0, 1}, {3})})[0])[0] == 0.0f);
  const Program again(context, chain("moody:0", "moody:0"));
  const std::string log = file.text();
  CHECK(count_of(log, "the capability query for 3 nodes failed (no idea what Tanh is)") == 1);
  CHECK(contains(log, "report this to the vendor of backend 'moody'"));
}

TEST_CASE("answers: under the policy error, the node that the backend fails on is named") {
  const Context context(test_config());
  Moody::failure = TENON_INVALID_ARGUMENT;
  Moody::add_to(context);
  const std::string text = message_of([&] { const Program program(context, chain("moody:0", "moody:0")); });
  CHECK(contains(text, "node 'tanh' (Tanh) cannot run on moody:0: the capability query failed: no idea what Tanh is"));
}

TEST_CASE("answers: a lost device is an error, not a refusal") {
  const Context context(warning_config(Fallback::allow));
  Moody::failure = TENON_DEVICE_LOST;
  Moody::add_to(context);
  CHECK(contains(message_of([&] { const Program program(context, chain("moody:0", "moody:0")); }),
                 "device 'moody:0': the capability query failed: no idea what Tanh is"));
}

TEST_CASE("answers: a group in one plan stays together") {
  const Context context(test_config());
  Tied::add_to(context);
  Graph graph;
  graph.set_device("tied:0");
  graph.output("y", ops::neg(ops::relu(graph.input("x", DType::f32, {3}))));
  Program program(context, graph);
  CHECK(program.placement().partitions == 1);
  CHECK(placement_of(program, "relu").device == "tied:0");
  CHECK(floats(program.run({Tensor::of<float>({-1, 0, 1}, {3})})[0])[2] == -1.0f);
}

TEST_CASE("answers: a group that plans split is asked about again, and what is then refused moves with a reason") {
  Config config = warning_config(Fallback::warn);
  LogFile file(config);
  const Context context(config);
  Tied::add_to(context);
  Program program(context, chain("tied:0", "reference:0"));
  for (const char* node : {"relu", "neg"}) {
    CHECK(placement_of(program, node).device != "tied:0");
    CHECK(placement_of(program, node).reason ==
          "a group of nodes is split over 2 plans, and for its plan of 1 node the backend says: Relu and Neg only together");
  }
  CHECK(contains(file.text(), "2 of 3 nodes cannot run on the requested device: Neg x1, Relu x1"));
  CHECK(floats(program.run({Tensor::of<float>({-1, 0, 1}, {3})})[0])[0] == 0.0f);

  const Context strict(test_config());
  Tied::add_to(strict);
  CHECK(contains(message_of([&] { const Program none(strict, chain("tied:0", "reference:0")); }),
                 "node 'relu' (Relu) cannot run on tied:0: a group of nodes is split over 2 plans"));
}

}  // namespace
}  // namespace tenon::test
