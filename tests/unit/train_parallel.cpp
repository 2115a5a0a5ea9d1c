// SPDX-License-Identifier: Apache-2.0
// Several devices in one process: one batch shared among them, and independent models.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>

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
          .parallel_devices = std::move(devices)};
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

TEST_CASE("parallel: the report says which part ran where, and what was copied") {
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
  CHECK(on[1] > 0);
  CHECK(report.copies_inserted > 0);
  // the weights go to the second device, their gradients come back
  CHECK(report.bytes_copied_per_run >= 2 * 4 * (784 * 300 + 300 * 100 + 100 * 10));
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
