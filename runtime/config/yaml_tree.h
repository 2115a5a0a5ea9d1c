// config/yaml_tree.h - a YAML document as our own tree, each value with the place it was written at.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/config.h>

namespace tenon::config {

/// A text that values come from: a file, a string in memory, one override.
struct Source {
  std::string name;    ///< how messages call it: "models/m/train.yaml", "--set epochs=3"
  std::string folder;  ///< what relative paths in it start from; "" is the working directory
  Origin::Kind kind = Origin::Kind::yaml;
};

/// Where a value stands. Overrides have no line.
struct Mark {
  std::shared_ptr<const Source> source;
  int line = 0;  ///< from 1; 0: none
  int column = 0;

  /// "train.yaml:7:3", "--set epochs=3".
  std::string str() const;
};

/// A value. Anchors, aliases and merge keys are resolved already, by copying.
struct Node {
  enum class Kind { null, scalar, list, map };
  struct Entry;

  Kind kind = Kind::null;
  Mark mark;
  std::string text;            ///< of a scalar
  bool quoted = false;         ///< of a scalar: '5' and "5" are texts, never numbers
  std::vector<Node> items;     ///< of a list
  std::vector<Entry> entries;  ///< of a map, in the order of the file

  const Entry* find(std::string_view key) const;
  Entry* find(std::string_view key);
};

struct Node::Entry {
  std::string key;
  Mark mark;  ///< of the key
  Node value;
};

/// Errors  "<name>:LINE:COL: <reason>": not YAML, tabs as indentation, a key twice, no content, several documents, an alias inside its own
///         anchor, more than 100000 values once aliases are expanded.
Node parse_yaml(const std::string& text, std::shared_ptr<const Source> source);

/// Reads and parses a file; its folder becomes the source's. Errors also: a file that cannot be read.
Node load_yaml(const std::string& path);

/// "key.path" and the value as YAML: "3", "[accuracy]", "{of: cpu, count: 2}".
struct Assignment {
  std::string key;
  std::string value;
};

/// "key.path=value". Errors  no '=' or no key; the text starts with `origin`.
Assignment parse_assignment(const std::string& text);

/// Sets root.<key path> to the value, in place of what is there, making the maps on the way; a number reaches into a list
/// ("layers.1.dense.units"). A literal value is one scalar as it is, not YAML: that of a variable or a command line option of its own.
///
/// Errors  a value that is not YAML, a list index out of range; the text starts with the source's name.
void assign(Node& root, const std::string& key_path, const std::string& value, std::shared_ptr<const Source> source, bool literal = false);

/// "a.b" to {"a", "b"}.
std::vector<std::string> split_path(std::string_view path);

}  // namespace tenon::config
