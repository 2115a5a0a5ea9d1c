// graph_model.h - the core's graph, copied and understood: values with strides filled in, nodes with their kernels.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tenon/backend.h>
#include <tenon/sdk/elementwise.h>
#include <tenon/sdk/kernel.h>

namespace tenon::sdk {

struct Value {
  std::int64_t shape[TENON_MAX_RANK] = {};
  std::int64_t strides[TENON_MAX_RANK] = {};
  std::uint32_t rank = 0;
  tenon_dtype dtype = TENON_DTYPE_NONE;
  std::int64_t count = 0;
  bool dense = true;
  std::uint32_t kind = TENON_VALUE_INTERNAL;
  std::uint32_t binding = TENON_NO_INDEX;  ///< of inputs, outputs and parameters alone
  const void* data = nullptr;              ///< constants: the core's bytes, valid while the plan is built
  std::uint32_t root = TENON_NO_INDEX;     ///< the value whose storage this one is a view of; itself if none

  std::uint64_t size_bytes() const { return static_cast<std::uint64_t>(count * size_of(dtype)); }
  Operand operand(void* address = nullptr) const { return {address, shape, strides, count, rank, dtype, dense}; }
  void make_dense();    ///< row-major strides
  void update_dense();  ///< from shape and strides; what is dense gets the strides of make_dense, also where a size of 1 leaves them open
};

/// Same dtype and shape, both dense: one may be stored over the other.
bool same_layout(const Value& a, const Value& b);

class ElementwiseGroup;  // elementwise_group.h
/// Groups run piece by piece with the backend's own kernels: of devices that bring no fusion of their own.
extern const ElementwiseFusion piecewise_fusion;

struct Node {
  tenon_op op = TENON_OP_NONE;
  std::uint32_t version = 0;
  std::uint32_t index = 0;  ///< in the core's graph
  std::uint64_t id = 0;
  std::vector<std::uint32_t> inputs, outputs;  ///< values, or TENON_NO_INDEX
  std::vector<std::uint64_t> attributes;       ///< a copy of the struct
  const KernelRow* row = nullptr;
  KernelFunction function = nullptr;
  std::uint32_t bias = TENON_NO_INDEX;  ///< epilogue
  std::uint32_t residual = TENON_NO_INDEX;
  Activation activation = Activation::none;
  std::uint32_t fused_count = 1;
  ChannelsLast turns;                       ///< operands that its kernel wants with their channels last
  bool widened = false;                     ///< f16 or bf16 operands for a kernel of f32: conversions are still to be put around it
  bool channels_last = false;               ///< works on images whose channels lie last, with shapes so written
  bool makes_bytes = false;                 ///< a Transpose that becomes a view only if that is dense: others would be walked with a stride
  std::shared_ptr<ElementwiseGroup> group;  ///< of a node that stands for several

  bool is(tenon_op wanted) const { return op == wanted; }
  /// Calls body(value) for all that the kernel reads, once per operand.
  template <class Body>
  void for_each_read(const Body& body) const {
    for (const std::uint32_t v : inputs) {
      if (v != TENON_NO_INDEX) body(v);
    }
    if (bias != TENON_NO_INDEX) body(bias);
    if (residual != TENON_NO_INDEX) body(residual);
  }
};

struct GraphModel {
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<tenon_donation> donations;
  std::uint32_t binding_count = 0;
  Host host;                 ///< for Traits functions
  Device* device = nullptr;  ///< likewise
  const ElementwiseFusion* fusion = &piecewise_fusion;
  tenon_plan_options options{};  ///< likewise

  /// Reads and checks the wire form. Throws INVALID_ARGUMENT when it breaks the header's rules.
  static GraphModel read(const tenon_graph& graph);
  /// The dense, internal twin of a value.
  std::uint32_t add_dense_copy(std::uint32_t of);
};

const char* op_name(tenon_op op);
const KernelRow* find_row(const KernelRow* rows, tenon_op op, std::uint32_t version);
/// The row of the kernel that copies this value to a dense one, whatever its strides; NULL if there is none.
const KernelRow* find_copier(const KernelRow* rows, const Value& from);
/// The row of the kernel that transposes values of `dtype` which are, or can be made, dense; NULL if there is none.
const KernelRow* find_transposer(const KernelRow* rows, const Value& from, tenon_dtype dtype);
/// A dtype that is storage alone: arithmetic on it is f32's.
inline bool is_half(tenon_dtype dtype) {
  return dtype == TENON_DTYPE_F16 || dtype == TENON_DTYPE_BF16;
}
/// A value that a kernel with Traits::channels_last can be handed in that form.
inline bool is_image(const Value& value) {
  return value.rank == 3 || value.rank == 4;
}

/// A no.
tenon_answer refusal(std::uint32_t reason, const std::string& text);
/// Fills node.row and node.function, or says why not. Only looks at this node.
tenon_answer answer(const GraphModel& graph, Node& node, const KernelRow* rows);

/// A Call without addresses, for Traits functions. `operands` is the caller's room and lives as long as the call.
Call describe(const GraphModel& graph, const Node& node, std::vector<Operand>& operands);

}  // namespace tenon::sdk
