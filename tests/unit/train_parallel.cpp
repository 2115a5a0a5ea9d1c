// SPDX-License-Identifier: Apache-2.0
// Several devices in one process: one batch shared among them, and independent models.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <stop_token>
#include <thread>
#include <utility>

#include "parallel_testing.h"

namespace tenon::test {
namespace {

struct Learner {
  Context context;
  Model model;
  Learner(const Config& config, CompileOptions options, std::vector<LayerDefinition> layers) : context(config), model(std::move(layers)) {
    model.compile(context, std::move(options));
  }
};

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
  CHECK(contains(report.str(), "1 sum over ranks"));
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
