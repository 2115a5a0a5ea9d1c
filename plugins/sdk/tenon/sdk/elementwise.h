// tenon/sdk/elementwise.h - several elementwise nodes as one kernel: what a device that fuses in its own way is handed.
//
// Without it the SDK runs such a group piece by piece with the backend's own kernels, which is right for processors with caches and wrong
// for a GPU, where each of them would be a launch.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <tenon/sdk/kernel.h>

namespace tenon::sdk {

/// Where a member finds an operand: element (row, column) of the iteration space at row * row_stride + column * column_stride.
struct ElementwisePlace {
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 0;
  tenon_dtype dtype = TENON_DTYPE_NONE;
  std::int32_t buffer = -1;  ///< a result that stays inside the group, in room used again when its readers are through; -1: an operand
};

/// One node of the group. Places are the group's inputs, then its outputs, then its buffers.
struct ElementwiseMember {
  tenon_op op = TENON_OP_NONE;
  KernelFunction function = nullptr;      ///< the backend's own kernel for it
  std::vector<std::uint64_t> attributes;  ///< the struct of the op
  std::vector<std::uint32_t> inputs;      ///< places
  std::uint32_t output = 0;               ///< place
};

/// What one call does: the members in their order, at each element of the space.
struct ElementwiseProgram {
  std::int64_t rows = 1, columns = 1;  ///< the space; one row unless an operand needs more
  std::uint32_t input_count = 0, output_count = 0, buffer_count = 0;
  std::vector<ElementwisePlace> places;
  std::vector<ElementwiseMember> members;
  std::shared_ptr<const void> prepared;  ///< what ElementwiseFusion::prepare made of it
};

/// The program behind a group's call, whose inputs and outputs are the places of the same numbers.
const ElementwiseProgram& program_of(const Call& call);

/// How a device runs groups. Handed out by Device::elementwise_fusion; lives as long as the device.
struct ElementwiseFusion {
  /// Of op TENON_OP_NONE. Its kernel runs program_of(call) and stands in functions[TENON_DTYPE_NONE]; traits: strided and in_place, scratch
  /// if it wants some.
  KernelRow row;
  /// The classes of groups that a node may be in, as a set of bits; 0: none. Members of a group share one. `in`: of the type operand.
  std::uint32_t (*classes)(tenon_op op, tenon_dtype in, tenon_dtype out) = nullptr;
  std::uint32_t max_members = 0;
  std::uint32_t max_inputs = 0;
  /// Called once, when the plan is made; what it returns is ElementwiseProgram::prepared. NULL: there is nothing to prepare.
  std::shared_ptr<const void> (*prepare)(const ElementwiseProgram& program) = nullptr;
};

}  // namespace tenon::sdk
