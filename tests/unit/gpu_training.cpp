// SPDX-License-Identifier: Apache-2.0
// Training on the GPU: the losses of the CPU, step by step.
#include <string>
#include <vector>

#include <tenon/decoder.h>

#include "gpu_testing.h"

namespace tenon {
namespace {

using test::gpu_config;

std::vector<LayerDefinition> mlp() {
  return {layers::Flatten{}, layers::Dense{300, Activation::relu, {.bias = false}}, layers::Dense{100, Activation::relu, {.bias = false}},
          layers::Dense{10, Activation::softmax, {.bias = false}}};
}

std::vector<double> losses_of(const std::string& device, OptimizerDefinition::Kind kind, const std::vector<LayerDefinition>& layers,
                              std::int64_t steps) {
  OptimizerDefinition optimizer;
  optimizer.kind = kind;
  if (kind == OptimizerDefinition::Kind::sgd) optimizer.learning_rate = 0.05;
  return test::losses_of(gpu_config(device), layers, optimizer, steps, 100);
}

/// Returns the losses of the GPU.
std::vector<double> check_same(OptimizerDefinition::Kind kind, const std::vector<LayerDefinition>& layers, std::int64_t steps) {
  const std::vector<double> losses = losses_of("cuda:0", kind, layers, steps);
  const double largest = test::largest_difference(losses_of("openblas:0", kind, layers, steps), losses);
  MESSAGE("largest difference of the loss over ", steps, " steps: ", largest);
  CHECK(largest < 1e-3);
  return losses;
}

TEST_CASE("gpu: the first steps of the MNIST perceptron have the losses of the CPU, and decrease") {
  const std::int64_t steps = test::small_sizes() ? 15 : 50;
  check_same(OptimizerDefinition::Kind::sgd, mlp(), steps);
  const std::vector<double> losses = check_same(OptimizerDefinition::Kind::adam, mlp(), steps);
  CHECK(losses.back() < 0.9 * losses.front());
}

TEST_CASE("gpu: kernels that are started before those they wait for have ended compute the same bits") {
  const std::int64_t steps = test::small_sizes() ? 15 : 50;  // each replays what the first ones have recorded
  const auto losses_with = [steps](const char* programmatic_launch) {
    Config config = gpu_config();
    config.backends.options["cuda"] = {{"programmatic_launch", programmatic_launch}};
    OptimizerDefinition optimizer;
    optimizer.kind = OptimizerDefinition::Kind::adam;
    return test::losses_of(config, mlp(), optimizer, steps, 100);
  };
  const std::vector<double> off = losses_with("off"), on = losses_with("on");
  CHECK(off == on);
}

TEST_CASE("gpu: RMSProp, whose first steps amplify rounding, has the losses of the CPU for a dozen steps") {
  check_same(OptimizerDefinition::Kind::rmsprop, mlp(), 12);
}

TEST_CASE("gpu: dropout with Adam drops the same elements as on the CPU") {
  check_same(OptimizerDefinition::Kind::adam,
             {layers::Flatten{}, layers::Dense{64, Activation::relu}, layers::Dropout{0.25}, layers::Dense{10, Activation::softmax}}, 12);
}

TEST_CASE("gpu: a decoder, whose caches are updated in place, gives the scores of the CPU at each step") {
  const auto scores_on = [](const std::string& device) {
    const Context context(gpu_config(device));
    Model model(
        {{layers::Embedding{.rows = 12, .dim = 16}, "labels"},
         layers::Residual{.body = {layers::LayerNorm{}, layers::Attention{.heads = 4, .causal = true, .kv_heads = 2, .rotary = true}},
                          .shortcut = {}},
         layers::GRU{.units = 8, .return_sequences = true},
         layers::Dense{.units = 12}});
    LossDefinition loss;
    loss.loss = Loss::sparse_categorical_crossentropy;
    loss.from_logits = true;
    model.compile(context, {.optimizer = {}, .loss = loss, .metrics = {}});
    model.build({10});
    Decoder decoder(model);
    std::vector<double> all;
    for (std::int64_t step = 0; step < 10; ++step) {
      const std::int64_t label = step * 5 % 12;
      const Tensor scores = decoder.append({&label, 1});
      all.insert(all.end(), scores.data<float>(), scores.data<float>() + scores.count());
    }
    return all;
  };
  CHECK(test::largest_difference(scores_on("openblas:0"), scores_on("cuda:0")) < 1e-4);
}

}  // namespace
}  // namespace tenon
