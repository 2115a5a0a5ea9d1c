// SPDX-License-Identifier: Apache-2.0
// Normalisation in programs: statistics that persist over runs, and forms that reshape.
#include <cmath>

#include "ops_testing.h"

namespace tenon::test {
namespace {

void check_close(const std::vector<float>& got, const std::vector<double>& expected) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(got[i] == doctest::Approx(expected[i]).epsilon(1e-5));
}

/// Parameters of a layer of two channels in a store.
struct Layer {
  std::shared_ptr<ParameterStore> store = std::make_shared<ParameterStore>();
  Value scale, bias, mean, variance;

  void declare(Graph& graph, const Shape& shape) {
    scale = graph.parameter("scale", DType::f32, shape);
    bias = graph.parameter("bias", DType::f32, shape);
    mean = graph.parameter("mean", DType::f32, shape);
    variance = graph.parameter("variance", DType::f32, shape);
  }
  void start(const Shape& shape) {
    const auto fill = [&](const char* name, float value) {
      store->set(name, Tensor::of<float>(std::vector<float>(static_cast<std::size_t>(shape.count()), value), shape));
    };
    fill("scale", 1);
    fill("bias", 0);
    fill("mean", 0);
    fill("variance", 1);
  }
};

}  // namespace

TEST_CASE("batch norm: training updates the statistics, evaluation only reads them") {
  for (const char* device : devices) {
    CAPTURE(device);
    const Context context(test_config(device));
    Layer layer;
    Graph training, evaluation;
    const ops::BatchNormOptions options{.momentum = 0.25, .epsilon = 0};
    layer.declare(training, {2});
    training.output(
        "y", ops::batch_norm_train(training.input("x", DType::f32, {2, 2}), layer.scale, layer.bias, layer.mean, layer.variance, options));
    Layer same = layer;
    same.declare(evaluation, {2});
    evaluation.output("y",
                      ops::batch_norm(evaluation.input("x", DType::f32, {1, 2}), same.scale, same.bias, same.mean, same.variance, options));
    Program train(context, training, {.device = device, .parameters = layer.store});
    Program evaluate(context, evaluation, {.device = device, .parameters = layer.store});
    layer.start({2});

    const Tensor batch = Tensor::of<float>({1, 10, 3, 30}, {2, 2}), one = Tensor::of<float>({2, 5}, {1, 2});
    check_close(floats(evaluate.run({one})[0]), {2, 5});
    check_close(floats(train.run({batch})[0]), {-1, -1, 1, 1});
    check_close(floats(layer.store->get("mean")), {0.5, 5});
    check_close(floats(layer.store->get("variance")), {0.75 + 0.25 * 2, 0.75 + 0.25 * 200});
    for (int again = 0; again < 3; ++again) {
      check_close(floats(evaluate.run({one})[0]), {1.5 / std::sqrt(1.25), 0});
      check_close(floats(layer.store->get("mean")), {0.5, 5});
    }
    train.run({batch});
    check_close(floats(layer.store->get("mean")), {0.75 * 0.5 + 0.5, 0.75 * 5 + 5});
    check_close(floats(layer.store->get("variance")), {0.75 * 1.25 + 0.5, 0.75 * 50.75 + 50});
  }
}

TEST_CASE("batch norm: per-activation statistics have the shape of a sample and are updated") {
  for (const char* device : devices) {
    CAPTURE(device);
    const Context context(test_config(device));
    Layer layer;
    Graph graph;
    layer.declare(graph, {1, 2});
    graph.output("y", ops::batch_norm_train(graph.input("x", DType::f32, {2, 1, 2}), layer.scale, layer.bias, layer.mean, layer.variance,
                                            {.momentum = 1, .epsilon = 0, .per_activation = true}));
    Program train(context, graph, {.device = device, .parameters = layer.store});
    layer.start({1, 2});
    check_close(floats(train.run({Tensor::of<float>({1, 10, 3, 30}, {2, 1, 2})})[0]), {-1, -1, 1, 1});
    check_close(floats(layer.store->get("mean")), {2, 20});
    check_close(floats(layer.store->get("variance")), {2, 200});
  }
}

TEST_CASE("batch norm: channels last and channels first give the same results") {
  for (const char* device : devices) {
    CAPTURE(device);
    const Context context(test_config(device));
    Graph graph;
    Layer layer;
    layer.declare(graph, {2});
    const Value x = graph.input("x", DType::f32, {3, 2, 4, 5});
    const ops::BatchNormOptions last{.axis = -1};
    graph.output("first", ops::batch_norm(x, layer.scale, layer.bias, layer.mean, layer.variance));
    graph.output("last",
                 ops::transpose(ops::batch_norm(ops::transpose(x, {0, 2, 3, 1}), layer.scale, layer.bias, layer.mean, layer.variance, last),
                                {0, 3, 1, 2}));
    Program program(context, graph, {.device = device, .parameters = layer.store});
    layer.store->set("scale", Tensor::of<float>({2, -3}, {2}));
    layer.store->set("bias", Tensor::of<float>({0.5, 1}, {2}));
    layer.store->set("mean", Tensor::of<float>({0.25, -1}, {2}));
    layer.store->set("variance", Tensor::of<float>({4, 0.5}, {2}));
    std::vector<float> values;
    for (int i = 0; i < 120; ++i) values.push_back(0.1f * static_cast<float>(i * 37 % 41 - 20));
    const auto& results = program.run({Tensor::of<float>(values, {3, 2, 4, 5})});
    const std::vector<float> first = floats(results[0]);
    check_close(floats(results[1]), {first.begin(), first.end()});
    for (std::size_t i = 0; i < first.size(); ++i) {
      const bool second = i / 20 % 2 == 1;
      const double expected =
          (values[i] - (second ? -1 : 0.25)) / std::sqrt((second ? 0.5 : 4) + 1e-5) * (second ? -3 : 2) + (second ? 1 : 0.5);
      CHECK(first[i] == doctest::Approx(expected).epsilon(1e-5));
    }
  }
}

TEST_CASE("group norm: a group of channels shares mean and variance, scale and bias are per channel") {
  for (const char* device : devices) {
    CAPTURE(device);
    const Context context(test_config(device));
    Graph graph;
    const Value x = graph.input("x", DType::f32, {1, 4, 2});
    const Value scale = graph.constant(Tensor::of<float>({1, 2, 3, 4}, {4})), bias = graph.constant(Tensor::of<float>({0, 0, 1, -1}, {4}));
    graph.output("groups", ops::group_norm(x, 2, scale, bias, 0));
    graph.output("instances", ops::instance_norm(x, scale, bias, 0));
    Program program(context, graph, {.device = device, .parameters = nullptr});
    const auto& y = program.run({Tensor::of<float>({1, 1, 3, 3, 0, 2, 2, 0}, {1, 4, 2})});
    check_close(floats(y[0]), {-1, -1, 2, 2, -2, 4, 3, -5});
    const std::vector<float> instances = floats(y[1]);
    CHECK(std::isnan(instances[0]));  // a constant channel without an epsilon
    check_close({instances.begin() + 4, instances.end()}, {-2, 4, 3, -5});
  }
}

}  // namespace tenon::test
