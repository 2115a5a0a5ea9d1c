// SPDX-License-Identifier: Apache-2.0
// Embeddings: rows by index, gradients only for the rows that were read, steps that touch no others.
#include <cmath>
#include <limits>

#include "graph/passes.h"
#include "train_testing.h"

namespace tenon::test {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

/// Rows of `w` (rows, 2) after one step of plain descent by lr * dy at the indices, and the ops of the program.
struct Stepped {
  std::vector<float> w;
  std::string graph;
};

Stepped step(const std::string& device, const std::vector<float>& w, const std::vector<std::int64_t>& indices, bool optimize,
             double momentum = 0, double weight_decay = 0) {
  const Context context(test_config(device));
  const auto rows = static_cast<std::int64_t>(w.size() / 2);
  Graph graph;
  const Value table = graph.parameter("w", DType::f32, {rows, 2});
  const Value at = graph.input("at", DType::i64, {static_cast<std::int64_t>(indices.size())});
  const Value factor = graph.input("factor", DType::f32, {static_cast<std::int64_t>(indices.size()), 2});
  const Value lr = graph.input("lr", DType::f64, {});
  const Value loss = ops::reduce_sum(ops::mul(ops::embedding(table, at), factor));  // its gradient by a row is the row's factor
  graph.output("loss", loss);
  const std::vector<Value> gradient = gradients(loss, {table});
  tenon_attributes_sgd attributes{.momentum = momentum, .weight_decay = weight_decay};
  std::vector<Value> state;
  if (momentum != 0) state.push_back(graph.parameter("velocity", DType::f32, {rows, 2}));
  ops::sgd_step({table}, gradient, state, lr, attributes);
  const auto store = std::make_shared<ParameterStore>();
  store->create("w", context.default_device(), DType::f32, {rows, 2});
  store->set("w", Tensor::of(w, {rows, 2}));
  if (momentum != 0) {
    store->create("velocity", context.default_device(), DType::f32, {rows, 2});
    store->set("velocity", Tensor::zeros(DType::f32, {rows, 2}));
  }
  std::vector<float> factors;
  for (std::size_t i = 0; i < 2 * indices.size(); ++i) factors.push_back(0.1f * static_cast<float>(i + 1));
  Program program(context, graph, {.device = {}, .parameters = store, .optimize = optimize});
  program.run({Tensor::of(indices, {static_cast<std::int64_t>(indices.size())}),
               Tensor::of(factors, {static_cast<std::int64_t>(indices.size()), 2}), Tensor::scalar(0.3)});
  return {floats(store->get("w")), graph::optimize(graph).str()};
}

TEST_CASE("embedding: a sparse step agrees with the dense rule, with duplicate and negative indices") {
  std::vector<float> w;
  for (int i = 0; i < 20; ++i) w.push_back(0.25f * static_cast<float>(i) - 2);
  const std::vector<std::int64_t> indices{3, 7, 3, -1, 0, 3};
  for (const char* device : {"reference:0", "openblas:0"}) {
    CAPTURE(device);
    const Stepped sparse = step(device, w, indices, true), dense = step(device, w, indices, false);
    CHECK_FALSE(contains(sparse.graph, "SgdStep"));
    CHECK(contains(sparse.graph, "ScatterAdd(w"));
    for (std::size_t i = 0; i < w.size(); ++i) CHECK(sparse.w[i] == doctest::Approx(dense.w[i]).epsilon(1e-6));
    CHECK(sparse.w[2] == w[2]);
    CHECK(sparse.w[6] == doctest::Approx(w[6] - 0.3f * (0.1f + 0.5f + 1.1f)));  // the factors at three places add up
  }
}

TEST_CASE("embedding: rows that no index names are neither read nor written") {
  // As many indices as rows: the update then has the table's shape and could share its storage.
  for (const std::vector<std::int64_t>& indices : {std::vector<std::int64_t>{1, 3}, std::vector<std::int64_t>{1, 3, 1, 3}}) {
    for (const char* device : {"reference:0", "openblas:0"}) {
      CAPTURE(device);
      const std::vector<float> after = step(device, {nan, nan, 1, 2, nan, 5, 3, 4}, indices, true).w;
      CHECK(std::isnan(after[0]));
      CHECK(std::isnan(after[1]));
      CHECK(std::isnan(after[4]));
      CHECK(after[5] == 5);
      for (const std::size_t i : {2u, 3u, 6u, 7u}) {
        CHECK(std::isfinite(after[i]));
        CHECK(after[i] < static_cast<float>(i));
      }
    }
  }
}

TEST_CASE("embedding: momentum and weight decay use the dense rule, because they update every row") {
  const std::vector<float> w{1, 2, 3, 4};
  CHECK(contains(step("reference:0", w, {1}, true, 0.9).graph, "SgdStep"));
  const Stepped decayed = step("reference:0", w, {1}, true, 0, 0.1);
  CHECK(contains(decayed.graph, "SgdStep"));
  CHECK(decayed.w[0] == doctest::Approx(1 - 0.3 * 0.1));
}

/// Two integers below 20, and whether both are below 10 or neither is.
std::shared_ptr<const ArrayDataset> pairs() {
  std::vector<std::int64_t> x, y;
  for (std::int64_t i = 0; i < 400; ++i) {
    x.insert(x.end(), {i / 20, i % 20});
    y.push_back((i / 20 < 10) == (i % 20 < 10) ? 1 : 0);
  }
  ArrayOptions options;
  options.x_dtype = DType::i64;
  return std::make_shared<const ArrayDataset>(Tensor::of(x, {400, 2}), Tensor::of(y, {400}), options);
}

TEST_CASE("embedding: a model of words learns, with sparse and with dense steps") {
  for (const auto kind : {OptimizerDefinition::Kind::sgd, OptimizerDefinition::Kind::adam}) {
    CAPTURE(name_of(kind));
    const Context context(test_config("openblas:0"));
    const layers::Embedding words{20, 4, Initializer{.kind = Initializer::Kind::normal, .stddev = 1}};
    Model model({words, layers::Flatten{}, layers::Dense{16, Activation::gelu}, layers::Dense{2, Activation::softmax}});
    model.compile(context, classification({.kind = kind, .learning_rate = kind == OptimizerDefinition::Kind::sgd ? 0.5 : 0.01}));
    FitOptions fit{.epochs = 60};
    model.fit(pairs(), fit);
    CHECK(model.evaluate(pairs())[1].second > 0.95);
  }
}

TEST_CASE_FIXTURE(OnOpenblas, "embedding: tokens stay integers, and a sequence of one has the label of its row") {
  const auto data = generate_tokens({.count = 4001, .vocabulary = 50, .sequence = 1});
  Model model({layers::Embedding{50, 16}, layers::Flatten{}, layers::Dense{50, Activation::softmax}});
  model.compile(context, classification({.kind = OptimizerDefinition::Kind::adam, .learning_rate = 0.02}));
  const History history = model.fit(data, {.epochs = 5});
  CHECK(history.back().logs[0].second < 0.85 * history.front().logs[0].second);
  CHECK(contains(model.summary(), "embedding (Embedding)"));
  CHECK(model.layers()[0].parameters == 800);
}

TEST_CASE_FIXTURE(OnOpenblas, "embedding: floats are rejected, and indices out of range are reported") {
  Model model({layers::Embedding{4, 2}, layers::Flatten{}, layers::Dense{2, Activation::softmax}});
  model.compile(context, classification({.kind = OptimizerDefinition::Kind::sgd, .learning_rate = 0.1}));
  const Tensor y = Tensor::of<std::int64_t>({1}, {1});
  CHECK_ERROR_CONTAINS("4", model.train_batch(Tensor::of<std::int64_t>({2, 4}, {1, 2}), y));
  CHECK_ERROR_CONTAINS("'embedding' expects integers, got f32(1,2)", model.train_batch(Tensor::zeros(DType::f32, {1, 2}), y));
  Model empty({layers::Embedding{0, 2}});
  empty.compile(context, classification({.kind = OptimizerDefinition::Kind::sgd, .learning_rate = 0.1}));
  CHECK_ERROR("layer embedding: rows is 0, expected at least 1", empty.build({1}));
}

TEST_CASE("activations: each computes its function with its alpha, and the summary names it") {
  struct Row {
    Activation activation;
    std::optional<double> alpha;
    double at_minus_one;
  };
  // Values at -1 by definition, computed in Python.
  const Row rows[] = {{Activation::relu6, {}, 0},
                      {Activation::leaky_relu, {}, -0.01},
                      {Activation::leaky_relu, 0.2, -0.2},
                      {Activation::elu, {}, -0.6321205588285577},
                      {Activation::elu, 0.5, -0.31606027941427883},
                      {Activation::softplus, {}, 0.31326168751822286},
                      {Activation::mish, {}, -0.30340146137410895},
                      {Activation::gelu, {}, -0.15865525393145707},
                      {Activation::silu, {}, -0.2689414213699951}};
  for (const Row& row : rows) {
    CAPTURE(name_of(row.activation));
    const Context context(test_config("openblas:0"));
    Model model({layers::Activation{row.activation, row.alpha}});
    model.compile(context, {.optimizer = {}, .loss = {}, .metrics = {}});
    CHECK(floats(model.predict(Tensor::of<float>({-1.0f}, {1, 1})))[0] == doctest::Approx(row.at_minus_one).epsilon(1e-5));
    CHECK(contains(model.summary(), std::string("(Activation ") + name_of(row.activation)));
  }
  Model gelu({layers::Activation{Activation::gelu, 1.0}});
  gelu.compile(Context(test_config("openblas:0")), {.optimizer = {}, .loss = {}, .metrics = {}});
  CHECK(message_of([&] { gelu.build({1}); }) == "layer activation: gelu takes no alpha; leaky_relu and elu do");
}

}  // namespace
}  // namespace tenon::test
