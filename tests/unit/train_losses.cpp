// SPDX-License-Identifier: Apache-2.0
// Options of the losses: label smoothing, class weights, positive weight. The formulas are those of PyTorch's documentation of
// CrossEntropyLoss and BCEWithLogitsLoss, in f64.
#include <doctest/doctest.h>

#include <cmath>
#include <optional>

#include "train_testing.h"

namespace tenon::test {
namespace {

const std::vector<float> scores = {0.5F, -1, 2, 1.5F, 0.25F, -0.75F, -2, 3, 0};  // three samples of three classes
const std::vector<std::int64_t> labels = {2, 0, 1};

double log_softmax(std::size_t sample, std::size_t c) {
  double total = 0;
  for (std::size_t k = 0; k < 3; ++k) total += std::exp(static_cast<double>(scores[sample * 3 + k]));
  return static_cast<double>(scores[sample * 3 + c]) - std::log(total);
}

/// The loss of scores that pass through a layer without effect.
double loss_of(const Context& context, const LossDefinition& loss, const Tensor& y) {
  Model model({layers::Activation{}});
  model.compile(context, {.loss = loss});
  return model.test_batch(Tensor::of<float>(scores, {3, 3}), y).loss();
}

LossDefinition cross_entropy(Loss loss, double smoothing, std::vector<double> weights = {}, std::optional<std::int64_t> ignored = {}) {
  return {.loss = loss, .from_logits = true, .ignore_index = ignored, .label_smoothing = smoothing, .class_weights = std::move(weights)};
}

/// CrossEntropyLoss(weight, ignore_index, label_smoothing) of labels.
double of_labels(double smoothing, const std::vector<double>& w, std::int64_t ignored = -1) {
  double sum = 0, total = 0;
  for (std::size_t n = 0; n < 3; ++n) {
    if (labels[n] == ignored) continue;
    const auto y = static_cast<std::size_t>(labels[n]);
    total += w[y];
    sum -= (1 - smoothing) * w[y] * log_softmax(n, y);
    for (std::size_t c = 0; c < 3; ++c) sum -= smoothing / 3 * w[c] * log_softmax(n, c);
  }
  return sum / total;
}

/// The same of one value per class: divided by the number of samples.
double of_one_hot(double smoothing, const std::vector<double>& w) {
  double sum = 0;
  for (std::size_t n = 0; n < 3; ++n) {
    for (std::size_t c = 0; c < 3; ++c) {
      const double target = (static_cast<std::size_t>(labels[n]) == c ? 1 - smoothing : 0) + smoothing / 3;
      sum -= w[c] * target * log_softmax(n, c);
    }
  }
  return sum / 3;
}

TEST_CASE_FIXTURE(OnReference, "losses: label smoothing and class weights are PyTorch's, with labels and with one value per class") {
  const Tensor y = Tensor::of<std::int64_t>(labels, {3}), one_hot = Tensor::of<float>({0, 0, 1, 1, 0, 0, 0, 1, 0}, {3, 3});
  const std::vector<double> even = {1, 1, 1}, weights = {0.5, 2, 3};
  const auto near = [](double value) { return doctest::Approx(value).epsilon(1e-5); };
  for (const double smoothing : {0.0, 0.1, 0.5}) {
    CAPTURE(smoothing);
    const Loss sparse = Loss::sparse_categorical_crossentropy, dense = Loss::categorical_crossentropy;
    CHECK(loss_of(context, cross_entropy(sparse, smoothing), y) == near(of_labels(smoothing, even)));
    CHECK(loss_of(context, cross_entropy(sparse, smoothing, weights), y) == near(of_labels(smoothing, weights)));
    CHECK(loss_of(context, cross_entropy(sparse, smoothing, {}, 1), y) == near(of_labels(smoothing, even, 1)));
    CHECK(loss_of(context, cross_entropy(sparse, smoothing, weights, 0), y) == near(of_labels(smoothing, weights, 0)));
    CHECK(loss_of(context, cross_entropy(dense, smoothing), one_hot) == near(of_one_hot(smoothing, even)));
    CHECK(loss_of(context, cross_entropy(dense, smoothing, weights), one_hot) == near(of_one_hot(smoothing, weights)));
    const auto self = [](double t) { return t == 0 ? 0 : t * std::log(t); };
    const double entropy = -self(1 - smoothing + smoothing / 3) - 2 * self(smoothing / 3);
    CHECK(loss_of(context, cross_entropy(Loss::kl_divergence, smoothing), one_hot) == near(of_one_hot(smoothing, even) - entropy));
  }
}

TEST_CASE_FIXTURE(OnReference, "losses: positive_weight multiplies the cost of targets 1") {
  const std::vector<float> targets = {1, 0, 1, 0, 1, 0, 0, 1, 0};
  double from_logits = 0, from_probabilities = 0;
  for (std::size_t i = 0; i < 9; ++i) {
    const auto z = static_cast<double>(scores[i]), t = static_cast<double>(targets[i]);
    from_logits += 3 * t * std::log1p(std::exp(-z)) + (1 - t) * std::log1p(std::exp(z));
    const double p = std::min(std::max(z, 1e-7), 1 - 1e-7);
    from_probabilities -= 3 * t * std::log(p) + (1 - t) * std::log(1 - p);
  }
  const Tensor y = Tensor::of<float>(targets, {3, 3});
  LossDefinition loss{.loss = Loss::binary_crossentropy, .from_logits = true, .positive_weight = 3};
  CHECK(loss_of(context, loss, y) == doctest::Approx(from_logits / 9).epsilon(1e-5));
  loss.from_logits = false;
  CHECK(loss_of(context, loss, y) == doctest::Approx(from_probabilities / 9).epsilon(1e-2));  // 1 - 1e-7 has few digits in f32
}

TEST_CASE_FIXTURE(OnReference, "losses: options that do not fit are refused by name, and targets of the wrong form with the remedy") {
  const Tensor y = Tensor::of<std::int64_t>(labels, {3}), one_hot = Tensor::of<float>({0, 0, 1, 1, 0, 0, 0, 1, 0}, {3, 3});
  const Loss sparse = Loss::sparse_categorical_crossentropy;
  CHECK_ERROR("loss mse: has no label_smoothing; the cross-entropies do",
              loss_of(context, {.loss = Loss::mse, .label_smoothing = 0.1}, one_hot));
  CHECK_ERROR("loss mse: has no positive_weight; binary_crossentropy does",
              loss_of(context, {.loss = Loss::mse, .positive_weight = 2}, one_hot));
  CHECK_ERROR("loss kl_divergence: has no class_weights; the categorical cross-entropies do",
              loss_of(context, {.loss = Loss::kl_divergence, .from_logits = true, .class_weights = {1}}, one_hot));
  CHECK_ERROR("loss nll: has no class_weights; the categorical cross-entropies do",
              loss_of(context, {.loss = Loss::nll, .class_weights = {1}}, y));
  CHECK_ERROR("loss sparse_categorical_crossentropy: label_smoothing is 1, expected at least 0 and below 1",
              loss_of(context, cross_entropy(sparse, 1), y));
  CHECK_ERROR("loss sparse_categorical_crossentropy: expected 3 class_weights, one for each class of the output (3,3), got 2",
              loss_of(context, cross_entropy(sparse, 0, {1, 1}), y));
  CHECK_ERROR_CONTAINS("expected labels of i64 or i32, got f32 (3,3); categorical_crossentropy takes one value per class",
                       loss_of(context, cross_entropy(sparse, 0), one_hot));
  CHECK_ERROR_CONTAINS("(3,3), got (3); data: {targets: one_hot} makes them of class labels", loss_of(context, {.loss = Loss::mse}, y));
}

TEST_CASE_FIXTURE(OnReference, "losses: ctc learns labels from unaligned sequences, whose rows end with the blank or negative numbers") {
  // Each of 6 steps shows a class, 0 being the blank; the labels are those of the steps with equal neighbours merged.
  std::vector<float> shown;
  std::vector<std::int64_t> rows;
  for (int i = 0; i < 32; ++i) {
    std::vector<std::int64_t> row;
    int last = 0;
    for (int t = 0; t < 6; ++t) {
      const int now = (i * 7 + t * t * 3 + i * t) % 11 % 3;
      for (int c = 0; c < 3; ++c) shown.push_back(c == now ? 1.0F : 0.1F * static_cast<float>((i + t + c) % 3));
      if (now != 0 && now != last) row.push_back(now);
      last = now;
    }
    row.resize(6, i % 2 == 0 ? 0 : -1);
    rows.insert(rows.end(), row.begin(), row.end());
  }
  const Tensor x = Tensor::of(shown, {32, 6, 3}), y = Tensor::of(rows, {32, 6});
  ModelDefinition definition;
  definition.layers = {layers::Dense{4, Activation::tanh}, layers::Dense{3, Activation::softmax}};
  const GradientReport report = check_gradients(context, definition, {.loss = Loss::ctc}, x.slice(0, 0, 4), y.slice(0, 0, 4));
  CHECK_MESSAGE(report.passed(), report.str());

  Model model(definition);
  model.compile(context, {.optimizer = {.learning_rate = 0.05}, .loss = {.loss = Loss::ctc}});
  const Tensor weights = Tensor::of<float>(std::vector<float>(32, 2.0F), {32});
  CHECK(model.test_batch(x, y, weights).loss() == doctest::Approx(model.test_batch(x, y).loss()));
  const History history = model.fit(std::make_shared<ArrayDataset>(x, y), {.batch_size = 8, .epochs = 40});
  CHECK(history.back().logs[0].second < 0.1);
  CHECK(history.back().logs[0].second < 0.1 * history.front().logs[0].second);

  model.compile(context, {.loss = {.loss = Loss::ctc}, .metrics = {Metric::accuracy}});
  CHECK_ERROR("metric accuracy: cannot be used with the loss ctc", model.test_batch(x, y));
  model.compile(context, {.loss = {.loss = Loss::ctc}});
  CHECK_ERROR("loss ctc: expected scores (batch, time, classes) and rows of labels (batch, n) of i64 or i32, got (32,6,3) and f32 (32)",
              model.test_batch(x, weights));
}

}  // namespace
}  // namespace tenon::test
