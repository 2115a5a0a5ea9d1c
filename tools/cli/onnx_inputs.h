// SPDX-License-Identifier: Apache-2.0
// cli/onnx_inputs.h - the inputs of an ONNX model from the command line.
#pragma once

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
  void add_to(CLI::App& command);
  /// A tensor for each input of the model: from its file, else random. Dimensions that neither the file nor --shape states are 1.
  /// Errors  unknown names; a shape or a file that does not fit.
  onnx::NamedTensors tensors(const onnx::Model& model, std::uint64_t seed = 1) const;
  /// "x f32(1,3,224,224) random, ids i64(1,8) ids.npy": what tensors() gave.
  std::string str(const onnx::Model& model, const onnx::NamedTensors& tensors) const;

 private:
  std::vector<std::string> inputs_, shapes_;
  std::map<std::string, std::string> files() const;
  std::map<std::string, Shape> shapes() const;
};

}  // namespace tenon::cli
