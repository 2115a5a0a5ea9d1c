// SPDX-License-Identifier: Apache-2.0
// fuse_quantized_attention.cpp - the products and the softmax of an attention whose operands are quantised, as one kernel: scores stay in
// the cache, in one block of rows at a time.
#include <optional>
#include <utility>

#include "passes/graph_uses.h"
#include "passes/passes.h"

namespace tenon::sdk {
namespace {

/// The nodes from the product of q and k to the DequantizeLinear of the result, by their indices; scale_by and add_mask may be missing.
struct Chain {
  std::uint32_t scores = none, dequantize_scores = none, scale_by = none, add_mask = none, softmax = none, quantize = none, product = none,
                dequantize = none;
};

class AttentionFusion {
 public:
  explicit AttentionFusion(GraphModel& graph) : graph_(graph), uses_(graph), absorbed_(graph.nodes.size(), false) {}

  void run() {
    for (std::uint32_t n = 0; n < graph_.nodes.size(); ++n) {
      if (!node(n).is(TENON_OP_MatMulInteger) || node(n).row->kernel->traits.quantized_attention == nullptr) continue;
      const Chain chain = chain_from(n);
      if (chain.dequantize != none) fuse(chain);
    }
    remove_nodes(graph_, absorbed_);
  }

 private:
  const Node& node(std::uint32_t n) const { return graph_.nodes[n]; }
  const Value& value(std::uint32_t v) const { return graph_.values[v]; }
  std::uint32_t result_of(std::uint32_t n) const { return node(n).outputs[0]; }
  /// Operand i of the node; none if it is absent.
  std::uint32_t input(std::uint32_t n, std::size_t i) const { return i < node(n).inputs.size() ? node(n).inputs[i] : none; }
  /// Absent, or one element of this dtype.
  bool is_number(std::uint32_t v, tenon_dtype dtype) const { return v == none || (value(v).count == 1 && value(v).dtype == dtype); }

  /// The only reader of the node's result, if it has this op and its result has the same shape.
  std::uint32_t next(std::uint32_t n, tenon_op op) const {
    const std::uint32_t v = result_of(n);
    if (uses_.donated[v]) return none;
    const Read* const only = uses_.only_reader(v);
    if (only == nullptr || absorbed_[only->node] || !node(only->node).is(op) || only->value != v) return none;
    return same_shape(value(result_of(only->node)), value(v)) ? only->node : none;
  }
  /// The operand of a sum or product that is not the result of node `of`; none if both are.
  std::uint32_t other_operand(std::uint32_t n, std::uint32_t of) const {
    const std::uint32_t v = result_of(of), a = input(n, 0), b = input(n, 1);
    if (a == b) return none;
    return a == v ? b : a;
  }

  /// A DequantizeLinear of a product's sums with one scale and no zero point.
  std::uint32_t dequantizer_of(std::uint32_t product) const {
    const std::uint32_t n = next(product, TENON_OP_DequantizeLinear);
    if (n == none || input(n, 0) != result_of(product) || input(n, 2) != none) return none;
    return is_number(input(n, 1), TENON_DTYPE_F32) && value(result_of(n)).dtype == TENON_DTYPE_F32 ? n : none;
  }
  bool has_byte_operands(std::uint32_t product) const {
    for (const std::size_t i : {0, 1}) {
      const Value& x = value(input(product, i));
      if (size_of(x.dtype) != 1 || !is_number(input(product, i + 2), x.dtype)) return false;
    }
    return true;
  }
  /// The same number of dimensions, 3 or 4, and the same leading ones.
  bool are_stacks(std::initializer_list<std::uint32_t> operands) const {
    const Value& first = value(*operands.begin());
    if (first.rank != 3 && first.rank != 4) return false;
    for (const std::uint32_t v : operands) {
      const Value& x = value(v);
      if (x.rank != first.rank || x.count == 0) return false;
      for (std::uint32_t d = 0; d + 2 < x.rank; ++d) {
        if (x.shape[d] != first.shape[d]) return false;
      }
    }
    return true;
  }

  Chain chain_from(std::uint32_t n) const {
    Chain chain;
    if (absorbed_[n] || !has_byte_operands(n)) return {};
    chain.scores = n;
    std::uint32_t last = chain.dequantize_scores = dequantizer_of(n);
    if (last == none) return {};
    chain.scale_by = next(last, TENON_OP_Mul);
    if (chain.scale_by != none) {
      const std::uint32_t factor = other_operand(chain.scale_by, last);
      if (factor == none || !is_number(factor, TENON_DTYPE_F32)) return {};
      last = chain.scale_by;
    }
    chain.add_mask = next(last, TENON_OP_Add);
    if (chain.add_mask != none) {
      if (other_operand(chain.add_mask, last) == none) return {};
      last = chain.add_mask;
    }
    chain.softmax = next(last, TENON_OP_Softmax);
    if (chain.softmax == none) return {};
    if (node(chain.softmax).attr<tenon_attributes_axis>().axis + 1 != static_cast<std::int64_t>(value(result_of(last)).rank)) return {};
    chain.quantize = next(chain.softmax, TENON_OP_QuantizeLinear);
    if (chain.quantize == none || input(chain.quantize, 0) != result_of(chain.softmax)) return {};
    const std::uint32_t p = result_of(chain.quantize);
    if (size_of(value(p).dtype) != 1 || !is_number(input(chain.quantize, 1), TENON_DTYPE_F32)) return {};
    if (!is_number(input(chain.quantize, 2), value(p).dtype)) return {};
    const Read* const product = uses_.donated[p] ? nullptr : uses_.only_reader(p);
    if (product == nullptr || absorbed_[product->node] || !node(product->node).is(TENON_OP_MatMulInteger)) return {};
    chain.product = product->node;
    if (input(chain.product, 0) != p || input(chain.product, 1) == p || !has_byte_operands(chain.product)) return {};
    if (zero_point_of(chain) == none) return {};
    if (!are_stacks({input(n, 0), input(n, 1), p, input(chain.product, 1), result_of(chain.product)})) return {};
    const std::uint32_t dequantize = dequantizer_of(chain.product);
    if (dequantize == none || uses_.donated[result_of(dequantize)]) return {};
    chain.dequantize = dequantize;
    return chain;
  }

  /// The zero point that the quantised softmax has in both nodes, of its dtype; none if it is not known to be the same, or absent.
  std::uint32_t zero_point_of(const Chain& chain) const {
    const std::uint32_t quantized = input(chain.quantize, 2), multiplied = input(chain.product, 2);
    if (quantized == multiplied) return quantized;
    const std::optional<std::uint8_t> a = known_byte(quantized), b = known_byte(multiplied);
    if (!a || !b || *a != *b) return none;
    return multiplied == none ? quantized : multiplied;
  }
  /// The element of a constant of 8 bits; 0 if it is absent.
  std::optional<std::uint8_t> known_byte(std::uint32_t v) const {
    if (v == none) return 0;
    const Value& x = value(v);
    if (x.kind != TENON_VALUE_CONSTANT || x.data == nullptr) return {};
    return *static_cast<const std::uint8_t*>(x.data);
  }

  /// The kernel takes the place of the second product, before which all operands are known but, perhaps, the scale of the result.
  void fuse(const Chain& chain) {
    const std::uint32_t scale = input(chain.dequantize, 1), maker = uses_.producers[value(scale).root];
    if (maker != none && maker >= chain.product) return;
    Node fused = node(chain.scores);
    fused.inputs.resize(attention_input::count, none);
    fused.inputs[attention_input::score_scale] = input(chain.dequantize_scores, 1);
    if (chain.scale_by != none) fused.inputs[attention_input::score_factor] = other_operand(chain.scale_by, chain.dequantize_scores);
    if (chain.add_mask != none) {
      fused.inputs[attention_input::mask] =
          other_operand(chain.add_mask, chain.scale_by == none ? chain.dequantize_scores : chain.scale_by);
    }
    fused.inputs[attention_input::p_scale] = input(chain.quantize, 1);
    fused.inputs[attention_input::p_zero_point] = zero_point_of(chain);
    fused.inputs[attention_input::v] = input(chain.product, 1);
    fused.inputs[attention_input::v_zero_point] = input(chain.product, 3);
    fused.outputs = {result_of(chain.dequantize)};
    std::vector<Operand> operands;
    if (!fused.row->kernel->traits.quantized_attention(describe(graph_, fused, operands))) return;
    fused.scale = scale;
    fused.index = node(chain.product).index;
    fused.id = node(chain.product).id;
    for (const std::uint32_t n :
         {chain.dequantize_scores, chain.scale_by, chain.add_mask, chain.softmax, chain.quantize, chain.product, chain.dequantize}) {
      if (n != none) fused.fused_count += node(n).fused_count;
      if (n != none) absorbed_[n] = true;
    }
    absorbed_[chain.scores] = true;
    absorbed_[chain.product] = false;
    graph_.nodes[chain.product] = std::move(fused);
  }

  GraphModel& graph_;
  GraphUses uses_;
  std::vector<bool> absorbed_;
};

}  // namespace

bool is_quantized_attention(const Node& node) {
  return node.is(TENON_OP_MatMulInteger) && node.inputs.size() == attention_input::count;
}

void fuse_quantized_attention(GraphModel& graph) {
  AttentionFusion(graph).run();
}

}  // namespace tenon::sdk
