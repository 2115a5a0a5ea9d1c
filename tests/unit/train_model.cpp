// SPDX-License-Identifier: Apache-2.0
// Models: fit, evaluate, predict, the same run on every backend, and errors.
#include <algorithm>
#include <cmath>

#include "train_testing.h"

namespace tenon::test {
namespace {

CompileOptions with_rate(double learning_rate) {
  return classification({.learning_rate = learning_rate});
}

std::vector<LayerDefinition> small_classifier() {
  return {layers::Flatten{}, layers::Dense{32, Activation::relu}, layers::Dropout{0.2}, layers::Dense{10, Activation::softmax}};
}

/// Records the loss of every batch.
struct LossLog final : Callback {
  std::vector<double> epoch_means;
  void epoch_end(const EpochLogs& logs) override { epoch_means.push_back(logs.logs[0].second); }
};

/// The losses of the first steps, one batch after the other.
std::vector<double> losses(const std::string& device, int steps) {
  Config config = test_config(device);
  config.seed = 7;
  const Context context(config);
  Model model = compiled(context, small_classifier());
  const auto data = digits(steps * 32);
  Batches batches(data, {.batch_size = 32, .seed = 7, .workers = 0});
  batches.start(0);
  std::vector<double> result;
  while (const Batch* batch = batches.next()) result.push_back(model.train_batch(batch->x(), batch->y()).loss());
  return result;
}

TEST_CASE("model: the first 50 training steps agree on openblas and reference within 1e-4") {
  const auto a = losses("reference:0", 50), b = losses("openblas:0", 50);
  REQUIRE(a.size() == 50);
  REQUIRE(b.size() == 50);
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(std::abs(a[i] - b[i]) < 1e-4);
  CHECK(a.back() < a.front());
}

TEST_CASE_FIXTURE(OnOpenblas, "model: a small classifier learns generated digits") {
  Model model({layers::Flatten{}, layers::Dense{64, Activation::relu}, layers::Dense{10, Activation::softmax}});
  model.compile(context, classification());
  const History history = model.fit(digits(6000), {.epochs = 4});
  REQUIRE(history.size() == 4);
  CHECK(history.back().logs[0].second < history.front().logs[0].second);
  CHECK(model.evaluate(digits(1000, Split::test))[1].second > 0.85);
  CHECK(model.step() == 4 * 188);
}

TEST_CASE_FIXTURE(OnOpenblas, "model: linear regression recovers the generating line") {
  const LinearProblem problem = generate_linear({.noise = 0});
  Model model({layers::Dense{1}});
  model.compile(context, {.optimizer = {.kind = OptimizerDefinition::Kind::sgd, .learning_rate = 0.1}, .loss = {.loss = Loss::mse}});
  CHECK(model.fit(problem.data, {.epochs = 30}).back().logs[0].second < 1e-6);
  const auto w = floats(model.parameters().get("dense/kernel"));
  const auto expected = floats(problem.w);
  for (std::size_t i = 0; i < w.size(); ++i) CHECK(w[i] == doctest::Approx(expected[i]).epsilon(0.01));
  CHECK(floats(model.parameters().get("dense/bias"))[0] == doctest::Approx(problem.b).epsilon(0.01));
}

TEST_CASE("model: every optimizer lowers the loss") {
  for (const auto kind : {OptimizerDefinition::Kind::sgd, OptimizerDefinition::Kind::adam, OptimizerDefinition::Kind::adamw,
                          OptimizerDefinition::Kind::rmsprop}) {
    for (const double momentum : {0.0, 0.9}) {
      if (momentum != 0 && kind != OptimizerDefinition::Kind::sgd) continue;
      const Context context(test_config("openblas:0"));
      Model model({layers::Flatten{}, layers::Dense{10, Activation::softmax}});
      CompileOptions options = with_rate(0.01);
      options.optimizer.kind = kind;
      options.optimizer.momentum = momentum;
      model.compile(context, options);
      const History history = model.fit(digits(640), {.epochs = 3});
      CAPTURE(name_of(kind));
      CHECK(history.back().logs[0].second < history.front().logs[0].second);
    }
  }
}

TEST_CASE_FIXTURE(OnOpenblas, "model: predictions are probabilities and do not depend on the batch size") {
  Model model = compiled(context, small_classifier());
  const auto data = digits(50);
  model.fit(data, {});
  Batches batches(data, {.batch_size = 50, .shuffle = false, .workers = 0});
  batches.start(0);
  const Tensor x = batches.next()->x();
  const auto whole = floats(model.predict(x, 50));
  const auto pieces = floats(model.predict(x, 7));
  REQUIRE(whole.size() == 500);
  for (std::size_t i = 0; i < whole.size(); ++i) CHECK(whole[i] == doctest::Approx(pieces[i]).epsilon(1e-5));
  for (std::size_t i = 0; i < 50; ++i) {
    double sum = 0;
    for (std::size_t j = 0; j < 10; ++j) sum += whole[i * 10 + j];
    CHECK(sum == doctest::Approx(1.0).epsilon(1e-5));
  }
}

TEST_CASE("model: the last partial batch is weighted by its size") {
  // One batch of 32 and one of 8: the epoch's mean is weighted by 32 and 8.
  Config config = test_config("reference:0");
  const Context context(config);
  Model model({layers::Flatten{}, layers::Dense{10, Activation::softmax}});
  model.compile(context, with_rate(0.0));
  const auto data = digits(40);
  const double mean = model.fit(data, {.shuffle = false})[0].logs[0].second;
  CHECK(mean == doctest::Approx(model.evaluate(data, 40)[0].second).epsilon(1e-6));
}

TEST_CASE_FIXTURE(OnOpenblas, "model: a loss that is not finite stops training and names the step") {
  Model model({layers::Dense{1}});
  model.compile(context, {.optimizer = {.kind = OptimizerDefinition::Kind::sgd, .learning_rate = 1e30}, .loss = {.loss = Loss::mse}});
  const std::string text = message_of([&] { model.fit(generate_linear().data, {}); });
  CHECK(contains(text, "at epoch 1, step "));
  CHECK(contains(text, "try a smaller learning rate than 1e+30"));
}

TEST_CASE_FIXTURE(OnOpenblas, "model: labels out of range are reported, and the model stays usable") {
  Model model({layers::Dense{3, Activation::softmax}});
  model.compile(context, classification());
  const Tensor x = Tensor::zeros(DType::f32, {2, 4});
  const std::string text = message_of([&] { model.train_batch(x, Tensor::of<std::int64_t>({1, 3}, {2})); });
  CHECK(contains(text, "label 3 at index 1 is out of range [0, 3)"));
  CHECK(model.step() == 0);
  CHECK(std::isfinite(model.train_batch(x, Tensor::of<std::int64_t>({1, 2}, {2})).loss()));
}

TEST_CASE_FIXTURE(OnReference, "model: mismatched layers are reported") {
  Model model({layers::Dense{10, Activation::softmax}});
  model.compile(context, classification());
  CHECK_ERROR("layer dense: 'dense' expects (batch, ..., features), got (1)", model.build({}));
  const auto build = [&](LayerDefinition layer) {
    Model one({std::move(layer)});
    one.compile(context, classification());
    one.build({3});
  };
  CHECK_ERROR("layer dense: units is 0, expected at least 1", build(layers::Dense{0}));
  CHECK_ERROR("layer dropout: the probability of dropout is 1, expected at least 0 and below 1", build(layers::Dropout{1.0}));
  CHECK(message_of([&] { Model(std::vector<LayerDefinition>{}); }) == "model: expected at least one layer, got none");
  const LayerDefinition named(layers::Dense{4}, "a");
  Model twice({named, named});
  twice.compile(context, {.optimizer = {}, .loss = {}, .metrics = {}});
  CHECK_ERROR_CONTAINS("the name 'a' is already used by an earlier layer", twice.build({3}));
}

TEST_CASE_FIXTURE(OnReference, "model: a loss that does not fit the last layer is rejected") {
  Model model({layers::Dense{3}});
  model.compile(context, classification());
  const std::string text = message_of([&] { model.train_batch(Tensor::zeros(DType::f32, {2, 4}), Tensor::of<std::int64_t>({1, 2}, {2})); });
  CHECK(contains(text, "the last layer is not a softmax; add one, or set from_logits: true"));

  const auto error = [&](Activation last, LossDefinition loss, const Tensor& y) {
    Model other({layers::Dense{3, last}});
    other.compile(context, {.optimizer = {}, .loss = loss, .metrics = {}});
    return message_of([&] { other.train_batch(Tensor::zeros(DType::f32, {2, 4}), y); });
  };
  const Tensor labels = Tensor::of<std::int64_t>({1, 2}, {2}), values = Tensor::zeros(DType::f32, {2, 3});
  const std::string probabilities = "from_logits: true expects scores, but the last layer ends with ";
  CHECK(error(Activation::softmax, {.loss = Loss::sparse_categorical_crossentropy, .from_logits = true}, labels) ==
        "loss sparse_categorical_crossentropy: " + probabilities +
            "softmax, which makes probabilities of them; remove from_logits, or the softmax");
  CHECK(contains(error(Activation::softmax, {.loss = Loss::categorical_crossentropy, .from_logits = true}, values), probabilities));
  CHECK(contains(error(Activation::sigmoid, {.loss = Loss::binary_crossentropy, .from_logits = true}, values), probabilities + "sigmoid"));
  CHECK(contains(error(Activation::softmax, {.loss = Loss::nll}, labels), "end the model with log_softmax, or use the loss sparse_"));
  CHECK(error(Activation::log_softmax, {.loss = Loss::nll}, labels) == "no error");
  CHECK(error(Activation::sigmoid, {.loss = Loss::binary_crossentropy}, values) == "no error");
}

TEST_CASE_FIXTURE(OnReference, "model: dropout is the identity outside training") {
  Model with = compiled(context, small_classifier());
  with.build({28, 28});
  Model without({layers::Flatten{}, layers::Dense{32, Activation::relu}, layers::Dense{10, Activation::softmax}});
  without.compile(context, classification());
  without.build({28, 28});
  for (const auto& [name, tensor] : with.parameters().all()) {
    if (!name.starts_with("optimizer/")) without.parameters().set(name, tensor);
  }
  const auto data = digits(20);
  CHECK(with.evaluate(data)[0].second == without.evaluate(data)[0].second);
}

TEST_CASE_FIXTURE(OnOpenblas, "model: f64 trains too") {
  ModelDefinition definition;
  definition.dtype = DType::f64;
  definition.layers = small_classifier();
  Model model(definition);
  model.compile(context, classification());
  const History history = model.fit(digits(320), {.epochs = 2});
  CHECK(model.parameters().get("dense/kernel").dtype() == DType::f64);
  CHECK(history[1].logs[0].second < history[0].logs[0].second);
}

}  // namespace
}  // namespace tenon::test
