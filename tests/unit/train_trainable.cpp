// SPDX-License-Identifier: Apache-2.0
// Fine-tuning: frozen parameters, and options of the optimizer for groups of parameters.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "temporary_folder.h"
#include "train_testing.h"

namespace tenon::test {
namespace {

/// A convolutional net with batch normalisation before its head.
std::vector<LayerDefinition> convnet() {
  return {layers::Reshape{.shape = {1, 28, 28}},
          layers::Conv2D{.filters = 8, .kernel_size = {3}, .activation = Activation::relu},
          layers::BatchNorm{},
          layers::MaxPooling2D{.pool_size = {2}},
          layers::Flatten{},
          LayerDefinition(layers::Dense{.units = 10, .activation = Activation::softmax}, "head")};
}

CompileOptions only_head() {
  CompileOptions options = classification();
  options.trainable = {"head/*"};
  return options;
}

std::shared_ptr<const ArrayDataset> other_digits() {
  return generate_digits({.count = 200, .seed = 99});
}

bool is_frozen(const std::string& name, const Tensor&) {
  return !is_training_state(name) && !name.starts_with("head/");
}

std::size_t states(Model& model) {
  return weights(model, [](const std::string& name, const Tensor&) { return is_training_state(name); }).size();
}

TEST_CASE_FIXTURE(Deterministic,
                  "trainable: a trained net learns other data with its head alone; the rest keeps its bits and has no state") {
  Model trained = compiled(context, convnet());
  trained.fit(digits(), {.epochs = 1});
  Model tuned = compiled(context, convnet(), only_head());
  tuned.build({28, 28});
  for (const auto& [name, tensor] : trained.parameters().all()) {
    if (!is_training_state(name)) tuned.parameters().set(name, tensor.to_host());
  }
  const auto before = weights(tuned, is_frozen);
  CHECK(before.size() == 6);  // kernel, bias, gamma, beta and the running statistics
  const auto head = floats(tuned.parameters().get("head/kernel"));
  const double untuned = tuned.evaluate(other_digits())[0].second;
  tuned.fit(other_digits(), {.epochs = 3});
  CHECK(weights(tuned, is_frozen) == before);
  CHECK(floats(tuned.parameters().get("head/kernel")) != head);
  CHECK(tuned.evaluate(other_digits())[0].second < untuned);
  CHECK(states(tuned) == 4);  // two of Adam for each of kernel and bias of the head
  CHECK(states(trained) == 12);

  // Batch normalisation that is frozen uses running statistics: training and evaluation see the same loss.
  const auto batch = generate_digits({.count = 32, .seed = 5});
  Tensor x = Tensor::empty(DType::f32, {32, 28, 28}), y = Tensor::empty(DType::i64, {32});
  std::vector<std::int64_t> all(32);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
  batch->gather(all, x, y);
  const double evaluated = tuned.test_batch(x, y).loss();
  CHECK(tuned.backward(x, y).loss() == doctest::Approx(evaluated).epsilon(1e-5));
  CHECK_NOTHROW(tuned.gradient("head/kernel"));
  CHECK_ERROR("gradient: 'conv2d/kernel' is frozen: no glob of `trainable` matches it", tuned.gradient("conv2d/kernel"));
}

TEST_CASE_FIXTURE(Deterministic, "trainable: compile chooses anew, accumulated and parallel steps freeze as well") {
  Model model = compiled(context, convnet(), only_head());
  model.fit(digits(64), {.epochs = 1, .accumulate = 2});
  const auto before = weights(model, is_frozen);
  CHECK(states(model) == 4 + 3);  // the sums of two gradients and their weight
  model.fit(digits(64), {.epochs = 2});
  CHECK(weights(model, is_frozen) == before);
  model.compile(context, classification());
  model.fit(digits(64), {.epochs = 3});
  CHECK(weights(model, is_frozen) != before);

  Config config = deterministic();
  config.virtual_devices = {{.of = "openblas:0", .count = 2}};
  const Context two(config);
  CompileOptions options = only_head();
  options.parallel.devices = {"openblas:0", "openblas:1"};
  Model parallel = compiled(two, convnet(), options);
  parallel.build({28, 28});
  const auto initial = weights(parallel, is_frozen);
  parallel.fit(digits(64), {.epochs = 1});
  CHECK(weights(parallel, is_frozen) == initial);
}

TEST_CASE_FIXTURE(Deterministic, "trainable: steps fold frozen batch norms into convolutions, once, until a frozen weight is set") {
  const std::vector<LayerDefinition> layers{layers::Reshape{.shape = {1, 28, 28}}, layers::Conv2D{.filters = 8, .kernel_size = {3}},
                                            layers::BatchNorm{}, layers::Flatten{},
                                            LayerDefinition(layers::Dense{.units = 10, .activation = Activation::softmax}, "head")};
  Model model = compiled(context, layers, only_head());
  model.fit(digits(64), {.batch_size = 32, .epochs = 1});
  const PlacementReport report = model.explain(32);
  CHECK(report.partitions == 2);  // what is frozen, and what learns
  CHECK(std::ranges::any_of(report.nodes, &Placement::once));
  CHECK(std::ranges::find(report.nodes, "BatchNormalization", &Placement::op) == report.nodes.end());

  Tensor x = Tensor::empty(DType::f32, {32, 28, 28}), y = Tensor::empty(DType::i64, {32});
  std::vector<std::int64_t> all(32);
  std::iota(all.begin(), all.end(), 0);
  generate_digits({.count = 32, .seed = 5})->gather(all, x, y);
  std::vector<double> losses;
  for (const char* name : {"", "conv2d/kernel", "batch_norm/running_mean"}) {
    CAPTURE(name);
    if (*name != '\0') model.parameters().fill(name, 0.3);
    losses.push_back(model.test_batch(x, y).loss());
    CHECK(model.train_batch(x, y).loss() == doctest::Approx(losses.back()).epsilon(1e-5));
    CHECK(model.backward(x, y).loss() == doctest::Approx(model.test_batch(x, y).loss()).epsilon(1e-5));
    CHECK(model.apply());
  }
  CHECK(losses[0] != doctest::Approx(losses[1]).epsilon(1e-3));
  CHECK(losses[1] != doctest::Approx(losses[2]).epsilon(1e-3));
}

TEST_CASE_FIXTURE(OnReference, "trainable: summary counts frozen parameters, and globs must match") {
  Model model = compiled(context, convnet(), only_head());
  model.build({28, 28});
  const LayerSummary conv = model.layers()[1];
  CHECK(conv.parameters == 80);
  CHECK(conv.frozen == 80);
  CHECK(contains(model.summary(), "Trainable params: 13,530 "));
  CHECK(contains(model.summary(), "Non-trainable params: 112 "));
  CHECK(contains(model.summary(), "of these frozen: 96 "));
  CompileOptions options = only_head();
  options.trainable = {"hat/*"};
  CHECK_ERROR(
      "trainable 'hat/*': matches no parameter of the model; expected a glob of conv2d/kernel, conv2d/bias, batch_norm/gamma, "
      "batch_norm/beta, head/kernel, head/bias",
      compiled(context, convnet(), options).build({28, 28}));
}

TEST_CASE_FIXTURE(InFolder, "trainable: a checkpoint with other optimizer state names `weights` as the remedy") {
  const Context context(deterministic());
  Model model = compiled(context, convnet());
  model.fit(digits(64), {.epochs = 1});
  model.save(folder.path(), "whole");
  Model tuned = compiled(context, convnet(), only_head());
  CHECK_ERROR_CONTAINS("or start from its weights alone: `resume: never`, `weights: {file: ", tuned.load(folder.file("whole.yaml")));
  CHECK_NOTHROW(tuned.load(folder.file("whole.yaml"), Model::Load::weights));
}

TEST_CASE_FIXTURE(OnReference, "groups: the first match sets the learning rate's factor and the weight decay") {
  const std::vector<LayerDefinition> layers = {LayerDefinition(layers::Dense{.units = 1}, "a"),
                                               LayerDefinition(layers::Dense{.units = 1}, "b")};
  OptimizerDefinition sgd{.kind = OptimizerDefinition::Kind::sgd, .learning_rate = 0.5};
  sgd.weight_decay = 0.25;
  sgd.groups = {{.match = "*/bias", .weight_decay = 0.0}, {.match = "a/*", .learning_rate_factor = 0.1}};
  Model model = compiled(context, layers, {.optimizer = sgd, .loss = {.loss = Loss::mse}});
  model.build({1});
  const auto set = [&](const char* name, const Tensor& value) { model.parameters().set(name, value); };
  set("a/kernel", Tensor::of<float>({2}, {1, 1}));
  set("b/kernel", Tensor::of<float>({3}, {1, 1}));
  set("a/bias", Tensor::of<float>({1}, {1}));
  set("b/bias", Tensor::of<float>({1}, {1}));
  // x = 1: h = 3, y = 10; with the target 10 all gradients are 0 and only the decay acts
  model.train_batch(Tensor::of<float>({1}, {1, 1}), Tensor::of<float>({10}, {1, 1}));
  CHECK(floats(model.parameters().get("a/kernel"))[0] == doctest::Approx(2 - 0.5 * 0.1 * 0.25 * 2));
  CHECK(floats(model.parameters().get("b/kernel"))[0] == doctest::Approx(3 - 0.5 * 0.25 * 3));
  CHECK(floats(model.parameters().get("a/bias"))[0] == 1);
  CHECK(floats(model.parameters().get("b/bias"))[0] == 1);

  const auto refusal = [&](const ParameterGroup& group, OptimizerDefinition optimizer) {
    optimizer.groups = {group};
    return message_of([&] { compiled(context, layers, {.optimizer = optimizer}).build({1}); });
  };
  CHECK(contains(refusal({.match = "c/*"}, sgd), "optimizer: group 'c/*': matches no parameter of the model; expected a glob of a/kernel"));
  CHECK(contains(refusal({.match = "a/*", .weight_decay = -0.1}, {}),
                 "optimizer: group 'a/*': weight_decay is -0.1, expected a finite number"));
  CHECK(contains(refusal({.match = "a/*", .learning_rate_factor = -1}, sgd),
                 "learning_rate_factor is -1, expected a finite number of at least 0"));
}

}  // namespace
}  // namespace tenon::test
