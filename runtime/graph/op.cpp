// SPDX-License-Identifier: Apache-2.0
// op.cpp - the table of ops in the runtime, and helpers of shape rules.
#include "graph/op.h"

#include <fmt/format.h>

#include <tenon/error.h>
#include <tenon/functions.h>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "graph/collectives.h"
#include "graph/vendor_ops.h"
#include "platform/per_thread.h"
#include "text/counted.h"

namespace tenon {
namespace {

using graph::OpEntry;
using graph::OpLine;

constexpr OpLine op_lines[] = {
#define TENON_OP(id, name, version, stem, family, type_operand, dtypes, attributes, indexing, schema) \
  {id, #name, version, #stem, type_operand, #attributes, sizeof(tenon_attributes_##attributes), graph::Indexing::indexing, schema},
#include <tenon/ops.def>
#undef TENON_OP
};

const std::unordered_map<tenon_op, OpEntry>& entries() {
  static const std::unordered_map<tenon_op, OpEntry> map = [] {
    std::unordered_map<tenon_op, OpEntry> all;
    for (const OpLine& line : op_lines) all[line.op].line = &line;
    for (const graph::OpRulesRow* row = graph::op_rules_rows; row->rules != nullptr; ++row) all[row->op].rules = row->rules;
    all[graph::op_all_reduce] = {&graph::line_all_reduce, &graph::rules_all_reduce};
    all[graph::op_broadcast] = {&graph::line_broadcast, &graph::rules_broadcast};
    return all;
  }();
  return map;
}

/// NULL: neither listed nor a vendor's op that this process knows.
const OpEntry* find_entry(tenon_op op) {
  if (graph::is_vendor_op(op)) {
    const graph::VendorOp* const known = graph::find_vendor_op(op);
    return known == nullptr ? nullptr : &known->entry;
  }
  const auto found = entries().find(op);
  return found == entries().end() ? nullptr : &found->second;
}

const OpEntry& entry_of(tenon_op op) {
  const OpEntry* const entry = find_entry(op);
  if (entry != nullptr) return *entry;
  throw Error(Status::unsupported, graph::is_vendor_op(op) ? fmt::format("op {} is no vendor's op of this process: see vendor_op()", op)
                                                           : fmt::format("op {} is not listed in tenon/ops.def", op));
}

/// Word i of a schema side: "b:T" for index 1 in "a:T b:T c:T? "; empty in repeated groups, which have no word of their own.
std::string_view word_of(std::string_view side, std::size_t i) {
  for (std::size_t k = 0; side.find(':') != std::string_view::npos; ++k) {
    const std::string_view word = side.substr(0, side.find(' '));
    if (word.front() == '(') break;
    if (k == i) return word;
    side.remove_prefix(std::min(word.size() + 1, side.size()));
  }
  return {};
}

/// The two sides of "a:T b:T -> y:T; axis".
std::string_view operands_of(tenon_op op) {
  const std::string_view schema = entry_of(op).line->schema;
  return schema.substr(0, schema.find("->"));
}
std::string_view results_of(tenon_op op) {
  std::string_view schema = entry_of(op).line->schema;
  schema.remove_prefix(schema.find("-> ") + 3);
  return schema.substr(0, schema.find(';'));
}

bool is_accumulation_word(std::string_view word) {
  return !word.empty() && word.substr(word.find(':') + 1).front() == 'S';
}

std::string operand_name(tenon_op op, std::size_t i) {
  const std::string_view word = word_of(operands_of(op), i);
  return word.empty() ? "operand " + std::to_string(i) : std::string(word.substr(0, word.find(':')));
}

template <class T>
Tensor scalar_tensor(DType dtype, double value) {
  if constexpr (std::is_integral_v<T>) {
    // the largest values of 64-bit types round up to a power of two as doubles, which the type cannot represent
    const double limit = std::ldexp(1.0, std::numeric_limits<T>::digits);
    if (!(value >= static_cast<double>(std::numeric_limits<T>::min()) && value < limit) || std::trunc(value) != value) {
      throw Error(fmt::format("the constant {} is not a value of {}", value, name_of(dtype)));
    }
  }
  return Tensor::scalar<T>(static_cast<T>(value));
}

}  // namespace

const char* op_name(tenon_op op) {
  if (const OpEntry* const entry = find_entry(op)) return entry->line->name;
  static constinit const platform::PerThread<std::string> unlisted;
  *unlisted = fmt::format("op {}", op);
  return unlisted->c_str();
}

// The functions of tenon/elementwise_functions.h.
namespace ops {

#define TENON_DEFINE(op, function)              \
  Value function(Value x) {                     \
    return graph::apply_op(TENON_OP_##op, {x}); \
  }
TENON_UNARY_FUNCTIONS(TENON_DEFINE)
#undef TENON_DEFINE

#define TENON_DEFINE(op, function)                 \
  Value function(Value a, Value b) {               \
    return graph::apply_op(TENON_OP_##op, {a, b}); \
  }
TENON_BINARY_FUNCTIONS(TENON_DEFINE)
TENON_BINARY_BOOL_FUNCTIONS(TENON_DEFINE)
#undef TENON_DEFINE

#define TENON_DEFINE(op, function)                              \
  Value function(Value a, double b) {                           \
    return function(a, graph::scalar(a.graph(), a.dtype(), b)); \
  }
TENON_BINARY_FUNCTIONS(TENON_DEFINE)
#undef TENON_DEFINE

}  // namespace ops

namespace graph {

const OpRules& rules_of(tenon_op op) {
  return *entry_of(op).rules;
}
std::uint32_t version_of(tenon_op op) {
  return entry_of(op).line->version;
}
const char* stem_of(tenon_op op) {
  return entry_of(op).line->stem;
}
const char* schema_of(tenon_op op) {
  return entry_of(op).line->schema;
}

Indexing indexing_of(tenon_op op) {
  return entry_of(op).line->indexing;
}
bool is_view(tenon_op op) {
  const Indexing indexing = indexing_of(op);
  return indexing == Indexing::reshape || indexing == Indexing::transpose || indexing == Indexing::expand;
}

bool is_accumulation_operand(tenon_op op, std::size_t i) {
  return is_accumulation_word(word_of(operands_of(op), i));
}
bool is_accumulation_result(tenon_op op, std::size_t i) {
  return is_accumulation_word(word_of(results_of(op), i));
}

DType kernel_dtype(const Graph& graph, const NodeInfo& node) {
  const int operand = entry_of(node.op).line->type_operand;
  return graph.info(operand < 0 ? node.outputs[0] : node.inputs[static_cast<std::size_t>(operand)]).dtype;
}

void check_attributes(tenon_op op, const Attributes& attributes) {
  const OpLine& line = *entry_of(op).line;
  const std::uint32_t size = attributes.as<tenon_attributes_none>().struct_size;
  if (size != line.attributes_size) {
    throw Error(fmt::format("{}: expected attributes tenon_attributes_{} ({} bytes), got {} bytes", line.stem, line.attributes,
                            line.attributes_size, size));
  }
}

void Inference::fail(const std::string& text) const {
  throw Error(fmt::format("{} '{}': {}", stem_of(op_), node_, text));
}

std::string Inference::str(std::size_t i) const {
  return fmt::format("{} {}{}", operand_name(op_, i), name_of(dtype(i)), shape(i).str());
}

void Inference::expect_inputs(std::size_t lowest, std::size_t highest) const {
  if (input_count() < lowest || input_count() > highest) {
    const std::string expected = lowest == highest ? counted(lowest, "operand") : fmt::format("{} to {} operands", lowest, highest);
    fail(fmt::format("expected {}, got {}", expected, input_count()));
  }
  for (std::size_t i = 0; i < lowest; ++i) {
    if (!has(i)) fail(fmt::format("operand {} is absent", operand_name(op_, i)));
  }
}

void Inference::expect_same_dtype(std::size_t a, std::size_t b) const {
  if (dtype(a) != dtype(b)) fail(fmt::format("expected equal dtypes, got {}, {}", str(a), str(b)));
}

void Inference::expect_same_shape(std::size_t a, std::size_t b) const {
  if (shape(a) != shape(b)) fail(fmt::format("expected equal shapes, got {}, {}", str(a), str(b)));
}

void Inference::expect_floating(std::size_t i) const {
  if (!is_floating(dtype(i))) fail(fmt::format("expected a floating dtype, got {}", str(i)));
}

void Inference::expect_number(std::size_t i) const {
  if (dtype(i) == DType::boolean) fail(fmt::format("expected numbers, got {}", str(i)));
}

void Inference::expect_scalar(std::size_t i, DType expected) const {
  if (dtype(i) != expected || shape(i).rank() != 0)
    fail(fmt::format("expected {} as {}(), got {}", operand_name(op_, i), name_of(expected), str(i)));
}

void Inference::expect_flag(std::uint32_t value, const char* attribute) const {
  if (value > 1) fail(fmt::format("{} is {}, expected 0 or 1", attribute, value));
}

Shape Inference::broadcast(std::size_t a, std::size_t b) const {
  try {
    return tenon::broadcast(shape(a), shape(b));
  } catch (const Error&) {
    fail(fmt::format("the shapes do not broadcast: {}, {}", str(a), str(b)));
  }
}

std::int64_t Inference::axis(std::int64_t axis, std::size_t i) const {
  const std::int64_t rank = static_cast<std::int64_t>(shape(i).rank());
  if (axis < -rank || axis >= rank) fail(fmt::format("axis {} is out of range for {}", axis, str(i)));
  return axis < 0 ? axis + rank : axis;
}

Value apply_op(tenon_op op, const std::vector<Value>& inputs, const Attributes& attributes, const NodeOptions& options) {
  for (Value value : inputs) {
    if (value.present()) return value.graph().apply(op, inputs, attributes, options)[0];
  }
  throw Error(fmt::format("{}: every operand is absent", stem_of(op)));
}

Value scalar(Graph& graph, DType dtype, double value) {
  switch (dtype) {
    case DType::f32:
      return graph.constant(scalar_tensor<float>(dtype, value));
    case DType::f64:
      return graph.constant(scalar_tensor<double>(dtype, value));
    case DType::i8:
      return graph.constant(scalar_tensor<std::int8_t>(dtype, value));
    case DType::i16:
      return graph.constant(scalar_tensor<std::int16_t>(dtype, value));
    case DType::i32:
      return graph.constant(scalar_tensor<std::int32_t>(dtype, value));
    case DType::i64:
      return graph.constant(scalar_tensor<std::int64_t>(dtype, value));
    case DType::u8:
      return graph.constant(scalar_tensor<std::uint8_t>(dtype, value));
    case DType::u16:
      return graph.constant(scalar_tensor<std::uint16_t>(dtype, value));
    case DType::u32:
      return graph.constant(scalar_tensor<std::uint32_t>(dtype, value));
    case DType::u64:
      return graph.constant(scalar_tensor<std::uint64_t>(dtype, value));
    // there is no C++ type for these; write_element rounds
    case DType::f16:
    case DType::bf16:
      return ops::cast(scalar(graph, DType::f32, value), dtype);
    default:
      throw Error(fmt::format("the constant {} is not a value of {}", value, name_of(dtype)));
  }
}

Attributes axes_attributes(const char* what, const std::vector<std::int64_t>& axes, bool keepdims) {
  if (axes.size() > TENON_MAX_RANK) throw Error(fmt::format("{0}: expected at most {2} axes, got {1}", what, axes.size(), TENON_MAX_RANK));
  tenon_attributes_axes attributes{};
  attributes.keepdims = keepdims ? 1 : 0;
  attributes.count = static_cast<std::uint32_t>(axes.size());
  std::copy(axes.begin(), axes.end(), attributes.axes);
  return Attributes::of(attributes);
}

Value unbroadcast(Value gradient, const Shape& shape) {
  const Shape& from = gradient.shape();
  if (from == shape) return gradient;
  const std::size_t lead = from.rank() - shape.rank();
  std::vector<std::int64_t> axes;
  for (std::size_t i = 0; i < from.rank(); ++i) {
    if (i < lead || (shape[i - lead] == 1 && from[i] != 1)) axes.push_back(static_cast<std::int64_t>(i));
  }
  const Value sum = ops::reduce_sum(gradient, axes, lead == 0);
  return sum.shape() == shape ? sum : ops::reshape(sum, shape);
}

}  // namespace graph
}  // namespace tenon
