// SPDX-License-Identifier: Apache-2.0
// data/csv.cpp - tables of numbers: parses text into fields, fields into numbers, labels into classes.
//
// Source  RFC 4180 (quotes); the delimiter may be another character, and lines may end in \n only.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include <tenon/data.h>

#include "data/files.h"
#include "io/gzip.h"

namespace tenon {
namespace {

using Header = CsvOptions::Header;
using Target = CsvOptions::Target;

constexpr double max_detected_classes = 10000;

struct Place {
  std::int64_t line = 0, column = 0;  ///< from 1, the column in bytes
};

struct Field {
  std::string_view text;
  Place place;
  bool quoted = false;
};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

/// Parses a finite number.
std::optional<double> number_of(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::string shown(std::string_view text) {
  if (text.empty()) return "an empty field";
  return "'" + std::string(text.substr(0, 40)) + (text.size() > 40 ? "...'" : "'");
}

/// Splits a text into records; the views of fields are valid until the next record.
class Reader {
 public:
  Reader(const std::string& path, std::string_view text, char delimiter) : path_(path), text_(text), delimiter_(delimiter) {
    if (text_.substr(0, 3) == "\xef\xbb\xbf") at_ = line_begin_ = 3;  // a byte order mark
  }

  [[noreturn]] void fail(Place place, const std::string& reason) const {
    throw Error(path_ + ":" + std::to_string(place.line) + ":" + std::to_string(place.column) + ": " + reason);
  }

  /// A field as f32, the dtype of features and values.
  float number(const Field& field, const std::string& column) const {
    const std::optional<double> value = number_of(field.text);
    const std::string where = "column '" + column + "': expected a ";
    if (!value) fail(field.place, where + "finite number, got " + shown(field.text));
    if (!std::isfinite(static_cast<float>(*value))) {
      fail(field.place, where + "number that f32 can hold, up to 3.4e38, got " + shown(field.text) + "; scale the column");
    }
    return static_cast<float>(*value);
  }

  /// Reads the next record; false at the end. Empty lines are skipped.
  bool next(std::vector<Field>& out_fields) {
    while (at_ < text_.size() && (text_[at_] == '\n' || text_.substr(at_, 2) == "\r\n")) {
      at_ += text_[at_] == '\n' ? 1 : 2;
      begin_line();
    }
    if (at_ >= text_.size()) return false;
    out_fields.clear();
    unescaped_.clear();
    for (;;) {
      out_fields.push_back(take_field());
      if (at_ >= text_.size()) return true;
      if (text_[at_++] == delimiter_) continue;
      begin_line();  // the field ended at a line feed
      return true;
    }
  }

 private:
  void begin_line() {
    ++line_;
    line_begin_ = at_;
  }
  Place here() const { return {line_, static_cast<std::int64_t>(at_ - line_begin_) + 1}; }

  /// Reads up to the delimiter, the line feed or the end, without consuming it.
  Field take_field() {
    Field field;
    field.place = here();
    if (at_ < text_.size() && text_[at_] == '"') {
      take_quoted(field);
      if (at_ < text_.size() && text_[at_] == '\r') ++at_;
      if (at_ < text_.size() && text_[at_] != delimiter_ && text_[at_] != '\n') fail(here(), "unexpected text after a closing quote");
      return field;
    }
    const char ends[] = {delimiter_, '\n'};
    const std::size_t end = std::min(text_.find_first_of(std::string_view(ends, 2), at_), text_.size());
    std::string_view text = text_.substr(at_, end - at_);
    at_ = end;
    if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
    field.place.column +=
        static_cast<std::int64_t>(text.find_first_not_of(" \t") == std::string_view::npos ? 0 : text.find_first_not_of(" \t"));
    field.text = trimmed(text);
    return field;
  }

  void take_quoted(Field& field) {
    field.quoted = true;
    std::string text;
    bool escapes = false;
    const std::size_t begin = ++at_;
    for (;; ++at_) {
      if (at_ >= text_.size()) fail(field.place, "the quote is not closed");
      if (text_[at_] == '\n') {
        ++line_;
        line_begin_ = at_ + 1;
      }
      if (text_[at_] == '"') {
        if (text_.substr(at_, 2) != "\"\"") break;
        escapes = true;
        ++at_;
      }
      text += text_[at_];
    }
    field.text = text_.substr(begin, at_ - begin);
    ++at_;
    if (!escapes) return;
    unescaped_.push_back(std::make_unique<std::string>(std::move(text)));
    field.text = *unescaped_.back();
  }

  const std::string& path_;
  std::string_view text_;
  char delimiter_;
  std::size_t at_ = 0, line_begin_ = 0;
  std::int64_t line_ = 1;
  std::vector<std::unique_ptr<std::string>> unescaped_;  ///< fields that contain ""
};

struct Label {
  std::string text;
  Place place;
};

/// A table with numeric features and labels as text.
struct Table {
  std::vector<std::string> columns;
  std::size_t label_column = 0;
  std::optional<std::size_t> weight_column;
  std::vector<float> features, weights;
  std::vector<Label> labels;

  bool is_feature(std::size_t column) const { return column != label_column && column != weight_column; }
};

/// The column of that name or index; `what` is its role in messages.
std::size_t find_column(const std::string& path, const std::vector<std::string>& columns, bool named, const char* what,
                        const std::string& label) {
  const auto found = std::find(columns.begin(), columns.end(), label);
  if (named && found != columns.end()) return static_cast<std::size_t>(found - columns.begin());
  std::int64_t index = 0;
  const auto [end, error] = std::from_chars(label.data(), label.data() + label.size(), index);
  const auto size = static_cast<std::int64_t>(columns.size());
  if (error != std::errc() || end != label.data() + label.size() || index < -size || index >= size) {
    std::string known;
    for (std::size_t i = 0; i < columns.size() && i < 20; ++i) known += (i > 0 ? ", " : "") + columns[i];
    throw Error(path + ": expected a " + what + " column '" + label + "', got " + std::to_string(size) + " columns: " + known +
                (columns.size() > 20 ? ", ..." : ""));
  }
  return static_cast<std::size_t>(index < 0 ? index + size : index);
}

Table read_table(const std::string& path, Reader& reader, const CsvOptions& options) {
  Table table;
  std::vector<Field> fields;
  if (!reader.next(fields)) throw Error(path + ": the file is empty; expected rows of numbers");
  bool named = options.header == Header::present;
  if (options.header == Header::detect)
    named = std::none_of(fields.begin(), fields.end(), [](const Field& f) { return number_of(f.text).has_value(); });
  for (std::size_t i = 0; i < fields.size(); ++i) table.columns.push_back(named ? std::string(fields[i].text) : std::to_string(i));
  if (fields.size() < 2) reader.fail(fields[0].place, "expected at least two columns, a feature and the label, got 1; check the delimiter");
  table.label_column = options.label.empty() ? fields.size() - 1 : find_column(path, table.columns, named, "label", options.label);
  if (!options.sample_weight.empty()) {
    table.weight_column = find_column(path, table.columns, named, "sample_weight", options.sample_weight);
    if (table.weight_column == table.label_column) {
      throw Error(path + ": column '" + table.columns[table.label_column] + "' is both the label and sample_weight; expected two columns" +
                  (options.label.empty() ? ": the label is the last one unless `label` names another" : ""));
    }
    if (fields.size() < 3) throw Error(path + ": expected a feature beside the label and sample_weight, got 2 columns");
  }
  for (bool more = named ? reader.next(fields) : true; more; more = reader.next(fields)) {
    if (fields.size() != table.columns.size()) {
      reader.fail({fields[0].place.line, 1}, "expected " + std::to_string(table.columns.size()) + " fields as in the first line, got " +
                                                 std::to_string(fields.size()));
    }
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (i == table.label_column) {
        table.labels.push_back({std::string(fields[i].text), fields[i].place});
        continue;
      }
      const float number = reader.number(fields[i], table.columns[i]);
      if (table.is_feature(i)) {
        table.features.push_back(number);
      } else if (number >= 0) {
        table.weights.push_back(number);
      } else {
        reader.fail(fields[i].place,
                    "column '" + table.columns[i] + "': expected a sample weight of at least 0, got " + shown(fields[i].text));
      }
    }
  }
  if (table.labels.empty()) throw Error(path + ": expected at least one row after the header, got none");
  return table;
}

/// Labels as numbers; empty if one of them is not a number.
std::optional<std::vector<double>> label_numbers(const Table& table) {
  std::vector<double> numbers;
  for (const Label& label : table.labels) {
    const std::optional<double> number = number_of(label.text);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

bool are_classes(const std::vector<double>& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](double v) { return v >= 0 && v < max_detected_classes && v == std::floor(v); });
}

/// Targets: f32 (rows, 1) for values, or i64 (rows) for classes, with their names if labels are words.
struct LabelColumn {
  Tensor y;
  std::optional<std::int64_t> num_classes;
  std::vector<std::string> classes;
};

LabelColumn read_values(const Reader& reader, const Table& table) {
  Tensor y = Tensor::empty(DType::f32, {static_cast<std::int64_t>(table.labels.size()), 1});
  for (std::size_t i = 0; i < table.labels.size(); ++i) {
    y.data<float>()[i] = reader.number({table.labels[i].text, table.labels[i].place}, table.columns[table.label_column]);
  }
  return {y, std::nullopt, {}};
}

LabelColumn read_words(const Reader& reader, const Table& table, const std::vector<std::string>& given) {
  std::vector<std::string> words = given;
  if (words.empty()) {
    std::set<std::string> all;
    for (const Label& label : table.labels) all.insert(label.text);
    words.assign(all.begin(), all.end());
  }
  std::map<std::string, std::int64_t> numbers;
  for (std::size_t i = 0; i < words.size(); ++i) numbers.emplace(words[i], static_cast<std::int64_t>(i));
  Tensor y = Tensor::empty(DType::i64, {static_cast<std::int64_t>(table.labels.size())});
  for (std::size_t i = 0; i < table.labels.size(); ++i) {
    const Label& label = table.labels[i];
    const auto found = numbers.find(label.text);
    if (found == numbers.end() || label.text.empty()) {
      std::string known;
      for (std::size_t w = 0; w < words.size() && w < 20; ++w) known += (w > 0 ? ", " : "") + words[w];
      reader.fail(label.place, "column '" + table.columns[table.label_column] + "': expected a class of " + known +
                                   (words.size() > 20 ? ", ..." : "") + ", got " + shown(label.text));
    }
    y.data<std::int64_t>()[i] = found->second;
  }
  return {y, static_cast<std::int64_t>(words.size()), words};
}

LabelColumn read_targets(const Reader& reader, const Table& table, const CsvOptions& options) {
  if (options.target == Target::values) return read_values(reader, table);
  if (!options.classes.empty()) return read_words(reader, table, options.classes);
  const std::optional<std::vector<double>> numbers = label_numbers(table);
  if (!numbers) return read_words(reader, table, {});
  if (!are_classes(*numbers)) {
    if (options.target == Target::detect) return read_values(reader, table);
    return read_words(reader, table, {});
  }
  Tensor y = Tensor::empty(DType::i64, {static_cast<std::int64_t>(numbers->size())});
  std::transform(numbers->begin(), numbers->end(), y.data<std::int64_t>(), [](double v) { return static_cast<std::int64_t>(v); });
  return {y, static_cast<std::int64_t>(*std::max_element(numbers->begin(), numbers->end())) + 1, {}};
}

}  // namespace

CsvData load_csv(const std::string& path, const CsvOptions& options) {
  const std::vector<std::uint8_t> bytes = io::read_maybe_gzip(path);
  Reader reader(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, options.delimiter);
  Table table = read_table(path, reader, options);
  LabelColumn targets = read_targets(reader, table, options);
  const auto rows = static_cast<std::int64_t>(table.labels.size());
  const auto width = static_cast<std::int64_t>(table.columns.size()) - (table.weight_column ? 2 : 1);
  auto features = std::make_shared<std::vector<float>>(std::move(table.features));
  ArrayOptions array;
  array.name = data::folder_name(path);
  array.num_classes = targets.num_classes;
  if (table.weight_column) array.sample_weights = Tensor::of(table.weights, {rows});
  CsvData result;
  result.data =
      std::make_shared<const ArrayDataset>(Tensor::borrow(features->data(), DType::f32, {rows, width}, features), targets.y, array);
  result.label = table.columns[table.label_column];
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (table.is_feature(i)) result.features.push_back(table.columns[i]);
  }
  result.classes = targets.classes;
  return result;
}

}  // namespace tenon
