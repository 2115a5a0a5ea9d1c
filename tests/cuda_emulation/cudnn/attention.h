// SPDX-License-Identifier: Apache-2.0
// attention.h - operation graphs of the emulated cuDNN that consist of matrix products, reductions and pointwise operations: attention and
// its gradient.
#pragma once

#include "convolution.h"

namespace tenon::emulation {

/// The tensor that a descriptor describes.
Tensor tensor_of(const Object& object);

/// Why no fused engine takes a graph, or NULL. The engines want two products and a softmax between them, or five products, of 16-bit
/// operands that are aligned to 16 bytes and whose rows are multiples of them.
const char* refusal_of_attention(const Object& graph);

/// Runs the operations one after another in f64, rounding each tensor to its type. `pointer_of(tensor)` gives the memory of tensors that
/// are not virtual.
struct TensorPointer {
  std::int64_t id;
  void* data;
  double value;  ///< of a tensor that is passed by value
};
void run_operations(const Object& graph, const std::vector<TensorPointer>& pointers);

}  // namespace tenon::emulation
