// SPDX-License-Identifier: Apache-2.0
// A frozen program has its parameters as constants: same results, no store, and packed weights exist only in packed form.
#include "testing.h"

namespace tenon::test {
namespace {

Tensor numbers(const Shape& shape, float by, float from) {
  Tensor t = Tensor::zeros(DType::f32, shape);
  for (std::int64_t i = 0; i < t.count(); ++i) t.data<float>()[i] = from + by * static_cast<float>(i * 31 % 17 - 8);
  return t;
}

/// y = relu(batch_norm(conv(x))) twice, with enough weights to show in the allocator.
struct Net {
  static constexpr std::int64_t channels = 64;
  static constexpr std::uint64_t weight_bytes = 2 * channels * channels * 9 * sizeof(float);
  Graph graph;
  std::shared_ptr<ParameterStore> store = std::make_shared<ParameterStore>();
  Tensor x = numbers({1, channels, 7, 6}, 0.1f, 0);

  Net() {
    Value y = graph.input("x", DType::f32, x.shape());
    for (const char* name : {"first", "second"}) {
      const NameScope scope(graph, name);
      const auto vector = [&](const char* what) { return graph.parameter(std::string(name) + "/" + what, DType::f32, {channels}); };
      const Value w = graph.parameter(std::string(name) + "/w", DType::f32, {channels, channels, 3, 3});
      ops::ConvOptions options;
      options.padding = {{1, 1}, {1, 1}};
      y = ops::relu(ops::batch_norm(ops::conv(y, w, {}, options), vector("scale"), vector("bias"), vector("mean"), vector("variance")));
    }
    graph.output("y", y);
  }
  /// Makes the parameters on `device`.
  void start(const Device& device) const {
    for (const ValueInfo& info : graph.values()) {
      if (info.kind != ValueKind::parameter) continue;
      store->create(info.name, device, info.dtype, info.shape);
      store->set(info.name, numbers(info.shape, contains(info.name, "/w") ? 0.004f : 0.05f, 0.6f));
    }
  }
};

}  // namespace

TEST_CASE("freeze: the results are those with parameters, and later changes of parameters have no effect") {
  for (const char* device : {"reference:0", "openblas:0"}) {
    CAPTURE(device);
    const Context context(test_config(device));
    const Net net;
    net.start(context.default_device());
    Program living(context, net.graph, {.device = device, .parameters = net.store});
    Program frozen(context, net.graph, {.device = device, .parameters = net.store, .freeze = true});
    const std::vector<float> expected = floats(living.run({net.x})[0]);
    const std::vector<float> got = floats(frozen.run({net.x})[0]);
    REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(got[i] == doctest::Approx(expected[i]).epsilon(1e-4));
    net.store->set("second/scale", numbers({Net::channels}, 0.1f, 2));
    CHECK(floats(living.run({net.x})[0]) != expected);
    CHECK(floats(frozen.run({net.x})[0]) == got);
    CHECK(frozen.parameters()->all().empty());
    for (const NodeInfo& node : frozen.graph().nodes()) CHECK(node.op != TENON_OP_BatchNormalization);
    CHECK(contains(to_dot(frozen.graph()), "Conv"));
  }
}

TEST_CASE_FIXTURE(OnOpenblas, "freeze: without the store the device holds only packed weights, constants, arena and output") {
  const Device device = context.default_device();
  const std::uint64_t before = device.live_size_bytes();
  auto net = std::make_unique<Net>();
  net->start(device);
  const Tensor x = net->x;
  std::uint64_t living_bytes = 0;
  {
    Program living(context, net->graph, {.device = {}, .parameters = net->store});
    living.run({x});
    living_bytes = device.live_size_bytes() - before;
  }
  Program frozen(context, net->graph, {.device = {}, .parameters = net->store, .freeze = true});
  net.reset();
  frozen.run({x});
  const PlacementReport& report = frozen.placement();
  const std::uint64_t bytes = device.live_size_bytes() - before;
  CHECK(report.packed_size_bytes >= Net::weight_bytes);
  CHECK(bytes <= report.packed_size_bytes + report.workspace_size_bytes + static_cast<std::uint64_t>(2 * x.size_bytes()) + 4096);
  CHECK(bytes + Net::weight_bytes <= living_bytes);
}

TEST_CASE_FIXTURE(OnReference, "freeze: a graph with updates, a missing store and a parameter without a value are rejected by name") {
  const Net net;
  CHECK_ERROR_CONTAINS("got none", Program(context, net.graph, {.device = {}, .parameters = nullptr, .freeze = true}));
  CHECK_ERROR_CONTAINS("first/w", Program(context, net.graph, {.device = {}, .parameters = net.store, .freeze = true}));
  Graph graph;
  const Value p = graph.parameter("p", DType::f32, {3});
  graph.output("y", ops::mul(p, graph.input("x", DType::f32, {3})));
  graph.update(p, ops::mul(p, 2.0));
  const auto store = std::make_shared<ParameterStore>();
  store->create("p", context.default_device(), DType::f32, {3});
  const std::string message = message_of([&] { Program(context, graph, {.device = {}, .parameters = store, .freeze = true}); });
  CHECK(contains(message, "updates parameter 'p'"));
}

}  // namespace tenon::test
