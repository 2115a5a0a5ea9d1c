// SPDX-License-Identifier: Apache-2.0
#include "layers/image.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

namespace tenon::layers {
namespace {

constexpr std::int64_t max_size = 1 << 20;

std::string expected_sizes(std::size_t dims, std::int64_t lowest) {
  return fmt::format("an integer of at least {}{}", lowest, dims == 1 ? "" : ", or [height, width]");
}

Sizes read_sizes(const yaml::Value& value, std::size_t dims, std::int64_t lowest) {
  const yaml::Range<std::int64_t> range{lowest, max_size};
  Sizes sizes;
  if (value.is_scalar()) {
    sizes.values.assign(dims, value.as_integer(range));
    return sizes;
  }
  const std::string expected = expected_sizes(dims, lowest);
  for (const yaml::Value& item : value.items(expected.c_str())) sizes.values.push_back(item.as_integer(range));
  if (sizes.values.size() != dims) value.fail(fmt::format("has {} sizes; expected {}", sizes.values.size(), expected));
  return sizes;
}

}  // namespace

Sizes read_sizes(LayerKeys& keys, const char* key, std::size_t dims) {
  Sizes sizes;
  keys.attempt([&] { sizes = read_sizes(keys.require_value(key, expected_sizes(dims, 1).c_str()), dims, 1); });
  return sizes;
}

Sizes read_sizes(LayerKeys& keys, const char* key, std::size_t dims, const Sizes& default_sizes, std::int64_t lowest) {
  const auto value = keys.find(key);
  return value && !value->is_null() ? read_sizes(*value, dims, lowest) : default_sizes;
}

Padding read_padding(LayerKeys& keys, std::size_t dims) {
  Padding padding;
  const auto value = keys.find("padding");
  if (!value || value->is_null()) return padding;
  const std::string expected = dims == 1 ? "same, valid, an integer of at least 0 or [before, after]"
                                         : "same, valid, an integer of at least 0, [height, width] or [top, left, bottom, right]";
  const yaml::Range<std::int64_t> range{0, max_size};
  if (value->is_scalar()) {
    const std::string text = value->as_text();
    if (text == "same") return Padding::same();
    if (text == "valid") return padding;
    if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos) value->fail_expected(expected);
    const std::int64_t width = value->as_integer(range);
    padding.sides.assign(dims, {width, width});
    return padding;
  }
  std::vector<std::int64_t> list;
  for (const yaml::Value& item : value->items(expected.c_str())) list.push_back(item.as_integer(range));
  if (dims == 1 && list.size() == 2) {
    padding.sides = {{list[0], list[1]}};
  } else if (dims == 2 && list.size() == 2) {
    padding.sides = {{list[0], list[0]}, {list[1], list[1]}};
  } else if (dims == 2 && list.size() == 4) {
    padding.sides = {{list[0], list[2]}, {list[1], list[3]}};
  } else {
    value->fail(fmt::format("has {} numbers; expected {}", list.size(), expected));
  }
  return padding;
}

void expect_image(LayerBuilder& builder, const Shape& shape, std::size_t dims) {
  const bool line = dims == 1 && shape.rank() == 4 && shape[2] == 1;
  builder.expect_channels_first(shape);
  if (shape.rank() == dims + 2 || line) return;
  std::string hint;
  if (shape.rank() == dims + 1) {
    std::vector<std::int64_t> one{1};
    for (std::size_t i = 1; i < shape.rank(); ++i) one.push_back(shape[i]);
    hint = fmt::format("; for one channel, put reshape: {{shape: [{}]}} before it", fmt::join(one, ", "));
  }
  builder.fail(fmt::format("expects (batch, channels, {}), got {}{}", dims == 1 ? "length" : "height, width", shape.str(), hint));
}

std::vector<std::int64_t> sizes_of(LayerBuilder& builder, const Sizes& sizes, std::size_t dims) {
  std::vector<std::int64_t> each = sizes.values;
  if (each.size() == 1) each.resize(dims, each[0]);
  if (!each.empty() && each.size() != dims) {
    builder.fail(fmt::format("expects one size for each of {} spatial dimensions, got {}", dims, each.size()));
  }
  return each;
}

std::vector<std::int64_t> kernel_of(LayerBuilder& builder, const Sizes& sizes, std::size_t dims) {
  if (sizes.values.empty()) builder.fail(fmt::format("expects one size for each of {} spatial dimensions, got none", dims));
  return sizes_of(builder, sizes, dims);
}

}  // namespace tenon::layers
