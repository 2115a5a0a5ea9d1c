// config/yaml_reader.h - typed access to a YAML tree, with messages that name file, line, column and key.
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

#include "config/yaml_tree.h"

namespace tenon::config {

/// What numbers are wanted. The defaults take every finite number of the type.
template <class T>
struct Range {
  T lowest = std::numeric_limits<T>::lowest();
  T highest = std::numeric_limits<T>::max();
  bool above_lowest = false;   ///< lowest itself is out
  bool below_highest = false;  ///< highest itself is out
};

/// A word and what it stands for.
template <class E>
struct Choice {
  const char* word;
  E value;
};

/// The first word of a value.
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

class Section;

/// One value of a tree under its key. Views the tree: it must not outlive it.
///
/// Errors  of the as_... functions: "train.yaml:7:9: key 'epochs': wanted an integer from 1 on, got 'abc'".
class Value {
 public:
  /// `context` stands before the key in messages ("layers[2] dense"), "" for none; `place` is used where the value is missing after its
  /// key.
  Value(const Node& node, Mark place, std::string context, std::string key)
      : node_(&node), place_(std::move(place)), context_(std::move(context)), key_(std::move(key)) {}

  const Node& node() const { return *node_; }
  const std::string& key() const { return key_; }
  bool is_null() const { return node_->kind == Node::Kind::null; }
  bool is_scalar() const { return node_->kind == Node::Kind::scalar; }
  bool is_list() const { return node_->kind == Node::Kind::list; }
  bool is_map() const { return node_->kind == Node::Kind::map; }
  /// Where it is written; of a null in a file, its key: the parser puts the null itself wherever the next word is.
  const Mark& mark() const { return is_null() && node_->mark.line > 0 ? place_ : node_->mark; }

  bool as_bool() const;  ///< true, false, yes, no, on, off
  std::int64_t as_integer(Range<std::int64_t> range = {}) const;
  std::uint64_t as_unsigned(Range<std::uint64_t> range = {}) const;
  double as_number(Range<double> range = {}) const;
  std::string as_text(const char* wanted = "a text") const;  ///< any scalar
  /// A file or folder, made absolute: "~/" is the home folder, a relative one starts from the folder of the file it is written in.
  std::string as_path() const;
  /// The same, left relative where the file's own path is: for messages.
  std::string as_shown_path() const;
  /// A list of names; one name stands for a list of one.
  std::vector<std::string> as_names() const;
  template <class E>
  E as_choice(const std::vector<Choice<E>>& choices) const {
    return choices[as_word(words_of(choices))].value;
  }
  /// Position in `words`.
  std::size_t as_word(const std::vector<std::string>& words) const;

  /// The items of a list, as "key[0]", "key[1]".
  std::vector<Value> items(const char* wanted = "a list") const;
  /// The entries of a map, as "key.name".
  std::vector<std::pair<std::string, Value>> entries(const char* wanted = "a map") const;
  /// A map whose keys are named from here: messages start with `context`, which defaults to this key.
  Section section(std::string context = "") const;

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
  /// Throws "... wanted <wanted>, got <what is there>".
  [[noreturn]] void fail_wanted(const std::string& wanted) const;

 private:
  /// A bound that is only the type's own is not worth a word in messages.
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
      fail_wanted("an integer of " + std::to_string(8 * sizeof(T)) + " bits");
    }
    return static_cast<T>(value);
  }

  const Node* node_;
  Mark place_;
  std::string context_;
  std::string key_;
};

/// The keys of one map. Each key asked for becomes known; finish() reports the others. Copies share what is known, so several readers can
/// take their keys from one map and its owner finishes it. Views the tree: it must not outlive it.
///
/// Threads  one at a time.
class Section {
 public:
  /// Errors  a node that is no map.
  explicit Section(const Node& map, std::string context = "", std::string path = "");

  const Node& node() const;
  /// The value of a key, null values included; nothing if the key is absent.
  std::optional<Value> find(const std::string& key);
  bool has(const std::string& key) { return find(key).has_value(); }
  /// Errors  an absent key: "... key 'units' is missing; wanted <wanted>", or "did you mean" where a slip of it is there.
  Value require_value(const std::string& key, const char* wanted);

  template <class T>
  T get(const std::string& key, T fallback, Range<T> range = {}) {
    const std::optional<Value> value = find(key);
    return value ? value->as<T>(range) : fallback;
  }
  std::string get(const std::string& key, const char* fallback) {
    const std::optional<Value> value = find(key);
    return value ? value->as_text() : std::string(fallback);
  }
  /// Also nothing for `key: null`.
  template <class T>
  std::optional<T> get_optional(const std::string& key, Range<T> range = {}) {
    const std::optional<Value> value = find(key);
    if (!value || value->is_null()) return std::nullopt;
    return value->as<T>(range);
  }
  template <class T>
  T require(const std::string& key, const char* wanted, Range<T> range = {}) {
    return require_value(key, wanted).template as<T>(range);
  }
  template <class E>
  E choice(const std::string& key, E fallback, const std::vector<Choice<E>>& choices) {
    const std::optional<Value> value = find(key);
    return value ? value->as_choice(choices) : fallback;
  }
  /// The map under a key, its keys named "key.inner" in messages; nothing if absent or null. finish() covers it.
  std::optional<Section> child(const std::string& key);

  /// Errors  the first key, in the order of the file, that nobody asked for: "train.yaml:7:3: unknown key 'precison'; did you mean
  ///         'precision'?", or the keys there are.
  void finish() const;
  [[noreturn]] void fail(const std::string& reason) const;

 private:
  struct State;
  [[noreturn]] void fail_unknown(const Node::Entry& entry) const;

  std::shared_ptr<State> state_;
};

/// "an integer from 1 on", "a number in [0, 1)": the words of messages.
std::string describe(const char* kind, const Range<std::int64_t>& range);
std::string describe(const char* kind, const Range<std::uint64_t>& range);
std::string describe(const char* kind, const Range<double>& range);

/// "a, b, c".
std::string joined(const std::vector<std::string>& words);

}  // namespace tenon::config
