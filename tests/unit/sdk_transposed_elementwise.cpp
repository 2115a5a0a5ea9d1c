// SPDX-License-Identifier: Apache-2.0
// Elementwise nodes between transpositions compute in the order of memory, so that neither copies nor separate passes are needed.
#include <cmath>

#include "sdk_channels_last_testing.h"

namespace tenon::sdk_test {
namespace {

TEST_CASE("sdk: bias and activation of a convolution are one call with it if a Reshape removed a dimension before them") {
  Images images;
  Net& net = images.net;
  const auto y = images.conv(net.input({2, 3, 1, 5}), 4);
  const auto line = net.internal({2, 4, 5}), back = net.internal({2, 5, 4});
  net.node(TENON_OP_Reshape, {y}, {line});
  const auto sum = images.apply(TENON_OP_Add, {line, net.parameter({4, 1})});
  net.node(TENON_OP_Transpose, {images.apply(TENON_OP_Relu, {sum})}, {back}, axes({0, 2, 1}));
  images.apply(TENON_OP_Tanh, {back}, true);
  CHECK(check(net) == 3);  // a transpose of the input, the convolution, and Tanh, which needs dense operands
}

/// x (2,3,4) is transposed to (2,4,3), `addend` is added, and what `relu` makes of the sum is transposed back and read by Tanh.
struct Between {
  Net net;
  std::uint32_t x = net.input({2, 3, 4}), addend = none, relu = net.internal({2, 4, 3}), y = net.output({2, 3, 4});
  static constexpr std::uint32_t none = TENON_NO_INDEX;

  explicit Between(Shape shape) {
    const auto t = net.internal({2, 4, 3}), sum = net.internal({2, 4, 3}), back = net.internal({2, 3, 4});
    addend = net.input(std::move(shape));
    net.node(TENON_OP_Transpose, {x}, {t}, axes({0, 2, 1}));
    net.node(TENON_OP_Add, {t, addend}, {sum});
    net.node(TENON_OP_Relu, {sum}, {relu});
    net.node(TENON_OP_Transpose, {relu}, {back}, axes({0, 2, 1}));
    net.node(TENON_OP_Tanh, {back}, {y});
  }
};

/// Checks the results of a run with addends that are the functions of the indices of the transposed value.
void check_results(Run& run, const Between& graph, std::int64_t addend_count,
                   std::int64_t (*index)(std::int64_t, std::int64_t, std::int64_t)) {
  const Floats x = some(24, 1), addends = some(addend_count, 2);
  run({{graph.x, x}, {graph.addend, addends}});
  const Floats y = run.get(graph.y);
  for (std::int64_t i = 0; i < 2; ++i) {
    for (std::int64_t j = 0; j < 3; ++j) {
      for (std::int64_t k = 0; k < 4; ++k) {
        const auto at = static_cast<std::size_t>((i * 3 + j) * 4 + k);
        CHECK(y[at] == std::tanh(std::max(0.0f, x[at] + addends[static_cast<std::size_t>(index(i, k, j))])));
      }
    }
  }
}

TEST_CASE("sdk: elementwise nodes between a transposition and its inverse need no copy") {
  Between broadcast({4, 1});
  Run run(broadcast.net);
  CHECK(run.info.kernel_count == 3);  // the sum, its activation, Tanh
  check_results(run, broadcast, 4, [](std::int64_t, std::int64_t k, std::int64_t) { return k; });
  Between one({});
  Run run_one(one.net);
  CHECK(run_one.info.kernel_count == 3);
  check_results(run_one, one, 1, [](std::int64_t, std::int64_t, std::int64_t) { return std::int64_t{0}; });
}

TEST_CASE("sdk: an operand in the graph's order keeps the order of the result") {
  Between same({2, 4, 3});
  Run run(same.net);
  CHECK(run.info.kernel_count == 4);  // the sum, its activation, a transpose, Tanh
  check_results(run, same, 24, [](std::int64_t i, std::int64_t k, std::int64_t j) { return (i * 4 + k) * 3 + j; });
  Between matrix({4, 3});
  Run run_matrix(matrix.net);
  CHECK(run_matrix.info.kernel_count == 4);
  check_results(run_matrix, matrix, 12, [](std::int64_t, std::int64_t k, std::int64_t j) { return k * 3 + j; });
}

TEST_CASE("sdk: a reader that needs the graph's order keeps it") {
  Between graph({4, 1});
  const auto z = graph.net.output({2, 4, 3});
  graph.net.node(TENON_OP_Tanh, {graph.relu}, {z});
  Run run(graph.net);
  CHECK(run.info.kernel_count == 5);  // two of Tanh, and one transpose
  check_results(run, graph, 4, [](std::int64_t, std::int64_t k, std::int64_t) { return k; });
  const Floats y = run.get(graph.y), transposed = run.get(z);
  for (std::size_t i = 0; i < 24; ++i) CHECK(transposed[i] == y[(i / 12 * 3 + i % 3) * 4 + i % 12 / 3]);
}

TEST_CASE("sdk: a donated input with permuted axes that has to be copied keeps the graph's order") {
  Net net;
  const auto x = net.input({2, 3}, {1, 2}), y = net.output({2, 3}), z = net.output({3, 2});
  const auto total = net.internal({}), sum = net.internal({2, 3}), turned = net.internal({3, 2});
  net.node(TENON_OP_Neg, {x}, {y});
  net.node(TENON_OP_ReduceSum, {y}, {total}, axes({0, 1}));
  net.node(TENON_OP_Add, {x, total}, {sum});
  net.node(TENON_OP_Transpose, {sum}, {turned}, axes({1, 0}));
  net.node(TENON_OP_Relu, {turned}, {z});
  net.donate(x, y);
  Run run(net);
  run({{x, {1, -2, 3, -4, 5, -6}}});
  CHECK(run.get(y) == Floats{-1, 2, -3, 4, -5, 6});
  CHECK(run.get(z) == Floats{4, 0, 1, 8, 6, 0});
}

TEST_CASE("sdk: a value that is added to itself many times between transpositions makes a plan quickly") {
  Net net;
  const auto x = net.input({2, 3}), t = net.internal({3, 2}), back = net.internal({2, 3}), y = net.output({2, 3});
  net.node(TENON_OP_Transpose, {x}, {t}, axes({1, 0}));
  auto v = t;
  for (int i = 0; i < 60; ++i) {
    const auto next = net.internal({3, 2});
    net.node(TENON_OP_Add, {v, v}, {next});
    v = next;
  }
  net.node(TENON_OP_Transpose, {v}, {back}, axes({1, 0}));
  net.node(TENON_OP_Tanh, {back}, {y});
  Run run(net);
  run({{x, {0, 0x1p-60f, -0x1p-60f, 1, -1, 0x1p-61f}}});
  CHECK(run.get(y) == Floats{0, std::tanh(1.0f), std::tanh(-1.0f), 1, -1, std::tanh(0.5f)});
}

}  // namespace
}  // namespace tenon::sdk_test
