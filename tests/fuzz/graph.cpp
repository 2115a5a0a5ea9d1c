// SPDX-License-Identifier: Apache-2.0
// Graphs as a backend receives them: the SDK refuses those that break the header's rules, and those that it accepts keep them.
#include "graph_model.h"

#include <tenon/sdk/error.h>

#include <algorithm>
#include <cstddef>
#include <list>
#include <vector>

#include "fuzz.h"
#include "operands.h"

namespace tenon::fuzz {
namespace {

/// A graph at the ABI level, under construction. All of its pointers are valid.
struct AbiGraph {
  std::list<std::vector<std::int64_t>> numbers;
  std::list<std::vector<std::uint32_t>> lists;
  std::vector<tenon_value> values;
  std::vector<tenon_node> nodes;
  std::vector<tenon_donation> donations;
  tenon_attributes_slice attributes{};  // the largest attribute struct
  tenon_graph graph{};
};

constexpr tenon_op ops[] = {TENON_OP_Add, TENON_OP_Relu, TENON_OP_Reshape, TENON_OP_Transpose, TENON_OP_Softmax, TENON_OP_Gemm, 999};

/// A size, mostly a small one.
std::int64_t number_of(Bytes& bytes) {
  const std::uint8_t choice = bytes.take<std::uint8_t>();
  return choice < 224 ? choice % 5 : static_cast<std::int64_t>(odd_number(bytes));
}
std::uint32_t index_of(Bytes& bytes, std::uint32_t count) {
  const std::uint8_t choice = bytes.take<std::uint8_t>();
  if (choice < 224) return count == 0 ? 0 : choice % count;
  return choice < 240 ? TENON_NO_INDEX : static_cast<std::uint32_t>(odd_number(bytes));
}

void read_values(Bytes& bytes, AbiGraph& abi) {
  static const float constant[4096] = {};
  for (std::uint32_t n = bytes.below(8), v = 0; v < n; ++v) {
    tenon_value value{};
    const std::uint8_t flags = bytes.take<std::uint8_t>();
    value.desc.rank = bytes.below(16) == 15 ? static_cast<std::uint32_t>(odd_number(bytes)) : flags % 4;
    const std::uint32_t stored = std::min<std::uint32_t>(value.desc.rank, TENON_MAX_RANK);  // more must not be read
    auto& shape = abi.numbers.emplace_back();
    for (std::uint32_t d = 0; d < stored; ++d) shape.push_back(number_of(bytes));
    value.desc.shape = (flags & 16) != 0 && (flags & 32) != 0 ? nullptr : shape.data();
    if ((flags & 64) != 0) {
      auto& strides = abi.numbers.emplace_back();
      for (std::uint32_t d = 0; d < stored; ++d) strides.push_back(number_of(bytes));
      value.desc.strides = strides.data();
    }
    value.desc.dtype = (flags & 128) != 0 ? bytes.take<std::uint8_t>() : tenon_dtype{TENON_DTYPE_F32};
    value.kind = bytes.below(7);
    value.binding = (flags & 16) != 0 ? static_cast<std::uint32_t>(odd_number(bytes)) : v;
    value.data = (flags & 8) != 0 ? nullptr : constant;
    value.needs = value.kind == 6 ? 1 : 0;
    abi.values.push_back(value);
  }
}

void read_nodes(Bytes& bytes, AbiGraph& abi) {
  const auto count = static_cast<std::uint32_t>(abi.values.size());
  const auto list = [&](std::uint32_t& out_count, const std::uint32_t*& out_list) {
    auto& items = abi.lists.emplace_back();
    for (std::uint32_t n = bytes.below(4), i = 0; i < n; ++i) items.push_back(index_of(bytes, count));
    out_count = static_cast<std::uint32_t>(items.size());
    out_list = items.data();
  };
  abi.attributes.struct_size = sizeof abi.attributes;
  for (std::uint32_t n = bytes.below(5), i = 0; i < n; ++i) {
    tenon_node node{};
    node.op = ops[bytes.below(std::size(ops))];
    node.version = bytes.below(20);
    list(node.input_count, node.inputs);
    list(node.output_count, node.outputs);
    const std::uint8_t flags = bytes.take<std::uint8_t>();
    if ((flags & 1) == 0) node.attributes = &abi.attributes;
    if ((flags & 6) == 6) abi.attributes.struct_size = std::min<std::uint32_t>(flags, sizeof abi.attributes);
    if ((flags & 8) != 0) node.name = "a node";
    node.needs = (flags & 48) == 48 ? 1 : 0;
    abi.nodes.push_back(node);
  }
}

/// Copies the elements to the distance of the stride. A stride that is too short must be refused without a read; with a very long one there
/// is at most one element.
template <class Element>
const Element* spread(const std::vector<Element>& elements, std::uint32_t stride, std::vector<std::uint64_t>& buffer,
                      std::uint32_t& out_count) {
  constexpr std::uint32_t longest = 4096;
  out_count = static_cast<std::uint32_t>(stride > longest ? std::min<std::size_t>(elements.size(), 1) : elements.size());
  if (stride < sizeof(Element)) return elements.data();
  buffer.resize((std::size_t{std::min(stride, longest)} * out_count + sizeof(Element)) / 8 + 1);
  for (std::uint32_t i = 0; i < out_count; ++i) {
    std::memcpy(reinterpret_cast<char*>(buffer.data()) + std::size_t{i} * stride, &elements[i], sizeof(Element));
  }
  return reinterpret_cast<const Element*>(buffer.data());
}

/// Checks the properties that the builder of plans relies on.
void check(const sdk::GraphModel& model) {
  for (const sdk::Value& value : model.values) {
    if (value.dtype == TENON_DTYPE_NONE) continue;  // not known here: only nodes with a problem touch it
    demand(value.rank <= TENON_MAX_RANK && value.count >= 0, "a value has a rank and a count");
    std::int64_t count = 1;
    for (std::uint32_t d = 0; d < value.rank; ++d) {
      demand(value.shape[d] >= 0 && !__builtin_mul_overflow(count, value.shape[d], &count), "a value can be counted");
    }
    demand(count == value.count, "the count is the product of the sizes");
    demand(value.binding == TENON_NO_INDEX || value.binding < model.binding_count, "a value is bound to an existing binding");
    demand(value.kind != TENON_VALUE_CONSTANT || value.count == 0 || value.data != nullptr, "a constant has bytes");
  }
  const auto is_value = [&](std::uint32_t v) { return v == TENON_NO_INDEX || v < model.values.size(); };
  for (const sdk::Node& node : model.nodes) {
    demand(std::all_of(node.inputs.begin(), node.inputs.end(), is_value), "a node reads existing values");
    demand(std::all_of(node.outputs.begin(), node.outputs.end(), is_value), "a node writes existing values");
    const std::uint32_t known = sdk::attributes_size(node.op, node.version);
    demand(node.problem.reason != TENON_REASON_NONE || node.attributes.size() * 8 >= known, "a node has the attributes of its op");
    const auto is_known = [&](std::uint32_t v) { return v == TENON_NO_INDEX || model.values[v].dtype != TENON_DTYPE_NONE; };
    demand(node.problem.reason != TENON_REASON_NONE || (std::all_of(node.inputs.begin(), node.inputs.end(), is_known) &&
                                                        std::all_of(node.outputs.begin(), node.outputs.end(), is_known)),
           "a node without a problem uses values that are known");
  }
  for (const tenon_donation& d : model.donations) {
    demand(d.input < model.values.size() && d.output < model.values.size(), "donations name existing values");
  }
}

}  // namespace
}  // namespace tenon::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tenon;
  using namespace tenon::fuzz;
  Bytes bytes(data, size);
  AbiGraph abi;
  tenon_graph& graph = abi.graph;
  const std::uint8_t flags = bytes.take<std::uint8_t>();
  graph.struct_size = (flags & 1) != 0 ? static_cast<std::uint32_t>(odd_number(bytes)) : sizeof graph;
  graph.value_stride = sizeof(tenon_value);
  graph.node_stride = sizeof(tenon_node);
  if ((flags & 2) != 0) graph.value_stride = static_cast<std::uint32_t>(odd_number(bytes));
  if ((flags & 4) != 0) graph.node_stride = static_cast<std::uint32_t>(odd_number(bytes));
  read_values(bytes, abi);
  read_nodes(bytes, abi);
  const auto value_count = static_cast<std::uint32_t>(abi.values.size());
  for (std::uint32_t n = bytes.below(4), i = 0; i < n; ++i) {
    const std::uint32_t from = index_of(bytes, value_count);
    abi.donations.push_back({from, index_of(bytes, value_count)});
  }
  std::vector<std::uint64_t> value_buffer, node_buffer;
  graph.values = spread(abi.values, graph.value_stride, value_buffer, graph.value_count);
  graph.nodes = spread(abi.nodes, graph.node_stride, node_buffer, graph.node_count);
  graph.donations = abi.donations.data();
  graph.donation_count = static_cast<std::uint32_t>(abi.donations.size());
  graph.needs = (flags & 16) != 0 && (flags & 32) != 0 ? 1 : 0;
  tenon_plan_options options{};
  options.struct_size = sizeof options;
  options.math = (flags & 64) != 0 ? 77u : 0u;
  graph.binding_count = (flags & 8) != 0 ? static_cast<std::uint32_t>(odd_number(bytes)) : value_count;
  try {
    check(sdk::GraphModel::read(graph, options));
  } catch (const sdk::Error& error) {
    demand(error.status() == TENON_INVALID_ARGUMENT && error.what()[0] != '\0', "a refusal is INVALID_ARGUMENT and says why");
  }
  return 0;
}
