// SPDX-License-Identifier: Apache-2.0
// sdk_testing_net.cpp - graphs in the form of the ABI, attributes and options.
#include <cstring>
#include <utility>

#include "sdk_testing.h"

namespace tenon::sdk_test {

std::int64_t Net::Value::count() const {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return count;
}

std::uint32_t Net::add(std::uint32_t kind, Shape shape, Strides strides, tenon_dtype dtype) {
  Value value{kind, std::move(shape), std::move(strides), dtype, {}};
  if (kind == TENON_VALUE_INPUT || kind == TENON_VALUE_PARAMETER || kind == TENON_VALUE_OUTPUT) value.binding = binding_count++;
  values.push_back(std::move(value));
  return static_cast<std::uint32_t>(values.size() - 1);
}

std::uint32_t Net::constant(Shape shape, const Floats& data) {
  const std::uint32_t v = add(TENON_VALUE_CONSTANT, std::move(shape), {}, TENON_DTYPE_F32);
  values[v].bytes.resize(data.size() * sizeof(float));
  if (!data.empty()) std::memcpy(values[v].bytes.data(), data.data(), values[v].bytes.size());
  return v;
}

void Net::add_node(tenon_op op, std::vector<std::uint32_t> inputs, std::vector<std::uint32_t> outputs,
                   std::vector<std::uint64_t> attributes) {
  std::uint32_t version = 1;
  switch (op) {
#define TENON_OP(id, name, since, stem, family, type_operand, dtypes, attribute_struct, indexing, schema) \
  case id:                                                                                                \
    version = since;                                                                                      \
    break;
#include <tenon/ops.def>
#undef TENON_OP
    default:
      break;
  }
  nodes.push_back({op, version, std::move(inputs), std::move(outputs), std::move(attributes), 100 + nodes.size()});
}

const tenon_graph& Net::abi_graph() {
  abi_values.clear();
  abi_nodes.clear();
  for (const Value& value : values) {
    tenon_value abi_value{.desc = {value.shape.data(), value.strides.empty() ? nullptr : value.strides.data(),
                                   static_cast<std::uint32_t>(value.shape.size()), value.dtype},
                          .kind = value.kind,
                          .binding = value.binding,
                          .data = value.kind == TENON_VALUE_CONSTANT && !value.bytes.empty() ? value.bytes.data() : nullptr,
                          .packed = value.packed};
    abi_values.push_back(abi_value);
  }
  for (const Node& node : nodes) {
    abi_nodes.push_back({node.op, node.version, node.inputs.data(), node.outputs.data(), static_cast<std::uint32_t>(node.inputs.size()),
                         static_cast<std::uint32_t>(node.outputs.size()), node.attributes.data(), "node", node.id, 0, 0});
  }
  graph = {};
  graph.struct_size = sizeof graph;
  graph.value_count = static_cast<std::uint32_t>(abi_values.size());
  graph.values = abi_values.data();
  graph.value_stride = sizeof(tenon_value);
  graph.node_count = static_cast<std::uint32_t>(abi_nodes.size());
  graph.nodes = abi_nodes.data();
  graph.node_stride = sizeof(tenon_node);
  graph.donation_count = static_cast<std::uint32_t>(donations.size());
  graph.donations = donations.data();
  graph.binding_count = binding_count;
  return graph;
}

tenon_attributes_axes axes(std::initializer_list<std::int64_t> list, bool keepdims) {
  tenon_attributes_axes attributes{.struct_size = sizeof attributes, .keepdims = keepdims};
  for (const std::int64_t value : list) attributes.axes[attributes.count++] = value;
  return attributes;
}
tenon_attributes_axis axis(std::int64_t value) {
  return {sizeof(tenon_attributes_axis), 0, value};
}
tenon_attributes_gemm gemm_attributes(double alpha, double beta) {
  return {sizeof(tenon_attributes_gemm), 0, 0, 0, alpha, beta};
}
tenon_attributes_sgd sgd_attributes(double momentum) {
  return {sizeof(tenon_attributes_sgd), 0, momentum, 0};
}
tenon_plan_options options(std::uint32_t fusion) {
  return {sizeof(tenon_plan_options), TENON_MATH_STRICT, 1, fusion, 0, 0, nullptr};
}

}  // namespace tenon::sdk_test
