// SPDX-License-Identifier: Apache-2.0
// exec/program_layout.h - the parts of a program, who reads what, and which parameters a run may overwrite.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include <tenon/graph.h>

#include "exec/placement.h"

namespace tenon::exec {

/// What is known before memory is assigned. Refers to the graph.
struct ProgramLayout {
  const Graph& graph;
  std::vector<Partition> partitions;
  std::vector<std::uint32_t> part_of;               ///< per node
  std::vector<std::vector<std::uint32_t>> readers;  ///< per value: the parts that read it, ascending, unique
  std::vector<bool> last;                           ///< per node, if updates come last: the last ones of their part

  ProgramLayout(const Graph& graph, std::vector<Partition> partitions, bool updates_last);

  bool computed(ValueId v) const { return graph.info(v).kind == ValueKind::computed; }
  std::uint32_t producer(ValueId v) const { return part_of[graph.info(v).producer]; }
  /// The number of the last part; 0 without any.
  std::uint32_t last_part() const { return static_cast<std::uint32_t>(partitions.empty() ? 0 : partitions.size() - 1); }

  /// Updates whose new value may overwrite the parameter: one per value, computed on the parameter's device after all other reads. If
  /// updates come last, by a node that computes nothing else. `sent`: what other ranks read until the end of the run.
  std::vector<bool> donatable(const std::map<ValueId, std::shared_ptr<DeviceState>>& home, const std::set<ValueId>& sent) const;
};

}  // namespace tenon::exec
