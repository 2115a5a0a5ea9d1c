// SPDX-License-Identifier: Apache-2.0
// onnx/export/exporter.h - makes the records of an ONNX model of a Tenon graph.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tenon/graph.h>
#include <tenon/onnx.h>

#include "onnx/export/node.h"
#include "onnx/export/writer.h"

namespace tenon::onnx::exporting {

inline constexpr const char* fixed_batch_remedy = "export with a fixed batch size (ExportOptions::batch, --batch)";

/// A graph at one batch size.
struct GraphAtBatch {
  const Graph& graph;
  std::int64_t batch = 0;
};

/// Exports one graph once: each node by its rule, in order, those left out that no output needs. What ONNX lacks is collected, with the
/// nodes that do not depend on it, and reported in one error.
class Exporter {
 public:
  /// Keeps references. `other` is the graph at another batch size: sizes that differ are multiples of the batch, which the file leaves
  /// open.
  Exporter(const GraphAtBatch& graph, const std::optional<GraphAtBatch>& other, const ParameterValues& values,
           const ExportOptions& options);

  /// The records; valid while the exporter lives.
  /// Errors  of all nodes, with op and name; names that are not unique; another number of names than inputs or outputs.
  ModelRecord run();

  // For Node.

  Writer& writer() { return writer_; }
  const Graph& graph() const { return graph_.graph; }
  /// The value in the ONNX graph.
  Term term(ValueId id);
  void set(ValueId id, const Term& term);
  bool is_read(ValueId id) const { return read_[id]; }
  Sizes sizes(ValueId id) const;
  /// The batch size as i64 (1).
  Term batch();

 private:
  struct Failed {};  ///< a value that an earlier problem left without a term
  void compare_graphs() const;
  void find_read_values();
  /// Claims all names that users see.
  void claim_names();
  void add_inputs();
  void export_node(const NodeInfo& node);
  void apply_rule(Node& node) const;
  /// Gives results that this node computes their final names, `first` being its first ONNX node.
  void name_results(const NodeInfo& node, std::size_t first);
  Term parameter(ValueId id);
  Term constant(ValueId id);
  /// The value with its elements, one for all, broadcast to a shape that depends on the batch size.
  Term filled_constant(ValueId id);
  void add_outputs();
  ValueRecord record(std::string_view name, ValueId id);

  GraphAtBatch graph_;
  std::optional<GraphAtBatch> other_;
  const ParameterValues& values_;
  const ExportOptions& options_;
  Writer writer_;
  std::vector<Term> terms_;  ///< by ValueId
  std::vector<bool> read_;   ///< by ValueId: an output or a node that an output needs reads it
  std::vector<std::string_view> input_names_, output_names_;
  std::vector<ValueRecord> inputs_, outputs_;
  Term batch_;
  std::vector<std::string> problems_;
};

}  // namespace tenon::onnx::exporting
