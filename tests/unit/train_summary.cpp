// SPDX-License-Identifier: Apache-2.0
// Models: what summary() and explain() tell of them.
#include "train/summary.h"

#include <algorithm>

#include "extra_device.h"
#include "recording_backend.h"
#include "train_testing.h"

namespace tenon::test {
namespace {

std::vector<LayerDefinition> small_classifier() {
  return {layers::Flatten{}, layers::Dense{32, Activation::relu}, layers::Dense{10, Activation::softmax}};
}

TEST_CASE_FIXTURE(OnReference, "summary: Flatten, Dense 128, Dense 10 on 28x28 have 0, 100,480 and 1,290 parameters") {
  Model model({layers::Flatten{}, layers::Dense{128, Activation::relu}, layers::Dense{10, Activation::softmax}});
  model.compile(context, classification());
  model.build({28, 28});
  const auto rows = model.layers();
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].parameters == 0);
  CHECK(rows[1].parameters == 100480);
  CHECK(rows[2].parameters == 1290);
  const std::string table = model.summary();
  CHECK(contains(table, "dense_1 (Dense)    (None, 10)      1,290"));
  CHECK(contains(table, "Total params: 101,770 (397.54 KB)"));
  CHECK(contains(table, "Trainable params: 101,770 (397.54 KB)"));
  CHECK(contains(table, "Optimizer state, in training: 203,540 (795.08 KB)"));
}

TEST_CASE_FIXTURE(OnReference,
                  "summary: a definition needs no memory and no device of its layers; training names the layer whose device is missing") {
  TrainDefinition definition;
  definition.model.layers = {layers::Flatten{}, LayerDefinition(layers::Dense{10}, "scores", "none:3")};
  definition.model.input_shape = {28, 28};
  const std::string table = train::summary_of(definition, context, 16);
  CHECK(contains(table, "Total params: 7,850 "));
  CHECK(contains(table, "none:3"));
  Model model(definition.model);
  CHECK_ERROR_CONTAINS("layer 'scores': device 'none:3' not found", model.compile(context, {}));
  definition.model.input_shape.reset();
  CHECK_ERROR("summary: the shape of a sample is not known; set `input: {shape: ...}` in the model",
              train::summary_of(definition, context, 16));
}

TEST_CASE_FIXTURE(OnOpenblas, "explain: every node of a training step has a device") {
  Model model = compiled(context, small_classifier());
  model.build({28, 28});
  const PlacementReport report = model.explain(16);
  CHECK(report.nodes.size() > 10);
  CHECK(report.moved() == 0);
  CHECK(report.partitions == 1);
  CHECK(report.kernels < report.nodes.size());  // bias and activation are fused into the products
  CHECK(std::all_of(report.nodes.begin(), report.nodes.end(), [](const Placement& p) { return p.device == "openblas:0"; }));
}

TEST_CASE("explain: a node that its device cannot compute has no device, a reason and a remedy; initial weights come from another device") {
  const Context context(test_config());
  exec::DeviceEntry entry = context.state()->entries.back();
  entry.info.flags = 0;                                  // its streams are not done at once
  add_device(context, "tape", recording::query, entry);  // it has MatMul, Add, Mul and Relu, but neither random numbers nor Softmax
  const PlacementScope scope(context, "tape:0");
  Model model = compiled(context, small_classifier());
  model.build({28, 28});
  Model other = compiled(Context(test_config()), small_classifier());
  other.build({28, 28});
  CHECK(floats(model.parameters().get("dense/kernel")) == floats(other.parameters().get("dense/kernel")));

  const PlacementReport report = model.explain(16);
  std::size_t failing = 0;
  for (const Placement& node : report.nodes) {
    CHECK(node.requested == "tape:0");
    failing += node.device.empty() ? 1 : 0;
    if (node.op == "Relu") CHECK(node.device == "tape:0");
    if (node.op != "RandomUniform") continue;
    CHECK(node.device == "");
    CHECK(contains(node.reason, "; devices that can: reference:0"));
  }
  CHECK(failing > 1);
  CHECK(report.moved() == 0);
  CHECK(contains(report.str(), " nodes have no device, for the reasons given: a run fails. Choose another --device"));
  CHECK(contains(report.json(), "\"device\": null"));
  CHECK_ERROR_CONTAINS(std::to_string(failing) + " nodes cannot: ", (void)model.program_of_step(16));
}

}  // namespace
}  // namespace tenon::test
