// graph/op.h - what the runtime knows about an op: its shape rule, its gradient, its documentation.
//
// Each room runtime/ops/<room>.cpp defines `rules_<stem>` for every op that names the room, and the op's front-end function of
// tenon/functions.h; the build writes the table.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tenon/graph.h>

namespace tenon::graph {

/// What S stands for in a schema of ops.def: sums of narrow types are kept in f32.
inline DType sums_of(DType x) {
  return x == DType::f16 || x == DType::bf16 ? DType::f32 : x;
}

/// The shape rule at work: look at operands, check, say what comes out.
class Inference {
 public:
  /// Borrows everything for as long as it lives.
  Inference(tenon_op op, const std::string& node, std::vector<const ValueInfo*> inputs, Attributes& node_attributes,
            const NodeOptions& node_options)
      : attributes(node_attributes), options(node_options), op_(op), node_(node), inputs_(std::move(inputs)) {}

  std::size_t input_count() const { return inputs_.size(); }
  bool has(std::size_t i) const { return i < inputs_.size() && inputs_[i] != nullptr; }
  DType dtype(std::size_t i) const { return inputs_[i]->dtype; }
  const Shape& shape(std::size_t i) const { return inputs_[i]->shape; }
  const std::string& name(std::size_t i) const { return inputs_[i]->name; }

  void output(DType dtype, const Shape& shape) { outputs.push_back({dtype, shape}); }
  /// Throws Error "<stem> '<node>': <text>"; `text` says what was wanted and what was got.
  [[noreturn]] void fail(const std::string& text) const;
  /// "x f32(8,10)": operand i under its name in ops.def, for messages.
  std::string str(std::size_t i) const;

  /// Common checks.
  void want_inputs(std::size_t lowest, std::size_t highest) const;  ///< counts, and that the first `lowest` are present
  void want_same_dtype(std::size_t a, std::size_t b) const;
  void want_same_shape(std::size_t a, std::size_t b) const;
  void want_floating(std::size_t i) const;
  void want_number(std::size_t i) const;                             ///< anything but bool
  void want_scalar(std::size_t i, DType dtype) const;                ///< rank 0
  void want_flag(std::uint32_t value, const char* attribute) const;  ///< 0 or 1
  /// The NumPy broadcast of two operands; fails naming both.
  Shape broadcast(std::size_t a, std::size_t b) const;
  /// Resolved to [0, rank of input i); fails naming axis and operand.
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

/// The gradient at work: read operands, results and their gradients, set the operands' gradients.
class Gradient {
 public:
  Gradient(Graph& owner, NodeId node, std::vector<Value> output_gradients, std::vector<bool> wanted);
  Graph& graph;
  const Attributes attributes;

  Value input(std::size_t i) const { return i < inputs_.size() ? inputs_[i] : Value(); }  ///< absent if the operand is
  Value output(std::size_t i) const { return outputs_[i]; }
  std::size_t output_count() const { return outputs_.size(); }
  /// d loss / d output i; absent if the loss does not depend on it. Output 0's is there for ops with one output.
  Value dy(std::size_t i = 0) const { return dy_[i]; }
  /// True if somebody wants d loss / d input i.
  bool wants(std::size_t i) const { return i < wanted_.size() && wanted_[i]; }
  /// Has the operand's dtype and shape. Never set: zero.
  void set(std::size_t i, Value gradient);
  const std::vector<Value>& result() const { return result_; }

 private:
  std::vector<Value> inputs_, outputs_, dy_, result_;
  std::vector<bool> wanted_;
};

struct OpRules {
  /// Documentation: the formula first, then shapes and attributes worth saying, in one or two sentences.
  const char* doc;
  void (*infer)(Inference& at);
  /// NULL: no gradient flows through (its operands are not differentiable).
  void (*gradient)(Gradient& at) = nullptr;
  /// Bit i: output i may be left out when nobody reads it.
  std::uint32_t optional_outputs = 0;
};

struct OpRulesRow {
  tenon_op op;
  const OpRules* rules;
};
extern const OpRulesRow op_rules_rows[];  ///< ends with NULL

const OpRules& rules_of(tenon_op op);  ///< throws for an unlisted op
std::uint32_t version_of(tenon_op op);
const char* stem_of(tenon_op op);
/// The op's line in ops.def: "x:T -> y:T; axis keepdims".
const char* schema_of(tenon_op op);
/// True if operand i of the op, or result i, is an S of its line: f32 beside f16 and bf16.
bool is_operand_of_sums(tenon_op op, std::size_t i);
bool is_result_of_sums(tenon_op op, std::size_t i);
/// The dtype that selects the kernel of a node.
DType kernel_dtype(const Graph& graph, const NodeInfo& node);
/// Throws unless `attributes` holds the struct that the op's line names.
void check_attributes(tenon_op op, const Attributes& attributes);
/// " axis=1 keepdims=1", under the names of ops.def; empty for ops without attributes.
std::string attributes_str(tenon_op op, const Attributes& attributes);

/// Applies an op to operands of one graph and returns its first result.
Value apply_op(tenon_op op, const std::vector<Value>& inputs, const Attributes& attributes = {}, const NodeOptions& options = {});
/// A rank 0 value. Errors: a number that the dtype cannot hold.
Value scalar(Graph& graph, DType dtype, double value);
/// The attributes of reductions and Transpose. Errors: more than TENON_MAX_RANK axes, under the name `what`.
Attributes axes_attributes(const char* what, const std::vector<std::int64_t>& axes, bool keepdims = false);
/// `gradient` summed over the axes along which `shape` was broadcast to the gradient's shape.
Value unbroadcast(Value gradient, const Shape& shape);

}  // namespace tenon::graph
