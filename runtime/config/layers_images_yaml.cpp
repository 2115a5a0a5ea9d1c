// SPDX-License-Identifier: Apache-2.0
// model.yaml: convolution, pooling and resizing layers.
#include "config/layers_yaml.h"

#include <fmt/format.h>

namespace tenon::config {
namespace {

using Kind = LayerDefinition::Kind;

constexpr Range<std::int64_t> sizes{1, 1 << 20};

std::string expected_sizes(std::size_t dims) {
  return dims == 1 ? "an integer of at least 1" : "an integer of at least 1, or [height, width]";
}

/// Reads one number for all dimensions, or one for each.
std::vector<std::int64_t> read_sizes(const Value& value, std::size_t dims) {
  if (value.is_scalar()) return std::vector<std::int64_t>(dims, value.as_integer(sizes));
  std::vector<std::int64_t> list;
  for (const Value& item : value.items(expected_sizes(dims).c_str())) list.push_back(item.as_integer(sizes));
  if (list.size() != dims) value.fail(fmt::format("has {} sizes; expected {}", list.size(), expected_sizes(dims)));
  return list;
}

void read_sizes_if_given(Section& section, const char* key, std::size_t dims, std::vector<std::int64_t>& out_sizes) {
  if (const auto value = section.find(key); value && !value->is_null()) out_sizes = read_sizes(*value, dims);
}

/// Reads "same", "valid", one number for all sides, one for each dimension, or one for each side.
void read_padding(Section& section, std::size_t dims, LayerDefinition& out_layer) {
  const auto value = section.find("padding");
  if (!value || value->is_null()) return;
  WindowDefinition& window = out_layer.window;
  const std::string expected = dims == 1 ? "same, valid, an integer of at least 0 or [before, after]"
                                         : "same, valid, an integer of at least 0, [height, width] or [top, left, bottom, right]";
  const Range<std::int64_t> range{0, 1 << 20};
  if (value->is_scalar()) {
    const std::string text = value->as_text();
    if (text == "same") window.same = true;
    if (text == "same" || text == "valid") return;
    if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos) value->fail_expected(expected);
    const std::int64_t width = value->as_integer(range);
    window.padding.assign(dims, {width, width});
    return;
  }
  std::vector<std::int64_t> list;
  for (const Value& item : value->items(expected.c_str())) list.push_back(item.as_integer(range));
  if (dims == 1 && list.size() == 2) {
    window.padding = {{list[0], list[1]}};
  } else if (dims == 2 && list.size() == 2) {
    window.padding = {{list[0], list[0]}, {list[1], list[1]}};
  } else if (dims == 2 && list.size() == 4) {
    window.padding = {{list[0], list[2]}, {list[1], list[3]}};
  } else {
    value->fail(fmt::format("has {} numbers; expected {}", list.size(), expected));
  }
}

std::size_t dims_of(Kind kind) {
  return kind == Kind::conv1d || kind == Kind::max_pool1d || kind == Kind::average_pool1d ? 1 : 2;
}

void read_convolution(Section& section, const LayerContext& context, LayerDefinition& out_layer) {
  const std::size_t dims = dims_of(out_layer.kind);
  WindowDefinition& window = out_layer.window;
  if (out_layer.kind == Kind::depthwise_conv2d) {
    out_layer.units = section.get<std::int64_t>("multiplier", 1, from_one);
  } else {
    out_layer.units = section.require<std::int64_t>("filters", "an integer of at least 1", from_one);
  }
  window.size = read_sizes(section.require_value("kernel_size", expected_sizes(dims).c_str()), dims);
  read_sizes_if_given(section, "strides", dims, window.strides);
  read_padding(section, dims, out_layer);
  read_sizes_if_given(section, "dilation", dims, window.dilation);
  if (out_layer.kind != Kind::depthwise_conv2d) window.groups = section.get<std::int64_t>("groups", 1, from_one);
  if (out_layer.kind == Kind::conv2d_transpose) {
    if (const auto value = section.find("output_padding"); value && !value->is_null()) {
      if (value->is_scalar()) {
        window.output_padding.assign(dims, value->as_integer({0, 1 << 20}));
      } else {
        for (const Value& item : value->items("an integer of at least 0, or [height, width]")) {
          window.output_padding.push_back(item.as_integer({0, 1 << 20}));
        }
        if (window.output_padding.size() != dims) value->fail_expected("an integer of at least 0, or [height, width]");
      }
    }
  }
  if (const auto activation = section.find("activation")) read_activation(*activation, out_layer);
  read_weights(section, context.preset, out_layer);
}

void read_pool(Section& section, const LayerContext&, LayerDefinition& out_layer) {
  const std::size_t dims = dims_of(out_layer.kind);
  WindowDefinition& window = out_layer.window;
  window.size = read_sizes(section.require_value("pool_size", expected_sizes(dims).c_str()), dims);
  read_sizes_if_given(section, "strides", dims, window.strides);
  read_padding(section, dims, out_layer);
  window.ceil_mode = section.get<bool>("ceil_mode", false);
  if (out_layer.kind == Kind::average_pool1d || out_layer.kind == Kind::average_pool2d) {
    window.count_include_pad = section.get<bool>("count_include_pad", true);
  } else {
    read_sizes_if_given(section, "dilation", dims, window.dilation);
  }
}

void read_nothing(Section&, const LayerContext&, LayerDefinition&) {}

void read_adaptive(Section& section, const LayerContext&, LayerDefinition& out_layer) {
  const Value size = section.require_value("size", "an integer of at least 1, or [height, width]");
  // The number of dimensions is not known until the model is built: one number stands for all of them.
  out_layer.window.size = size.is_scalar() ? read_sizes(size, 1) : read_sizes(size, 2);
}

void read_upsample(Section& section, const LayerContext&, LayerDefinition& out_layer) {
  out_layer.window.size = {2, 2};
  read_sizes_if_given(section, "size", 2, out_layer.window.size);
  static const std::vector<Choice<bool>> kinds = {{"nearest", false}, {"bilinear", true}};
  out_layer.bilinear = section.choice("interpolation", false, kinds);
}

void read_pad_channels(Section& section, const LayerContext&, LayerDefinition& out_layer) {
  out_layer.units = section.require<std::int64_t>("channels", "an integer of at least 1", from_one);
}

constexpr LayerReader readers[] = {
    {Kind::conv1d, read_convolution},
    {Kind::conv2d, read_convolution},
    {Kind::depthwise_conv2d, read_convolution},
    {Kind::conv2d_transpose, read_convolution},
    {Kind::max_pool1d, read_pool},
    {Kind::max_pool2d, read_pool},
    {Kind::average_pool1d, read_pool},
    {Kind::average_pool2d, read_pool},
    {Kind::global_average_pool, read_nothing},
    {Kind::global_max_pool, read_nothing},
    {Kind::adaptive_average_pool, read_adaptive},
    {Kind::upsample2d, read_upsample},
    {Kind::pad_channels, read_pad_channels},
};

}  // namespace

std::span<const LayerReader> image_layer_readers() {
  return readers;
}

}  // namespace tenon::config
