// SPDX-License-Identifier: Apache-2.0
// onnx/importer.h - makes a graph of an ONNX model for inputs of known shapes.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <tenon/context.h>
#include <tenon/graph.h>
#include <tenon/onnx.h>
#include <tenon/tensor.h>

#include "onnx/model_file.h"
#include "onnx/node.h"
#include "onnx/operand.h"
#include "onnx/records.h"
#include "onnx/rules.h"
#include "onnx/weights.h"

namespace tenon::onnx {

/// Thrown where the elements of inputs are necessary that the import was not given.
struct ElementsNeeded {
  std::set<std::string> inputs;
};

/// Thrown where a node of the imported graph needs elements that the graph computes, with ImportOptions::segments.
struct ValuesNeeded {
  std::vector<std::string> values;  ///< names in the graph: what has to be computed first
  /// The results of the node, if it is run by itself: on the host, if their sizes depend on `values`, or body by body. Empty: the rest of
  /// the graph is made for the elements of `values`.
  std::vector<std::string> results;
  std::string problem;                           ///< the error of a model that cannot be run in segments
  const NodeRecord* control = nullptr;           ///< an If or Loop whose bodies are run; null: another operator
  std::map<std::string, Tensor> constants = {};  ///< of the graph, which it or its bodies read: the same in all runs
};

/// What the nodes of a function, or of the model, have in common: what their domains and attributes refer to.
struct Frame {
  std::vector<OpsetRecord> opsets;
  std::map<std::string_view, const AttributeRecord*> attributes;  ///< of the calling node, by name; null: absent
  std::shared_ptr<const Frame> caller;                            ///< keeps what `attributes` points to
  std::int64_t opset(std::string_view domain) const;              ///< 0: the domain is not imported
};

/// What a node calls: a domain and a name, which several functions may have with an overload each.
struct FunctionKey {
  std::string_view domain, name, overload;
  static FunctionKey of(const FunctionRecord& function) { return {function.domain, function.name, function.overload}; }
  static FunctionKey of(const NodeRecord& node) { return {node.domain, node.op, node.overload}; }
  auto operator<=>(const FunctionKey&) const = default;
};

/// How to evaluate a value on the host: a node with operands that have recipes or are known, or an input of the model.
struct Recipe {
  std::string input;  ///< of the model; the rest is of a node
  const NodeRecord* node = nullptr;
  const Rule* rule = nullptr;
  std::shared_ptr<const Frame> frame = {};
  std::vector<Operand> operands = {};
  std::size_t output = 0;
  bool needs_inputs = false;  ///< depends on an input of the model
  int depth = 0;              ///< longest path to a known operand
  /// of all results of the node, once evaluated
  std::shared_ptr<std::vector<Tensor>> results = {};
};

/// Runs a graph on the host; its inputs are `inputs`, in order. Results are dense and on the host.
using Evaluate = std::function<std::vector<Tensor>(const Graph& graph, std::span<const Tensor> inputs)>;
/// On the oracle, which has all ops, or else on `device`.
Evaluate evaluate_on_host(const Context& context, const Device& device);

struct ImportOptions {
  const GraphRecord* graph = nullptr;  ///< a body in the file; null: the model's graph
  /// of the graphs around a body, by name: weights and constants
  std::map<std::string, Tensor> constants = {};
  std::int64_t max_unrolled_iterations = 4096;
  /// The values of the graph that are its outputs; nodes and inputs that they do not depend on are left out. Empty: the file's outputs.
  std::vector<std::string> outputs = {};
  const LearningMode* mode = nullptr;  ///< null: nodes do what they state
  /// Throw ValuesNeeded where the elements of a computed value are necessary; else that is an error.
  bool segments = false;
  /// Also output what other nodes of the graph, or the file's outputs, need of the values that are computed.
  bool output_boundary = false;
};

/// The name of the input u64(2) that Importer::key adds to a graph.
inline constexpr const char* key_input = "training/key";

/// Imports a graph of a model once.
///
/// Nodes are imported in order, each by its rule. A node whose operands are all known, and none of them a weight, is evaluated on the host;
/// others add to the graph. `inputs` may also have values of the graph, which take the place of the nodes that compute them. What
/// Tenon cannot import is collected, with the nodes that do not depend on it, and reported in one error.
class Importer {
 public:
  Importer(const ModelFile& file, Weights& weights, const Evaluate& evaluate, const InputTypes& inputs, const ImportOptions& options,
           Graph& out_graph);

  /// Imports the graph. Throws ElementsNeeded, ValuesNeeded, or Error.
  void run();
  /// The weights that state() was called for, which a training step updates otherwise than by gradients.
  const std::set<std::string>& states() const { return states_; }

  // For Node.

  struct Scope;
  Graph& graph() const { return *target_.graph; }
  bool on_host() const { return target_.on_host; }
  const ModelFile& file() const { return file_; }
  Weights& weights() { return weights_; }
  const Frame& frame() const { return *frame_; }
  /// The operand as a value of graph().
  Value value_of(const Operand& operand);
  /// The operand's elements; undefined if they depend on what is not known. `needed`: ElementsNeeded instead, where inputs could give them.
  Tensor elements_of(const Operand& operand, bool needed);
  /// The results of a subgraph, whose nodes read `inputs` and the values around it.
  std::vector<Operand> run_graph(const GraphRecord& graph, std::vector<Operand> inputs);
  /// What the graph is imported for; null: nodes do what they state, as they do on the host.
  const LearningMode* mode() const { return target_.on_host ? nullptr : options_.mode; }
  /// The seed of a training step, an input of the graph.
  Value key();
  /// A weight that is state of the model, such as a running mean: its value after the nodes so far.
  Value state(const Operand& weight);
  /// The same weight is this from now on, and after the run. `next` has its dtype and shape.
  void set_state(const Operand& weight, Value next);
  /// Counts iterations that are unrolled. Errors  more than the options allow.
  void count_iterations(const Node& node, std::int64_t iterations);
  /// Ends the rule of an If or Loop whose bodies cannot be a part of the graph: they are run by themselves, or that is an error.
  [[noreturn]] void run_bodies(const Node& node, const std::string& problem) const;

 private:
  using ConstantKey = std::tuple<std::uint64_t, DType, std::string>;  ///< address, dtype, shape
  struct Target {
    Graph* graph = nullptr;
    bool on_host = false;
    std::vector<Tensor> inputs = {};  ///< of a graph on the host
    std::map<ConstantKey, Value> values = {};
  };

  void add_inputs();
  void import_nodes(const std::vector<NodeRecord>& nodes, Scope& scope);
  void import_node(const NodeRecord& node, Scope& scope);
  void inline_function(const FunctionRecord& function, const NodeRecord& node, std::vector<Operand> operands, Scope& scope);
  void apply_rule(const Rule& rule, const NodeRecord& node, std::int64_t opset, std::vector<Operand> operands, Scope& scope);
  std::vector<Operand> apply_vendor_op(const NodeRecord& node, const std::vector<Operand>& operands);
  /// The results of a node of constants, evaluated on the host; empty if others add to the graph.
  std::vector<Operand> fold(const Rule& rule, const NodeRecord& node, const std::vector<Operand>& operands);
  /// Notes how to evaluate the results on the host, if the operands can be.
  void add_recipes(const Rule& rule, const NodeRecord& node, const std::vector<Operand>& operands, std::vector<Operand>& results) const;
  /// The results on the host; empty if they are too large to be evaluated there.
  std::vector<Operand> evaluate(const Rule& rule, const NodeRecord& node, const std::vector<Operand>& operands, bool limited);
  Tensor evaluate(const Recipe& recipe);
  void set_results(const NodeRecord& node, std::vector<Operand> results, Scope& scope);
  void add_initializers(const GraphRecord& graph, Scope& scope);
  bool is_needed(std::string_view name) const { return !is_part_ || needed_.contains(name); }
  /// Whether some result of a node is to be computed.
  bool is_computed(const NodeRecord& node) const;
  /// The names of values that were computed, and are read by nodes that are not imported or by the file's outputs.
  std::vector<std::string> boundary(const Scope& scope) const;
  [[noreturn]] void need_values(const NodeRecord& node, const std::vector<Operand>& operands, const ElementsUnknown& unknown) const;
  /// The same for a node whose bodies are run by themselves.
  [[noreturn]] void need_bodies(const NodeRecord& node, const std::string& problem) const;
  /// Whether a node that needs computed elements may end the import.
  bool is_cut() const { return options_.segments && !target_.on_host && problems_.empty(); }

  const ModelFile& file_;
  const GraphRecord& graph_;  ///< which is imported
  Weights& weights_;
  const Evaluate& evaluate_;
  const InputTypes& input_types_;
  const ImportOptions& options_;
  Target target_;
  std::shared_ptr<const Frame> frame_;
  Scope* scope_ = nullptr;
  std::map<FunctionKey, const FunctionRecord*> functions_;
  std::map<std::string, Value> parameters_;
  std::set<std::string_view> fixed_;               ///< names of initializers and constants of the graph and those around it
  const NodeRecord* control_ = nullptr;            ///< the node of the graph that is imported, if its bodies can be run by themselves
  bool is_part_ = false;                           ///< the graph has other outputs or inputs than its record
  std::set<std::string_view> needed_;              ///< of a part: what its outputs depend on
  std::set<std::string_view> small_weights_;       ///< names of tensors that are weights even with one element
  std::set<std::string> states_;                   ///< names of weights
  std::map<std::string, Value> next_states_ = {};  ///< those that nodes have replaced
  Value key_;
  /// constants of the graph, with the tensors, which keep the addresses
  std::map<ConstantKey, std::pair<Tensor, Value>> constants_;
  std::vector<std::string> problems_;
  std::uint64_t nodes_ = 0;
  std::int64_t iterations_ = 0;
  int depth_ = 0;  ///< of functions and subgraphs
};

}  // namespace tenon::onnx
