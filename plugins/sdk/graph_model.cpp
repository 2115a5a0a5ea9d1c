// SPDX-License-Identifier: Apache-2.0
#include "graph_model.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <limits>

#include <tenon/sdk/needs.h>
#include <tenon/sdk/op_versions.h>
#include <tenon/sdk/vendor_schema.h>

#include "operands.h"
#include "plan.h"
#include "vendor_node.h"

namespace tenon::sdk {
namespace {

constexpr std::uint32_t none = TENON_NO_INDEX;
constexpr std::uint32_t unknown_kind = TENON_VALUE_CONSTANT + 1;  ///< of a value that nodes may read and write, for all that is known here

[[noreturn]] void malformed(const std::string& text) {
  throw Error(TENON_INVALID_ARGUMENT, "graph: " + text);
}

std::string number(std::uint64_t n) {
  return std::to_string(n);
}

/// Element i of an array whose elements may be longer or shorter than ours: fields unknown to its writer are zero.
template <class Struct>
Struct element(const Struct* array, std::uint32_t i, std::uint32_t stride) {
  Struct element{};
  std::memcpy(&element, reinterpret_cast<const char*>(array) + std::size_t{i} * stride, std::min<std::size_t>(stride, sizeof element));
  return element;
}

// The sizes of array elements in the first header, by the last field that each had then.
constexpr std::size_t value_size_v1 = offsetof(tenon_value, reserved) + sizeof(tenon_value::reserved);
constexpr std::size_t node_size_v1 = offsetof(tenon_node, reserved) + sizeof(tenon_node::reserved);

/// True if the size in bytes and the distance from the first to the last element fit 63 bits, for 16-bit floats also as f32, to which
/// kernels may convert them. Zero sizes count as 1, so that the strides of an empty value do not overflow either.
bool addressable(const tenon_tensor_desc& desc) {
  std::int64_t bytes = std::max(size_of(desc.dtype), size_of(TENON_DTYPE_F32)), reach = size_of(desc.dtype);
  for (std::uint32_t d = 0; d < desc.rank; ++d) {
    const std::int64_t size = std::max<std::int64_t>(desc.shape[d], 1);
    if (__builtin_mul_overflow(bytes, size, &bytes)) return false;
    if (desc.strides == nullptr) continue;
    std::int64_t way = desc.strides[d];
    if (way == std::numeric_limits<std::int64_t>::min() || __builtin_mul_overflow(way < 0 ? -way : way, size - 1, &way) ||
        __builtin_mul_overflow(way, size_of(desc.dtype), &way) || __builtin_add_overflow(reach, way, &reach)) {
      return false;
    }
  }
  return true;
}

bool is_bound(std::uint32_t kind) {
  return kind == TENON_VALUE_INPUT || kind == TENON_VALUE_OUTPUT || kind == TENON_VALUE_PARAMETER;
}

/// Why nobody can use a value whose description is unknown here, or says more than 64 bits can.
Diagnostic problem_of(const tenon_value& value) {
  const tenon_tensor_desc& desc = value.desc;
  if (value.needs != 0) return {TENON_REASON_NEEDS, unknown_needs(value.needs)};
  if (value.kind > TENON_VALUE_CONSTANT) return {TENON_REASON_GRAPH, "unknown kind " + number(value.kind)};
  if (size_of(desc.dtype) == 0) return {TENON_REASON_DTYPE, "unknown dtype " + number(desc.dtype)};
  if (desc.rank > TENON_MAX_RANK) return {TENON_REASON_SHAPE, "rank " + number(desc.rank) + ", expected at most " + number(TENON_MAX_RANK)};
  for (std::uint32_t d = 0; d < desc.rank; ++d) {
    if (desc.shape[d] < 0) return {TENON_REASON_SHAPE, "dimension " + number(d) + " is " + std::to_string(desc.shape[d])};
  }
  if (!addressable(desc)) return {TENON_REASON_SHAPE, "too large to be addressed with 64 bits"};
  return {};
}

/// Reads a value; one with a problem has no shape, and its kind only if that is known.
Value read_value(const tenon_value& abi_value, std::uint32_t i, std::uint32_t binding_count, Diagnostic& out_problem) {
  const std::string name = "value " + number(i);
  const tenon_tensor_desc& desc = abi_value.desc;
  if (abi_value.needs == 0 && desc.rank > 0 && desc.shape == nullptr) malformed(name + " has rank " + number(desc.rank) + " and no shape");
  Value value;
  value.root = i;
  out_problem = problem_of(abi_value);
  value.kind = out_problem.reason == TENON_REASON_NEEDS ? unknown_kind : std::min(abi_value.kind, unknown_kind);
  if (out_problem.reason != TENON_REASON_NONE) {
    out_problem.text = name + ": " + out_problem.text;
    return value;
  }
  value.rank = desc.rank;
  value.dtype = desc.dtype;
  std::copy_n(desc.shape, desc.rank, value.shape);
  value.count = 1;
  for (std::uint32_t d = 0; d < value.rank; ++d) value.count *= value.shape[d];
  value.make_dense();
  if (desc.strides != nullptr) {
    std::copy(desc.strides, desc.strides + value.rank, value.strides);
    value.update_dense();
  }
  const bool may_be_strided = abi_value.kind == TENON_VALUE_INPUT || abi_value.kind == TENON_VALUE_PARAMETER;
  if (!value.dense && !may_be_strided) malformed(name + " has strides: only inputs and parameters may, others are dense");
  if (is_bound(abi_value.kind)) {
    if (abi_value.binding >= binding_count)
      malformed(name + " is bound to binding " + number(abi_value.binding) + " of " + number(binding_count));
    value.binding = abi_value.binding;
  }
  if (abi_value.kind == TENON_VALUE_CONSTANT) {
    if (abi_value.data == nullptr && value.count > 0) malformed("constant " + number(i) + " has no bytes");
    value.data = abi_value.data;
  }
  if (abi_value.kind == TENON_VALUE_CONSTANT || abi_value.kind == TENON_VALUE_PARAMETER) value.packed = abi_value.packed;
  return value;
}

std::vector<std::uint32_t> read_operands(const std::uint32_t* list, std::uint32_t count, std::uint32_t value_count, const std::string& node,
                                         const char* what) {
  if (count > 0 && list == nullptr) malformed(node + " has no list of " + what);
  std::vector<std::uint32_t> operands(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    operands[i] = list[i];
    if (list[i] != none && list[i] >= value_count) malformed(node + " names value " + number(list[i]) + ", which does not exist");
  }
  return operands;
}

/// Where the attributes of a vendor's ops are read: those that the backend has, since others may have any attributes.
struct VendorOps {
  const KernelRow* rows;  ///< NULL: none
  std::vector<std::shared_ptr<const VendorAttributeBlock>>& blocks;

  bool has(const tenon_node& node) const {
    const KernelRow* const row = rows == nullptr || node.op < TENON_OP_VENDOR ? nullptr : find_row(rows, node.op, node.version);
    return row != nullptr && row->vendor_op != nullptr;
  }
};

/// Copies the attributes, as those of the newest version.
void read_attributes(const tenon_node& abi_node, Node& node, const std::string& name, const VendorOps& vendor_ops) {
  if (abi_node.attributes == nullptr) malformed(name + " has no attributes");
  const std::uint32_t known = attributes_size(abi_node.op, abi_node.version);
  std::uint32_t size = 0;
  std::memcpy(&size, abi_node.attributes, sizeof size);
  if (vendor_ops.has(abi_node)) {
    node.problem = copy_vendor_attributes(abi_node.attributes, size, node.attributes, vendor_ops.blocks);
    return;
  }
  if (known == 0 ? size < sizeof size : size != known) {
    node.problem = {TENON_REASON_ATTRIBUTES,
                    "expected attributes of " + number(known == 0 ? sizeof size : known) + " bytes, got " + number(size)};
    return;
  }
  node.attributes.resize((std::size_t{size} + 7) / 8);
  std::memcpy(node.attributes.data(), abi_node.attributes, size);
  if (const OlderVersion* older = find_older(abi_node.op, abi_node.version)) {  // from here on there is one version of each op
    node.attributes = raised(*older, node.attributes.data());
    node.version = older->newest;
  }
}

Diagnostic problem_of(const tenon_graph& graph, const tenon_plan_options& options) {
  if ((graph.needs | options.needs) != 0) return {TENON_REASON_NEEDS, unknown_needs(graph.needs | options.needs)};
  if (options.math > TENON_MATH_BF16 || options.deterministic > 1 || options.fusion > TENON_FUSION_OFF) {
    return {TENON_REASON_OPTIONS, "math " + number(options.math) + ", deterministic " + number(options.deterministic) + " or fusion " +
                                      number(options.fusion) + " is unknown to this backend"};
  }
  return {};
}

Node read_node(const tenon_node& abi_node, std::uint32_t i, const std::vector<Diagnostic>& value_problems, const VendorOps& vendor_ops) {
  Node node;
  node.op = abi_node.op;
  node.version = abi_node.version;
  node.index = i;
  node.id = abi_node.id;
  const auto value_count = static_cast<std::uint32_t>(value_problems.size());
  const std::string name = "node " + number(i) + " (" + op_name(abi_node.op) + ")";
  node.inputs = read_operands(abi_node.inputs, abi_node.input_count, value_count, name, "inputs");
  node.outputs = read_operands(abi_node.outputs, abi_node.output_count, value_count, name, "outputs");
  if (abi_node.needs != 0) {  // a bit may change what everything else of the node means
    node.problem = {TENON_REASON_NEEDS, unknown_needs(abi_node.needs)};
    return node;
  }
  read_attributes(abi_node, node, name, vendor_ops);
  for (const auto* list : {&node.inputs, &node.outputs}) {
    for (const std::uint32_t v : *list) {
      if (v == none || value_problems[v].reason == TENON_REASON_NONE || node.problem.reason == TENON_REASON_NEEDS) continue;
      node.problem = value_problems[v];
    }
  }
  return node;
}

/// Checks that every value that nodes write is written once, before it is read.
void check_writers(const GraphModel& model) {
  std::vector<bool> written(model.values.size());
  for (std::size_t v = 0; v < written.size(); ++v) {
    written[v] = model.values[v].kind != TENON_VALUE_INTERNAL && model.values[v].kind != TENON_VALUE_OUTPUT;
  }
  const std::vector<bool> given = written;
  for (const Node& node : model.nodes) {
    const std::string name = "node " + number(node.index) + " (" + op_name(node.op) + ")";
    for (const std::uint32_t v : node.inputs) {
      if (v != none && !written[v]) malformed(name + " reads value " + number(v) + " before it is written");
    }
    for (const std::uint32_t v : node.outputs) {
      if (v == none || model.values[v].kind == unknown_kind) continue;
      if (given[v]) malformed(name + " writes value " + number(v) + ", which is neither an output nor internal");
      if (written[v]) malformed("value " + number(v) + " is written twice, the second time by " + name);
      written[v] = true;
    }
  }
  for (std::size_t v = 0; v < written.size(); ++v) {
    if (model.values[v].kind == TENON_VALUE_OUTPUT && !written[v]) malformed("output " + number(v) + " is written by no node");
  }
}

void check_donations(const GraphModel& model, const std::vector<Diagnostic>& value_problems) {
  const auto value_count = model.values.size();
  std::vector<std::uint32_t> partner(value_count, none);
  for (const tenon_donation& d : model.donations) {
    if (value_problems[d.input].reason != TENON_REASON_NONE) continue;  // and so has the output
    const Value& from = model.values[d.input];
    const Value& to = model.values[d.output];
    const std::string pair = "the donation of value " + number(d.input) + " to value " + number(d.output);
    if (from.kind != TENON_VALUE_INPUT && from.kind != TENON_VALUE_PARAMETER)
      malformed(pair + ": only inputs and parameters can be donated");
    if (to.kind != TENON_VALUE_OUTPUT) malformed(pair + ": only outputs can take a donation");
    if (from.size_bytes() != to.size_bytes()) {
      malformed(pair + ": they have " + number(from.size_bytes()) + " and " + number(to.size_bytes()) + " bytes");
    }
    if (partner[d.input] != none || partner[d.output] != none) malformed(pair + ": one of them is part of more than one donation");
    partner[d.input] = d.output;
    partner[d.output] = d.input;
  }
  // A value that is written may share its address only with its partner. Inputs that are not overwritten may share.
  std::vector<std::uint32_t> holder(model.binding_count, none);
  std::vector<bool> written(model.binding_count, false);
  for (std::uint32_t v = 0; v < value_count; ++v) {
    const Value& value = model.values[v];
    if (value.binding == none) continue;
    const bool is_written = value.kind == TENON_VALUE_OUTPUT || partner[v] != none;
    const std::uint32_t other = holder[value.binding];
    if (other != none && other != partner[v] && (is_written || written[value.binding])) {
      malformed("values " + number(other) + " and " + number(v) + " are bound to the same address, and one of them is written");
    }
    holder[value.binding] = v;
    if (is_written) written[value.binding] = true;
  }
}

}  // namespace

void Value::make_dense() {
  std::int64_t stride = 1;
  for (std::uint32_t d = rank; d-- > 0;) {
    strides[d] = stride;
    stride *= std::max<std::int64_t>(shape[d], 1);
  }
  dense = true;
}

void Value::update_dense() {
  std::int64_t expected = 1;
  dense = true;
  for (std::uint32_t d = rank; d-- > 0;) {
    if (shape[d] != 1 && strides[d] != expected) dense = false;
    expected *= std::max<std::int64_t>(shape[d], 1);
  }
  if (dense || count == 0) make_dense();
}

bool same_shape(const Value& a, const Value& b) {
  return a.rank == b.rank && std::equal(a.shape, a.shape + a.rank, b.shape);
}

bool same_layout(const Value& a, const Value& b) {
  return a.dtype == b.dtype && a.dense && b.dense && same_shape(a, b);
}

const char* op_name(tenon_op op) {
  switch (op) {
#define TENON_OP(id, name, version, stem, family, type_operand, dtypes, attributes, indexing, schema) \
  case id:                                                                                            \
    return #name;
#include <tenon/ops.def>
#undef TENON_OP
    default:
      return "unknown op";
  }
}

std::string op_name(const Node& node) {
  const tenon_vendor_op* const op = node.row == nullptr ? nullptr : node.row->vendor_op;
  return op == nullptr ? op_name(node.op) : full_name(*op);
}

const KernelRow* find_row(const KernelRow* rows, tenon_op op, std::uint32_t version) {
  for (; rows->kernel != nullptr; ++rows) {
    if (rows->op == op && rows->version == version) return rows;
  }
  return nullptr;
}

const KernelRow* find_copier(const KernelRow* rows, const Value& from) {
  const KernelRow* row = find_row(rows, TENON_OP_Reshape, 14);
  if (row == nullptr || row->kernel->functions[from.dtype] == nullptr) return nullptr;
  return from.dense || row->kernel->traits.strided ? row : nullptr;
}

const KernelRow* find_transposer(const KernelRow* rows, const Value& from, tenon_dtype dtype) {
  const KernelRow* row = find_row(rows, TENON_OP_Transpose, 13);
  if (row == nullptr || row->kernel->functions[dtype] == nullptr) return nullptr;
  return from.dense || row->kernel->traits.strided || find_copier(rows, from) != nullptr ? row : nullptr;
}

GraphModel GraphModel::read(const tenon_graph& graph, const tenon_plan_options& options, const KernelRow* rows) {
  if (!TENON_HAS(&graph, tenon_graph, needs))
    malformed("struct_size " + number(graph.struct_size) + " does not cover the mandatory fields");
  if (graph.value_count > 0 && graph.values == nullptr) malformed("value_count is " + number(graph.value_count) + ", but values is NULL");
  if (graph.node_count > 0 && graph.nodes == nullptr) malformed("node_count is " + number(graph.node_count) + ", but nodes is NULL");
  if (graph.donation_count > 0 && graph.donations == nullptr)
    malformed("donation_count is " + number(graph.donation_count) + ", but donations is NULL");
  if (graph.value_count > 0 && graph.value_stride < value_size_v1) {
    malformed("value_stride: expected at least " + number(value_size_v1) + ", got " + number(graph.value_stride));
  }
  if (graph.node_count > 0 && graph.node_stride < node_size_v1) {
    malformed("node_stride: expected at least " + number(node_size_v1) + ", got " + number(graph.node_stride));
  }
  if (graph.value_stride % alignof(tenon_value) != 0 || graph.node_stride % alignof(tenon_node) != 0) {
    malformed("value_stride " + number(graph.value_stride) + " and node_stride " + number(graph.node_stride) + " must be multiples of " +
              number(alignof(tenon_value)));
  }
  if (graph.binding_count > graph.value_count) {
    malformed("binding_count is " + number(graph.binding_count) + ", more than its " + number(graph.value_count) + " values");
  }
  GraphModel model;
  model.options = options;
  model.problem = problem_of(graph, options);
  model.binding_count = graph.binding_count;
  std::vector<Diagnostic> value_problems(graph.value_count);
  model.values.reserve(graph.value_count);
  for (std::uint32_t i = 0; i < graph.value_count; ++i) {
    model.values.push_back(read_value(element(graph.values, i, graph.value_stride), i, graph.binding_count, value_problems[i]));
  }
  if (graph.donation_count > 0) model.donations.assign(graph.donations, graph.donations + graph.donation_count);
  for (const tenon_donation& d : model.donations) {
    if (d.input >= graph.value_count || d.output >= graph.value_count) malformed("a donation names a value that does not exist");
    Diagnostic &from = value_problems[d.input], &to = value_problems[d.output];  // one address: a problem of one is a problem of both
    (from.reason == TENON_REASON_NONE ? from : to) = from.reason == TENON_REASON_NONE ? to : from;
  }
  model.nodes.reserve(graph.node_count);
  for (std::uint32_t i = 0; i < graph.node_count; ++i) {
    model.nodes.push_back(read_node(element(graph.nodes, i, graph.node_stride), i, value_problems, {rows, model.blocks}));
  }
  check_writers(model);
  check_donations(model, value_problems);
  return model;
}

std::uint32_t GraphModel::add_dense_copy(std::uint32_t of) {
  Value copy = values[of];
  copy.kind = TENON_VALUE_INTERNAL;
  copy.binding = none;
  copy.data = nullptr;
  copy.packed = nullptr;
  copy.root = static_cast<std::uint32_t>(values.size());
  copy.make_dense();
  values.push_back(copy);
  return copy.root;
}

std::uint64_t checked_size(std::size_t size, const Node& node, const char* what) {
  if (size > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    throw Error(TENON_OUT_OF_MEMORY, op_name(node) + ": " + std::to_string(size) + " bytes of " + what);
  }
  return size;
}

Call describe(const GraphModel& graph, const Node& node, std::vector<Operand>& operands) {
  operands.clear();
  operands.reserve(node.inputs.size() + node.outputs.size() + std::size(epilogue_operands));  // never reallocated: the call points into it
  const auto append = [&](std::uint32_t v) { operands.push_back(v == none ? Operand{} : graph.values[v].operand()); };
  for (const std::uint32_t v : node.inputs) append(v);
  for (const std::uint32_t v : node.outputs) append(v);
  Call call;
  call.inputs = operands.data();
  call.outputs = operands.data() + node.inputs.size();
  call.input_count = static_cast<std::uint32_t>(node.inputs.size());
  call.output_count = static_cast<std::uint32_t>(node.outputs.size());
  call.attributes = node.attributes.data();
  for (const EpilogueOperand& part : epilogue_operands) {
    if (node.*part.value == none) continue;
    append(node.*part.value);
    call.epilogue.*part.operand = &operands.back();
  }
  call.epilogue.activation = node.activation;
  call.math = graph.options.math;
  call.deterministic = graph.options.deterministic != 0;
  call.channels_last = node.channels_last;
  call.merged_heads = node.merged_heads;
  call.device = graph.device;
  call.host = graph.host;
  return call;
}

tenon_answer refusal(std::uint32_t reason, const std::string& text) {
  tenon_answer no{};
  no.reason = reason;
  std::snprintf(no.text, sizeof no.text, "%s", text.c_str());
  return no;
}

tenon_answer answer(const GraphModel& graph, Node& node, const KernelRow* rows) {
  node.row = find_row(rows, node.op, node.version);
  const std::string op = op_name(node);
  const Diagnostic& problem = graph.problem.reason != TENON_REASON_NONE ? graph.problem : node.problem;
  if (problem.reason != TENON_REASON_NONE) return refusal(problem.reason, op + ": " + problem.text);
  if (node.row == nullptr) return refusal(TENON_REASON_OP, op + ": version " + number(node.version) + " has no kernel in this backend");
  const auto& typed = node.row->type_operand < 0 ? node.outputs : node.inputs;
  const auto position = static_cast<std::size_t>(node.row->type_operand < 0 ? 0 : node.row->type_operand);
  if (position >= typed.size() || typed[position] == none) {
    return refusal(TENON_REASON_SHAPE, op + (node.row->type_operand < 0 ? ": output " : ": input ") + number(position) +
                                           ", whose dtype selects the kernel, is absent");
  }
  const Value& selector = graph.values[typed[position]];
  node.widened = widens(rows, *node.row, selector.dtype);
  node.function = node.row->kernel->functions[node.widened ? tenon_dtype{TENON_DTYPE_F32} : selector.dtype];
  if (node.function == nullptr) return refusal(TENON_REASON_DTYPE, op + ": no kernel for " + name_of(selector.dtype));
  if (const Diagnostic diagnostic = check_operands(graph, node, selector.dtype); diagnostic.reason != TENON_REASON_NONE) {
    return refusal(diagnostic.reason, op + ": " + diagnostic.text);
  }
  const Traits& traits = node.row->kernel->traits;
  std::vector<Operand> operands;
  Call call = describe(graph, node, operands);
  for (Operand& operand : operands) {
    if (node.widened && operand.dtype == selector.dtype) operand.dtype = TENON_DTYPE_F32;
  }
  const bool turns = traits.channels_last_when == nullptr || traits.channels_last_when(call);
  node.turns = turns ? traits.channels_last : ChannelsLast{};
  if (turns && traits.graph_layout_inputs != nullptr) node.turns.inputs &= ~traits.graph_layout_inputs(call);
  for (const std::uint32_t v : node.inputs) {
    // A kernel that needs dense operands gets a copy made by the backend's Reshape, if that takes any strides.
    const bool converted = node.widened && graph.values[v == none ? 0 : v].dtype == selector.dtype;
    if (v == none || graph.values[v].dense || traits.strided || converted || find_copier(rows, graph.values[v]) != nullptr) continue;
    return refusal(TENON_REASON_STRIDES, op + ": takes dense " + name_of(graph.values[v].dtype) + " operands only");
  }
  const auto is_turned = [&](const std::vector<std::uint32_t>& values, std::uint32_t mask) {
    for (std::size_t i = 0; i < values.size() && i < 32; ++i) {
      if ((mask >> i & 1) == 0 || values[i] == none || !is_image(graph.values[values[i]])) continue;
      const Value& value = graph.values[values[i]];
      const bool wide = node.widened && value.dtype == selector.dtype;
      if (find_transposer(rows, value, wide ? tenon_dtype{TENON_DTYPE_F32} : value.dtype) == nullptr) return false;
    }
    return true;
  };
  if (!is_turned(node.inputs, node.turns.inputs) || !is_turned(node.outputs, node.turns.outputs)) {
    return refusal(TENON_REASON_OP, op + ": takes images with their channels last, but there is no Transpose kernel to convert them");
  }
  if (traits.refuse != nullptr) {
    if (const char* reason = traits.refuse(call)) return refusal(TENON_REASON_ATTRIBUTES, op + ": " + reason);
  }
  tenon_answer yes{};
  yes.supported = 1;
  return yes;
}

}  // namespace tenon::sdk
