// SPDX-License-Identifier: Apache-2.0
#include "exec/answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <string>

#include "core/log.h"
#include "exec/call.h"
#include "exec/lower.h"
#include "exec/op_versions.h"
#include "exec/vendor_ops.h"
#include "graph/passes.h"
#include "text/counted.h"

namespace tenon::exec {
namespace {

/// By value: whether it is needed outside of these nodes.
std::vector<bool> needed_outside(const Graph& graph, const std::vector<NodeId>& nodes) {
  std::vector<std::uint32_t> uses = count_uses(graph);
  for (const NodeId n : nodes) {
    for (const ValueId v : graph.nodes()[n].inputs) {
      if (v != no_id) --uses[v];
    }
  }
  std::vector<bool> needed(uses.size());
  std::transform(uses.begin(), uses.end(), needed.begin(), [](std::uint32_t count) { return count > 0; });
  return needed;
}

tenon_answer refusal(const std::string& text, std::uint32_t reason = TENON_REASON_OP) {
  tenon_answer no{};
  no.reason = reason;
  std::snprintf(no.text, sizeof no.text, "%s", text.c_str());
  return no;
}

std::vector<tenon_answer> ask_backend(ContextState& context, DeviceState& device, const Graph& graph, const std::vector<NodeId>& nodes,
                                      const tenon_plan_options& options);

/// The answers to a question that failed as a whole.
std::vector<tenon_answer> ask_each(ContextState& context, DeviceState& device, const Graph& graph, const std::vector<NodeId>& nodes,
                                   const tenon_plan_options& options, const std::string& text) {
  if (nodes.size() == 1) return {refusal("the capability query failed: " + text)};
  {
    const std::lock_guard lock(context.mutex);
    if (context.failed_queries.insert(device.info.backend).second) {
      log::warning(
          "device '{}': the capability query for {} failed ({}), expected an answer for each node; it is asked about each node by "
          "itself: report this to the vendor of backend '{}'",
          device.info.name, counted(nodes.size(), "node"), text, device.info.backend);
    }
  }
  std::vector<tenon_answer> answers;
  for (const NodeId n : nodes) answers.push_back(ask_backend(context, device, graph, {n}, options)[0]);
  return answers;
}

/// A backend's answers for a plan of `nodes`.
std::vector<tenon_answer> ask_backend(ContextState& context, DeviceState& device, const Graph& graph, const std::vector<NodeId>& nodes,
                                      const tenon_plan_options& options) {
  AbiGraph lowered;
  lower(graph, nodes, needed_outside(graph, nodes), {}, count_uses(graph), lowered);
  const loader::Backend& backend = *device.loaded->backend;
  lower_to_supported_versions(backend, graph, lowered);
  use_own_ids(*device.loaded, lowered);
  std::vector<tenon_answer> answers(nodes.size());
  ErrorText error;
  const tenon_status status = guarded_call("supports", error, [&] {
    return device.table.supports(device.handle, &lowered.graph, &options, answers.data(), sizeof(tenon_answer), error);
  });
  if (status == TENON_DEVICE_LOST || status == TENON_FORKED || status == TENON_CANCELLED) {
    check(status, error, fmt::format("device '{}': the capability query failed", device.info.name));
  }
  if (status != TENON_OK) {
    const std::string text = error.text().empty() ? name_of(static_cast<Status>(status)) : error.text();
    answers = ask_each(context, device, graph, nodes, options, text);
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    answers[i].text[sizeof answers[i].text - 1] = '\0';  // terminates the backend's text
    if (const auto* off = backend.find_switched_off(lowered.nodes[i].op, lowered.nodes[i].version)) {
      answers[i] = refusal(off->reason);
    } else if (!answers[i].supported) {
      const std::string reason = why_not_older(backend, graph.nodes()[nodes[i]]);
      if (!reason.empty()) answers[i] = refusal(reason);
    }
  }
  return answers;
}

/// Why a device does not compute with the operands or results of a node; empty: it does.
std::string why_not_with(const DeviceInfo& device, const Graph& graph, const NodeInfo& node) {
  std::vector<ValueId> values = node.inputs;
  values.insert(values.end(), node.outputs.begin(), node.outputs.end());
  for (const ValueId v : values) {
    if (v == no_id || device.holds(graph.info(v).dtype)) continue;
    std::vector<std::string> names;
    for (const DType dtype : device.dtypes) names.emplace_back(name_of(dtype));
    return fmt::format("{} does not compute with {}: expected one of {}", device.name, name_of(graph.info(v).dtype),
                       fmt::join(names, ", "));
  }
  return {};
}

/// Makes the views that a node reads dense, because its device does not take them. True if there were any.
bool make_dense(Graph& graph, NodeId n, const DeviceInfo& device, const std::string& reason, PlacementReport& report) {
  bool any = false;
  for (const ValueId v : graph.nodes()[n].inputs) {
    if (v == no_id || graph.info(v).strides.empty()) continue;
    const ValueInfo& info = graph.info(v);
    report.dense_copies.push_back({info.name, device.name, reason, static_cast<std::uint64_t>(info.shape.count() * size_of(info.dtype))});
    graph::GraphEditor(graph).make_dense(v);
    any = true;
  }
  return any;
}

}  // namespace

std::vector<tenon_answer> ask(ContextState& context, DeviceState& device, const Graph& graph, const std::vector<NodeId>& nodes,
                              const tenon_plan_options& options) {
  std::vector<tenon_answer> answers(nodes.size());
  std::vector<NodeId> asked;
  std::vector<std::size_t> places;  // of the nodes asked about
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const NodeInfo& node = graph.nodes()[nodes[i]];
    const std::string not_declared = why_not_declared(*device.loaded, node.op), not_computed = why_not_with(device.info, graph, node);
    if (!not_declared.empty()) {
      answers[i] = refusal(not_declared);
    } else if (!not_computed.empty()) {
      answers[i] = refusal(not_computed, TENON_REASON_DTYPE);
    } else {
      asked.push_back(nodes[i]);
      places.push_back(i);
    }
  }
  if (asked.empty()) return answers;
  const std::vector<tenon_answer> given = ask_backend(context, device, graph, asked, options);
  for (std::size_t i = 0; i < places.size(); ++i) answers[places[i]] = given[i];
  return answers;
}

std::vector<tenon_answer> ask_with_copies(ContextState& context, DeviceState& device, Graph& graph, const std::vector<NodeId>& nodes,
                                          const tenon_plan_options& options, PlacementReport& report) {
  if (device.info.operand_alignment_bytes > 1) {  // a view may start anywhere
    const std::string reason = fmt::format("its operands start at multiples of {} bytes", device.info.operand_alignment_bytes);
    for (const NodeId n : nodes) make_dense(graph, n, device.info, reason, report);
  }
  std::vector<tenon_answer> answers = ask(context, device, graph, nodes, options);
  bool changed = false;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const bool refuses_views = answers[i].reason == TENON_REASON_STRIDES || answers[i].reason == TENON_REASON_ALIGNMENT;
    if (!answers[i].supported && refuses_views) changed |= make_dense(graph, nodes[i], device.info, answers[i].text, report);
  }
  return changed ? ask(context, device, graph, nodes, options) : answers;
}

}  // namespace tenon::exec
