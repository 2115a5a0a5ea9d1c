// SPDX-License-Identifier: Apache-2.0
// Packed parameters: programs of one store share them, whatever their batch size, as long as the backend packs them in the same form.
#include "testing.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tenon::test {
namespace {

/// Adds y = relu(conv(x, w)), w (16, 8, size, size), to the graph. Returns w. Direct sums compute filters of 7x7 for any batch.
Value add_convolution(Graph& graph, std::int64_t batch, std::int64_t size = 7, std::int64_t image = 12) {
  const Value x = graph.input("x", DType::f32, {batch, 8, image, image}), w = graph.parameter("w", DType::f32, {16, 8, size, size});
  ops::ConvOptions options;
  options.padding = {{size / 2, size / 2}, {size / 2, size / 2}};
  graph.output("y", ops::relu(ops::conv(x, w, {}, options)));
  return w;
}
Graph convolution(std::int64_t batch, std::int64_t size = 7, std::int64_t image = 12) {
  Graph graph;
  add_convolution(graph, batch, size, image);
  return graph;
}

Tensor numbers(const Shape& shape, int from) {
  Tensor t = Tensor::zeros(DType::f32, shape);
  for (std::int64_t i = 0; i < t.count(); ++i) t.data<float>()[i] = static_cast<float>((i * 7 + from) % 9 - 4);
  return t;
}
Tensor weights(int from) {
  return numbers({16, 8, 7, 7}, from);
}
Tensor images(std::int64_t batch) {
  return numbers({batch, 8, 12, 12}, 3);
}

constexpr std::uint64_t packed_bytes = 8 * 7 * 7 * 32 * sizeof(float);  // 16 columns in a panel of 32

struct Shared : OnOpenblas {
  const std::shared_ptr<ParameterStore> store = std::make_shared<ParameterStore>();
  const Device device = context.default_device();
  Program compile(const Graph& graph) const { return Program(context, graph, {.parameters = store}); }
  /// The result of a program with a store of its own.
  std::vector<float> alone(std::int64_t batch, int from) const {
    Program program(context, convolution(batch));
    program.parameters()->set("w", weights(from));
    return floats(program.run({images(batch)})[0]);
  }
};

}  // namespace

TEST_CASE_FIXTURE(Shared, "packed: programs of two batch sizes have one packed copy, and see new weights") {
  Program one = compile(convolution(1)), eight = compile(convolution(8));
  store->set("w", weights(1));
  CHECK(floats(one.run({images(1)})[0]) == alone(1, 1));
  CHECK(floats(eight.run({images(8)})[0]) == alone(8, 1));
  const std::map<std::string, std::uint64_t> packed{{"w", packed_bytes}};
  CHECK(one.memory()[0].packed_parameters == packed);
  CHECK(eight.memory()[0].packed_parameters == packed);
  CHECK(device.live_size_bytes() == one.memory()[0].peak_size_bytes() + eight.memory()[0].own_size_bytes());

  store->set("w", weights(2));
  CHECK(floats(eight.run({images(8)})[0]) == alone(8, 2));
  CHECK(floats(one.run({images(1)})[0]) == alone(1, 2));
  store->set("w", weights(5));
  CHECK(floats(one.run({images(1)})[0]) == alone(1, 5));
  CHECK(floats(eight.run({images(8)})[0]) == alone(8, 5));
}

TEST_CASE_FIXTURE(Shared, "packed: the copy lives as long as a program that reads it") {
  std::optional<Program> one = compile(convolution(1));
  Program eight = compile(convolution(8));
  store->set("w", weights(1));
  one->run({images(1)});
  eight.run({images(8)});
  one.reset();
  CHECK(floats(eight.run({images(8)})[0]) == alone(8, 1));
  store->set("w", weights(2));
  CHECK(floats(eight.run({images(8)})[0]) == alone(8, 2));
  CHECK(device.live_size_bytes() == eight.memory()[0].peak_size_bytes());
  { const Program last = std::move(eight); }
  CHECK(device.live_size_bytes() == static_cast<std::uint64_t>(weights(1).size_bytes()));
  Program again = compile(convolution(2));
  CHECK(floats(again.run({images(2)})[0]) == alone(2, 2));
}

TEST_CASE_FIXTURE(Shared, "packed: two stores share nothing") {
  Program mine = compile(convolution(1)), other(context, convolution(1));
  store->set("w", weights(1));
  other.parameters()->set("w", weights(2));
  CHECK(floats(mine.run({images(1)})[0]) == alone(1, 1));
  CHECK(floats(other.run({images(1)})[0]) == alone(1, 2));
  CHECK(floats(mine.run({images(1)})[0]) == alone(1, 1));
  CHECK(device.live_size_bytes() == mine.memory()[0].peak_size_bytes() + other.memory()[0].peak_size_bytes());
}

TEST_CASE_FIXTURE(Shared, "packed: another algorithm, another form") {
  Program small = compile(convolution(1, 3, 4)), large = compile(convolution(64, 3, 4));  // direct, and Winograd's
  store->set("w", numbers({16, 8, 3, 3}, 1));
  CHECK(small.memory()[0].packed_parameters.at("w") < large.memory()[0].packed_parameters.at("w"));
  const Tensor x = numbers({1, 8, 4, 4}, 3);
  const std::vector<float> expected = floats(small.run({x})[0]);
  Tensor many = Tensor::zeros(DType::f32, {64, 8, 4, 4});
  std::copy_n(x.data<float>(), x.count(), many.data<float>() + 5 * x.count());
  const std::vector<float> got = floats(large.run({many})[0]);
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(got[5 * expected.size() + i] == doctest::Approx(expected[i]).epsilon(1e-3));
  CHECK(device.live_size_bytes() ==
        small.memory()[0].peak_size_bytes() + large.memory()[0].packed_parameters_size_bytes() + large.memory()[0].own_size_bytes());
}

TEST_CASE_FIXTURE(Shared, "packed: what a program computes of its parameters belongs to it alone") {
  const auto doubled = [](std::int64_t batch) {
    Graph graph;
    const Value x = graph.input("x", DType::f32, {batch, 8, 12, 12}), w = graph.parameter("w", DType::f32, {16, 8, 7, 7});
    graph.output("y", ops::conv(x, w + w));
    return graph;
  };
  Program one = compile(doubled(1)), two = compile(doubled(2));
  store->set("w", weights(1));
  for (Program* program : {&one, &two}) {
    CHECK(program->memory()[0].packed_parameters.empty());
    CHECK(program->memory()[0].packed_size_bytes >= packed_bytes);
  }
  const auto first = [&](Program& program, std::int64_t batch) { return floats(program.run({images(batch)})[0])[0]; };
  CHECK(first(one, 1) == first(two, 2));
  store->set("w", weights(2));
  CHECK(first(two, 2) == first(one, 1));
}

TEST_CASE_FIXTURE(Shared, "packed: memory is planned as it is allocated, and the report says what is shared") {
  const std::vector<MemoryPlan> planned = Program::plan_memory(context, convolution(1), {.parameters = store});
  CHECK(device.live_size_bytes() == 0);
  CHECK(planned[0].packed_parameters_size_bytes() == packed_bytes);
  const Program program = compile(convolution(1));
  CHECK(program.memory()[0].peak_size_bytes() == planned[0].peak_size_bytes());
  const PlacementReport& report = program.placement();
  CHECK(report.shared_packed_size_bytes == packed_bytes);
  CHECK(report.packed_size_bytes == packed_bytes + program.memory()[0].packed_size_bytes);
  CHECK(contains(report.str(), "packed 50176 bytes, of these 50176 shared with programs of the same parameters"));
  CHECK(contains(report.json(), "\"shared_packed_size_bytes\": 50176"));
}

TEST_CASE_FIXTURE(Shared,
                  "packed: weights of f16, which are multiplied in f32, are converted and packed once for programs of all batch sizes") {
  for (const bool is_transposed : {false, true}) {
    CAPTURE(is_transposed);
    const std::shared_ptr<ParameterStore> parameters = std::make_shared<ParameterStore>(), wide = std::make_shared<ParameterStore>();
    const auto product = [&](std::int64_t rows, DType dtype) {
      Graph graph;
      const Value x = graph.input("x", dtype, {rows, 64}),
                  w = graph.parameter("w", dtype, {is_transposed ? 48 : 64, is_transposed ? 64 : 48});
      graph.output("y", ops::matmul(x, is_transposed ? ops::transpose(w, {1, 0}) : w));
      return Program(context, graph, {.parameters = dtype == DType::f16 ? parameters : wide});
    };
    Program eight = product(8, DType::f16), twenty = product(20, DType::f16), expected = product(20, DType::f32);
    // 48 columns in panels of 32; products of fewer than 4 rows read no panels.
    const std::map<std::string, std::uint64_t> packed{{"w", 2 * 32 * 64 * sizeof(float)}}, converted{{"w", 48 * 64 * sizeof(float)}};
    Program two = product(2, DType::f16);
    CHECK(two.memory()[0].packed_parameters == converted);
    CHECK(eight.memory()[0].packed_parameters == packed);
    CHECK(twenty.memory()[0].packed_parameters == packed);
    for (const int from : {1, 2}) {
      const Tensor w = numbers(is_transposed ? Shape{48, 64} : Shape{64, 48}, from), x = numbers({20, 64}, 3);
      parameters->set("w", w.to(DType::f16));
      wide->set("w", w);
      const std::vector<float> y = floats(expected.run({x})[0]);  // integers below 2048: exact in f16
      CHECK(floats(twenty.run({x.to(DType::f16)})[0].to_host().to(DType::f32)) == y);
      const auto rows_of = [&](Program& program, std::int64_t rows) {
        const Tensor first = x.slice(0, 0, rows).contiguous();
        return floats(program.run({first.to(DType::f16)})[0].to_host().to(DType::f32));
      };
      CHECK(rows_of(eight, 8) == std::vector<float>(y.begin(), y.begin() + 8 * 48));
      CHECK(rows_of(two, 2) == std::vector<float>(y.begin(), y.begin() + 2 * 48));
    }
  }
}

TEST_CASE_FIXTURE(Shared, "packed: a step that updates a parameter and a prediction share it, and both see the update") {
  const auto step = [] {
    Graph graph;
    const Value w = add_convolution(graph, 2);
    graph.update(w, w + w);
    return graph;
  };
  Program training = compile(step()), prediction = compile(convolution(1));
  store->set("w", weights(1));
  CHECK(floats(prediction.run({images(1)})[0]) == alone(1, 1));
  training.run({images(2)});
  std::vector<float> twice = alone(1, 1);
  for (float& y : twice) y *= 2;
  CHECK(floats(prediction.run({images(1)})[0]) == twice);
  training.run({images(2)});
  for (float& y : twice) y *= 2;
  CHECK(floats(prediction.run({images(1)})[0]) == twice);
}

}  // namespace tenon::test
