// SPDX-License-Identifier: Apache-2.0
#include "yaml/write.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace tenon::yaml {
namespace {

bool is_word_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '/' || c == '-';
}

/// True for a text that YAML reads as that text without quotes: a letter, then letters, digits and _ . / -, and no word with a meaning.
bool is_plain(std::string_view text) {
  static constexpr std::array<std::string_view, 9> words = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"};
  if (text.empty() || std::isalpha(static_cast<unsigned char>(text[0])) == 0 || !std::ranges::all_of(text, is_word_character)) return false;
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::ranges::find(words, std::string_view(lower)) == words.end();
}

std::string text_of(const std::string& text) {
  return is_plain(text) ? text : json_text(Json(text));
}

}  // namespace

std::string flow(const Json& value) {
  if (value.is_string()) return text_of(value.get<std::string>());
  if (!value.is_structured()) return json_text(value);
  std::string text;
  for (const auto& [key, item] : value.items()) {
    if (!text.empty()) text += ", ";
    if (value.is_object()) text += text_of(key) + ": ";
    text += flow(item);
  }
  return value.is_object() ? "{" + text + "}" : "[" + text + "]";
}

std::string flow(const Node& value) {
  // A text without quotes may be a number, or a word that means something else than itself.
  const auto scalar = [](const Node& node) {
    const bool keeps_its_form =
        !node.text.empty() && std::ranges::all_of(node.text, [](char c) { return is_word_character(c) || c == '+'; });
    return !node.quoted && keeps_its_form ? node.text : json_text(Json(node.text));
  };
  std::string text;
  switch (value.kind) {
    case Node::Kind::null:
      return "null";
    case Node::Kind::scalar:
      return scalar(value);
    case Node::Kind::list:
      for (const Node& item : value.items) text += (text.empty() ? "" : ", ") + flow(item);
      return "[" + text + "]";
    case Node::Kind::map:
      for (const Node::Entry& entry : value.entries) text += (text.empty() ? "" : ", ") + text_of(entry.key) + ": " + flow(entry.value);
      return "{" + text + "}";
  }
  return text;
}

}  // namespace tenon::yaml
