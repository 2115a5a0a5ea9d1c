// SPDX-License-Identifier: Apache-2.0
#include "yaml/tree.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <sstream>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <tenon/error.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "io/gzip.h"
#include "io/limits.h"
#include "io/utf8.h"
#include "platform/path.h"

namespace tenon::yaml {
namespace {

constexpr const char* tab_message = "tab character used for indentation; YAML expects spaces";

[[noreturn]] void fail(const Mark& mark, const std::string& text) {
  throw Error(mark.str() + ": " + text);
}

/// Translates yaml-cpp's messages, which name its tokens, into terms of the file.
std::string plain_words(const std::string& message) {
  static const std::map<std::string, std::string> table = {
      {"illegal tab when looking for indentation", tab_message},
      {"illegal map value", "a ':' where no key is allowed; check the indentation, or quote the text that contains it"},
      {"illegal map key", "a '?' where no key is allowed"},
      {"illegal block entry", "a '-' where no list item is allowed; check the indentation"},
      {"end of map not found", "a line does not belong to the enclosing map; check the indentation"},
      {"end of sequence not found", "a line does not belong to the enclosing list; check the indentation"},
      {"end of map flow not found", "the map opened with '{' is not closed with '}'"},
      {"end of sequence flow not found", "the list opened with '[' is not closed with ']'"},
      {"illegal flow end", "a ']' or '}' closes nothing"},
      {"illegal EOF in scalar", "the text ends inside quotes"},
      {"the referenced anchor is not defined", "the alias refers to an anchor that is not defined before it"},
      {"unknown token", "a character reserved by YAML; quote the text"},
      {"bad file", "lists and maps are nested too deeply"},
  };
  const auto found = table.find(message);
  return found == table.end() ? message : found->second;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

/// Builds the tree from yaml-cpp's events, which, unlike YAML::Node, report the position of keys and duplicate keys.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::string_view text, std::shared_ptr<const Source> source) : lines_(lines_of(text)), source_(std::move(source)) {}

  Node root;
  bool has_root = false;

  /// The 1-based column of a tab in the indentation within the first `length` characters of a line; 0: none.
  int tab_in_indentation(int line, std::size_t length = std::string_view::npos) const {
    if (line < 0 || static_cast<std::size_t>(line) >= lines_.size()) return 0;
    const std::string_view start = lines_[static_cast<std::size_t>(line)].substr(0, length);
    const std::size_t end = start.find_first_not_of(" \t");
    const std::size_t tab = start.substr(0, end).find('\t');
    return tab == std::string_view::npos ? 0 : static_cast<int>(tab) + 1;
  }
  Mark at(int line, int column) const { return {source_, line + 1, column + 1}; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (has_root) fail(at(mark.line, mark.column), "a second document starts here; expected one document, without '---' after the first");
    has_root = true;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Node node;
    node.mark = at(mark.line, mark.column);
    finish(std::move(node), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) fail(at(mark.line, mark.column), "the alias is inside the anchor that it refers to");
    add(found->second.size, at(mark.line, mark.column));
    deliver(found->second.node);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, const std::string& value) override {
    check_tabs(mark);
    Node node;
    node.kind = Node::Kind::scalar;
    node.mark = at(mark.line, mark.column);
    node.text = value;
    node.quoted = tag != "?";
    if (tag == "!") check_closed(mark);
    check_characters(node);
    finish(std::move(node), anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor, YAML::EmitterStyle::value style) override {
    open(Node::Kind::list, mark, anchor, style);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor, YAML::EmitterStyle::value style) override {
    open(Node::Kind::map, mark, anchor, style);
  }
  void OnMapEnd() override { close(); }

 private:
  /// Values, and bytes of text. Aliases and anchors are copies: without a limit, a few nested ones ("billion laughs") or many of one long
  /// text would exhaust memory.
  struct Size {
    std::uint64_t values = 0, bytes = 0;
  };
  struct Level {
    Node node;
    YAML::anchor_t anchor = 0;
    bool flow = false;
    Size before;
    bool has_key = false;
    std::string key;
    std::unordered_map<std::string, int> lines;  // of the keys so far
    Mark key_mark;
    std::vector<Node> merges;  // values of `<<`: defaults for keys that the map itself does not have
  };
  struct Anchor {
    Node node;
    Size size;  // of all in it, itself included
  };

  void add(const Size& size, const Mark& mark) {
    size_.values += size.values;
    size_.bytes += size.bytes;
    if (size_.values > max_.values) io::fail_limit(mark.str(), io::Limit::yaml_values, "more");
    if (size_.bytes > max_.bytes) io::fail_limit(mark.str(), io::Limit::yaml_bytes, "more");
  }

  void check_tabs(const YAML::Mark& mark) const {  // indentation is ignored inside [] and {}
    if (!levels_.empty() && levels_.back().flow) return;
    const int column = tab_in_indentation(mark.line, static_cast<std::size_t>(mark.column));
    if (column > 0) fail(at(mark.line, column - 1), tab_message);
  }

  /// yaml-cpp accepts a text whose quote is never closed and reads to the end of the file.
  void check_closed(const YAML::Mark& mark) const {
    std::size_t line = static_cast<std::size_t>(mark.line);
    if (line >= lines_.size()) return;
    std::string_view rest = lines_[line];
    if (static_cast<std::size_t>(mark.column) >= rest.size()) return;
    const char quote = rest[static_cast<std::size_t>(mark.column)];
    if (quote != '"' && quote != '\'') return;  // a block text, or a tag or anchor precedes the quote
    rest.remove_prefix(static_cast<std::size_t>(mark.column) + 1);
    for (;;) {
      for (std::size_t i = 0; i < rest.size(); ++i) {
        if (quote == '"' && rest[i] == '\\')
          ++i;
        else if (rest[i] == quote)
          return;
      }
      if (++line >= lines_.size()) fail(at(mark.line, mark.column), "the quote that opens here is not closed");
      rest = lines_[line];
    }
  }

  /// yaml-cpp accepts any bytes, of which other files, JSON among them, could not be written.
  static void check_characters(const Node& node) {
    const std::string_view text = node.text;
    for (std::size_t i = 0; i < text.size();) {
      const std::size_t length = text[i] == '\0' ? 1 : utf8_length(text.substr(i));
      if (length == 0) {
        fail(node.mark, fmt::format("expected text in UTF-8, got the byte 0x{:02x}; convert the file by `iconv -t UTF-8`",
                                    static_cast<unsigned char>(text[i])));
      }
      i += length;
    }
  }

  void open(Node::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor, YAML::EmitterStyle::value style) {
    if (style == YAML::EmitterStyle::Block) check_tabs(mark);
    Level level;
    level.node.kind = kind;
    level.node.mark = at(mark.line, mark.column);
    level.anchor = anchor;
    level.flow = style == YAML::EmitterStyle::Flow || (!levels_.empty() && levels_.back().flow);
    level.before = size_;
    levels_.push_back(std::move(level));
  }

  void close() {
    Level level = std::move(levels_.back());
    levels_.pop_back();
    for (const Node& merge : level.merges) {
      for (const Node::Entry& entry : merge.entries) {
        if (level.lines.emplace(entry.key, entry.mark.line).second) level.node.entries.push_back(entry);
      }
    }
    finish(std::move(level.node), level.anchor, level.before);
  }

  void finish(Node node, YAML::anchor_t anchor) { finish(std::move(node), anchor, size_); }
  void finish(Node node, YAML::anchor_t anchor, Size before) {
    add({1, node.text.size()}, node.mark);
    if (anchor != 0) {
      const Size size{size_.values - before.values, size_.bytes - before.bytes};
      add(size, node.mark);
      anchors_[anchor] = {node, size};
    }
    deliver(std::move(node));
  }

  void deliver(Node node) {
    if (levels_.empty()) {
      root = std::move(node);
      return;
    }
    Level& level = levels_.back();
    if (level.node.kind == Node::Kind::list) {
      level.node.items.push_back(std::move(node));
    } else if (!level.has_key) {
      take_key(level, std::move(node));
    } else {
      level.has_key = false;
      if (level.key == "<<")
        take_merge(level, std::move(node));
      else
        level.node.entries.push_back({level.key, level.key_mark, std::move(node)});
    }
  }

  static void take_key(Level& level, Node node) {
    if (node.kind != Node::Kind::scalar) fail(node.mark, "a key must be a plain word, not a list or a map");
    const auto [first, is_new] = level.lines.emplace(node.text, node.mark.line);
    if (!is_new && node.text != "<<") fail(node.mark, fmt::format("key '{}' is given twice; first at line {}", node.text, first->second));
    level.has_key = true;
    level.key = node.text;
    level.key_mark = node.mark;
  }

  static void take_merge(Level& level, Node node) {
    const bool is_list = node.kind == Node::Kind::list;
    std::vector<Node> maps = is_list ? std::move(node.items) : std::vector<Node>{std::move(node)};
    for (Node& map : maps) {
      if (map.kind != Node::Kind::map) fail(level.key_mark, "the merge key '<<' expects a map or a list of maps");
      level.merges.push_back(std::move(map));
    }
  }

  std::vector<std::string_view> lines_;
  std::shared_ptr<const Source> source_;
  std::vector<Level> levels_;
  std::map<YAML::anchor_t, Anchor> anchors_;
  Size size_;
  const Size max_{io::limit(io::Limit::yaml_values), io::limit(io::Limit::yaml_bytes)};
};

}  // namespace

std::string Mark::str() const {
  const std::string name = source ? source->name : "";
  return line > 0 ? fmt::format("{}:{}:{}", name, line, column) : name;
}

const Node::Entry* Node::find(std::string_view key) const {
  for (const Entry& entry : entries) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

Node::Entry* Node::find(std::string_view key) {
  return const_cast<Entry*>(std::as_const(*this).find(key));
}

Node parse(const std::string& text, std::shared_ptr<const Source> source) {
  TreeBuilder builder(text, source);
  std::istringstream stream(text);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::ParserException& problem) {
    // A tab is usually reported as a different error on its line.
    const int tab = builder.tab_in_indentation(problem.mark.line);
    if (tab > 0) fail(builder.at(problem.mark.line, tab - 1), tab_message);
    fail(builder.at(problem.mark.line, problem.mark.column), plain_words(problem.msg));
  } catch (const YAML::Exception& problem) {
    fail({source, 1, 1}, plain_words(problem.msg));
  }
  if (!builder.has_root) fail({source, 1, 1}, "the file is empty; expected keys and values");
  return std::move(builder.root);
}

Node load(const std::string& path) {
  auto source = std::make_shared<Source>();
  source->name = path;
  source->folder = platform::text_of(platform::path_of(path).parent_path());
  const std::vector<std::uint8_t> bytes = io::read_file(path, io::Limit::yaml_bytes);
  return parse({bytes.begin(), bytes.end()}, source);
}

Assignment parse_assignment(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) throw Error("--set " + text + ": expected key=value, as in epochs=3");
  return {text.substr(0, equals), text.substr(equals + 1)};
}

std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> words;
  for (;;) {
    const std::size_t dot = path.find('.');
    words.emplace_back(path.substr(0, dot));
    if (dot == std::string_view::npos) return words;
    path.remove_prefix(dot + 1);
  }
}

namespace {

void set_marks(Node& node, const Mark& mark) {  // a line number inside an override is useless
  node.mark = mark;
  for (Node& item : node.items) set_marks(item, mark);
  for (Node::Entry& entry : node.entries) {
    entry.mark = mark;
    set_marks(entry.value, mark);
  }
}

Node parse_value(const std::string& value, const Mark& mark, bool literal) {
  Node node;
  if (literal) {
    node.kind = Node::Kind::scalar;
    node.text = value;
  } else if (value.find_first_not_of(" \t") != std::string::npos) {
    auto inner = std::make_shared<Source>(*mark.source);
    try {
      node = parse(value, inner);
    } catch (const Error& problem) {
      // Drop the position: the value has one line, which the message contains.
      std::string text = problem.what();
      const std::size_t start = text.find(": ", mark.source->name.size());
      fail(mark, "the value is not YAML: " + text.substr(start == std::string::npos ? 0 : start + 2));
    }
  }
  set_marks(node, mark);
  return node;
}

Node& step_into(Node& node, const std::string& word, const std::string& key_path, const Mark& mark) {
  if (node.kind == Node::Kind::list) {
    const bool is_number = !word.empty() && word.size() < 9 && word.find_first_not_of("0123456789") == std::string::npos;
    const std::size_t index = is_number ? std::stoul(word) : node.items.size();
    if (index >= node.items.size()) {
      fail(mark, fmt::format("key '{}': index '{}' is out of range for a list of {}", key_path, word, node.items.size()));
    }
    return node.items[index];
  }
  if (node.kind != Node::Kind::map) {
    Node map;
    map.kind = Node::Kind::map;
    map.mark = mark;
    if (node.kind == Node::Kind::scalar) map.scalar = std::make_shared<Node>(std::move(node));
    node = std::move(map);
  }
  if (Node::Entry* entry = node.find(word)) return entry->value;
  node.entries.push_back({word, mark, Node()});
  return node.entries.back().value;
}

}  // namespace

void assign(Node& root, const std::string& key_path, const std::string& value, std::shared_ptr<const Source> source, bool literal) {
  const Mark mark{std::move(source), 0, 0};
  Node* node = &root;
  for (const std::string& word : split_path(key_path)) {
    if (word.empty()) fail(mark, "key '" + key_path + "' has an empty part");
    node = &step_into(*node, word, key_path, mark);
  }
  *node = parse_value(value, mark, literal);
}

}  // namespace tenon::yaml
