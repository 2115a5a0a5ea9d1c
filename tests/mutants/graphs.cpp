// SPDX-License-Identifier: Apache-2.0
// Changes to the caller's graphs: another attribute, exchanged operands, dropped strides.
#include "mutant.h"

namespace tenon::mutants {
namespace {

template <class Element>
const Element& element(const Element* array, std::uint32_t stride, std::uint32_t index) {
  return *reinterpret_cast<const Element*>(reinterpret_cast<const unsigned char*>(array) + std::size_t{index} * stride);
}

template <class Struct>
void flip(Graph::Node& node, std::uint32_t Struct::*flag) {
  node.as<Struct>().*flag ^= 1u;
}
template <class T>
void exchange(T* a, T* b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) std::swap(a[i], b[i]);
}

/// The change that a mutation makes to each node of an op.
struct Edit {
  Mutation mutation;
  tenon_op op;
  void (*edit)(Graph::Node&);
};
const Edit edits[] = {
    {Mutation::wrong_axis, TENON_OP_Softmax, [](Graph::Node& n) { n.as<tenon_attributes_axis>().axis = 0; }},
    {Mutation::swapped_gradient_inputs, TENON_OP_SigmoidGrad, [](Graph::Node& n) { std::swap(n.inputs[0], n.inputs[1]); }},
    {Mutation::batch_norm_biased, TENON_OP_BatchNormTrain, [](Graph::Node& n) { flip(n, &tenon_attributes_batch_norm::biased); }},
    {Mutation::average_counts_padding, TENON_OP_AveragePool, [](Graph::Node& n) { flip(n, &tenon_attributes_window::count_include_pad); }},
    {Mutation::dropout_bits_differ, TENON_OP_Dropout, [](Graph::Node& n) { n.as<tenon_attributes_random>().stream ^= 1u; }},
    {Mutation::conv_pads_swapped, TENON_OP_Conv,
     [](Graph::Node& n) {
       auto& a = n.as<tenon_attributes_conv>();
       exchange(a.pads_before, a.pads_after, TENON_MAX_SPATIAL);
     }},
    {Mutation::gru_resets_too_early, TENON_OP_GRU, [](Graph::Node& n) { flip(n, &tenon_attributes_recurrent::linear_before_reset); }},
    {Mutation::attention_forgets_the_mask, TENON_OP_Attention, [](Graph::Node& n) { n.as<tenon_attributes_attention>().causal = 0; }},
    {Mutation::adam_decays_twice, TENON_OP_AdamStep, [](Graph::Node& n) { n.as<tenon_attributes_adam>().weight_decay *= 2; }},
    {Mutation::loss_not_averaged, TENON_OP_SoftmaxCrossEntropyLoss,
     [](Graph::Node& n) {
       auto& a = n.as<tenon_attributes_cross_entropy>();
       if (a.reduction == TENON_REDUCTION_MEAN) a.reduction = TENON_REDUCTION_SUM;
     }},
    {Mutation::cumulative_sum_one_late, TENON_OP_CumSum, [](Graph::Node& n) { flip(n, &tenon_attributes_cum_sum::exclusive); }},
    {Mutation::layer_norm_wrong_epsilon, TENON_OP_LayerNormalization,
     [](Graph::Node& n) { n.as<tenon_attributes_layer_norm>().epsilon = 1e-3; }},
};

/// Takes a column that is added to a square for a row.
void take_columns_for_rows(Graph& graph) {
  for (const Graph::Node& node : graph.nodes) {
    if (node.abi.op != TENON_OP_Add) continue;
    const auto& shape = graph.values[node.inputs[0]].shape;
    Graph::Value& added = graph.values[node.inputs[1]];
    if (shape.size() == 2 && shape[0] == shape[1] && added.shape == std::vector<std::int64_t>{shape[0], 1}) {
      added.shape = {shape[0]};
      added.strides.reset();
      added.abi.desc.rank = 1;
    }
  }
}

/// The second node that reads a constant reads the first constant of that shape.
void mix_up_constants(Graph& graph) {
  std::vector<int> readers(graph.values.size(), 0);
  for (Graph::Node& node : graph.nodes) {
    for (std::uint32_t& input : node.inputs) {
      if (input == TENON_NO_INDEX || graph.values[input].abi.kind != TENON_VALUE_CONSTANT || ++readers[input] < 2) continue;
      for (std::uint32_t v = 0; v < input; ++v) {
        const Graph::Value& other = graph.values[v];
        if (other.abi.kind != TENON_VALUE_CONSTANT || other.shape != graph.values[input].shape) continue;
        input = v;
        break;
      }
    }
  }
}

}  // namespace

std::uint64_t size_of(tenon_dtype dtype) {
  switch (dtype) {
    case TENON_DTYPE_C128:
      return 16;
    case TENON_DTYPE_F64:
    case TENON_DTYPE_C64:
    case TENON_DTYPE_I64:
    case TENON_DTYPE_U64:
      return 8;
    case TENON_DTYPE_F32:
    case TENON_DTYPE_I32:
    case TENON_DTYPE_U32:
      return 4;
    case TENON_DTYPE_F16:
    case TENON_DTYPE_BF16:
    case TENON_DTYPE_I16:
    case TENON_DTYPE_U16:
      return 2;
    default:
      return 1;
  }
}

std::uint64_t Graph::Value::count() const {
  std::uint64_t count = 1;
  for (const std::int64_t d : shape) count *= static_cast<std::uint64_t>(d);
  return count;
}

bool Graph::can_copy(const tenon_graph& graph) {
  for (std::uint32_t v = 0; v < graph.value_count; ++v) {
    if (element(graph.values, graph.value_stride, v).desc.rank > TENON_MAX_RANK) return false;
  }
  for (std::uint32_t n = 0; n < graph.node_count; ++n) {
    const tenon_node& node = element(graph.nodes, graph.node_stride, n);
    for (std::uint32_t i = 0; i < node.input_count; ++i) {
      if (node.inputs[i] >= graph.value_count && node.inputs[i] != TENON_NO_INDEX) return false;
    }
    for (std::uint32_t o = 0; o < node.output_count; ++o) {
      if (node.outputs[o] >= graph.value_count && node.outputs[o] != TENON_NO_INDEX) return false;
    }
  }
  return true;
}

Graph::Graph(const tenon_graph& graph)
    : binding_count(graph.binding_count), donations_(graph.donations, graph.donations + graph.donation_count), abi_(graph) {
  for (std::uint32_t v = 0; v < graph.value_count; ++v) {
    const tenon_value& from = element(graph.values, graph.value_stride, v);
    Value value{{from.desc.shape, from.desc.shape + from.desc.rank}, std::nullopt, from};
    if (from.desc.strides != nullptr) value.strides.emplace(from.desc.strides, from.desc.strides + from.desc.rank);
    values.push_back(std::move(value));
  }
  for (std::uint32_t n = 0; n < graph.node_count; ++n) {
    const tenon_node& from = element(graph.nodes, graph.node_stride, n);
    Node node{{},
              {from.inputs, from.inputs + from.input_count},
              {from.outputs, from.outputs + from.output_count},
              from.name == nullptr ? "" : from.name,
              from};
    std::uint32_t size = 0;
    std::memcpy(&size, from.attributes, sizeof size);
    node.attributes.resize((size + 7) / 8);
    std::memcpy(node.attributes.data(), from.attributes, size);
    nodes.push_back(std::move(node));
  }
}

const tenon_graph& Graph::abi() {
  value_array_.clear();
  node_array_.clear();
  for (Value& value : values) {
    value.abi.desc.shape = value.shape.data();
    value.abi.desc.strides = value.strides ? value.strides->data() : nullptr;
    value_array_.push_back(value.abi);
  }
  for (Node& node : nodes) {
    node.abi.inputs = node.inputs.data();
    node.abi.outputs = node.outputs.data();
    node.abi.attributes = node.attributes.data();
    node.abi.name = node.name.c_str();
    node_array_.push_back(node.abi);
  }
  abi_.values = value_array_.data();
  abi_.value_stride = sizeof(tenon_value);
  abi_.nodes = node_array_.data();
  abi_.node_stride = sizeof(tenon_node);
  abi_.donations = donations_.data();
  return abi_;
}

bool changes_graphs() {
  if (shares_packed()) return true;
  for (const Mutation m :
       {Mutation::ignores_strides, Mutation::any_version_will_do, Mutation::columns_are_rows, Mutation::constants_mixed_up,
        Mutation::ignores_needs_of_values, Mutation::ignores_needs_of_nodes, Mutation::ignores_vendor_attributes}) {
    if (is(m)) return true;
  }
  for (const Edit& edit : edits) {
    if (edit.mutation == mutation) return true;
  }
  return false;
}

void change(Graph& graph) {
  read_packed_constants(graph);
  if (is(Mutation::ignores_strides)) {
    for (Graph::Value& value : graph.values) value.strides.reset();
  }
  if (is(Mutation::ignores_needs_of_values)) {
    for (Graph::Value& value : graph.values) value.abi.needs = 0;
  }
  if (is(Mutation::columns_are_rows)) take_columns_for_rows(graph);
  if (is(Mutation::constants_mixed_up)) mix_up_constants(graph);
  for (Graph::Node& node : graph.nodes) {
    if (is(Mutation::ignores_needs_of_nodes)) node.abi.needs = 0;
    if (is(Mutation::ignores_vendor_attributes)) rectify(node);
    if (is(Mutation::any_version_will_do) && node.abi.op == TENON_OP_Relu) node.abi.version = 14;
    for (const Edit& edit : edits) {
      if (edit.mutation == mutation && edit.op == node.abi.op) edit.edit(node);
    }
  }
}

}  // namespace tenon::mutants
