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

tenon_answer refusal(const std::string& reason) {
  tenon_answer no{};
  no.reason = TENON_REASON_OP;
  std::snprintf(no.text, sizeof no.text, "%s", reason.c_str());
  return no;
}

/// The answers to a question that failed as a whole.
std::vector<tenon_answer> ask_each(ContextState& context, DeviceState& device, const Graph& graph, const std::vector<NodeId>& nodes,
                                   const tenon_plan_options& options, const std::string& text) {
  if (nodes.size() == 1) return {refusal("the capability query failed: " + text)};
  {
    const std::lock_guard lock(context.mutex);
    if (context.failed_queries.insert(device.info.backend).second) {
      log::warning(
          "device '{}': the capability query for {} nodes failed ({}), expected an answer for each node; it is asked about each node by "
          "itself: report this to the vendor of backend '{}'",
          device.info.name, nodes.size(), text, device.info.backend);
    }
  }
  std::vector<tenon_answer> answers;
  for (const NodeId n : nodes) answers.push_back(ask(context, device, graph, {n}, options)[0]);
  return answers;
}

}  // namespace

std::vector<tenon_answer> ask(ContextState& context, DeviceState& device, const Graph& graph, const std::vector<NodeId>& nodes,
                              const tenon_plan_options& options) {
  AbiGraph lowered;
  lower(graph, nodes, needed_outside(graph, nodes), {}, count_uses(graph), lowered);
  const loader::Backend& backend = *device.loaded->backend;
  lower_to_supported_versions(backend, graph, lowered);
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

}  // namespace tenon::exec
