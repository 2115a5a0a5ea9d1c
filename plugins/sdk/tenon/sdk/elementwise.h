// SPDX-License-Identifier: Apache-2.0
// tenon/sdk/elementwise.h - several elementwise nodes as one kernel, for devices with a fusion of
// their own.
//
// Without it the SDK runs such a group piece by piece with the backend's own kernels, which suits
// CPUs with caches but not GPUs, where each kernel would be a launch.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <tenon/sdk/kernel.h>

namespace tenon::sdk {

/// The address of an operand of a member: element (row, column) of the iteration space at row *
/// row_stride + column * column_stride.
struct ElementwisePlace {
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 0;
  tenon_dtype dtype = TENON_DTYPE_NONE;
  std::int32_t buffer = -1;  ///< the buffer of a result that stays inside the group, reused after its last reader; -1: an operand
};

/// One node of the group. Places are the group's inputs, then its outputs, then its buffers.
struct ElementwiseMember {
  tenon_op op = TENON_OP_NONE;
  KernelFunction function = nullptr;           ///< the backend's kernel for it
  std::vector<std::uint64_t> attributes;       ///< the struct of the op
  std::vector<std::uint32_t> inputs;           ///< places
  std::uint32_t output = 0;                    ///< place
  const tenon_vendor_op* vendor_op = nullptr;  ///< KernelRow::vendor_op
};

/// The work of one call: the members in order, for each element of the space.
struct ElementwiseProgram {
  std::int64_t rows = 1, columns = 1;  ///< the space; one row unless an operand needs more
  std::uint32_t input_count = 0, output_count = 0, buffer_count = 0;
  std::vector<ElementwisePlace> places;
  std::vector<ElementwiseMember> members;
  std::shared_ptr<const void> prepared;  ///< the result of ElementwiseFusion::prepare
};

/// The program of a group's call. The call's inputs, then outputs, are the places of the same
/// indices.
const ElementwiseProgram& program_of(const Call& call);

/// How a device runs groups. Returned by Device::elementwise_fusion; lives as long as the device.
struct ElementwiseFusion {
  /// A row with op TENON_OP_NONE. Its kernel functions[TENON_DTYPE_NONE] runs program_of(call); its
  /// traits are strided, in_place and, if needed, scratch.
  KernelRow row;
  /// The classes of groups that a node may be in, as bits; 0: none. Members of a group share one.
  /// `in` is the type operand's dtype.
  std::uint32_t (*classes)(tenon_op op, tenon_dtype in, tenon_dtype out) = nullptr;
  std::uint32_t max_members = 0;
  std::uint32_t max_inputs = 0;
  /// Called once, when the plan is made; returns ElementwiseProgram::prepared. NULL: there is
  /// nothing to prepare.
  std::shared_ptr<const void> (*prepare)(const ElementwiseProgram& program) = nullptr;
  /// Of piecewise(): a kernel that runs the whole of such a program, program_of(call), and divides
  /// its work itself; NULL: there is none. Called once, when the plan is made.
  KernelFunction (*whole)(const ElementwiseProgram& program) = nullptr;
};

/// The fusion of devices that have none of their own, which runs groups piece by piece with the
/// backend's kernels, with kernels for whole groups.
ElementwiseFusion piecewise(KernelFunction (*whole)(const ElementwiseProgram& program));

}  // namespace tenon::sdk
