// SPDX-License-Identifier: Apache-2.0
#include "vendor_node.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include <tenon/sdk/error.h>
#include <tenon/sdk/vendor_op.h>

#include "counted.h"

namespace tenon::sdk {
namespace {

constexpr std::uint32_t none = TENON_NO_INDEX;

/// The size of the struct in the first header.
constexpr std::size_t vendor_attributes_size_v1 =
    offsetof(tenon_attributes_vendor, attributes) + sizeof(tenon_attributes_vendor::attributes);

/// A copy of an attribute. Throws if it cannot be read.
tenon_attribute copied(const tenon_attribute& from, VendorAttributeBlock& block) {
  const bool is_text = from.type == TENON_ATTRIBUTE_STRING;
  if (from.name == nullptr || from.type < TENON_ATTRIBUTE_INTEGER || from.type > TENON_ATTRIBUTE_FLOATS) {
    throw Error(TENON_INVALID_ARGUMENT, "expected a name and a known type, got type " + std::to_string(from.type));
  }
  if (from.count > 0 && from.data == nullptr) {
    throw Error(TENON_INVALID_ARGUMENT, "expected " + counted(from.count, "element") + ", got NULL");
  }
  tenon_attribute to = from;
  to.name = block.names.emplace_back(from.name).c_str();
  // an element has 8 bytes; a text has one and a NUL at its end
  std::vector<std::uint64_t>& data = block.data.emplace_back(is_text ? from.count / 8 + 1 : from.count);
  if (from.count > 0) std::memcpy(data.data(), from.data, is_text ? from.count : std::size_t{from.count} * 8);
  to.data = data.data();
  return to;
}

Diagnostic check_attributes(const Node& node, const VendorSchema& schema) {
  tenon_attributes_vendor given{};
  std::memcpy(&given, node.attributes.data(), vendor_attributes_size_v1);
  if (given.count != schema.attributes.size()) {
    return {TENON_REASON_ATTRIBUTES, "expected " + counted(schema.attributes.size(), "attribute") + ", got " + std::to_string(given.count)};
  }
  for (std::uint32_t i = 0; i < given.count; ++i) {
    const VendorSchema::Attribute& expected = schema.attributes[i];
    const tenon_attribute& attribute = given.attributes[i];
    const bool is_scalar = expected.type == TENON_ATTRIBUTE_INTEGER || expected.type == TENON_ATTRIBUTE_FLOAT;
    if (expected.name != attribute.name || expected.type != attribute.type || (is_scalar && attribute.count != 1)) {
      return {TENON_REASON_ATTRIBUTES, "expected attribute " + expected.name + " of type " + attribute_type_name(expected.type) + ", got " +
                                           attribute.name + " of type " + attribute_type_name(attribute.type)};
    }
  }
  return {};
}

Diagnostic check_side(const std::vector<std::uint32_t>& values, const std::vector<VendorSchema::Operand>& rules, const char* side) {
  if (values.size() > rules.size()) {
    return {TENON_REASON_SHAPE,
            "expected at most " + std::to_string(rules.size()) + " " + side + "s, got " + std::to_string(values.size())};
  }
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const bool absent = i >= values.size() || values[i] == none;
    if (absent && !rules[i].optional) return {TENON_REASON_SHAPE, std::string(side) + " " + rules[i].name + " is absent"};
  }
  return {};
}

/// Compares the results with those that `infer` states.
Diagnostic check_results(const GraphModel& graph, const Node& node, const VendorSchema& schema) {
  std::vector<tenon_tensor_desc> inputs(schema.operands.size());
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == none) continue;
    const Value& value = graph.values[node.inputs[i]];
    inputs[i] = {value.shape, nullptr, value.rank, value.dtype};
  }
  std::vector<tenon_vendor_result> results(schema.results.size());
  char text[160] = "";
  tenon_error error{sizeof(tenon_error), TENON_OK, 0, text, sizeof text, 0};
  const tenon_status status = node.row->vendor_op->infer(inputs.data(), static_cast<std::uint32_t>(inputs.size()),
                                                         reinterpret_cast<const tenon_attributes_vendor*>(node.attributes.data()),
                                                         results.data(), static_cast<std::uint32_t>(results.size()), &error);
  if (status != TENON_OK) return {TENON_REASON_SHAPE, text[0] != '\0' ? text : "its rule for shapes gave no reason"};
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == none) continue;
    const Value& value = graph.values[node.outputs[i]];
    const tenon_vendor_result& result = results[i];
    const tenon_tensor_desc expected{result.shape, nullptr, result.rank, result.dtype}, got{value.shape, nullptr, value.rank, value.dtype};
    if (result.dtype == value.dtype && result.rank == value.rank && std::equal(value.shape, value.shape + value.rank, result.shape))
      continue;
    return {result.dtype == value.dtype ? TENON_REASON_SHAPE : TENON_REASON_DTYPE,
            "expected output " + schema.results[i].name + " as " + describe(expected) + ", got " + describe(got)};
  }
  return {};
}

}  // namespace

Diagnostic copy_vendor_attributes(const void* attributes, std::uint32_t size, std::vector<std::uint64_t>& out_struct,
                                  std::vector<std::shared_ptr<const VendorAttributeBlock>>& blocks) {
  if (size < vendor_attributes_size_v1) {
    return {TENON_REASON_ATTRIBUTES,
            "expected attributes of at least " + std::to_string(vendor_attributes_size_v1) + " bytes, got " + std::to_string(size)};
  }
  tenon_attributes_vendor all{};
  std::memcpy(&all, attributes, vendor_attributes_size_v1);
  if (all.count > 0 && all.attributes == nullptr) {
    return {TENON_REASON_ATTRIBUTES, "expected " + counted(all.count, "attribute") + ", got NULL"};
  }
  auto block = std::make_shared<VendorAttributeBlock>();
  for (std::uint32_t i = 0; i < all.count; ++i) {
    try {
      block->attributes.push_back(copied(all.attributes[i], *block));
    } catch (const Error& error) {
      return {TENON_REASON_ATTRIBUTES, "attribute " + std::to_string(i) + ": " + error.what()};
    }
  }
  all.struct_size = sizeof all;
  all.attributes = block->attributes.data();
  out_struct.resize((sizeof all + 7) / 8);
  std::memcpy(out_struct.data(), &all, sizeof all);
  blocks.push_back(std::move(block));
  return {};
}

Diagnostic check_vendor_node(const GraphModel& graph, const Node& node) {
  const VendorSchema schema = VendorSchema::parse(node.row->vendor_op->schema);
  Diagnostic diagnostic = check_attributes(node, schema);
  if (diagnostic.reason == TENON_REASON_NONE) diagnostic = check_side(node.inputs, schema.operands, "input");
  if (diagnostic.reason == TENON_REASON_NONE) diagnostic = check_side(node.outputs, schema.results, "output");
  return diagnostic.reason == TENON_REASON_NONE ? check_results(graph, node, schema) : diagnostic;
}

}  // namespace tenon::sdk
