// SPDX-License-Identifier: Apache-2.0
// yaml/tree.h - a YAML document as a tree whose values know their position in the file.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/config.h>

namespace tenon::yaml {

/// The origin of values: a file, a string in memory or an override.
struct Source {
  std::string name;    ///< its name in messages: "models/m/train.yaml", "--set epochs=3"
  std::string folder;  ///< base of relative paths; "" is the working directory
  Origin::Kind kind = Origin::Kind::yaml;
};

/// The position of a value. Overrides have no line.
struct Mark {
  std::shared_ptr<const Source> source;
  int line = 0;  ///< from 1; 0: none
  int column = 0;

  /// "train.yaml:7:3", "--set epochs=3".
  std::string str() const;
};

/// A value. Anchors, aliases and merge keys are already expanded.
struct Node {
  enum class Kind { null, scalar, list, map };
  struct Entry;

  Kind kind = Kind::null;
  Mark mark;
  std::string text;            ///< scalars only
  bool quoted = false;         ///< scalars only: '5' and "5" are texts, never numbers
  std::vector<Node> items;     ///< lists only
  std::vector<Entry> entries;  ///< maps only, in the order of the file
  /// Maps only: the scalar in whose place an override set a key, as `adam` before `--set optimizer.learning_rate=0.01`.
  std::shared_ptr<const Node> scalar;

  const Entry* find(std::string_view key) const;
  Entry* find(std::string_view key);
};

struct Node::Entry {
  std::string key;
  Mark mark;  ///< position of the key
  Node value;
};

/// Errors  "<name>:LINE:COL: <reason>": not YAML, tabs as indentation, a duplicate key, no content, several documents, an alias inside its
///         own anchor, more values or text than io::Limit allows once aliases are expanded.
Node parse(const std::string& text, std::shared_ptr<const Source> source);

/// Reads and parses a file; relative paths in it start from its folder. Errors also: a file that cannot be read.
Node load(const std::string& path);

/// A key path and its value as YAML: "3", "[accuracy]", "{of: cpu, count: 2}".
struct Assignment {
  std::string key;
  std::string value;
};

/// Parses "key.path=value". Errors  no '=' or no key.
Assignment parse_assignment(const std::string& text);

/// Sets root.<key path> to the value, replacing any present value and creating missing maps. A scalar on the path becomes a map that
/// remembers it (Node::scalar). A number indexes a list
/// ("layers.1.dense.units"). A literal value is one scalar and is not parsed as YAML, as for environment variables and dedicated options.
///
/// Errors  a value that is not YAML, a list index out of range; the text starts with the source's name.
void assign(Node& root, const std::string& key_path, const std::string& value, std::shared_ptr<const Source> source, bool literal = false);

/// Splits "a.b" into {"a", "b"}.
std::vector<std::string> split_path(std::string_view path);

}  // namespace tenon::yaml
