// SPDX-License-Identifier: Apache-2.0
// Plans: answers about graphs, and execution.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "mutant.h"

namespace tenon::mutants {
namespace {

bool is_relu(const tenon_graph& graph) {
  return graph.node_count > 0 && graph.nodes[0].op == TENON_OP_Relu;
}
bool is_f32(const tenon_graph& graph) {
  return graph.value_count > 0 && graph.values[0].desc.dtype == TENON_DTYPE_F32;
}

/// The graph and options that the unmodified backend gets instead of the caller's.
struct Question {
  Question(const tenon_graph& caller, const tenon_plan_options& caller_options) : head(caller), graph(&head), options(caller_options) {
    if (is(Mutation::any_math_will_do)) options.math = TENON_MATH_STRICT;
    if (is(Mutation::ignores_needs_of_graphs)) head.needs = 0;
    if (is(Mutation::ignores_needs_of_options)) options.needs = 0;
    if (is(Mutation::ignores_value_stride)) head.value_stride = sizeof(tenon_value);
    if (!changes_graphs() || !Graph::can_copy(caller)) return;
    copy = Graph(caller);
    change(copy);
    graph = &copy.abi();
  }
  Graph copy;
  tenon_graph head;
  const tenon_graph* graph;
  tenon_plan_options options;
};

tenon_answer& answer_at(tenon_answer* answers, std::uint32_t stride, std::uint32_t n) {
  return *reinterpret_cast<tenon_answer*>(reinterpret_cast<unsigned char*>(answers) + std::size_t{n} * stride);
}

void refuse(tenon_answer& answer, std::uint32_t reason) {
  answer.supported = 0;
  answer.reason = reason;
  std::strcpy(answer.text, "no rectifier in f32");
}

/// Whether the graph has a negative dimension.
bool has_symbols(const tenon_graph& graph) {
  for (std::uint32_t v = 0; v < graph.value_count; ++v) {
    const tenon_tensor_desc& desc = graph.values[v].desc;
    if (std::any_of(desc.shape, desc.shape + std::min(desc.rank, TENON_MAX_RANK), [](std::int64_t size) { return size < 0; })) return true;
  }
  return false;
}

tenon_status supports(tenon_device* device, const tenon_graph* graph, const tenon_plan_options* options, tenon_answer* out_answers,
                      std::uint32_t answer_stride, tenon_error* error) {
  const Question question(*graph, *options);
  if (is(Mutation::answers_by_its_own_size)) answer_stride = sizeof(tenon_answer);
  const tenon_status status = real().supports(device, question.graph, &question.options, out_answers, answer_stride, error);
  const auto answer = [&](std::uint32_t n) -> tenon_answer& { return answer_at(out_answers, answer_stride, n); };
  if (is(Mutation::accepts_malformed_graph)) {
    for (std::uint32_t n = 0; n < graph->node_count; ++n) answer(n).supported = 1;
    return TENON_OK;
  }
  if (status != TENON_OK || graph->node_count == 0) return status;
  if (is(Mutation::no_to_mandatory_op) && is_relu(*graph) && is_f32(*graph)) refuse(answer(0), TENON_REASON_DTYPE);
  if (is(Mutation::refuses_dense_operands) && is_relu(*graph) && is_f32(*graph)) refuse(answer(0), TENON_REASON_STRIDES);
  if (is(Mutation::answers_one_too_many)) answer(graph->node_count).supported = 1;
  if (is(Mutation::leaves_an_answer_out)) std::memset(static_cast<void*>(&answer(graph->node_count - 1)), 0x7F, sizeof(tenon_answer));
  for (std::uint32_t n = 0; n < graph->node_count; ++n) {
    if (is(Mutation::splits_a_group)) answer(n).group = 1;
    if (answer(n).supported != 0) continue;
    if (is(Mutation::one_no_fails_all)) return say(error, TENON_INVALID_ARGUMENT, answer(n).text);
    if (is(Mutation::no_without_text)) answer(n).text[0] = '\0';
    if (is(Mutation::no_without_reason)) answer(n).reason = TENON_REASON_NONE;
    if (is(Mutation::no_with_text_without_end)) std::memset(answer(n).text, 'x', sizeof answer(n).text);
    const bool will_do = is(Mutation::any_vendor_op_will_do) && graph->nodes[0].op >= TENON_OP_VENDOR;
    if (is(Mutation::says_yes_to_everything) || will_do || (is(Mutation::negative_dimensions_will_do) && has_symbols(*graph))) {
      answer(n).supported = 1;
      answer(n).reason = TENON_REASON_NONE;
    }
  }
  return status;
}

tenon_status plan_create(tenon_device* device, const tenon_graph* graph, const tenon_plan_options* options, tenon_plan** out_plan,
                         tenon_error* error) {
  if (is(Mutation::yes_then_fails)) return say(error, TENON_UNSUPPORTED, "not supported after all");
  if (is(Mutation::no_to_mandatory_op) && is_relu(*graph) && is_f32(*graph)) return say(error, TENON_UNSUPPORTED, "no rectifier in f32");
  if (is(Mutation::writes_where_no_memory_is)) {
    const tenon_host* const host = host_of(device);
    void* const notes = host->allocate(host->context, 64, 64);
    std::memset(notes, 0, 64);
    host->release(host->context, notes, 64);
  }
  if (is(Mutation::leaves_spans_open)) host_of(device)->trace_begin(host_of(device)->context, "a plan", 0);
  const Question question(*graph, *options);
  auto plan = std::make_unique<Plan>();
  if (shares_packed() && Graph::can_copy(*graph)) {
    if (const tenon_status refused = take_packed(Graph(*graph), *plan, error); refused != TENON_OK) return refused;
  }
  const tenon_status status = real().plan_create(device, question.graph, &question.options, &plan->unmodified, error);
  if (status != TENON_OK) {
    if (is(Mutation::accepts_malformed_graph)) {
      tenon_graph nothing{};
      nothing.struct_size = sizeof nothing;
      nothing.value_stride = sizeof(tenon_value);
      nothing.node_stride = sizeof(tenon_node);
      if (real().plan_create(device, &nothing, options, &plan->unmodified, error) == TENON_OK) {
        plan->device = device;
        *out_plan = reinterpret_cast<tenon_plan*>(plan.release());
        return TENON_OK;
      }
    }
    if (is(Mutation::failure_writes_its_result)) *out_plan = reinterpret_cast<tenon_plan*>(1);
    if (is(Mutation::error_without_text) && error != nullptr && error->text_capacity > 0) error->text[0] = '\0';
    return status;
  }
  plan->device = device;
  plan->graph = Graph(*graph);
  plan->donates = graph->donation_count > 0;
  plan->options = question.options;
  plan->borrowed = graph->values;
  plan->parameters.resize(graph->binding_count);
  if (is(Mutation::leaks_device_memory)) {
    tenon_memory_request request{};
    request.struct_size = sizeof request;
    request.size_bytes = 64;
    tenon_memory_result leaked{};
    leaked.struct_size = sizeof leaked;
    real().memory_allocate(device, &request, &leaked, error);
  }
  // Constants are read at the caller's address: the unmodified plan is made again at each execution.
  if (is(Mutation::constants_borrowed)) {
    real().plan_destroy(plan->unmodified);
    plan->unmodified = nullptr;
  }
  if (is(Mutation::stale_workspace) || is(Mutation::workspace_at_128)) plan->own_workspace = 64;
  *out_plan = reinterpret_cast<tenon_plan*>(plan.release());
  return TENON_OK;
}

void plan_destroy(tenon_plan* plan) {
  if (plan == nullptr) return;
  if (Plan::of(plan).unmodified != nullptr) real().plan_destroy(Plan::of(plan).unmodified);
  if (is(Mutation::leaks_plans)) {
    const tenon_host* const host = host_of(Plan::of(plan).device);
    host->allocate(host->context, 64, 64);
  }
  delete &Plan::of(plan);
}

/// The info of the unmodified plan, which is made if it does not exist.
tenon_status unmodified_info(Plan& plan, tenon_plan_info* out_info, tenon_error* error) {
  if (plan.unmodified != nullptr) return real().plan_info(plan.unmodified, out_info, error);
  tenon_plan* unmodified = nullptr;
  tenon_status status = real().plan_create(plan.device, &plan.graph.abi(), &plan.options, &unmodified, error);
  if (status != TENON_OK) return status;
  status = real().plan_info(unmodified, out_info, error);
  real().plan_destroy(unmodified);
  return status;
}

tenon_status plan_info(tenon_plan* plan, tenon_plan_info* out_info, tenon_error* error) {
  const tenon_status status = unmodified_info(Plan::of(plan), out_info, error);
  if (status != TENON_OK) return status;
  out_info->workspace_size_bytes += Plan::of(plan).own_workspace;
  if (const std::uint64_t handed = packed_constant_bytes(Plan::of(plan)); handed > 0) out_info->packed_size_bytes -= handed;
  if (is(Mutation::expects_no_kernels)) out_info->kernel_count = 0;
  if (is(Mutation::workspace_without_bound)) out_info->workspace_size_bytes += std::uint64_t{1} << 27;
  return status;
}

std::atomic<std::uint64_t> last_profiled{0};  ///< the id of the last profiled execution

void disturb(Plan& plan, std::uint64_t epoch) {
  misbehave(Moment::execute);
  const tenon_host* const host = host_of(plan.device);
  if (is(Mutation::allocates_in_execute)) host->release(host->context, host->allocate(host->context, 64, 64), 64);
  if (is(Mutation::leaks_at_new_epochs) && plan.epoch != epoch) host->allocate(host->context, 64, 64);
  plan.epoch = epoch;
  if (is(Mutation::loops_outside_the_run))
    host->parallel_for(
        host->context, nullptr, 2, 1, [](void*, std::int64_t, std::int64_t) {}, nullptr);
  if (is(Mutation::logs_in_execute)) host->log(host->context, TENON_LOG_INFO, "one more execution");
}

tenon_status plan_execute(tenon_plan* handle, const tenon_bindings* bindings, std::uint64_t workspace, tenon_stream* stream,
                          tenon_error* error) {
  Plan& plan = Plan::of(handle);
  tenon_stream* const unmodified_stream = drained(stream);
  if (bindings->address_count < plan.graph.binding_count) {
    if (is(Mutation::too_few_addresses_will_do)) return TENON_OK;
    const tenon_status refused = real().plan_execute(plan.unmodified, bindings, workspace, unmodified_stream, error);
    if (is(Mutation::error_without_text) && error != nullptr && error->text_capacity > 0) error->text[0] = '\0';
    return refused;
  }
  if (is_recorded(stream)) {
    record(stream, plan.device,
           [handle, own = *bindings, addresses = std::vector(bindings->addresses, bindings->addresses + bindings->address_count),
            workspace](tenon_stream* to, tenon_error* e) mutable {
             own.addresses = addresses.data();
             return plan_execute(handle, &own, workspace, to, e);
           });
    return TENON_OK;
  }
  disturb(plan, bindings->parameters_epoch);
  if (is(Mutation::keeps_graph_pointers) && !plan.graph.values.empty() && plan.borrowed[0].desc.rank != plan.graph.values[0].abi.desc.rank)
    return say(error, TENON_INTERNAL, "the graph has changed since the plan was made");
  tenon_plan* unmodified = plan.unmodified;
  if (unmodified == nullptr) {
    const tenon_status status = real().plan_create(plan.device, &plan.graph.abi(), &plan.options, &unmodified, error);
    if (status != TENON_OK) return status;
  }
  tenon_plan_info info{};
  info.struct_size = sizeof info;
  real().plan_info(unmodified, &info, nullptr);

  Execution run{plan, {bindings->addresses, bindings->addresses + bindings->address_count}, workspace, info.workspace_size_bytes, {}, {}};
  const std::unique_lock<std::mutex> reading = read_packed(plan, bindings->parameters_epoch, run.addresses);
  before_execution(run);
  tenon_bindings altered = *bindings;
  altered.addresses = run.addresses.data();
  if (is(Mutation::ignores_needs_of_bindings)) altered.needs = 0;
  if (is(Mutation::never_asks_to_stop) || is(Mutation::stops_after_the_update)) altered.run = nullptr;
  if (bindings->execution_id != 0) last_profiled = bindings->execution_id;
  const tenon_status status = real().plan_execute(unmodified, &altered, workspace, unmodified_stream, error);
  if (plan.unmodified == nullptr) real().plan_destroy(unmodified);
  if (status != TENON_OK) {
    if (error != nullptr && (is(Mutation::fused_nodes_count_once) || is(Mutation::names_nodes_by_index))) {
      const auto& nodes = plan.graph.nodes;
      const auto culprit = std::find_if(nodes.begin(), nodes.end(), [&](const Graph::Node& n) { return n.abi.id == error->node_id; });
      if (is(Mutation::names_nodes_by_index)) error->node_id = static_cast<std::uint64_t>(culprit - nodes.begin());
      if (is(Mutation::fused_nodes_count_once) && culprit != nodes.end() && culprit - nodes.begin() > 1)
        error->node_id = (culprit - 1)->abi.id;
    }
    if (is(Mutation::hides_failures)) return TENON_OK;
    if (is(Mutation::mistakes_are_internal) && status == TENON_INVALID_ARGUMENT) return TENON_INTERNAL;
    return status;
  }
  after_execution(run);
  const tenon_host* const host = host_of(plan.device);
  if (is(Mutation::stops_after_the_update) && bindings->run != nullptr && host->cancel_requested(host->context, bindings->run) != 0)
    return say(error, TENON_CANCELLED, "stopped at the end");
  return TENON_OK;
}

// ---------------------------------------------------------------- profiles

tenon_status profile_read(tenon_plan* plan, std::uint64_t execution_id, tenon_profile_record* out_records, std::uint32_t record_stride,
                          std::uint32_t capacity, std::uint32_t* out_count, tenon_error* error) {
  if (is(Mutation::profiles_the_last_execution) && execution_id != 0) execution_id = last_profiled;
  if (is(Mutation::assumes_the_record_size)) record_stride = sizeof(tenon_profile_record);
  const tenon_status status =
      real().profile->read(Plan::of(plan).unmodified, execution_id, out_records, record_stride, capacity, out_count, error);
  if (!is(Mutation::profiles_without_times)) return status;
  for (std::uint32_t i = 0; status == TENON_OK && i < std::min(*out_count, capacity); ++i) out_records[i].duration_ns = 0;
  return status;
}

}  // namespace

void spoil_plans(tenon_backend_table& table) {
  static tenon_profile_table profile;
  const bool profiles =
      is(Mutation::profiles_without_times) || is(Mutation::profiles_the_last_execution) || is(Mutation::assumes_the_record_size);
  if (profiles && real().profile != nullptr) {
    profile = *real().profile;
    profile.read = profile_read;
    table.profile = &profile;
  }
  table.supports = supports;
  table.plan_create = plan_create;
  table.plan_destroy = plan_destroy;
  table.plan_info = plan_info;
  table.plan_execute = plan_execute;
}

}  // namespace tenon::mutants
