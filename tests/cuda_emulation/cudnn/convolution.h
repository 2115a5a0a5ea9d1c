// SPDX-License-Identifier: Apache-2.0
// convolution.h - parses an operation graph of the emulated cuDNN: a convolution and its addends.
#pragma once

#include <optional>
#include <vector>

#include "descriptors.h"

namespace tenon::emulation {

struct Tensor {
  std::int64_t id = 0, dimensions[4] = {}, strides[4] = {}, alignment = 1;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  bool is_virtual = false;
};

struct Convolution {
  cudnnBackendDescriptorType_t operation{};
  Tensor x, w, y;
  std::int64_t strides[2], dilations[2], before[2], after[2];
  cudnnDataType_t compute{};
  std::vector<Tensor> addends;
  Tensor made;  ///< the tensor that is stored

  std::int64_t groups() const { return x.dimensions[1] / w.dimensions[1]; }
  bool channels_last() const { return x.strides[1] == 1 && x.dimensions[1] > 1; }
};

/// Returns why a graph is not supported, or NULL with `out` filled in.
const char* read(const Object& graph, Convolution& out);

}  // namespace tenon::emulation
