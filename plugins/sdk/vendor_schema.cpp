// SPDX-License-Identifier: Apache-2.0
#include <tenon/sdk/vendor_schema.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <type_traits>

#include <tenon/sdk/error.h>

namespace tenon::sdk {
namespace {

constexpr const char* type_names[] = {"int", "float", "string", "ints", "floats"};

[[noreturn]] void fail(const std::string& text) {
  throw Error(TENON_INVALID_ARGUMENT, text);
}

bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}
bool is_letter(char c) {
  return is_lower(c) || (c >= 'A' && c <= 'Z');
}
bool is_word_end(char c) {
  return is_letter(c) || (c >= '0' && c <= '9') || c == '_';
}
/// A letter, then letters, digits and '_'.
bool is_word(std::string_view text) {
  return !text.empty() && is_letter(text.front()) && std::all_of(text.begin(), text.end(), is_word_end);
}

/// The parts of a text between separators; of an empty text none.
std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    parts.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}
std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> all = split(text, ' ');
  std::erase(all, "");
  return all;
}

/// A whole text as a number; empty if it is not one.
template <class T>
std::optional<T> number(const std::string& text) {
  char* end = nullptr;
  errno = 0;
  T value{};
  if constexpr (std::is_same_v<T, double>) {
    value = std::strtod(text.c_str(), &end);
  } else {
    value = std::strtoll(text.c_str(), &end, 10);
  }
  if (text.empty() || *end != '\0' || errno == ERANGE) return std::nullopt;
  return value;
}

template <class T>
std::optional<AttributeValue> numbers(const std::string& text) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return std::nullopt;
  std::vector<T> list;
  for (const std::string& part : split(std::string_view(text).substr(1, text.size() - 2), ',')) {
    const std::optional<T> value = number<T>(part);
    if (!value) return std::nullopt;
    list.push_back(*value);
  }
  return list;
}

std::optional<AttributeValue> value_of(const std::string& text, std::uint32_t type) {
  switch (type) {
    case TENON_ATTRIBUTE_INTEGER:
      return number<std::int64_t>(text);
    case TENON_ATTRIBUTE_FLOAT:
      return number<double>(text);
    case TENON_ATTRIBUTE_STRING:
      return text;
    case TENON_ATTRIBUTE_INTEGERS:
      return numbers<std::int64_t>(text);
    default:
      return numbers<double>(text);
  }
}

std::vector<VendorSchema::Operand> operands_of(std::string_view side) {
  std::vector<VendorSchema::Operand> operands;
  for (const std::string& word : words(side)) {
    const std::size_t colon = word.find(':');
    VendorSchema::Operand operand;
    operand.name = word.substr(0, colon);
    operand.types = colon == std::string::npos ? "" : word.substr(colon + 1);
    operand.optional = !operand.types.empty() && operand.types.back() == '?';
    if (operand.optional) operand.types.pop_back();
    const auto is_type_end = [](char c) { return is_word_end(c) || c == '|'; };
    const bool has_types = !operand.types.empty() && std::all_of(operand.types.begin(), operand.types.end(), is_type_end);
    if (!is_word(operand.name) || !has_types) fail("expected operands and results as in 'x:T' or 'bias:T?', got '" + word + "'");
    operands.push_back(std::move(operand));
  }
  return operands;
}

std::vector<VendorSchema::Attribute> attributes_of(std::string_view text) {
  std::vector<VendorSchema::Attribute> attributes;
  for (const std::string& word : words(text)) {
    const std::size_t colon = word.find(':'), equals = word.find('=', colon == std::string::npos ? 0 : colon);
    VendorSchema::Attribute attribute;
    attribute.name = word.substr(0, colon);
    const std::string type = colon == std::string::npos ? "" : word.substr(colon + 1, equals - colon - 1);
    const auto* const found = std::find(std::begin(type_names), std::end(type_names), type);
    if (!is_word(attribute.name) || found == std::end(type_names)) {
      fail("expected attributes as in 'limit:float' or 'axes:ints=[0,1]' of the types int, float, string, ints and floats, got '" + word +
           "'");
    }
    attribute.type = static_cast<std::uint32_t>(found - std::begin(type_names)) + 1;
    if (equals != std::string::npos) {
      attribute.default_value = value_of(word.substr(equals + 1), attribute.type);
      if (!attribute.default_value) fail("expected a default of type " + type + ", got '" + word + "'");
    }
    attributes.push_back(std::move(attribute));
  }
  return attributes;
}

template <class Named>
void expect_unique(const std::vector<Named>& all, const char* what) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (all[i].name == all[j].name) fail(std::string("expected ") + what + " of different names, got '" + all[i].name + "' twice");
    }
  }
}

std::string text_of(const std::vector<VendorSchema::Operand>& side) {
  std::string text;
  for (const VendorSchema::Operand& operand : side) {
    text += (text.empty() ? "" : " ") + operand.name + ":" + operand.types + (operand.optional ? "?" : "");
  }
  return text;
}

}  // namespace

const char* attribute_type_name(std::uint32_t type) {
  return type >= 1 && type <= std::size(type_names) ? type_names[type - 1] : "unknown";
}

std::string full_name(const tenon_vendor_op& op) {
  return std::string(op.domain) + "." + op.name;
}

bool is_vendor_domain(std::string_view domain) {
  const std::vector<std::string> parts = split(domain, '.');
  const auto is_part = [](const std::string& part) {
    return !part.empty() && is_lower(part.front()) &&
           std::all_of(part.begin(), part.end(), [](char c) { return is_word_end(c) && (!is_letter(c) || is_lower(c)); });
  };
  return !parts.empty() && std::all_of(parts.begin(), parts.end(), is_part);
}

bool is_vendor_op_name(std::string_view name) {
  return is_word(name);
}

VendorSchema VendorSchema::parse(std::string_view text) {
  const std::size_t semicolon = std::min(text.find(';'), text.size());
  const std::string_view operands = text.substr(0, semicolon);
  const std::size_t arrow = operands.find("->");
  if (arrow == std::string_view::npos) fail("expected '<operands> -> <results>; <attributes>', got '" + std::string(text) + "'");
  VendorSchema schema;
  schema.operands = operands_of(operands.substr(0, arrow));
  schema.results = operands_of(operands.substr(arrow + 2));
  schema.attributes = attributes_of(text.substr(std::min(semicolon + 1, text.size())));
  if (schema.results.empty()) fail("expected at least one result after '->', got '" + std::string(text) + "'");
  expect_unique(schema.operands, "operands");
  expect_unique(schema.results, "results");
  expect_unique(schema.attributes, "attributes");
  return schema;
}

std::string VendorSchema::str() const {
  std::string text = text_of(operands) + " -> " + text_of(results);
  for (std::size_t i = 0; i < attributes.size(); ++i) text += (i == 0 ? "; " : " ") + attributes[i].name;
  return text;
}

}  // namespace tenon::sdk
