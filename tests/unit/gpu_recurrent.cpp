// SPDX-License-Identifier: Apache-2.0
// Recurrent layers whose units several blocks share: thousands of barriers in a kernel (backends/cuda/kernel/group_barrier.cuh).
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gpu_testing.h"

namespace tenon {
namespace {

using Numbers = std::vector<float>;

/// Different in each `seed`, of at most `limit`.
Tensor numbers(const Shape& shape, float limit, std::uint32_t seed) {
  Numbers values(static_cast<std::size_t>(shape.count()));
  for (float& value : values) {
    seed = seed * 1664525 + 1013904223;
    value = limit * (static_cast<float>(seed >> 8) / (1 << 23) - 1);
  }
  return Tensor::of<float>(values, shape);
}

struct Size {
  std::int64_t steps, batch, units;
};

/// The results and the gradients of lstm, by name.
using Results = std::map<std::string, Numbers>;

/// Of two runs of one program: the second may replay what the first has recorded.
std::pair<Results, Results> run_twice(const char* recurrent, const Size& size) {
  Config config = test::gpu_config();
  config.backends.options["cuda"] = {{"recurrent", recurrent}};
  const Context context(config);
  const auto [steps, batch, units] = size;
  const std::int64_t features = 8;
  Graph graph;
  std::vector<Tensor> inputs;
  std::vector<Value> operands;
  const auto input = [&](const char* name, const Shape& shape, float limit) {
    inputs.push_back(numbers(shape, limit, static_cast<std::uint32_t>(inputs.size() + 1)));
    operands.push_back(graph.input(name, DType::f32, shape));
    return operands.back();
  };
  const float weight = 1 / std::sqrt(static_cast<float>(units));
  const Value x = input("x", {steps, batch, features}, 1);
  const ops::RecurrentValues values{input("w", {1, 4 * units, features}, weight), input("r", {1, 4 * units, units}, weight),
                                    input("b", {1, 8 * units}, weight), input("h0", {1, batch, units}, 1),
                                    input("c0", {1, batch, units}, 1)};
  const std::vector<Value> differentiated = operands;
  const ops::RecurrentResult result = ops::lstm(x, values);
  const Value dy = input("dy", {steps, 1, batch, units}, 1);
  std::vector<std::string> names{"y", "h", "c"};
  graph.output("y", result.y);
  graph.output("h", result.h);
  graph.output("c", result.c);
  const Value loss = ops::reduce_sum(result.y * dy) + ops::reduce_sum(result.h) + ops::reduce_sum(result.c);
  const std::vector<Value> all = gradients(loss, differentiated);
  for (std::size_t i = 0; i < all.size(); ++i) {
    names.push_back("gradient " + std::to_string(i));
    graph.output(names.back(), all[i]);
  }
  Program program(context, graph, {.device = "cuda:0"});
  const auto run = [&] {
    const std::vector<Tensor> tensors = program.run(inputs);
    Results results;
    for (std::size_t i = 0; i < tensors.size(); ++i) results[names[i]] = test::floats(tensors[i]);
    return results;
  };
  Results first = run();
  return {std::move(first), run()};
}

bool same_bits(const Numbers& a, const Numbers& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// Relative to the largest number. NaN if there is one.
double difference(const Numbers& a, const Numbers& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0, largest = 1e-30;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(double{a[i]} - double{b[i]});
    if (!(d <= worst)) worst = d;
    if (std::isnan(worst)) return worst;
    largest = std::max(largest, std::abs(double{b[i]}));
  }
  return worst / largest;
}

TEST_CASE("gpu: blocks that share the units of an lstm compute what a product for each step does, in every run with the same bits") {
  const Context context(test::gpu_config());
  const bool emulated = test::contains(context.default_device().info().product, "emulation");
  // 16 groups of 8 blocks on a GPU with at least 128 multiprocessors; the emulation would take long for that.
  const Size size = test::small_sizes() ? Size{20, 20, 40} : emulated ? Size{40, 20, 256} : Size{500, 128, 256};
  const auto library = run_twice("library", size), shared = run_twice("cooperative", size);
  bool other_sums = false;
  for (const auto& expected : library.first) {
    const std::string& name = expected.first;
    CAPTURE(name);
    const double worst = difference(shared.first.at(name), expected.second);
    CHECK(worst < 1e-4);
    CHECK(same_bits(shared.first.at(name), shared.second.at(name)));
    other_sums = other_sums || worst != 0;
  }
  // With equal bits there was no plan for groups of blocks on this device, and both have launched every step.
  if (!other_sums) MESSAGE("this device has no groups of blocks for this layer");
}

}  // namespace
}  // namespace tenon
