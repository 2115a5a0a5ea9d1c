// SPDX-License-Identifier: Apache-2.0
// The kit's group "capability_consistency" catches backends whose capability answers are wrong, and passes those whose answers are right.
#include <doctest/doctest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "conformance/conformance.h"
#include "disguised_backend.h"

using namespace tenon;
using namespace tenon::test;
using conformance::Class;

namespace {

/// How the wrapped oracle misreports Relu.
enum class Lie {
  none,
  table_says_more,     ///< the table lists i8, `supports` rejects it
  table_says_less,     ///< `supports` accepts f64, the table does not list it
  yes_then_refuses,    ///< plan_create rejects what `supports` accepted
  no_then_plans,       ///< plan_create accepts what `supports` rejected
  inconsistent,        ///< every second answer differs
  no_message,          ///< a rejection without a message
  unknown_reason,      ///< a rejection with a reason code that the header lacks
  blames_shape,        ///< rejects strides with the reason for shapes
  rejects_in_graph,    ///< rejects the node if the graph has others
  ignores_strides,     ///< reads strided inputs as dense
  fails_in_execution,  ///< accepts and plans, then fails in execution
  large_overflows,     ///< sizes in 32 bits: accepts more elements than it can plan
};
Lie lie = Lie::none;
int asked = 0;

struct Backend : Disguise<Backend> {
  static constexpr const char *file = "reference", *name = "lying";
  static void alter(tenon_backend_table& table);
  static void describe(tenon_backend_info& info);
};

const tenon_value& value_of(const tenon_graph& graph, std::uint32_t v) {
  return *reinterpret_cast<const tenon_value*>(reinterpret_cast<const char*>(graph.values) + std::size_t{v} * graph.value_stride);
}
bool is_strided(const tenon_graph& graph) {
  bool any = false;
  for (std::uint32_t v = 0; v < graph.value_count; ++v) any = any || value_of(graph, v).desc.strides != nullptr;
  return any;
}
bool is_large(const tenon_graph& graph) {
  for (std::uint32_t v = 0; v < graph.value_count; ++v) {
    double count = 1;
    for (std::uint32_t d = 0; d < value_of(graph, v).desc.rank; ++d) count *= static_cast<double>(value_of(graph, v).desc.shape[d]);
    if (count > 4e9) return true;
  }
  return false;
}
tenon_answer no(std::uint32_t reason, const char* text) {
  tenon_answer answer{.reason = reason};
  std::snprintf(answer.text, sizeof answer.text, "%s", text);
  return answer;
}

tenon_status supports(tenon_device* device, const tenon_graph* graph, const tenon_plan_options* options, tenon_answer* out_answers,
                      std::uint32_t answer_stride, tenon_error* error) {
  const tenon_status status = Backend::real->supports(device, graph, options, out_answers, answer_stride, error);
  if (status != TENON_OK) return status;
  const tenon_dtype dtype = value_of(*graph, 0).desc.dtype;
  tenon_answer& first = out_answers[0];
  ++asked;
  if (lie == Lie::inconsistent && asked % 2 == 0 && first.supported != 0) first = no(TENON_REASON_OP, "not now");
  if (lie == Lie::no_then_plans && dtype == TENON_DTYPE_F64) first = no(TENON_REASON_SHAPE, "not this one");
  if (lie == Lie::no_message && first.supported == 0) first.text[0] = '\0';
  if (lie == Lie::unknown_reason && first.supported == 0) first.reason = 77;
  if (lie == Lie::blames_shape && is_strided(*graph)) first = no(TENON_REASON_SHAPE, "strides");
  if (lie == Lie::rejects_in_graph && graph->node_count > 1) first = no(TENON_REASON_GRAPH, "there is somebody");
  return status;
}

tenon_status plan_create(tenon_device* device, const tenon_graph* graph, const tenon_plan_options* options, tenon_plan** out_plan,
                         tenon_error* error) {
  if (lie == Lie::yes_then_refuses && value_of(*graph, 0).desc.rank == 2) {
    return say(error, TENON_UNSUPPORTED, "no matrices after all");
  }
  if (lie == Lie::large_overflows && is_large(*graph)) {
    return say(error, TENON_INTERNAL, "-5 elements");
  }
  if (lie != Lie::ignores_strides) return Backend::real->plan_create(device, graph, options, out_plan, error);
  std::vector<tenon_value> values;
  for (std::uint32_t v = 0; v < graph->value_count; ++v) {
    values.push_back(value_of(*graph, v));
    values.back().desc.strides = nullptr;
  }
  tenon_graph dense = *graph;
  dense.values = values.data();
  dense.value_stride = sizeof(tenon_value);
  return Backend::real->plan_create(device, &dense, options, out_plan, error);
}

tenon_status plan_execute(tenon_plan* plan, const tenon_bindings* bindings, std::uint64_t workspace, tenon_stream* stream,
                          tenon_error* error) {
  if (lie != Lie::fails_in_execution) return Backend::real->plan_execute(plan, bindings, workspace, stream, error);
  return say(error, TENON_UNSUPPORTED, "not today");
}

void Backend::alter(tenon_backend_table& table) {
  table.supports = supports;
  table.plan_create = plan_create;
  table.plan_execute = plan_execute;
}

void Backend::describe(tenon_backend_info& info) {
  static std::vector<tenon_capability> capabilities;
  capabilities.assign(info.capabilities, info.capabilities + info.capability_count);
  for (tenon_capability& row : capabilities) {
    if (row.op != TENON_OP_Relu) continue;
    if (lie == Lie::table_says_more) row.dtypes |= TENON_DTYPE_BIT(TENON_DTYPE_I8);
    if (lie == Lie::table_says_less) row.dtypes &= ~TENON_DTYPE_BIT(TENON_DTYPE_F64);
  }
  info.capabilities = capabilities.data();
}

conformance::Report judged(Lie how) {
  lie = how;
  conformance::Options options = Backend::options("ops", "capability_consistency/relu/*");
  options.small = false;
  conformance::Report report = conformance::judge(options);
  lie = Lie::none;
  return report;
}

/// Some case fails with this text.
void caught(Lie how, const std::string& words) {
  CAPTURE(words);
  const conformance::Report report = judged(how);
  CHECK(report.count(Class::fail) > 0);
  bool said = false;
  for (const conformance::Result& result : report.results) said = said || result.text.find(words) != std::string::npos;
  CHECK_MESSAGE(said, report.results[0].text);
}

}  // namespace

TEST_CASE("capability_consistency: the unmodified wrapped oracle passes") {
  const conformance::Report report = judged(Lie::none);
  CHECK(report.results.size() == 8);
  for (const conformance::Result& result : report.results) CHECK_MESSAGE(result.outcome == Class::pass, result.text);
}

TEST_CASE("capability_consistency: a table that lists more or less than `supports` accepts is caught") {
  caught(Lie::table_says_more, "i8: the capability table says yes, `supports` says no, DTYPE");
  caught(Lie::table_says_less, "f64: the capability table says no, `supports` says yes");
}

TEST_CASE("capability_consistency: an accepted node that fails in plan_create or in execution is caught") {
  caught(Lie::yes_then_refuses, "`supports` said yes, yet plan_create failed with UNSUPPORTED: no matrices after all");
  caught(Lie::fails_in_execution, "execution failed with UNSUPPORTED: not today");
}

TEST_CASE("capability_consistency: a rejection that does not hold is caught") {
  caught(Lie::no_then_plans, "`supports` said no, SHAPE (not this one), yet plan_create made a plan");
  caught(Lie::no_message, "without a NUL-terminated text");
  caught(Lie::unknown_reason, "the unknown reason 77");
}

TEST_CASE("capability_consistency: inconsistent answers are caught") {
  caught(Lie::inconsistent, "and the second time");
  caught(Lie::rejects_in_graph, "and with an independent Relu in the graph no, GRAPH");
}

TEST_CASE("capability_consistency: strides that are rejected with another reason, or ignored, are caught") {
  caught(Lie::blames_shape, "expected yes, or the reason STRIDES or OPTIONS");
  caught(Lie::ignores_strides, "output 0: ");
}

TEST_CASE("capability_consistency: sizes in 32 bits are caught") {
  caught(Lie::large_overflows, "yet plan_create failed with INTERNAL: -5 elements");
}
