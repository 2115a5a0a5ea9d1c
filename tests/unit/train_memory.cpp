// SPDX-License-Identifier: Apache-2.0
// The memory of a model: what is planned for a batch is what its runs allocate.
#include <cstdint>
#include <string>
#include <vector>

#include "train/summary.h"
#include "train_testing.h"

namespace tenon::test {
namespace {

std::vector<LayerDefinition> convnet() {
  return {layers::Reshape{.shape = {1, 28, 28}},
          layers::Conv2D{.filters = 8, .kernel_size = {3}, .activation = Activation::relu},
          layers::BatchNorm{},
          layers::MaxPooling2D{.pool_size = {2}},
          layers::Flatten{},
          layers::Dense{32, Activation::relu},
          layers::Dropout{0.2},
          layers::Dense{10, Activation::softmax}};
}

std::uint64_t peak_of(const std::vector<MemoryPlan>& plans, const std::string& device) {
  for (const MemoryPlan& plan : plans) {
    if (plan.device == device) return plan.peak_size_bytes();
  }
  return 0;
}

/// A batch of zeros with label 0.
BatchResult train(Model& model, std::int64_t n) {
  return model.train_batch(Tensor::zeros(DType::f32, {n, 28, 28}), Tensor::zeros(DType::i64, {n}));
}

TEST_CASE("memory: the plan of a training step and of a prediction is what they allocate") {
  for (const std::string device : {"openblas:0", "reference:0"}) {
    CAPTURE(device);
    const Context context(test_config(device));
    Model model = compiled(context, convnet());
    model.build({28, 28});
    const Device where = context.default_device();
    const std::uint64_t built = where.live_size_bytes();
    const Model::Memory memory = model.memory(16);
    CHECK(where.live_size_bytes() == built);
    CHECK(model.program_counts().misses == 0);
    REQUIRE(memory.training.size() == 1);
    REQUIRE(memory.prediction.size() == 1);
    const MemoryPlan &step = memory.training[0], &prediction = memory.prediction[0];
    CHECK(prediction.parameters_size_bytes() == 4 * (80 + 4 * 8 + 1352 * 32 + 32 + 320 + 10));
    CHECK(step.parameters_size_bytes() == prediction.parameters_size_bytes() + 2 * 4 * (80 + 2 * 8 + 1352 * 32 + 32 + 320 + 10));
    CHECK(step.workspace_size_bytes > 16 * 8 * 26 * 26 * 4);  // the output of the convolution, which its gradient reads

    const std::uint64_t others = built - prediction.parameters_size_bytes();  // ops that made the initial values
    train(model, 16);
    train(model, 16);
    CHECK(where.live_size_bytes() - others == step.peak_size_bytes());
    CHECK(where.peak_size_bytes() - others == step.peak_size_bytes());
    model.predict(Tensor::zeros(DType::f32, {16, 28, 28}), 16);
    std::uint64_t packed = 0;  // by the prediction alone
    for (const auto& [name, size_bytes] : prediction.packed_parameters) packed += step.packed_parameters.contains(name) ? 0 : size_bytes;
    CHECK(where.live_size_bytes() - others == step.peak_size_bytes() + prediction.own_size_bytes() + packed);
    CHECK(model.program_counts().size_bytes == step.own_size_bytes() + prediction.own_size_bytes());
    CHECK(peak_of(model.memory(16).training, device) == step.peak_size_bytes());  // the same once it is trained
  }
}

TEST_CASE("memory: each device of data parallelism has a plan of its own") {
  Config config = test_config();
  config.virtual_devices = {{.of = "openblas:0", .count = 2}};
  const Context context(config);
  CompileOptions options = classification();
  options.parallel.devices = {"openblas:0", "openblas:1"};
  Model model = compiled(context, convnet(), options);
  model.build({28, 28});
  const Device first = context.device("openblas:0"), second = context.device("openblas:1");
  const std::uint64_t others = first.live_size_bytes() - model.memory(16).prediction[0].parameters_size_bytes();
  const Model::Memory memory = model.memory(16);
  CHECK(memory.training.size() == 2);
  train(model, 16);
  CHECK(first.live_size_bytes() - others == peak_of(memory.training, "openblas:0"));
  CHECK(second.live_size_bytes() == peak_of(memory.training, "openblas:1"));
}

TEST_CASE("memory: it is known where there is too little of it") {
  Config config = test_config("openblas:0");
  config.memory.limit_mb = 4;
  const Context context(config);
  Model model = compiled(context, convnet());
  model.build({28, 28});
  CHECK(model.memory(512).training[0].peak_size_bytes() > 4 << 20);
  CHECK_ERROR_CONTAINS("out of memory", train(model, 512));
  CHECK_ERROR("model: batch_size is 0, expected at least 1", model.memory(0));
}

TEST_CASE_FIXTURE(OnOpenblas, "summary: memory of a training step and a prediction for a batch size, or the reason why it is not known") {
  Model model = compiled(context, {layers::Flatten{}, layers::Dense{10, Activation::softmax}});
  model.build({28, 28});
  const std::string table = model.summary(100);
  CHECK(contains(table, " Memory on openblas:0, batch of 100           Training step   Prediction\n"));
  CHECK(contains(table, "   Parameters                                      30.66 KB     30.66 KB\n"));
  CHECK(contains(table, "   Optimizer state                                 61.33 KB          0 B\n"));
  CHECK(contains(table, "   Peak "));
  CHECK_FALSE(contains(model.summary(), "Memory"));

  TrainDefinition definition;
  definition.model.layers = {layers::Flatten{}, layers::Dense{10, Activation::softmax}};
  definition.model.input_shape = {28, 28};
  definition.loss.loss = Loss::sparse_categorical_crossentropy;
  definition.metrics = {Metric::accuracy};
  const std::string same = train::summary_of(definition, context, 100);
  CHECK(same.substr(same.find(" Memory")) == table.substr(table.find(" Memory")));
  definition.model.layers[1] = layers::Dense{10};
  const std::string partly = train::summary_of(definition, context, 100);
  CHECK(contains(partly, " Memory of a training step: not known: "));
  CHECK(contains(partly, "the last layer is not a softmax"));
  CHECK(contains(partly, "   Parameters                                             -     30.66 KB\n"));
}

TEST_CASE_FIXTURE(OnReference, "model: labels of a step are one for each position of the output") {
  Model model = compiled(context, {layers::Embedding{.rows = 8, .dim = 4}, layers::LSTM{.units = 4, .return_sequences = true},
                                   layers::Dense{8, Activation::softmax}});
  model.build({5});
  CHECK(model.explain(3).moved() == 0);
  CHECK(model.memory(3).training.size() == 1);
}

TEST_CASE_FIXTURE(OnReference, "model: a batch size compiles once for each kind of call") {
  Model model = compiled(context, {layers::Dense{2, Activation::softmax}});
  model.predict(Tensor::zeros(DType::f32, {10, 3}), 4);  // 4, 4, 2
  CHECK(model.program_counts().misses == 2);
  CHECK(model.program_counts().hits == 1);
  CHECK(model.program_counts().programs == 2);
}

}  // namespace
}  // namespace tenon::test
