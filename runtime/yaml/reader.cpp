// SPDX-License-Identifier: Apache-2.0
#include "yaml/reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include <fmt/format.h>
#include <tenon/error.h>

#include "platform/path.h"
#include "platform/system.h"
#include "yaml/suggest.h"

namespace tenon::yaml {
namespace {

std::string shown(const Node& node) {
  constexpr std::size_t max_shown = 40;
  switch (node.kind) {
    case Node::Kind::null:
      return "nothing";
    case Node::Kind::list:
      return "a list";
    case Node::Kind::map:
      return "a map";
    case Node::Kind::scalar:
      break;
  }
  std::string text = node.text.substr(0, max_shown);
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';  // keep the message on one line
  }
  if (node.text.size() > max_shown) text += "...";
  return (node.quoted ? "the text '" : "'") + text + "'";
}

template <class T>
std::string describe_range(const char* kind, const Range<T>& range) {
  const bool from = range.lowest != std::numeric_limits<T>::lowest();
  const bool to = range.highest != std::numeric_limits<T>::max();
  if (from && to) {
    return fmt::format("{} in {}{}, {}{}", kind, range.above_lowest ? '(' : '[', range.lowest, range.highest,
                       range.below_highest ? ')' : ']');
  }
  if (from)
    return range.above_lowest ? fmt::format("{} above {}", kind, range.lowest) : fmt::format("{} of at least {}", kind, range.lowest);
  if (to)
    return range.below_highest ? fmt::format("{} below {}", kind, range.highest) : fmt::format("{} of at most {}", kind, range.highest);
  return kind;
}

template <class T>
bool is_inside(T value, const Range<T>& range) {
  const bool low = range.above_lowest ? value > range.lowest : value >= range.lowest;
  const bool high = range.below_highest ? value < range.highest : value <= range.highest;
  return low && high;  // false for a NaN
}

/// Parses [+-]digits or 0x...; all of the text must match.
template <class T>
bool parse_integer(std::string_view text, T& out_value) {
  const bool negative = !text.empty() && text[0] == '-';
  if (!text.empty() && (text[0] == '+' || negative)) text.remove_prefix(1);
  int base = 10;
  if (text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
    base = 16;
    text.remove_prefix(2);
  }
  if (text.empty() || text[0] == '-' || text[0] == '+') return false;
  std::uint64_t magnitude = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), magnitude, base);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size()) return false;
  const std::uint64_t max = static_cast<std::uint64_t>(std::numeric_limits<T>::max());
  if (!negative) {
    if (magnitude > max) return false;
    out_value = static_cast<T>(magnitude);
    return true;
  }
  if (std::is_unsigned_v<T> ? magnitude > 0 : magnitude > max + 1) return false;
  out_value = static_cast<T>(0 - magnitude);
  return true;
}

bool parse_number(std::string_view text, double& out_value) {
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);
  const std::size_t start = !text.empty() && text[0] == '-' ? 1 : 0;
  // from_chars also accepts "inf" and "nan", which no key allows (YAML writes ".inf").
  if (text.size() <= start || (text[start] != '.' && (text[start] < '0' || text[start] > '9'))) return false;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), out_value);
  return result.ec == std::errc() && result.ptr == text.data() + text.size() && std::isfinite(out_value);
}

thread_local KeyRecorder* recorder = nullptr;

}  // namespace

KeyRecorder::KeyRecorder() : outer_(recorder) {
  recorder = this;
}
KeyRecorder::~KeyRecorder() {
  recorder = outer_;
}

std::string describe(const char* kind, const Range<std::int64_t>& range) {
  return describe_range(kind, range);
}
std::string describe(const char* kind, const Range<std::uint64_t>& range) {
  return describe_range(kind, range);
}
std::string describe(const char* kind, const Range<double>& range) {
  return describe_range(kind, range);
}

// ----------------------------------------------------------------------------------------------------------------------- Mistakes

void Mistakes::add(const Error& mistake) {
  constexpr std::size_t max_kept = 50;
  if (std::ranges::find(texts_, mistake.what()) != texts_.end()) return;
  if (texts_.empty()) status_ = mistake.status();
  complete_ = texts_.size() < max_kept;
  if (complete_) texts_.emplace_back(mistake.what());
}

void Mistakes::raise() const {
  if (!texts_.empty()) throw Error(status_, fmt::format("{}{}", fmt::join(texts_, "\n"), complete_ ? "" : "\nand more mistakes"));
}

// -------------------------------------------------------------------------------------------------------------------------- Value

void Value::fail(const std::string& reason) const {
  throw Error(mark().str() + ": " + (context_.empty() ? "" : context_ + ": ") + (key_.empty() ? "" : "key '" + key_ + "': ") + reason);
}

void Value::fail_expected(const std::string& expected) const {
  fail("expected " + expected + ", got " + shown(*node_));
}

bool Value::as_bool() const {
  static const std::map<std::string, bool, std::less<>> words = {{"true", true},   {"yes", true}, {"on", true},
                                                                 {"false", false}, {"no", false}, {"off", false}};
  std::string word = node_->text;
  for (char& c : word) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  const auto found = words.find(word);
  if (!is_scalar() || node_->quoted || found == words.end()) fail_expected("true or false");
  return found->second;
}

std::int64_t Value::as_integer(Range<std::int64_t> range) const {
  std::int64_t value = 0;
  const bool good = is_scalar() && !node_->quoted && parse_integer(node_->text, value) && is_inside(value, range);
  if (!good) fail_expected(describe("an integer", range));
  return value;
}

std::uint64_t Value::as_unsigned(Range<std::uint64_t> range) const {
  std::uint64_t value = 0;
  const bool good = is_scalar() && !node_->quoted && parse_integer(node_->text, value) && is_inside(value, range);
  if (!good) {
    // Zero is the minimum of the type, but worth stating.
    fail_expected(range.lowest == 0 && range.highest == std::numeric_limits<std::uint64_t>::max() ? "an integer of at least 0"
                                                                                                  : describe("an integer", range));
  }
  return value;
}

double Value::as_number(Range<double> range) const {
  double value = 0;
  const bool good = is_scalar() && !node_->quoted && parse_number(node_->text, value) && is_inside(value, range);
  if (!good) fail_expected(describe("a number", range));
  return value;
}

std::string Value::as_text(const char* expected) const {
  if (!is_scalar()) fail_expected(expected);
  return node_->text;
}

std::string Value::as_path() const {
  return platform::absolute_path(as_shown_path());
}

std::string Value::as_shown_path() const {
  const std::string text = as_text("a path");
  if (text.empty()) fail_expected("a path");
  if (text == "~" || text.rfind("~/", 0) == 0) {
    const std::string home = process_environment(platform::home_variable).value_or("");
    if (home.empty()) fail(fmt::format("'~' is the home folder, but {} is not set", platform::home_variable));
    return platform::normal_path(platform::path_of(home) / platform::path_of(text.size() > 2 ? text.substr(2) : ""));
  }
  if (text[0] == '~') fail("only '~/' is supported, not the home folder of another user: " + shown(*node_));
  const std::string folder = node_->mark.source ? node_->mark.source->folder : "";
  return platform::normal_path(platform::path_of(folder) / platform::path_of(text));
}

std::vector<std::string> Value::as_names() const {
  if (is_scalar()) return {as_text()};
  std::vector<std::string> names;
  for (const Value& item : items("a list of names")) names.push_back(item.as_text("a name"));
  return names;
}

std::size_t Value::as_word(const std::vector<std::string>& words) const {
  if (is_scalar()) {
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (node_->text == words[i]) return i;
    }
  }
  if (recorder != nullptr) recorder->words = words;
  fail(fmt::format("expected one of {}, got {}{}", fmt::join(words, ", "), shown(*node_),
                   is_scalar() ? did_you_mean(node_->text, words) : ""));
}

std::vector<Value> Value::items(const char* expected) const {
  if (!is_list()) fail_expected(expected);
  std::vector<Value> values;
  for (std::size_t i = 0; i < node_->items.size(); ++i) {
    values.emplace_back(node_->items[i], node_->items[i].mark, context_, fmt::format("{}[{}]", key_, i));
  }
  return values;
}

std::vector<std::pair<std::string, Value>> Value::entries(const char* expected) const {
  if (!is_map()) fail_expected(expected);
  std::vector<std::pair<std::string, Value>> values;
  for (const Node::Entry& entry : node_->entries) {
    values.emplace_back(entry.key, Value(entry.value, entry.mark, context_, key_.empty() ? entry.key : key_ + "." + entry.key));
  }
  return values;
}

Section Value::section(std::string context) const {
  if (!is_map()) fail_expected("a map");
  if (context.empty()) context = (context_.empty() ? "" : context_ + ": ") + key_;
  return Section(*node_, std::move(context));
}

// ------------------------------------------------------------------------------------------------------------------------ Section

struct Section::State {
  const Node* node = nullptr;
  std::shared_ptr<const Node> owned;  // node, if it is not of a tree
  std::string context;
  std::string path;  // of this map, "" at the top
  std::vector<std::string> known;
  std::map<std::string, Section> children;
  std::string scalar_key;
  std::optional<Value> scalar;  // the value of scalar_key if the map does not have that key
  Mistakes mistakes;
  std::set<std::string> reported;  // keys about which there is a mistake already
  bool complete = true;

  void set_scalar(const std::string& key, const Value& value) {
    scalar_key = key;
    scalar = value;
  }

  std::string full(const std::string& key) const { return path.empty() ? key : path + "." + key; }
  std::string prefix(const Mark& mark) const { return mark.str() + ": " + (context.empty() ? "" : context + ": "); }
  bool knows(const std::string& key) const {
    for (const std::string& word : known) {
      if (word == key) return true;
    }
    return false;
  }
};

Section Value::section_with(const std::string& key) const {
  if (is_map()) {
    Section result = section();
    if (node_->scalar) result.state_->set_scalar(key, Value(*node_->scalar, node_->scalar->mark, result.state_->context, key));
    return result;
  }
  auto empty = std::make_shared<Node>();
  empty->kind = Node::Kind::map;
  empty->mark = mark();
  Section result(*empty, (context_.empty() ? "" : context_ + ": ") + key_);
  result.state_->owned = std::move(empty);
  result.state_->set_scalar(key, *this);
  return result;
}

Section::Section(const Node& map, std::string context, std::string path) : state_(std::make_shared<State>()) {
  state_->node = &map;
  state_->context = std::move(context);
  state_->path = std::move(path);
  if (map.kind != Node::Kind::map) fail("expected keys and values (a map), got " + shown(map));
}

const Node& Section::node() const {
  return *state_->node;
}

std::optional<Value> Section::find(const std::string& key, const char* expected, const char* default_value) {
  if (!state_->knows(key)) state_->known.push_back(key);
  note(key, expected, default_value);
  const Node::Entry* entry = state_->node->find(key);
  if (entry == nullptr) return key == state_->scalar_key ? state_->scalar : std::nullopt;
  return Value(entry->value, entry->mark, state_->context, state_->full(key));
}

Value Section::require_value(const std::string& key, const char* expected) {
  note(key, expected, "", true);
  if (std::optional<Value> value = find(key)) return *value;
  for (const Node::Entry& entry : state_->node->entries) {
    if (!state_->knows(entry.key) && !suggest(entry.key, std::vector<std::string>{key}).empty()) fail_unknown(entry);
  }
  fail("key '" + state_->full(key) + "' is missing; expected " + expected);
}

std::optional<Section> Section::child(const std::string& key) {
  const std::optional<Value> value = find(key, "a map");
  if (!value || value->is_null()) return std::nullopt;
  if (!value->is_map()) value->fail_expected("a map");
  const auto found = state_->children.find(key);
  if (found != state_->children.end()) return found->second;
  Section section(value->node(), state_->context, state_->full(key));
  state_->children.emplace(key, section);
  return section;
}

std::string Section::expected_of(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}
std::string Section::shown_default(double value) {
  return fmt::format("{}", value);
}

void Section::note(const std::string& key, const std::string& expected, const std::string& default_value, bool required) const {
  if (recorder == nullptr) return;
  const KnownKey known{state_->context, state_->full(key), expected, default_value, required};
  const auto same = [&](const KnownKey& k) { return k.owner == known.owner && k.path == known.path; };
  const auto found = std::ranges::find_if(recorder->keys, same);
  if (found == recorder->keys.end()) {
    recorder->keys.push_back(known);
  } else if (found->expected.empty()) {
    *found = known;
  }
}

Mistakes& Section::mistakes() {
  return state_->mistakes;
}

void Section::set_complete(bool complete) {
  state_->complete = complete;
}

void Section::finish() {
  for (const Node::Entry& entry : state_->node->entries) {
    if (state_->complete && !state_->knows(entry.key) && !state_->reported.contains(entry.key)) attempt([&] { fail_unknown(entry); });
    const auto child = state_->children.find(entry.key);
    if (child != state_->children.end()) attempt([&] { child->second.finish(); });
  }
  state_->mistakes.raise();
}

void Section::fail(const std::string& reason) const {
  throw Error(state_->prefix(state_->node->mark) + reason);
}

void Section::fail_unknown(const Node::Entry& entry) const {
  state_->reported.insert(entry.key);
  const std::string near = suggest(entry.key, state_->known);
  const std::string tail =
      near.empty() ? fmt::format("; known keys: {}", fmt::join(state_->known, ", ")) : "; did you mean '" + state_->full(near) + "'?";
  throw Error(state_->prefix(entry.mark) + "unknown key '" + state_->full(entry.key) + "'" + tail);
}

}  // namespace tenon::yaml
