// SPDX-License-Identifier: Apache-2.0
// print.cpp - prints graphs as text.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <tenon/attributes.h>
#include <tenon/error.h>
#include <tenon/graph.h>

#include "graph/collectives.h"
#include "graph/op.h"
#include "graph/vendor_ops.h"

namespace tenon {
namespace graph {
namespace {

// Each field of an attribute struct has an entry in tenon/attributes.def: together with struct_size and reserved they fill it.
template <class Struct>
constexpr std::size_t unlisted_size() {
  return sizeof(std::uint32_t) * (requires(Struct a) { a.reserved; } ? 2 : 1);
}
#define TENON_ATTRIBUTES(name, fields)      \
  constexpr std::size_t size_of_##name() {  \
    using Struct = tenon_attributes_##name; \
    return unlisted_size<Struct>() fields;  \
  }                                         \
  static_assert(size_of_##name() == sizeof(tenon_attributes_##name), "tenon/attributes.def lacks a field of tenon_attributes_" #name);
#define TENON_FLAG(field) +sizeof(Struct::field)
#define TENON_VALUE(field) +sizeof(Struct::field)
#define TENON_OPTIONAL(field, usual) +sizeof(Struct::field)
#define TENON_WORD(field, ...) +sizeof(Struct::field)
#define TENON_DTYPE_FIELD(field) +sizeof(Struct::field)
#define TENON_LIST(field, rest) +sizeof(Struct::field)
#define TENON_OPTIONAL_LIST(field, rest) +sizeof(Struct::field)
#define TENON_COUNTED_LIST(field, count) +sizeof(Struct::field) + sizeof(Struct::count)
#define TENON_VALUE_IF(field, has) +sizeof(Struct::field) + sizeof(Struct::has)
#include <tenon/attributes.def>

/// Collects the fields of an attribute struct as texts.
class FieldTexts {
 public:
  struct Field {
    std::string_view name;
    bool is_flag;
    std::optional<std::string> text;  ///< of a flag: empty; absent if the field is left out
  };
  std::vector<Field> fields;

  void flag(const char* name, std::uint32_t value) { fields.push_back({name, true, value != 0 ? std::optional("") : std::nullopt}); }
  template <class T>
  void value(const char* name, T value) {
    fields.push_back({name, false, fmt::format("{}", value)});
  }
  template <class T>
  void optional(const char* name, T x, std::type_identity_t<T> usual) {
    value(name, x);
    if (x == usual) fields.back().text.reset();
  }
  void word(const char* name, std::uint32_t x, std::initializer_list<const char*> words) { value(name, words.begin()[x]); }
  void dtype(const char* name, tenon_dtype x) { value(name, name_of(static_cast<DType>(x))); }
  /// "(2,0,1)": the entries up to the last one that differs from `rest`, but at least one.
  template <class T, std::size_t size>
  void list(const char* name, const T (&entries)[size], std::type_identity_t<T> rest) {
    std::size_t count = size;
    while (count > 1 && entries[count - 1] == rest) --count;
    value(name, fmt::format("({})", fmt::join(entries, entries + count, ",")));
  }
  template <class T, std::size_t size>
  void optional_list(const char* name, const T (&entries)[size], std::type_identity_t<T> rest) {
    list(name, entries, rest);
    if (std::count(entries, entries + size, rest) == size) fields.back().text.reset();
  }
  template <class T, std::size_t size>
  void counted_list(const char* name, const T (&entries)[size], std::uint32_t count) {
    value(name, fmt::format("({})", fmt::join(entries, entries + count, ",")));
  }
  void value_if(const char* name, std::int64_t x, std::uint32_t has) {
    value(name, x);
    if (has == 0) fields.back().text.reset();
  }
};

FieldTexts field_texts(tenon_op op, const Attributes& attributes) {
  FieldTexts texts;
  switch (op) {
#define TENON_OP(id, name, version, stem, family, type_operand, dtypes, attribute_struct, indexing, schema) \
  case id: {                                                                                                \
    auto copy = attributes.as<tenon_attributes_##attribute_struct>();                                       \
    visit_fields(copy, texts);                                                                              \
    break;                                                                                                  \
  }
#include <tenon/ops.def>
#undef TENON_OP
    default:
      break;
  }
  return texts;
}

}  // namespace

std::string attributes_str(tenon_op op, const Attributes& attributes) {
  if (is_vendor_op(op)) return vendor_attributes_str(attributes.as<tenon_attributes_vendor>());
  if (op == op_broadcast) return fmt::format(" root={}", attributes.as<BroadcastAttributes>().root);
  using Field = FieldTexts::Field;
  std::vector<Field> fields = field_texts(op, attributes).fields;
  const std::string schema = schema_of(op);
  std::istringstream line(schema.substr(std::min(schema.find(';'), schema.size() - 1) + 1));
  const std::vector<std::string> words{std::istream_iterator<std::string>(line), {}};
  const auto is_unnamed = [&](const Field& field) {
    return !field.is_flag && std::find(words.begin(), words.end(), field.name) == words.end();
  };
  std::string text;
  for (const std::string& word : words) {
    auto field = std::find_if(fields.begin(), fields.end(), [&](const Field& f) { return f.name == word; });
    if (field == fields.end()) field = std::find_if(fields.begin(), fields.end(), is_unnamed);
    if (field == fields.end())
      throw Error(Status::internal, fmt::format("{}: no field for the attribute '{}' of its line", op_name(op), word));
    if (field->text) text += " " + word + (field->is_flag ? "" : "=" + *field->text);
    fields.erase(field);
  }
  return text;
}

}  // namespace graph

namespace {

std::string declaration(const ValueInfo& info) {
  return fmt::format("{}:{}{}", info.name, name_of(info.dtype), info.shape.str());
}

/// Scalar constants by value, everything else by name.
std::string reference(const ValueInfo& info) {
  if (info.kind != ValueKind::constant || info.shape.rank() != 0 || info.dtype == DType::boolean) return info.name;
  return fmt::format("{}", info.constant.item());
}

}  // namespace

std::string Graph::str() const {
  std::string text;
  for (const ValueInfo& value : values_) {
    if (value.kind == ValueKind::input) text += "input " + declaration(value) + "\n";
    if (value.kind == ValueKind::parameter) text += "parameter " + declaration(value) + "\n";
    if (value.kind == ValueKind::constant && value.shape.rank() != 0) text += "constant " + declaration(value) + "\n";
  }
  for (const NodeInfo& node : nodes_) {
    std::string results, operands;
    for (ValueId id : node.outputs) results += (results.empty() ? "" : ", ") + (id == no_id ? "-" : declaration(values_[id]));
    for (ValueId id : node.inputs) operands += (operands.empty() ? "" : ", ") + (id == no_id ? "-" : reference(values_[id]));
    text += fmt::format("{} = {}({}){}", results, op_name(node.op), operands, graph::attributes_str(node.op, node.attributes));
    if (!node.device.empty()) text += "  @" + node.device;
    text += "\n";
  }
  for (const GraphOutput& output : outputs_) text += fmt::format("output {} = {}\n", output.name, reference(values_[output.value]));
  for (const GraphUpdate& update : updates_) {
    text += fmt::format("update {} = {}\n", values_[update.parameter].name, reference(values_[update.value]));
  }
  return text;
}

}  // namespace tenon
