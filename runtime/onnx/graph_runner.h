// SPDX-License-Identifier: Apache-2.0
// onnx/graph_runner.h - runs a graph of an ONNX file for any inputs: the model's graph, or a body of one of its nodes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tenon/context.h>
#include <tenon/onnx.h>
#include <tenon/program.h>
#include <tenon/tensor.h>

#include "exec/program_cache.h"
#include "graph/patterns/recognize.h"
#include "onnx/importer.h"
#include "onnx/model_file.h"
#include "onnx/records.h"

namespace tenon::onnx {

/// What the graphs of a loaded file share: weights, programs and options.
struct LoadedFile {
  LoadedFile(const Context& c, std::shared_ptr<ModelFile> f, const LoadOptions& o)
      : context(c), options(o), file(std::move(f)), weights(file), programs(o.limits) {}

  Device device() const { return options.device.empty() ? context.default_device() : context.device(options.device); }

  Context context;
  LoadOptions options;
  std::shared_ptr<ModelFile> file;
  Weights weights;
  std::shared_ptr<ParameterStore> store = std::make_shared<ParameterStore>();
  graph::PatternCounts patterns;  ///< of the graph imported last
  exec::ProgramCache programs;
  exec::ProgramKey key;  ///< of the last call, its memory used again
};

/// Runs one graph of a file. Where values that it computes determine shapes, counts or branches, a run has segments, each with a program:
/// first for these values, then for the rest.
/// Threads  one call at a time, of all runners of a file.
class GraphRunner {
 public:
  /// `constants`: of the graphs around a body, by name. `loaded` outlives the runner.
  GraphRunner(LoadedFile& loaded, const GraphRecord& graph, std::map<std::string, Tensor> constants = {});

  /// The outputs in the order of the graph, valid until the next call of any runner of the file.
  const std::vector<Tensor>& run(const NamedTensors& inputs, const RunOptions& options);
  /// The same with results in memory of their own: `outputs`, in the order of the graph, has tensors that get them, and undefined ones that
  /// become new tensors.
  /// Errors  also: an output of another dtype or shape than the result.
  void run(const NamedTensors& inputs, std::span<Tensor> outputs, const RunOptions& options);
  /// The program for these inputs. Errors  the graph has to be run in segments.
  Program& bind(const InputTypes& inputs) { return find(inputs, Segments::refused); }
  /// The graph for these inputs, with its parameters created. Errors  those of bind.
  Graph to_graph(const InputTypes& inputs);
  /// The inputs, and computed values, that programs are made for the elements of, in the order in which they were found.
  const std::vector<std::string>& specialised() const { return specialised_; }

 private:
  enum class Segments : std::uint8_t { refused, allowed };

  /// Throws ElementsNeeded, and ValuesNeeded if segments are allowed. `outputs`: of a segment; empty: those of the graph.
  Graph import(const InputTypes& inputs, Segments segments, const std::vector<std::string>& outputs = {});
  template <class F>
  auto with_elements(const InputTypes& given, const F& f);
  Program& find(const InputTypes& given, Segments segments, const std::vector<std::string>& outputs = {});
  Program compile(const Graph& graph);
  void set_parameters(const Graph& graph);
  bool is_specialised(const std::string& input) const;

  /// Runs the program of the last segment.
  using RunLast = std::function<void(Program& program, std::span<const Tensor> inputs)>;
  void run(const NamedTensors& inputs, const RunOptions& options, const RunLast& run_last);
  void run_in_segments(NamedTensors values, const RunOptions& options, const RunLast& run_last);
  void run_to(Program& program, std::span<const Tensor> inputs, std::span<Tensor> outputs, const RunOptions& options) const;
  /// Adds the values of a segment, what others need of what was computed for them, and the results of its node.
  void run_segment(const ValuesNeeded& segment, NamedTensors& values, const RunOptions& options);
  /// Evaluates a node on the host that has as many results as its operands say.
  void evaluate_node(const ValuesNeeded& segment, NamedTensors& values);
  void run_branch(const ValuesNeeded& segment, NamedTensors& values, const RunOptions& options);
  void run_loop(const ValuesNeeded& segment, NamedTensors& values, const RunOptions& options);
  GraphRunner& body_of(const ValuesNeeded& segment, const GraphRecord& body);

  LoadedFile& loaded_;
  const GraphRecord& graph_;
  std::map<std::string, Tensor> constants_;
  std::vector<std::string> inputs_;  ///< names of the graph's inputs that are no initializers
  std::vector<std::string> specialised_;
  std::vector<ValuesNeeded> segments_;                                 ///< what is computed before the rest is imported, in this order
  std::map<const GraphRecord*, std::unique_ptr<GraphRunner>> bodies_;  ///< that are run by themselves
};

}  // namespace tenon::onnx
