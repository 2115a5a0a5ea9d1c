// SPDX-License-Identifier: Apache-2.0
// yaml/reader.h - typed access to a YAML tree, with errors that name file, line, column and key.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <tenon/error.h>

#include "yaml/tree.h"

namespace tenon::yaml {

/// The range of an expected number. The default is every finite number of the type.
template <class T>
struct Range {
  T lowest = std::numeric_limits<T>::lowest();
  T highest = std::numeric_limits<T>::max();
  bool above_lowest = false;   ///< excludes lowest
  bool below_highest = false;  ///< excludes highest
};

/// A name in YAML and its value.
template <class E>
struct Choice {
  const char* word;
  E value;
};

/// The first name of a value.
template <class E>
const char* word_of(const std::vector<Choice<E>>& choices, E value) {
  for (const Choice<E>& choice : choices) {
    if (choice.value == value) return choice.word;
  }
  return "?";
}

template <class E>
std::vector<std::string> words_of(const std::vector<Choice<E>>& choices) {
  std::vector<std::string> words;
  for (const Choice<E>& choice : choices) words.emplace_back(choice.word);
  return words;
}

/// A key that a reader asked for, whether it is present or not.
struct KnownKey {
  std::string owner;          ///< the map that has it, as in messages: "layers[0] dense"; "" at the top
  std::string path;           ///< below the owner: "data.workers"
  std::string expected;       ///< "an integer in [0, 256]", "one of step, epoch"; "" if the reader did not say
  std::string default_value;  ///< "" if the reader did not say
  bool required = false;
};

/// While it lives, it collects the keys that readers of its thread ask for: what they know is what the schema says.
class KeyRecorder {
 public:
  KeyRecorder();
  ~KeyRecorder();
  KeyRecorder(const KeyRecorder&) = delete;
  KeyRecorder& operator=(const KeyRecorder&) = delete;

  std::vector<KnownKey> keys;      ///< each once, in the order of their first use
  std::vector<std::string> words;  ///< those of which the last wrong name should have been one

 private:
  KeyRecorder* const outer_;
};

class Section;

/// The mistakes of a file, or of a part of it. Its reader goes on after a mistake, so that one error reports all of them, a line for each.
class Mistakes {
 public:
  /// Runs a reader and keeps its error.
  template <class Read>
  void attempt(const Read& read) {
    try {
      read();
    } catch (const Error& mistake) {
      add(mistake);
    }
  }
  void add(const Error& mistake);
  /// Throws if there are mistakes.
  void raise() const;

 private:
  std::vector<std::string> texts_;  ///< without duplicates
  bool complete_ = true;            ///< false: there were more than are kept
  Status status_ = Status::invalid_argument;
};

/// One value of a tree under its key. It refers to the tree and must not outlive it.
///
/// Errors  the as_... functions: "train.yaml:7:9: key 'epochs': expected an integer of at least 1, got 'abc'".
class Value {
 public:
  /// `context` precedes the key in messages ("layers[2] dense"; "" for none). `place` is used if the key has no value.
  Value(const Node& node, Mark place, std::string context, std::string key)
      : node_(&node), place_(std::move(place)), context_(std::move(context)), key_(std::move(key)) {}

  const Node& node() const { return *node_; }
  const std::string& key() const { return key_; }
  bool is_null() const { return node_->kind == Node::Kind::null; }
  bool is_scalar() const { return node_->kind == Node::Kind::scalar; }
  bool is_list() const { return node_->kind == Node::Kind::list; }
  bool is_map() const { return node_->kind == Node::Kind::map; }
  /// The position of the value. For a null in a file, that of its key: the parser reports the position of the next word.
  const Mark& mark() const { return is_null() && node_->mark.line > 0 ? place_ : node_->mark; }

  bool as_bool() const;  ///< true, false, yes, no, on, off
  std::int64_t as_integer(Range<std::int64_t> range = {}) const;
  std::uint64_t as_unsigned(Range<std::uint64_t> range = {}) const;
  double as_number(Range<double> range = {}) const;
  std::string as_text(const char* expected = "a text") const;  ///< any scalar
  /// An absolute path: "~/" is the home folder, a relative path starts from the folder of the file that contains it.
  std::string as_path() const;
  /// The same, but relative if the file's own path is; used in messages.
  std::string as_shown_path() const;
  /// A list of names, or a single name.
  std::vector<std::string> as_names() const;
  template <class E>
  E as_choice(const std::vector<Choice<E>>& choices) const {
    return choices[as_word(words_of(choices))].value;
  }
  /// The index in `words`.
  std::size_t as_word(const std::vector<std::string>& words) const;

  /// The items of a list, as "key[0]", "key[1]".
  std::vector<Value> items(const char* expected = "a list") const;
  /// The entries of a map, as "key.name".
  std::vector<std::pair<std::string, Value>> entries(const char* expected = "a map") const;
  /// The value as a map; messages start with `context`, by default this key.
  Section section(std::string context = "") const;
  /// The same, but a value that is not a map stands for {<key>: value}: `adam` for `{name: adam}`. A map that an override made of a scalar
  /// has that scalar under the key.
  Section section_with(const std::string& key) const;

  template <class T>
  T as(Range<T> range = {}) const {
    if constexpr (std::is_same_v<T, bool>) {
      return as_bool();
    } else if constexpr (std::is_floating_point_v<T>) {
      return static_cast<T>(as_number(widen<double>(range)));
    } else if constexpr (std::is_unsigned_v<T>) {
      return narrow<T>(as_unsigned(widen<std::uint64_t>(range)));
    } else {
      return narrow<T>(as_integer(widen<std::int64_t>(range)));
    }
  }

  /// Throws "<place>: <context>: key '<key>': <reason>".
  [[noreturn]] void fail(const std::string& reason) const;
  /// Throws "... expected <expected>, got <the value>".
  [[noreturn]] void fail_expected(const std::string& expected) const;

 private:
  friend class Section;
  /// Widens the range; bounds that are the type's own limits stay unstated in messages.
  template <class Wide, class T>
  static Range<Wide> widen(const Range<T>& range) {
    using Own = std::numeric_limits<T>;
    using Widest = std::numeric_limits<Wide>;
    return {range.lowest == Own::lowest() ? Widest::lowest() : static_cast<Wide>(range.lowest),
            range.highest == Own::max() ? Widest::max() : static_cast<Wide>(range.highest), range.above_lowest, range.below_highest};
  }
  template <class T, class Wide>
  T narrow(Wide value) const {
    if (value < static_cast<Wide>(std::numeric_limits<T>::lowest()) || value > static_cast<Wide>(std::numeric_limits<T>::max())) {
      fail_expected("an integer of " + std::to_string(8 * sizeof(T)) + " bits");
    }
    return static_cast<T>(value);
  }

  const Node* node_;
  Mark place_;
  std::string context_;
  std::string key_;
};

/// The keys of one map. A wrong value is remembered and its default takes its place; finish(), which every reader calls, throws all
/// mistakes together with the keys that were never requested. Copies share their state, so several readers can read their keys from one
/// map. It refers to the tree and must not outlive it.
///
/// Threads  one at a time.
class Section {
 public:
  /// Errors  the node is not a map.
  explicit Section(const Node& map, std::string context = "", std::string path = "");

  const Node& node() const;
  /// The value of a key, including null; empty if the key is absent. The texts are for the schema.
  std::optional<Value> find(const std::string& key, const char* expected = "", const char* default_value = "");
  bool has(const std::string& key) { return find(key).has_value(); }
  /// Errors  an absent key: "... key 'units' is missing; expected <expected>", or "did you mean" if a similar key is present.
  Value require_value(const std::string& key, const char* expected);

  template <class T>
  T get(const std::string& key, T default_value, Range<T> range = {}) {
    note(key, expected_of(range), shown_default(default_value));
    if (const std::optional<Value> value = find(key)) attempt([&] { default_value = value->as<T>(range); });
    return default_value;
  }
  std::string get(const std::string& key, const char* default_value) {
    std::string text = default_value;
    note(key, "a text", text);
    if (const std::optional<Value> value = find(key)) attempt([&] { text = value->as_text(); });
    return text;
  }
  /// Empty if the key is absent or null.
  template <class T>
  std::optional<T> get_optional(const std::string& key, Range<T> range = {}) {
    std::optional<T> result;
    note(key, expected_of(range), "null");
    const std::optional<Value> value = find(key);
    if (value && !value->is_null()) attempt([&] { result = value->as<T>(range); });
    return result;
  }
  template <class T>
  T require(const std::string& key, const char* expected, Range<T> range = {}) {
    T result{};
    note(key, expected, "", true);
    attempt([&] { result = require_value(key, expected).template as<T>(range); });
    return result;
  }
  template <class E>
  E choice(const std::string& key, E default_value, const std::vector<Choice<E>>& choices) {
    note(key, expected_of(words_of(choices)), word_of(choices, default_value));
    if (const std::optional<Value> value = find(key)) attempt([&] { default_value = value->as_choice(choices); });
    return default_value;
  }
  /// The map under a key, its keys named "key.inner" in messages; empty if absent or null. finish() includes it.
  std::optional<Section> child(const std::string& key);

  /// Runs a reader of one value of this map and keeps its error for finish().
  template <class Read>
  void attempt(const Read& read) {
    mistakes().attempt(read);
  }
  /// Runs a reader of several keys of this map and keeps its error. Unknown keys are not reported then: some were not requested.
  template <class Read>
  void attempt_keys(const Read& read) {
    attempt([&] {
      set_complete(false);
      read();
      set_complete(true);
    });
  }

  /// Errors  all mistakes. Each key of the file that was not requested is one: "train.yaml:7:3: unknown key 'precison'; did you mean
  ///         'precision'?", or the list of known keys.
  void finish();
  [[noreturn]] void fail(const std::string& reason) const;

 private:
  friend class Value;
  struct State;
  Mistakes& mistakes();
  template <class T>
  static std::string expected_of(const Range<T>& range);
  static std::string expected_of(const std::vector<std::string>& words);
  static std::string shown_default(bool value) { return value ? "true" : "false"; }
  static std::string shown_default(std::int64_t value) { return std::to_string(value); }
  static std::string shown_default(int value) { return std::to_string(value); }
  static std::string shown_default(std::uint64_t value) { return std::to_string(value); }
  static std::string shown_default(double value);
  void note(const std::string& key, const std::string& expected, const std::string& default_value, bool required = false) const;
  void set_complete(bool complete);
  [[noreturn]] void fail_unknown(const Node::Entry& entry) const;

  std::shared_ptr<State> state_;
};

/// "an integer of at least 1", "a number in [0, 1)"; used in messages.
std::string describe(const char* kind, const Range<std::int64_t>& range);
std::string describe(const char* kind, const Range<std::uint64_t>& range);
std::string describe(const char* kind, const Range<double>& range);

template <class T>
std::string Section::expected_of(const Range<T>& range) {
  if constexpr (std::is_same_v<T, bool>) {
    return "true or false";
  } else if constexpr (std::is_floating_point_v<T>) {
    return describe("a number", Value::widen<double>(range));
  } else if constexpr (std::is_unsigned_v<T>) {
    return describe("an integer", Value::widen<std::uint64_t>(range));
  } else {
    return describe("an integer", Value::widen<std::int64_t>(range));
  }
}

}  // namespace tenon::yaml
