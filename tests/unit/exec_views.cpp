// SPDX-License-Identifier: Apache-2.0
// Inputs that are views: bound in place where the device takes their strides, copied where it refuses them.
#include <cstdio>
#include <numeric>

#include "extra_device.h"
#include "testing.h"

namespace tenon::test {
namespace {

/// The reference backend as one that takes dense operands only.
struct DenseOnly : WrappedBackend<DenseOnly> {
  static constexpr const char* name = "dense_only";
  static inline std::uint32_t reason = TENON_REASON_STRIDES;

  static tenon_status supports(tenon_device* device, const tenon_graph* graph, const tenon_plan_options* options, tenon_answer* out_answers,
                               std::uint32_t answer_stride, tenon_error* error) {
    const tenon_status status = real->table().supports(device, graph, options, out_answers, answer_stride, error);
    for (std::uint32_t n = 0; status == TENON_OK && n < graph->node_count; ++n) {
      for (std::uint32_t i = 0; i < graph->nodes[n].input_count; ++i) {
        if (graph->values[graph->nodes[n].inputs[i]].desc.strides == nullptr) continue;
        out_answers[n].supported = 0;
        out_answers[n].reason = reason;
        std::snprintf(out_answers[n].text, sizeof out_answers[n].text, "takes rows without gaps");
      }
    }
    return status;
  }
  static void alter(tenon_backend_table& table) { table.supports = supports; }
};

Tensor numbers(const Device& device) {
  std::vector<float> values(12);
  std::iota(values.begin(), values.end(), 0.0f);
  return Tensor::of(values, {3, 4}).to(device);
}

/// relu of the transpose of a (3, 4) tensor.
Graph relu_of_transpose() {
  Graph graph;
  const std::int64_t strides[] = {1, 4};
  graph.output("y", ops::relu(graph.input("x", DType::f32, {4, 3}, strides)));
  return graph;
}

const std::vector<float> transposed{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11};

TEST_CASE_FIXTURE(OnReference, "views: a device that takes their strides reads them in place") {
  Program program(context, relu_of_transpose());
  CHECK(program.placement().dense_copies.empty());
  CHECK(program.memory()[0].inputs_size_bytes == 0);
  const Tensor x = numbers(context.default_device());
  CHECK(floats(program.run({x.transpose(0, 1)})[0]) == transposed);
  CHECK_ERROR_CONTAINS("input 'x': expected an aligned view on reference:0 with strides (1, 4), as declared, got ",
                       program.run({x.reshape({4, 3})}));
  CHECK(floats(immediate::relu(x.transpose(0, 1))) == transposed);
}

TEST_CASE_FIXTURE(OnReference, "views: a device that refuses their strides gets dense copies, which the report lists") {
  DenseOnly::add_to(context);
  for (const std::uint32_t reason : {TENON_REASON_STRIDES, TENON_REASON_ALIGNMENT}) {
    DenseOnly::reason = reason;
    Program program(context, relu_of_transpose(), {.device = "dense_only:0"});
    const PlacementReport& report = program.placement();
    CHECK(report.moved() == 0);
    REQUIRE(report.dense_copies.size() == 1);
    CHECK(report.dense_copies[0].value == "x");
    CHECK(report.dense_copies[0].size_bytes == 48);
    CHECK(contains(report.str(), "copy x: dense on dense_only:0, 48 bytes: takes rows without gaps"));
    CHECK(contains(report.json(), "\"reason\": \"takes rows without gaps\""));
    const Tensor x = numbers(context.device("dense_only:0"));
    CHECK(floats(program.run({x.transpose(0, 1)})[0]) == transposed);
    CHECK(floats(immediate::relu(x.transpose(0, 1))) == transposed);
  }
}

TEST_CASE_FIXTURE(OnReference, "views: an input with strides names one for each axis") {
  Graph graph;
  const std::int64_t strides[] = {1};
  CHECK_ERROR("input 'x': expected a stride for each axis of (4,3), got 1", graph.input("x", DType::f32, {4, 3}, strides));
}

}  // namespace
}  // namespace tenon::test
