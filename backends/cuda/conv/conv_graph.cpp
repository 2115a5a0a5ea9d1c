// SPDX-License-Identifier: Apache-2.0
#include "conv/conv_graph.h"

#include <algorithm>

namespace tenon::cuda {
namespace {

/// The operation and the tensor attributes of a convolution, by direction.
struct ConvAttributes {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t x, w, y, window, alpha, beta;
};
ConvAttributes attributes_of(ConvDirection direction) {
  switch (direction) {
    case ConvDirection::forward:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case ConvDirection::data_gradient:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    default:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
  }
}

/// Adds a cross-correlation or one of its gradients, alpha 1, beta 0, with sums in `compute`: y, dx or dw is computed from the other two.
void add_convolution(OperationGraph& graph, ConvDirection direction, const ConvShape& window, cudnnDataType_t compute, const Descriptor& x,
                     const Descriptor& w, const Descriptor& y) {
  Descriptor& convolution = graph.add(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  convolution.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, compute);
  convolution.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION);
  convolution.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, std::int64_t{2});
  convolution.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, window.pads_before);
  convolution.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, window.pads_after);
  convolution.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, window.dilations);
  convolution.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, window.strides);
  convolution.finalize("a convolution");

  const ConvAttributes names = attributes_of(direction);
  Descriptor& operation = graph.add(names.operation);
  operation.set(names.x, x);
  operation.set(names.w, w);
  operation.set(names.y, y);
  operation.set(names.window, convolution);
  if (compute == CUDNN_DATA_DOUBLE) {
    operation.set(names.alpha, CUDNN_TYPE_DOUBLE, 1.0);
    operation.set(names.beta, CUDNN_TYPE_DOUBLE, 0.0);
  } else {
    operation.set(names.alpha, CUDNN_TYPE_FLOAT, 1.0f);
    operation.set(names.beta, CUDNN_TYPE_FLOAT, 0.0f);
  }
  graph.append(operation, "the operation of a convolution");
}

GraphTensor tensor_of(const ConvProblem& problem, std::int64_t id, std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) {
  GraphTensor tensor{id, cudnn_type(problem.dtype), {n, c, h, w}, {c * h * w, h * w, w, 1}, problem.alignment_bytes};
  if (problem.channels_last) {
    const std::int64_t last[4] = {c * h * w, 1, w * c, c};
    std::copy(last, last + 4, tensor.strides);
  }
  return tensor;
}

}  // namespace

OperationGraph graph_of(const Cudnn& functions, const GraphTarget& target, const ConvProblem& p, bool adds) {
  const ConvShape& s = p.shape;
  const cudnnDataType_t compute = p.dtype == TENON_DTYPE_F64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  OperationGraph graph(functions);
  const GraphTensor x = tensor_of(p, graph_x, s.batch, s.channels, s.image[0], s.image[1]);
  const GraphTensor w = tensor_of(p, graph_w, s.filters, s.channels / s.groups, s.kernel[0], s.kernel[1]);
  const GraphTensor y = tensor_of(p, graph_y, s.batch, s.filters, s.result[0], s.result[1]);
  const GraphTensor& made = p.direction == ConvDirection::forward ? y : x;
  const bool has_bias = adds && p.bias, has_residual = adds && p.residual;
  GraphTensor between = made;  // virtual: never stored, so never rounded
  between.id = 0;
  between.type = compute;
  between.alignment_bytes = 16;
  const bool ends = !has_bias && !has_residual;
  const Descriptor& at_x = graph.tensor(p.direction == ConvDirection::data_gradient && !ends ? between : x);
  const Descriptor& at_w = graph.tensor(w);
  const Descriptor& at_y = graph.tensor(p.direction == ConvDirection::forward && !ends ? between : y);
  add_convolution(graph, p.direction, s, compute, at_x, at_w, at_y);
  const Descriptor* last = p.direction == ConvDirection::forward ? &at_y : &at_x;
  const auto then_add = [&](const GraphTensor& addend, bool is_last) {
    const Descriptor& b = graph.tensor(addend);
    const Descriptor& sum = graph.tensor(is_last ? made : between);
    graph.pointwise(CUDNN_POINTWISE_ADD, compute, *last, &b, sum);
    last = &sum;
  };
  if (has_bias) then_add(tensor_of(p, graph_bias, 1, made.dimensions[1], 1, 1), !has_residual);
  if (has_residual) {
    GraphTensor residual = made;
    residual.id = graph_residual;
    then_add(residual, true);
  }
  graph.finalize(target);
  return graph;
}

}  // namespace tenon::cuda
