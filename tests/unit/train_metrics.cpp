// SPDX-License-Identifier: Apache-2.0
// Metrics: stateful over batches of different size, chosen by the loss.
#include <cmath>

#include "testing.h"

namespace tenon::test {
namespace {

/// A model that returns x, so that predictions can be given.
Model identity(const Context& context, CompileOptions options) {
  Model model({layers::Activation{Activation::linear}});
  model.compile(context, std::move(options));
  return model;
}

std::shared_ptr<const Dataset> pairs(const std::vector<float>& x, const Shape& x_shape, const Tensor& y) {
  return std::make_shared<ArrayDataset>(Tensor::of<float>(x, x_shape), y);
}

double metric(const Logs& logs, std::size_t i) {
  return logs.at(i).second;
}

const std::vector<float> scores{
    3,  1, 2,  // classes in order 0, 2, 1
    0,  5, 1,  // 1, 2, 0
    1,  2, 9,  // 2, 1, 0
    4,  4, 0,  // 0 and 1 tie
    -1, 2, -3,
};
const Tensor labels = Tensor::of<std::int64_t>({0, 0, 1, 1, 1}, {5});

CompileOptions sparse(std::vector<MetricDefinition> metrics) {
  return {.loss = {.loss = Loss::sparse_categorical_crossentropy, .from_logits = true}, .metrics = std::move(metrics)};
}

TEST_CASE("metrics: accuracy and top-k of labels, in any batches") {
  for (const std::string device : {"reference:0", "openblas:0"}) {
    const Context context(test_config(device));
    Model model = identity(context, sparse({Metric::accuracy, {Metric::top_k, 1}, {Metric::top_k, 2}, {Metric::top_k, 3}}));
    const auto data = pairs(scores, {5, 3}, labels);
    for (const std::int64_t batch_size : {1, 2, 3, 5}) {
      CAPTURE(batch_size);
      const Logs logs = model.evaluate(data, batch_size);
      CHECK(metric(logs, 1) == doctest::Approx(2.0 / 5));  // the tie goes to class 0
      CHECK(metric(logs, 2) == doctest::Approx(3.0 / 5));  // no score is above that of a tied class
      CHECK(metric(logs, 3) == doctest::Approx(4.0 / 5));
      CHECK(metric(logs, 4) == doctest::Approx(1.0));
      CHECK(logs[2].first == "top_1_accuracy");
    }
  }
}

TEST_CASE_FIXTURE(OnReference, "metrics: perplexity is exp of the overall mean, not a mean of exps") {
  Model model = identity(context, sparse({Metric::perplexity}));
  const auto data = pairs(scores, {5, 3}, labels);
  for (const std::int64_t batch_size : {1, 2, 5}) {
    const Logs logs = model.evaluate(data, batch_size);
    CHECK(metric(logs, 1) == doctest::Approx(std::exp(metric(logs, 0))));
  }
}

TEST_CASE_FIXTURE(OnReference, "metrics: ignored labels have no weight, also in means over batches") {
  CompileOptions options = sparse({Metric::accuracy, {Metric::top_k, 2}});
  Model all = identity(context, options);
  options.loss.ignore_index = -1;
  Model some = identity(context, options);
  const auto ignored = pairs(scores, {5, 3}, Tensor::of<std::int64_t>({0, -1, 1, -1, 1}, {5}));
  const auto kept = pairs({3, 1, 2, 1, 2, 9, -1, 2, -3}, {3, 3}, Tensor::of<std::int64_t>({0, 1, 1}, {3}));
  const Logs expected = all.evaluate(kept, 3);
  for (const std::int64_t batch_size : {2, 3, 5}) {
    const Logs got = some.evaluate(ignored, batch_size);
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(metric(got, i) == doctest::Approx(metric(expected, i)));
  }
}

TEST_CASE_FIXTURE(OnReference, "metrics: mse, mae, binary and categorical accuracy of values") {
  Model model = identity(context, {.metrics = {Metric::mse, Metric::mae, Metric::binary_accuracy, Metric::categorical_accuracy}});
  const auto data = pairs({0.9f, 0.2f, 0.4f, 0.7f, 0.6f, 0.5f}, {3, 2}, Tensor::of<float>({1, 0, 1, 0, 0, 1}, {3, 2}));
  for (const std::int64_t batch_size : {1, 2, 3}) {
    const Logs logs = model.evaluate(data, batch_size);
    CHECK(metric(logs, 1) == doctest::Approx((0.01 + 0.04 + 0.36 + 0.49 + 0.36 + 0.25) / 6));
    CHECK(metric(logs, 2) == doctest::Approx((0.1 + 0.2 + 0.6 + 0.7 + 0.6 + 0.5) / 6));
    CHECK(metric(logs, 3) == doctest::Approx(2.0 / 6));  // 0.5 is not above 0.5
    CHECK(metric(logs, 4) == doctest::Approx(1.0 / 3));
  }
}

TEST_CASE_FIXTURE(OnReference, "metrics: accuracy follows the loss: categorical, binary, from scores or probabilities") {
  CompileOptions options{.loss = {.loss = Loss::categorical_crossentropy, .from_logits = true}, .metrics = {Metric::accuracy}};
  const Tensor one_hot = Tensor::of<float>({1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0}, {5, 3});
  options.metrics.emplace_back(Metric::top_k, 2);
  const Logs categorical = identity(context, options).evaluate(pairs(scores, {5, 3}, one_hot), 2);
  const Logs of_labels = identity(context, sparse({Metric::accuracy, {Metric::top_k, 2}})).evaluate(pairs(scores, {5, 3}, labels), 3);
  for (std::size_t i = 0; i < of_labels.size(); ++i) CHECK(metric(categorical, i) == doctest::Approx(metric(of_labels, i)));

  options.metrics = {Metric::accuracy};
  options.loss.loss = Loss::binary_crossentropy;
  const Tensor truth = Tensor::of<float>({1, 0, 0, 1}, {4, 1});
  const Logs logits = identity(context, options).evaluate(pairs({0.3f, 0.2f, -1, 4}, {4, 1}, truth), 3);
  CHECK(metric(logits, 1) == doctest::Approx(0.75));
  const auto cross_entropy = [](double x, double t) { return std::log1p(std::exp(x)) - t * x; };
  CHECK(metric(logits, 0) ==
        doctest::Approx((cross_entropy(0.3, 1) + cross_entropy(0.2, 0) + cross_entropy(-1, 0) + cross_entropy(4, 1)) / 4));
  options.loss.from_logits = false;
  const Logs probabilities = identity(context, options).evaluate(pairs({0.3f, 0.2f, 0.1f, 0.9f}, {4, 1}, truth), 3);
  CHECK(metric(probabilities, 1) == doctest::Approx(0.75));
  CHECK(metric(probabilities, 0) == doctest::Approx(-(std::log(0.3) + std::log(0.8) + 2 * std::log(0.9)) / 4));
}

TEST_CASE_FIXTURE(OnReference, "losses: regression losses are means over all elements, in any batches") {
  const auto data = pairs({0, 3, 1, 1}, {2, 2}, Tensor::of<float>({0.5f, 1, 1, 2}, {2, 2}));
  const std::vector<std::pair<Loss, double>> expected{{Loss::mse, (0.25 + 4 + 0 + 1) / 4},
                                                      {Loss::half_mse, (0.25 + 4 + 0 + 1) / 4},  // over 2 samples, halved
                                                      {Loss::mae, (0.5 + 2 + 0 + 1) / 4},
                                                      {Loss::huber, (0.125 + 1.5 + 0 + 0.5) / 4},
                                                      {Loss::neg_mean_prod, -(0.0 + 3 + 1 + 2) / 4}};
  for (const auto& row : expected) {
    const Loss loss = row.first;
    const double value = row.second;
    CAPTURE(name_of(loss));
    Model model = identity(context, {.loss = {.loss = loss}});
    for (const std::int64_t batch_size : {1, 2}) CHECK(metric(model.evaluate(data, batch_size), 0) == doctest::Approx(value));
  }
}

TEST_CASE_FIXTURE(OnReference, "losses: huber becomes linear at delta") {
  const auto data = pairs({0, 3, 1, 1}, {2, 2}, Tensor::of<float>({0.5f, 1, 1, 2}, {2, 2}));  // errors 0.5, 2, 0, 1
  for (const auto& [delta, value] : {std::pair{0.25, (0.09375 + 0.46875 + 0 + 0.21875) / 4}, {4.0, (0.125 + 2 + 0 + 0.5) / 4}}) {
    CHECK(metric(identity(context, {.loss = {.loss = Loss::huber, .delta = delta}}).evaluate(data, 2), 0) == doctest::Approx(value));
  }
}

TEST_CASE_FIXTURE(OnReference, "losses: nll takes logarithms of probabilities as they are") {
  CompileOptions options{.loss = {.loss = Loss::nll}, .metrics = {Metric::accuracy, Metric::perplexity}};
  const auto data = pairs({-0.1f, -2.4f, -3, -1, -0.7f, -1.9f}, {2, 3}, Tensor::of<std::int64_t>({0, 2}, {2}));
  const Logs logs = identity(context, options).evaluate(data, 1);
  CHECK(metric(logs, 0) == doctest::Approx((0.1 + 1.9) / 2));
  CHECK(metric(logs, 1) == doctest::Approx(0.5));
  CHECK(metric(logs, 2) == doctest::Approx(std::exp(1.0)));
  // after a log_softmax it is the cross-entropy of the scores
  Model model({layers::Flatten{}, layers::Activation{Activation::log_softmax}});
  model.compile(context, options);
  const auto scored = pairs(scores, {5, 3}, labels);
  CHECK(metric(model.evaluate(scored, 2), 0) == doctest::Approx(metric(identity(context, sparse({})).evaluate(scored, 5), 0)));
}

TEST_CASE_FIXTURE(OnReference, "losses: binary_crossentropy behind a sigmoid reads its logits: a wrong and certain answer has a gradient") {
  const Tensor x = Tensor::of<float>({1, -1}, {2, 1}), y = Tensor::of<float>({0, 1}, {2, 1});
  for (const double positive : {1.0, 3.0}) {
    for (const double logit : {1.0, 40.0, 1000.0}) {
      CAPTURE(positive);
      CAPTURE(logit);
      Model model({layers::Dense{1, Activation::sigmoid, {.bias = false}}});
      model.compile(context,
                    {.loss = {.loss = Loss::binary_crossentropy, .positive_weight = positive}, .metrics = {Metric::binary_accuracy}});
      model.build({1});
      model.parameters().set("dense/kernel", Tensor::of<float>({static_cast<float>(logit)}, {1, 1}));
      const double mean_weight = (1 + positive) / 2;
      CHECK(model.backward(x, y).loss() == doctest::Approx(mean_weight * (std::log1p(std::exp(-logit)) + logit)));
      CHECK(floats(model.gradient("dense/kernel"))[0] == doctest::Approx(mean_weight / (1 + std::exp(-logit))));
      CHECK(model.test_batch(x, y).logs[1].second == 0);
    }
  }
}

TEST_CASE_FIXTURE(OnReference, "losses: nll ignores labels where it is told to, with its metrics, and refuses those that are no class") {
  Model model({layers::Activation{Activation::linear}});
  const Tensor x = Tensor::of<float>({-1, -2, -3, -4}, {2, 2});
  const auto logs = [&](std::optional<std::int64_t> ignored, std::vector<std::int64_t> classes) {
    model.compile(context, {.loss = {.loss = Loss::nll, .ignore_index = ignored}, .metrics = {Metric::accuracy}});
    return model.test_batch(x, Tensor::of(classes, {2}));
  };
  const BatchResult result = logs(-1, {1, -1});
  CHECK(result.loss() == 2);
  CHECK(result.logs[1].second == 0);
  CHECK(result.weight == 1);
  CHECK_ERROR_CONTAINS("label -1 at index 1 is out of range [0, 2)", logs({}, {1, -1}));
}

TEST_CASE_FIXTURE(OnReference, "metrics: those that do not fit the loss are rejected by name") {
  const auto data = pairs({0.9f, 0.2f}, {1, 2}, Tensor::of<float>({1, 0}, {1, 2}));
  CompileOptions options{.metrics = {Metric::accuracy}};
  CHECK_ERROR_CONTAINS("use categorical_accuracy or binary_accuracy", identity(context, options).evaluate(data));
  options.metrics = {Metric::perplexity};
  CHECK_ERROR_CONTAINS("metric perplexity: cannot be used with the loss mse", identity(context, options).evaluate(data));
  CHECK_ERROR_CONTAINS("metric mae: cannot be used with the loss sparse_categorical_crossentropy",
                       identity(context, sparse({Metric::mae})).evaluate(pairs(scores, {5, 3}, labels)));
  CHECK_ERROR_CONTAINS("k is 4, expected 1 to 3, the number of classes",
                       identity(context, sparse({{Metric::top_k, 4}})).evaluate(pairs(scores, {5, 3}, labels)));
}

TEST_CASE_FIXTURE(OnReference, "metrics: the confusion matrix counts true classes by rows") {
  Model model = identity(context, sparse({}));
  for (const std::int64_t batch_size : {2, 5}) {
    const Tensor matrix = model.confusion_matrix(pairs(scores, {5, 3}, labels), batch_size);
    const std::vector<std::int64_t> counts(matrix.data<std::int64_t>(), matrix.data<std::int64_t>() + matrix.count());
    CHECK(counts == std::vector<std::int64_t>{1, 1, 0, 1, 1, 1, 0, 0, 0});
  }
  CHECK_ERROR_CONTAINS("label 3 at index 2 of array is out of range [0, 3)",
                       model.confusion_matrix(pairs(scores, {5, 3}, Tensor::of<std::int64_t>({0, 0, 3, 1, 1}, {5})), 2));
  // a label with its own axis is that label
  for (const Tensor& column : {labels.reshape({5, 1}), Tensor::of<std::int32_t>({0, 0, 1, 1, 1}, {5, 1})}) {
    const Tensor matrix = model.confusion_matrix(pairs(scores, {5, 3}, column), 2);
    CHECK(std::vector<std::int64_t>(matrix.data<std::int64_t>(), matrix.data<std::int64_t>() + matrix.count()) ==
          std::vector<std::int64_t>{1, 1, 0, 1, 1, 1, 0, 0, 0});
  }
}

}  // namespace
}  // namespace tenon::test
