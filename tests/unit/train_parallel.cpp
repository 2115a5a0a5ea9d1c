// SPDX-License-Identifier: Apache-2.0
// Several devices in one process: one batch shared among them, and independent models.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <set>
#include <stop_token>
#include <thread>
#include <utility>

#include "temporary_folder.h"
#include "testing.h"

namespace tenon::test {
namespace {

Config two_devices(const std::string& backend) {
  Config config = test_config(backend + ":0");
  config.virtual_devices = {{backend + ":0", 2, 0}};
  config.seed = 3;
  return config;
}

struct Learner {
  Context context;
  Model model;
  Learner(const Config& config, CompileOptions options, std::vector<LayerDefinition> layers) : context(config), model(std::move(layers)) {
    model.compile(context, std::move(options));
  }
};

std::vector<LayerDefinition> mlp() {
  return {layers::Flatten{}, layers::Dense{300, Activation::relu, {.bias = false}}, layers::Dense{100, Activation::relu, {.bias = false}},
          layers::Dense{10, Activation::softmax, {.bias = false}}};
}

CompileOptions classification(std::vector<std::string> devices = {}) {
  return {.optimizer = {.kind = OptimizerDefinition::Kind::rmsprop},
          .loss = {.loss = Loss::sparse_categorical_crossentropy},
          .metrics = {Metric::accuracy},
          .parallel = {.devices = std::move(devices)}};
}

std::vector<Logs> logs_of(Model& model, const std::shared_ptr<const Dataset>& data, std::int64_t batch) {
  Batches batches(data, {.batch_size = batch, .seed = 5, .workers = 0});
  batches.start(0);
  std::vector<Logs> all;
  while (const Batch* next = batches.next()) all.push_back(model.train_batch(next->x(), next->y()).logs);
  return all;
}

void check_close(const std::vector<Logs>& a, const std::vector<Logs>& b, double tolerance) {
  REQUIRE(a.size() == b.size());
  for (std::size_t step = 0; step < a.size(); ++step) {
    CAPTURE(step);
    for (std::size_t i = 0; i < a[step].size(); ++i) CHECK(std::abs(a[step][i].second - b[step][i].second) <= tolerance);
  }
}

TEST_CASE("parallel: two devices that share each batch have the losses of one, for 50 steps") {
  const auto data = generate_digits({.count = 50 * 100});
  const auto difference = [&](DType dtype, OptimizerDefinition::Kind kind, double rate) {
    std::vector<Logs> logs[2];
    for (const bool shared : {false, true}) {
      CompileOptions options = classification(shared ? std::vector<std::string>{"openblas:0", "openblas:1"} : std::vector<std::string>{});
      options.optimizer.kind = kind;
      options.optimizer.learning_rate = rate;
      ModelDefinition definition;
      definition.dtype = dtype;
      definition.layers = mlp();
      const Context context(two_devices("openblas"));
      Model model(std::move(definition));
      model.compile(context, options);
      logs[shared ? 1 : 0] = logs_of(model, data, 100);
    }
    REQUIRE(logs[0].size() == 50);
    CHECK(logs[0].back()[0].second < logs[0].front()[0].second);
    double largest = 0;
    for (std::size_t step = 0; step < 50; ++step) largest = std::max(largest, std::abs(logs[0][step][0].second - logs[1][step][0].second));
    return largest;
  };
  CHECK(difference(DType::f32, OptimizerDefinition::Kind::sgd, 0.05) <= 1e-5);
  // RMSProp divides by the root of small squares: in f32 only the order of sums would show after some 30 steps on these digits.
  CHECK(difference(DType::f64, OptimizerDefinition::Kind::rmsprop, 0.001) <= 1e-9);
}

TEST_CASE("parallel: an uneven batch, and one smaller than the number of devices, are weighted correctly") {
  const auto data = generate_digits({.count = 7 + 7 + 1});
  const auto small = [] { return std::vector<LayerDefinition>{layers::Flatten{}, layers::Dense{10, Activation::softmax}}; };
  Learner one(two_devices("reference"), classification(), small());
  Learner both(two_devices("reference"), classification({"reference:0", "reference:1"}), small());
  check_close(logs_of(both.model, data, 7), logs_of(one.model, data, 7), 1e-5);
}

TEST_CASE("parallel: ignored labels have no weight on any device, and others those of their classes") {
  const auto digits = generate_digits({.count = 24});
  Tensor labels = Tensor::zeros(DType::i64, {24});
  for (std::int64_t i = 0; i < 24; ++i) labels.data<std::int64_t>()[i] = i % 8 < 3 ? -1 : i % 10;
  Tensor x = Tensor::zeros(DType::f32, {24, 28, 28});
  Tensor y = Tensor::zeros(DType::i64, {24});
  std::vector<std::int64_t> all(24);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
  digits->gather(all, x, y);
  const auto run = [&](std::vector<std::string> devices, std::vector<double> class_weights = {}) {
    CompileOptions options = classification(std::move(devices));
    options.loss.ignore_index = -1;
    options.loss.class_weights = std::move(class_weights);
    Learner learner(two_devices("reference"), std::move(options), {layers::Flatten{}, layers::Dense{10, Activation::softmax}});
    std::vector<Logs> logs;
    for (int step = 0; step < 5; ++step) logs.push_back(learner.model.train_batch(x, labels).logs);
    return logs;
  };
  check_close(run({"reference:0", "reference:1"}), run({}), 1e-5);
  const std::vector<double> weights = {1, 9, 2, 0, 5, 1, 3, 0.5, 2, 4};
  check_close(run({"reference:0", "reference:1"}, weights), run({}, weights), 1e-5);
  std::fill_n(labels.data<std::int64_t>(), 12, -1);  // none of the first device counts
  check_close(run({"reference:0", "reference:1"}), run({}), 1e-5);
}

TEST_CASE("parallel: gradients accumulated over batches match those of one device") {
  const auto data = generate_digits({.count = 60});
  FitOptions fit{.batch_size = 20, .epochs = 2, .accumulate = 3};
  const auto small = [] { return std::vector<LayerDefinition>{layers::Flatten{}, layers::Dense{10, Activation::softmax}}; };
  Learner one(two_devices("reference"), classification(), small());
  Learner both(two_devices("reference"), classification({"reference:0", "reference:1"}), small());
  const History a = one.model.fit(data, fit), b = both.model.fit(data, fit);
  for (std::size_t e = 0; e < 2; ++e) CHECK(std::abs(a[e].logs[0].second - b[e].logs[0].second) <= 1e-5);
  CHECK(both.model.step() == 2);
}

TEST_CASE("parallel: the report says which part ran where, and what was summed") {
  Learner both(two_devices("openblas"), classification({"openblas:0", "openblas:1"}), mlp());
  both.model.build({28, 28});
  const PlacementReport report = both.model.explain(100);
  std::int64_t on[2] = {0, 0};
  for (const Placement& node : report.nodes) {
    if (node.node.starts_with("replica_1/")) CHECK(node.device == "openblas:1");
    if (node.node.starts_with("replica_0/")) CHECK(node.device == "openblas:0");
    ++on[node.device == "openblas:1" ? 1 : 0];
  }
  CHECK(on[0] > 0);
  CHECK(on[1] == on[0]);
  CHECK(report.copies_inserted == 0);  // each device has the parameters
  CHECK(report.collectives == 1);
  CHECK(report.bytes_reduced_per_run == 4 * (784 * 300 + 300 * 100 + 100 * 10 + 2));  // gradients, loss and accuracy
  CHECK(contains(report.str(), "1 sums over ranks"));
  CHECK(report.moved() == 0);
}

TEST_CASE("parallel: missing devices, and layers with explicit devices, are rejected by name") {
  const Context context(two_devices("reference"));
  Model model(mlp());
  CHECK_ERROR_CONTAINS("gpu:3", model.compile(context, classification({"reference:0", "gpu:3"})));
  std::vector<LayerDefinition> own = mlp();
  own[1].device = "reference:1";
  Model placed(std::move(own));
  placed.compile(context, classification({"reference:0", "reference:1"}));
  const std::string text = message_of([&] { placed.train_batch(Tensor::zeros(DType::f32, {4, 28, 28}), Tensor::zeros(DType::i64, {4})); });
  CHECK(contains(text, "has its own device 'reference:1'"));
}

Config devices_of(const std::string& backend, int count, int threads = 2) {
  Config config = two_devices(backend);
  config.virtual_devices[0].count = count;
  config.threads = threads;
  return config;
}

std::vector<std::string> names(const std::string& backend, int count) {
  std::vector<std::string> all;
  for (int i = 0; i < count; ++i) all.push_back(backend + ":" + std::to_string(i));
  return all;
}

/// A net with most of what a step can consist of: convolution, batch normalisation, several inner sizes.
ModelDefinition small_convnet() {
  ModelDefinition definition;
  definition.dtype = DType::f64;
  definition.layers = {layers::Reshape{{1, 28, 28}},
                       layers::Conv2D{.filters = 4, .kernel_size = {3, 3}, .strides = {2, 2}},
                       layers::BatchNorm{},
                       layers::Activation{Activation::relu},
                       layers::Flatten{},
                       layers::Dense{10, Activation::softmax}};
  return definition;
}

/// Logs of each step and the parameters after them.
std::pair<std::vector<Logs>, std::vector<Tensor>> trained(const Context& context, const ModelDefinition& definition,
                                                          const CompileOptions& options, std::int64_t batch,
                                                          const std::shared_ptr<const Dataset>& data) {
  Model model(definition);
  model.compile(context, options);
  std::pair<std::vector<Logs>, std::vector<Tensor>> result;
  result.first = logs_of(model, data, batch);
  for (const auto& [name, tensor] : model.parameters().all()) {
    if (!is_training_state(name)) result.second.push_back(tensor.to_host());
  }
  return result;
}

TEST_CASE("parallel: 1, 2, 3 and 4 devices train alike, with synchronised batch normalisation too") {
  const auto data = generate_digits({.count = 5 * 26});
  const Context context(devices_of("openblas", 4));
  for (const bool adam : {false, true}) {
    CompileOptions options = classification();
    options.optimizer.kind = adam ? OptimizerDefinition::Kind::adam : OptimizerDefinition::Kind::sgd;
    options.optimizer.learning_rate = 0.01;
    options.optimizer.clip.global_norm = 0.5;
    const auto one = trained(context, small_convnet(), options, 26, data);
    for (const int count : {2, 3, 4}) {
      CAPTURE(count);
      options.parallel = {.devices = names("openblas", count), .sync_batch_norm = true};
      const auto several = trained(context, small_convnet(), options, 26, data);
      check_close(several.first, one.first, 1e-9);
      REQUIRE(several.second.size() == one.second.size());
      for (std::size_t i = 0; i < one.second.size(); ++i) CHECK(all_close(several.second[i], one.second[i], 1e-7, 1e-7));
    }
  }
}

TEST_CASE("parallel: batch normalisation of each part has running statistics that are means over the parts") {
  const auto data = generate_digits({.count = 24});
  const Context context(devices_of("reference", 2));
  const auto statistics = [&](std::vector<std::string> devices) {
    Model model(small_convnet());
    model.compile(context, classification(std::move(devices)));
    logs_of(model, data, 24);
    return std::pair(model.parameters().get("batch_norm/running_mean").to_host(),
                     model.parameters().get("batch_norm/running_variance").to_host());
  };
  const auto parts = statistics(names("reference", 2)), whole = statistics({});
  CHECK(all_close(parts.first, whole.first, 1e-10, 1e-10));
  CHECK(!all_close(parts.second, whole.second, 1e-10, 1e-10));  // less the variance of the means
}

TEST_CASE("parallel: repeats have the same bits, with any bucket size") {
  const auto data = generate_digits({.count = 10 * 60});
  const Context context(devices_of("openblas", 3));
  CompileOptions options = classification(names("openblas", 3));
  ModelDefinition definition;
  definition.layers = mlp();
  const auto first = trained(context, definition, options, 60, data);
  for (const double bucket_mb : {0.0, 0.05, 0.5}) {
    options.parallel.bucket_mb = bucket_mb;
    const auto again = trained(context, definition, options, 60, data);
    for (std::size_t i = 0; i < first.second.size(); ++i) CHECK(equal(again.second[i], first.second[i]));
  }
  Model model(definition);
  model.compile(context, options);
  model.build({28, 28});
  CHECK(model.explain(60).collectives == 2);  // 0.91 MiB of the first layer, 0.12 of the others
}

TEST_CASE("parallel: devices have copies of the parameters that follow the model's") {
  const auto data = generate_digits({.count = 3 * 20});
  const Context context(devices_of("openblas", 2));
  const std::string folder = (std::filesystem::temp_directory_path() / "tenon_parallel_parameters").string();
  const auto train = [&](std::vector<std::string> devices) {
    CompileOptions options = classification(std::move(devices));
    options.optimizer.kind = OptimizerDefinition::Kind::adam;
    Model model(mlp());
    model.compile(context, options);
    std::vector<Logs> logs = logs_of(model, data, 20);
    model.parameters().set("dense/kernel", Tensor::full(DType::f32, {784, 300}, 0.001));
    model.save(folder, "model");
    for (const Logs& more : logs_of(model, data, 20)) logs.push_back(more);
    model.load(folder);  // weights and optimizer state of three steps ago
    for (const Logs& more : logs_of(model, data, 20)) logs.push_back(more);
    std::filesystem::remove_all(folder);
    return logs;
  };
  check_close(train(names("openblas", 2)), train({}), 1e-5);
}

TEST_CASE("parallel: shares divide a batch in proportion") {
  const auto data = generate_digits({.count = 4 * 20});
  const Context context(devices_of("openblas", 2));
  ModelDefinition definition;
  definition.dtype = DType::f64;
  definition.layers = mlp();
  CompileOptions options = classification();
  const auto one = trained(context, definition, options, 20, data);
  options.parallel = {.devices = names("openblas", 2), .shares = {3, 1}};
  check_close(trained(context, definition, options, 20, data).first, one.first, 1e-9);
  Model model(definition);
  model.compile(context, options);
  model.build({28, 28});
  std::uint64_t size_bytes[2] = {0, 0};
  for (const Placement& node : model.explain(20).nodes) {
    if (node.node.ends_with("/dense/matmul")) size_bytes[node.node.starts_with("replica_1/") ? 1 : 0] = node.output_size_bytes;
  }
  CHECK(size_bytes[0] == 15 * 300 * 8);
  CHECK(size_bytes[1] == 5 * 300 * 8);
  options.parallel.shares = {3};
  CHECK_ERROR_CONTAINS("expected one number for each of the 2 devices, got 1", model.compile(context, options));
  options.parallel.shares = {3, -1};
  CHECK_ERROR_CONTAINS("expected positive numbers, got -1", model.compile(context, options));
  options.parallel = {.devices = {"openblas:0", "cpu:0"}};
  CHECK_ERROR_CONTAINS("'openblas:0' and 'cpu:0' are both openblas:0", model.compile(context, options));
}

TEST_CASE("parallel: gradients of backward are those of the whole batch") {
  const auto data = generate_digits({.count = 18});
  const Context context(devices_of("reference", 2));
  const auto gradient = [&](std::vector<std::string> devices) {
    Model model({layers::Flatten{}, layers::Dense{10, Activation::softmax}});
    model.compile(context, classification(std::move(devices)));
    Batches batches(data, {.batch_size = 9, .seed = 5, .workers = 0});
    batches.start(0);
    while (const Batch* next = batches.next()) model.backward(next->x(), next->y());
    return model.gradient("dense/kernel");
  };
  CHECK(all_close(gradient(names("reference", 2)), gradient({}), 1e-5, 1e-7));
}

TEST_CASE("parallel: dropout masks of the devices differ") {
  const Context context(devices_of("reference", 2));
  Model model({layers::Dropout{0.5},
               layers::Dense{1, Activation::linear, {.bias = false, .kernel_initializer = Initializer{.kind = Initializer::Kind::ones}}}});
  CompileOptions options;
  options.loss.loss = Loss::mse;
  options.optimizer = {.kind = OptimizerDefinition::Kind::sgd, .learning_rate = 1.0};
  options.parallel.devices = names("reference", 2);
  model.compile(context, options);
  // Both halves are the same sample of ones: the gradient of an input that one mask drops and the other keeps is odd.
  const Tensor x = Tensor::full(DType::f32, {2, 64}, 1), y = Tensor::full(DType::f32, {2, 1}, 1e3);
  model.backward(x, y);
  const std::vector<float> gradient = floats(model.gradient("dense/kernel"));
  std::set<float> values(gradient.begin(), gradient.end());
  CHECK(values.size() >= 3);  // dropped by both, by one, by none
}

TEST_CASE("parallel: a failure on one device ends the step with its reason, and training goes on") {
  const Context context(devices_of("openblas", 2));
  Model model({layers::Flatten{}, layers::Dense{10, Activation::softmax}});
  model.compile(context, classification(names("openblas", 2)));
  Model reference({layers::Flatten{}, layers::Dense{10, Activation::softmax}});
  reference.compile(context, classification());
  const auto data = generate_digits({.count = 10});
  std::vector<std::int64_t> all(10);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
  Tensor x = Tensor::zeros(DType::f32, {10, 28, 28}), y = Tensor::zeros(DType::i64, {10});
  data->gather(all, x, y);
  for (int round = 0; round < 3; ++round) {
    CAPTURE(round);
    const std::int64_t label = std::exchange(y.data<std::int64_t>()[9], 55);
    CHECK_ERROR_CONTAINS("55", model.train_batch(x, y));
    y.data<std::int64_t>()[9] = label;
    CHECK(std::abs(model.train_batch(x, y).logs[0].second - reference.train_batch(x, y).logs[0].second) < 1e-5);
  }
}

TEST_CASE("parallel: a step that is cancelled leaves the parameters, and the next one is taken") {
  const Context context(devices_of("openblas", 2));
  Model model(mlp());
  model.compile(context, classification(names("openblas", 2)));
  const Tensor x = Tensor::full(DType::f32, {8, 28, 28}, 0.5), y = Tensor::zeros(DType::i64, {8});
  model.train_batch(x, y);
  const Tensor before = model.parameters().get("dense/kernel").to_host();
  std::stop_source stop;
  stop.request_stop();
  CHECK_ERROR_CONTAINS("cancelled", model.train_batch(x, y, {}, {.stop = stop.get_token()}));
  CHECK(equal(model.parameters().get("dense/kernel").to_host(), before));
  CHECK(model.step() == 1);
  model.train_batch(x, y);
  CHECK(model.step() == 2);
}

TEST_CASE("parallel: a link between the devices is hidden behind the backward pass") {
  const Context context(devices_of("openblas", 2));
  CompileOptions options = classification(names("openblas", 2));
  options.parallel.link = {.bandwidth_bytes_per_s = 1e9, .latency_s = 1e-5, .bucket_size_bytes = 100000};
  const auto data = generate_digits({.count = 40});
  ModelDefinition definition;
  definition.layers = mlp();
  const auto over_link = trained(context, definition, options, 20, data);
  options.parallel.link = {};
  const auto without = trained(context, definition, options, 20, data);
  for (std::size_t i = 0; i < without.second.size(); ++i) CHECK(equal(over_link.second[i], without.second[i]));
}

/// What a step can consist of: convolution and batch normalisation, three dense layers, a frozen parameter.
CompileOptions shardable(int devices, bool sharded) {
  CompileOptions options = classification(devices == 1 ? std::vector<std::string>{} : names("openblas", devices));
  options.optimizer = {.kind = OptimizerDefinition::Kind::adam, .learning_rate = 0.01, .clip = {.global_norm = 0.5}};
  options.frozen = {"conv2d/bias"};
  options.parallel.shard_optimizer = sharded;
  return options;
}

void check_equal(Model& a, Model& b) {
  for (const auto& entry : b.parameters().all()) {
    const auto& name = entry.first;
    CAPTURE(name);
    if (!is_training_state(name)) CHECK(equal(a.parameters().get(name).to_host(), entry.second.to_host()));
  }
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

CompileOptions pipelined(int stages, std::int64_t micro_batches) {
  CompileOptions options = classification(names("openblas", stages));
  options.optimizer = {.kind = OptimizerDefinition::Kind::adam, .learning_rate = 0.01, .clip = {.global_norm = 0.5}};
  options.parallel.mode = ParallelOptions::Mode::pipeline;
  options.parallel.micro_batches = micro_batches;
  return options;
}

CompileOptions not_pipelined() {
  CompileOptions options = pipelined(2, 4);
  options.parallel = {};
  return options;
}

/// A net without layers that depend on the whole batch, with a branch inside of a stage and regularisation.
ModelDefinition deep_net() {
  ModelDefinition definition;
  definition.dtype = DType::f64;
  layers::Residual residual;
  residual.body = {layers::Dense{32, Activation::tanh}};
  definition.layers = {
      layers::Flatten{},   layers::Dense{32, Activation::relu, {.kernel_l2 = 0.01}}, residual,
      layers::LayerNorm{}, layers::Dense{24, Activation::relu, {.kernel_l2 = 0.01}}, layers::Dense{10, Activation::softmax}};
  return definition;
}

TEST_CASE("pipeline: stages train as one device does, with uneven batches, accumulation and ignored labels, and repeat their bits") {
  const auto data = generate_digits({.count = 47});  // the last batch has 3 samples
  const Context context(devices_of("openblas", 3));
  for (const std::int64_t accumulate : {1, 2}) {
    for (const bool ignores : {false, true}) {
      const FitOptions fit{.batch_size = 11, .epochs = 2, .accumulate = accumulate};
      const auto train = [&](CompileOptions options) {
        if (ignores) options.loss.ignore_index = 3;
        auto model = std::make_unique<Model>(deep_net());
        model->compile(context, options);
        History history = model->fit(data, fit);
        return std::pair(std::move(model), std::move(history));
      };
      auto [one, expected] = train(not_pipelined());
      for (const auto& division : std::vector<std::pair<int, std::int64_t>>{{2, 1}, {2, 4}, {3, 2}, {3, 5}}) {
        const int stages = division.first;
        const std::int64_t micro_batches = division.second;
        CAPTURE(accumulate);
        CAPTURE(ignores);
        CAPTURE(stages);
        CAPTURE(micro_batches);
        auto [model, history] = train(pipelined(stages, micro_batches));
        for (std::size_t epoch = 0; epoch < 2; ++epoch) {
          for (std::size_t i = 0; i < 2; ++i) CHECK(std::abs(history[epoch].logs[i].second - expected[epoch].logs[i].second) <= 1e-9);
        }
        for (const auto& entry : one->parameters().all()) {
          const auto& name = entry.first;
          CAPTURE(name);
          if (!is_training_state(name)) CHECK(all_close(model->parameters().get(name).to_host(), entry.second.to_host(), 1e-7, 1e-7));
        }
        CHECK(std::abs(model->evaluate(data)[0].second - one->evaluate(data)[0].second) <= 1e-9);
        if (micro_batches != 5) continue;
        auto [again, same] = train(pipelined(stages, micro_batches));
        check_equal(*again, *model);
      }
    }
  }
}

TEST_CASE("pipeline: layers are divided by their work, or by their devices, and the placement shows it") {
  const Context context(devices_of("openblas", 3));
  ModelDefinition definition = deep_net();
  const auto devices_by_layer = [&](int stages) {
    Model model(definition);
    model.compile(context, pipelined(stages, 2));
    model.build({28, 28});
    std::vector<std::string> devices;
    for (const LayerSummary& layer : model.layers()) devices.push_back(layer.device);
    return devices;
  };
  const std::string a = "openblas:0", b = "openblas:1", c = "openblas:2";
  CHECK(devices_by_layer(2) == std::vector<std::string>{a, a, b, b, b, b, b});  // the first dense layer is most of the work
  CHECK(devices_by_layer(3) == std::vector<std::string>{a, a, b, b, c, c, c});
  definition.layers[0].device = a;
  definition.layers[4].device = "cpu:1";
  CHECK(devices_by_layer(2) == std::vector<std::string>{a, a, a, a, a, b, b});
  Model model(definition);
  model.compile(context, pipelined(2, 4));
  model.build({28, 28});
  std::set<std::string> seen;
  for (const Placement& node : model.explain(16).nodes) {
    const std::string prefix = node.node.substr(0, node.node.find('/', 8) + 1);
    CHECK(node.device == (node.node.starts_with("stage_1/") ? a : b));
    if (node.node.starts_with("stage_1/")) seen.insert(prefix);
  }
  CHECK(seen == std::set<std::string>{"stage_1/forward/", "stage_1/backward/"});
}

TEST_CASE("pipeline: batch normalisation, dropout, frozen layers and 16-bit products; checkpoints go to and from one device") {
  const auto data = generate_digits({.count = 40});
  Config config = devices_of("openblas", 2);
  config.precision = Precision::mixed_bfloat16;
  const Context context(config);
  ModelDefinition definition = small_convnet();
  definition.dtype = DType::f32;
  definition.layers.insert(definition.layers.begin() + 4, layers::Dropout{0.25});
  definition.layers[5].device = "openblas:1";
  CompileOptions options = pipelined(2, 4);
  options.frozen = {"conv2d/*"};
  const TemporaryFolder folder;
  const FitOptions fit{.batch_size = 20};
  Model first(definition), second(definition), one(definition);
  for (Model* model : {&first, &second}) {
    model->compile(context, options);
    model->fit(data, fit);
  }
  check_equal(first, second);
  const Tensor mean = first.parameters().get("batch_norm/running_mean").to_host();
  CHECK(std::abs(floats(mean)[0]) > 0);
  first.save(folder.path(), "pipeline");
  CompileOptions alone = not_pipelined();
  alone.frozen = options.frozen;
  one.compile(context, alone);
  one.load(folder.file("pipeline.yaml"));
  check_equal(one, first);
  one.fit(data, {.batch_size = 20, .epochs = 2});
  // Compiled anew, parameters move to the devices of their stages.
  one.compile(context, options);
  CHECK(one.parameters().get("dense/kernel").storage()->device != one.parameters().get("conv2d/kernel").storage()->device);
  one.fit(data, {.batch_size = 20, .epochs = 3});
  CHECK(one.step() == 6);
  CHECK(all_close(first.predict(Tensor::full(DType::f32, {2, 28, 28}, 0.5)), second.predict(Tensor::full(DType::f32, {2, 28, 28}, 0.5)), 0,
                  0));
}

TEST_CASE("pipeline: an error of a stage names it and ends the others, and training goes on") {
  const Context context(devices_of("openblas", 3));
  const auto data = generate_digits({.count = 12});
  Batches batches(data, {.batch_size = 12, .workers = 0});
  batches.start(0);
  const Batch* const batch = batches.next();
  const Tensor x = batch->x().to_host();
  Tensor y = batch->y().to_host();
  Model model(deep_net()), one(deep_net());
  model.compile(context, pipelined(3, 4));
  one.compile(context, not_pipelined());
  for (int round = 0; round < 3; ++round) {
    const std::int64_t label = std::exchange(y.data<std::int64_t>()[7], 55);
    const std::string text = message_of([&] { model.train_batch(x, y); });
    CHECK_MESSAGE(contains(text, "stage 3 ('openblas:2'): "), text);
    CHECK_MESSAGE(contains(text, "55"), text);
    y.data<std::int64_t>()[7] = label;
    CHECK(std::abs(model.train_batch(x, y).logs[0].second - one.train_batch(x, y).logs[0].second) <= 1e-9);
  }
  std::stop_source stop;
  stop.request_stop();
  CHECK_ERROR_CONTAINS("cancelled before its first micro-batch", model.train_batch(x, y, {}, {.stop = stop.get_token()}));
  model.backward(x, y);
  one.backward(x, y);
  CHECK(all_close(model.gradient("dense/kernel"), one.gradient("dense/kernel"), 1e-9, 1e-12));
  CHECK_ERROR_CONTAINS("parallel.micro_batches: expected at most the number of samples of a batch, 3, got 4",
                       model.train_batch(x.narrow(0, 0, 3), y.narrow(0, 0, 3)));
  CHECK_ERROR_CONTAINS("parallel.micro_batches: expected at most the number of samples of a batch, 2, got 4",
                       model.fit(data, {.batch_size = 2}));
}

TEST_CASE("pipeline: what does not fit is refused by name") {
  const Context context(devices_of("openblas", 3));
  const auto refused = [&](auto change) {
    CompileOptions options = pipelined(2, 4);
    ModelDefinition definition = deep_net();
    definition.input_shape = {28, 28};
    change(options, definition);
    return message_of([&] { Model(definition).compile(context, options); });
  };
  using Definition = ModelDefinition;
  CHECK(contains(refused([](CompileOptions& o, Definition&) { o.parallel.devices.pop_back(); }), "at least 2 stages, got 1"));
  CHECK(contains(refused([](CompileOptions& o, Definition&) { o.parallel.devices[1] = "openblas:0"; }), "are both openblas:0"));
  CHECK(contains(refused([](CompileOptions& o, Definition&) { o.parallel.shard_optimizer = true; }),
                 "parallel.shard: not available with mode pipeline"));
  CHECK(contains(refused([](CompileOptions& o, Definition&) { o.parallel.shares = {1, 2}; }), "parallel.shares: not available"));
  CHECK(contains(refused([](CompileOptions& o, Definition&) { o.parallel.micro_batches = 0; }), "expected at least 1, got 0"));
  CHECK(contains(refused([](CompileOptions&, Definition& d) { d.layers[2].device = "openblas:2"; }),
                 "has the device 'openblas:2', which is not one of parallel.devices (openblas:0, openblas:1)"));
  CHECK(contains(refused([](CompileOptions&, Definition& d) { d.layers[0].device = "openblas:1"; }), "in the order of parallel.devices"));
  CHECK(
      contains(refused([](CompileOptions&, Definition& d) { d.layers[2].device = "openblas:0"; }), "no layer has the device 'openblas:1'"));
  CHECK(contains(refused([](CompileOptions&, Definition& d) { d.layers.resize(1); }),
                 "at least one layer for each of the 2 stages, the model has 1"));
  Config config = devices_of("openblas", 2);
  config.precision = Precision::mixed_float16;
  const Context f16(config);
  ModelDefinition net = small_convnet();
  net.dtype = DType::f32;
  Model model(net);
  model.compile(f16, pipelined(2, 2));
  CHECK_ERROR_CONTAINS("mode pipeline: precision mixed_float16 is not available for a model with running statistics ('batch_norm/",
                       model.train_batch(Tensor::zeros(DType::f32, {4, 28, 28}), Tensor::zeros(DType::i64, {4})));
  net.layers.erase(net.layers.begin() + 2);
  Model scaled(net);
  scaled.compile(f16, pipelined(2, 2));
  CHECK(scaled.train_batch(Tensor::full(DType::f32, {4, 28, 28}, 0.5), Tensor::zeros(DType::i64, {4})).step_taken);
  // A first stage that has nothing to learn, and so no backward pass; one that computes nothing at all.
  CompileOptions options = pipelined(3, 2);
  options.frozen = {"conv2d/*"};
  ModelDefinition part = small_convnet();
  part.layers = {layers::Dropout{0.0}, part.layers[0], part.layers[1], layers::Flatten{}, layers::Dense{10, Activation::softmax}};
  part.layers[1].device = "openblas:1";
  part.layers[4].device = "openblas:2";
  Model partly(part);
  partly.compile(context, options);
  const Tensor x = Tensor::full(DType::f64, {4, 28, 28}, 0.5), y = Tensor::zeros(DType::i64, {4});
  const double loss = partly.train_batch(x, y).logs[0].second;
  CHECK(partly.train_batch(x, y).logs[0].second < loss);
}

TEST_CASE("parallel: two models on two devices in two threads compute the same bits as in separate runs") {
  const auto data = generate_digits({.count = 320});
  const auto train = [&](const Context& context, const std::string& device, std::uint64_t seed) {
    std::vector<LayerDefinition> list{layers::Flatten{}, layers::Dense{32, Activation::relu}, layers::Dropout{0.2},
                                      layers::Dense{10, Activation::softmax}};
    for (LayerDefinition& layer : list) layer.device = device;
    Model model(std::move(list));
    model.compile(context, classification());
    model.fit(data, {.epochs = 2, .workers = static_cast<int>(seed % 2)});
    return model.parameters().get("dense/kernel").to_host();
  };
  Config config = two_devices("openblas");
  config.deterministic = true;
  config.threads = 1;
  const Context shared(config);
  Tensor together[2];
  std::thread other([&] { together[1] = train(shared, "openblas:1", 1); });
  together[0] = train(shared, "openblas:0", 2);
  other.join();
  for (int i = 0; i < 2; ++i) {
    const Context single_device(config);
    const Tensor single = train(single_device, i == 0 ? "openblas:0" : "openblas:1", i == 0 ? 2 : 1);
    CHECK(equal(single, together[i]));
  }
}

}  // namespace
}  // namespace tenon::test
