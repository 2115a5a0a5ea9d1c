// SPDX-License-Identifier: Apache-2.0
#include "conv/conv_shape.h"

#include <initializer_list>
#include <limits>

namespace tenon::cuda {
namespace {

std::string list(std::initializer_list<std::int64_t> numbers) {
  std::string text;
  for (const std::int64_t number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}

}  // namespace

bool ConvShape::is_consistent() const {
  if (groups < 1 || channels % groups != 0 || filters % groups != 0) return false;
  for (const std::int64_t size : {batch, channels, filters, image[0], image[1], kernel[0], kernel[1], result[0], result[1]}) {
    if (size > std::numeric_limits<std::int32_t>::max()) return false;
  }
  for (int d = 0; d < 2; ++d) {
    const std::int64_t free = image[d] + pads_before[d] + pads_after[d] - dilations[d] * (kernel[d] - 1) - 1;
    if (strides[d] < 1 || dilations[d] < 1 || free < 0 || result[d] != free / strides[d] + 1) return false;
  }
  return true;
}

bool ConvShape::has_uneven_padding() const {
  return pads_before[0] != pads_after[0] || pads_before[1] != pads_after[1];
}

ConvShape conv_shape(const sdk::Operand& x, const sdk::Operand& w, const sdk::Operand& y, const tenon_attributes_conv& attributes,
                     bool channels_last) {
  ConvShape shape;
  shape.batch = x.shape[0];
  shape.channels = x.shape[channels_last ? x.rank - 1 : 1];
  shape.filters = w.shape[0];
  shape.groups = attributes.groups;
  const std::uint32_t first = channels_last ? 1 : 2;  // the first spatial dimension
  for (std::uint32_t d = 0; d < 2; ++d) {
    const bool is_line = x.rank == 3;
    if (is_line && d == 0) {
      shape.image[0] = shape.kernel[0] = shape.result[0] = shape.strides[0] = shape.dilations[0] = 1;
      continue;
    }
    const std::uint32_t from = is_line ? 0 : d;
    shape.image[d] = x.shape[first + from];
    shape.kernel[d] = w.shape[2 + from];
    shape.result[d] = y.shape[first + from];
    shape.strides[d] = attributes.strides[from];
    shape.dilations[d] = attributes.dilations[from];
    shape.pads_before[d] = attributes.pads_before[from];
    shape.pads_after[d] = attributes.pads_after[from];
  }
  return shape;
}

std::string text_of(const ConvShape& s) {
  return "x (" + list({s.batch, s.channels, s.image[0], s.image[1]}) + "), w (" +
         list({s.filters, s.channels / s.groups, s.kernel[0], s.kernel[1]}) + "), strides " + list({s.strides[0], s.strides[1]}) +
         ", pads " + list({s.pads_before[0], s.pads_before[1]}) + "-" + list({s.pads_after[0], s.pads_after[1]}) + ", dilations " +
         list({s.dilations[0], s.dilations[1]}) + ", groups " + std::to_string(s.groups);
}

}  // namespace tenon::cuda
