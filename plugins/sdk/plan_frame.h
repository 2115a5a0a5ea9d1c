// SPDX-License-Identifier: Apache-2.0
// plan_frame.h - what an execution of a plan changes: operands with addresses, and the calls that point to them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "address.h"
#include "plan.h"

namespace tenon::sdk {

/// One operand's address, filled in at each execution.
struct Patch {
  std::uint32_t operand;
  std::uint32_t binding;
};
struct WorkspacePatch {
  void** address;  ///< of an operand or a call's scratch
  std::uint64_t offset;
};
/// The kernel of a call, or of several that run together or as a chain, kept separate from the calls so that the loop reads little else.
struct Launch {
  KernelFunction function;
  std::uint64_t node_id;
  void (*together)(const Call* calls, std::uint32_t count) = nullptr;
  std::uint32_t count = 1;  ///< calls from this one on that run together

  void operator()(const Call* calls) const {
    if (count > 1) {
      together(calls, count);
    } else {
      function(*calls);
    }
  }
};

/// The mutable state of one execution: operands with addresses, and the calls that point to them.
struct Plan::Frame {
  std::vector<Operand> operands;
  std::vector<Call> calls;
  std::map<std::uint32_t, Call> conversions;  ///< of GraphModel::conversions
  std::vector<Launch> launches;               ///< one per call; those of calls that run together with an earlier one are skipped
  std::vector<Patch> patches;
  std::vector<WorkspacePatch> workspace_patches;
  std::vector<const void*> packed;
  std::uint64_t workspace = 0;  ///< the address that workspace_patches were last applied for
  Host host;                    ///< with the run of the execution
  std::uint64_t execution_id = 0;
  std::unique_ptr<Frame> next;  ///< in the list of spare frames
};

/// The op of a node and what is fused into it, as "Conv+bias+relu".
std::string algorithm_of(const Node& node);
/// The error of a slot that was cancelled before this node.
std::string cancelled_before(const char* slot, const Node& node);

}  // namespace tenon::sdk
