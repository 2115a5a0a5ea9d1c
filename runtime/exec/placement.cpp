// SPDX-License-Identifier: Apache-2.0
#include "exec/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <numeric>

#include "core/log.h"
#include "exec/lower.h"
#include "exec/op_versions.h"
#include "graph/op.h"
#include "graph/passes.h"

namespace tenon::exec {
namespace {

/// A backend's answers for a set of nodes.
std::vector<tenon_answer> ask_backend(DeviceState& device, const Graph& graph, const std::vector<NodeId>& nodes,
                                      const tenon_plan_options& options) {
  AbiGraph lowered;
  lower(graph, nodes, std::vector<bool>(graph.values().size(), false), {}, count_uses(graph), lowered);
  const loader::Backend& backend = *device.loaded->backend;
  lower_to_supported_versions(backend, graph, lowered);
  std::vector<tenon_answer> answers(nodes.size());
  ErrorText error;
  const auto supports = [&] { return device.table.supports(device.handle, &lowered.graph, &options, answers.data(), error); };
  check(guarded_call("supports", error, supports), error, fmt::format("device '{}': the capability query failed", device.info.name));
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    answers[i].text[sizeof answers[i].text - 1] = '\0';  // terminates the backend's text
    const auto refuse = [&](const std::string& reason) {
      answers[i] = {};
      answers[i].reason = TENON_REASON_OP;
      std::snprintf(answers[i].text, sizeof answers[i].text, "%s", reason.c_str());
    };
    if (const auto* off = backend.find_switched_off(lowered.nodes[i].op, lowered.nodes[i].version)) {
      refuse(off->reason);
    } else if (!answers[i].supported) {
      const std::string reason = why_not_older(backend, graph.nodes()[nodes[i]]);
      if (!reason.empty()) refuse(reason);
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

/// The answers of one device for a set of nodes. Its backend sees no dtype that the device does not compute with.
std::vector<tenon_answer> ask(DeviceState& device, const Graph& graph, const std::vector<NodeId>& nodes,
                              const tenon_plan_options& options) {
  std::vector<tenon_answer> answers(nodes.size());
  std::vector<NodeId> asked;
  std::vector<std::size_t> places;  // of the nodes asked about
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::string reason = why_not_with(device.info, graph, graph.nodes()[nodes[i]]);
    if (reason.empty()) {
      asked.push_back(nodes[i]);
      places.push_back(i);
      continue;
    }
    answers[i].reason = TENON_REASON_DTYPE;
    std::snprintf(answers[i].text, sizeof answers[i].text, "%s", reason.c_str());
  }
  if (asked.empty()) return answers;
  const std::vector<tenon_answer> given = ask_backend(device, graph, asked, options);
  for (std::size_t i = 0; i < places.size(); ++i) answers[places[i]] = given[i];
  return answers;
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

/// The answers of a device, with dense operands where it refuses views.
std::vector<tenon_answer> ask_with_copies(DeviceState& device, Graph& graph, const std::vector<NodeId>& nodes,
                                          const tenon_plan_options& options, PlacementReport& report) {
  if (device.info.operand_alignment_bytes > 1) {  // a view may start anywhere
    const std::string reason = fmt::format("its operands start at multiples of {} bytes", device.info.operand_alignment_bytes);
    for (const NodeId n : nodes) make_dense(graph, n, device.info, reason, report);
  }
  std::vector<tenon_answer> answers = ask(device, graph, nodes, options);
  bool changed = false;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!answers[i].supported) changed |= make_dense(graph, nodes[i], device.info, answers[i].text, report);
  }
  return changed ? ask(device, graph, nodes, options) : answers;
}

bool is_present(const DeviceName& name, std::span<const AvailableDevice> devices) {
  try {
    find_device(name, devices);
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::size_t sum_of(const std::map<std::string, std::size_t>& counts) {
  std::size_t sum = 0;
  for (const auto& entry : counts) sum += entry.second;
  return sum;
}

/// "MatMul x2, Relu x1".
std::string listed(const std::map<std::string, std::size_t>& counts) {
  std::string text;
  for (const auto& [name, count] : counts) text += fmt::format("{}{} x{}", text.empty() ? "" : ", ", name, count);
  return text;
}

}  // namespace

bool glob_matches(const std::string& glob, const std::string& text) {
  std::size_t g = 0, t = 0, star = std::string::npos, mark = 0;
  while (t < text.size()) {
    if (g < glob.size() && (glob[g] == '?' || glob[g] == text[t])) {
      ++g, ++t;
    } else if (g < glob.size() && glob[g] == '*') {
      star = g++;
      mark = t;
    } else if (star != std::string::npos) {
      g = star + 1;
      t = ++mark;
    } else {
      return false;
    }
  }
  while (g < glob.size() && glob[g] == '*') ++g;
  return g == glob.size();
}

tenon_plan_options plan_options(const Config& config, Precision precision) {
  tenon_plan_options options{};
  options.struct_size = sizeof options;
  options.deterministic = config.deterministic ? 1 : 0;
  options.fusion = config.fusion == Fusion::full          ? TENON_FUSION_FULL
                   : config.fusion == Fusion::elementwise ? TENON_FUSION_ELEMENTWISE
                                                          : TENON_FUSION_OFF;
  options.math = precision == Precision::float32 ? TENON_MATH_STRICT : TENON_MATH_TF32;
  return options;
}

void check_rules(ContextState& context, const Graph& graph) {
  if (graph.nodes().size() < 2) return;
  const std::lock_guard lock(context.mutex);
  for (const PlacementRule& rule : context.config.placement) {
    if (!context.checked_rules.insert(rule.match).second) continue;
    const auto matches = [&](const NodeInfo& node) { return glob_matches(rule.match, node.name); };
    if (std::any_of(graph.nodes().begin(), graph.nodes().end(), matches)) continue;
    log::warning(
        "{}: key 'placement': '{}' matches none of the {} nodes of the program and has no effect; `tenon explain` lists their names",
        context.config.origin_of("placement"), rule.match, graph.nodes().size());
  }
}

std::vector<std::shared_ptr<DeviceState>> place(ContextState& context, Graph& graph, const std::string& fallback,
                                                const tenon_plan_options& options, PlacementReport& report) {
  const Config& config = context.config;
  const std::size_t count = graph.nodes().size();
  std::vector<std::size_t> requested(count);  // positions of devices
  std::vector<std::string> shown(count);
  report.nodes.resize(count);
  for (NodeId n = 0; n < count; ++n) {
    const NodeInfo& node = graph.nodes()[n];
    std::string typed = node.device;
    for (auto rule = config.placement.begin(); typed.empty() && rule != config.placement.end(); ++rule) {
      if (glob_matches(rule->match, node.name)) typed = rule->device;
    }
    if (typed.empty()) typed = fallback;
    const DeviceName name = parse_device_name(typed);
    try {
      requested[n] = context.find(name);
    } catch (const Error& e) {
      throw Error(e.status(), fmt::format("node '{}': {}", node.name, e.what()));
    }
    shown[n] = shown_name(name, context.available[requested[n]]);
    if (!is_present(name, context.available)) {
      shown[n] = typed;
      report.nodes[n].reason = fmt::format("soft_placement: there is no {}", typed);
    }
  }

  std::vector<std::shared_ptr<DeviceState>> result(count);
  std::map<std::size_t, std::vector<NodeId>> by_device;
  for (NodeId n = 0; n < count; ++n) by_device[requested[n]].push_back(n);
  std::map<std::string, std::size_t> moved_ops, failed_ops;
  std::string first_failure;
  for (const auto& [position, nodes] : by_device) {
    const auto device = context.open(position);
    const std::vector<tenon_answer> answers = ask_with_copies(*device, graph, nodes, options, report);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const NodeId n = nodes[i];
      const NodeInfo& node = graph.nodes()[n];
      Placement& placement = report.nodes[n];
      placement.node = node.name;
      placement.op = op_name(node.op);
      placement.dtype = graph::kernel_dtype(graph, node);
      for (const ValueId v : node.outputs) {
        if (v != no_id)
          placement.output_size_bytes += static_cast<std::uint64_t>(graph.info(v).shape.count() * size_of(graph.info(v).dtype));
      }
      placement.requested = shown[n];
      result[n] = device;
      if (!answers[i].supported) {
        const std::string why = answers[i].text[0] != '\0' ? answers[i].text : "the backend gave no reason";
        std::vector<std::string> able;
        std::shared_ptr<DeviceState> next;
        for (std::size_t other = 0; other < context.entries.size(); ++other) {
          if (other == position) continue;
          const auto candidate = context.open(other);
          if (!ask(*candidate, graph, {n}, options)[0].supported) continue;
          able.push_back(candidate->info.name);
          if (next == nullptr) next = candidate;
        }
        const Fallback policy = config.fallback_for(placement.op);
        if (policy == Fallback::error || next == nullptr) {
          placement.reason = fmt::format("{}; devices that can: {}", why, able.empty() ? "none" : fmt::format("{}", fmt::join(able, ", ")));
          if (failed_ops.empty()) {
            first_failure = fmt::format("node '{}' ({}) cannot run on {}: {}{}", node.name, placement.op, shown[n], placement.reason,
                                        able.empty() ? "" : "; place it there, or set fallback: warn or allow");
          }
          ++failed_ops[placement.op];
          continue;
        }
        result[n] = next;
        placement.reason = why;
        if (policy == Fallback::warn) ++moved_ops[placement.op];
      }
      placement.device = result[n]->info.name;
    }
  }
  if (const std::size_t failed = sum_of(failed_ops); failed > 0) {
    const std::string more =
        failed == 1 ? "" : fmt::format("; {} nodes cannot: {}; `tenon explain` shows each", failed, listed(failed_ops));
    throw PlacementError(first_failure + more, report);
  }
  if (!moved_ops.empty()) {
    log::warning("{} of {} nodes do not run on the requested device: {}; `tenon explain` shows each", sum_of(moved_ops), count,
                 listed(moved_ops));
  }
  return result;
}

std::shared_ptr<DeviceState> able_device(ContextState& context, Graph graph, const std::shared_ptr<DeviceState>& device) {
  std::vector<NodeId> nodes(graph.nodes().size());
  std::iota(nodes.begin(), nodes.end(), NodeId{0});
  const tenon_plan_options options = plan_options(context.config, Precision::float32);
  PlacementReport ignored;
  const auto is_able = [&](DeviceState& candidate) {
    return std::ranges::all_of(ask_with_copies(candidate, graph, nodes, options, ignored),
                               [](const tenon_answer& answer) { return answer.supported != 0; });
  };
  if (is_able(*device)) return device;
  for (std::size_t other = 0; other < context.entries.size(); ++other) {
    std::shared_ptr<DeviceState> candidate = context.open(other);
    if (candidate != device && is_able(*candidate)) return candidate;
  }
  return device;
}

std::vector<Partition> partition(const Graph& graph, const std::vector<std::shared_ptr<DeviceState>>& device_of, bool single_nodes) {
  // A node's level counts the device changes on the path to it. Nodes of one device and level never wait for each other through another
  // device, so each such set is one plan, and the levels are a valid execution order.
  std::vector<std::uint32_t> level(graph.nodes().size(), 0);
  std::map<std::pair<std::uint32_t, const DeviceState*>, Partition> sets;
  std::vector<std::pair<std::uint32_t, const DeviceState*>> keys;
  std::vector<Partition> result;
  for (NodeId n = 0; n < graph.nodes().size(); ++n) {
    const NodeInfo& node = graph.nodes()[n];
    for (const ValueId v : node.inputs) {
      if (v == no_id || graph.info(v).kind != ValueKind::computed) continue;
      const NodeId producer = graph.info(v).producer;
      level[n] = std::max(level[n], level[producer] + (device_of[producer] != device_of[n] ? 1 : 0));
    }
    const auto key = std::make_pair(level[n], static_cast<const DeviceState*>(device_of[n].get()));
    Partition& set = sets[key];
    if (set.nodes.empty()) keys.push_back(key);
    set.device = device_of[n];
    set.nodes.push_back(n);
  }
  std::stable_sort(keys.begin(), keys.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& key : keys) {
    Partition& set = sets[key];
    if (!single_nodes && (set.device->info.flags & TENON_DEVICE_SINGLE_NODE_PLANS) == 0) {
      result.push_back(std::move(set));
      continue;
    }
    for (const NodeId n : set.nodes) result.push_back({set.device, {n}});
  }
  return result;
}

}  // namespace tenon::exec
