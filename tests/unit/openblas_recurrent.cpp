// SPDX-License-Identifier: Apache-2.0
// Recurrent layers on openblas whose states decay below the normal numbers.
#include <cmath>
#include <limits>
#include <vector>

#include "openblas_conv.h"

namespace tenon::test {
namespace {

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
