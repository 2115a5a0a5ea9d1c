// SPDX-License-Identifier: Apache-2.0
// Programs on the GPU: fusion, replay, profile, streams.
#include <cmath>
#include <filesystem>
#include <fstream>

#include "gpu_testing.h"
#include "temporary_folder.h"

namespace tenon {
namespace {

using test::contains;
using test::floats;
using test::gpu_config;

/// (16, 4), different in each run.
Tensor weights_of(int run) {
  std::vector<float> values(64);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i) + static_cast<float>(run));
  return Tensor::of<float>(values, {16, 4});
}

TEST_CASE("gpu: a chain of elementwise ops is one kernel, in f32 and in f16") {
  const Context context(gpu_config());
  for (const DType dtype : {DType::f32, DType::f16}) {
    Graph graph;
    const Value x = graph.input("x", dtype, {64, 33});
    // In f16 the bias would be converted once, by a separate kernel.
    const Shape bias = dtype == DType::f32 ? Shape{33} : Shape{64, 33};
    const Value b = graph.input("b", dtype, bias);
    graph.output("y", ops::cast(ops::tanh(ops::relu(x + b) * x) - b, DType::f32));
    Program program(context, graph, {.device = "cuda:0"});
    program.enable_profile(true);
    const std::vector<Tensor> inputs{Tensor::full(dtype, {64, 33}, 0.5), Tensor::full(dtype, bias, 0.25)};
    const std::vector<float> y = floats(program.run(inputs)[0]);
    for (const float value : y) REQUIRE(std::abs(value - (std::tanh(0.375F) - 0.25F)) < 1e-3F);
    const std::vector<Program::KernelTime> times = program.profile();
    REQUIRE(times.size() == 1);
    CHECK(times[0].nodes.size() >= 5);
    CHECK_MESSAGE(contains(times[0].algorithm, "+Mul+"), times[0].algorithm);
  }
}

/// A program of sums, comparisons, roundings and functions, whose operands are dense, rows, columns and scalars.
Graph many_ops(const Shape& shape, DType dtype) {
  Graph graph;
  const Value x = graph.input("x", dtype, shape), y = graph.input("y", dtype, shape);
  const Value row = graph.input("row", dtype, {shape[1]}), column = graph.input("column", dtype, {shape[0], 1});
  const Value sum = ops::relu(x * row + y) - column;
  const Value chosen = ops::where(ops::greater(sum, x), ops::sigmoid(sum) * y, ops::clip(sum, -0.5, 0.75));
  graph.output("sum", sum);
  graph.output("chosen", ops::gelu(chosen) + ops::exp(-ops::abs(x)));
  return graph;
}

TEST_CASE("gpu: compiled groups of elementwise ops compute what interpreted ones do") {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const Shape& shape : {Shape{1, 20'003}, Shape{300, 64}, Shape{64, 301}, Shape{5'001, 8}}) {
      const auto run = [&](const char* choice) {
        Config config = gpu_config();
        config.backends.options["cuda"] = {{"elementwise", choice}};
        const Context context(config);
        const Graph graph = many_ops(shape, dtype);
        Program program(context, graph);
        std::vector<Tensor> inputs;
        for (const Shape& of : {shape, shape, Shape{shape[1]}, Shape{shape[0], 1}}) {
          std::vector<float> values(static_cast<std::size_t>(of.count()));
          for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i * (inputs.size() + 2)));
          inputs.push_back(Tensor::of<float>(values, of).to(dtype));
        }
        const std::vector<Tensor> results = program.run(inputs);
        return std::pair{floats(results[0].to(DType::f32)), floats(results[1].to(DType::f32))};
      };
      const auto compiled = run("compiled"), interpreted = run("interpreted");
      CHECK(compiled.first == interpreted.first);  // each op rounds once
      float largest = 0;                           // of functions, whose code may be of two versions of CUDA
      for (std::size_t i = 0; i < compiled.second.size(); ++i)
        largest = std::max(largest, std::abs(compiled.second[i] - interpreted.second[i]));
      CHECK(largest <= (dtype == DType::f32 ? 1e-6F : dtype == DType::f16 ? 2e-3F : 2e-2F));
    }
  }
}

TEST_CASE("gpu: compiled kernels are kept in a folder, and a damaged file is compiled again") {
  const test::TemporaryFolder folder;
  const auto run = [&] {
    Config config = gpu_config();
    config.backends.options["cuda"] = {{"elementwise", "compiled"}, {"kernel_cache", folder.path()}};
    const Context context(config);
    Graph graph;
    const Value x = graph.input("x", DType::f32, {1000});
    graph.output("y", ops::relu(x * x - x));
    Program program(context, graph);
    const bool emulated = contains(context.default_device().info().product, "emulation");  // which loads no code
    return std::pair{floats(program.run({Tensor::full(DType::f32, {1000}, 3)})[0]), emulated};
  };
  const auto files = [&] { return std::distance(std::filesystem::directory_iterator(folder.path()), {}); };
  const auto [first, emulated] = run();
  CHECK(first == std::vector<float>(1000, 6));
  CHECK(files() == (emulated ? 0 : 1));
  CHECK(run().first == first);
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) std::ofstream(entry.path()) << "damaged";
  CHECK(run().first == first);
  CHECK(files() == (emulated ? 0 : 1));
}

TEST_CASE("gpu: a product's activation propagates NaN, and a bias may have any alignment") {
  const Context context(gpu_config());
  Graph graph;
  const Value x = graph.input("x", DType::f32, {2, 3});
  const Value w = graph.input("w", DType::f32, {3, 5});
  const Value b = graph.input("b", DType::f32, {6});
  graph.output("y", ops::relu(ops::matmul(x, w) + ops::slice(b, 0, 1, 6)));
  Program program(context, graph, {.device = "cuda:0"});
  const std::vector<float> y = floats(program.run({Tensor::of<float>({1, NAN, 1, 1, 1, 1}, {2, 3}), Tensor::full(DType::f32, {3, 5}, 1),
                                                   Tensor::of<float>({9, 1, 2, 3, -4, 5}, {6})})[0]);
  for (int i = 0; i < 5; ++i) CHECK(std::isnan(y[static_cast<std::size_t>(i)]));
  CHECK(std::vector<float>(y.begin() + 5, y.end()) == std::vector<float>{4, 5, 6, 0, 8});
}

TEST_CASE("gpu: a program that is run again is replayed, with new inputs and the same results") {
  const Context context(gpu_config());
  Graph graph;
  const Value x = graph.input("x", DType::f32, {8, 16});
  const Value w = graph.input("w", DType::f32, {16, 4});
  graph.output("y", ops::softmax(ops::matmul(x, w)));
  Program on_gpu(context, graph, {.device = "cuda:0"}), on_cpu(context, graph, {.device = "reference:0"});
  for (int run = 0; run < 6; ++run) {
    const std::vector<Tensor> inputs{Tensor::full(DType::f32, {8, 16}, 0.1 * run), weights_of(run)};
    const std::vector<float> gpu = floats(on_gpu.run(inputs)[0]), cpu = floats(on_cpu.run(inputs)[0]);
    for (std::size_t i = 0; i < cpu.size(); ++i) REQUIRE(std::abs(gpu[i] - cpu[i]) < 1e-5F);
  }
  const PlacementReport report = on_gpu.placement();
  CHECK(report.records >= 1);
  CHECK(report.replays >= 3);
}

TEST_CASE("gpu: replayed runs have times per node") {
  const Context context(gpu_config());
  Graph graph;
  const Value x = graph.input("x", DType::f32, {8, 16}), w = graph.input("w", DType::f32, {16, 4});
  graph.output("y", ops::softmax(ops::matmul(x, w)));
  Program program(context, graph, {.device = "cuda:0"});
  const std::vector<Tensor> inputs{Tensor::full(DType::f32, {8, 16}, 0.1), weights_of(1)};
  program.enable_profile(true);
  for (int run = 0; run < 6; ++run) {
    const std::uint64_t replays = program.placement().replays;
    program.run(inputs);
    CHECK(program.placement().replays == replays + (run < 2 ? 0 : 1));
    const std::vector<Program::KernelTime> times = program.profile();
    REQUIRE(times.size() == 2);
    CHECK(times[0].op == "MatMul");
    CHECK(times[1].op == "Softmax");
    for (const Program::KernelTime& time : times) CHECK(time.duration_ns > 0);
    CHECK(times[1].begin_ns >= times[0].begin_ns + times[0].duration_ns);
  }
  CHECK(program.placement().records == 1);
}

}  // namespace
}  // namespace tenon
