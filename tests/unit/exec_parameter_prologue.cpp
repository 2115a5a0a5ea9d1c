// SPDX-License-Identifier: Apache-2.0
// Nodes that depend only on parameters run when these change: results are those of the original graph.
#include <algorithm>
#include <set>
#include <string>

#include "testing.h"

namespace tenon::test {
namespace {

constexpr const char* devices[] = {"reference:0", "openblas:0"};

std::vector<float> numbers(std::int64_t count, float by, float from) {
  std::vector<float> list;
  for (std::int64_t i = 0; i < count; ++i) list.push_back(from + by * static_cast<float>(i * 31 % 17 - 8));
  return list;
}

/// y = relu(batch_norm(conv(x))) twice, the second convolution with a bias and groups.
struct Net {
  Graph graph;
  std::shared_ptr<ParameterStore> store = std::make_shared<ParameterStore>();

  Net() {
    Value y = graph.input("x", DType::f32, {2, 3, 6, 5});
    y = block("first", y, 8, 1, false);
    y = block("second", y, 4, 2, true);
    graph.output("y", y);
  }
  void start() const {
    for (const auto& [name, tensor] : store->all()) {
      const bool positive = contains(name, "variance");
      store->set(name,
                 Tensor::of<float>(numbers(tensor.shape().count(), positive ? 0.05f : 0.1f, positive ? 0.6f : 0.02f), tensor.shape()));
    }
  }

 private:
  Value block(const std::string& name, Value x, std::int64_t filters, std::int64_t groups, bool biased) {
    const NameScope scope(graph, name);
    const auto vector = [&](const char* what) { return graph.parameter(name + "/" + what, DType::f32, {filters}); };
    const Value w = graph.parameter(name + "/w", DType::f32, {filters, x.shape()[1] / groups, 3, 3});
    ops::ConvOptions options;
    options.padding = {{1, 1}, {1, 1}};
    options.groups = groups;
    const Value conv = ops::conv(x, w, biased ? vector("b") : Value(), options);
    return ops::relu(ops::batch_norm(conv, vector("scale"), vector("bias"), vector("mean"), vector("variance")));
  }
};

void check_close(const std::vector<float>& got, const std::vector<float>& expected) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(got[i] == doctest::Approx(expected[i]).epsilon(1e-4));
}

}  // namespace

TEST_CASE("prologue: batch norms folded into convolutions give the same results, also after parameters change") {
  for (const char* device : devices) {
    CAPTURE(device);
    const Context context(test_config(device));
    const Net net;
    Program folded(context, net.graph, {.device = device, .parameters = net.store});
    Program plain(context, net.graph, {.device = device, .parameters = net.store, .optimize = false});
    net.start();
    const Tensor x = Tensor::of<float>(numbers(180, 0.1f, 0), {2, 3, 6, 5});
    check_close(floats(folded.run({x})[0]), floats(plain.run({x})[0]));
    for (const char* name : {"first/w", "first/variance", "second/b", "second/scale"}) {
      CAPTURE(name);
      const Tensor& old = net.store->get(name);
      const std::vector<float> before = floats(folded.run({x})[0]);
      net.store->set(name, Tensor::of<float>(numbers(old.shape().count(), 0.07f, 0.9f), old.shape()));
      const std::vector<float> after = floats(folded.run({x})[0]);
      CHECK(after != before);
      check_close(after, floats(plain.run({x})[0]));
      CHECK(floats(folded.run({x})[0]) == after);
    }
  }
}

TEST_CASE_FIXTURE(OnOpenblas, "prologue: the report shows what runs once, and the compiled graph contains it") {
  const Net net;
  const Program program(context, net.graph, {.device = "openblas:0", .parameters = net.store});
  std::size_t once = 0, each_time = 0;
  for (const Placement& node : program.placement().nodes) {
    (node.once ? once : each_time) += 1;
    CHECK_FALSE(node.op == "BatchNormalization");
    CHECK(node.once == (node.op != "Conv" && node.op != "Relu"));
    CHECK(node.device == "openblas:0");
  }
  CHECK(each_time == 4);
  CHECK(once == 16);
  CHECK(program.graph().nodes().size() == 20);
  CHECK(contains(program.placement().str(), "runs when parameters change"));
  CHECK(contains(program.placement().json(), "\"once\": true"));
  CHECK(program.placement().moved() == 0);
}

TEST_CASE("prologue: a node placed on another device runs there, and its result is copied") {
  Config config = test_config();
  config.backends.use = {"reference"};
  config.virtual_devices = {{"reference:0", 2, 0}};
  const Context context(config);
  Graph graph;
  const Value x = graph.input("x", DType::f32, {3}), p = graph.parameter("p", DType::f32, {3});
  Value doubled;
  {
    const DeviceScope there(graph, "reference:1");
    doubled = ops::mul(p, 2.0);
  }
  graph.output("y", ops::add(x, doubled));
  Program program(context, graph, {.device = "reference:0", .parameters = nullptr});
  program.parameters()->set("p", Tensor::of<float>({1, 2, 3}, {3}));
  const Tensor ones = Tensor::of<float>({1, 1, 1}, {3});
  CHECK(floats(program.run({ones})[0]) == std::vector<float>{3, 5, 7});
  program.parameters()->set("p", Tensor::of<float>({0, -1, 4}, {3}));
  CHECK(floats(program.run({ones})[0]) == std::vector<float>{1, -1, 9});
}

TEST_CASE_FIXTURE(OnReference, "prologue: a training program is not split") {
  Graph graph;
  const Value x = graph.input("x", DType::f32, {3}), p = graph.parameter("p", DType::f32, {3});
  graph.output("y", ops::add(x, ops::neg(p)));
  graph.update(p, ops::mul(p, 2.0));
  Program program(context, graph);
  program.parameters()->set("p", Tensor::of<float>({1, 2, 3}, {3}));
  const Tensor zeros = Tensor::of<float>({0, 0, 0}, {3});
  CHECK(floats(program.run({zeros})[0]) == std::vector<float>{-1, -2, -3});
  CHECK(floats(program.run({zeros})[0]) == std::vector<float>{-2, -4, -6});
  for (const Placement& node : program.placement().nodes) CHECK_FALSE(node.once);
}

TEST_CASE("prologue: fixed parameters of a training program, also after one of them changes") {
  for (const char* device : devices) {
    CAPTURE(device);
    const Context context(test_config(device));
    const std::set<std::string> fixed{"first/w", "first/scale", "first/bias", "first/mean", "first/variance"};
    // the second block learns by steps that depend on its output, so that errors would add up
    const auto trained = [&](bool optimize, std::size_t* out_once, std::size_t* out_plans) {
      Net net;
      const auto& values = net.graph.values();
      const auto found = std::ranges::find(values, "second/w", &ValueInfo::name);
      const Value w(&net.graph, static_cast<ValueId>(found - values.begin()));
      const Value mean = ops::reduce_mean(Value(&net.graph, net.graph.outputs()[0].value));
      net.graph.update(w, ops::sub(w, ops::mul(w, mean)));
      Program program(context, net.graph, {.device = device, .parameters = net.store, .optimize = optimize, .fixed = fixed});
      net.start();
      const Tensor x = Tensor::of<float>(numbers(180, 0.1f, 0), {2, 3, 6, 5});
      std::vector<float> results;
      for (int step = 0; step < 6; ++step) {
        if (step == 3) net.store->set("first/w", Tensor::of<float>(numbers(216, 0.07f, 0.1f), {8, 3, 3, 3}));
        if (step == 4) net.store->set("first/variance", Tensor::of<float>(numbers(8, 0.01f, 0.4f), {8}));
        const std::vector<float> y = floats(program.run({x})[0]);
        results.insert(results.end(), y.begin(), y.end());
      }
      const std::vector<float> weights = floats(net.store->get("second/w"));
      results.insert(results.end(), weights.begin(), weights.end());
      for (const Placement& node : program.placement().nodes) *out_once += node.once ? 1 : 0;
      *out_plans = program.placement().partitions;
      return results;
    };
    std::size_t once = 0, never = 0, plans = 0, one = 0;
    check_close(trained(true, &once, &plans), trained(false, &never, &one));
    CHECK(once == 8);
    CHECK(never == 0);
    CHECK(plans == 2);
  }
}

TEST_CASE_FIXTURE(OnReference, "prologue: runs when its own parameters change, not when others do") {
  const auto store = std::make_shared<ParameterStore>();
  store->create("p", Device(context.device("reference:0")), DType::f32, {1});
  store->create("q", Device(context.device("reference:0")), DType::f32, {1});
  store->set("p", Tensor::of<float>({1}, {1}));
  const std::uint64_t of_p = store->epoch("p");
  store->set("q", Tensor::of<float>({1}, {1}));
  CHECK(store->epoch("p") == of_p);
  CHECK(store->epoch("q") > of_p);
  store->touch();
  CHECK(store->epoch("p") == store->epoch());
  CHECK(store->epoch("p") > of_p);
  CHECK_THROWS_WITH_AS(store->epoch("r"), "there is no parameter 'r'", Error);
}

}  // namespace tenon::test
