// SPDX-License-Identifier: Apache-2.0
// onnx/export/writer.h - collects the records of an ONNX graph and what they view.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <tenon/tensor.h>

#include "onnx/records.h"

namespace tenon::onnx::exporting {

/// A value of the ONNX graph; without a name: an absent operand.
struct Term {
  std::string_view name = {};
  DType dtype = DType::none;
  bool present() const { return !name.empty(); }
};

/// An operator of an opset.
struct Operator {
  std::string_view name;
  std::string_view domain = {};
  std::int64_t version = 0;  ///< of a domain other than ai.onnx
};

/// Nodes, initializers and names of one graph. Records view texts and tensors that the writer keeps.
class Writer {
 public:
  explicit Writer(std::int64_t opset) : opset_(opset) {}

  std::int64_t opset() const { return opset_; }
  /// A view of the text that lives as long as the writer.
  std::string_view keep(std::string text) { return texts_.emplace_back(std::move(text)); }
  /// Takes a name for a value; false: it is taken.
  bool claim(const std::string& name) { return names_.insert(name).second; }
  /// Takes the name, or the first of name_1, name_2 ... that is free.
  std::string_view free_name(const std::string& wanted);

  /// Adds a node named below `scope`; one result for each dtype, where DType::none stands for one that is left out. Operands of a floating
  /// dtype that the operator does not take are cast to f32, and its results of that dtype are cast back.
  std::vector<Term> add(const std::string& scope, Operator op, std::vector<Term> inputs, std::vector<AttributeRecord> attributes,
                        const std::vector<DType>& results);
  /// An initializer under this name, which is claimed.
  Term initializer(std::string_view name, const Tensor& tensor);
  /// An initializer with these elements; small ones that are equal are one.
  Term constant(const Tensor& tensor, const std::string& name = "constant");
  /// i64 (n).
  Term integers(const std::vector<std::int64_t>& values);

  /// Number of nodes so far.
  std::size_t node_count() const { return nodes_.size(); }
  /// True if a node from index `first` on computes it, and it has no final name yet.
  bool can_rename(const Term& term, std::size_t first = 0) const;
  /// Gives a computed value its final name, which is claimed.
  void rename(const Term& term, std::string_view name) { final_names_[term.name] = name; }
  /// Its final name.
  std::string_view name_of(const Term& term) const;

  /// The versions of the domains other than ai.onnx that nodes have.
  const std::map<std::string_view, std::int64_t>& domains() const { return domains_; }
  /// The graph's nodes and initializers, with final names; the writer has to outlive it.
  GraphRecord finish();

 private:
  Term cast(const std::string& scope, const Term& term, DType dtype);

  std::int64_t opset_;
  std::deque<std::string> texts_;
  std::deque<Tensor> tensors_;
  std::unordered_set<std::string> names_, node_names_;
  std::unordered_map<std::string, std::uint32_t> suffixes_;  ///< the next one to try
  std::vector<NodeRecord> nodes_;
  std::vector<TensorRecord> initializers_;
  std::map<std::string_view, std::int64_t> domains_;
  std::unordered_map<std::string_view, std::size_t> producers_;  ///< of values, by name: index of the node
  std::unordered_map<std::string_view, std::string_view> final_names_;
  std::map<std::tuple<DType, std::string, std::string>, Term> constants_;  ///< by dtype, shape and bytes
};

}  // namespace tenon::onnx::exporting
