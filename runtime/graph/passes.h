// SPDX-License-Identifier: Apache-2.0
// graph/passes.h - graph passes, which preserve results. A pass takes a graph (a copy is cheap: constants share their elements) and returns
// the changed one.
//
// Every pass keeps: inputs and parameters, used or not, in order (they are bound by name); names and order of outputs and updates;
// NodeInfo::id of remaining nodes. ValueId and NodeId change, so handles (tenon::Value) created earlier become invalid.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <tenon/graph.h>

namespace tenon::graph {

/// Removes nodes and constants that no output or update needs, and unused optional results.
Graph eliminate_dead_code(Graph graph);

/// Merges nodes with equal op, attributes, operands, result dtype and shape, and device, and equal scalar constants. Random ops and Dropout
/// take part: they are functions of key and stream. A node that computes a parameter's new value keeps its own copy of it, since it may be
/// written in place.
Graph eliminate_common_subexpressions(Graph graph);

/// Local rewrites that are exact to the bit: x * 1, x / 1, x + (-0), x - 0, --x, casts, reshapes and expansions to what x is already,
/// chains of transpositions and of reshapes, and Expand before an op that broadcasts anyway.
Graph simplify(Graph graph);

/// Rewrites to numerically stable forms: log(1 + a) to log1p(a), exp(x) - 1 to expm1(x), 1 - sigmoid(x)
/// to sigmoid(-x), log(sigmoid(x)) to -softplus(-x), log1p(exp(x)) to softplus(x), log(softmax(x)) to log_softmax(x).
Graph stabilize(Graph graph);
/// The same in place: ValueIds stay valid, nodes are renumbered. Gradients are taken of the result.
void stabilize_in_place(Graph& graph);

/// Runs a graph without inputs and parameters; returns its outputs, dense and on the host.
using Evaluate = std::function<std::vector<Tensor>(const Graph& constants)>;
/// Evaluates nodes that depend only on constants and replaces them by constants. Results that are large (over 64 KiB) and larger than their
/// operands stay computed: storing them would cost more than computing them.
Graph fold_constants(Graph graph, const Evaluate& evaluate);

/// w -= lr g, where g is the sum of rows from Gather's gradient, becomes ScatterAdd(w, indices, -lr dy) in place of w: other rows are
/// neither read nor written. Only for steps without momentum and weight decay, which would change every row. -lr is first rounded to w's
/// dtype, and equal indices are added one by one.
Graph update_rows(Graph graph);

/// By value: whether it is the same in each run but for rare changes: constants, and parameters that `fixed` names, or all parameters of a
/// graph that updates none.
std::vector<bool> fixed_values(const Graph& graph, const std::set<std::string>& fixed);

/// Folds a BatchNormalization that is the only reader of a Conv into it, if all operands of both but x are fixed_values: with
/// s = scale / sqrt(var + epsilon), Conv(x, w s, (b - mean) s + bias). Otherwise the new weights would be recomputed in each run.
Graph fold_batch_norm(Graph graph, const std::set<std::string>& fixed = {});

/// A graph split in two. `main` has a parameter for each output of `prologue`, with the same name.
struct Hoisted {
  Graph prologue;  ///< only parameters and constants, no inputs; without outputs if nothing is worth moving
  Graph main;
};
/// Moves nodes that depend only on fixed_values to the prologue, to run once instead of in each run. Views, outputs and new values of
/// parameters stay, and so do results that are large (over 64 KiB) and larger than their operands, but for those of DequantizeLinear.
/// Graphs without inputs stay unchanged.
Hoisted hoist(Graph graph, const std::set<std::string>& fixed = {});

/// Replaces every parameter that the graph does not update by a constant with the elements that value_of returns for its name, on the host.
/// Errors  those of value_of.
Graph freeze(Graph graph, const std::function<Tensor(const std::string&)>& value_of);
/// Drops the elements of constants except scalars, for a compiled graph that is only inspected from now on.
Graph drop_constants(Graph graph);

/// Converts f32 arithmetic to mixed precision: inputs, parameters, outputs and updates stay f32; nodes compute as their
/// precision class states, with `narrow` f16 or bf16. Each value is cast at most once and never cast back to its original; a view of a
/// parameter is a view of its cast. An inheriting op is lowered only if a low-precision op uses its result, so that losses and the
/// processing of gradients before a step stay f32; parameters are cast with it, and so are constants that survive the rounding. Values of
/// other dtypes do not change.
Graph mix_precision(Graph graph, DType narrow);

/// Makes updates from index `first` on keep their parameters unchanged in runs where `skip`, a bool scalar, is true. In place.
void skip_updates(Graph& graph, std::size_t first, Value skip);

/// By node: whether its results only become parameters, so that it may run after all others.
std::vector<bool> only_update(const Graph& graph);
/// Gives each update whose node computes something else, too, a copy of its value: the node of the copy only updates. In place.
void separate_updates(Graph& graph);

/// Makes ops of 8-bit integers of nets of DequantizeLinear, ops of floats and QuantizeLinear. What only moves elements of bytes with one
/// scale moves the bytes; Conv, MatMul and Gemm of dequantised operands whose result is quantised, also after a Relu or Clip that
/// saturation implies, become QLinearConv or QLinearMatMul, other MatMul and Gemm of such operands MatMulInteger and DequantizeLinear. The
/// sums are exact where those of floats are rounded, so that a result may differ by one unit of its scale where it is close to a tie. What
/// fits none of this stays.
Graph fuse_quantized(Graph graph);

/// Runs the standard passes: stabilise, dead code, common subexpressions, simplify, sparse row updates, batch norm folding, integer ops.
[[nodiscard]] Graph optimize(Graph graph, const std::set<std::string>& fixed = {});

/// True if a result of that many bytes is worth storing instead of its operands: if it is no larger than they are, or so small that a
/// kernel costs more.
bool worth_keeping(std::int64_t made_of_bytes, std::int64_t result_bytes);

/// Adds a copy of `node` of `from` to `to`, with `operands` and the same name.
std::vector<Value> apply_again(const Graph& from, const NodeInfo& node, const std::vector<Value>& operands, Graph& to);

/// Edits a graph in place. ValueIds stay valid until `finish`.
class GraphEditor {
 public:
  explicit GraphEditor(Graph& graph);

  std::size_t node_count() const { return graph_.nodes_.size(); }
  /// The node, with operands as redirected so far.
  const NodeInfo& node(NodeId id);
  const ValueInfo& info(ValueId id) const { return graph_.values_[id]; }
  /// The producer of a value; null for inputs, parameters and constants.
  const NodeInfo* producer(ValueId id);
  const std::vector<ValueInfo>& values() const { return graph_.values_; }

  /// Makes all readers of `from` read `to` instead, which must have the same elements and exist before the first reader. Returns false and
  /// does nothing if that would change the kind of a result: an output stays a computed value, an update keeps its value.
  bool redirect(ValueId from, ValueId to);
  /// Replaces operands and attributes of a node; its results keep dtype and shape.
  void rewrite(NodeId id, std::vector<ValueId> inputs, const Attributes& attributes);
  /// The same with another op, at its newest version.
  void replace(NodeId id, tenon_op op, std::vector<ValueId> inputs, const Attributes& attributes = {});
  /// Inserts a node with one operand before node `before`; its result has the operand's dtype and shape.
  ValueId insert(NodeId before, tenon_op op, ValueId input);
  /// The same with several operands and a result of any dtype and shape.
  ValueId insert(NodeId before, tenon_op op, std::vector<ValueId> inputs, DType dtype, const Shape& shape,
                 const Attributes& attributes = {});
  /// Inserts the nodes that `functions` builds with tenon/functions.h before node `before`: with all results and checked by their shape
  /// rules, on its device, named below it. Returns the id of the value that `functions` returns, which may exist already.
  ValueId build(NodeId before, const std::function<Value()>& functions);
  /// Changes the dtype of a computed value. Its readers, including outputs and updates, read a Cast to the former dtype, inserted right
  /// after its producer. Returns the value in the new dtype.
  ValueId recast(ValueId result, DType dtype);
  /// Inserts a copy of a computed value after its producer, on the same device.
  ValueId insert_copy(ValueId result);
  /// Gives a computed value a new producer with one result, inserted before the current one, which no longer computes it. The caller
  /// rewrites the operands of the current one.
  void remake(ValueId result, tenon_op op, std::vector<ValueId> inputs, const Attributes& attributes = {});
  /// The tensors bound to an input are dense.
  void make_dense(ValueId input) { graph_.values_[input].strides.clear(); }
  /// Turns a parameter or constant into a constant of these elements; an undefined tensor drops them.
  void set_constant(ValueId id, const Tensor& value);
  /// Adds a constant.
  ValueId add_constant(const Tensor& value);
  /// Turns a computed value that is neither output nor update into a parameter of the same name.
  void make_parameter(ValueId id);
  /// Replaces the value of update i by another one of the same dtype and shape.
  void set_update(std::size_t i, ValueId value) { graph_.updates_[i].value = value; }
  /// Turns a computed value into a constant. Returns false and does nothing for an output or an update.
  bool make_constant(ValueId id, const Tensor& value);

  /// Applies insertions, and redirections of operands, outputs and updates. ValueIds stay valid, NodeIds do not. The editor must not be
  /// used afterwards.
  void weave();
  /// Results that ops may leave out, where nothing reads them. Gradients that are taken later read them.
  enum class OptionalResults : std::uint8_t { drop, keep };
  /// Removes unused nodes and values and renumbers the rest. The editor must not be used afterwards.
  void finish(OptionalResults results = OptionalResults::drop);

 private:
  ValueId resolve(ValueId id) const;
  ValueInfo& detach(ValueId id);
  ValueId append(ValueInfo info);
  NodeInfo made_for(NodeId owner, tenon_op op, std::vector<ValueId> inputs, const Attributes& attributes);
  void drop_dead(OptionalResults results);
  void renumber(const std::vector<bool>& live_values, const std::vector<bool>& live_nodes);

  Graph& graph_;
  std::vector<ValueId> target_;  ///< per value: the value that its readers read
  std::vector<bool> is_output_, is_update_;
  std::vector<std::pair<NodeId, NodeInfo>> inserted_;  ///< each with the node it precedes; node_count(): at the end
};

}  // namespace tenon::graph
