// SPDX-License-Identifier: Apache-2.0
// Attributes of ops from values by name.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tenon/attributes.h>
#include <tenon/error.h>

#include "graph/op.h"
#include "graph/vendor_ops.h"
#include "text/counted.h"
#include "yaml/suggest.h"

namespace tenon {
namespace {

/// Lists the fields of an attribute struct.
class FieldInfos {
 public:
  std::vector<AttributeInfo> fields;

  void flag(const char* name, std::uint32_t) { add(name, "flag", std::int64_t{0}); }
  template <class T>
  void value(const char* name, T) {
    add(name, "number", std::nullopt);
  }
  template <class T>
  void optional(const char* name, T, std::type_identity_t<T> usual) {
    add(name, "number", AttributeValue(usual));
  }
  void word(const char* name, std::uint32_t, std::initializer_list<const char*> words) {
    add(name, "word", AttributeValue(std::string(*words.begin())));
    fields.back().words.assign(words.begin(), words.end());
  }
  void dtype(const char* name, tenon_dtype) { add(name, "dtype", std::nullopt); }
  template <class T, std::size_t size>
  void list(const char* name, const T (&)[size], std::type_identity_t<T>) {
    add(name, "numbers", std::nullopt);
  }
  template <class T, std::size_t size>
  void optional_list(const char* name, const T (&)[size], std::type_identity_t<T>) {
    add(name, "numbers", AttributeValue(std::vector<std::int64_t>()));
  }
  template <class T, std::size_t size>
  void counted_list(const char* name, const T (&)[size], std::uint32_t) {
    add(name, "numbers", std::nullopt);
  }
  void value_if(const char* name, std::int64_t, std::uint32_t) { add(name, "number", AttributeValue(std::string())); }

 private:
  void add(const char* name, const char* kind, std::optional<AttributeValue> usual) {
    fields.push_back({.name = name, .kind = kind, .words = {}, .usual = std::move(usual)});
  }
};

/// Fills the fields of an attribute struct from values in the order of its fields; an absent value leaves the default.
class FieldSetter {
 public:
  FieldSetter(std::string op, const std::vector<AttributeInfo>& infos, const std::vector<const AttributeValue*>& values)
      : op_(std::move(op)), infos_(infos), values_(values) {}

  void flag(const char*, std::uint32_t& field) {
    field = 0;
    if (const AttributeValue* given = next()) {
      const std::int64_t x = integer(*given);
      if (x != 0 && x != 1) fail("0 or 1");
      field = static_cast<std::uint32_t>(x);
    }
  }
  template <class T>
  void value(const char*, T& field) {
    if (const AttributeValue* given = next()) field = number<T>(*given);
  }
  template <class T>
  void optional(const char* name, T& field, std::type_identity_t<T> usual) {
    field = usual;
    value(name, field);
  }
  void word(const char*, std::uint32_t& field, std::initializer_list<const char*> words) {
    field = 0;
    if (const AttributeValue* given = next()) {
      const auto* text = std::get_if<std::string>(given);
      const auto* found = text == nullptr ? words.end() : std::find(words.begin(), words.end(), *text);
      if (found == words.end()) fail(fmt::format("one of {}", fmt::join(words, ", ")));
      field = static_cast<std::uint32_t>(found - words.begin());
    }
  }
  void dtype(const char*, tenon_dtype& field) {
    if (const AttributeValue* given = next()) {
      const auto* text = std::get_if<std::string>(given);
      const std::optional<DType> found = text == nullptr ? std::nullopt : dtype_from(*text);
      if (!found) fail("the name of a dtype, such as f32");
      field = static_cast<tenon_dtype>(*found);
    }
  }
  template <class T, std::size_t size>
  void list(const char*, T (&entries)[size], std::type_identity_t<T> rest) {
    std::fill_n(entries, size, rest);
    if (const AttributeValue* given = next()) fill(*given, entries);
  }
  template <class T, std::size_t size>
  void optional_list(const char* name, T (&entries)[size], std::type_identity_t<T> rest) {
    list(name, entries, rest);
  }
  template <class T, std::size_t size>
  void counted_list(const char*, T (&entries)[size], std::uint32_t& count) {
    if (const AttributeValue* given = next()) count = fill(*given, entries);
  }
  void value_if(const char*, std::int64_t& field, std::uint32_t& has) {
    has = 0;
    if (const AttributeValue* given = next()) {
      field = integer(*given);
      has = 1;
    }
  }

 private:
  const AttributeValue* next() { return values_[at_++]; }
  [[noreturn]] void fail(const std::string& expected) const {
    const auto text = [](const auto& given) {
      using T = std::decay_t<decltype(given)>;
      if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
        return fmt::format("{}", given);
      } else {
        return fmt::format("[{}]", fmt::join(given, ", "));
      }
    };
    throw Error(
        fmt::format("{}: attribute '{}': expected {}, got {}", op_, infos_[at_ - 1].name, expected, std::visit(text, *values_[at_ - 1])));
  }
  std::int64_t integer(const AttributeValue& given) const {
    if (const auto* x = std::get_if<std::int64_t>(&given)) return *x;
    fail("an integer");
  }
  template <class T>
  T number(const AttributeValue& given) const {
    if constexpr (std::is_floating_point_v<T>) {
      if (const auto* x = std::get_if<double>(&given)) return *x;
      if (const auto* x = std::get_if<std::int64_t>(&given)) return static_cast<T>(*x);
      fail("a number");
    } else {
      const std::int64_t x = integer(given);
      if (!std::in_range<T>(x)) fail(fmt::format("an integer in [{}, {}]", std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
      return static_cast<T>(x);
    }
  }
  template <class T, std::size_t size>
  std::uint32_t fill(const AttributeValue& given, T (&entries)[size]) const {
    const auto copy = [&](const auto& values) {
      if (values.size() > size) fail("at most " + counted(size, "number"));
      std::ranges::transform(values, entries, [](auto x) { return static_cast<T>(x); });
      return static_cast<std::uint32_t>(values.size());
    };
    if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&given)) return copy(*integers);
    if constexpr (std::is_floating_point_v<T>) {
      if (const auto* numbers = std::get_if<std::vector<double>>(&given)) return copy(*numbers);
    }
    fail(std::is_floating_point_v<T> ? "a list of numbers" : "a list of integers");
  }

  std::string op_;
  const std::vector<AttributeInfo>& infos_;
  const std::vector<const AttributeValue*>& values_;
  std::size_t at_ = 0;
};

/// Calls visit with a new attribute struct of the op's line. False for an op that has none.
template <class Visit>
bool with_attributes_of(tenon_op op, const Visit& visit) {
  switch (op) {
#define TENON_OP(id, name, version, stem, family, type_operand, dtypes, attribute_struct, indexing, schema) \
  case id:                                                                                                  \
    visit(tenon_attributes_##attribute_struct{});                                                           \
    return true;
#include <tenon/ops.def>
#undef TENON_OP
    default:
      return false;
  }
}

/// True for an op whose struct is tenon_attributes_none.
bool has_no_attributes(tenon_op op) {
  bool has_none = false;
  with_attributes_of(op, [&]<class Struct>(Struct) { has_none = std::is_same_v<Struct, tenon_attributes_none>; });
  return has_none;
}

/// The fields of the op's struct under the names that its line gives them; those that it does not use have no name.
std::vector<AttributeInfo> fields_of(tenon_op op) {
  FieldInfos infos;
  const bool known = with_attributes_of(op, [&](auto attributes) { visit_fields(attributes, infos); });
  if (!known) throw Error(fmt::format("expected an op of tenon/ops.def, got {}", op));
  const std::string schema = graph::schema_of(op);
  std::istringstream line(schema.substr(std::min(schema.find(';'), schema.size() - 1) + 1));
  std::vector<std::string> names(infos.fields.size());
  const std::vector<std::string> words{std::istream_iterator<std::string>(line), {}};
  // As attributes_str names them: a word that is no field names the first field that no word names, flags aside.
  for (const std::string& word : words) {
    const auto is_word = [&](const AttributeInfo& field) { return field.name == word; };
    if (const auto field = std::ranges::find_if(infos.fields, is_word); field != infos.fields.end())
      names[static_cast<std::size_t>(field - infos.fields.begin())] = word;
  }
  for (const std::string& word : words) {
    if (std::ranges::find(names, word) != names.end()) continue;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (!names[i].empty() || infos.fields[i].kind == "flag") continue;
      names[i] = word;
      break;
    }
  }
  for (std::size_t i = 0; i < names.size(); ++i) infos.fields[i].name = names[i];
  return infos.fields;
}

}  // namespace

tenon_op op_from_name(const std::string& name) {
  static const std::unordered_map<std::string, tenon_op> ops = {
#define TENON_OP(id, name, version, stem, family, type_operand, dtypes, attribute_struct, indexing, schema) {#name, id},
#include <tenon/ops.def>
#undef TENON_OP
  };
  if (const auto found = ops.find(name); found != ops.end()) return found->second;
  if (name.find('.') != std::string::npos) return vendor_op(name);
  std::vector<std::string> names;
  for (const auto& [known, op] : ops) names.push_back(known);
  std::ranges::sort(names);  // of two that are equally similar the first is suggested
  throw Error(fmt::format("expected the name of an op of tenon/ops.def, or of a vendor's op with its domain, got '{}'{}", name,
                          yaml::did_you_mean(name, names)));
}

std::vector<AttributeInfo> attributes_of_op(tenon_op op) {
  std::vector<AttributeInfo> fields = fields_of(op);
  std::erase_if(fields, [](const AttributeInfo& field) { return field.name.empty(); });
  return fields;
}

Attributes attributes_from(tenon_op op, const AttributeValues& values) {
  if (graph::is_vendor_op(op)) return vendor_attributes(op, values);
  if (values.empty() && has_no_attributes(op)) return {};
  const std::vector<AttributeInfo> fields = fields_of(op);
  std::vector<const AttributeValue*> given;
  std::vector<std::string> names;
  for (const AttributeInfo& field : fields) {
    const auto found = values.find(field.name);
    given.push_back(found == values.end() || field.name.empty() ? nullptr : &found->second);
    if (!field.name.empty()) names.push_back(field.name);
    if (given.back() == nullptr && !field.usual && !field.name.empty())
      throw Error(fmt::format("{}: attribute '{}' is missing", op_name(op), field.name));
  }
  for (const auto& [name, value] : values) {
    if (std::ranges::find(names, name) != names.end()) continue;
    throw Error(fmt::format("{}: it has no attribute '{}'{}; it has {}", op_name(op), name, yaml::did_you_mean(name, names),
                            names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
  }
  Attributes result;
  with_attributes_of(op, [&](auto attributes) {
    FieldSetter setter(op_name(op), fields, given);
    visit_fields(attributes, setter);
    if constexpr (std::is_same_v<decltype(attributes), tenon_attributes_random>) {
      if (op == TENON_OP_RandomPermutation) attributes.dtype = TENON_DTYPE_I64;  // the only one, so that it is no attribute by name
    }
    result = Attributes::of(attributes);
  });
  return result;
}

}  // namespace tenon
