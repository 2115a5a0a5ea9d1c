// SPDX-License-Identifier: Apache-2.0
// graph/op.h - the runtime's record of an op: documentation, shape rule, precision, flops, gradient.
//
// Each file runtime/ops/<family>.cpp defines `rules_<stem>` for every op of that family, and the op's function if tenon/functions.h
// declares it; the build generates the table.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/graph.h>

namespace tenon::graph {

/// The dtype S in a schema of ops.def: sums of 16-bit types are kept in f32.
inline DType accumulation_dtype(DType x) {
  return x == DType::f16 || x == DType::bf16 ? DType::f32 : x;
}

/// Context of a shape rule: reads operands, checks them, and sets the results.
class Inference {
 public:
  /// Keeps references to its arguments.
  Inference(tenon_op op, const std::string& node, std::vector<const ValueInfo*> inputs, Attributes& node_attributes,
            const NodeOptions& node_options)
      : attributes(node_attributes), options(node_options), op_(op), node_(node), inputs_(std::move(inputs)) {}

  tenon_op op() const { return op_; }
  std::size_t input_count() const { return inputs_.size(); }
  bool has(std::size_t i) const { return i < inputs_.size() && inputs_[i] != nullptr; }
  DType dtype(std::size_t i) const { return inputs_[i]->dtype; }
  const Shape& shape(std::size_t i) const { return inputs_[i]->shape; }
  const std::string& name(std::size_t i) const { return inputs_[i]->name; }

  void output(DType dtype, const Shape& shape) { outputs.push_back({dtype, shape}); }
  /// Throws Error "<stem> '<node>': <text>"; `text` states what was expected and what was given.
  [[noreturn]] void fail(const std::string& text) const;
  /// "x f32(8,10)": operand i with its name in ops.def, for messages.
  std::string str(std::size_t i) const;

  /// Common checks.
  void expect_inputs(std::size_t lowest, std::size_t highest) const;  ///< checks the count, and that the first `lowest` are present
  void expect_same_dtype(std::size_t a, std::size_t b) const;
  void expect_same_shape(std::size_t a, std::size_t b) const;
  void expect_floating(std::size_t i) const;
  void expect_number(std::size_t i) const;                             ///< anything but bool
  void expect_scalar(std::size_t i, DType dtype) const;                ///< rank 0
  void expect_flag(std::uint32_t value, const char* attribute) const;  ///< 0 or 1
  /// The NumPy broadcast of two operands; errors name both.
  Shape broadcast(std::size_t a, std::size_t b) const;
  /// Resolves the axis to [0, rank of input i); errors name axis and operand.
  std::int64_t axis(std::int64_t axis, std::size_t i) const;

  struct Output {
    DType dtype;
    Shape shape;
  };
  Attributes& attributes;  ///< a rule may normalise them (negative axes, sorted axes)
  const NodeOptions& options;
  std::vector<Output> outputs;

 private:
  tenon_op op_;
  const std::string& node_;
  std::vector<const ValueInfo*> inputs_;
};

/// Context of a gradient rule: reads operands, results and their gradients, and sets the operands' gradients.
class Gradient {
 public:
  Gradient(Graph& owner, NodeId node, std::vector<Value> output_gradients, std::vector<bool> needed);
  Graph& graph;
  const Attributes attributes;

  Value input(std::size_t i) const { return i < inputs_.size() ? inputs_[i] : Value(); }  ///< absent if the operand is
  Value output(std::size_t i) const { return outputs_[i]; }
  std::size_t output_count() const { return outputs_.size(); }
  /// d loss / d output i; absent if the loss does not depend on it. Always present for ops with one output.
  Value dy(std::size_t i = 0) const { return dy_[i]; }
  /// True if d loss / d input i is needed.
  bool needs(std::size_t i) const { return i < needed_.size() && needed_[i]; }
  /// Sets d loss / d input i, of the operand's dtype and shape; zero if never set.
  void set(std::size_t i, Value gradient);
  /// Sets those of the first operands' gradients that are needed.
  void set_needed(const std::vector<Value>& gradients);
  const std::vector<Value>& result() const { return result_; }

 private:
  std::vector<Value> inputs_, outputs_, dy_, result_;
  std::vector<bool> needed_;
};

/// How mixed precision treats an op on f32 values.
enum class PrecisionClass : std::uint8_t {
  low_precision,  ///< reads and writes 16 bits: products, which use tensor cores
  inherits,       ///< 16 bits if one operand has 16 bits and the others can be cast: elementwise ops, pooling, data movement
  fp32_internal,  ///< computes in f32 and returns its first result in the dtype of its first operand: layer and RMS norms
  fp32,           ///< f32 throughout: sums, statistics, ops that overflow or lose precision, losses, optimizers
};

/// A member without a default: an initialiser that leaves it out does not compile.
template <class T>
struct Required {
  constexpr Required(T given) : value(given) {}  // not explicit: initialisers name the value itself
  constexpr operator T() const { return value; }
  T value;
};

struct OpRules {
  /// Documentation: the formula, then noteworthy shapes and attributes, in one or two sentences.
  const char* doc;
  void (*infer)(Inference& at);
  Required<PrecisionClass> precision;
  /// Floating-point operations of a node, for profiles: a multiply-add counts as two, exp, tanh and the like as one.
  Required<std::int64_t (*)(const Graph& graph, const NodeInfo& node)> flops;
  /// NULL: no gradient flows through (its operands are not differentiable).
  void (*gradient)(Gradient& at) = nullptr;
  /// Bit i: output i may be omitted if it is not read.
  std::uint32_t optional_outputs = 0;
};

/// Flops of an op with n operations for each element of its largest operand or result; 0 for an op that only moves data.
template <std::int64_t n>
std::int64_t per_element(const Graph& graph, const NodeInfo& node) {
  std::int64_t elements = 0;
  for (const auto* values : {&node.inputs, &node.outputs}) {
    for (const ValueId v : *values) {
      if (v != no_id) elements = std::max(elements, graph.info(v).shape.count());
    }
  }
  return n * elements;
}

struct OpRulesRow {
  tenon_op op;
  const OpRules* rules;
};
extern const OpRulesRow op_rules_rows[];  ///< ends with NULL

/// The column `indexing` of ops.def.
enum class Indexing : std::uint8_t { pointwise, reshape, transpose, expand, slice, pad, gather, axis, reduction, other };
/// A line of ops.def, or what stands for one of a vendor's op (graph/vendor_ops.h).
struct OpLine {
  tenon_op op = TENON_OP_NONE;
  const char* name = nullptr;
  std::uint32_t version = 0;
  const char* stem = nullptr;
  int type_operand = -1;
  const char* attributes = nullptr;
  std::size_t attributes_size = 0;
  Indexing indexing = Indexing::other;
  const char* schema = nullptr;
};
struct OpEntry {
  const OpLine* line = nullptr;
  const OpRules* rules = nullptr;
};

const OpRules& rules_of(tenon_op op);  ///< throws for an op that is neither listed nor a vendor's
std::uint32_t version_of(tenon_op op);
const char* stem_of(tenon_op op);
/// The op's line in ops.def: "x:T -> y:T; axis keepdims".
const char* schema_of(tenon_op op);
Indexing indexing_of(tenon_op op);
/// True for an op whose result arranges or repeats the elements of its operand: Reshape, Flatten, Transpose, Expand.
bool is_view(tenon_op op);
/// True if operand i or result i of the op has dtype S in its line: f32 for f16 and bf16.
bool is_accumulation_operand(tenon_op op, std::size_t i);
bool is_accumulation_result(tenon_op op, std::size_t i);
/// The dtype that selects the kernel of a node.
DType kernel_dtype(const Graph& graph, const NodeInfo& node);
/// Throws unless `attributes` holds the struct that the op's line names.
void check_attributes(tenon_op op, const Attributes& attributes);
/// " axis=1 keepdims=1", with the names of ops.def; empty for ops without attributes.
std::string attributes_str(tenon_op op, const Attributes& attributes);

/// Applies an op to operands of one graph and returns its first result.
Value apply_op(tenon_op op, const std::vector<Value>& inputs, const Attributes& attributes = {}, const NodeOptions& options = {});
/// A constant of rank 0. Errors: a value that the dtype cannot represent.
Value scalar(Graph& graph, DType dtype, double value);
/// The attributes of reductions and Transpose. Errors: more than TENON_MAX_RANK axes, naming `what`.
Attributes axes_attributes(const char* what, const std::vector<std::int64_t>& axes, bool keepdims = false);
/// `gradient` summed over the axes along which `shape` was broadcast to the gradient's shape.
Value unbroadcast(Value gradient, const Shape& shape);

}  // namespace tenon::graph
