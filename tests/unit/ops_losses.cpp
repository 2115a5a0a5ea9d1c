// SPDX-License-Identifier: Apache-2.0
// Losses and their gradients against PyTorch 1.13 in f64, and at values where a naive formula fails.
#include <cmath>
#include <functional>

#include "ops_testing.h"

using namespace tenon;
using namespace tenon::test;

namespace {

struct Result {
  double loss = 0;
  std::vector<double> gradient;
};

Result evaluate(const std::vector<double>& y, const std::vector<double>& t, const Shape& shape,
                const std::function<Value(Value, Value)>& loss) {
  const std::vector<Tensor> results = results_of({Tensor::of(y, shape), Tensor::of(t, shape)}, [&](const std::vector<Value>& v) {
    const Value l = loss(v[0], v[1]);
    return std::vector{l, gradients(l, {v[0]})[0]};
  });
  return {results[0].to_host().item(), doubles(results[1])};
}

void check(const Result& got, double loss, const std::vector<double>& gradient) {
  CHECK(got.loss == doctest::Approx(loss).epsilon(1e-14));
  REQUIRE(got.gradient.size() == gradient.size());
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(got.gradient[i] - gradient[i]) <= 1e-14 * std::max(1.0, std::abs(gradient[i])));
  }
}

const std::vector<double> y{0.5, -1.25, 2.0, 3.0, 0.25, -0.75}, t{1.0, 0.5, 2.0, -1.0, 0.125, 0.0};
const std::vector<double> p{0.2, 0.5, 0.3, 0.7, 0.05, 0.25}, q{1.0, 0, 0, 0, 0.25, 0.75};
const Shape shape{2, 3};

using Loss = Value(Value, Value, ops::Reduction);
auto mean_of(Loss* loss) {
  return [loss](Value a, Value b) { return loss(a, b, ops::Reduction::mean); };
}

}  // namespace

TEST_CASE("losses: regression losses match PyTorch") {
  check(evaluate(y, t, shape, mean_of(ops::mse)), 3.3151041666666665, {-1.0 / 6, -7.0 / 12, 0, 4.0 / 3, 1.0 / 24, -0.25});
  check(evaluate(y, t, shape, mean_of(ops::half_mse)), 4.97265625, {-0.25, -0.875, 0, 2, 0.0625, -0.375});
  check(evaluate(y, t, shape, mean_of(ops::mae)), 1.1875, {-1.0 / 6, -1.0 / 6, 0, 1.0 / 6, 1.0 / 6, -1.0 / 6});
  check(evaluate(y, t, shape, [](Value a, Value b) { return ops::huber(a, b, 0.7); }), 0.6579687499999999,
        {-1.0 / 12, -0.7 / 6, 0, 0.7 / 6, 1.0 / 48, -0.7 / 6});
  check(evaluate(y, t, shape, mean_of(ops::neg_mean_prod)), -0.15104166666666666, {-1.0 / 6, -0.5 / 6, -2.0 / 6, 1.0 / 6, -0.125 / 6, 0});
}

TEST_CASE("losses: cross-entropies of probabilities and of logits match PyTorch") {
  check(evaluate(p, q, shape, [](Value a, Value b) { return ops::binary_cross_entropy(a, b); }), 0.9603795282317896,
        {-0.8333333333333331, 0.3333333333333333, 0.2380952380952381, 0.5555555555555555, -0.7017543859649122, -0.4444444444444444});
  check(evaluate(y, q, shape, [](Value a, Value b) { return ops::binary_cross_entropy(a, b, true); }), 1.2690553090226562,
        {-0.0629234447996909, 0.03711668980421814, 0.14679951299631372, 0.15876235447040557, 0.05202941681429968, -0.07152978319589882});
  check(evaluate(p, q, shape, [](Value a, Value b) { return ops::categorical_cross_entropy(a, b); }), 1.699045875831258,
        {-2.5, 0, 0, 0, -2.5, -1.5});
  check(evaluate(y, q, shape, [](Value a, Value b) { return ops::categorical_cross_entropy(a, b, true); }), 2.658226724668907,
        {-0.41158990894627784, 0.015363370163218216, 0.39622653878305963, 0.45979311218199004, -0.09560640974062962, -0.3641867024413605});
}

TEST_CASE("losses: nll picks the labels' log probabilities") {
  const Result got = evaluate(y, t, shape, [](Value a, Value b) {
    const Tensor labels = Tensor::of<std::int64_t>({2, 0}, {2});
    static_cast<void>(b);
    return ops::nll(a, a.graph().constant(labels));
  });
  check(got, -2.5, {0, 0, -0.5, -0.5, 0, 0});
}

TEST_CASE("losses: a label that is no class is an error of every loss of labels, unless it is ignored") {
  const auto loss_of = [](const std::string& device, bool nll, std::vector<std::int64_t> labels, std::optional<std::int64_t> ignored) {
    return result_of(
        {Tensor::of<double>({-1, -2, -3, -4, -5, -6}, {2, 3})},
        [&](const std::vector<Value>& v) {
          const Value label = v[0].graph().constant(Tensor::of(labels, {2}));
          return nll ? ops::nll(v[0], label, ignored) : ops::softmax_cross_entropy(v[0], label, {.ignore_index = ignored});
        },
        device)[0];
  };
  for (const char* device : devices) {
    CAPTURE(device);
    for (const bool nll : {false, true}) {
      CHECK_ERROR_CONTAINS("label -1 at index 1 is out of range [0, 3)", loss_of(device, nll, {0, -1}, {}));
      CHECK_ERROR_CONTAINS("label 3 at index 0 is out of range [0, 3)", loss_of(device, nll, {3, 0}, -100));
    }
    CHECK(loss_of(device, true, {2, -1}, -1) == 3);
    CHECK(loss_of(device, true, {2, 1}, -1) == 4);
  }
}

TEST_CASE("losses: the Kullback-Leibler divergence of probabilities and of log-probabilities") {
  // sum t (log t - log y) of each row, the mean of two; terms of t = 0 are 0
  const double expected = (std::log(1 / 0.2) + 0.25 * std::log(0.25 / 0.05) + 0.75 * std::log(0.75 / 0.25)) / 2;
  const std::vector<double> slope{-2.5, 0, 0, 0, -2.5, -1.5};
  check(evaluate(p, q, shape, [](Value a, Value b) { return ops::kl_divergence(a, b); }), expected, slope);
  check(evaluate(p, q, shape, [](Value a, Value b) { return ops::kl_divergence(ops::log(a), b, true); }), expected, slope);
}

TEST_CASE("losses: cross-entropies stay finite for zero probabilities and huge logits") {
  const Result certain = evaluate({0, 1}, {1, 0}, {1, 2}, [](Value a, Value b) { return ops::binary_cross_entropy(a, b); });
  CHECK(certain.loss == doctest::Approx(-std::log(1e-7)));
  const Result logits = evaluate({1e4, -1e4}, {0, 1}, {1, 2}, [](Value a, Value b) { return ops::binary_cross_entropy(a, b, true); });
  CHECK(logits.loss == 1e4);
  CHECK(logits.gradient == std::vector<double>{0.5, -0.5});
}

TEST_CASE("losses: shapes that would broadcast and invalid arguments are rejected") {
  Graph graph;
  const Value a = graph.input("a", DType::f32, {8});
  const Value b = graph.input("b", DType::f32, {8, 1});
  for (const auto& loss : {ops::mse, ops::mae, ops::half_mse, ops::neg_mean_prod}) {
    CHECK_ERROR_CONTAINS("expected y and target of one shape, got 'a' (8) and 'b' (8,1)", loss(a, b, ops::Reduction::mean));
  }
  CHECK_ERROR_CONTAINS("delta is 0, expected delta > 0", ops::huber(a, a, 0));
  CHECK_ERROR_CONTAINS("expected log probabilities (N, C) and labels (N)", ops::nll(a, b));
}

// ---------------------------------------------------------------- stable forms, at values where the original expressions fail

namespace {
double at(double x, const std::function<Value(Value)>& f) {
  return result_of({Tensor::scalar(x)}, [&](const auto& v) { return f(v[0]); })[0];
}
Value one(Value x) {
  return x.graph().constant(Tensor::scalar(1.0));
}
}  // namespace

TEST_CASE("stabilize: compiled programs keep the precision that the original expressions lose") {
  CHECK(at(1e-20, [](Value x) { return ops::log(ops::add(x, 1)); }) == 1e-20);
  CHECK(at(1e-20, [](Value x) { return ops::sub(ops::exp(x), 1); }) == 1e-20);
  CHECK(at(50, [](Value x) { return ops::sub(one(x), ops::sigmoid(x)); }) == doctest::Approx(std::exp(-50.0)).epsilon(1e-14));
  CHECK(at(-800, [](Value x) { return ops::log(ops::sigmoid(x)); }) == -800);
  CHECK(at(800, [](Value x) { return ops::log1p(ops::exp(x)); }) == 800);
  CHECK(at(1000, [](Value x) {
          return ops::slice(ops::log(ops::softmax(ops::concat({ops::reshape(x, {1}), ops::reshape(ops::mul(x, 0), {1})}, 0))), 0, 1, 2);
        }) == -1000);
  CHECK(at(0.1, [](Value x) { return ops::neg(ops::neg(x)); }) == 0.1);
}

TEST_CASE_FIXTURE(OnOpenblas, "fold: constant subexpressions are evaluated by the oracle when a program is made") {
  Graph graph;
  const Value x = graph.input("x", DType::f32, {2});
  const Value scale = ops::mul(ops::exp(graph.constant(Tensor::scalar(1.0f))), 2);
  graph.output("y", ops::mul(x, scale));
  Program program(context, graph);
  CHECK(program.placement().nodes.size() == 1);
  const std::vector<float> y_values = floats(program.run({Tensor::of<float>({1, -1}, {2})})[0]);
  CHECK(y_values[0] == doctest::Approx(2 * std::exp(1.0)));
  CHECK(y_values[1] == -y_values[0]);
}
