// The kit's group "honesty" catches backends whose capability answers lie, and accuses none that are honest.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "conformance/conformance.h"

using namespace tenon;
using conformance::Class;

namespace {

/// How the oracle, wrapped, lies about Relu.
enum class Lie {
  none,
  table_says_more,     ///< the table has i8, `supports` has not
  table_says_less,     ///< `supports` serves f64, the table has not
  yes_then_refuses,    ///< plan_create takes back what `supports` said
  no_then_plans,       ///< plan_create serves what `supports` refuses
  moody,               ///< every other answer is another one
  speechless,          ///< a no without a sentence
  unknown_reason,      ///< a no for a reason that is not in the header
  blames_shape,        ///< strides are refused as if they were a shape
  shy,                 ///< no, where there are other nodes
  ignores_strides,     ///< walks strided inputs as if they were dense
  fails_in_execution,  ///< yes, a plan, and then an error
  large_overflows,     ///< sizes in 32 bits: yes to what has more elements, and no plan for it
};
Lie lie = Lie::none;
int asked = 0;

const tenon_backend_table* real = nullptr;
tenon_status (*real_create)(const tenon_host*, tenon_backend**, const tenon_backend_table**, tenon_error*) = nullptr;

void say(tenon_error* error, const char* text) {
  if (error != nullptr && error->text != nullptr) std::snprintf(error->text, error->text_capacity, "%s", text);
}

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
  tenon_answer answer{};
  answer.reason = reason;
  std::snprintf(answer.text, sizeof answer.text, "%s", text);
  return answer;
}

tenon_status supports(tenon_device* device, const tenon_graph* graph, const tenon_plan_options* options, tenon_answer* out_answers,
                      tenon_error* error) {
  const tenon_status status = real->supports(device, graph, options, out_answers, error);
  if (status != TENON_OK) return status;
  const tenon_dtype dtype = value_of(*graph, 0).desc.dtype;
  tenon_answer& first = out_answers[0];
  ++asked;
  if (lie == Lie::moody && asked % 2 == 0 && first.supported != 0) first = no(TENON_REASON_OP, "not now");
  if (lie == Lie::no_then_plans && dtype == TENON_DTYPE_F64) first = no(TENON_REASON_SHAPE, "not this one");
  if (lie == Lie::speechless && first.supported == 0) first.text[0] = '\0';
  if (lie == Lie::unknown_reason && first.supported == 0) first.reason = 77;
  if (lie == Lie::blames_shape && is_strided(*graph)) first = no(TENON_REASON_SHAPE, "strides");
  if (lie == Lie::shy && graph->node_count > 1) first = no(TENON_REASON_GRAPH, "there is somebody");
  return status;
}

tenon_status plan_create(tenon_device* device, const tenon_graph* graph, const tenon_plan_options* options, tenon_plan** out_plan,
                         tenon_error* error) {
  if (lie == Lie::yes_then_refuses && value_of(*graph, 0).desc.rank == 2) {
    say(error, "no matrices after all");
    return TENON_UNSUPPORTED;
  }
  if (lie == Lie::large_overflows && is_large(*graph)) {
    say(error, "-5 elements");
    return TENON_INTERNAL;
  }
  if (lie != Lie::ignores_strides) return real->plan_create(device, graph, options, out_plan, error);
  std::vector<tenon_value> values;
  for (std::uint32_t v = 0; v < graph->value_count; ++v) {
    values.push_back(value_of(*graph, v));
    values.back().desc.strides = nullptr;
  }
  tenon_graph dense = *graph;
  dense.values = values.data();
  dense.value_stride = sizeof(tenon_value);
  return real->plan_create(device, &dense, options, out_plan, error);
}

tenon_status plan_execute(tenon_plan* plan, const tenon_bindings* bindings, std::uint64_t workspace, tenon_stream* stream,
                          tenon_error* error) {
  if (lie != Lie::fails_in_execution) return real->plan_execute(plan, bindings, workspace, stream, error);
  say(error, "not today");
  return TENON_UNSUPPORTED;
}

tenon_status create(const tenon_host* host, tenon_backend** out_backend, const tenon_backend_table** out_table, tenon_error* error) {
  static tenon_backend_table table;
  const tenon_status status = real_create(host, out_backend, &real, error);
  if (status != TENON_OK) return status;
  table = *real;
  table.supports = supports;
  table.plan_create = plan_create;
  table.plan_execute = plan_execute;
  *out_table = &table;
  return TENON_OK;
}

tenon_status query(const tenon_host_info* host, tenon_backend_info* out_info) {
  static void* const library = dlopen(TENON_BACKEND_DIRECTORY "/libtenon_backend_reference.so", RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  const tenon_status status = reinterpret_cast<tenon_backend_query_fn>(dlsym(library, TENON_BACKEND_QUERY_SYMBOL))(host, out_info);
  if (status != TENON_OK) return status;
  static std::vector<tenon_capability> capabilities;
  capabilities.assign(out_info->capabilities, out_info->capabilities + out_info->capability_count);
  for (tenon_capability& row : capabilities) {
    if (row.op != TENON_OP_Relu) continue;
    if (lie == Lie::table_says_more) row.dtypes |= TENON_DTYPE_BIT(TENON_DTYPE_I8);
    if (lie == Lie::table_says_less) row.dtypes &= ~TENON_DTYPE_BIT(TENON_DTYPE_F64);
  }
  real_create = out_info->create;
  out_info->create = create;
  out_info->name = "lying";
  out_info->capabilities = capabilities.data();
  out_info->flags &= ~static_cast<std::uint32_t>(TENON_BACKEND_ORACLE);
  return status;
}

conformance::Report judged(Lie how) {
  lie = how;
  conformance::Options options;
  options.backend = "lying";
  options.registered = {{"lying", query}};
  options.backend_directory = TENON_BACKEND_DIRECTORY;
  options.profile = "ops";
  options.filter = "honesty/relu/*";
  conformance::Report report = conformance::judge(options);
  lie = Lie::none;
  return report;
}

/// Some case fails, and says so in these words.
void caught(Lie how, const std::string& words) {
  CAPTURE(words);
  const conformance::Report report = judged(how);
  CHECK(report.count(Class::fail) > 0);
  bool said = false;
  for (const conformance::Result& result : report.results) said = said || result.text.find(words) != std::string::npos;
  CHECK_MESSAGE(said, report.results[0].text);
}

}  // namespace

TEST_CASE("honesty: the wrapped oracle without a lie passes") {
  const conformance::Report report = judged(Lie::none);
  CHECK(report.results.size() == 8);
  for (const conformance::Result& result : report.results) CHECK_MESSAGE(result.outcome == Class::pass, result.text);
}

TEST_CASE("honesty: a table that says more or less than `supports` is caught") {
  caught(Lie::table_says_more, "i8: the capability table says yes, `supports` says no, DTYPE");
  caught(Lie::table_says_less, "f64: the capability table says no, `supports` says yes");
}

TEST_CASE("honesty: a yes that is not kept is caught, in plan_create and in execution") {
  caught(Lie::yes_then_refuses, "`supports` said yes, yet plan_create failed with UNSUPPORTED: no matrices after all");
  caught(Lie::fails_in_execution, "execution failed with UNSUPPORTED: not today");
}

TEST_CASE("honesty: a no that is none is caught") {
  caught(Lie::no_then_plans, "`supports` said no, SHAPE (not this one), yet plan_create made a plan");
  caught(Lie::speechless, "without a sentence");
  caught(Lie::unknown_reason, "the reason 77");
}

TEST_CASE("honesty: answers that change are caught") {
  caught(Lie::moody, "and asked again");
  caught(Lie::shy, "and beside a Relu of other values no, GRAPH");
}

TEST_CASE("honesty: strides refused for another reason, or ignored, are caught") {
  caught(Lie::blames_shape, "wanted yes, or the reason STRIDES or OPTIONS");
  caught(Lie::ignores_strides, "output 0: ");
}

TEST_CASE("honesty: sizes that are kept in 32 bits are caught") {
  caught(Lie::large_overflows, "yet plan_create failed with INTERNAL: -5 elements");
}
