// SPDX-License-Identifier: Apache-2.0
// Several GPUs: sums over ranks by the collectives of the backend (NCCL). With one GPU these tests say that they were left out; the
// emulation has several.
#include <fmt/core.h>

#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "gpu_testing.h"

namespace tenon {
namespace {

using test::gpu_config;

/// How many of the GPUs there are; 0 with a message if that is less than `needed`.
int gpus(int needed) {
  const Context context(gpu_config());
  int count = 0;
  for (const DeviceInfo& device : context.devices()) count += device.backend == "cuda" ? 1 : 0;
  if (count >= needed) return count;
  MESSAGE("left out: it needs ", needed, " GPUs, there are ", count);
  return 0;
}

/// Runs body(rank) on a thread for each rank; the messages of their errors.
std::vector<std::string> on_ranks(std::size_t size, const std::function<void(std::size_t rank)>& body) {
  std::vector<std::string> errors(size);
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < size; ++rank) threads.emplace_back([&, rank] { errors[rank] = test::message_of([&] { body(rank); }); });
  for (std::thread& thread : threads) thread.join();
  return errors;
}

/// A program for each device that adds two sums over the ranks.
struct Summing {
  Summing(const Context& context, const std::vector<std::string>& devices) : ranks(local_communicators(static_cast<int>(devices.size()))) {
    for (std::size_t r = 0; r < devices.size(); ++r) {
      Graph graph;
      const Value x = graph.input("x", DType::f32, {1000});
      const Value square = ops::mul(x, x);
      const std::vector<Value> sums = ops::all_reduce({square, x});
      const Value again = ops::all_reduce({ops::cast(ops::relu(sums[1]), DType::f64)})[0];
      graph.output("squares", ops::neg(sums[0]));
      graph.output("again", again);
      graph.output("own", ops::add(square, 1));
      programs.push_back(std::make_unique<Program>(context, graph, ProgramOptions{.device = devices[r], .communicator = ranks[r]}));
    }
  }
  std::vector<std::shared_ptr<Communicator>> ranks;
  std::vector<std::unique_ptr<Program>> programs;
};

TEST_CASE("gpu collectives: programs on several devices sum by the backend, as often as they run") {
  const int count = std::min(gpus(2), 4);
  if (count == 0) return;
  const Context context(gpu_config());
  std::vector<std::string> devices;
  for (int i = 0; i < count; ++i) devices.push_back(fmt::format("cuda:{}", i));
  const Summing summing(context, devices);
  const auto& programs = summing.programs;
  CHECK(programs[0]->placement().reduced_by.empty());
  const auto ranks = static_cast<float>(count);
  for (int round = 1; round <= 3; ++round) {
    std::vector<std::vector<Tensor>> results(programs.size());
    const std::vector<std::string> errors = on_ranks(programs.size(), [&](std::size_t r) {
      const Tensor x = Tensor::full(DType::f32, {1000}, static_cast<double>(round) * static_cast<double>(r + 1));
      for (const Tensor& result : programs[r]->run({x})) results[r].push_back(result.to_host());
    });
    for (const std::string& error : errors) REQUIRE(error == "no error");
    float sum = 0, squares = 0;
    for (std::size_t r = 0; r < programs.size(); ++r) {
      const float x = static_cast<float>(round) * static_cast<float>(r + 1);
      sum += x;
      squares += x * x;
    }
    for (std::size_t r = 0; r < programs.size(); ++r) {
      const float x = static_cast<float>(round) * static_cast<float>(r + 1);
      CHECK(results[r][0].data<float>()[999] == -squares);
      CHECK(results[r][1].data<double>()[0] == static_cast<double>(ranks * sum));
      CHECK(results[r][2].data<float>()[500] == x * x + 1);
    }
  }
  for (const auto& program : programs) CHECK(program->placement().reduced_by == "cuda");
}

TEST_CASE("gpu collectives: ranks on a GPU and on the CPU sum in the memory of the host") {
  const Context context(gpu_config());
  const Summing summing(context, {"cuda:0", "openblas:0"});
  const auto& programs = summing.programs;
  const std::vector<std::string> errors = on_ranks(
      2, [&](std::size_t r) { CHECK(programs[r]->run({Tensor::full(DType::f32, {1000}, 2)})[0].to_host().data<float>()[0] == -8); });
  for (const std::string& error : errors) CHECK(error == "no error");
  CHECK(programs[0]->placement().reduced_by.empty());
}

TEST_CASE("gpu collectives: an error of one rank reaches the others, which wait on their devices") {
  if (gpus(2) == 0) return;
  const Context context(gpu_config());
  const Summing summing(context, {"cuda:0", "cuda:1"});
  const auto run = [&](std::size_t r) { summing.programs[r]->run({Tensor::full(DType::f32, {1000}, 1)}); };
  for (const std::string& error : on_ranks(2, run)) REQUIRE(error == "no error");
  const std::vector<std::string> errors = on_ranks(2, [&](std::size_t r) {
    if (r == 0) return run(0);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    summing.ranks[1]->abort("it has no more samples");
  });
  CHECK_MESSAGE(test::contains(errors[0], "rank 1 ended the group: it has no more samples"), errors[0]);
  CHECK_MESSAGE(test::contains(test::message_of([&] { run(0); }), "rank 1 ended the group"), "after its end");
}

TEST_CASE("gpu collectives: models trained on several devices have the losses of one") {
  const int count = std::min(gpus(2), 2);
  if (count == 0) return;
  const std::vector<LayerDefinition> layers{layers::Reshape{{1, 28, 28}},
                                            layers::Conv2D{.filters = 4, .kernel_size = {3, 3}},
                                            layers::BatchNorm{},
                                            layers::Flatten{},
                                            layers::Dense{32, Activation::relu},
                                            layers::Dense{10, Activation::softmax}};
  const std::int64_t steps = test::small_sizes() ? 4 : 12;
  OptimizerDefinition optimizer;
  optimizer.kind = OptimizerDefinition::Kind::adam;
  const std::vector<double> one = test::losses_of(gpu_config(), layers, optimizer, steps, 20, {.sync_batch_norm = true});
  const ParallelOptions parallel{.devices = {"cuda:0", "cuda:1"}, .sync_batch_norm = true};
  const std::vector<double> two = test::losses_of(gpu_config(), layers, optimizer, steps, 20, parallel);
  CHECK(test::largest_difference(one, two) < 1e-5);
  CHECK(test::losses_of(gpu_config(), layers, optimizer, steps, 20, parallel) == two);
  // Steps from the third on have been replayed between their sums.
  Config executed = gpu_config();
  executed.capture = Capture::off;
  CHECK(test::losses_of(executed, layers, optimizer, steps, 20, parallel) == two);
}

TEST_CASE("gpu collectives: repeated runs are replayed between the collectives") {
  const int count = std::min(gpus(2), 2);
  if (count == 0) return;
  const Context context(gpu_config());
  const Summing summing(context, {"cuda:0", "cuda:1"});
  for (int round = 1; round <= 5; ++round) {
    std::vector<float> squares(2);
    const std::vector<std::string> errors = on_ranks(2, [&](std::size_t r) {
      const Tensor x = Tensor::full(DType::f32, {1000}, static_cast<double>(round) + static_cast<double>(r));
      squares[r] = summing.programs[r]->run({x})[0].to_host().data<float>()[999];
    });
    for (const std::string& error : errors) REQUIRE(error == "no error");
    const auto a = static_cast<float>(round), b = a + 1;
    for (const float square : squares) CHECK(square == -(a * a + b * b));
  }
  for (const auto& program : summing.programs) {
    CHECK(program->placement().reduced_by == "cuda");
    CHECK(program->placement().records == 1);
    CHECK(program->placement().replays == 3);
  }
}

}  // namespace
}  // namespace tenon
