// SPDX-License-Identifier: Apache-2.0
// graph_model.h - a copy of the core's graph: values with strides filled in, nodes with their kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tenon/backend.h>
#include <tenon/sdk/elementwise.h>
#include <tenon/sdk/kernel.h>

namespace tenon::sdk {

/// A reason to refuse a node, as in tenon_answer; TENON_REASON_NONE: there is none.
struct Diagnostic {
  std::uint32_t reason = TENON_REASON_NONE;
  std::string text;
};

struct Value {
  std::int64_t shape[TENON_MAX_RANK] = {};
  std::int64_t strides[TENON_MAX_RANK] = {};
  std::uint32_t rank = 0;
  tenon_dtype dtype = TENON_DTYPE_NONE;
  std::int64_t count = 0;
  bool dense = true;
  std::uint32_t kind = TENON_VALUE_INTERNAL;
  std::uint32_t binding = TENON_NO_INDEX;  ///< only of inputs, outputs and parameters
  const void* data = nullptr;              ///< constants: the core's bytes, valid while the plan is built
  const tenon_packed* packed = nullptr;    ///< parameters and constants: as tenon_value.packed, valid while the plan is built
  std::uint32_t root = TENON_NO_INDEX;     ///< the value whose storage this one is a view of; itself if none

  std::uint64_t size_bytes() const { return static_cast<std::uint64_t>(count * size_of(dtype)); }
  Operand operand(void* address = nullptr) const { return {address, shape, strides, count, rank, dtype, dense}; }
  void make_dense();    ///< row-major strides
  void update_dense();  ///< from shape and strides; dense values get the strides of make_dense, also for dimensions of size 1
};

bool same_shape(const Value& a, const Value& b);
/// Same dtype and shape, both dense: one may be stored over the other.
bool same_layout(const Value& a, const Value& b);

class ElementwiseGroup;       // elementwise_group.h
struct VendorAttributeBlock;  // vendor_node.h
/// Groups run piece by piece with the backend's own kernels, for devices without a fusion of their own.
extern const ElementwiseFusion piecewise_fusion;
/// Whether it is that one, or one of piecewise().
bool is_piecewise(const ElementwiseFusion& fusion);

struct Node {
  tenon_op op = TENON_OP_NONE;
  std::uint32_t version = 0;
  std::uint32_t index = 0;  ///< in the core's graph
  std::uint64_t id = 0;
  std::vector<std::uint32_t> inputs, outputs;  ///< values, or TENON_NO_INDEX
  std::vector<std::uint64_t> attributes;       ///< a copy of the struct; what that of a vendor's op points to is in GraphModel::blocks
  std::vector<std::uint64_t> packed;           ///< per input: the address of its packed copy, 0: none; empty: no input is packed
  const KernelRow* row = nullptr;
  KernelFunction function = nullptr;
  /// The operands of the epilogue, see epilogue_operands.
  std::uint32_t scale = TENON_NO_INDEX, bias = TENON_NO_INDEX, residual = TENON_NO_INDEX;
  std::uint32_t y_scale = TENON_NO_INDEX, y_zero_point = TENON_NO_INDEX, relu_result = TENON_NO_INDEX;
  Activation activation = {};
  std::uint32_t fused_count = 1;              ///< nodes of the core's graph that it computes; 0: the plan builder inserted it
  ChannelsLast turns;                         ///< operands that its kernel takes with their channels last
  bool relu_grad = false;                     ///< as Traits::relu_grad says
  bool widened = false;                       ///< f16 or bf16 operands for a kernel of f32: conversions are still to be inserted
  bool channels_last = false;                 ///< works on images of shape (N, d..., C)
  bool merged_heads = false;                  ///< as Traits::merges_heads says
  bool joins_previous = false;                ///< runs together with the node before it, as Traits::run_together or Traits::run_chain says
  bool chained = false;                       ///< the first of the nodes of a Traits::run_chain
  std::optional<std::uint64_t> result_bytes;  ///< that its output 0 needs, where it is less than its elements take
  bool requires_copy = false;                 ///< a Transpose that becomes a view only if the view is dense, to avoid strided access
  std::shared_ptr<ElementwiseGroup> group;    ///< of a node that replaces several
  Diagnostic problem;                         ///< of the node, its attributes or a value: nothing else of it is looked at

  bool is(tenon_op other) const { return op == other; }
  template <class Attributes>
  const Attributes& attr() const {
    return *reinterpret_cast<const Attributes*>(attributes.data());
  }
  /// Calls body(value) for each operand that the kernel reads.
  template <class Body>
  void for_each_read(const Body& body) const {
    for (const std::uint32_t v : inputs) {
      if (v != TENON_NO_INDEX) body(v);
    }
    for_each_epilogue_operand(body);
  }
  template <class Body>
  void for_each_epilogue_operand(const Body& body) const;
  bool has_epilogue_operands() const {
    bool any = false;
    for_each_epilogue_operand([&](std::uint32_t) { any = true; });
    return any;
  }
};

/// The operands of an epilogue: a node's value, and what becomes of it in a call.
struct EpilogueOperand {
  std::uint32_t Node::*value;
  const Operand* Epilogue::*operand;
};
inline constexpr EpilogueOperand epilogue_operands[] = {{&Node::scale, &Epilogue::scale},
                                                        {&Node::bias, &Epilogue::bias},
                                                        {&Node::residual, &Epilogue::residual},
                                                        {&Node::y_scale, &Epilogue::y_scale},
                                                        {&Node::y_zero_point, &Epilogue::y_zero_point},
                                                        {&Node::relu_result, &Epilogue::relu_result}};

template <class Body>
void Node::for_each_epilogue_operand(const Body& body) const {
  for (const EpilogueOperand& part : epilogue_operands) {
    if (this->*part.value != TENON_NO_INDEX) body(this->*part.value);
  }
}

struct GraphModel {
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<tenon_donation> donations;
  std::uint32_t binding_count = 0;
  /// By the values that they make: conversions of parameters and constants. They are not among the nodes: they run when a constant, or a
  /// parameter with a new epoch, is packed. What they make is kept where kernels read it as it is.
  std::map<std::uint32_t, Node> conversions;
  Host host;                 ///< for Traits functions
  Device* device = nullptr;  ///< likewise
  const ElementwiseFusion* fusion = &piecewise_fusion;
  tenon_plan_options options{};                                     ///< likewise
  std::vector<std::shared_ptr<const VendorAttributeBlock>> blocks;  ///< of the nodes' attributes
  Diagnostic problem;  ///< of every node: unknown options, or bits of the graph's and the options' `needs`

  /// Reads the core's graph. What is unknown here becomes a problem of the nodes that it touches. Throws INVALID_ARGUMENT for arrays that
  /// cannot be read and for values that are not written once, before they are read. `rows` has the vendor's ops whose attributes are
  /// copied; NULL: none.
  static GraphModel read(const tenon_graph& graph, const tenon_plan_options& options, const KernelRow* rows = nullptr);
  /// Adds a dense, internal value of the same shape and dtype.
  std::uint32_t add_dense_copy(std::uint32_t of);
  /// The one of `conversions` that makes this value, or what it is a view of; NULL: there is none.
  const Node* conversion_of(std::uint32_t v) const {
    const auto found = conversions.find(values[v].root);
    return found == conversions.end() ? nullptr : &found->second;
  }
  /// What copies of this value are made of: its root, or that of what it is converted from.
  std::uint32_t packed_root(std::uint32_t v) const {
    const Node* const conversion = conversion_of(v);
    return values[conversion == nullptr ? v : conversion->inputs[0]].root;
  }
};

/// "Relu"; of a vendor's op, of which the row tells more, "unknown op".
const char* op_name(tenon_op op);
/// "Relu", "com.example.SoftClip".
std::string op_name(const Node& node);
const KernelRow* find_row(const KernelRow* rows, tenon_op op, std::uint32_t version);
/// The row of the kernel that copies this value to a dense one, whatever its strides; NULL if there is none.
const KernelRow* find_copier(const KernelRow* rows, const Value& from);
/// The row of the kernel that transposes values of `dtype` which are, or can be made, dense; NULL if there is none.
const KernelRow* find_transposer(const KernelRow* rows, const Value& from, tenon_dtype dtype);
/// True for a storage dtype, whose arithmetic is done in f32.
inline bool is_half(tenon_dtype dtype) {
  return dtype == TENON_DTYPE_F16 || dtype == TENON_DTYPE_BF16;
}
/// True if a kernel with Traits::channels_last may take the value in that form.
inline bool is_image(const Value& value) {
  return value.rank == 3 || value.rank == 4;
}

/// A negative answer.
tenon_answer refusal(std::uint32_t reason, const std::string& text);
/// Fills node.row and node.function, or says why the node is not supported. Checks only this node.
tenon_answer answer(const GraphModel& graph, Node& node, const KernelRow* rows);

/// A size that a kernel asks for. Throws OUT_OF_MEMORY for one beyond 63 bits.
std::uint64_t checked_size(std::size_t size, const Node& node, const char* what);

/// A Call without addresses, for Traits functions. `operands` is the caller's buffer and must outlive the call.
Call describe(const GraphModel& graph, const Node& node, std::vector<Operand>& operands);

}  // namespace tenon::sdk
