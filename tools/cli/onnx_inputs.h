// SPDX-License-Identifier: Apache-2.0
// cli/onnx_inputs.h - the inputs of an ONNX model from the command line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <tenon/onnx.h>

namespace CLI {
class App;
}

namespace tenon::cli {

/// Numbers in [-1, 1), integers and bools that are 0 or 1, which are indices of every axis of two elements.
Tensor random_input(DType dtype, const Shape& shape, std::mt19937_64& random);

/// --input and --shape.
class OnnxInputs {
 public:
  /// `shape_sets`: how often --shape may name an input; the k-th time belongs to the k-th set of shapes.
  void add_to(CLI::App& command, std::size_t shape_sets = 1);
  /// Whether there is an --input or a --shape.
  bool given() const { return !inputs_.empty() || !shapes_.empty(); }
  /// The number of sets of shapes, at least 1.
  std::size_t shape_sets() const;
  /// A tensor for each input of the model: from its file, else random. Its shape is that of the set, or of an earlier one; dimensions that
  /// neither the file nor --shape states are 1.
  /// Errors  unknown names; a shape or a file that does not fit; an input that --shape names more often than there may be sets.
  onnx::NamedTensors tensors(const onnx::Model& model, std::size_t set = 0, std::uint64_t seed = 1) const;
  /// "ids.npy" or "random": where the elements of an input are from.
  std::string source(const std::string& name) const;
  /// "x f32(1,3,224,224) random, ids i64(1,8) ids.npy": what tensors() gave.
  std::string str(const onnx::Model& model, const onnx::NamedTensors& tensors) const;

 private:
  std::vector<std::string> inputs_, shapes_;
  std::size_t max_sets_ = 1;
  std::map<std::string, std::string> files() const;
  std::map<std::string, std::vector<Shape>> shapes() const;  ///< of each set
};

}  // namespace tenon::cli
