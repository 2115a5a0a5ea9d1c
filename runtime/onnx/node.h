// SPDX-License-Identifier: Apache-2.0
// onnx/node.h - a node of an ONNX graph while it is imported: what a rule reads and writes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/error.h>
#include <tenon/functions.h>
#include <tenon/graph.h>
#include <tenon/tensor.h>

#include "onnx/operand.h"
#include "onnx/records.h"

namespace tenon::onnx {

class Importer;

/// The error of a node that needs the elements of an operand, which are not known.
class ElementsUnknown : public Error {
 public:
  ElementsUnknown(const std::string& text, std::size_t of_operand, bool of_sizes)
      : Error(Status::unsupported, text), operand(of_operand), sizes_results(of_sizes) {}
  std::size_t operand;
  bool sizes_results;  ///< the sizes of results depend on them
};

/// What a graph is imported for that is a part of a model with training steps. Batch normalisation and dropout do what this says, whatever
/// mode their nodes state, and weights of one element are weights where they are operands such as a bias.
struct LearningMode {
  bool training = false;                                  ///< a training step; else inference
  std::function<bool(const std::string& weight)> learns;  ///< never empty
};

/// Operands, attributes and results of one node. A rule reads operands and attributes, applies ops of Tenon to the operands, and sets the
/// results. Indices of operands and results are those of the ONNX schema.
class Node {
 public:
  Node(Importer& importer, const NodeRecord& record, std::int64_t opset, std::vector<Operand> operands);

  /// The Tenon graph. While a node is evaluated on the host this is another graph than that of the model.
  Graph& graph() const;
  /// The version of the node's domain that the model (or function) imports.
  std::int64_t opset() const { return opset_; }
  std::string_view op() const { return record_.op; }
  const NodeRecord& record() const { return record_; }

  // Operands.

  /// Number of operands, counted to the last one that is given.
  std::size_t input_count() const { return operands_.size(); }
  bool has_input(std::size_t i) const { return i < operands_.size() && !operands_[i].is_absent(); }
  /// Operand i as a value of graph(). Errors: it is absent or a sequence.
  Value input(std::size_t i);
  /// The same; an absent Value for an absent operand.
  Value optional_input(std::size_t i) { return has_input(i) ? input(i) : Value(); }
  /// All operands, none of them absent.
  std::vector<Value> inputs();
  /// Operand i as it is: also a list. Errors: it is absent.
  const Operand& operand(std::size_t i) const;
  DType dtype(std::size_t i) const { return operand(i).dtype(); }
  Shape shape(std::size_t i) const { return operand(i).shape(); }
  std::int64_t rank(std::size_t i) const { return static_cast<std::int64_t>(shape(i).rank()); }

  /// The elements of operand i on the host, for operands that determine a shape, an axis, a count or a branch. Inputs of
  /// the model of at most 64 elements that they depend on are specialised: the program is made for their elements. Errors: they depend on
  /// other inputs of the model; the text names the operand and the inputs.
  Tensor known(std::size_t i);
  /// The same for operands whose elements determine the sizes of results, however many elements they have.
  Tensor known_to_size(std::size_t i);
  /// known(i) if no input of the model has to be specialised for it; else an undefined tensor. For rules that have a shorter form with a
  /// constant.
  Tensor known_if_constant(std::size_t i);
  /// known(i) of any integer or bool dtype, of rank 0 or 1.
  std::vector<std::int64_t> known_integers(std::size_t i);
  /// known(i) of any number dtype, of rank 0 or 1.
  std::vector<double> known_numbers(std::size_t i);
  /// The only element of known_integers(i), known_numbers(i).
  std::int64_t known_integer(std::size_t i);
  double known_number(std::size_t i);

  // Attributes. Those without a default are required: a node without them is an error.

  bool has(std::string_view name) const { return find(name) != nullptr; }
  std::int64_t integer(std::string_view name) const;
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  bool flag(std::string_view name, bool otherwise = false) const { return integer(name, otherwise ? 1 : 0) != 0; }
  double number(std::string_view name) const;
  double number(std::string_view name, double otherwise) const;
  std::string_view text(std::string_view name) const;
  std::string_view text(std::string_view name, std::string_view otherwise) const;
  /// Empty if the node does not have it.
  const std::vector<std::int64_t>& integers(std::string_view name) const;
  const std::vector<float>& numbers(std::string_view name) const;
  const std::vector<std::string_view>& texts(std::string_view name) const;
  /// The dense elements of a tensor attribute, on the host.
  Tensor tensor(std::string_view name) const;
  /// The same for an attribute of type sparse_tensor, with zeros.
  Tensor sparse_tensor(std::string_view name) const;
  /// The numbers of an attribute as f32 (n), on the host: the same tensor each time.
  Tensor numbers_tensor(std::string_view name) const;
  /// A graph attribute: a body or branch.
  const GraphRecord& subgraph(std::string_view name) const;
  /// The dtype of an attribute that holds a TensorProto.DataType. Errors: one that Tenon does not compute with.
  DType element_type(std::string_view name, DType otherwise) const;
  /// Resolves -rank <= axis < rank to 0 <= axis < rank. Errors: out of range.
  std::int64_t resolve_axis(std::int64_t axis, std::int64_t rank) const;

  // Results.

  /// Number of results, counted to the last one that is used.
  std::size_t output_count() const { return record_.outputs.size(); }
  /// True if result i has a name: something may read it.
  bool needs_output(std::size_t i) const { return i < record_.outputs.size() && !record_.outputs[i].empty(); }
  void output(std::size_t i, Operand operand);
  /// The results so far, one for each of the record's, absent where not set.
  std::vector<Operand>& results() { return results_; }

  // Control flow.

  /// The results of a graph attribute, whose nodes read `inputs` and the values of enclosing graphs.
  std::vector<Operand> run_subgraph(const GraphRecord& graph, std::vector<Operand> inputs);
  /// True while the node is evaluated on the host.
  bool on_host() const;
  /// The elements of a result of a subgraph; undefined if they are not known. `needed`: inputs of the model are specialised for it.
  Tensor known_of(const Operand& operand, bool needed);
  /// An element of a list, or a result of a subgraph, as a value of graph(). Errors: it is no tensor.
  Value value_of(const Operand& operand);
  /// Counts iterations that are unrolled into the graph. Errors: more than LoadOptions allow over the whole model.
  void count_iterations(std::int64_t iterations);
  /// Ends the rule of an If or Loop whose bodies cannot be a part of the graph, because it depends on computed values how often they run:
  /// in a model that is run in segments they are run one by one, otherwise that is the error unsupported(problem).
  [[noreturn]] void run_bodies(const std::string& problem) const;

  // Models that learn.

  /// What the graph is imported for; null: the node does what it states.
  const LearningMode* mode() const;
  /// Whether operand i is a weight.
  bool is_weight(std::size_t i) const;
  /// Whether operand i is a weight that gets a gradient.
  bool learns(std::size_t i) const;
  /// Operand i, a weight that is state of the model, such as a running mean: its value after earlier nodes.
  Value state(std::size_t i);
  /// The value of that state after the node, of its dtype and shape.
  void set_state(std::size_t i, Value next);
  /// The seed of a training step.
  Value key();

  // Errors.

  /// Throws UNSUPPORTED "<file>: node 'name' (Op-13): <text>".
  [[noreturn]] void unsupported(const std::string& text) const;
  /// Throws INVALID_ARGUMENT with the same beginning.
  [[noreturn]] void fail(const std::string& text) const;

  // Helpers that many rules use.

  /// A constant of rank 0.
  Value scalar(DType dtype, double value) { return constant(Tensor::full(dtype, {}, value)); }
  Value constant(const Tensor& tensor) { return graph().constant(tensor); }
  /// i64 (n).
  static Tensor integers_tensor(const std::vector<std::int64_t>& values) {
    return Tensor::of(values, {static_cast<std::int64_t>(values.size())});
  }

 private:
  Tensor known(std::size_t i, bool sizes_results);
  const AttributeRecord* find(std::string_view name) const;
  const AttributeRecord* find(std::string_view name, AttributeRecord::Type type) const;
  const AttributeRecord& require(std::string_view name, AttributeRecord::Type type) const;

  Importer& importer_;
  const NodeRecord& record_;
  std::int64_t opset_;
  std::vector<Operand> operands_;
  std::vector<Operand> results_;
};

/// How an op is imported from the version `since` of its domain on, until a later rule of the same op.
struct Rule {
  const char* op;
  std::int64_t since;
  void (*apply)(Node& node);
};

}  // namespace tenon::onnx
