// SPDX-License-Identifier: Apache-2.0
// fit: validation, history, accumulation, stopping; and the parts of a step as separate calls.
#include <array>
#include <cmath>
#include <cstdint>
#include <set>
#include <stop_token>

#include "temporary_folder.h"
#include "train/random_key.h"
#include "train_testing.h"

namespace tenon::test {
namespace {

std::vector<LayerDefinition> small_classifier(double dropout = 0) {
  return {layers::Flatten{}, layers::Dense{16, Activation::relu}, layers::Dropout{dropout}, layers::Dense{10, Activation::softmax}};
}

std::map<std::string, std::vector<float>> trained(Model& model) {
  return weights(model, [](const std::string& name, const Tensor&) { return !name.starts_with("gradient"); });
}

double value_of(const Logs& logs, const std::string& name) {
  for (const auto& [key, value] : logs) {
    if (key == name) return value;
  }
  FAIL("no " << name);
  return 0;
}

/// A data set that records which samples were requested.
class Watched final : public Dataset {
 public:
  explicit Watched(std::shared_ptr<const Dataset> data) : Dataset(data->inputs(), data->targets()), data_(std::move(data)) {}
  const std::string& name() const override { return data_->name(); }
  std::int64_t size() const override { return data_->size(); }
  void gather(std::span<const std::int64_t> indices, std::span<Tensor> inputs, std::span<Tensor> targets) const override {
    seen.push_back({indices.begin(), indices.end()});
    data_->gather(indices, inputs, targets);
  }
  mutable std::vector<std::vector<std::int64_t>> seen;

 private:
  std::shared_ptr<const Dataset> data_;
};

TEST_CASE_FIXTURE(OnOpenblas, "fit: validation_split keeps the end of the data, before shuffling") {
  Model model = compiled(context, small_classifier());
  const auto data = std::make_shared<Watched>(digits(100));
  FitOptions options{.batch_size = 100, .workers = 0, .validation_split = 0.25};
  LambdaCallback mark({.batch_end = [&](std::int64_t, const Logs&, const BatchResult&) { data->seen.push_back({-1}); }});
  options.callbacks = {&mark};
  const History history = model.fit(data, options);
  REQUIRE(data->seen.size() == 3);
  CHECK(data->seen[1] == std::vector<std::int64_t>{-1});
  auto trained = data->seen[0];
  CHECK(trained.size() == 75);
  CHECK(!std::is_sorted(trained.begin(), trained.end()));
  CHECK(*std::max_element(trained.begin(), trained.end()) == 74);
  const auto& validated = data->seen[2];
  CHECK(validated.size() == 25);
  CHECK(*std::min_element(validated.begin(), validated.end()) == 75);
  REQUIRE(history[0].logs.size() == 4);
  CHECK(history[0].logs[2].first == "val_loss");
  CHECK(history[0].logs[3].first == "val_accuracy");
  CHECK(history[0].samples == 75);
  CHECK(history[0].samples_per_second() > 0);
  CHECK_ERROR_CONTAINS("validation and validation_split are both given", FitOptions both = options; both.validation = data;
                       model.fit(data, both));
  CHECK_ERROR_CONTAINS("validation_split 0.999 of 100 samples leaves one part empty", FitOptions none = options;
                       none.validation_split = 0.999; model.fit(data, none));
}

TEST_CASE_FIXTURE(OnOpenblas, "fit: validation data is evaluated after each epoch") {
  Model model = compiled(context, small_classifier(0.5));
  FitOptions options{.epochs = 2, .validation = digits(70)};
  const History history = model.fit(digits(100), options);
  const Logs after = model.evaluate(options.validation);
  CHECK(value_of(history[1].logs, "val_loss") == value_of(after, "loss"));
  CHECK(value_of(history[1].logs, "val_accuracy") == value_of(after, "accuracy"));
}

TEST_CASE_FIXTURE(OnOpenblas, "fit: steps_per_epoch ends epochs early") {
  Model model = compiled(context, small_classifier());
  const History history = model.fit(digits(100), {.batch_size = 10, .epochs = 3, .steps_per_epoch = 2});
  CHECK(model.step() == 6);
  CHECK(history[2].samples == 20);
}

/// A fit of 70 samples in batches of batch_size with gradients accumulated over `accumulate` batches, in f64 to keep rounding small.
std::map<std::string, std::vector<double>> gathered(std::int64_t batch_size, std::int64_t accumulate, OptimizerDefinition::Kind kind,
                                                    std::optional<std::int64_t> ignored = {}) {
  const Context context(test_config("openblas:0"));
  ModelDefinition definition;
  definition.dtype = DType::f64;
  definition.layers = small_classifier();
  Model model(definition);
  CompileOptions compile = classification();
  compile.optimizer.kind = kind;
  compile.loss.ignore_index = ignored;
  model.compile(context, compile);
  const History history = model.fit(digits(70), {.batch_size = batch_size, .epochs = 2, .accumulate = accumulate});
  CHECK(model.step() == 2 * 3);
  std::map<std::string, std::vector<double>> all;
  for (const auto& [name, tensor] : model.parameters().all()) {
    if (name.starts_with("gradient")) continue;
    const Tensor host = tensor.to_host();
    all[name] = {host.data<double>(), host.data<double>() + host.count()};
  }
  for (const auto& [name, value] : history[1].logs) all[name] = {value};
  return all;
}

TEST_CASE("fit: gradients accumulated over small batches give the step of a large batch") {
  for (const auto kind : {OptimizerDefinition::Kind::sgd, OptimizerDefinition::Kind::adam}) {
    for (const std::optional<std::int64_t> ignored : {std::optional<std::int64_t>(), std::optional<std::int64_t>(3)}) {
      // Batches of 8 in fours, the last of an epoch with 6 samples: as many as batches of 32, the last with 6.
      const auto large = gathered(32, 1, kind, ignored), small = gathered(8, 4, kind, ignored);
      CAPTURE(name_of(kind));
      CAPTURE(ignored.has_value());
      REQUIRE(large.size() == small.size());
      for (const auto& entry : large) {
        const auto& name = entry.first;
        const auto& values = entry.second;
        CAPTURE(name);
        for (std::size_t i = 0; i < values.size(); ++i) CHECK(small.at(name)[i] == doctest::Approx(values[i]).epsilon(1e-9).scale(1));
      }
    }
  }
}

TEST_CASE_FIXTURE(OnReference, "fit: accumulated batches have dropout masks of their own") {
  // The gradient of the kernel is the mean of the dropped x: the first mask alone, then the mean of two.
  Model model({layers::Dropout{0.5}, layers::Dense{1, Activation::linear, {.bias = false}}});
  model.compile(context, {.loss = {.loss = Loss::neg_mean_prod}});
  const Tensor x = Tensor::full(DType::f32, {1, 64}, 1), y = Tensor::full(DType::f32, {1, 1}, 1);
  model.backward(x, y);
  const std::vector<float> first = floats(model.gradient("dense/kernel"));
  model.backward(x, y);
  CHECK(floats(model.gradient("dense/kernel")) != first);
}

TEST_CASE("fit: the random key differs between steps and batches, and the first batch has the seed itself") {
  const std::uint64_t upper = std::uint64_t{1} << 32;
  std::set<std::array<std::uint64_t, 2>> keys;
  for (const std::uint64_t step : {std::uint64_t{1}, std::uint64_t{2}, upper + 1, 3 * upper + 1}) {
    for (const std::uint64_t batch : {0, 1, 2, 40}) {
      // what an op reads of it: the low 32 bits of the step
      const auto [seed, low] = train::random_key(7, step, batch);
      keys.insert({seed, low % upper});
    }
  }
  CHECK(keys.size() == 16);
  CHECK(train::random_key(7, 3, 0) == std::array<std::uint64_t, 2>{7, 3});
}

TEST_CASE_FIXTURE(Deterministic, "fit: stop ends it after a complete step, and the model can continue to the same result") {
  for (const std::int64_t accumulate : {1, 2}) {
    FitOptions options{.batch_size = 10, .epochs = 2, .accumulate = accumulate};
    Model straight = compiled(context, small_classifier(0.3));
    const History whole = straight.fit(digits(100), options);

    const TemporaryFolder folder;
    std::stop_source stop;
    LambdaCallback asks({.batch_end = [&](std::int64_t batch, const Logs&, const BatchResult&) {
      if (batch == 2) stop.request_stop();
    }});
    FitOptions stopped = options;
    stopped.run.stop = stop.get_token();
    stopped.callbacks = {&asks};
    Model first = compiled(context, small_classifier(0.3));
    CHECK(first.fit(digits(100), stopped).empty());
    CHECK(first.fit_end() == FitEnd::interrupted);
    CHECK(first.step() == (accumulate == 1 ? 3 : 2));
    first.save(folder.path(), "mid");

    Model second = compiled(context, small_classifier(0.3));
    const Model::Position position = second.load(folder.path() + "/mid.yaml");
    CHECK(position.epoch == 0);
    CHECK(position.batch == (accumulate == 1 ? 3 : 4));
    const History rest = second.fit(digits(100), options);
    CHECK(second.fit_end() == FitEnd::finished);
    CHECK(trained(second) == trained(straight));
    REQUIRE(rest.size() == 2);
    CHECK(rest[0].logs == whole[0].logs);  // the first part of the epoch is included
    CHECK(rest[1].logs == whole[1].logs);

    // The same within one process.
    CHECK(first.fit(digits(100), options).size() == 2);
    CHECK(trained(first) == trained(straight));
  }
}

TEST_CASE_FIXTURE(OnOpenblas, "fit: an epoch that was left with other batches restarts") {
  Model model = compiled(context, small_classifier());
  FitOptions options{.batch_size = 10};
  std::stop_source stop;
  LambdaCallback asks({.batch_end = [&](std::int64_t, const Logs&, const BatchResult&) { stop.request_stop(); }});
  options.run.stop = stop.get_token();
  options.callbacks = {&asks};
  model.fit(digits(100), options);
  options = {};
  options.batch_size = 20;
  const History history = model.fit(digits(100), options);
  CHECK(model.step() == 1 + 5);
  CHECK(history[0].samples == 100);
}

// ---------------------------------------------------------------- the parts of a step

TEST_CASE_FIXTURE(OnOpenblas, "parts: backward and apply match train_batch") {
  Model whole(small_classifier()), parts(small_classifier());
  whole.compile(context, classification());
  parts.compile(context, classification());
  const auto data = digits(64);
  Batches batches(data, {.batch_size = 32, .workers = 0});
  batches.start(0);
  while (const Batch* batch = batches.next()) {
    const Logs a = whole.train_batch(batch->x(), batch->y()).logs;
    const Logs b = parts.backward(batch->x(), batch->y()).logs;
    CHECK(a == b);
    parts.apply();
  }
  CHECK(parts.step() == 2);
  const auto a = trained(whole), b = trained(parts);
  for (const auto& entry : a) {
    const auto& name = entry.first;
    const auto& values = entry.second;
    CAPTURE(name);
    for (std::size_t i = 0; i < values.size(); ++i) CHECK(b.at(name)[i] == doctest::Approx(values[i]).epsilon(1e-4).scale(0.01));
  }
}

TEST_CASE_FIXTURE(OnReference, "parts: linear regression, computed by hand") {
  Model model({layers::Dense{1, Activation::linear, {.bias = false}}});
  model.compile(context, {.optimizer = {.kind = OptimizerDefinition::Kind::sgd, .learning_rate = 0.25}});
  model.build({1});
  model.parameters().set("dense/kernel", Tensor::of<float>({1.0f}, {1, 1}));
  const Tensor x = Tensor::of<float>({1, 2}, {2, 1}), y = Tensor::of<float>({2, 4}, {2, 1});
  CHECK(floats(model.forward(x)) == std::vector<float>{1, 2});
  CHECK(model.test_batch(x, y).loss() == doctest::Approx(2.5));  // (1 + 4) / 2
  CHECK(model.backward(x, y).loss() == doctest::Approx(2.5));
  CHECK(floats(model.gradient("dense/kernel"))[0] == doctest::Approx(-5));  // mean of 2 (w x - y) x
  const Tensor x1 = Tensor::of<float>({1}, {1, 1}), y1 = Tensor::of<float>({2}, {1, 1});
  model.backward(x1, y1);                                                   // one more sample, with gradient -2
  CHECK(floats(model.gradient("dense/kernel"))[0] == doctest::Approx(-4));  // (2 * -5 - 2) / 3
  CHECK_ERROR_CONTAINS("gradients of 2 batches are accumulated; call apply() first", model.train_batch(x, y));
  CHECK_ERROR_CONTAINS("there is no parameter 'dense/bias'", model.gradient("dense/bias"));
  model.apply();
  CHECK(floats(model.parameters().get("dense/kernel"))[0] == doctest::Approx(2));
  CHECK(model.step() == 1);
  CHECK_ERROR_CONTAINS("call backward() first", model.apply());
}

TEST_CASE_FIXTURE(OnOpenblas, "parts: a flag enables dropout in forward; evaluate and predict use inference") {
  Model model({layers::Dropout{0.5}});
  model.compile(context, {.optimizer = {}, .loss = {}, .metrics = {}});
  const Tensor x = Tensor::full(DType::f32, {1, 1000}, 1);
  const auto zeros = [](const Tensor& t) {
    const auto values = floats(t);
    return std::count(values.begin(), values.end(), 0.0f);
  };
  CHECK(!model.training());
  CHECK(zeros(model.forward(x)) == 0);
  model.set_training(true);
  const auto dropped = zeros(model.forward(x));
  CHECK(dropped > 400);
  CHECK(dropped < 600);
  CHECK(zeros(model.predict(x)) == 0);
  model.set_training(false);
  CHECK(zeros(model.forward(x)) == 0);
}

TEST_CASE_FIXTURE(OnOpenblas, "parts: a frozen model predicts what the model did, and outlives it") {
  Tensor x = Tensor::zeros(DType::f32, {4, 30});
  for (std::int64_t i = 0; i < x.count(); ++i) x.data<float>()[i] = 0.01f * static_cast<float>(i % 23);
  auto model = std::make_unique<Model>(std::vector<LayerDefinition>{layers::Dense{40}, layers::Dense{5}});
  model->compile(context, {.optimizer = {}, .loss = {}, .metrics = {}});
  CHECK_ERROR_CONTAINS("shape of a sample", model->freeze(4));
  const std::vector<float> expected = floats(model->predict(x));
  Program frozen = model->freeze(4);
  model.reset();
  const std::vector<float> got = floats(frozen.run({x})[0]);
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(got[i] == doctest::Approx(expected[i]).epsilon(1e-5));
}

TEST_CASE_FIXTURE(OnOpenblas, "parts: forward without training takes no memory for gradients or optimizer state") {
  const Device device = context.default_device();
  const std::vector<LayerDefinition> wide{layers::Dense{500}, layers::Dense{500}};
  const std::uint64_t parameters = (500 * 500 + 500) * 2 * sizeof(float);
  const Tensor x = Tensor::zeros(DType::f32, {2, 500});
  const std::uint64_t before = device.live_size_bytes();
  Model model(wide);
  model.compile(context, {.optimizer = {}, .loss = {}, .metrics = {}});
  model.forward(x);
  model.predict(x);
  model.test_batch(x, x);
  for (const auto& [name, tensor] : model.parameters().all()) CHECK(!is_training_state(name));
  const std::uint64_t forward = device.live_size_bytes() - before;
  CHECK(forward >= parameters);
  CHECK(forward < 2.5 * parameters);  // the weights and at most a packed copy by the backend; a gradient would be a third
  model.backward(x, x);
  const std::uint64_t backward = device.live_size_bytes() - before;
  CHECK(backward >= forward + parameters);
  model.apply();
  CHECK(device.live_size_bytes() - before >= backward + 2 * parameters);  // adam's m and v
}

}  // namespace
}  // namespace tenon::test
