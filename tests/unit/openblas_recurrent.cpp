// SPDX-License-Identifier: Apache-2.0
// Recurrent layers on openblas: states that decay below the normal numbers, and bf16 at sizes that threads divide.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "openblas_conv.h"

namespace tenon::test {
namespace {

enum class Kind { rnn, gru, gru_reset_last, lstm };

/// y and the last state of a layer, in f32: of operands of bf16 by the kernel of `computed`. Weights are a constant, packed when the plan
/// is made, or an input.
std::vector<float> run_layer(Kind kind, std::int64_t batch, DType computed, std::uint32_t threads, bool packed) {
  constexpr std::int64_t steps = 5, features = 33, units = 97;
  const std::int64_t gates = kind == Kind::lstm ? 4 : kind == Kind::rnn ? 1 : 3;
  Config config = test_config("openblas:0");
  config.threads = threads;
  const Context context(config);
  Graph graph;
  std::vector<Tensor> feeds;
  // Of bf16, whatever it is computed in.
  const auto operand = [&](const char* name, const Shape& shape, float scale, bool constant) {
    std::vector<float> values = numbers(shape, static_cast<std::uint32_t>(name[0]));
    for (float& value : values) value *= scale;
    const Tensor tensor = Tensor::of(values, shape).to(DType::bf16);
    if (!constant) feeds.push_back(tensor);
    const Value v = constant ? graph.constant(tensor) : graph.input(name, DType::bf16, shape);
    return computed == DType::bf16 ? v : ops::cast(v, computed);
  };
  const Value x = operand("x", {steps, batch, features}, 1, false);
  const Value w = operand("w", {1, gates * units, features}, 0.2F, packed), r = operand("r", {1, gates * units, units}, 0.1F, packed);
  const Value b = operand("b", {1, 2 * gates * units}, 0.5F, packed), h0 = operand("h0", {1, batch, units}, 1, packed);
  const ops::RecurrentResult result = kind == Kind::rnn    ? ops::rnn(x, {w, r, b, h0})
                                      : kind == Kind::lstm ? ops::lstm(x, {w, r, b, h0})
                                                           : ops::gru(x, {w, r, b, h0}, {}, kind == Kind::gru_reset_last);
  graph.output("y", ops::cast(result.y, DType::f32));
  graph.output("h", ops::cast(result.h, DType::f32));
  std::vector<float> both;
  Program program(context, graph);
  for (const Tensor& output : program.run(feeds)) {
    const std::vector<float> values = floats(output);
    both.insert(both.end(), values.begin(), values.end());
  }
  return both;
}

TEST_CASE("openblas: recurrent layers of bf16 are those of f32 with states of bf16, with the same bits on any number of threads") {
  for (const Kind kind : {Kind::rnn, Kind::gru, Kind::gru_reset_last, Kind::lstm}) {
    for (const std::int64_t batch : {1, 3, 70}) {
      CAPTURE(static_cast<int>(kind));
      CAPTURE(batch);
      const std::vector<float> one = run_layer(kind, batch, DType::bf16, 1, true), wide = run_layer(kind, batch, DType::f32, 1, true);
      float difference = 0;
      for (std::size_t i = 0; i < one.size(); ++i) difference = std::max(difference, std::abs(one[i] - wide[i]));
      CHECK(difference > 0);
      CHECK(difference < 0.02F);  // five steps, each of which rounds states of up to 1 by 1/512
      for (const std::uint32_t threads : {2u, 3u}) CHECK(run_layer(kind, batch, DType::bf16, threads, threads == 2) == one);
    }
  }
}

TEST_CASE("openblas: states of an LSTM that become subnormal are zero, and the mode of the thread stays as it was") {
  constexpr std::int64_t steps = 8, batch = 40, units = 32;
  Config config = test_config("openblas:0");
  config.threads = 2;
  const Context context(config);
  Graph graph;
  const Value x = graph.input("x", DType::f32, {steps, batch, 1});
  // Gates in the order i, o, f, c: i and f are sigmoid(-20), so that cell states are 2e-9 times their last one in each step.
  std::vector<float> bias(8 * units, 0);
  for (std::size_t i = 0; i < units; ++i) bias[i] = -40, bias[2 * units + i] = -20;
  const Value w = graph.constant(Tensor::zeros(DType::f32, {1, 4 * units, 1})),
              r = graph.constant(Tensor::full(DType::f32, {1, 4 * units, units}, 0.01));
  const ops::RecurrentResult lstm = ops::lstm(
      x, {w, r, graph.constant(Tensor::of(bias, {1, 8 * units})), {}, graph.constant(Tensor::full(DType::f32, {1, batch, units}, 0.5))});
  graph.output("y", lstm.y);
  Program program(context, graph);
  const std::vector<float> y = program.run({Tensor::zeros(DType::f32, {steps, batch, 1})})[0].to_vector<float>();
  constexpr float smallest = std::numeric_limits<float>::min();
  CHECK(y[0] > 0);
  CHECK(y.back() == 0);
  for (const float state : y) CHECK((state == 0 || std::abs(state) >= smallest));
  const volatile float normal = smallest;
  CHECK(normal / 2 > 0);
}

}  // namespace
}  // namespace tenon::test
