// SPDX-License-Identifier: Apache-2.0
// Graphs of the C API.
#include "c/graph.h"

#include <algorithm>

#include "c/json.h"
#include "graph/op.h"
#include "text/counted.h"

using namespace tenon;
using namespace tenon::c;

namespace {

/// A value of the graph. Errors  an index that the graph does not have.
Value value_of(Graph& graph, TenonValue value, const char* argument) {
  if (value >= graph.values().size()) {
    throw BadArgument(std::string(argument) + ": expected a value of the graph, which has " + std::to_string(graph.values().size()) +
                      ", got " + std::to_string(value));
  }
  return Value(&graph, value);
}

std::uint32_t kind_of(ValueKind kind) {
  switch (kind) {
    case ValueKind::input:
      return TENON_VALUE_INPUT;
    case ValueKind::parameter:
      return TENON_VALUE_PARAMETER;
    case ValueKind::constant:
      return TENON_VALUE_CONSTANT;
    case ValueKind::computed:
      return TENON_VALUE_INTERNAL;
  }
  return TENON_VALUE_INTERNAL;
}

std::vector<Value> operands(Graph& graph, const TenonValue* inputs, std::uint64_t count) {
  std::vector<Value> values;
  for (const TenonValue value : array(inputs, count, "inputs"))
    values.push_back(value == TENON_NO_INDEX ? Value() : value_of(graph, value, "inputs"));
  return values;
}

/// How many results the op has by its schema, "a:T b:T? -> y:T mean:S; axis"; those of a repeated group by the options.
std::size_t result_count(const Node& node) {
  const std::string schema = graph::schema_of(node.op);
  const std::size_t begin = schema.find("->");
  const std::string results = schema.substr(begin, schema.find(';', begin) - begin);
  if (results.find('*') != std::string::npos) return node.options.sizes.size();
  return static_cast<std::size_t>(std::ranges::count(results, ':'));
}

void apply(TenonGraph* graph, const Node& node, const TenonValue* inputs, std::uint64_t input_count, TenonValue* out_values,
           std::uint64_t capacity, std::uint64_t* out_count) {
  Graph& own = get(graph, "graph").value;
  const std::size_t count = result_count(node);
  if (capacity < count) {
    throw BadArgument("out_values: expected space for the " + counted(count, "result") + " of " + op_name(node.op) + ", got it for " +
                      std::to_string(capacity));
  }
  array(out_values, count, "out_values");
  const std::vector<Value> results = own.apply(node.op, operands(own, inputs, input_count), node.attributes, node.options);
  for (std::size_t i = 0; i < results.size(); ++i) out_values[i] = results[i].id();
  if (out_count != nullptr) *out_count = results.size();
}

std::vector<Value> values_of(Graph& graph, const TenonValue* given, std::uint64_t count, const char* argument) {
  std::vector<Value> values;
  for (const TenonValue value : array(given, count, argument)) values.push_back(value_of(graph, value, argument));
  return values;
}

void append_gradients(TenonGraph* graph, TenonValue loss, const TenonValue* with_respect_to, std::uint64_t count,
                      const TenonValue* constants, std::uint64_t constant_count, TenonValue* out_gradients) {
  Graph& own = get(graph, "graph").value;
  array(out_gradients, count, "out_gradients");
  const std::vector<Value> gradients =
      tenon::gradients(value_of(own, loss, "loss"), values_of(own, with_respect_to, count, "with_respect_to"),
                       values_of(own, constants, constant_count, "constants"));
  for (std::size_t i = 0; i < gradients.size(); ++i) out_gradients[i] = gradients[i].id();
}

}  // namespace

TenonError* tenon_graph_create(TenonGraph** out_graph) {
  return guard(__func__, [&] { *required(out_graph, "out_graph") = new TenonGraph(); });
}

TenonError* tenon_graph_input(TenonGraph* graph, const char* name, tenon_dtype dtype, uint32_t rank, const int64_t* shape,
                              TenonValue* out_value) {
  return guard(__func__, [&] {
    required(out_value, "out_value");
    *out_value = get(graph, "graph").value.input(text(name, "name"), c::dtype_of(dtype), shape_of(rank, shape)).id();
  });
}

TenonError* tenon_graph_parameter(TenonGraph* graph, const char* name, tenon_dtype dtype, uint32_t rank, const int64_t* shape,
                                  TenonValue* out_value) {
  return guard(__func__, [&] {
    required(out_value, "out_value");
    *out_value = get(graph, "graph").value.parameter(text(name, "name"), c::dtype_of(dtype), shape_of(rank, shape)).id();
  });
}

TenonError* tenon_graph_constant(TenonGraph* graph, const TenonTensor* tensor, const char* name, TenonValue* out_value) {
  return guard(__func__, [&] {
    required(out_value, "out_value");
    *out_value = get(graph, "graph").value.constant(get(tensor, "tensor").value, optional_text(name)).id();
  });
}

TenonError* tenon_graph_apply(TenonGraph* graph, tenon_op op, const void* attributes, const TenonNodeOptions* options,
                              const TenonValue* inputs, uint64_t input_count, TenonValue* out_values, uint64_t capacity,
                              uint64_t* out_count) {
  return guard(__func__, [&] { apply(graph, node_of(op, attributes, options), inputs, input_count, out_values, capacity, out_count); });
}

TenonError* tenon_graph_apply_named(TenonGraph* graph, const char* op, const char* attributes, const TenonValue* inputs,
                                    uint64_t input_count, TenonValue* out_values, uint64_t capacity, uint64_t* out_count) {
  return guard(__func__, [&] { apply(graph, node_of(op, attributes), inputs, input_count, out_values, capacity, out_count); });
}

TenonError* tenon_graph_output(TenonGraph* graph, const char* name, TenonValue value) {
  return guard(__func__, [&] {
    Graph& own = get(graph, "graph").value;
    own.output(text(name, "name"), value_of(own, value, "value"));
  });
}

TenonError* tenon_graph_update(TenonGraph* graph, TenonValue parameter, TenonValue value) {
  return guard(__func__, [&] {
    Graph& own = get(graph, "graph").value;
    own.update(value_of(own, parameter, "parameter"), value_of(own, value, "value"));
  });
}

TenonError* tenon_graph_set_device(TenonGraph* graph, const char* device) {
  return guard(__func__, [&] { get(graph, "graph").value.set_device(optional_text(device)); });
}

TenonError* tenon_graph_set_scope(TenonGraph* graph, const char* scope) {
  return guard(__func__, [&] { get(graph, "graph").value.set_scope(optional_text(scope)); });
}

TenonError* tenon_graph_value_info(const TenonGraph* graph, TenonValue value, TenonValueInfo* out_info) {
  return guard(__func__, [&] {
    Graph& own = get(graph, "graph").value;
    const ValueInfo& of_value = own.info(value_of(own, value, "value").id());
    TenonValueInfo info{};
    info.dtype = static_cast<tenon_dtype>(of_value.dtype);
    info.rank = static_cast<std::uint32_t>(of_value.shape.rank());
    info.kind = kind_of(of_value.kind);
    for (std::size_t i = 0; i < of_value.shape.rank(); ++i) info.shape[i] = of_value.shape[i];
    fill_info(out_info, info, "out_info");
  });
}

TenonError* tenon_graph_gradients(TenonGraph* graph, TenonValue loss, const TenonValue* with_respect_to, uint64_t count,
                                  TenonValue* out_gradients) {
  return guard(__func__, [&] { append_gradients(graph, loss, with_respect_to, count, nullptr, 0, out_gradients); });
}

TenonError* tenon_graph_partial_gradients(TenonGraph* graph, TenonValue loss, const TenonValue* with_respect_to, uint64_t count,
                                          const TenonValue* constants, uint64_t constant_count, TenonValue* out_gradients) {
  return guard(__func__, [&] { append_gradients(graph, loss, with_respect_to, count, constants, constant_count, out_gradients); });
}

TenonError* tenon_graph_describe(const TenonGraph* graph, char** out_json) {
  return guard(__func__, [&] {
    required(out_json, "out_json");
    *out_json = new_text(to_json(get(graph, "graph").value));
  });
}

TenonError* tenon_graph_text(const TenonGraph* graph, char** out_text) {
  return guard(__func__, [&] {
    required(out_text, "out_text");
    *out_text = new_text(get(graph, "graph").value.str());
  });
}
