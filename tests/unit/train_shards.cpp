// SPDX-License-Identifier: Apache-2.0
// The state of an optimizer, divided among the devices of a process.
#include <cmath>

#include "parallel_testing.h"
#include "temporary_folder.h"

namespace tenon::test {
namespace {

/// What a step can consist of: convolution and batch normalisation, three dense layers, a frozen parameter.
CompileOptions shardable(int devices, bool sharded) {
  CompileOptions options = classification(devices == 1 ? std::vector<std::string>{} : names("openblas", devices));
  options.optimizer = {.kind = OptimizerDefinition::Kind::adam, .learning_rate = 0.01, .clip = {.global_norm = 0.5}};
  options.frozen = {"conv2d/bias"};
  options.parallel.shard_optimizer = sharded;
  return options;
}

TEST_CASE("parallel: a sharded optimizer takes the steps of a whole one, to the last bit") {
  const auto data = generate_digits({.count = 60});
  for (const bool mixed : {false, true}) {
    Config config = devices_of("openblas", 3);
    ModelDefinition definition = small_convnet();
    if (mixed) {
      config.precision = Precision::mixed_float16;
      definition.dtype = DType::f32;
    }
    const Context context(config);
    for (const std::int64_t accumulate : {1, 2}) {
      for (const int devices : {2, 3}) {
        CAPTURE(mixed);
        CAPTURE(accumulate);
        CAPTURE(devices);
        Model whole(definition), sharded(definition);
        whole.compile(context, shardable(devices, false));
        sharded.compile(context, shardable(devices, true));
        const FitOptions fit{.batch_size = 15, .epochs = 2, .accumulate = accumulate};
        const History a = whole.fit(data, fit), b = sharded.fit(data, fit);
        for (std::size_t epoch = 0; epoch < 2; ++epoch) CHECK(a[epoch].logs == b[epoch].logs);
        check_equal(sharded, whole);
      }
    }
  }
}

TEST_CASE("parallel: each device keeps its part of a sharded optimizer's state, balanced by bytes") {
  const Context context(devices_of("openblas", 3));
  Model model(mlp());
  std::uint64_t workspace[2] = {0, 0};
  const auto state_on = [&](bool sharded) {
    CompileOptions options = classification(names("openblas", 3));  // RMSProp has one value for each element
    options.parallel.shard_optimizer = sharded;
    model.compile(context, options);
    model.build({28, 28});
    std::vector<std::uint64_t> sizes;
    for (const MemoryPlan& plan : model.memory(30).training) {
      workspace[sharded ? 1 : 0] += plan.workspace_size_bytes;
      std::uint64_t& size = sizes.emplace_back(0);
      for (const auto& [name, size_bytes] : plan.parameters) size += name.starts_with("optimizer/") ? size_bytes : 0;
    }
    return sizes;
  };
  const std::uint64_t first = 4 * 784 * 300, second = 4 * 300 * 100, third = 4 * 100 * 10;
  CHECK(state_on(false) == std::vector<std::uint64_t>(3, first + second + third));
  CHECK(state_on(true) == std::vector<std::uint64_t>{first, second, third});
  CHECK(workspace[1] <= workspace[0]);  // parameters are sent and received where they are
  const PlacementReport report = model.explain(30);
  CHECK(report.broadcasts == 3);
  CHECK(report.bytes_broadcast_per_run == first + second + third);
  CHECK(contains(report.str(), "3 broadcasts among ranks"));
  model.train_batch(Tensor::full(DType::f32, {6, 28, 28}, 0.5), Tensor::zeros(DType::i64, {6}));
  CHECK(model.parameters().has("optimizer/dense/kernel/v"));
  CHECK(!model.parameters().has("optimizer/dense_1/kernel/v"));
}

TEST_CASE("parallel: checkpoints of a sharded optimizer are whole, and resumed with any number of devices, sharded or not") {
  const auto data = generate_digits({.count = 60});
  const Context context(devices_of("openblas", 3));
  const TemporaryFolder folder;
  const FitOptions fit{.batch_size = 20};
  Model whole(small_convnet()), sharded(small_convnet());
  whole.compile(context, shardable(2, false));
  sharded.compile(context, shardable(2, true));
  for (Model* model : {&whole, &sharded}) model->fit(data, fit);
  whole.save(folder.path(), "whole");
  sharded.save(folder.path(), "sharded");
  const Safetensors a = load_safetensors(folder.file("whole.safetensors")), b = load_safetensors(folder.file("sharded.safetensors"));
  REQUIRE(a.tensors.size() == b.tensors.size());
  for (const NamedTensor& tensor : a.tensors) CHECK(equal(*b.find(tensor.name), tensor.tensor));

  for (const auto& other : std::vector<std::pair<int, bool>>{{1, false}, {2, false}, {2, true}, {3, true}}) {
    const int devices = other.first;
    const bool shards = other.second;
    CAPTURE(devices);
    CAPTURE(shards);
    Model resumed(small_convnet()), expected(small_convnet());
    resumed.compile(context, shardable(devices, shards));
    resumed.load(folder.file("sharded.yaml"));
    resumed.save(folder.path(), "again");  // before any step
    CHECK(equal(*load_safetensors(folder.file("again.safetensors")).find("optimizer/dense/kernel/m"), *b.find("optimizer/dense/kernel/m")));
    expected.compile(context, shardable(devices, false));
    expected.load(folder.file("whole.yaml"));
    for (Model* model : {&resumed, &expected}) model->fit(data, {.batch_size = 20, .epochs = 2});
    CHECK(resumed.step() == 6);
    check_equal(resumed, expected);
  }
  // The state stays when the model is compiled for other devices.
  std::int64_t epochs = 1;
  for (const int devices : {3, 1, 2}) {
    CAPTURE(devices);
    ++epochs;
    sharded.compile(context, shardable(devices, devices > 1));
    whole.compile(context, shardable(devices, false));
    for (Model* model : {&whole, &sharded}) model->fit(data, {.batch_size = 20, .epochs = epochs});
    CHECK(sharded.step() == 3 * epochs);
    check_equal(sharded, whole);
  }
}

TEST_CASE("parallel: shards need ranks") {
  const Context context(devices_of("reference", 2));
  Model model(mlp());
  for (const std::vector<std::string>& devices : {std::vector<std::string>{}, names("reference", 1)}) {
    CompileOptions options = classification(devices);
    options.parallel.shard_optimizer = true;
    CHECK_ERROR_CONTAINS(
        "parallel.shard: 'optimizer' divides the optimizer state among ranks; expected at least 2 devices or processes, got 1",
        model.compile(context, options));
  }
  // A refused compilation leaves the model as it was.
  {
    const auto few = generate_digits({.count = 16});
    Model compiled(mlp());
    compiled.compile(context, classification(names("reference", 2)));
    logs_of(compiled, few, 8);
    CompileOptions refused = classification(names("reference", 1));
    refused.parallel.shard_optimizer = true;
    CHECK_ERROR_CONTAINS("parallel.shard", compiled.compile(context, refused));
    CHECK(std::isfinite(logs_of(compiled, few, 8).back()[0].second));
  }
  // Fewer parameters than devices: the others take no step, and get all values.
  const Context four(devices_of("openblas", 4));
  const auto data = generate_digits({.count = 16});
  CompileOptions options = classification(names("openblas", 4));
  ModelDefinition definition;
  definition.layers = {layers::Flatten{}, layers::Dense{10, Activation::softmax}};
  const auto whole = trained(four, definition, options, 8, data);
  options.parallel.shard_optimizer = true;
  const auto sharded = trained(four, definition, options, 8, data);
  for (std::size_t i = 0; i < whole.second.size(); ++i) CHECK(equal(sharded.second[i], whole.second[i]));
}

}  // namespace
}  // namespace tenon::test
