// SPDX-License-Identifier: Apache-2.0
// onnx/operand.h - a value of an ONNX graph while it is imported.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <tenon/graph.h>
#include <tenon/tensor.h>

namespace tenon::onnx {

struct Recipe;

/// A value of an ONNX graph: absent, a tensor, or a list of them for the type sequence. Cheap to copy.
///
/// A tensor is in the Tenon graph, or its elements are known while that graph is made, or both. It is known if it follows from constants
/// and shapes; nodes of which all operands are known are evaluated on the host and leave no node behind. Weights (floating initializers of
/// more than one element) are parameters of the graph and stay trainable, as does what is computed from them: the graph computes it, and
/// `recipe` says how to evaluate it if a rule asks for its elements.
struct Operand {
  enum class Kind : std::uint8_t {
    absent,
    tensor,
    list,
    failed,  ///< of a node that cannot be imported, which has been reported
  };
  Kind kind = Kind::absent;
  Value value = {};   ///< in the graph; absent if it has not been needed there
  Tensor known = {};  ///< dense, on the host; undefined if it has not been evaluated
  std::shared_ptr<const Recipe> recipe = {};
  std::vector<Operand> list = {};  ///< of a sequence; an optional is its element, or absent

  Operand() = default;
  Operand(Value v) : kind(v.present() ? Kind::tensor : Kind::absent), value(v) {}
  Operand(Tensor elements) : kind(Kind::tensor), known(std::move(elements)) {}
  static Operand of(std::vector<Operand> elements) {
    Operand operand;
    operand.kind = Kind::list;
    operand.list = std::move(elements);
    return operand;
  }
  bool is_absent() const { return kind == Kind::absent; }
  bool is_known() const { return known.defined(); }
  DType dtype() const { return value.present() ? value.dtype() : known.dtype(); }
  Shape shape() const { return value.present() ? value.shape() : known.shape(); }
};

}  // namespace tenon::onnx
