// SPDX-License-Identifier: Apache-2.0
// Ops of the C API: by number and by name, and run at once.
#include <algorithm>

#include "c/graph.h"
#include "c/json.h"
#include "exec/immediate.h"
#include "graph/op.h"
#include "graph/vendor_ops.h"

namespace tenon::c {
namespace {

/// The struct of an op's attributes, as the caller's header has it.
template <class Struct>
Attributes attributes_from_struct(tenon_op op, const void* given) {
  std::uint32_t size = 0;
  std::memcpy(&size, given, sizeof size);
  if (size != sizeof(Struct)) {
    throw BadArgument("attributes: expected the struct of " + std::string(op_name(op)) + " with struct_size " +
                      std::to_string(sizeof(Struct)) + ", got " + std::to_string(size));
  }
  Struct own;
  std::memcpy(static_cast<void*>(&own), given, sizeof own);
  return Attributes::of(own);
}

Attributes attributes_of_struct(tenon_op op, const void* given) {
  if (given == nullptr) return attributes_from(op, {});
  if (graph::is_vendor_op(op)) return Attributes::of(*static_cast<const tenon_attributes_vendor*>(given));
  switch (op) {
#define TENON_OP(id, name, version, stem, family, type_operand, dtypes, attribute_struct, indexing, schema) \
  case id:                                                                                                  \
    return attributes_from_struct<tenon_attributes_##attribute_struct>(op, given);
#include <tenon/ops.def>
#undef TENON_OP
    default:
      throw BadArgument("op: expected an op of tenon/ops.def, got " + std::to_string(op));
  }
}

[[noreturn]] void bad_value(const std::string& key, const char* expected, const Json& value) {
  throw BadArgument("attributes: '" + key + "': expected " + expected + ", got " + json_text(value));
}

AttributeValue value_of(const std::string& key, const Json& value) {
  if (value.is_boolean()) return std::int64_t{value.get<bool>() ? 1 : 0};
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    bad_value(key, "an integer of 64 bits with a sign", value);
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array() && std::ranges::all_of(value, [](const Json& item) { return item.is_number_integer(); }))
    return value.get<std::vector<std::int64_t>>();
  if (value.is_array() && std::ranges::all_of(value, [](const Json& item) { return item.is_number(); }))
    return value.get<std::vector<double>>();
  bad_value(key, "a number, a text, true, false or a list of numbers", value);
}

std::vector<std::int64_t> sizes_of(const std::string& key, const Json& value) {
  const AttributeValue sizes = value_of(key, value);
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&sizes)) return *list;
  bad_value(key, "a list of integers", value);
}

Json json_of(const AttributeValue& value) {
  return std::visit([](const auto& given) { return Json(given); }, value);
}

Json json_of(const AttributeInfo& info) {
  Json json{{"name", info.name}, {"kind", info.kind}};
  const bool is_absent = info.usual && info.kind != "word" && std::holds_alternative<std::string>(*info.usual);
  if (info.usual) {
    Json usual = is_absent ? Json() : json_of(*info.usual);
    if (const auto* number = std::get_if<double>(&*info.usual); number != nullptr && !std::isfinite(*number)) usual = nullptr;
    json["default"] = usual;
  }
  if (!info.words.empty()) json["words"] = info.words;
  return json;
}

void give_results(const std::vector<Tensor>& results, TenonTensor** out_results, std::uint64_t capacity, std::uint64_t* out_count) {
  give(results, out_results, capacity, "out_results");
  if (out_count != nullptr) *out_count = results.size();
}

void apply(const TenonContext* context, const TenonDevice* device, const Node& node, const TenonTensor* const* inputs,
           std::uint64_t input_count, TenonTensor** out_results, std::uint64_t capacity, std::uint64_t* out_count) {
  const Context& on = get(context, "context").value;
  std::vector<Tensor> operands;
  for (const TenonTensor* operand : array(inputs, input_count, "inputs")) {
    operands.push_back(operand == nullptr ? Tensor() : get(operand, ("inputs[" + std::to_string(operands.size()) + "]").c_str()).value);
  }
  const std::optional<Device> own = optional_device(device);
  give_results(on.apply(own ? *own : on.default_device(), node.op, operands, node.attributes, node.options), out_results, capacity,
               out_count);
}

}  // namespace

Node node_of(tenon_op op, const void* attributes, const TenonNodeOptions* options) {
  const TenonNodeOptions given = options_of(options, "options");
  Node node{op, attributes_of_struct(op, attributes), {}};
  node.options.name = optional_text(given.name);
  if (given.has_shape != 0) node.options.shape = shape_of(given.rank, given.shape);
  const auto sizes = array(given.sizes, given.size_count, "options.sizes");
  node.options.sizes.assign(sizes.begin(), sizes.end());
  return node;
}

Node node_of(const char* op, const char* attributes) {
  Node node;
  node.op = op_from_name(text(op, "op"));
  AttributeValues values;
  if (attributes != nullptr) {
    const Json json = try_parse_json(attributes);
    if (!json.is_object()) throw BadArgument(std::string("attributes: expected a JSON object, got ") + attributes);
    for (const auto& [key, value] : json.items()) {
      if (value.is_null()) continue;
      if (key == "name" && value.is_string()) {
        node.options.name = value.get<std::string>();
      } else if (key == "shape") {
        const std::vector<std::int64_t> sizes = sizes_of(key, value);
        node.options.shape = Shape(std::span(sizes));
      } else if (key == "sizes") {
        node.options.sizes = sizes_of(key, value);
      } else {
        values[key] = value_of(key, value);
      }
    }
  }
  node.attributes = attributes_from(node.op, values);
  return node;
}

}  // namespace tenon::c

using namespace tenon;
using namespace tenon::c;

TenonError* tenon_op_by_name(const char* name, tenon_op* out_op) {
  return guard(__func__, [&] { *required(out_op, "out_op") = op_from_name(text(name, "name")); });
}

TenonError* tenon_ops(char** out_json) {
  return guard(__func__, [&] {
    required(out_json, "out_json");
    Json ops = Json::array();
    const auto add = [&](tenon_op op, const char* name, std::uint32_t version, const char* stem, const char* schema) {
      Json attributes = Json::array();
      for (const AttributeInfo& info : attributes_of_op(op)) attributes.push_back(json_of(info));
      ops.push_back({{"id", op},
                     {"name", name},
                     {"version", version},
                     {"stem", stem},
                     {"schema", schema},
                     {"attributes", attributes},
                     {"doc", graph::rules_of(op).doc}});
    };
#define TENON_OP(id, name, version, stem, family, type_operand, dtypes, attribute_struct, indexing, schema) \
  add(id, #name, version, #stem, schema);
#include <tenon/ops.def>
#undef TENON_OP
    *out_json = new_json(ops);
  });
}

TenonError* tenon_apply(const TenonContext* context, const TenonDevice* device, tenon_op op, const void* attributes,
                        const TenonNodeOptions* options, const TenonTensor* const* inputs, uint64_t input_count, TenonTensor** out_results,
                        uint64_t capacity, uint64_t* out_count) {
  return guard(__func__,
               [&] { apply(context, device, node_of(op, attributes, options), inputs, input_count, out_results, capacity, out_count); });
}

TenonError* tenon_apply_named(const TenonContext* context, const TenonDevice* device, const char* op, const char* attributes,
                              const TenonTensor* const* inputs, uint64_t input_count, TenonTensor** out_results, uint64_t capacity,
                              uint64_t* out_count) {
  return guard(__func__, [&] { apply(context, device, node_of(op, attributes), inputs, input_count, out_results, capacity, out_count); });
}
