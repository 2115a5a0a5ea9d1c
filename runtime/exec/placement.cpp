// SPDX-License-Identifier: Apache-2.0
#include "exec/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "core/log.h"
#include "exec/answers.h"
#include "graph/collectives.h"
#include "graph/op.h"
#include "graph/passes.h"
#include "text/counted.h"
#include "yaml/glob.h"

namespace tenon::exec {
namespace {

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

/// The devices of a graph's nodes, while they are being chosen.
struct Placer {
  using DevicePointer = std::shared_ptr<DeviceState>;
  ContextState& context;
  Graph& graph;
  const tenon_plan_options& options;
  const std::vector<bool>& fixed;
  PlacementReport& report;
  std::vector<DevicePointer> device_of = std::vector<DevicePointer>(graph.nodes().size());
  std::vector<std::uint32_t> group_of = std::vector<std::uint32_t>(graph.nodes().size(), 0);  ///< numbers that differ between questions
  std::uint32_t groups = 0;
  std::set<std::pair<NodeId, DevicePointer>> refused = {};
  std::map<std::string, std::size_t> failed_ops = {};  ///< nodes without a device, by op
  std::string first_failure = {};

  /// Asks for a plan of `nodes`, all on one device. Refused nodes go where they are supported; false: there are some.
  bool ask_for_plan(const std::vector<NodeId>& nodes, const std::string& prefix) {
    const DevicePointer device = device_of[nodes[0]];
    const std::vector<tenon_answer> answers = ask_with_copies(context, *device, graph, nodes, options, report);
    std::map<std::uint32_t, std::uint32_t> number_of;
    bool all = true;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const tenon_answer& answer = answers[i];
      group_of[nodes[i]] = answer.group == 0 ? 0 : number_of.try_emplace(answer.group, ++groups).first->second;
      if (answer.supported) continue;
      all = false;
      refuse(nodes[i], prefix + (answer.text[0] != '\0' ? answer.text : "the backend gave no reason"));
    }
    return all;
  }

  /// Moves a node that its device refuses to the first other one that supports it, if the fallback policy allows that.
  void refuse(NodeId n, const std::string& why) {
    const NodeInfo& node = graph.nodes()[n];
    Placement& placement = report.nodes[n];
    refused.emplace(n, device_of[n]);
    std::vector<std::string> able;
    DevicePointer next;
    for (std::size_t other = 0; other < context.entries.size(); ++other) {
      const DevicePointer candidate = context.open(other);
      if (refused.contains({n, candidate}) || !ask(context, *candidate, graph, {n}, options)[0].supported) continue;
      able.push_back(candidate->info.name);
      if (next == nullptr) next = candidate;
    }
    if (config().fallback_for(placement.op) != Fallback::error && next != nullptr) {
      device_of[n] = next;
      placement.device = next->info.name;
      placement.reason = why;
      return;
    }
    placement.device.clear();
    placement.reason = fmt::format("{}; devices that can: {}", why, able.empty() ? "none" : fmt::format("{}", fmt::join(able, ", ")));
    if (failed_ops.empty()) {
      first_failure = fmt::format("node '{}' ({}) cannot run on {}: {}{}", node.name, placement.op, placement.requested, placement.reason,
                                  able.empty() ? "" : "; place it there, or set fallback: warn or allow");
    }
    ++failed_ops[placement.op];
  }

  /// The yes of a group holds in a plan of all of it. Where plans split one, the backend is asked for the plans that there will be. Ends,
  /// because a node never returns to a device that refused it.
  void settle_groups() {
    for (bool settled = false; !settled && failed_ops.empty();) {
      settled = true;
      const std::vector<Partition> plans = partition(graph, device_of, fixed, config().sync_debug);
      std::map<std::uint32_t, std::set<std::size_t>> plans_of;
      for (std::size_t p = 0; p < plans.size(); ++p) {
        for (const NodeId n : plans[p].nodes) {
          if (group_of[n] != 0) plans_of[group_of[n]].insert(p);
        }
      }
      std::map<std::size_t, std::size_t> split;  // plans, with the number of plans over which a group of theirs is split
      for (const auto& [group, parts] : plans_of) {
        for (const std::size_t p : parts) {
          if (parts.size() > 1) split[p] = std::max(split[p], parts.size());
        }
      }
      for (const auto& [p, parts] : split) {
        const std::string prefix = fmt::format("a group of nodes is split over {} plans, and for its plan of {} the backend says: ", parts,
                                               counted(plans[p].nodes.size(), "node"));
        settled = ask_for_plan(plans[p].nodes, prefix) && settled;
      }
    }
  }

  const Config& config() const { return context.config; }
};

}  // namespace

std::uint32_t math_of(Precision precision) {
  return precision == Precision::float32 ? TENON_MATH_STRICT : TENON_MATH_TF32;
}

tenon_plan_options plan_options(const Config& config, Precision precision) {
  tenon_plan_options options{};
  options.struct_size = sizeof options;
  options.deterministic = config.deterministic ? 1 : 0;
  options.fusion = config.fusion == Fusion::full          ? TENON_FUSION_FULL
                   : config.fusion == Fusion::elementwise ? TENON_FUSION_ELEMENTWISE
                                                          : TENON_FUSION_OFF;
  options.math = math_of(precision);
  return options;
}

void check_rules(ContextState& context, const Graph& graph) {
  if (graph.nodes().size() < 2) return;
  const std::lock_guard lock(context.mutex);
  for (const PlacementRule& rule : context.config.placement) {
    if (!context.checked_rules.insert(rule.match).second) continue;
    const auto matches = [&](const NodeInfo& node) { return yaml::glob_matches(rule.match, node.name); };
    if (std::any_of(graph.nodes().begin(), graph.nodes().end(), matches)) continue;
    log::warning(
        "{}: key 'placement': '{}' matches no node of the program, which has {}, and has no effect; `tenon explain` lists their names",
        context.config.origin_of("placement"), rule.match, counted(graph.nodes().size(), "node"));
  }
}

std::vector<std::shared_ptr<DeviceState>> place(ContextState& context, Graph& graph, const std::string& fallback,
                                                const tenon_plan_options& options, const std::vector<bool>& fixed,
                                                PlacementReport& report) {
  const Config& config = context.config;
  const std::size_t count = graph.nodes().size();
  std::vector<std::size_t> requested(count);  // positions of devices
  std::vector<std::string> shown(count);
  report.nodes.resize(count);
  for (NodeId n = 0; n < count; ++n) {
    const NodeInfo& node = graph.nodes()[n];
    std::string typed = node.device;
    for (auto rule = config.placement.begin(); typed.empty() && rule != config.placement.end(); ++rule) {
      if (yaml::glob_matches(rule->match, node.name)) typed = rule->device;
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

  Placer placer{context, graph, options, fixed, report};
  std::map<std::size_t, std::vector<NodeId>> by_device;
  for (NodeId n = 0; n < count; ++n) by_device[requested[n]].push_back(n);
  for (const auto& [position, nodes] : by_device) {
    std::vector<NodeId> asked = nodes;
    const auto device = context.open(position);
    for (const NodeId n : nodes) {
      const NodeInfo& node = graph.nodes()[n];
      Placement& placement = report.nodes[n];
      placement.node = node.name;
      placement.op = op_name(node.op);
      placement.dtype = graph::kernel_dtype(graph, node);
      for (const ValueId v : node.outputs) {
        if (v != no_id)
          placement.output_size_bytes += static_cast<std::uint64_t>(graph.info(v).shape.count() * size_of(graph.info(v).dtype));
      }
      for (const ValueId v : node.inputs) {
        const NodeId producer = v == no_id ? no_id : graph.info(v).producer;
        if (producer != no_id && !std::ranges::count(placement.inputs, graph.nodes()[producer].name))
          placement.inputs.push_back(graph.nodes()[producer].name);
      }
      placement.requested = shown[n];
      placement.device = device->info.name;
      placer.device_of[n] = device;
    }
    std::erase_if(asked, [&](NodeId n) { return graph::is_collective(graph.nodes()[n].op); });
    if (!asked.empty()) placer.ask_for_plan(asked, "");
  }
  placer.settle_groups();
  if (const std::size_t failed = sum_of(placer.failed_ops); failed > 0) {
    const std::string more =
        failed == 1 ? "" : fmt::format("; {} nodes cannot: {}; `tenon explain` shows each", failed, listed(placer.failed_ops));
    throw PlacementError(placer.first_failure + more, report);
  }
  std::set<NodeId> moved;
  for (const auto& [n, device] : placer.refused) moved.insert(n);
  std::map<std::string, std::size_t> moved_ops;
  for (const NodeId n : moved) {
    if (config.fallback_for(report.nodes[n].op) == Fallback::warn) ++moved_ops[report.nodes[n].op];
  }
  if (const std::size_t moved_count = sum_of(moved_ops); moved_count > 0) {
    log::warning("{} of {} cannot run on the requested device: {}; `tenon explain` shows each", moved_count, counted(count, "node"),
                 listed(moved_ops));
  }
  return placer.device_of;
}

std::shared_ptr<DeviceState> able_device(ContextState& context, Graph graph, const std::shared_ptr<DeviceState>& device) {
  std::vector<NodeId> nodes(graph.nodes().size());
  std::iota(nodes.begin(), nodes.end(), NodeId{0});
  const tenon_plan_options options = plan_options(context.config, Precision::float32);
  PlacementReport ignored;
  const auto is_able = [&](DeviceState& candidate) {
    return std::ranges::all_of(ask_with_copies(context, candidate, graph, nodes, options, ignored),
                               [](const tenon_answer& answer) { return answer.supported != 0; });
  };
  if (is_able(*device)) return device;
  for (std::size_t other = 0; other < context.entries.size(); ++other) {
    std::shared_ptr<DeviceState> candidate = context.open(other);
    if (candidate != device && is_able(*candidate)) return candidate;
  }
  return device;
}

std::vector<bool> fixed_nodes(const Graph& graph, const std::vector<bool>& fixed_values) {
  const std::vector<NodeInfo>& nodes = graph.nodes();
  std::vector<bool> result(nodes.size());
  if (graph.updates().empty()) return result;
  struct Source {
    bool changes = false, input = false, parameter = false;  ///< it comes from a parameter that changes, an input, a fixed parameter
  };
  std::vector<Source> of(nodes.size());
  for (NodeId n = 0; n < nodes.size(); ++n) {
    for (const ValueId v : nodes[n].inputs) {
      if (v == no_id) continue;
      const ValueInfo& info = graph.info(v);
      const bool is_parameter = info.kind == ValueKind::parameter;
      const Source from = info.kind == ValueKind::computed
                              ? of[info.producer]
                              : Source{is_parameter && !fixed_values[v], info.kind == ValueKind::input, is_parameter && fixed_values[v]};
      of[n] = {of[n].changes || from.changes, of[n].input || from.input, of[n].parameter || from.parameter};
    }
  }
  for (NodeId n = static_cast<NodeId>(nodes.size()); n-- > 0;) {
    result[n] = !of[n].changes && (result[n] || (of[n].input && of[n].parameter));
    if (!result[n]) continue;
    for (const ValueId v : nodes[n].inputs) {
      if (v != no_id && graph.info(v).kind == ValueKind::computed) result[graph.info(v).producer] = true;
    }
  }
  return result;
}

namespace {

/// When a node of a graph with collectives runs: piece p is what runs between the beginnings of collectives p and p + 1, counted from 1. A
/// node runs in the last piece that is early enough for the collectives that need it, after the collectives that it needs itself: so each
/// collective begins as soon as its operands are there, and is waited for as late as possible.
struct Stage {
  std::uint32_t piece = 0;
  std::uint32_t after = 0;  ///< the last collective that it needs; 0: none
  bool collective = false;  ///< last in its piece
  auto operator<=>(const Stage&) const = default;
};

std::vector<Stage> stages_of(const Graph& graph) {
  const std::vector<NodeInfo>& nodes = graph.nodes();
  std::vector<Stage> stages(nodes.size());
  std::uint32_t count = 0;
  std::vector<std::uint32_t> number(nodes.size(), 0);
  for (NodeId n = 0; n < nodes.size(); ++n) {
    stages[n].collective = graph::is_collective(nodes[n].op);
    if (stages[n].collective) number[n] = ++count;
    for (const ValueId v : nodes[n].inputs) {
      if (v == no_id || graph.info(v).kind != ValueKind::computed) continue;
      const NodeId producer = graph.info(v).producer;
      stages[n].after = std::max({stages[n].after, stages[producer].after, number[producer]});
    }
  }
  for (Stage& stage : stages) stage.piece = count;
  for (NodeId n = static_cast<NodeId>(nodes.size()); n-- > 0;) {
    if (number[n] != 0) stages[n].piece = std::min(stages[n].piece, number[n] - 1);
    for (const ValueId v : nodes[n].inputs) {
      if (v == no_id || graph.info(v).kind != ValueKind::computed) continue;
      Stage& producer = stages[graph.info(v).producer];
      producer.piece = std::min(producer.piece, stages[n].piece);
    }
  }
  return stages;
}

}  // namespace

std::vector<Partition> partition(const Graph& graph, const std::vector<std::shared_ptr<DeviceState>>& device_of,
                                 const std::vector<bool>& fixed, bool single_nodes) {
  const auto is_apart = [&](NodeId n) { return fixed[n] && !device_of[n]->records(); };
  bool any_apart = false;
  for (NodeId n = 0; n < graph.nodes().size(); ++n) any_apart = any_apart || is_apart(n);
  // A node's level counts the changes of device or kind on the path to it. Nodes of one device, kind and level never wait for each other
  // through others, so each such set is one plan, and the levels are a valid execution order.
  const std::vector<Stage> stages = stages_of(graph);
  std::vector<std::uint32_t> level(graph.nodes().size(), 0);
  using Key = std::tuple<Stage, std::uint32_t, const DeviceState*, bool>;
  std::map<Key, Partition> sets;
  std::vector<Key> keys;
  std::vector<Partition> result;
  for (NodeId n = 0; n < graph.nodes().size(); ++n) {
    const NodeInfo& node = graph.nodes()[n];
    if (any_apart && !is_apart(n)) level[n] = 1;  // with those that read results of the nodes apart
    for (const ValueId v : node.inputs) {
      if (v == no_id || graph.info(v).kind != ValueKind::computed) continue;
      const NodeId producer = graph.info(v).producer;
      const bool same = device_of[producer] == device_of[n] && is_apart(producer) == is_apart(n);
      level[n] = std::max(level[n], level[producer] + (same ? 0 : 1));
    }
    const Key key(stages[n], level[n], device_of[n].get(), is_apart(n));
    Partition& set = sets[key];
    if (set.nodes.empty()) keys.push_back(key);
    set.device = device_of[n];
    set.fixed = is_apart(n);
    set.collective = stages[n].collective;
    set.after = stages[n].after;
    set.nodes.push_back(n);
  }
  std::stable_sort(keys.begin(), keys.end(), [](const Key& a, const Key& b) {
    return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
  });
  for (const Key& key : keys) {
    Partition& set = sets[key];
    if (!single_nodes && (set.device->info.flags & TENON_DEVICE_SINGLE_NODE_PLANS) == 0) {
      result.push_back(std::move(set));
      continue;
    }
    for (const NodeId n : set.nodes) result.push_back({set.device, {n}, set.fixed, set.collective, set.after});
  }
  return result;
}

}  // namespace tenon::exec
