// elementwise_group.h - several elementwise nodes as one call: run piece by piece, what passes between them in the first cache.
//
// No code is generated: the backend's own kernels run on pieces (strip mining), so every backend on the SDK has this fusion.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "graph_model.h"

namespace tenon::sdk {

/// Where a member finds an operand: element (row, column) of the iteration space at row * row_stride + column * column_stride.
struct GroupPlace {
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 0;
  tenon_dtype dtype = TENON_DTYPE_NONE;
  std::int32_t buffer = -1;  ///< of a piece, dense; -1: an input or output of the group
};

/// One kernel of the group. Places are the group's inputs, then its outputs, then its buffers.
struct GroupMember {
  tenon_op op = TENON_OP_NONE;
  KernelFunction function = nullptr;
  std::vector<std::uint64_t> attributes;
  std::vector<std::uint32_t> inputs;  ///< places
  std::uint32_t output = 0;           ///< place
};

/// How an operand lies over the rows and columns of `over`, columns being the last dimension; false if no two strides say it.
bool collapse(const Value& x, const Value& over, std::int64_t& out_row_stride, std::int64_t& out_column_stride);

/// What one call does. Immutable once settled.
class ElementwiseGroup {
 public:
  static constexpr std::uint32_t max_members = 32;
  static constexpr std::uint32_t max_places = 64;
  static constexpr std::uint32_t max_operands = 128;         ///< of all members together
  static constexpr std::int64_t piece_bytes = 8 * 1024;      ///< of one operand: some fit a first cache beside those of the next piece
  static constexpr std::int64_t worth_a_thread = 64 * 1024;  ///< elements times members

  Value space;                         ///< the shape that all results have
  std::int64_t rows = 1, columns = 1;  ///< the same as it is walked: one row unless an operand needs more
  std::uint32_t input_count = 0, output_count = 0, buffer_count = 0;
  std::vector<GroupPlace> places;
  std::vector<GroupMember> members;  ///< in the order of execution
  std::int64_t slots = 1;            ///< parts that may be worked on at the same time, each with buffers of its own

  /// Takes the strides of a node's operands, and the walk that suits them.
  void settle(const GraphModel& graph, const Node& node);
  /// Bytes for the buffers of all slots.
  std::size_t scratch() const { return static_cast<std::size_t>(slots) * slot_bytes(); }
  void run(const Call& call) const;

 private:
  std::int64_t widest() const;  ///< bytes of an element
  std::int64_t piece_elements() const;
  std::size_t buffer_bytes() const;
  std::size_t slot_bytes() const { return buffer_count * buffer_bytes(); }
  void run_slot(const Call& call, std::int64_t slot) const;
};

/// The row of a node with a group: its kernel finds the group behind the call's attributes.
extern const KernelRow group_row;
/// Those attributes. The group has to outlive them.
std::vector<std::uint64_t> group_attributes(const ElementwiseGroup& group);

}  // namespace tenon::sdk
