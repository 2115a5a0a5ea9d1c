// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/name_map.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "io/gzip.h"
#include "io/limits.h"

namespace tenon::train {
namespace {

/// What each `*` of the pattern stands for in `text`, the shortest possible from the left; nothing if the pattern does not fit.
std::optional<std::vector<std::string>> match(std::string_view pattern, std::string_view text) {
  const std::size_t star = pattern.find('*');
  const std::string_view head = pattern.substr(0, star);
  if (!text.starts_with(head)) return std::nullopt;
  text.remove_prefix(head.size());
  if (star == std::string_view::npos) return text.empty() ? std::optional(std::vector<std::string>()) : std::nullopt;
  pattern.remove_prefix(star + 1);
  for (std::size_t size = 0; size <= text.size(); ++size) {
    if (auto rest = match(pattern, text.substr(size))) {
      rest->insert(rest->begin(), std::string(text.substr(0, size)));
      return rest;
    }
  }
  return std::nullopt;
}

std::string fill(const std::string& pattern, const std::vector<std::string>& texts) {
  std::string name;
  std::size_t next = 0;
  for (const char c : pattern) name += c == '*' ? texts[next++] : std::string(1, c);
  return name;
}

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t\r"), end = text.find_last_not_of(" \t\r");
  return begin == std::string::npos ? "" : text.substr(begin, end + 1 - begin);
}

NameRule parse_rule(const std::string& where, const std::string& line) {
  constexpr std::string_view transposed = " transposed";
  const std::size_t colon = line.find(':');
  NameRule rule;
  if (colon != std::string::npos) {
    rule.ours = trimmed(line.substr(0, colon));
    rule.theirs = trimmed(line.substr(colon + 1));
  }
  if (rule.theirs.ends_with(transposed)) {
    rule.transpose = true;
    rule.theirs = trimmed(rule.theirs.substr(0, rule.theirs.size() - transposed.size()));
  }
  if (rule.ours.empty() || rule.theirs.empty() || rule.theirs.find(' ') != std::string::npos)
    throw Error(
        fmt::format("{}: expected `ours: theirs`, with `transposed` behind it if the axes are the other way round, got '{}'", where, line));
  if (rule.ours == "-") {
    rule.ours.clear();
    return rule;
  }
  const auto stars = [](const std::string& text) { return std::count(text.begin(), text.end(), '*'); };
  if (stars(rule.ours) != stars(rule.theirs))
    throw Error(fmt::format("{}: expected as many '*' in '{}' as in '{}'", where, rule.theirs, rule.ours));
  return rule;
}

}  // namespace

std::string their_name(const std::vector<NameRule>& rules, const std::string& name, bool& out_transpose) {
  out_transpose = false;
  for (const NameRule& rule : rules) {
    const auto texts = rule.ours.empty() ? std::nullopt : match(rule.ours, name);
    if (!texts) continue;
    out_transpose = rule.transpose;
    return fill(rule.theirs, *texts);
  }
  return name;
}

bool is_left_out(const std::vector<NameRule>& rules, const std::string& theirs) {
  return std::any_of(rules.begin(), rules.end(), [&](const NameRule& rule) { return rule.ours.empty() && match(rule.theirs, theirs); });
}

}  // namespace tenon::train

namespace tenon {

std::vector<NameRule> load_name_map(const std::string& path) {
  const std::vector<std::uint8_t> bytes = io::read_file(path, io::Limit::yaml_bytes);
  const std::string text(bytes.begin(), bytes.end());
  std::vector<NameRule> rules;
  int number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = train::trimmed(text.substr(begin, end - begin));
    begin = end + 1;
    ++number;
    if (!line.empty() && line[0] != '#') rules.push_back(train::parse_rule(fmt::format("{}:{}", path, number), line));
  }
  return rules;
}

}  // namespace tenon
