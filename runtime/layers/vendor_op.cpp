// SPDX-License-Identifier: Apache-2.0
// The layer of an op that only some backends have.
#include <tenon/vendor_ops.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>

#include "layers/rule.h"

namespace tenon::layers {
namespace {

std::optional<std::int64_t> integer(const yaml::Node& node) {
  std::int64_t value = 0;
  const char* const end = node.text.data() + node.text.size();
  const auto [stop, error] = std::from_chars(node.text.data(), end, value);
  return node.quoted || error != std::errc() || stop != end ? std::nullopt : std::optional(value);
}

/// A word such as `nan` is a text.
std::optional<double> number(const yaml::Node& node) {
  char* stop = nullptr;
  const double value = std::strtod(node.text.c_str(), &stop);
  const bool is_number = !node.quoted && !node.text.empty() && *stop == '\0' && node.text.find_first_of("0123456789") != std::string::npos;
  return is_number ? std::optional(value) : std::nullopt;
}

template <class T>
std::optional<std::vector<T>> list(const std::vector<yaml::Value>& items, std::optional<T> (*read)(const yaml::Node&)) {
  std::vector<T> values;
  for (const yaml::Value& item : items) {
    const std::optional<T> value = item.is_scalar() ? read(item.node()) : std::nullopt;
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

/// The op's schema, which its backend has, decides later whether the type fits.
AttributeValue read_attribute(const yaml::Value& value) {
  const char* const expected = "a number, a text or a list of numbers";
  if (value.is_list()) {
    const std::vector<yaml::Value> items = value.items();
    if (const auto integers = list(items, integer)) return *integers;
    if (const auto numbers = list(items, number)) return *numbers;
    value.fail_expected(expected);
  }
  if (!value.is_scalar()) value.fail_expected(expected);
  if (const auto whole = integer(value.node())) return *whole;
  if (const auto real = number(value.node())) return *real;
  return value.as_text();
}

void read_vendor_op(LayerKeys& keys, VendorOp& out_layer) {
  const char* const expected = "the name of a vendor's op, as in com.example.SoftClip";
  keys.attempt([&] { out_layer.op = keys.require_value("op", expected).as_text(expected); });
  out_layer.version = static_cast<std::uint32_t>(keys.get<std::int64_t>("version", 0, {0, 1 << 30}));
  if (const auto attributes = keys.find("attributes", "a map of the op's attributes", "none"); attributes && !attributes->is_null()) {
    keys.attempt([&] {
      for (const auto& [name, value] : attributes->entries("a map of the op's attributes")) {
        out_layer.attributes[name] = read_attribute(value);
      }
    });
  }
}

Value build_vendor_op(LayerBuilder&, const VendorOp& layer, Value x) {
  return ops::call(layer.op, {x}, layer.attributes, layer.version)[0];
}

}  // namespace

TENON_LAYER(VendorOp, "vendor_op", read_vendor_op, build_vendor_op);

}  // namespace tenon::layers
