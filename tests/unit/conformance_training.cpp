// SPDX-License-Identifier: Apache-2.0
// Tests of the training profile: the openblas backend with one modified slot that makes training wrong.
#include <doctest/doctest.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <tenon/error.h>

#include "conformance/conformance.h"
#include "disguised_backend.h"
#include "temporary_folder.h"
#include "testing.h"

using namespace tenon;
using namespace tenon::test;
using conformance::Class;

namespace {

enum class Wrong {
  nothing,
  weights_of_the_first_epoch,  // packed weights are never packed again
  half_the_momentum,
  no_products,  // does not support MatMul
};
Wrong wrong = Wrong::nothing;

struct Backend : Disguise<Backend> {
  static constexpr const char *file = "openblas", *name = "wrong";
  static void alter(tenon_backend_table& table);
};

tenon_status supports(tenon_device* device, const tenon_graph* graph, const tenon_plan_options* options, tenon_answer* out_answers,
                      std::uint32_t answer_stride, tenon_error* error) {
  const tenon_status status = Backend::real->supports(device, graph, options, out_answers, answer_stride, error);
  for (std::uint32_t n = 0; wrong == Wrong::no_products && n < graph->node_count; ++n) {
    if (graph->nodes[n].op != TENON_OP_MatMul && graph->nodes[n].op != TENON_OP_Gemm) continue;
    out_answers[n].supported = 0;
    out_answers[n].reason = TENON_REASON_OP;
    std::snprintf(out_answers[n].text, sizeof out_answers[n].text, "products are not for this device");
  }
  return status;
}

tenon_status plan_create(tenon_device* device, const tenon_graph* graph, const tenon_plan_options* options, tenon_plan** out_plan,
                         tenon_error* error) {
  std::vector<tenon_node> nodes(graph->nodes, graph->nodes + graph->node_count);
  std::vector<tenon_attributes_sgd> steps;
  steps.reserve(nodes.size());
  for (tenon_node& node : nodes) {
    if (wrong != Wrong::half_the_momentum || node.op != TENON_OP_SgdStep) continue;
    tenon_attributes_sgd& own = steps.emplace_back();
    std::memcpy(&own, node.attributes, sizeof own);
    own.momentum /= 2;
    node.attributes = &own;
  }
  tenon_graph altered = *graph;
  altered.nodes = nodes.data();
  return Backend::real->plan_create(device, &altered, options, out_plan, error);
}

tenon_status plan_execute(tenon_plan* plan, const tenon_bindings* bindings, std::uint64_t workspace, tenon_stream* stream,
                          tenon_error* error) {
  tenon_bindings altered = *bindings;
  if (wrong == Wrong::weights_of_the_first_epoch) altered.parameters_epoch = 1;
  return Backend::real->plan_execute(plan, &altered, workspace, stream, error);
}

void Backend::alter(tenon_backend_table& table) {
  table.supports = supports;
  table.plan_create = plan_create;
  table.plan_execute = plan_execute;
}

conformance::Options options_for(const std::string& filter) {
  conformance::Options options = Backend::options("training", filter);
  options.models = TENON_SOURCE_DIRECTORY "/models";
  options.small = false;
  return options;
}

conformance::Report judged(Wrong how, const std::string& filter) {
  wrong = how;
  conformance::Report report = conformance::judge(options_for(filter));
  wrong = Wrong::nothing;
  return report;
}

/// The single case that matches the filter.
conformance::Result only(const conformance::Report& report) {
  REQUIRE(report.results.size() == 1);
  return report.results[0];
}

}  // namespace

TEST_CASE("conformance training: the unmodified wrapped backend passes, and a single model can be selected") {
  const conformance::Report report = judged(Wrong::nothing, "training/mnist_mlp/*");
  CHECK(report.results.size() == 5);
  CHECK(report.count(Class::pass) == 5);
  CHECK(report.exit_code() == 0);
}

TEST_CASE("conformance training: stale packed weights are caught with step and model") {
  const conformance::Result result = only(judged(Wrong::weights_of_the_first_epoch, "training/lstm_lm/prediction"));
  CHECK(result.outcome == Class::fail);
  CAPTURE(result.text);
  CHECK(contains(result.text, "lstm_lm, step 3: loss: expected "));
  CHECK(contains(result.text, " allowed"));
  CHECK(contains(result.again, "--filter 'training/lstm_lm/prediction' --seed 1"));
}

TEST_CASE("conformance training: a halved momentum is caught with its step") {
  const conformance::Result result = only(judged(Wrong::half_the_momentum, "training/mnist_mlp/50_steps"));
  CHECK(result.outcome == Class::fail);
  CAPTURE(result.text);
  CHECK(contains(result.text, "mnist_mlp, step 3: loss: expected "));
  CHECK(only(judged(Wrong::half_the_momentum, "training/mnist_mlp/one_step")).outcome == Class::pass);  // one step uses no momentum
}

TEST_CASE("conformance training: an unsupported op is reported with the runtime's message and is no pass") {
  const conformance::Report report = judged(Wrong::no_products, "training/mnist_mlp/one_step");
  const conformance::Result result = only(report);
  CHECK(result.outcome == Class::unsupported);
  CAPTURE(result.text);
  CHECK(contains(result.text, "products are not for this device"));
  CHECK(report.exit_code() != 0);
}

TEST_CASE("conformance training: the oracle is not compared with itself") {
  conformance::Options options = options_for("training/*/one_step");
  options.backend = "reference";
  options.registered = {};
  const conformance::Report report = conformance::judge(options);
  CHECK(report.results.size() > 30);
  CHECK(report.count(Class::not_run) == static_cast<std::int64_t>(report.results.size()));
}

TEST_CASE("conformance training: without models the error names the option that sets their folder") {
  conformance::Options options = options_for("*");
  options.models = "/nonexistent/models";
  CHECK_ERROR(
      "conformance: profile training: the folder '/nonexistent/models' does not exist; name the folder of model definitions with --models",
      conformance::judge(options));
  const test::TemporaryFolder folder;
  options.models = folder.path();
  CHECK_ERROR_CONTAINS("no model in", conformance::judge(options));
}

TEST_CASE("conformance training: a model without a reduced form is reported and is no pass") {
  const test::TemporaryFolder folder;
  folder.write("large.yaml", "layers:\n  - dense: {units: 100000}\n");
  conformance::Options options = options_for("*");
  options.models = folder.path();
  const conformance::Result result = only(conformance::judge(options));
  CHECK(result.name == "training/large/one_step");
  CHECK(result.outcome == Class::not_run);
  CHECK(contains(result.text, "large.yaml has no `conformance` block"));
}
