// SPDX-License-Identifier: Apache-2.0
// onnx/export/attributes.h - attributes of ONNX nodes. Names and texts are views, which the caller keeps.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "onnx/records.h"

namespace tenon::onnx::exporting {

inline AttributeRecord attribute(std::string_view name, AttributeRecord::Type type) {
  AttributeRecord record;
  record.name = name;
  record.type = type;
  return record;
}
inline AttributeRecord integer(std::string_view name, std::int64_t value) {
  AttributeRecord record = attribute(name, AttributeRecord::Type::i);
  record.integer = value;
  return record;
}
/// ONNX keeps numbers as f32.
inline AttributeRecord number(std::string_view name, double value) {
  AttributeRecord record = attribute(name, AttributeRecord::Type::f);
  record.number = static_cast<float>(value);
  return record;
}
inline AttributeRecord text(std::string_view name, std::string_view value) {
  AttributeRecord record = attribute(name, AttributeRecord::Type::s);
  record.text = value;
  return record;
}
inline AttributeRecord integers(std::string_view name, std::vector<std::int64_t> values) {
  AttributeRecord record = attribute(name, AttributeRecord::Type::ints);
  record.integers = std::move(values);
  return record;
}
inline AttributeRecord texts(std::string_view name, std::vector<std::string_view> values) {
  AttributeRecord record = attribute(name, AttributeRecord::Type::strings);
  record.texts = std::move(values);
  return record;
}

}  // namespace tenon::onnx::exporting
