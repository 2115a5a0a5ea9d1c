// SPDX-License-Identifier: Apache-2.0
// Nets on the GPU: they train as on the CPU, in f32 and in mixed precision, and fused nodes are one kernel.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "gpu_testing.h"

namespace tenon {
namespace {

using test::gpu_config;
using test::largest_difference;

/// A convnet with every epilogue of a layer.
std::vector<LayerDefinition> convnet() {
  return {layers::Reshape{{1, 28, 28}},
          layers::Conv2D{8, 3, 2},
          layers::BatchNorm{},
          layers::Activation{Activation::relu},
          layers::MaxPooling2D{2},
          layers::Dropout{0.1},
          layers::Conv2D{8, 3},
          layers::Activation{Activation::relu},
          layers::Flatten{},
          layers::Dense{10, Activation::softmax}};
}
/// An LSTM on the rows of a digit as a sequence.
std::vector<LayerDefinition> recurrent() {
  return {layers::LSTM{16}, layers::Dense{10, Activation::softmax}};
}

std::vector<double> train(const std::string& device, Precision precision, const std::vector<LayerDefinition>& layers, std::int64_t steps,
                          const std::map<std::string, std::string>& backend_options = {}) {
  Config config = gpu_config(device);
  config.precision = precision;
  if (!backend_options.empty()) config.backends.options["cuda"] = backend_options;
  OptimizerDefinition adam;
  adam.kind = OptimizerDefinition::Kind::adam;
  adam.learning_rate = 0.005;
  return test::losses_of(config, layers, adam, steps, 16);
}

TEST_CASE("gpu: a convnet and an LSTM have the losses of the CPU") {
  for (const auto& layers : {convnet(), recurrent()}) {
    const double largest =
        largest_difference(train("openblas:0", Precision::float32, layers, 8), train("cuda:0", Precision::float32, layers, 8));
    MESSAGE("largest difference of the loss over 8 steps: ", largest);
    CHECK(largest < 1e-3);
  }
}

TEST_CASE("gpu: in mixed precision the losses are close, with and without loss scaling") {
  for (const auto& layers : {convnet(), recurrent()}) {
    const std::vector<double> cpu = train("openblas:0", Precision::float32, layers, 8);
    for (const Precision precision : {Precision::mixed_bfloat16, Precision::mixed_float16}) {
      CAPTURE(name_of(precision));
      CHECK(largest_difference(cpu, train("cuda:0", precision, layers, 8)) < 0.1);
    }
  }
}

TEST_CASE("gpu: built-in kernels train as the libraries do") {
  CHECK(largest_difference(train("cuda:0", Precision::float32, convnet(), 3),
                           train("cuda:0", Precision::float32, convnet(), 3, {{"kernels", "naive"}})) < 1e-3);
}

TEST_CASE("gpu: two devices that share each batch have the losses of one; so have a GPU and the CPU") {
  const std::vector<LayerDefinition> layers{layers::Flatten{}, layers::Dense{32, Activation::relu}, layers::Dense{10, Activation::softmax}};
  Config config = gpu_config();
  const OptimizerDefinition adam{.kind = OptimizerDefinition::Kind::adam, .learning_rate = 0.005};
  const std::vector<double> one = test::losses_of(config, layers, adam, 6, 16);
  config.virtual_devices = {{"cuda:0", 2, 0}};
  CHECK(largest_difference(one, test::losses_of(config, layers, adam, 6, 16, {.devices = {"cuda:0", "cuda:1"}})) < 1e-4);
  CHECK(largest_difference(one, test::losses_of(config, layers, adam, 6, 16, {.devices = {"cuda:0", "cuda:1"}, .bucket_mb = 0.001})) <
        1e-4);
  CHECK(largest_difference(one, test::losses_of(config, layers, adam, 6, 16, {.devices = {"cuda:1", "openblas:0"}, .shares = {1, 3}})) <
        1e-4);
}

/// The nodes of the kernels of a run.
std::vector<std::string> algorithms(Program& program, const std::vector<Tensor>& inputs) {
  program.enable_profile(true);
  program.run(inputs);
  std::vector<std::string> all;
  for (const Program::KernelTime& time : program.profile()) all.push_back(time.algorithm);
  return all;
}

TEST_CASE("gpu: bias, residual and activation after a convolution or a training norm are part of its kernel") {
  const Context context(gpu_config());
  for (const DType dtype : {DType::f32, DType::bf16}) {
    CAPTURE(name_of(dtype));
    Graph graph;
    const auto per_channel = [&](const char* name) { return graph.parameter(name, DType::f32, {16}); };
    const Value x = graph.input("x", dtype, {2, 16, 8, 8});
    const auto conv = [&](Value of, const char* name) {
      ops::ConvOptions same;
      same.same = true;
      return ops::conv(of, graph.parameter(name, dtype, {16, 16, 3, 3}), {}, same);
    };
    const Value first = ops::relu(conv(x, "w1"));
    const Value norm =
        ops::batch_norm_train(conv(first, "w2"), per_channel("scale"), per_channel("bias"), per_channel("mean"), per_channel("variance"));
    graph.output("y", ops::relu(norm + x));
    Program program(context, graph, {.device = "cuda:0"});
    for (const char* name : {"w1", "w2"}) program.parameters()->set(name, Tensor::full(dtype, {16, 16, 3, 3}, 0.01));
    for (const char* name : {"scale", "bias", "mean", "variance"}) program.parameters()->set(name, Tensor::full(DType::f32, {16}, 1));
    const std::vector<std::string> kernels = algorithms(program, {Tensor::full(dtype, {2, 16, 8, 8}, 0.5)});
    const auto has = [&](const char* name) { return std::find(kernels.begin(), kernels.end(), name) != kernels.end(); };
    CHECK(has("Conv+relu"));
    CHECK(has("Conv"));
    CHECK(has("BatchNormTrain+residual+relu"));
    // f32 keeps the graph's layout; bf16 is transposed on input and output.
    CHECK(kernels.size() == (dtype == DType::f32 ? 3 : 5));
  }
}

}  // namespace
}  // namespace tenon
