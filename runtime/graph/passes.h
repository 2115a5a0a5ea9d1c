// graph/passes.h - changes to a graph that leave its results as they are. A pass takes a graph (a copy is cheap: constants share their
// elements) and returns the changed one.
//
// What every pass keeps: inputs and parameters, used or not, in their order (they are bound by name); names and order of outputs and
// updates; NodeInfo::id of the nodes that stay. What it does not keep: ValueId and NodeId, so handles (tenon::Value) made before are void.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include <tenon/graph.h>

namespace tenon::graph {

/// Drops nodes and constants that no output or update needs, and optional results that nobody reads.
Graph eliminate_dead_code(Graph graph);

/// Nodes alike in op, attributes, operands, results' dtype and shape, and device become one, and so do equal scalar constants. Random ops
/// and Dropout take part: they are functions of key and stream. A node that makes a parameter's new content keeps its own copy of it, for
/// it may be written in place.
Graph eliminate_common_subexpressions(Graph graph);

/// Local rewrites that give the same bits: x * 1, x / 1, x + (-0), x - 0, --x, casts, reshapes and expansions to what x is already, chains
/// of transpositions and of reshapes, and Expand before an op that broadcasts anyway.
Graph simplify(Graph graph);

/// Rewrites that lose no digits where the graph as written would (row H06): log(1 + a) to log1p(a), exp(x) - 1 to expm1(x), 1 - sigmoid(x)
/// to sigmoid(-x), log(sigmoid(x)) to -softplus(-x), log1p(exp(x)) to softplus(x), log(softmax(x)) to log_softmax(x).
Graph stabilize(Graph graph);
/// The same in place: every ValueId keeps its meaning, nodes are numbered anew. Gradients are taken of the result.
void stabilize_in_place(Graph& graph);

/// Runs a graph without inputs and parameters; returns its outputs, dense and on the host.
using Evaluate = std::function<std::vector<Tensor>(const Graph& constants)>;
/// Nodes that depend on constants alone become constants. Results that would be large (over 64 KiB) and larger than what they are made of
/// are left alone: storing them would cost more than making them.
Graph fold_constants(Graph graph, const Evaluate& evaluate);

/// w -= lr g where g holds the rows that Gather's gradient adds up becomes ScatterAdd(w, indices, -lr dy), over w: rows that no index names
/// are neither read nor written. Only steps without momentum and weight decay, which would move every row. -lr is rounded to w's dtype
/// first, and equal indices are added one by one.
Graph update_rows(Graph graph);

/// A Conv whose only reader is a BatchNormalization, all operands of both but x parameters or constants, takes over scale and shift: with
/// s = scale / sqrt(var + epsilon), Conv(x, w s, (b - mean) s + bias). Graphs without updates alone: where parameters change in each run,
/// the new weights would have to be made in each run.
Graph fold_batch_norm(Graph graph);

/// A graph in two parts. `main` has a parameter of its own for each output of `prelude`, of that name.
struct Hoisted {
  Graph prelude;  ///< of parameters and constants alone, without inputs; no outputs: nothing is worth while
  Graph main;
};
/// What depends on parameters and constants alone is worked out once and not in each run. Not what only looks at them in another way, not
/// outputs, and nothing that would be larger (over 64 KiB) than what it is made of. Graphs with updates, and graphs without inputs, stay as
/// they are.
Hoisted hoist(Graph graph);

/// Every parameter becomes a constant of the elements that value_of gives for its name, on the host.
/// Errors  a graph with updates; what value_of throws.
Graph freeze(Graph graph, const std::function<Tensor(const std::string&)>& value_of);
/// Without the elements of its constants, scalars excepted: for a graph that has been compiled and is only looked at from now on.
Graph drop_constants(Graph graph);

/// What mixed precision makes of an op on f32 values.
enum class Mixing : std::uint8_t {
  narrow,   ///< reads and writes 16 bits: products, where tensor cores are, and what is made of them
  follows,  ///< 16 bits where an operand comes so and the others may: a step elementwise, a pool, a move
  inside,   ///< computes in f32, and its first result goes on in the width that its first operand came in: norms of lines
  wide,     ///< f32: sums, statistics, what overflows or loses digits, losses, optimizers
};
/// The policy.
Mixing mixing_of(tenon_op op);

/// f32 arithmetic becomes mixed: f32 stays what inputs, parameters, outputs and updates are; nodes compute as mixing_of says, `narrow`
/// being f16 or bf16. A value is cast once, whoever reads it, and never back to what it was made from; a view of a parameter is a view of
/// its one cast. An op that follows does so only if something narrow is made of its result, so that losses and what is done to gradients
/// before a step are f32; parameters follow it, and constants that survive the rounding. Values of other dtypes are left alone.
Graph mix_precision(Graph graph, DType narrow);

/// Updates from number `first` on leave their parameters as they are in runs where `skip`, a bool scalar, is true. In place.
void skip_updates(Graph& graph, std::size_t first, Value skip);

/// Stabilised, without dead code and common subexpressions, simplified, with sparse updates of rows and batch norms folded.
[[nodiscard]] Graph optimize(Graph graph);

/// Whether results of so many bytes are worth keeping instead of what they are made of: if they are no larger, or so small that a kernel
/// costs more.
bool worth_keeping(std::int64_t made_of_bytes, std::int64_t result_bytes);

/// Applies to `operands`, values of `to`, what `node` of `from` does; under its name.
std::vector<Value> apply_again(const Graph& from, const NodeInfo& node, const std::vector<Value>& operands, Graph& to);

/// Edits a graph in place. Values are numbered as in the graph until `finish`.
class GraphEditor {
 public:
  explicit GraphEditor(Graph& graph);

  std::size_t node_count() const { return graph_.nodes_.size(); }
  /// With operands as redirected so far.
  const NodeInfo& node(NodeId id);
  const ValueInfo& info(ValueId id) const { return graph_.values_[id]; }
  /// The node that makes a value; null for inputs, parameters and constants.
  const NodeInfo* producer(ValueId id);
  const std::vector<ValueInfo>& values() const { return graph_.values_; }

  /// Everybody who reads `from` reads `to` instead: the same elements, made before the first of these readers.
  /// False, and nothing done, where that would change who owns a result: an output stays a computed value, and an update stays the value it
  /// is.
  bool redirect(ValueId from, ValueId to);
  /// New operands and attributes for a node; its results keep dtype and shape.
  void rewrite(NodeId id, std::vector<ValueId> inputs, const Attributes& attributes);
  /// The same with another op, at its newest version.
  void replace(NodeId id, tenon_op op, std::vector<ValueId> inputs, const Attributes& attributes = {});
  /// A new node of one operand, run before node `before`; its result looks like the operand.
  ValueId insert(NodeId before, tenon_op op, ValueId input);
  /// The same with several operands, and a result that may look different.
  ValueId insert(NodeId before, tenon_op op, std::vector<ValueId> inputs, DType dtype, const Shape& shape,
                 const Attributes& attributes = {});
  /// A computed value is made in another dtype from now on; those who read it, outputs and updates included, read a Cast to the dtype that
  /// it was, right behind its maker. Returns the value as it is made.
  ValueId recast(ValueId result, DType dtype);
  /// A computed value gets a maker of its own, of one result, in front of the node that makes it now and does so no longer. That one's
  /// operands are the caller's to rewrite.
  void remake(ValueId result, tenon_op op, std::vector<ValueId> inputs, const Attributes& attributes = {});
  /// A parameter or constant becomes a constant of these elements; an undefined tensor: of none.
  void set_constant(ValueId id, const Tensor& value);
  /// A new constant.
  ValueId add_constant(const Tensor& value);
  /// A computed value that is neither output nor update becomes a parameter of its own name.
  void make_parameter(ValueId id);
  /// Update number i gives its parameter another value, of the same dtype and shape.
  void set_update(std::size_t i, ValueId value) { graph_.updates_[i].value = value; }
  /// A computed value becomes a constant. False, and nothing done, for an output or an update.
  bool make_constant(ValueId id, const Tensor& value);

  /// Puts inserted nodes in their places, and redirections into operands, outputs and updates; values keep their numbers, nodes do not. The
  /// editor is done.
  void weave();
  /// Drops what is not needed any more and numbers the rest anew. The editor is done.
  void finish();

 private:
  ValueId resolve(ValueId id) const;
  ValueInfo& detach(ValueId id);
  ValueId append(ValueInfo info);
  NodeInfo made_for(NodeId owner, tenon_op op, std::vector<ValueId> inputs, const Attributes& attributes);
  void drop_dead();
  void renumber(const std::vector<bool>& live_values, const std::vector<bool>& live_nodes);

  Graph& graph_;
  std::vector<ValueId> target_;  ///< per value: where its readers look
  std::vector<bool> is_output_, is_update_;
  std::vector<std::pair<NodeId, NodeInfo>> inserted_;  ///< with the node that each comes before; node_count(): after all
};

}  // namespace tenon::graph
