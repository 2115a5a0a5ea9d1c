// SPDX-License-Identifier: Apache-2.0
// onnx/export/rules/window.cpp - convolutions and windows of images (N, C, d...).
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "onnx/export/rules.h"
#include "onnx/export/rules/scatter.h"

namespace tenon::onnx::exporting {
namespace {

using List = std::vector<std::int64_t>;
using Widths = std::vector<std::pair<std::int64_t, std::int64_t>>;

List first(const std::int64_t* values, std::size_t count) {
  return {values, values + count};
}
List joined(List before, const List& after) {
  before.insert(before.end(), after.begin(), after.end());
  return before;
}

std::int64_t product(const List& list) {
  std::int64_t result = 1;
  for (const std::int64_t size : list) result *= size;
  return result;
}

/// The spatial sizes of an image.
List spatial(Node& node, const Sizes& sizes) {
  return node.fixed({sizes.begin() + 2, sizes.end()}, "a spatial size");
}

/// The attributes of a convolution whose filters are operand `filters`.
std::vector<AttributeRecord> conv_attributes(Node& node, std::size_t filters = 1) {
  const auto& attributes = node.attributes<tenon_attributes_conv>();
  const List kernel = spatial(node, node.input_sizes(filters));
  const std::size_t n = kernel.size();
  return {integers("kernel_shape", kernel), integers("strides", first(attributes.strides, n)),
          integers("dilations", first(attributes.dilations, n)), integer("group", attributes.groups),
          integers("pads", joined(first(attributes.pads_before, n), first(attributes.pads_after, n)))};
}

void conv(Node& node) {
  node.output(0, node.op("Conv", node.inputs(), conv_attributes(node)));
}

void conv_integer(Node& node) {
  node.output(0, node.op("ConvInteger", node.inputs(), conv_attributes(node), DType::i32));
}

void qlinear_conv(Node& node) {
  node.output(0, node.op("QLinearConv", node.inputs(), conv_attributes(node, 3), node.output_dtype()));
}

/// Also ConvInputGrad, which is ConvTranspose without a bias. output_padding is what the result's size has beyond the windows.
void conv_transpose(Node& node) {
  const auto& attributes = node.attributes<tenon_attributes_conv>();
  std::vector<AttributeRecord> records = conv_attributes(node);
  const List from = spatial(node, node.input_sizes(0)), to = spatial(node, node.output_sizes()), kernel = records[0].integers;
  List rest;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::int64_t covered = (from[i] - 1) * attributes.strides[i] + (kernel[i] - 1) * attributes.dilations[i] + 1;
    rest.push_back(to[i] - covered + attributes.pads_before[i] + attributes.pads_after[i]);
  }
  records.push_back(integers("output_padding", rest));
  node.output(0, node.op("ConvTranspose", node.inputs(), records));
}

// ---------------------------------------------------------------- windows as columns

/// For each place in a kernel and each window: the index of the element in the flattened padded image of these sizes. (kernel, windows)
Tensor window_indices(const tenon_attributes_window& attributes, const List& sizes) {
  const std::size_t n = sizes.size();
  List kernel = first(attributes.kernel, n), windows;
  for (std::size_t i = 0; i < n; ++i) {
    windows.push_back((sizes[i] - (kernel[i] - 1) * attributes.dilations[i] - 1) / attributes.strides[i] + 1);
  }
  Tensor indices = Tensor::empty(DType::i64, {product(kernel), product(windows)});
  auto* element = indices.data<std::int64_t>();
  for (std::int64_t k = 0; k < product(kernel); ++k) {
    for (std::int64_t w = 0; w < product(windows); ++w) {
      std::int64_t index = 0, step = 1, k_rest = k, w_rest = w;
      for (std::size_t i = n; i-- > 0;) {
        index += step * (w_rest % windows[i] * attributes.strides[i] + k_rest % kernel[i] * attributes.dilations[i]);
        step *= sizes[i];
        k_rest /= kernel[i];
        w_rest /= windows[i];
      }
      *element++ = index;
    }
  }
  return indices;
}

/// The padding of an image (N, C, d...), and the spatial sizes with it.
std::pair<Widths, List> padding(const tenon_attributes_window& attributes, const List& sizes) {
  Widths widths(2);
  List padded = sizes;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    widths.emplace_back(attributes.pads_before[i], attributes.pads_after[i]);
    padded[i] += attributes.pads_before[i] + attributes.pads_after[i];
  }
  return {widths, padded};
}

Sizes with_spatial(const Sizes& sizes, const List& spatial) {
  Sizes all(sizes.begin(), sizes.begin() + 2);
  for (const std::int64_t size : spatial) all.push_back({size});
  return all;
}

/// Gather of the flattened image by constant indices: exact in every dtype.
void im2col(Node& node) {
  const auto& attributes = node.attributes<tenon_attributes_window>();
  const Sizes sizes = node.input_sizes(0);
  const auto [widths, padded] = padding(attributes, spatial(node, sizes));
  const Term image = node.reshape(node.pad(node.input(0), widths), with_spatial(sizes, {product(padded)}));
  const Term windows = node.op("Gather", {image, node.constant(window_indices(attributes, padded))}, {integer("axis", 2)});
  node.output(0, node.reshape(windows, node.output_sizes()));
}

/// Before opset 18 the additions of all columns to a flattened padded image of zeros.
void col2im(Node& node) {
  const auto& attributes = node.attributes<tenon_attributes_window>();
  const Sizes sizes = node.output_sizes();
  const List image = spatial(node, sizes);
  const std::size_t n = image.size();
  if (node.opset() >= 18) {
    node.output(0, node.op("Col2Im", {node.input(0), node.integers(image), node.integers(first(attributes.kernel, n))},
                           {integers("strides", first(attributes.strides, n)), integers("dilations", first(attributes.dilations, n)),
                            integers("pads", joined(first(attributes.pads_before, n), first(attributes.pads_after, n)))}));
    return;
  }
  const auto [widths, padded] = padding(attributes, image);
  const Tensor places = window_indices(attributes, padded);
  // Pixels first, since ScatterND writes slices of the first axis.
  const Term x = node.wide_input(0);
  const Term columns = node.transpose(node.reshape(x, with_spatial(sizes, {places.count()})), {2, 0, 1});
  const Term zeros = node.expand(node.scalar(x.dtype, 0), {}, {{product(padded)}, sizes[0], sizes[1]});
  const Term sums = scatter_slices(node, zeros, node.constant(places.reshape({places.count()})), columns, text("reduction", "add"));
  Term y = node.reshape(node.transpose(sums, {1, 2, 0}), with_spatial(sizes, padded));
  List starts, ends, axes;
  for (std::size_t i = 0; i < n; ++i) {
    starts.push_back(attributes.pads_before[i]);
    ends.push_back(attributes.pads_before[i] + image[i]);
    axes.push_back(static_cast<std::int64_t>(i) + 2);
  }
  if (padded != image) y = node.op("Slice", {y, node.integers(starts), node.integers(ends), node.integers(axes)});
  node.output(0, y);
}

// ---------------------------------------------------------------- pools

/// The attributes of a pool. The last, partial window of ceil_mode, which ONNX Runtime and ONNX count differently, is one that reaches into
/// padding.
struct Pool {
  List kernel, strides, dilations, before, after;
  bool extended = false;  ///< `after` is larger than the pool's

  std::vector<AttributeRecord> records() const {
    return {integers("kernel_shape", kernel), integers("strides", strides), integers("pads", joined(before, after))};
  }
};

Pool pool_of(Node& node) {
  const auto& attributes = node.attributes<tenon_attributes_window>();
  const List from = spatial(node, node.input_sizes(0)), to = spatial(node, node.output_sizes());
  const std::size_t n = from.size();
  Pool pool = {.kernel = first(attributes.kernel, n),
               .strides = first(attributes.strides, n),
               .dilations = first(attributes.dilations, n),
               .before = first(attributes.pads_before, n),
               .after = first(attributes.pads_after, n)};
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t end = (to[i] - 1) * pool.strides[i] + (pool.kernel[i] - 1) * pool.dilations[i] + 1;
    const std::int64_t missing = end - from[i] - pool.before[i];
    pool.extended |= missing > pool.after[i];
    pool.after[i] = std::max(pool.after[i], missing);
  }
  return pool;
}

void max_pool(Node& node) {
  const Pool pool = pool_of(node);
  std::vector<AttributeRecord> records = pool.records();
  records.push_back(integers("dilations", pool.dilations));
  const DType index = node.needs_output(1) ? DType::i64 : DType::none;
  const std::vector<Term> results = node.op_with_results({"MaxPool"}, {node.input(0)}, records, {node.output_dtype(), index});
  node.output(0, results[0]);
  if (index != DType::none) node.output(1, results[1]);
}

/// The padding that counts is made of zeros where a window reaches beyond it, which does not count.
void average_pool(Node& node) {
  const auto& attributes = node.attributes<tenon_attributes_window>();
  Pool pool = pool_of(node);
  Term x = node.input(0);
  bool counts = attributes.count_include_pad != 0;
  if (pool.extended && counts) {
    Widths widths(2);
    for (std::size_t i = 0; i < pool.kernel.size(); ++i) {
      widths.emplace_back(attributes.pads_before[i], attributes.pads_after[i]);
      pool.before[i] = 0;
      pool.after[i] -= attributes.pads_after[i];
    }
    x = node.pad(x, widths);
    counts = false;
  }
  std::vector<AttributeRecord> records = pool.records();
  records.push_back(integer("count_include_pad", counts ? 1 : 0));
  node.output(0, node.op("AveragePool", {x}, records));
}

}  // namespace

const std::vector<Rule>& window_rules() {
  static const std::vector<Rule> rules = {
      {TENON_OP_Conv, conv},
      {TENON_OP_ConvInteger, conv_integer},
      {TENON_OP_QLinearConv, qlinear_conv},
      {TENON_OP_ConvTranspose, conv_transpose},
      {TENON_OP_ConvInputGrad, conv_transpose},
      {TENON_OP_Im2Col, im2col},
      {TENON_OP_Col2Im, col2im},
      {TENON_OP_MaxPool, max_pool},
      {TENON_OP_AveragePool, average_pool},
  };
  return rules;
}

}  // namespace tenon::onnx::exporting
