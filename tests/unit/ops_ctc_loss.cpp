// SPDX-License-Identifier: Apache-2.0
// ctc_loss against an enumeration of all paths, and its gradient against finite differences.
#include <cmath>
#include <limits>
#include <optional>

#include "ops_testing.h"

namespace tenon::test {
namespace {

using Labels = std::vector<std::int64_t>;

/// The labels of a path: equal neighbours merged, blanks removed.
Labels collapsed(const Labels& path, std::int64_t blank) {
  Labels labels;
  for (std::size_t t = 0; t < path.size(); ++t) {
    if (path[t] != blank && (t == 0 || path[t] != path[t - 1])) labels.push_back(path[t]);
  }
  return labels;
}

/// -log of the sum over all paths of `steps` classes that become the labels. `log_p` is (steps, classes).
double by_enumeration(const double* log_p, std::int64_t steps, std::int64_t classes, const Labels& labels, std::int64_t blank) {
  double sum = 0;
  Labels path(static_cast<std::size_t>(steps));
  const auto count = static_cast<std::int64_t>(std::pow(classes, steps));
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t digits = i;
    double log_of_path = 0;
    for (std::int64_t t = 0; t < steps; ++t, digits /= classes) {
      path[static_cast<std::size_t>(t)] = digits % classes;
      log_of_path += log_p[t * classes + digits % classes];
    }
    if (collapsed(path, blank) == labels) sum += std::exp(log_of_path);
  }
  return -std::log(sum);
}

constexpr std::int64_t steps = 5, classes = 3;

/// Scores of n samples.
Tensor scores_of(std::int64_t n) {
  return generated({n, steps, classes}, [](int i) { return std::sin(1.7 * i) + 0.3 * (i % 4); });
}

struct Sample {
  std::int64_t length;
  Labels labels;
};

/// The samples' losses on a device. Labels are filled up with -1.
std::vector<double> losses_of(const std::vector<Sample>& samples, std::int64_t blank, const char* device,
                              ops::Reduction reduction = ops::Reduction::none, DType dtype = DType::f64, bool zero_infinity = false) {
  const auto n = static_cast<std::int64_t>(samples.size());
  Labels padded, inputs, lengths;
  for (const Sample& sample : samples) {
    for (std::size_t i = 0; i < 3; ++i) padded.push_back(i < sample.labels.size() ? sample.labels[i] : -1);
    inputs.push_back(sample.length);
    lengths.push_back(static_cast<std::int64_t>(sample.labels.size()));
  }
  return result_of(
      {scores_of(n).to(dtype), Tensor::of(padded, {n, 3}), Tensor::of(inputs, {n}), Tensor::of(lengths, {n}).to(DType::i32)},
      [&](const std::vector<Value>& v) {
        return ops::ctc_loss(ops::log_softmax(v[0]), v[1], v[2], v[3],
                             {.blank = blank, .reduction = reduction, .zero_infinity = zero_infinity});
      },
      device);
}

std::vector<double> expected_of(const std::vector<Sample>& samples, std::int64_t blank) {
  const auto n = static_cast<std::int64_t>(samples.size());
  const std::vector<double> log_p = result_of({scores_of(n)}, [](const auto& v) { return ops::log_softmax(v[0]); });
  std::vector<double> losses;
  for (std::size_t i = 0; i < samples.size(); ++i)
    losses.push_back(by_enumeration(log_p.data() + static_cast<std::int64_t>(i) * steps * classes, samples[i].length, classes,
                                    samples[i].labels, blank));
  return losses;
}

const std::vector<Sample> with_blank_0 = {{5, {1}},       {5, {1, 2}}, {5, {1, 1}}, {4, {2, 1, 2}}, {3, {2, 2}},
                                          {5, {2, 2, 2}}, {2, {1, 2}}, {1, {2}},    {4, {}},        {5, {}}};

TEST_CASE("ctc_loss: the probability of all paths that become the labels, for repeated labels, lengths and no labels") {
  for (const char* device : devices) {
    CAPTURE(device);
    const std::vector<double> expected = expected_of(with_blank_0, 0);
    const auto check = [&](const std::vector<double>& got, double tolerance) {
      REQUIRE(got.size() == expected.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        CAPTURE(i);
        CHECK(std::abs(got[i] - expected[i]) <= tolerance * (1 + std::abs(expected[i])));
      }
    };
    check(losses_of(with_blank_0, 0, device), 1e-13);
    check(losses_of(with_blank_0, 0, device, ops::Reduction::none, DType::f32), 1e-6);
    double sum = 0, mean = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      sum += expected[i];
      mean += expected[i] / static_cast<double>(std::max<std::size_t>(with_blank_0[i].labels.size(), 1)) / 10;
    }
    CHECK(losses_of(with_blank_0, 0, device, ops::Reduction::sum)[0] == doctest::Approx(sum).epsilon(1e-13));
    CHECK(losses_of(with_blank_0, 0, device, ops::Reduction::mean)[0] == doctest::Approx(mean).epsilon(1e-13));
  }
  const std::vector<Sample> with_blank_2 = {{5, {0, 1}}, {5, {0, 0, 1}}, {2, {1}}};
  const std::vector<double> got = losses_of(with_blank_2, 2, "reference:0"), expected = expected_of(with_blank_2, 2);
  for (std::size_t i = 0; i < 3; ++i) CHECK(got[i] == doctest::Approx(expected[i]).epsilon(1e-13));
}

TEST_CASE("ctc_loss: its gradient is that of finite differences, and 0 beyond the length of an input") {
  const Tensor labels = Tensor::of<std::int64_t>({1, 1, 2, 2, 1, 0}, {2, 3}), lengths = Tensor::of<std::int64_t>({3, 2}, {2}),
               inputs = Tensor::of<std::int64_t>({5, 4}, {2}), x = scores_of(2);
  const auto loss = [&](Value scores) {
    Graph& graph = scores.graph();
    return ops::ctc_loss(ops::log_softmax(scores), graph.constant(labels), graph.constant(inputs), graph.constant(lengths));
  };
  for (const char* device : devices) {
    CAPTURE(device);
    const Context context(test_config(device));
    Graph graph;
    const Value scores = graph.input("scores", DType::f64, x.shape()), value = loss(scores);
    graph.output("loss", value);
    graph.output("gradient", gradients(value, {scores})[0]);
    Program program(context, graph);
    const Tensor gradient = program.run({x})[1].to_host();
    const auto at = [&](const std::vector<Tensor>& parameters) { return program.run({parameters[0]})[0].to_host().item(); };
    const GradientReport report = check_gradients(at, {{"scores", x}}, {gradient}, {.samples = 1000});
    CHECK_MESSAGE(report.passed(), report.str());
    for (std::int64_t c = 0; c < classes; ++c) CHECK(gradient.data<double>()[(steps + 4) * classes + c] == 0);
  }
}

TEST_CASE("ctc_loss: labels that do not fit the input have an infinite loss, or 0, and no gradient") {
  const std::vector<Sample> short_input = {{2, {1, 1}}, {5, {1}}};
  for (const char* device : devices) {
    const std::vector<double> infinite = losses_of(short_input, 0, device);
    CHECK(infinite[0] == std::numeric_limits<double>::infinity());
    CHECK(std::isfinite(infinite[1]));
    CHECK(losses_of(short_input, 0, device, ops::Reduction::none, DType::f64, true) == std::vector<double>{0, infinite[1]});
    const std::vector<double> gradient = result_of(
        {scores_of(1), Tensor::of<std::int64_t>({1, 1}, {1, 2}), Tensor::of<std::int64_t>({2}, {1})},
        [](const std::vector<Value>& v) {
          return gradients(ops::ctc_loss(ops::log_softmax(v[0]), v[1], v[2], {}, {.zero_infinity = true}), {v[0]})[0];
        },
        device);
    CHECK(gradient == std::vector<double>(gradient.size()));
  }
}

TEST_CASE("ctc_loss: invalid operands are refused, and labels that are no class fail the run") {
  Graph graph;
  const Value p = graph.input("p", DType::f32, {2, 5, 3}), labels = graph.input("labels", DType::i64, {2, 3});
  CHECK_ERROR_CONTAINS("expected log probabilities (N, T, C) and labels (N, S) of i32 or i64", ops::ctc_loss(p, p));
  CHECK_ERROR_CONTAINS("expected lengths (2) of i32 or i64, one for each sample, got 'labels' i64 (2,3)", ops::ctc_loss(p, labels, labels));
  CHECK_ERROR_CONTAINS("blank is 3, expected a class from 0 to 2", ops::ctc_loss(p, labels, {}, {}, {.blank = 3}));
  const auto run = [](std::int64_t label) {
    return result_of({scores_of(1), Tensor::of<std::int64_t>({1, label}, {1, 2})},
                     [](const std::vector<Value>& v) { return ops::ctc_loss(v[0], v[1]); });
  };
  CHECK_ERROR_CONTAINS("3", run(3));
  CHECK_ERROR_CONTAINS("3", run(-1));
}

}  // namespace
}  // namespace tenon::test
