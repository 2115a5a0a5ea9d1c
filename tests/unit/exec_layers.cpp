// SPDX-License-Identifier: Apache-2.0
// Layers on separate devices: the same training, and a report of placement and copies.
#include "testing.h"

#include <set>

#include <tenon/model.h>

namespace tenon::test {
namespace {

std::vector<LayerDefinition> three_layers(const std::string& second) {
  std::vector<LayerDefinition> list{layers::Dense{16, Activation::tanh}, layers::Dense{8, Activation::relu},
                                    layers::Dense{3, Activation::softmax}};
  list[1].name = "middle";
  list[1].device = second;
  return list;
}

/// The losses of five steps with Adam, then a weight of each layer.
std::vector<float> train(const Context& context, std::vector<LayerDefinition> list, PlacementReport& report) {
  Model model(std::move(list));
  LossDefinition loss{.loss = Loss::sparse_categorical_crossentropy};
  OptimizerDefinition adam;
  adam.kind = OptimizerDefinition::Kind::adam;
  model.compile(context, {.optimizer = adam, .loss = loss, .metrics = {}});
  std::vector<float> values;
  std::vector<std::int64_t> labels;
  for (int i = 0; i < 12 * 5; ++i) values.push_back(0.1f * static_cast<float>(i * 13 % 17 - 8));
  for (int i = 0; i < 12; ++i) labels.push_back(i % 3);
  const Tensor x = Tensor::of(values, {12, 5}), y = Tensor::of(labels, {12});
  std::vector<float> result;
  for (int step = 0; step < 5; ++step) result.push_back(static_cast<float>(model.train_batch(x, y).loss()));
  for (const char* name : {"dense/kernel", "middle/kernel", "dense_1/kernel"}) {
    const std::vector<float> weights = floats(model.parameters().get(name));
    result.insert(result.end(), weights.begin(), weights.end());
  }
  report = model.explain(12);
  return result;
}

void check_middle(const PlacementReport& report, const std::string& device, const std::string& others) {
  std::size_t there = 0;
  for (const Placement& node : report.nodes) {
    const bool middle = contains(node.node, "middle/");
    if (middle) CHECK(node.device == device);
    there += middle ? 1 : 0;
    if (contains(node.node, "dense")) CHECK(node.device == others);
  }
  CHECK(there >= 5);  // forward and gradient
  std::set<std::string> steps;
  for (const Placement& node : report.nodes) {
    if (node.op == "AdamStep") steps.insert(node.device);
  }
  CHECK(steps == std::set<std::string>{device, others});
  for (const PlannedCopy& copy : report.copies) CHECK_FALSE(contains(copy.value, "kernel"));  // weights stay where their layer is
}

TEST_CASE("layers: one on another virtual device trains to the same bits") {
  Config config = test_config("reference:0");
  config.virtual_devices = {{"reference:0", 2, 0}};
  const Context context(config);
  PlacementReport one, two;
  const std::vector<float> expected = train(context, three_layers(""), one);
  CHECK(train(context, three_layers("reference:1"), two) == expected);
  CHECK(one.copies_inserted == 0);
  check_middle(two, "reference:1", "reference:0");
  CHECK(two.copies_inserted > 0);
}

TEST_CASE_FIXTURE(OnOpenblas, "layers: one on another backend trains to the same results") {
  PlacementReport report;
  const std::vector<float> expected = train(context, three_layers(""), report);
  const std::vector<float> mixed = train(context, three_layers("reference:0"), report);
  REQUIRE(mixed.size() == expected.size());
  for (std::size_t i = 0; i < mixed.size(); ++i) CHECK(mixed[i] == doctest::Approx(expected[i]).epsilon(1e-3));
  check_middle(report, "reference:0", "openblas:0");
}

TEST_CASE("layers: a placement rule finds them by name, and soft placement replaces a missing device") {
  Config config = test_config("openblas:0");
  config.placement = {{"middle*", "reference:0"}};
  PlacementReport report;
  train(Context(config), three_layers(""), report);
  std::size_t there = 0;
  for (const Placement& node : report.nodes) {
    const bool ruled = node.node.starts_with("middle/");
    CHECK((node.device == "reference:0") == ruled);
    there += ruled ? 1 : 0;
  }
  CHECK(there >= 2);

  config.placement.clear();
  config.soft_placement = true;
  const std::vector<float> replaced = train(Context(config), three_layers("gpu:0"), report);
  CHECK(report.moved() > 0);
  CHECK(replaced.size() > 5);
}

}  // namespace
}  // namespace tenon::test
