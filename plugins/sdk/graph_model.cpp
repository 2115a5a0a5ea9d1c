#include "graph_model.h"

#include <cstdio>
#include <cstring>

namespace tenon::sdk {
namespace {

tenon_answer no(std::uint32_t reason, const std::string& text) {
  tenon_answer result{};
  result.reason = reason;
  std::snprintf(result.text, sizeof result.text, "%s", text.c_str());
  return result;
}

[[noreturn]] void malformed(const std::string& text) {
  throw Error(TENON_INVALID_ARGUMENT, "graph: " + text);
}

std::string describe_dtype(const Value& value) {
  return name_of(value.dtype);
}

}  // namespace

void Value::update_dense() {
  dense = true;
  std::int64_t expected = 1;
  for (std::uint32_t i = rank; i-- > 0;) {
    if (shape[i] != 1 && strides[i] != expected) dense = false;
    expected *= shape[i];
  }
  if (count == 0) dense = true;
}

bool same_layout(const Value& a, const Value& b) {
  return a.dtype == b.dtype && a.rank == b.rank && a.dense && b.dense && std::memcmp(a.shape, b.shape, sizeof a.shape) == 0;
}

const char* op_name(tenon_op op) {
  switch (op) {
#define TENON_OP(id, name, version, stem, room, type_operand, dtypes, attributes, schema) \
  case id:                                                                                \
    return #name;
#include <tenon/ops.def>
#undef TENON_OP
    default:
      return "unknown op";
  }
}

const KernelRow* find_row(const KernelRow* rows, tenon_op op, std::uint32_t version) {
  for (; rows->kernel != nullptr; ++rows) {
    if (rows->op == op && rows->version == version) return rows;
  }
  return nullptr;
}

GraphModel GraphModel::read(const tenon_graph& graph) {
  GraphModel model;
  model.binding_count = graph.binding_count;
  model.values.reserve(graph.value_count + 8);
  for (std::uint32_t i = 0; i < graph.value_count; ++i) {
    const auto& wire =
        *reinterpret_cast<const tenon_value*>(reinterpret_cast<const char*>(graph.values) + std::size_t{i} * graph.value_stride);
    Value value;
    if (wire.desc.rank > TENON_MAX_RANK)
      malformed("value " + std::to_string(i) + " has rank " + std::to_string(wire.desc.rank) + ", at most 8");
    if (size_of(wire.desc.dtype) == 0) malformed("value " + std::to_string(i) + " has no element type");
    value.rank = wire.desc.rank;
    value.dtype = wire.desc.dtype;
    value.kind = wire.kind;
    value.binding = wire.binding;
    value.data = wire.data;
    value.root = i;
    value.count = 1;
    for (std::uint32_t d = 0; d < value.rank; ++d) {
      value.shape[d] = wire.desc.shape[d];
      if (value.shape[d] < 0 || __builtin_mul_overflow(value.count, value.shape[d], &value.count)) {
        malformed("value " + std::to_string(i) + " has a negative or overflowing shape");
      }
    }
    std::int64_t stride = 1;
    for (std::uint32_t d = value.rank; d-- > 0;) {
      value.strides[d] = wire.desc.strides != nullptr ? wire.desc.strides[d] : stride;
      stride *= value.shape[d];
    }
    value.update_dense();
    const bool bound = wire.kind == TENON_VALUE_INPUT || wire.kind == TENON_VALUE_OUTPUT || wire.kind == TENON_VALUE_PARAMETER;
    if (bound && wire.binding >= graph.binding_count) malformed("value " + std::to_string(i) + " is bound outside the bindings");
    if (wire.kind > TENON_VALUE_CONSTANT) malformed("value " + std::to_string(i) + " is of an unknown kind");
    if (wire.kind == TENON_VALUE_CONSTANT && wire.data == nullptr && value.count > 0) {
      malformed("constant " + std::to_string(i) + " has no bytes");
    }
    model.values.push_back(value);
  }
  const auto copy_operands = [&](const std::uint32_t* from, std::uint32_t count) {
    std::vector<std::uint32_t> list(from, from + count);
    for (const std::uint32_t v : list) {
      if (v != TENON_NO_INDEX && v >= graph.value_count) malformed("a node names value " + std::to_string(v) + ", which is not there");
    }
    return list;
  };
  model.nodes.reserve(graph.node_count + 8);
  for (std::uint32_t i = 0; i < graph.node_count; ++i) {
    const auto& wire =
        *reinterpret_cast<const tenon_node*>(reinterpret_cast<const char*>(graph.nodes) + std::size_t{i} * graph.node_stride);
    Node node;
    node.op = wire.op;
    node.version = wire.version;
    node.index = i;
    node.id = wire.id;
    if (wire.name != nullptr) node.name = wire.name;
    node.inputs = copy_operands(wire.inputs, wire.input_count);
    node.outputs = copy_operands(wire.outputs, wire.output_count);
    if (wire.attributes == nullptr) malformed("node " + std::to_string(i) + " has no attributes");
    std::uint32_t size = 0;
    std::memcpy(&size, wire.attributes, sizeof size);
    node.attributes.resize((size + 7) / 8);
    std::memcpy(node.attributes.data(), wire.attributes, size);
    model.nodes.push_back(std::move(node));
  }
  model.donations.assign(graph.donations, graph.donations + graph.donation_count);
  for (const tenon_donation& d : model.donations) {
    if (d.input >= graph.value_count || d.output >= graph.value_count) malformed("a donation names a value that is not there");
    if (model.values[d.input].size_bytes() != model.values[d.output].size_bytes()) malformed("a donation pairs values of different sizes");
  }
  return model;
}

std::uint32_t GraphModel::add_dense_copy(std::uint32_t of) {
  Value copy = values[of];
  copy.kind = TENON_VALUE_INTERNAL;
  copy.binding = TENON_NO_INDEX;
  copy.data = nullptr;
  copy.root = static_cast<std::uint32_t>(values.size());
  std::int64_t stride = 1;
  for (std::uint32_t d = copy.rank; d-- > 0;) {
    copy.strides[d] = stride;
    stride *= copy.shape[d];
  }
  copy.dense = true;
  values.push_back(copy);
  return copy.root;
}

Call describe(const GraphModel& graph, const Node& node, std::vector<Operand>& operands) {
  operands.clear();
  operands.reserve(node.inputs.size() + node.outputs.size() + 1);
  const auto append = [&](const std::vector<std::uint32_t>& list) {
    for (const std::uint32_t v : list) operands.push_back(v == TENON_NO_INDEX ? Operand{} : graph.values[v].operand());
  };
  append(node.inputs);
  append(node.outputs);
  Call call;
  call.inputs = operands.data();
  call.outputs = operands.data() + node.inputs.size();
  call.input_count = static_cast<std::uint32_t>(node.inputs.size());
  call.output_count = static_cast<std::uint32_t>(node.outputs.size());
  call.attributes = node.attributes.data();
  return call;
}

tenon_answer answer(const GraphModel& graph, Node& node, const KernelRow* rows) {
  const std::string op = op_name(node.op);
  node.row = find_row(rows, node.op, node.version);
  if (node.row == nullptr) {
    return no(TENON_REASON_OP, op + ": version " + std::to_string(node.version) + " has no kernel in this backend");
  }
  const auto& typed = node.row->type_operand < 0 ? node.outputs : node.inputs;
  const auto position = static_cast<std::size_t>(node.row->type_operand < 0 ? 0 : node.row->type_operand);
  if (position >= typed.size() || typed[position] == TENON_NO_INDEX) {
    return no(TENON_REASON_SHAPE, op + ": operand " + std::to_string(position) + ", which selects the kernel, is absent");
  }
  const Value& selector = graph.values[typed[position]];
  node.function = node.row->kernel->functions[selector.dtype];
  if (node.function == nullptr) return no(TENON_REASON_DTYPE, op + ": no kernel for " + describe_dtype(selector));
  for (const std::uint32_t v : node.inputs) {
    if (v == TENON_NO_INDEX || graph.values[v].dense || node.row->kernel->traits.strided) continue;
    // A kernel that wants dense operands gets a copy made by the backend's own Reshape, which takes any strides.
    const KernelRow* copier = find_row(rows, TENON_OP_Reshape, 14);
    if (copier == nullptr || !copier->kernel->traits.strided || copier->kernel->functions[graph.values[v].dtype] == nullptr) {
      return no(TENON_REASON_STRIDES, op + ": takes dense " + describe_dtype(graph.values[v]) + " operands only");
    }
  }
  if (node.row->kernel->traits.refuse != nullptr) {
    std::vector<Operand> operands;
    if (const char* reason = node.row->kernel->traits.refuse(describe(graph, node, operands)))
      return no(TENON_REASON_ATTRIBUTES, op + ": " + reason);
  }
  tenon_answer yes{};
  yes.supported = 1;
  return yes;
}

}  // namespace tenon::sdk
