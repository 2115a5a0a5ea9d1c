// SPDX-License-Identifier: Apache-2.0
// elementwise_group.h - several elementwise nodes as one call, run piece by piece with intermediate results in the L1 cache.
//
// No code is generated: the backend's own kernels run on pieces (strip mining), so every SDK backend has this fusion. A device may provide
// another one (tenon/sdk/elementwise.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <tenon/sdk/elementwise.h>

#include "graph_model.h"

namespace tenon::sdk {

/// The strides of x along the rows and columns of `over`, columns being the last dimension; false if no two strides describe it.
bool collapse(const Value& x, const Value& over, std::int64_t& out_row_stride, std::int64_t& out_column_stride);

/// The program of a group and its division into pieces. Immutable after settle().
class ElementwiseGroup : public ElementwiseProgram {
 public:
  static constexpr std::uint32_t max_members = 32;
  static constexpr std::uint32_t max_places = 64;
  static constexpr std::uint32_t max_operands = 128;     ///< of all members together
  static constexpr std::int64_t piece_bytes = 8 * 1024;  ///< of one operand: several fit the L1 cache together with those of the next piece
  static constexpr std::int64_t worth_a_thread = 32 * 1024;  ///< elements times members: about 3 us

  Value space;             ///< the shape that all results have
  std::int64_t slots = 1;  ///< parts that may run concurrently, each with buffers of its own

  /// Sets the strides of the node's operands and the iteration space that suits them.
  void settle(const GraphModel& graph, const Node& node);
  /// Bytes for the buffers of all slots, and for tables.
  std::size_t scratch() const { return static_cast<std::size_t>(slots) * slot_bytes() + table_bytes(); }
  void run(const Call& call) const;

 private:
  std::int64_t widest() const;  ///< bytes of an element
  std::int64_t piece_elements() const;
  std::size_t buffer_bytes() const;
  std::size_t slot_bytes() const { return buffer_count * buffer_bytes(); }
  void run_slot(const Call& call, std::int64_t slot) const;

  KernelFunction whole_ = nullptr;  ///< ElementwiseFusion::whole

  // A group whose only operand that is no scalar has 8 bits is a function of 256 values: each call computes them, and looks results up.
  std::shared_ptr<const ElementwiseGroup> table_;  ///< the group over 256 elements; NULL: elements are computed
  std::uint32_t table_input_ = 0;                  ///< the place of that operand
  void find_table();
  std::size_t table_bytes() const;
  void run_table(const Call& call) const;
};

/// The attributes of a group's call: a pointer to the group, which must outlive them.
std::vector<std::uint64_t> group_attributes(const ElementwiseGroup& group);

}  // namespace tenon::sdk
