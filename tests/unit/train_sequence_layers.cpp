// SPDX-License-Identifier: Apache-2.0
// Layers on sequences against their formulas in double, and their gradients against finite differences.
#include <cmath>
#include <string>
#include <vector>

#include "config/model_yaml.h"
#include "testing.h"

namespace tenon::test {
namespace {

using Matrix = std::vector<std::vector<double>>;

/// A model of these layers on samples of that shape, in f64, compiled for prediction.
Model model_of(const Context& context, const std::string& shape, const std::string& layers) {
  Model model(config::model_from_text("dtype: float64\ninput: {shape: " + shape + "}\nlayers: [" + layers + "]\n", "model.yaml"));
  model.compile(context, {.optimizer = {}, .loss = {.loss = Loss::mse}, .metrics = {}});
  return model;
}

Tensor wave(const Shape& shape) {
  Tensor x = Tensor::zeros(DType::f64, shape);
  for (std::int64_t i = 0; i < x.count(); ++i) x.data<double>()[i] = std::sin(0.7 * static_cast<double>(i) + 0.3);
  return x;
}

Matrix matrix(const Tensor& t) {
  const Tensor host = t.to_host();
  const std::size_t columns = static_cast<std::size_t>(host.shape()[host.shape().rank() - 1]);
  Matrix rows(static_cast<std::size_t>(host.count()) / columns, std::vector<double>(columns));
  for (std::size_t i = 0; i < rows.size() * columns; ++i) rows[i / columns][i % columns] = host.data<double>()[i];
  return rows;
}

Matrix product(const Matrix& a, const Matrix& b, const Matrix& bias) {
  Matrix y(a.size(), bias[0]);
  for (std::size_t i = 0; i < y.size(); ++i) {
    for (std::size_t j = 0; j < y[i].size(); ++j) {
      for (std::size_t k = 0; k < b.size(); ++k) y[i][j] += a[i][k] * b[k][j];
    }
  }
  return y;
}

/// Features [first, first + size) of each row, rotated by the row's position.
Matrix rotated(const Matrix& x, std::size_t first, std::size_t size) {
  Matrix y = x;
  for (std::size_t t = 0; t < x.size(); ++t) {
    for (std::size_t i = 0; i < size / 2; ++i) {
      const double angle = static_cast<double>(t) / std::pow(10000.0, 2.0 * static_cast<double>(i) / static_cast<double>(size));
      const double a = x[t][first + i], b = x[t][first + size / 2 + i];
      y[t][first + i] = a * std::cos(angle) - b * std::sin(angle);
      y[t][first + size / 2 + i] = b * std::cos(angle) + a * std::sin(angle);
    }
  }
  return y;
}

/// Causal attention of one sample, head by head.
Matrix attention(Model& model, const Matrix& x, std::size_t heads, std::size_t groups, bool rotary) {
  const auto of = [&](const std::string& name) { return matrix(model.parameters().get("attention/" + name)); };
  Matrix q = product(x, of("query_kernel"), of("query_bias")), k = product(x, of("key_kernel"), of("key_bias"));
  const Matrix v = product(x, of("value_kernel"), of("value_bias"));
  const std::size_t time = x.size(), size = x[0].size() / heads;
  for (std::size_t h = 0; rotary && h < heads; ++h) q = rotated(q, h * size, size);
  for (std::size_t g = 0; rotary && g < groups; ++g) k = rotated(k, g * size, size);
  Matrix seen(time, std::vector<double>(x[0].size()));
  for (std::size_t h = 0; h < heads; ++h) {
    const std::size_t own = h * size, shared = h / (heads / groups) * size;
    for (std::size_t t = 0; t < time; ++t) {
      std::vector<double> weights(t + 1);
      double sum = 0;
      for (std::size_t s = 0; s <= t; ++s) {
        double score = 0;
        for (std::size_t i = 0; i < size; ++i) score += q[t][own + i] * k[s][shared + i];
        sum += weights[s] = std::exp(score / std::sqrt(static_cast<double>(size)));
      }
      for (std::size_t s = 0; s <= t; ++s) {
        for (std::size_t i = 0; i < size; ++i) seen[t][own + i] += weights[s] / sum * v[s][shared + i];
      }
    }
  }
  return product(seen, of("output_kernel"), of("output_bias"));
}

void check_close(const Matrix& got, const Matrix& expected, double tolerance = 1e-12) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    // sums of fewer than 100 terms of magnitude 1, in f64
    for (std::size_t j = 0; j < got[i].size(); ++j) CHECK(got[i][j] == doctest::Approx(expected[i][j]).epsilon(tolerance).scale(1));
  }
}

TEST_CASE_FIXTURE(OnReference, "attention layer: heads share keys and values, and positions rotate them, as the formula says") {
  const Tensor x = wave({1, 5, 8});
  for (const bool rotary : {false, true}) {
    for (const std::size_t groups : {4, 2, 1}) {
      CAPTURE(rotary);
      CAPTURE(groups);
      Model model = model_of(context, "[5, 8]",
                             "attention: {heads: 4, causal: true, kv_heads: " + std::to_string(groups) +
                                 ", rotary: " + (rotary ? "true" : "false") + ", bias_initializer: uniform}");
      CHECK(model.parameters().get("attention/key_kernel").shape() == Shape{8, static_cast<std::int64_t>(2 * groups)});
      check_close(matrix(model.predict(x)), attention(model, matrix(x), 4, groups, rotary));
    }
  }
}

TEST_CASE_FIXTURE(OnReference, "attention layer: dropout acts in training only; with a tiny probability the result is that without") {
  const Tensor x = wave({2, 6, 8});
  const auto output = [&](double p, bool training) {
    Model model = model_of(context, "[6, 8]", "attention: {heads: 4, causal: true, kv_heads: 2, dropout: " + std::to_string(p) + "}");
    model.set_training(training);
    return matrix(model.forward(x));
  };
  const Matrix plain = output(0, true);
  check_close(output(0.5, false), plain);
  check_close(output(0.000001, true), plain, 1e-5);  // drops nothing, and scales by 1 / (1 - p)
  const Matrix dropped = output(0.5, true);
  CHECK(dropped != plain);
}

TEST_CASE_FIXTURE(OnReference, "position layers: sines and cosines of the positions, or a learned row for each, are added") {
  const Tensor x = wave({2, 3, 4});
  const Matrix from = matrix(x), sines = matrix(model_of(context, "[3, 4]", "sinusoidal_position").predict(x));
  for (std::size_t r = 0; r < 6; ++r) {
    const double t = static_cast<double>(r % 3);
    const double expected[] = {std::sin(t), std::cos(t), std::sin(t / 100), std::cos(t / 100)};  // 10000^(2 / 4) = 100
    for (std::size_t i = 0; i < 4; ++i) CHECK(sines[r][i] - from[r][i] == doctest::Approx(expected[i]).epsilon(1e-12));
  }
  Model learned = model_of(context, "[3, 4]", "position_embedding: {length: 5}");
  const Matrix table = matrix(learned.parameters().get("position_embedding/embeddings")), sums = matrix(learned.predict(x));
  CHECK(table.size() == 5);
  for (std::size_t r = 0; r < 6; ++r) {
    for (std::size_t i = 0; i < 4; ++i) CHECK(sums[r][i] == from[r][i] + table[r % 3][i]);
  }
}

TEST_CASE_FIXTURE(OnReference, "dense: a tied layer computes with the table of the embedding, which has both gradients") {
  const std::string layers = "{embedding: {rows: 6, dim: 4}}, {dense: {units: 6, tied: embedding, bias: false}}";
  Model model = model_of(context, "[3]", layers);
  const Tensor x = Tensor::of<std::int64_t>({0, 5, 2}, {1, 3});
  const Matrix table = matrix(model.parameters().get("embedding/embeddings")), scores = matrix(model.predict(x));
  CHECK(model.parameters().all().size() == 1);
  const std::size_t rows[] = {0, 5, 2};
  for (std::size_t t = 0; t < 3; ++t) {
    for (std::size_t c = 0; c < 6; ++c) {
      double score = 0;
      for (std::size_t i = 0; i < 4; ++i) score += table[rows[t]][i] * table[c][i];
      CHECK(scores[t][c] == doctest::Approx(score).epsilon(1e-12));
    }
  }
}

TEST_CASE_FIXTURE(OnReference, "gradcheck: the layers of a small language model") {
  const ModelDefinition model = config::model_from_text(R"(
input: {shape: [6], dtype: int64}
layers:
  - embedding: {rows: 7, dim: 8}
  - position_embedding: {length: 9}
  - sinusoidal_position
  - residual: {body: [layer_norm, attention: {heads: 4, kv_heads: 2, rotary: true, causal: true}]}
  - layer_norm
  - dense: {units: 7, tied: embedding}
)");
  LossDefinition loss;
  loss.loss = Loss::sparse_categorical_crossentropy;
  loss.from_logits = true;
  const Tensor x = Tensor::of<std::int64_t>({0, 2, 1, 6, 0, 2, 2, 5, 0, 3, 4, 2}, {2, 6});
  const Tensor y = Tensor::of<std::int64_t>({2, 1, 6, 0, 2, 3, 5, 0, 3, 4, 2, 0}, {2, 6});
  const GradientReport report = check_gradients(context, model, loss, x, y, {.samples = 20, .tolerance = 1e-6, .seed = 1});
  INFO(report.str());
  CHECK(report.passed());
}

TEST_CASE_FIXTURE(OnReference, "attention layer: a window hides what is farther away, like a causal mask of its own") {
  const Tensor x = wave({1, 6, 8});
  const std::string keys = "heads: 2, rotary: true, bias_initializer: uniform";
  Model wide = model_of(context, "[6, 8]", "attention: {" + keys + ", causal: true, window: 6}");
  check_close(matrix(wide.predict(x)), attention(wide, matrix(x), 2, 2, true));
  // A window of one step: each step sees itself alone, so that the result is the projected value.
  Model narrow = model_of(context, "[6, 8]", "attention: {" + keys + ", window: 1}");
  const auto of = [&](const std::string& name) { return matrix(narrow.parameters().get("attention/" + name)); };
  const Matrix values = product(matrix(x), of("value_kernel"), of("value_bias"));
  check_close(matrix(narrow.predict(x)), product(values, of("output_kernel"), of("output_bias")));
  // Steps beyond the window have no influence.
  Model three = model_of(context, "[6, 8]", "attention: {" + keys + ", causal: true, window: 3}");
  Tensor changed = wave({1, 6, 8});
  changed.data<double>()[0] = 100;
  const Matrix before = matrix(three.predict(x)), after = matrix(three.predict(changed));
  CHECK(before[2] != after[2]);
  CHECK(before[3] == after[3]);
}

TEST_CASE_FIXTURE(OnReference, "attention layer: memory gives keys and values from an earlier layer") {
  const Tensor x = wave({2, 3, 8});
  Model model = model_of(context, "[3, 8]",
                         "dense: {units: 4, name: encoder}, dense: {units: 8, name: decoder}, attention: {heads: 2, memory: encoder}");
  CHECK(model.parameters().get("attention/key_kernel").shape() == Shape{4, 8});
  CHECK(model.parameters().get("attention/query_kernel").shape() == Shape{8, 8});
  const auto of = [&](const std::string& name) { return matrix(model.parameters().get(name)); };
  const Matrix rows = matrix(x), memory = product(rows, of("encoder/kernel"), of("encoder/bias"));
  const Matrix q =
      product(product(memory, of("decoder/kernel"), of("decoder/bias")), of("attention/query_kernel"), of("attention/query_bias"));
  const Matrix k = product(memory, of("attention/key_kernel"), of("attention/key_bias"));
  const Matrix v = product(memory, of("attention/value_kernel"), of("attention/value_bias"));
  Matrix seen(6, std::vector<double>(8));
  for (std::size_t t = 0; t < 6; ++t) {
    for (std::size_t own = 0; own < 8; own += 4) {
      double weights[3], sum = 0;
      for (std::size_t s = 0; s < 3; ++s) {
        double score = 0;
        for (std::size_t i = own; i < own + 4; ++i) score += q[t][i] * k[t / 3 * 3 + s][i] / 2;
        sum += weights[s] = std::exp(score);
      }
      for (std::size_t s = 0; s < 3; ++s) {
        for (std::size_t i = own; i < own + 4; ++i) seen[t][i] += weights[s] / sum * v[t / 3 * 3 + s][i];
      }
    }
  }
  check_close(matrix(model.predict(x)), product(seen, of("attention/output_kernel"), of("attention/output_bias")));
}

TEST_CASE_FIXTURE(OnReference, "padding_index: padding steps change nothing, and mean_over_time is that of the others") {
  const std::string rest = ", attention: {heads: 2}, mean_over_time";
  Model padded = model_of(context, "[5]", "embedding: {rows: 9, dim: 4, padding_index: 0}" + rest);
  Model plain = model_of(context, "[3]", "embedding: {rows: 9, dim: 4}" + rest);
  for (const auto& [name, value] : padded.parameters().all()) plain.parameters().set(name, value);
  const Matrix got = matrix(padded.predict(Tensor::of<std::int64_t>({4, 0, 7, 2, 0, 0, 0, 0, 0, 0}, {2, 5})));
  const Matrix expected = matrix(plain.predict(Tensor::of<std::int64_t>({4, 7, 2}, {1, 3})));
  check_close({got[0]}, expected);
  CHECK(got[1] == std::vector<double>(4, 0.0));  // nothing but padding
}

TEST_CASE_FIXTURE(OnReference, "layers on sequences: what does not fit is rejected by name") {
  const auto error = [&](const std::string& layers) { return message_of([&] { model_of(context, "[5, 6]", layers); }); };
  CHECK(contains(error("attention: {heads: 3, kv_heads: 2}"), "'attention' has 2 kv_heads, expected a divisor of its 3 heads"));
  CHECK(contains(error("attention: {heads: 2, rotary: true}"), "rotates pairs of features, expected heads of an even size, got 3"));
  CHECK(contains(error("position_embedding: {length: 4}"), "has 4 positions, expected at least 5, one for each step"));
  CHECK(contains(error("{dense: {units: 6, tied: table}}"),
                 "tied: expected the name of an earlier layer with embeddings (there is none), got 'table'"));
  CHECK(contains(error("position_embedding: {length: 5}, {dense: {units: 6, tied: table}}"),
                 "with embeddings (position_embedding), got 'table'"));
  CHECK(contains(error("position_embedding: {length: 5}, attention: {memory: encoder}"),
                 "memory: expected the name of an earlier layer (position_embedding), got 'encoder'"));
  CHECK(contains(error("{attention: {window: 0}}"), "key 'window': expected"));
  CHECK(contains(error("attention: {heads: 2, dropout: 1}"), "key 'dropout': expected a number in [0, 1), got '1'"));
}

}  // namespace
}  // namespace tenon::test
