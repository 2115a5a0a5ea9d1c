// SPDX-License-Identifier: Apache-2.0
#include "onnx/bodies.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <vector>

#include <tenon/error.h>

#include "onnx/model_file.h"
#include "text/counted.h"

namespace tenon::onnx {

bool is_true(const Tensor& condition) {
  return condition.count() == 1 && *static_cast<const std::uint8_t*>(condition.raw()) != 0;
}

LoopBody::LoopBody(const NodeRecord& node, const GraphRecord& body)
    : graph(body), carried(node.inputs.size() > 2 ? node.inputs.size() - 2 : 0) {
  if (body.inputs.size() != carried + 2 || body.outputs.size() < carried + 1) {
    throw Error(fmt::format("the body: expected {} and at least {}, got {} and {}", counted(carried + 2, "input"),
                            counted(carried + 1, "output"), body.inputs.size(), body.outputs.size()));
  }
  scans = body.outputs.size() - 1 - carried;
}

Tensor empty_stack(const ValueRecord& declared) {
  const DType dtype = dtype_of(declared.type);
  std::vector<std::int64_t> dims = {0};
  for (const DimensionRecord& dimension : declared.shape) dims.push_back(std::max<std::int64_t>(dimension.size, 0));
  if (dtype == DType::none || !declared.ranked || dims.size() > Shape::max_rank) {
    throw Error(Status::unsupported,
                fmt::format("scan output '{}' of no iterations: expected a body that declares its type", declared.name));
  }
  return Tensor::empty(dtype, Shape(std::span(dims)));
}

}  // namespace tenon::onnx
