// SPDX-License-Identifier: Apache-2.0
// onnx/source.h - an ONNX file whose graph becomes a part of other graphs: the layer `onnx` of a model that learns.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tenon/context.h>
#include <tenon/graph.h>
#include <tenon/onnx.h>

#include "onnx/importer.h"
#include "onnx/model_file.h"

namespace tenon::onnx {

/// A weight of a file that a graph reads.
struct SourceWeight {
  std::string name;       ///< in the file
  Tensor initial;         ///< its elements, on the host, of the dtype that the graph computes in
  bool is_state = false;  ///< a running statistic
};

/// What the nodes of a file are added to a graph for, and where their weights are.
struct SourcePass {
  const Context& context;  ///< on whose oracle what follows from shapes is computed
  DType dtype;             ///< of the weights: f32 or f64; narrower floating types of the file become this one
  Value key;               ///< u64(2), the seed of a training step; absent: inference
  /// Whether a weight gets a gradient. Dropout is left out if none does.
  std::function<bool(const std::string& weight)> learns;
  /// The value of a weight in the graph.
  std::function<Value(const SourceWeight&)> weight;
  /// Takes the value of a running statistic after a training step.
  std::function<void(const std::string& weight, Value next)> keep;
};

/// An ONNX file that is parsed once, and imported for each shape of its inputs.
/// Threads  one call at a time.
class Source {
 public:
  /// Errors  those of ModelFile::open; operators that cannot be imported among all of the file are errors of add_to.
  static std::shared_ptr<Source> open(const std::filesystem::path& path);

  const std::string& name() const { return file_->name(); }  ///< as in messages
  const std::vector<ValueType>& outputs() const { return report_.outputs; }
  /// The names of the values that nodes of the graph compute, in the order of the file.
  std::vector<std::string> values() const;
  /// The operator of the node that computes a value: "Softmax"; empty: none does.
  std::string operator_of(const std::string& value) const;
  /// The inputs that the values depend on, in the order of the file.
  std::vector<ValueType> inputs_of(std::span<const std::string> values) const;

  struct Added {
    std::vector<Value> outputs;
    std::uint64_t flops = 0;
  };
  /// Adds the nodes that `outputs` depend on to the graph, with these values in place of inputs_of(outputs), of any numeric dtype. The
  /// graph is the same for the same shapes, whatever `pass` is for, but for dropout and batch normalisation. Errors  an input whose
  /// elements determine shapes; f64 weights in a pass of f32; what cannot be imported.
  Added add_to(Graph& graph, const std::map<std::string, Value>& inputs, const std::vector<std::string>& outputs, const SourcePass& pass);

 private:
  explicit Source(std::shared_ptr<ModelFile> file);

  std::shared_ptr<ModelFile> file_;
  FileReport report_;
  Weights weights_;
};

}  // namespace tenon::onnx
