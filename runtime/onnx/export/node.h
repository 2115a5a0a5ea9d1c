// SPDX-License-Identifier: Apache-2.0
// onnx/export/node.h - a node of a Tenon graph while it is exported: what a rule reads and writes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenon/graph.h>

#include "onnx/export/attributes.h"
#include "onnx/export/writer.h"

namespace tenon::onnx::exporting {

class Exporter;

/// A size of a dimension: `count`, or `count` times the batch size.
struct Size {
  std::int64_t count = 0;
  bool times_batch = false;
  bool operator==(const Size&) const = default;
};
using Sizes = std::vector<Size>;

/// Operands, attributes and results of one node. A rule reads operands and attributes, adds ONNX nodes, and sets the results that something
/// reads. Indices are those of the op's line in ops.def.
class Node {
 public:
  Node(Exporter& exporter, const NodeInfo& info);

  const NodeInfo& info() const { return info_; }
  std::int64_t opset() const;
  template <class Struct>
  const Struct& attributes() const {
    return info_.attributes.as<Struct>();
  }

  // Operands.

  std::size_t input_count() const { return info_.inputs.size(); }
  bool has_input(std::size_t i) const { return i < info_.inputs.size() && info_.inputs[i] != no_id; }
  /// Operand i; without a name if it is absent.
  Term input(std::size_t i) const;
  std::vector<Term> inputs() const;
  /// Operand i, as f32 if it has 16 bits: what several ONNX nodes compute is rounded once.
  Term wide_input(std::size_t i);
  /// Operand i with another shape; a constant with it if it is one.
  Term reshaped_input(std::size_t i, const Sizes& sizes);
  /// Errors  a size that is no multiple of the batch size but depends on it.
  Sizes input_sizes(std::size_t i) const;
  std::size_t rank(std::size_t i) const { return input_sizes(i).size(); }

  // Results.

  std::size_t output_count() const { return info_.outputs.size(); }
  /// True if something reads result i.
  bool needs_output(std::size_t i) const;
  DType output_dtype(std::size_t i = 0) const;
  Sizes output_sizes(std::size_t i = 0) const;
  /// Sets result i, cast to its dtype.
  void output(std::size_t i, Term term);

  // What a rule adds to the ONNX graph.

  /// A node with one result, by default of the dtype of its first operand.
  Term op(std::string_view name, std::vector<Term> inputs, std::vector<AttributeRecord> attributes = {}, DType result = DType::none);
  /// A node with results of these dtypes; DType::none: the result is left out.
  std::vector<Term> op_with_results(Operator op, std::vector<Term> inputs, std::vector<AttributeRecord> attributes,
                                    const std::vector<DType>& results);
  Term cast(Term term, DType dtype);
  Term constant(const Tensor& tensor);
  Term scalar(DType dtype, double value) { return constant(Tensor::full(dtype, {}, value)); }
  /// i64 (n).
  Term integers(const std::vector<std::int64_t>& values);
  /// A shape as i64 (rank): a constant, or computed from the batch size.
  Term shape(const Sizes& sizes);
  Term reshape(Term term, const Sizes& sizes);
  Term transpose(Term term, const std::vector<std::int64_t>& permutation);
  /// `term`, which has the shape `from`, broadcast to `to`.
  Term expand(Term term, const Sizes& from, const Sizes& to);
  /// Pads dimension i by (before, after) widths[i] with the value.
  Term pad(Term term, const std::vector<std::pair<std::int64_t, std::int64_t>>& widths, double value = 0,
           std::string_view mode = "constant");

  /// Sizes that do not depend on the batch size. Errors  `what` depends on it.
  std::vector<std::int64_t> fixed(const Sizes& sizes, const std::string& what) const;
  std::int64_t fixed(const Size& size, const std::string& what) const { return fixed(Sizes{size}, what)[0]; }
  /// Throws UNSUPPORTED; the exporter names the node.
  [[noreturn]] void fail(const std::string& text) const;

 private:
  Exporter& exporter_;
  const NodeInfo& info_;
};

}  // namespace tenon::onnx::exporting
