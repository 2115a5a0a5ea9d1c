// SPDX-License-Identifier: Apache-2.0
// Profiling of a program: its kernels, their durations, and their trace events.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "exec/cost.h"
#include "exec/program_state.h"

namespace tenon {
namespace {

/// More kernels than any plan has.
constexpr std::uint32_t max_records = 1u << 24;

}  // namespace

/// The kernels of that execution of the part, or of one to come for id 0; none if the backend does not know them.
std::vector<tenon_profile_record> Program::State::read_profile(const Part& part, std::uint64_t execution) {
  const tenon_profile_table* table = part.device->table.profile;
  if (part.plan == nullptr || table == nullptr || table->read == nullptr) return {};
  const auto read = [&](std::vector<tenon_profile_record>& records) {
    std::uint32_t count = 0;
    exec::check(table->read(part.plan, execution, records.data(), sizeof(tenon_profile_record), static_cast<std::uint32_t>(records.size()),
                            &count, error),
                error, fmt::format("device '{}': profile", part.device->info.name));
    if (count > max_records) {
      throw Error(Status::internal,
                  fmt::format("device '{}': profile: expected at most {} records, got {}", part.device->info.name, max_records, count));
    }
    return count;
  };
  std::vector<tenon_profile_record> records;
  records.resize(read(records));
  records.resize(std::min<std::size_t>(records.size(), read(records)));
  for (tenon_profile_record& record : records) record.algorithm[sizeof record.algorithm - 1] = '\0';
  return records;
}

std::vector<Program::KernelTime> Program::State::kernels_of(const Part& part, std::span<const tenon_profile_record> records) const {
  const std::vector<std::vector<NodeId>> nodes = exec::kernel_nodes(graph, part.nodes, records);
  const std::vector<exec::Cost> costs = exec::kernel_costs(graph, part.nodes, records, nodes);
  std::vector<KernelTime> kernels(records.size());
  for (std::size_t r = 0; r < records.size(); ++r) {
    KernelTime& kernel = kernels[r];
    kernel.device = part.device->info.name;
    kernel.algorithm = records[r].algorithm;
    kernel.duration_ns = records[r].duration_ns;
    kernel.begin_ns = records[r].begin_ns;
    if (records[r].node < part.nodes.size()) {
      const NodeInfo& node = graph.nodes()[part.nodes[records[r].node]];
      kernel.node = node.name;
      kernel.op = op_name(node.op);
    }
    for (const NodeId n : nodes[r]) kernel.nodes.push_back(graph.nodes()[n].name);
    kernel.flops = costs[r].flops;
    kernel.size_bytes = costs[r].size_bytes;
  }
  return kernels;
}

/// Adds the kernels to the report: "QLinearConv (inserted: Transpose before)". A backend that does not know them before the first run is
/// asked again next time.
void Program::State::name_kernels() {
  if (kernels_named) return;
  kernels_named = true;
  for (const Part& part : parts) {
    const std::vector<tenon_profile_record> records = read_profile(part, 0);
    if (part.plan != nullptr && records.empty() && part.device->table.profile != nullptr) kernels_named = false;
    const std::vector<std::vector<NodeId>> computed = exec::kernel_nodes(graph, part.nodes, records);
    struct Names {
      std::string own, inserted;
    };
    std::map<NodeId, Names> names_of;
    for (std::size_t r = 0; r < records.size(); ++r) {
      if (records[r].node >= part.nodes.size()) continue;
      Names& names = names_of[part.nodes[records[r].node]];
      if (!computed[r].empty()) {
        names.own = records[r].algorithm;
      } else {  // a conversion of an operand, or of a result
        names.inserted +=
            fmt::format("{}{} {}", names.inserted.empty() ? "" : ", ", records[r].algorithm, names.own.empty() ? "before" : "after");
      }
    }
    for (const auto& [n, names] : names_of) {
      report.nodes[n].algorithm = names.own;
      if (!names.inserted.empty())
        report.nodes[n].algorithm += fmt::format("{}(inserted: {})", names.own.empty() ? "" : " ", names.inserted);
    }
  }
}

/// Records the plan that has just run and its kernels as events. A duration of 0: up to the end of its last kernel.
std::uint64_t Program::State::record(Part& part, std::uint64_t begin_ns, std::uint64_t duration_ns) {
  std::vector<tenon_profile_record> records = read_profile(part, execution_id);
  if (duration_ns == 0) {
    for (const tenon_profile_record& record : records) duration_ns = std::max(duration_ns, record.begin_ns + record.duration_ns);
  }
  if (records.empty() && part.nodes.size() == 1) {  // a backend without times per kernel: the plan's time is that of its only node
    tenon_profile_record whole{};
    whole.fused_count = 1;
    whole.duration_ns = duration_ns;
    records.push_back(whole);
  }
  if (part.trace_generation != trace->generation() || part.traced_kernels.size() != records.size()) {
    part.trace_generation = trace->generation();
    part.traced_kernels.clear();
    const std::vector<KernelTime> kernels = kernels_of(part, records);
    const std::vector<std::vector<NodeId>> nodes = exec::kernel_nodes(graph, part.nodes, records);
    for (std::size_t k = 0; k < kernels.size(); ++k) {
      const KernelTime& kernel = kernels[k];
      const std::uint64_t id = records[k].node < part.nodes.size() ? graph.nodes()[part.nodes[records[k].node]].id : 0;
      part.traced_kernels.push_back(
          trace->kernel({kernel.node, kernel.op, kernel.device, kernel.algorithm, id, kernel.flops, kernel.size_bytes,
                         static_cast<std::uint32_t>(kernel.nodes.size()), exec::arithmetic_dtype(graph, nodes[k])}));
    }
  }
  exec::TraceEvent event;
  event.kind = exec::TraceEvent::Kind::plan;
  event.name = trace->label("plan on " + part.device->info.name);
  event.device = trace->label(part.device->info.name);
  event.begin_ns = begin_ns;
  event.duration_ns = duration_ns;
  event.correlation = trace->next_correlation();
  event.value = records.size();
  trace->add(event);
  event.kind = exec::TraceEvent::Kind::kernel;
  for (std::size_t k = 0; k < records.size(); ++k) {
    event.name = part.traced_kernels[k];
    event.begin_ns = begin_ns + records[k].begin_ns;
    event.duration_ns = records[k].duration_ns;
    trace->add(event);
  }
  return begin_ns + duration_ns;
}

void Program::enable_profile(bool enabled) {
  state_of(state_).profile_requested = enabled;
}

std::vector<Program::KernelTime> Program::profile() const {
  std::vector<KernelTime> times;
  State& s = state_of(state_);
  if (s.execution_id == 0) return times;
  for (const State::Part& part : s.parts) {
    for (KernelTime& time : s.kernels_of(part, s.read_profile(part, s.execution_id))) times.push_back(std::move(time));
  }
  return times;
}

}  // namespace tenon
