// SPDX-License-Identifier: Apache-2.0
#include "onnx/node.h"

#include <fmt/core.h>

#include <algorithm>

#include <tenon/error.h>

#include "onnx/importer.h"

namespace tenon::onnx {
namespace {

std::string place_of(const ModelFile& file, const NodeRecord& record, std::int64_t opset) {
  const std::string_view name = record.name.empty() && !record.outputs.empty() ? record.outputs[0] : record.name;
  return fmt::format("{}: node '{}' ({}{}{}-{})", file.name(), name, record.domain, record.domain.empty() ? "" : ".", record.op, opset);
}

using Type = AttributeRecord::Type;

const char* name_of(Type type) {
  switch (type) {
    case Type::f:
      return "a number";
    case Type::i:
      return "an integer";
    case Type::s:
      return "a text";
    case Type::tensor:
      return "a tensor";
    case Type::graph:
      return "a graph";
    case Type::floats:
      return "a list of numbers";
    case Type::ints:
      return "a list of integers";
    case Type::strings:
      return "a list of texts";
    case Type::sparse_tensor:
      return "a sparse tensor";
    default:
      return "another type";
  }
}

}  // namespace

Node::Node(Importer& importer, const NodeRecord& record, std::int64_t opset, std::vector<Operand> operands)
    : importer_(importer), record_(record), opset_(opset), operands_(std::move(operands)), results_(record.outputs.size()) {
  while (!operands_.empty() && operands_.back().is_absent()) operands_.pop_back();
}

Graph& Node::graph() const {
  return importer_.graph();
}

bool Node::on_host() const {
  return importer_.on_host();
}

const Operand& Node::operand(std::size_t i) const {
  if (!has_input(i)) fail(fmt::format("expected operand {}, got {}", i, i < operands_.size() ? "an empty name" : "fewer operands"));
  return operands_[i];
}

Value Node::input(std::size_t i) {
  if (operand(i).kind != Operand::Kind::tensor) fail(fmt::format("operand {}: expected a tensor, got a sequence or an optional", i));
  return importer_.value_of(operands_[i]);
}

std::vector<Value> Node::inputs() {
  std::vector<Value> values;
  for (std::size_t i = 0; i < operands_.size(); ++i) values.push_back(input(i));
  return values;
}

Tensor Node::known_if_constant(std::size_t i) {
  return importer_.elements_of(operand(i), false);
}

Tensor Node::known(std::size_t i) {
  return known(i, false);
}
Tensor Node::known_to_size(std::size_t i) {
  return known(i, true);
}

Tensor Node::known(std::size_t i, bool sizes_results) {
  const Tensor elements = importer_.elements_of(operand(i), true);
  if (elements.defined()) return elements;
  const std::string_view name = i < record_.inputs.size() ? record_.inputs[i] : std::string_view();
  const char* const use = sizes_results ? "determines the sizes of results and " : "";
  throw ElementsUnknown(
      fmt::format(
          "{}: operand {} '{}' {}has to be known when the program is made: expected a constant, a value that follows from shapes, or "
          "one that follows from inputs of at most 64 elements; got one that is computed from other inputs",
          place_of(importer_.file(), record_, opset_), i, name, use),
      i, sizes_results);
}

namespace {

template <class T, class U>
std::vector<T> converted(const Tensor& from) {
  const std::vector<U> values = from.to_vector<U>();
  std::vector<T> result(values.size());
  std::transform(values.begin(), values.end(), result.begin(), [](U value) { return static_cast<T>(value); });
  return result;
}

/// The elements as T, of any number dtype.
template <class T>
std::vector<T> elements_as(const Tensor& from) {
  switch (from.dtype()) {
    case DType::i8:
      return converted<T, std::int8_t>(from);
    case DType::i16:
      return converted<T, std::int16_t>(from);
    case DType::i32:
      return converted<T, std::int32_t>(from);
    case DType::i64:
      return converted<T, std::int64_t>(from);
    case DType::u8:
      return converted<T, std::uint8_t>(from);
    case DType::u16:
      return converted<T, std::uint16_t>(from);
    case DType::u32:
      return converted<T, std::uint32_t>(from);
    case DType::u64:
      return converted<T, std::uint64_t>(from);
    case DType::f32:
      return converted<T, float>(from);
    case DType::f64:
      return converted<T, double>(from);
    case DType::boolean:
      return converted<T, bool>(from);
    default:
      return converted<T, float>(from.to(DType::f32));
  }
}

}  // namespace

std::vector<std::int64_t> Node::known_integers(std::size_t i) {
  const Tensor elements = known(i);
  if (elements.shape().rank() > 1 || is_floating(elements.dtype()))
    fail(fmt::format("operand {}: expected integers of rank 0 or 1, got {}", i, elements.str()));
  return elements_as<std::int64_t>(elements);
}

std::vector<double> Node::known_numbers(std::size_t i) {
  const Tensor elements = known(i);
  if (elements.shape().rank() > 1) fail(fmt::format("operand {}: expected numbers of rank 0 or 1, got {}", i, elements.str()));
  return elements_as<double>(elements);
}

std::int64_t Node::known_integer(std::size_t i) {
  const std::vector<std::int64_t> elements = known_integers(i);
  if (elements.size() != 1) fail(fmt::format("operand {}: expected one element, got {}", i, elements.size()));
  return elements[0];
}

double Node::known_number(std::size_t i) {
  const std::vector<double> elements = known_numbers(i);
  if (elements.size() != 1) fail(fmt::format("operand {}: expected one element, got {}", i, elements.size()));
  return elements[0];
}

const AttributeRecord* Node::find(std::string_view name) const {
  const auto found = std::ranges::find(record_.attributes, name, &AttributeRecord::name);
  if (found == record_.attributes.end()) return nullptr;
  if (found->reference.empty()) return &*found;
  const auto& given = importer_.frame().attributes;
  const auto bound = given.find(found->reference);
  return bound == given.end() ? nullptr : bound->second;
}

const AttributeRecord* Node::find(std::string_view name, Type type) const {
  const AttributeRecord* found = find(name);
  if (found == nullptr) return nullptr;
  const bool is_graph = type == Type::graph && !found->graphs.empty();
  const bool is_empty_list = found->type == Type::undefined && (type == Type::ints || type == Type::floats || type == Type::strings);
  const bool zero = found->type == Type::undefined && (type == Type::i || type == Type::f || type == Type::s);  // IR version 1
  if (found->type != type && !is_graph && !is_empty_list && !zero)
    fail(fmt::format("attribute '{}': expected {}, got {}", name, name_of(type), name_of(found->type)));
  return found;
}

const AttributeRecord& Node::require(std::string_view name, Type type) const {
  const AttributeRecord* found = find(name, type);
  if (found == nullptr) fail(fmt::format("expected the attribute '{}', got none of this name", name));
  return *found;
}

std::int64_t Node::integer(std::string_view name) const {
  return require(name, Type::i).integer;
}
std::int64_t Node::integer(std::string_view name, std::int64_t otherwise) const {
  const AttributeRecord* found = find(name, Type::i);
  return found == nullptr ? otherwise : found->integer;
}
double Node::number(std::string_view name) const {
  return static_cast<double>(require(name, Type::f).number);
}
double Node::number(std::string_view name, double otherwise) const {
  const AttributeRecord* found = find(name, Type::f);
  return found == nullptr ? otherwise : static_cast<double>(found->number);
}
std::string_view Node::text(std::string_view name) const {
  return require(name, Type::s).text;
}
std::string_view Node::text(std::string_view name, std::string_view otherwise) const {
  const AttributeRecord* found = find(name, Type::s);
  return found == nullptr ? otherwise : found->text;
}
const std::vector<std::int64_t>& Node::integers(std::string_view name) const {
  static const std::vector<std::int64_t> none;
  const AttributeRecord* found = find(name, Type::ints);
  return found == nullptr ? none : found->integers;
}
const std::vector<float>& Node::numbers(std::string_view name) const {
  static const std::vector<float> none;
  const AttributeRecord* found = find(name, Type::floats);
  return found == nullptr ? none : found->numbers;
}
const std::vector<std::string_view>& Node::texts(std::string_view name) const {
  static const std::vector<std::string_view> none;
  const AttributeRecord* found = find(name, Type::strings);
  return found == nullptr ? none : found->texts;
}

Tensor Node::tensor(std::string_view name) const {
  const AttributeRecord& found = require(name, Type::tensor);
  if (found.tensors.empty()) fail(fmt::format("attribute '{}': expected a tensor, got none", name));
  return importer_.weights().tensor(found.tensors[0]);
}

Tensor Node::sparse_tensor(std::string_view name) const {
  const AttributeRecord& found = require(name, Type::sparse_tensor);
  if (found.sparse.empty()) fail(fmt::format("attribute '{}': expected a sparse tensor, got none", name));
  return importer_.weights().tensor(found.sparse[0]);
}

Tensor Node::numbers_tensor(std::string_view name) const {
  return importer_.weights().tensor(require(name, Type::floats));
}

const GraphRecord& Node::subgraph(std::string_view name) const {
  const AttributeRecord& found = require(name, Type::graph);
  if (found.graphs.empty()) fail(fmt::format("attribute '{}': expected a graph, got none", name));
  return found.graphs[0];
}

DType Node::element_type(std::string_view name, DType otherwise) const {
  if (find(name, Type::i) == nullptr) return otherwise;
  const std::int64_t type = integer(name);
  if (type < 0 || type > 1000) fail(fmt::format("attribute '{}': expected an element type, got {}", name, type));
  const auto element = static_cast<ElementType>(type);
  const DType dtype = dtype_of(element);
  if (dtype == DType::none)
    unsupported(fmt::format("the element type {} of attribute '{}' is not one that Tenon computes with", onnx::name_of(element), name));
  return dtype;
}

std::int64_t Node::resolve_axis(std::int64_t axis, std::int64_t rank) const {
  if (axis < -rank || axis >= rank) fail(fmt::format("expected an axis in [-{0}, {0}), got {1}", rank, axis));
  return axis < 0 ? axis + rank : axis;
}

void Node::output(std::size_t i, Operand operand) {
  if (i < results_.size()) results_[i] = std::move(operand);
}

std::vector<Operand> Node::run_subgraph(const GraphRecord& graph, std::vector<Operand> inputs) {
  return importer_.run_graph(graph, std::move(inputs));
}

Tensor Node::known_of(const Operand& operand, bool needed) {
  return importer_.elements_of(operand, needed);
}

Value Node::value_of(const Operand& operand) {
  return importer_.value_of(operand);
}

const LearningMode* Node::mode() const {
  return importer_.mode();
}
bool Node::is_weight(std::size_t i) const {
  return importer_.weights().name_of(operand(i).known) != nullptr;
}
bool Node::learns(std::size_t i) const {
  const std::string* name = importer_.weights().name_of(operand(i).known);
  return name != nullptr && mode() != nullptr && mode()->learns(*name);
}
Value Node::state(std::size_t i) {
  return importer_.state(operand(i));
}
void Node::set_state(std::size_t i, Value next) {
  importer_.set_state(operand(i), next);
}
Value Node::key() {
  return importer_.key();
}

void Node::count_iterations(std::int64_t iterations) {
  importer_.count_iterations(*this, iterations);
}

void Node::run_bodies(const std::string& problem) const {
  importer_.run_bodies(*this, problem);
}

void Node::unsupported(const std::string& text) const {
  throw Error(Status::unsupported, place_of(importer_.file(), record_, opset_) + ": " + text);
}

void Node::fail(const std::string& text) const {
  throw Error(place_of(importer_.file(), record_, opset_) + ": " + text);
}

}  // namespace tenon::onnx
