// graph/op.h - what the runtime knows about an op: its shape rule, its gradient, its documentation.
//
// Each room runtime/ops/<room>.cpp defines `extern const OpRules rules_<stem>` for every op that names the room; the build writes the table.
#pragma once

#include <string>
#include <vector>

#include <tenon/graph.h>

namespace tenon::graph {

/// The shape rule at work: look at operands, check, say what comes out.
class Inference {
 public:
  Inference(tenon_op op, const std::string& node, std::vector<const ValueInfo*> inputs, Attributes& attributes, const NodeOptions& options)
      : attributes(attributes), options(options), op_(op), node_(node), inputs_(std::move(inputs)) {}

  std::size_t input_count() const { return inputs_.size(); }
  bool has(std::size_t i) const { return i < inputs_.size() && inputs_[i] != nullptr; }
  DType dtype(std::size_t i) const { return inputs_[i]->dtype; }
  const Shape& shape(std::size_t i) const { return inputs_[i]->shape; }

  void output(DType dtype, const Shape& shape) { outputs.push_back({dtype, shape}); }
  /// Throws Error "<stem> '<node>': <text>"; `text` says what was wanted and what was got.
  [[noreturn]] void fail(const std::string& text) const;
  /// "f32(8,10)" of input i, for messages.
  std::string str(std::size_t i) const;

  /// Common checks.
  void want_inputs(std::size_t lowest, std::size_t highest) const; ///< counts, and that the first `lowest` are present
  void want_same_dtype(std::size_t a, std::size_t b) const;
  void want_floating(std::size_t i) const;
  /// Resolved to [0, rank of input i); fails naming axis and operand.
  std::int64_t axis(std::int64_t axis, std::size_t i) const;

  struct Output {
    DType dtype;
    Shape shape;
  };
  Attributes& attributes; ///< a rule may normalise them (negative axes, sorted axes)
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
  Gradient(Graph& graph, NodeId node, std::vector<Value> output_gradients);
  Graph& graph;
  const Attributes attributes;

  Value input(std::size_t i) const;  ///< absent if the operand is
  Value output(std::size_t i) const;
  /// d loss / d output i; absent if the loss does not depend on it.
  Value dy(std::size_t i = 0) const { return dy_[i]; }
  /// True if somebody wants d loss / d input i.
  bool wants(std::size_t i) const { return i < wanted_.size() && wanted_[i]; }
  void set(std::size_t i, Value gradient) { result[i] = gradient; }

  std::vector<Value> result;   ///< per input; absent: zero
  std::vector<bool> wanted_;

 private:
  std::vector<Value> inputs_, outputs_, dy_;
};

struct OpRules {
  /// Documentation: the formula first, then shapes and attributes worth saying, in one or two sentences.
  const char* doc;
  void (*infer)(Inference& at);
  /// NULL: no gradient flows through (its operands are not differentiable).
  void (*gradient)(Gradient& at);
};

struct OpRulesRow {
  tenon_op op;
  const OpRules* rules;
};
extern const OpRulesRow op_rules_rows[]; ///< ends with NULL

const OpRules& rules_of(tenon_op op); ///< throws for an unlisted op
std::uint32_t version_of(tenon_op op);
const char* stem_of(tenon_op op);

/// `gradient` summed over the axes along which `shape` was broadcast to the gradient's shape.
Value unbroadcast(Value gradient, const Shape& shape);

}  // namespace tenon::graph
