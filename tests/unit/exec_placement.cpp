// SPDX-License-Identifier: Apache-2.0
// Placement of nodes: several devices and backends in one graph, the placement log, soft placement.
#include "testing.h"

#include <nlohmann/json.hpp>

#include "log_file.h"

namespace tenon::test {
namespace {

/// The mean square of relu(x w + b), with a gradient step for w and b.
Graph small_network(const std::string& first, const std::string& second) {
  Graph graph;
  const Value x = graph.input("x", DType::f32, {8, 4});
  const Value w = graph.parameter("w", DType::f32, {4, 3});
  const Value b = graph.parameter("b", DType::f32, {3});
  Value h;
  {
    const NameScope name(graph, "hidden");
    const DeviceScope device(graph, first);
    h = ops::relu(ops::matmul(x, w) + b);
  }
  Value loss;
  {
    const NameScope name(graph, "loss");
    const DeviceScope device(graph, second);
    loss = ops::reduce_mean(h * h);
  }
  graph.output("loss", loss);
  const std::vector<Value> gradient = gradients(loss, {w, b});
  graph.update(w, w - ops::mul(gradient[0], 0.5));
  graph.update(b, b - ops::mul(gradient[1], 0.5));
  return graph;
}

/// The losses of three steps and the weights after them.
std::vector<float> train(const Context& context, const Graph& graph, PlacementReport& report, const std::string& device = {}) {
  Program program(context, graph, {.device = device});
  std::vector<float> values;
  for (int i = 0; i < 32; ++i) values.push_back(0.07f * static_cast<float>((i * 7) % 11 - 4));
  program.parameters()->set("w", Tensor::of(std::vector<float>(values.begin(), values.begin() + 12), {4, 3}));
  program.parameters()->set("b", Tensor::of<float>({0.1f, 0.2f, -0.1f}, {3}));
  std::vector<float> result;
  for (int step = 0; step < 3; ++step) result.push_back(floats(program.run({Tensor::of(values, {8, 4})})[0])[0]);
  for (const char* name : {"w", "b"}) {
    const std::vector<float> parameter = floats(program.parameters()->get(name));
    result.insert(result.end(), parameter.begin(), parameter.end());
  }
  report = program.placement();
  return result;
}

TEST_CASE("placement: two virtual devices give the results of one, and the report counts the copies") {
  Config config = test_config();
  config.virtual_devices = {{"reference:0", 2, 0}};
  const Context context(config);
  PlacementReport one, two;
  const std::vector<float> expected = train(context, small_network("reference:0", "reference:0"), one);
  CHECK(train(context, small_network("reference:0", "reference:1"), two) == expected);
  CHECK(one.copies.empty());
  CHECK(one.partitions == 1);
  CHECK(two.partitions > 1);
  CHECK(two.moved() == 0);
  REQUIRE_FALSE(two.copies.empty());
  std::uint64_t bytes = 0;
  for (const PlannedCopy& copy : two.copies) {
    CHECK(copy.from != copy.to);
    bytes += copy.size_bytes;
  }
  CHECK(two.bytes_copied_per_run == bytes);
  CHECK(two.copies_inserted == two.copies.size());
  CHECK(contains(two.str(), "reference:0 -> reference:1, 96 bytes"));  // the hidden layer's result: f32(8,3)
}

TEST_CASE("placement: two backends share one graph, and agree with each single backend") {
  Config config = test_config("auto");
  const Context context(config);
  PlacementReport mixed, report;
  const std::vector<float> both = train(context, small_network("openblas:0", "reference:0"), mixed);
  for (const char* device : {"openblas:0", "reference:0"}) {
    const std::vector<float> single = train(context, small_network(device, device), report, device);
    CHECK(report.copies.empty());
    REQUIRE(single.size() == both.size());
    for (std::size_t i = 0; i < both.size(); ++i) CHECK(both[i] == doctest::Approx(single[i]).epsilon(1e-5));
  }
  std::size_t there = 0;
  for (const Placement& placement : mixed.nodes) {
    const bool loss = contains(placement.node, "loss/");
    if (contains(placement.node, "hidden/")) CHECK(placement.device == "openblas:0");
    if (loss) CHECK(placement.device == "reference:0");
    there += loss ? 1 : 0;
  }
  CHECK(there > 1);
  CHECK_FALSE(mixed.copies.empty());
}

TEST_CASE("placement: the copies of a run are those in the report") {
  Config config = test_config();
  config.virtual_devices = {{"reference:0", 2, 0}};
  const Context context(config);
  Program program(context, small_network("reference:0", "reference:1"));
  program.parameters()->set("w", Tensor::zeros(DType::f32, {4, 3}));
  program.parameters()->set("b", Tensor::zeros(DType::f32, {3}));
  const Tensor x = Tensor::zeros(DType::f32, {8, 4});
  program.run({x});
  const auto bytes = [&] {
    const ContextProfile profile = context.profile();
    return std::make_pair(profile.device_to_device.copies, profile.device_to_device.size_bytes);
  };
  const auto before = bytes();
  program.run({x});
  const auto after = bytes();
  CHECK(after.first - before.first == program.placement().copies_inserted);
  CHECK(after.second - before.second == program.placement().bytes_copied_per_run);
}

TEST_CASE("placement log: devices, then a line for each node with its kernel") {
  Config config = test_config("openblas:0");
  config.backends.use = {"openblas", "reference"};
  config.log_device_placement = true;
  LogFile file(config);
  const Context context(config);
  const DeviceInfo &fast = context.devices()[0], &oracle = context.devices()[1];
  const std::string devices = "Device mapping:\nopenblas:0 (cpu:0) -> " + fast.product + ", " + fast.description +
                              "\nreference:0 (cpu:1) -> " + oracle.product + ", " + oracle.description + "\n";
  CHECK(file.text() == devices);
  CHECK(context.device_mapping() == devices);

  Graph graph;
  const Value x = graph.input("x", DType::f32, {2, 3});
  const Value w = graph.input("w", DType::f32, {3, 2});
  Value h = ops::relu(ops::matmul(x, w));
  {
    const DeviceScope scope(graph, "reference:0");
    h = ops::neg(h);
  }
  graph.output("y", h);
  const Program program(context, graph);
  const std::string nodes =
      "op MatMul 'matmul' in device openblas:0 (MatMul+relu)\n"
      "op Relu 'relu' in device openblas:0 (no kernel of its own)\n"
      "op Neg 'neg' in device reference:0 (Neg)\n";
  CHECK(file.text() == devices + nodes);
  CHECK(program.placement().mapping() == nodes);

  const auto json = nlohmann::json::parse(program.placement().json());
  CHECK(json["nodes"][0]["algorithm"] == "MatMul+relu");
  CHECK(json["nodes"][0]["device"] == "openblas:0");
  CHECK(json["nodes"][0]["output_size_bytes"] == 16);
  CHECK(json["nodes"][1]["algorithm"] == "");
  CHECK(json["nodes"][0]["inputs"] == nlohmann::json::array());
  CHECK(json["nodes"][1]["inputs"] == nlohmann::json{"matmul"});
  CHECK(json["nodes"][2]["inputs"] == nlohmann::json{"relu"});
  CHECK(json["copies"] == nlohmann::json::parse(R"([{"value": "relu", "from": "openblas:0", "to": "reference:0", "size_bytes": 16}])"));
  CHECK(json["partitions"] == 2);
}

TEST_CASE("soft placement: the next best device is used, with one warning for all requests of the missing one") {
  Config config = test_config("gpu:0");
  config.backends.use = {"reference", "openblas"};
  config.logging.level = LogLevel::warning;
  config.soft_placement = true;
  LogFile file(config);
  const Context context(config);
  CHECK(context.default_device().name() == "reference:0");
  Graph graph;
  Value y = graph.input("x", DType::f32, {1});
  {
    const DeviceScope scope(graph, "gpu:0");
    y = ops::neg(ops::relu(y));
  }
  {
    const DeviceScope scope(graph, "openblas:3");
    y = ops::tanh(y);
  }
  graph.output("y", y);
  const Program program(context, graph);
  const PlacementReport& report = program.placement();
  CHECK(report.nodes[0].device == "reference:0");
  CHECK(report.nodes[0].requested == "gpu:0");
  CHECK(report.nodes[0].reason == "soft_placement: there is no gpu:0");
  CHECK(report.nodes[2].device == "openblas:0");  // the same backend is preferred to the first in order
  CHECK(report.moved() == 3);
  CHECK(count_of(file.text(), "device 'gpu:0' not found") == 1);
  CHECK(count_of(file.text(), "soft_placement uses openblas:0 instead") == 1);
}

TEST_CASE("soft placement: without it a missing device stays an error") {
  Config config = test_config("gpu:0");
  const Context context(config);
  CHECK_ERROR_CONTAINS("device 'gpu:0' not found; available: ", (void)context.default_device());
}

TEST_CASE("placement: the layer's device overrides the rule, the rule overrides the program's device") {
  Config config = test_config("openblas:0");
  config.placement = {{"hidden*", "reference:0"}};
  const Context context(config);
  Graph graph;
  const Value x = graph.input("x", DType::f32, {2});
  Value y;
  {
    const NameScope name(graph, "hidden");
    y = ops::relu(x);
    const DeviceScope device(graph, "openblas:0");
    y = ops::neg(y);
  }
  graph.output("y", ops::tanh(y));
  const Program program(context, graph);
  const auto& nodes = program.placement().nodes;
  CHECK(nodes[0].device == "reference:0");
  CHECK(nodes[1].device == "openblas:0");
  CHECK(nodes[2].device == "openblas:0");
}

}  // namespace
}  // namespace tenon::test
