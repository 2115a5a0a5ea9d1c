// SPDX-License-Identifier: Apache-2.0
// ONNX node tests: ONNX's test vectors in the form that onnx/convert.py writes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include <tenon/attributes.h>
#include <tenon/dtype.h>
#include <tenon/error.h>

#include "case.h"

namespace tenon::conformance {
namespace {

using nlohmann::json;

Array array_of(const json& from) {
  const std::string dtype = from.at("dtype");
  const auto type = dtype_from(dtype);
  if (!type) throw Error(fmt::format("unknown dtype '{}'", dtype));
  Array array(static_cast<tenon_dtype>(*type), from.at("shape").get<Dims>());
  const std::string hex = from.at("data");
  if (hex.size() != 2 * array.size_bytes()) {
    throw Error(fmt::format("{} has {} bytes, expected {}", array.str(), hex.size() / 2, array.size_bytes()));
  }
  for (std::size_t i = 0; i < array.size_bytes(); ++i)
    array.bytes()[i] = static_cast<unsigned char>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
  return array;
}

/// Sets the fields of an attribute struct from an object with their names; what the object lacks is 0, or what is usual.
class FieldReader {
 public:
  explicit FieldReader(const json& from) : from_(from) {}

  template <class T>
  void value(const char* name, T& x) {
    optional(name, x, T{});
  }
  void flag(const char* name, std::uint32_t& x) { value(name, x); }
  template <class T>
  void optional(const char* name, T& x, std::type_identity_t<T> usual) {
    x = given(name) ? from_.at(name).get<T>() : usual;
  }
  void word(const char* name, std::uint32_t& x, std::initializer_list<const char*> words) {
    if (!given(name)) return;
    const std::string word = from_.at(name);
    const auto found = std::find(words.begin(), words.end(), word);
    if (found == words.end()) throw Error(fmt::format("{}: expected one of {}, got '{}'", name, fmt::join(words, ", "), word));
    x = static_cast<std::uint32_t>(found - words.begin());
  }
  void dtype(const char* name, tenon_dtype& x) {
    if (!given(name)) return;
    const std::string word = from_.at(name);
    const auto dtype = dtype_from(word);
    if (!dtype) throw Error(fmt::format("{}: expected a dtype, got '{}'", name, word));
    x = static_cast<tenon_dtype>(*dtype);
  }
  template <class T, std::size_t size>
  void list(const char* name, T (&entries)[size], std::type_identity_t<T> rest) {
    std::fill(entries, entries + size, rest);
    std::uint32_t count = 0;
    counted_list(name, entries, count);
  }
  template <class T, std::size_t size>
  void optional_list(const char* name, T (&entries)[size], std::type_identity_t<T> rest) {
    list(name, entries, rest);
  }
  template <class T, std::size_t size>
  void counted_list(const char* name, T (&entries)[size], std::uint32_t& count) {
    if (!given(name)) return;
    const auto numbers = from_.at(name).get<std::vector<T>>();
    if (numbers.size() > size) throw Error(fmt::format("{}: expected at most {} numbers, got {}", name, size, numbers.size()));
    std::copy(numbers.begin(), numbers.end(), entries);
    count = static_cast<std::uint32_t>(numbers.size());
  }
  void value_if(const char* name, std::int64_t& x, std::uint32_t& has) {
    has = given(name) ? 1 : 0;
    value(name, x);
  }
  /// Throws if the object has a name that was not asked for.
  void expect_all_read() const {
    for (const auto& [name, entry] : from_.items()) {
      if (!read_.contains(name)) throw Error(fmt::format("expected attributes {}, got '{}'", fmt::join(read_, ", "), name));
    }
  }

 private:
  const json& from_;
  std::set<std::string> read_;

  bool given(const char* name) {
    read_.insert(name);
    return from_.contains(name);
  }
};

AttributeBytes attributes_of(tenon_op op, const json& from) {
  FieldReader reader(from);
  switch (op) {
#define TENON_OP(id, name, version, stem, family, type_operand, dtypes, attribute_struct, indexing, schema) \
  case id: {                                                                                                \
    tenon_attributes_##attribute_struct attributes{};                                                       \
    visit_fields(attributes, reader);                                                                       \
    reader.expect_all_read();                                                                               \
    return attributes;                                                                                      \
  }
#include <tenon/ops.def>
#undef TENON_OP
    default:
      return {};
  }
}

struct Vector {
  const OpLine* line;
  AttributeBytes attributes;
  std::vector<Array> inputs, outputs;  ///< absent ones have TENON_DTYPE_NONE
};

void check_vector(CaseContext& context, const Vector& vector) {
  Variant variant;
  variant.attributes = vector.attributes;
  double largest_operand = 1;
  for (const Array& input : vector.inputs) {
    variant.inputs.push_back({input.shape(), {}, input.dtype(), input.dtype() != TENON_DTYPE_NONE});
    for (std::int64_t i = 0; is_float(input.dtype()) && i < input.count(); ++i)
      largest_operand = std::max(largest_operand, std::fabs(input.at(i)));
  }
  std::vector<Array> expected;
  for (const Array& output : vector.outputs) {
    variant.outputs.push_back({output.shape(), output.dtype(), output.dtype() != TENON_DTYPE_NONE});
    if (output.dtype() != TENON_DTYPE_NONE) expected.push_back(output);
  }
  const auto got = context.run(net_of(*vector.line, variant, vector.inputs[0].dtype(), vector.inputs));
  for (std::size_t i = 0; i < got.size(); ++i) {
    // Both sides have the error of an f32 (or f64) computation with at most some hundred terms.
    Bound bound;
    if (is_float(got[i].dtype())) bound = {32 * epsilon(got[i].dtype()), 32 * epsilon(got[i].dtype()) * largest_operand};
    const std::string wrong = compare(expected[i], got[i], bound);
    if (!wrong.empty()) throw Failure(fmt::format("output {}: {}", i, wrong));
  }
}

}  // namespace

std::vector<Case> onnx_case_list(const std::filesystem::path& file) {
  std::ifstream stream(file);
  if (!stream) throw Error(fmt::format("{}: cannot be read; tests/conformance/onnx/convert.py writes it", file.string()));
  std::vector<Case> cases;
  try {
    const json root = json::parse(stream);
    for (const json& entry : root.at("vectors")) {
      const std::string op = entry.at("op");
      const auto line = std::find_if(op_lines().begin(), op_lines().end(), [&](const OpLine& l) { return op == l.name; });
      if (line == op_lines().end()) throw Error(fmt::format("op '{}' is not in ops.def", op));
      Vector vector{&*line, attributes_of(line->op, entry.at("attributes")), {}, {}};
      for (const json& input : entry.at("inputs")) vector.inputs.push_back(input.is_null() ? Array() : array_of(input));
      for (const json& output : entry.at("outputs")) vector.outputs.push_back(output.is_null() ? Array() : array_of(output));
      if (vector.inputs.empty() || vector.outputs.empty()) throw Error("a vector without operands or results");
      const tenon_dtype dtype = vector.inputs[0].dtype();
      cases.push_back({"onnx/" + entry.at("name").get<std::string>(), line->stem, "onnx", dtype,
                       (line->dtypes & TENON_DTYPE_BIT(dtype)) != 0, [vector](CaseContext& context) { check_vector(context, vector); }});
    }
  } catch (const json::exception& e) {
    throw Error(fmt::format("{}: {}", file.string(), e.what()));
  } catch (const Error& e) {
    throw Error(fmt::format("{}: {}", file.string(), e.what()));
  }
  return cases;
}

}  // namespace tenon::conformance
