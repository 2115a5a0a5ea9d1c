// SPDX-License-Identifier: Apache-2.0
// io/safetensors_header.cpp - the JSON header of a safetensors file.
//
// The parser is event-driven and accepts only the four levels of a header, so deeply nested input is rejected at once.
#include "io/safetensors_header.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

#include <tenon/error.h>

namespace tenon::io {
namespace {

using Json = nlohmann::json;

struct NamedDType {
  const char* name;
  DType dtype;
};
constexpr NamedDType dtypes[] = {
    {"F64", DType::f64}, {"F32", DType::f32}, {"F16", DType::f16},      {"BF16", DType::bf16}, {"I64", DType::i64},
    {"I32", DType::i32}, {"I16", DType::i16}, {"I8", DType::i8},        {"U8", DType::u8},     {"U16", DType::u16},
    {"U32", DType::u32}, {"U64", DType::u64}, {"BOOL", DType::boolean},
};

constexpr const char* metadata_key = "__metadata__";

/// Builds a SafetensorsHeader from the parser's events. Every unexpected event throws.
class HeaderReader final : public nlohmann::json_sax<Json> {
 public:
  explicit HeaderReader(const std::string& path) : path_(path) {}
  SafetensorsHeader take() { return std::move(header_); }

  bool start_object(std::size_t) override {
    if (level_ == Level::outside) {
      level_ = Level::file;
    } else if (level_ == Level::file && key_ == metadata_key) {
      level_ = Level::metadata;
    } else if (level_ == Level::file) {
      level_ = Level::tensor;
      header_.tensors.push_back({key_, DType::none, {}, 0, 0});
      has_dtype_ = has_shape_ = false;
      offsets_.clear();
    } else {
      unexpected("an object");
    }
    return true;
  }

  bool key(std::string& key) override {
    if (level_ == Level::file) {
      if (!names_.insert(key).second) throw Error(path_ + ": tensor " + shown_name(key) + " is given twice");
    } else if (level_ == Level::metadata) {
      if (header_.metadata.count(key)) throw Error(path_ + ": metadata " + shown_name(key) + " is given twice");
    } else {
      const bool again = (key == "dtype" && has_dtype_) || (key == "shape" && has_shape_) || (key == "data_offsets" && !offsets_.empty());
      if (again) fail("key " + shown_name(key) + " is given twice");
      if (key != "dtype" && key != "shape" && key != "data_offsets")
        fail("expected the keys dtype, shape and data_offsets, got " + shown_name(key));
    }
    (level_ == Level::file ? key_ : inner_key_) = key;
    return true;
  }

  bool string(std::string& text) override {
    if (level_ == Level::metadata) {
      header_.metadata[inner_key_] = text;
    } else if (level_ == Level::tensor && inner_key_ == "dtype") {
      const auto* found = std::find_if(std::begin(dtypes), std::end(dtypes), [&](const NamedDType& row) { return text == row.name; });
      if (found == std::end(dtypes)) fail("dtype " + shown_name(text) + " is unknown; expected " + known_dtypes());
      header_.tensors.back().dtype = found->dtype;
      has_dtype_ = true;
    } else {
      unexpected("the text " + shown_name(text));
    }
    return true;
  }

  bool start_array(std::size_t) override {
    if (level_ != Level::tensor || inner_key_ == "dtype") unexpected("a list");
    if (inner_key_ == "shape") {
      level_ = Level::shape;
      has_shape_ = true;
    } else {
      level_ = Level::offsets;
    }
    return true;
  }

  bool number_unsigned(Json::number_unsigned_t value) override {
    if (level_ == Level::shape) {
      if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        fail("size " + std::to_string(value) + " in its shape exceeds the range of int64");
      }
      try {
        header_.tensors.back().shape.push_back(static_cast<std::int64_t>(value));
      } catch (const Error& error) {
        fail(error.what());
      }
    } else if (level_ == Level::offsets) {
      if (offsets_.size() == 2) fail("expected 2 data_offsets, got more");
      offsets_.push_back(value);
    } else {
      unexpected("the number " + std::to_string(value));
    }
    return true;
  }

  bool end_array() override {
    if (level_ == Level::offsets && offsets_.size() != 2) fail("expected 2 data_offsets, got " + std::to_string(offsets_.size()));
    level_ = Level::tensor;
    return true;
  }

  bool end_object() override {
    if (level_ == Level::tensor) {
      if (!has_dtype_ || !has_shape_ || offsets_.empty()) {
        fail(std::string("has no ") + (!has_dtype_ ? "dtype" : !has_shape_ ? "shape" : "data_offsets"));
      }
      header_.tensors.back().begin = offsets_[0];
      header_.tensors.back().end = offsets_[1];
    }
    level_ = level_ == Level::file ? Level::outside : Level::file;
    return true;
  }

  bool number_integer(Json::number_integer_t value) override { unexpected("the number " + std::to_string(value)); }
  bool number_float(Json::number_float_t, const std::string& text) override { unexpected("the number " + text.substr(0, 40)); }
  bool null() override { unexpected("null"); }
  bool boolean(bool value) override { unexpected(value ? "true" : "false"); }
  bool binary(Json::binary_t&) override { unexpected("binary data"); }
  bool parse_error(std::size_t position, const std::string&, const Json::exception& error) override {
    // The library's text: "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while ..."
    std::string reason = error.what();
    if (const std::size_t colon = reason.find(": "); colon != std::string::npos) reason.erase(0, colon + 2);
    throw Error(path_ + ": its header is not JSON near byte " + std::to_string(position) + ": " + reason.substr(0, 200));
  }

 private:
  enum class Level { outside, file, metadata, tensor, shape, offsets };

  [[noreturn]] void fail(const std::string& what) const { throw Error(path_ + ": tensor " + shown_name(key_) + ": " + what); }

  [[noreturn]] void unexpected(const std::string& got) const {
    switch (level_) {
      case Level::outside:
        throw Error(path_ + ": expected an object as its header, got " + got);
      case Level::file:
        fail("expected an object, got " + got);
      case Level::metadata:
        throw Error(path_ + ": metadata " + shown_name(inner_key_) + ": expected a text, got " + got);
      case Level::tensor:
        fail(inner_key_ + ": expected " + (inner_key_ == "dtype" ? "a text" : "a list of integers") + ", got " + got);
      case Level::shape:
        fail("shape: expected non-negative integers, got " + got);
      case Level::offsets:
        fail("data_offsets: expected non-negative integers, got " + got);
    }
    throw Error(Status::internal, "HeaderReader: unknown level");
  }

  static std::string known_dtypes() {
    std::string text;
    for (const NamedDType& row : dtypes) text += std::string(text.empty() ? "" : " ") + row.name;
    return text;
  }

  const std::string& path_;
  SafetensorsHeader header_;
  std::unordered_set<std::string> names_;
  Level level_ = Level::outside;
  std::string key_, inner_key_;
  bool has_dtype_ = false, has_shape_ = false;
  std::vector<std::uint64_t> offsets_;
};

std::string range_of(const TensorEntry& t) {
  return "[" + std::to_string(t.begin) + ", " + std::to_string(t.end) + ")";
}

void check_entry(const std::string& path, const TensorEntry& t, std::uint64_t data_bytes) {
  const std::string what = path + ": tensor " + shown_name(t.name) + ": ";
  if (t.begin > t.end) throw Error(what + "its data_offsets " + range_of(t) + " end before they begin");
  if (t.end > data_bytes) {
    throw Error(what + "its data_offsets " + range_of(t) + " lie outside the file's " + std::to_string(data_bytes) +
                " bytes of data; the file is truncated or damaged");
  }
  const auto count = static_cast<std::uint64_t>(t.shape.count());
  const auto size = static_cast<std::uint64_t>(size_of(t.dtype));
  if (count > data_bytes / size || count * size != t.end - t.begin) {
    throw Error(what + safetensors_name_of(t.dtype) + t.shape.str() + " expects " + std::to_string(count) + " x " + std::to_string(size) +
                " bytes, its data_offsets " + range_of(t) + " hold " + std::to_string(t.end - t.begin));
  }
}

/// Checks that each byte of the data belongs to exactly one tensor, as the format requires.
void check_cover(const std::string& path, const std::vector<TensorEntry>& tensors, std::uint64_t data_bytes) {
  std::vector<const TensorEntry*> by_offset;
  by_offset.reserve(tensors.size());
  for (const TensorEntry& t : tensors) by_offset.push_back(&t);
  std::sort(by_offset.begin(), by_offset.end(),
            [](const TensorEntry* a, const TensorEntry* b) { return std::pair(a->begin, a->end) < std::pair(b->begin, b->end); });
  std::uint64_t reached = 0;
  for (const TensorEntry* t : by_offset) {
    if (t->begin == reached) {
      reached = t->end;
      continue;
    }
    throw Error(path + ": tensor " + shown_name(t->name) + ": its data_offsets " + range_of(*t) +
                (t->begin < reached ? " overlap those of another tensor, which end at " : " leave a gap after ") + std::to_string(reached));
  }
  if (reached != data_bytes) {
    throw Error(path + ": " + std::to_string(data_bytes - reached) + " trailing bytes after the last tensor; expected " +
                std::to_string(reached) + " bytes of data, got " + std::to_string(data_bytes));
  }
}

std::string quoted(const std::string& path, const std::string& text) {
  try {
    return Json(text).dump();
  } catch (const Json::exception&) {
    throw Error(path + ": cannot be written: " + shown_name(text) + " is not UTF-8");
  }
}

}  // namespace

const char* safetensors_name_of(DType dtype) {
  for (const NamedDType& row : dtypes) {
    if (row.dtype == dtype) return row.name;
  }
  return nullptr;
}

std::string shown_name(const std::string& name) {
  constexpr std::size_t max_length = 100;
  const std::string text = Json(name.substr(0, max_length)).dump(-1, ' ', false, Json::error_handler_t::replace);
  return name.size() > max_length ? text + "..." : text;
}

SafetensorsHeader parse_safetensors_header(const std::string& path, std::string_view json, std::uint64_t data_bytes) {
  HeaderReader reader(path);
  Json::sax_parse(json.begin(), json.end(), &reader);
  SafetensorsHeader header = reader.take();
  for (const TensorEntry& t : header.tensors) check_entry(path, t, data_bytes);
  check_cover(path, header.tensors, data_bytes);
  return header;
}

std::string write_safetensors_header(const std::string& path, const SafetensorsHeader& header) {
  std::string text = "{";
  if (!header.metadata.empty()) {
    text += "\"__metadata__\":{";
    for (const auto& [key, value] : header.metadata) {
      if (text.back() != '{') text += ',';
      text += quoted(path, key) + ':' + quoted(path, value);
    }
    text += '}';
  }
  for (const TensorEntry& t : header.tensors) {
    if (text.size() > 1) text += ',';
    text += quoted(path, t.name) + ":{\"dtype\":\"" + safetensors_name_of(t.dtype) + "\",\"shape\":[";
    for (const std::int64_t size : t.shape) {
      if (text.back() != '[') text += ',';
      text += std::to_string(size);
    }
    text += "],\"data_offsets\":[" + std::to_string(t.begin) + ',' + std::to_string(t.end) + "]}";
  }
  text += '}';
  text.append((8 - text.size() % 8) % 8, ' ');
  return text;
}

}  // namespace tenon::io
