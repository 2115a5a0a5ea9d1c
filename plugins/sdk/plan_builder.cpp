// SPDX-License-Identifier: Apache-2.0
// The passes that turn a graph into an ordered list of calls with a location for every value.
#include <algorithm>
#include <functional>
#include <iterator>
#include <queue>

#include <tenon/sdk/memory_plan.h>
#include <tenon/sdk/rounding.h>

#include "elementwise_group.h"
#include "graph_uses.h"
#include "operands.h"
#include "plan.h"
#include "plan_passes.h"

namespace tenon::sdk {
namespace {

/// Makes readers of the donated input read a copy, the writer too if `writer_too`. Returns the node that makes the copy, to be run first.
Node snapshot(GraphModel& graph, const KernelRow* rows, const tenon_donation& donation, std::uint32_t writer, bool writer_too) {
  const std::uint32_t copy = graph.add_dense_copy(donation.input);
  std::vector<std::uint32_t> copies(graph.values.size(), none);
  copies[donation.input] = copy;
  const auto copy_of = [&](std::uint32_t v) {
    if (copies[v] == none) {
      Value view = graph.values[v];  // the view's strides fit the copy: a donated input that is not dense has no views
      view.root = copy;
      graph.values.push_back(view);
      copies[v] = static_cast<std::uint32_t>(graph.values.size() - 1);
    }
    return copies[v];
  };
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    if (n == writer && !writer_too) continue;
    Node& node = graph.nodes[n];
    for (std::uint32_t& v : node.inputs) {
      if (v != none && v < copies.size() && graph.values[v].root == donation.input) v = copy_of(v);
    }
    for (std::uint32_t* v : {&node.bias, &node.residual}) {
      if (*v != none && *v < copies.size() && graph.values[*v].root == donation.input) *v = copy_of(*v);
    }
  }
  return copy_node(graph, rows, donation.input, copy, graph.nodes[writer]);
}

/// True if the writer may overwrite the donated input although it reads it.
bool writes_safely(const GraphModel& graph, const tenon_donation& donation, const Node& writer) {
  const auto reads = [&](std::uint32_t v) { return v != none && graph.values[v].root == donation.input; };
  const auto output =
      static_cast<std::size_t>(std::find(writer.outputs.begin(), writer.outputs.end(), donation.output) - writer.outputs.begin());
  if (reads(writer.bias) || reads(writer.residual)) return false;  // an epilogue of another result: donated results are not fused
  for (std::size_t i = 0; i < writer.inputs.size(); ++i) {
    if (!reads(writer.inputs[i])) continue;
    if (!writer.row->kernel->traits.in_place || !same_layout(graph.values[writer.inputs[i]], graph.values[donation.output])) return false;
    if (writer.outputs.size() > 1 && !updates_in_place(writer, i, output)) return false;
  }
  return true;
}

/// A donation whose writer must run after a reader that depends on the writer. Data edges form no cycle, so there is such a donation.
std::uint32_t donation_on_a_cycle(const GraphModel& graph, const std::vector<std::vector<std::uint32_t>>& after, const GraphUses& uses) {
  for (std::uint32_t i = 0; i < graph.donations.size(); ++i) {
    const std::uint32_t writer = uses.producers[graph.donations[i].output];
    if (writer == none) continue;
    std::vector<bool> waits(graph.nodes.size(), false);
    std::vector<std::uint32_t> open{writer};
    while (!open.empty()) {
      const std::uint32_t n = open.back();
      open.pop_back();
      for (const std::uint32_t next : after[n]) {
        if (!waits[next]) open.push_back(next);
        waits[next] = true;
      }
    }
    for (const Read& read : uses.readers[graph.donations[i].input]) {
      if (read.node != writer && waits[read.node]) return i;
    }
  }
  throw Error(TENON_INTERNAL, "plan: the nodes form a cycle");
}

/// Stable topological order under data and donation edges. Returns a donation that cannot be honoured by order, or none. A donation whose
/// writer is not among the nodes adds no edge.
std::uint32_t try_order(GraphModel& graph) {
  const auto count = static_cast<std::uint32_t>(graph.nodes.size());
  const GraphUses uses(graph);
  std::vector<std::vector<std::uint32_t>> after(count);
  std::vector<std::uint32_t> pending(count, 0);
  const auto edge = [&](std::uint32_t from, std::uint32_t to) {
    after[from].push_back(to);
    ++pending[to];
  };
  for (std::uint32_t v = 0; v < graph.values.size(); ++v) {
    if (uses.producers[v] == none) continue;
    for (const Read& read : uses.readers[v]) edge(uses.producers[v], read.node);
  }
  for (const tenon_donation& d : graph.donations) {
    const std::uint32_t writer = uses.producers[d.output];
    if (writer == none) continue;
    for (const Read& read : uses.readers[d.input]) {
      if (read.node != writer) edge(read.node, writer);
    }
  }
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
  for (std::uint32_t n = 0; n < count; ++n) {
    if (pending[n] == 0) ready.push(n);
  }
  std::vector<std::uint32_t> order;
  while (!ready.empty()) {
    const std::uint32_t n = ready.top();
    ready.pop();
    order.push_back(n);
    for (const std::uint32_t next : after[n]) {
      if (--pending[next] == 0) ready.push(next);
    }
  }
  if (order.size() < count) return donation_on_a_cycle(graph, after, uses);
  std::vector<Node> sorted;
  sorted.reserve(count);
  for (const std::uint32_t n : order) sorted.push_back(std::move(graph.nodes[n]));
  graph.nodes = std::move(sorted);
  return none;
}

/// True for a value with one element for each index of the last dimension.
bool is_bias(const Value& b, const Value& result) {
  return b.dense && b.dtype == result.dtype && b.rank >= 1 && b.shape[b.rank - 1] == result.shape[result.rank - 1] &&
         b.count == b.shape[b.rank - 1];
}

/// A kernel that works on images adds a bias only to channels, so they must be the last dimension of its result.
bool takes_bias(const Node& node, const Value& result) {
  const ChannelsLast& images = node.row->kernel->traits.channels_last;
  return (images.outputs & 1) == 0 || !is_image(result) || node.channels_last;
}

/// The only reader of a value, the view of all its elements that it reads, or the value itself, and the conversions around the reader if
/// the value has 16 bits and the reader computes in f32.
struct Follower {
  std::uint32_t node = none, read = none, widening = none, narrowing = none;
};

/// The activation that an op is.
Activation activation_of(const Node& node) {
  if (node.is(TENON_OP_Relu)) return Activation::relu;
  if (node.is(TENON_OP_Sigmoid)) return Activation::sigmoid;
  if (node.is(TENON_OP_Tanh)) return Activation::tanh;
  if (node.is(TENON_OP_Silu)) return Activation::silu;
  if (node.is(TENON_OP_Gelu) && node.attr<tenon_attributes_gelu>().approximate_tanh == 0) return Activation::gelu;
  if (!node.is(TENON_OP_Clip)) return Activation::none;
  const auto& bounds = node.attr<tenon_attributes_clip>();
  Activation clip = Activation::clip;
  clip.low = static_cast<float>(bounds.low);
  clip.high = static_cast<float>(bounds.high);
  return clip;
}

/// Fuses product, bias, residual and activation into one call. Of several results the first is continued. A 16-bit kernel computes its
/// epilogue before it rounds, so that the conversions around the fused ops are dropped. A result of another shape than the product's, whose
/// elements it has in order, becomes a view of it.
void fuse_epilogues(GraphModel& graph) {
  const GraphUses uses(graph);
  std::vector<std::uint32_t> made_by = uses.producers;  // of a product that was continued: the last node that it computes
  std::vector<bool> absorbed(graph.nodes.size(), false);

  const auto result_of = [&](std::uint32_t n) { return graph.nodes[n].outputs[0]; };
  // The only reader of an internal value, and the value that it reads: this one, or a view of all its elements in order. None if it reads
  // another view, or if its result overwrites a donated input.
  const auto only_reader = [&](std::uint32_t v) -> std::pair<std::uint32_t, std::uint32_t> {
    if (!uses.has_one_reader(v)) return {none, none};
    const auto [n, read] = uses.readers[v][0];
    if (absorbed[n]) return {none, none};  // by the product that makes its other operand
    const Node& reader = graph.nodes[n];
    if (!graph.values[read].dense || graph.values[read].count != graph.values[v].count) return {none, none};
    if (reader.outputs.size() != 1 || reader.outputs[0] == none || uses.donated[reader.outputs[0]]) return {none, none};
    return {n, read};
  };
  const auto follower = [&](std::uint32_t v) -> Follower {
    const auto [n, read] = only_reader(v);
    if (n == none) return {};
    if (same_layout(graph.values[read], graph.values[result_of(n)])) return {n, read, none, none};
    if (!is_widening(graph, graph.nodes[n])) return {};
    const std::uint32_t wide = only_reader(result_of(n)).first;
    if (wide == none || !same_layout(graph.values[result_of(n)], graph.values[result_of(wide)])) return {};
    const std::uint32_t narrowing = only_reader(result_of(wide)).first;
    if (narrowing == none || !graph.nodes[narrowing].is(TENON_OP_Cast)) return {};
    if (!same_layout(graph.values[read], graph.values[result_of(narrowing)])) return {};
    return {wide, read, n, narrowing};
  };
  const auto result_after = [&](const Follower& next) { return result_of(next.narrowing == none ? next.node : next.narrowing); };
  const auto fits = [&](const Node& into, const Follower& next) {
    const Value& result = graph.values[result_after(next)];
    return result.kind == TENON_VALUE_INTERNAL || same_layout(graph.values[into.outputs[0]], result);
  };
  const auto absorb = [&](Node& into, const Follower& next) {
    const std::uint32_t result = result_after(next);
    if (same_layout(graph.values[into.outputs[0]], graph.values[result])) {
      into.outputs[0] = result;
    } else {
      for (Value& value : graph.values) {  // its views, and itself
        if (value.root == result) value.root = into.outputs[0];
      }
      made_by[into.outputs[0]] = made_by[result];
    }
    ++into.fused_count;
    absorbed[next.node] = true;
    for (const std::uint32_t cast : {next.widening, next.narrowing}) {
      if (cast == none) continue;
      if (graph.nodes[cast].index != graph.nodes[next.node].index) ++into.fused_count;  // a node of the core's graph
      absorbed[cast] = true;
    }
  };

  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    Node& product = graph.nodes[n];
    if (absorbed[n] || !product.row->kernel->traits.epilogue || product.outputs.empty() || product.outputs[0] == none) continue;
    const Value result = graph.values[product.outputs[0]];
    if (result.rank == 0) continue;
    Follower next = follower(product.outputs[0]);
    while (next.node != none && graph.nodes[next.node].is(TENON_OP_Add) && fits(product, next)) {
      const Node& add = graph.nodes[next.node];
      const std::uint32_t own = next.widening == none ? next.read : result_of(next.widening);
      const std::uint32_t other = add.inputs[add.inputs[0] == own ? 1 : 0];
      std::uint32_t from = other;  // the value that the kernel reads: before the conversion
      if (next.widening != none) {
        if (made_by[other] == none || !is_widening(graph, graph.nodes[made_by[other]])) break;
        from = graph.nodes[made_by[other]].inputs[0];
      }
      const Value addend = graph.values[from], read = graph.values[next.read];
      // The producer of the addend may be listed after the product: the order is set later, and the addend cannot depend on a result that
      // only this sum reads. It can depend on another result of the product.
      const std::uint32_t maker = made_by[addend.root];
      if (product.outputs.size() > 1 && maker != none && maker >= n) break;
      if (product.bias == none && takes_bias(product, result) && is_bias(addend, result) && is_bias(addend, read)) {
        product.bias = from;
      } else if (product.residual == none && product.row->kernel->traits.residual && same_layout(addend, read)) {
        product.residual = from;
        if (!same_layout(addend, result)) {
          Value view = result;
          view.kind = TENON_VALUE_INTERNAL;
          view.binding = none;
          view.root = addend.root;
          product.residual = static_cast<std::uint32_t>(graph.values.size());
          graph.values.push_back(view);
        }
      } else {
        break;
      }
      if (from != other && uses.has_one_reader(other)) absorbed[made_by[other]] = true;
      const std::uint32_t sum = result_after(next);
      absorb(product, next);
      next = follower(sum);
    }
    if (next.node == none || !fits(product, next)) continue;
    const Activation activation = activation_of(graph.nodes[next.node]);
    const std::uint32_t known =
        product.row->kernel->traits.activations & (result.dtype == TENON_DTYPE_F64 ? basic_activations : all_activations);
    if ((known & activation_bit(activation.kind)) == 0) continue;
    product.activation = activation;
    absorb(product, next);
  }
  remove_nodes(graph, absorbed);
}

/// Lets kernels with Traits::relu_grad compute the gradient of a relu that only they read. In 16 bits it stands between conversions, which
/// change nothing: no element is computed.
void fuse_relu_grads(GraphModel& graph) {
  const GraphUses uses(graph);
  std::vector<bool> absorbed(graph.nodes.size(), false);
  // The node that makes a value for one reader only, if it is this op.
  const auto only_for = [&](std::uint32_t v, tenon_op op) {
    const std::uint32_t maker = v != none && uses.has_one_reader(v) ? uses.producers[v] : none;
    return maker != none && graph.nodes[maker].is(op) ? maker : none;
  };
  for (Node& node : graph.nodes) {
    if (!node.row->kernel->traits.relu_grad || node.relu_grad) continue;
    const std::uint32_t result = node.inputs[0], narrowing = only_for(result, TENON_OP_Cast);
    const std::uint32_t gradient = only_for(narrowing == none ? result : graph.nodes[narrowing].inputs[0], TENON_OP_ReluGrad);
    if (gradient == none) continue;
    std::uint32_t operands[2] = {none, none};
    std::vector<std::uint32_t> gone{gradient};
    if (narrowing != none) gone.push_back(narrowing);
    bool fits = true;
    for (std::size_t i = 0; i < 2; ++i) {
      operands[i] = graph.nodes[gradient].inputs[i];
      if (narrowing != none) {
        const std::uint32_t widening = uses.producers[operands[i]];
        fits = fits && widening != none && is_widening(graph, graph.nodes[widening]);
        if (!fits) break;
        if (only_for(operands[i], TENON_OP_Cast) != none) gone.push_back(widening);
        operands[i] = graph.nodes[widening].inputs[0];
      }
      fits = fits && same_layout(graph.values[operands[i]], graph.values[result]);
    }
    // A result over an operand that the kernel now reads would need a copy of it.
    for (const tenon_donation& d : graph.donations) {
      const bool is_own = std::find(node.outputs.begin(), node.outputs.end(), d.output) != node.outputs.end();
      for (std::size_t i = 0; fits && is_own && i < 2; ++i) fits = graph.values[operands[i]].root != graph.values[d.input].root;
    }
    if (!fits) continue;
    node.inputs[0] = operands[0];
    node.inputs.push_back(operands[1]);
    node.relu_grad = true;
    for (const std::uint32_t n : gone) {
      if (n == gradient || graph.nodes[n].index != graph.nodes[gradient].index) ++node.fused_count;  // a node of the core's graph
      absorbed[n] = true;
    }
  }
  remove_nodes(graph, absorbed);
}

/// Orders readers of donated inputs before the writer; inserts snapshots where that is impossible.
void order_for_donations(GraphModel& graph, const KernelRow* rows) {
  const std::vector<std::uint32_t> made_by = producers_of(graph);
  std::vector<Node> copies;
  for (const tenon_donation& d : graph.donations) {
    const std::uint32_t writer = made_by[d.output];
    if (writer != none && !writes_safely(graph, d, graph.nodes[writer])) copies.push_back(snapshot(graph, rows, d, writer, true));
  }
  graph.nodes.insert(graph.nodes.begin(), std::make_move_iterator(copies.begin()), std::make_move_iterator(copies.end()));
  for (std::uint32_t conflict; (conflict = try_order(graph)) != none;) {
    const tenon_donation& d = graph.donations[conflict];
    Node copy = snapshot(graph, rows, d, producers_of(graph)[d.output], false);
    graph.nodes.insert(graph.nodes.begin(), std::move(copy));
  }
}

/// The view that a Transpose makes a copy of.
std::uint32_t transposed_view(GraphModel& graph, const Node& transpose) {
  Value view = graph.values[transpose.outputs[0]];
  view_strides(graph, transpose, view);
  view.update_dense();
  view.kind = TENON_VALUE_INTERNAL;
  view.binding = none;
  view.root = graph.values[transpose.inputs[0]].root;
  graph.values.push_back(view);
  return static_cast<std::uint32_t>(graph.values.size() - 1);
}

/// The largest value of the workspace that is kept for a copy that waits.
constexpr std::uint64_t max_kept_bytes = 64 * 1024;

/// Makes one node of several copies. A copy waits until its result is read, or what it reads is overwritten; those that wait then are one
/// node, with later ones that are the only readers of a value computed before. A copy from the workspace to an output, which would keep
/// more memory while it waits, does not.
void merge_copies(GraphModel& graph, const KernelRow& batched) {
  const GraphUses uses(graph);
  std::vector<std::uint32_t> overwritten(graph.values.size(), none);  // by an output: the donated input
  for (const tenon_donation& d : graph.donations) overwritten[d.output] = d.input;
  std::vector<bool> read(graph.values.size(), false), written(graph.values.size(), false);  // by those that wait: roots
  std::vector<bool> done(graph.nodes.size(), false), waits(graph.nodes.size(), false), is_copy(graph.nodes.size(), false);
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    is_copy[n] = (node.is(TENON_OP_Reshape) || node.is(TENON_OP_Transpose)) && node.inputs.size() == 1 && node.group == nullptr &&
                 node.bias == none && node.residual == none && node.packed.empty() && size_of(graph.values[node.inputs[0]].dtype) > 0;
    if (!is_copy[n]) continue;
    const Value &from = graph.values[node.inputs[0]], &to = graph.values[node.outputs[0]];
    const bool keeps_memory = graph.values[from.root].kind == TENON_VALUE_INTERNAL && to.kind != TENON_VALUE_INTERNAL;
    is_copy[n] = !keeps_memory || from.size_bytes() <= max_kept_bytes;
  }
  const auto source_of = [&](std::uint32_t n) { return graph.values[graph.nodes[n].inputs[0]].root; };
  std::vector<Node> result;
  std::vector<std::uint32_t> waiting;
  const auto emit_waiting = [&](std::uint32_t next) {
    if (waiting.empty()) return;
    for (; next < graph.nodes.size(); ++next) {
      if (!is_copy[next] || done[next] || waits[next]) continue;
      const std::uint32_t from = source_of(next), maker = uses.producers[from];
      if (uses.readers[from].size() == 1 && maker != none && done[maker] && overwritten[graph.nodes[next].outputs[0]] == none)
        waiting.push_back(next);
    }
    for (const std::uint32_t n : waiting) {
      done[n] = true;
      if (waiting.size() > 1 && graph.nodes[n].is(TENON_OP_Transpose)) graph.nodes[n].inputs[0] = transposed_view(graph, graph.nodes[n]);
    }
    Node all = graph.nodes[waiting[0]];
    for (std::size_t i = 1; i < waiting.size(); ++i) {
      const Node& other = graph.nodes[waiting[i]];
      all.inputs.push_back(other.inputs[0]);
      all.outputs.push_back(other.outputs[0]);
      all.fused_count += other.fused_count;
      all.op = TENON_OP_Reshape;
      all.row = &batched;
      all.function = batched.kernel->functions[TENON_DTYPE_NONE];
    }
    result.push_back(std::move(all));
    waiting.clear();
    read.assign(read.size(), false);
    written.assign(written.size(), false);
  };
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (done[n]) continue;
    bool conflicts = false;
    node.for_each_read([&](std::uint32_t v) { conflicts = conflicts || written[graph.values[v].root]; });
    for (const std::uint32_t v : node.outputs) conflicts = conflicts || (v != none && overwritten[v] != none && read[overwritten[v]]);
    if (conflicts) emit_waiting(n);
    if (done[n]) continue;
    if (is_copy[n]) {
      const std::uint32_t to = node.outputs[0];
      read[source_of(n)] = written[to] = waits[n] = true;
      if (overwritten[to] != none) written[overwritten[to]] = true;
      waiting.push_back(n);
    } else {
      done[n] = true;
      result.push_back(node);
    }
  }
  emit_waiting(static_cast<std::uint32_t>(graph.nodes.size()));
  graph.nodes = std::move(result);
}

}  // namespace

void arrange(GraphModel& graph, const KernelRow* rows) {
  widen(graph, rows);
  put_channels_last(graph, rows);
  resolve_views(graph);
  if (graph.options.fusion == TENON_FUSION_FULL) {
    fuse_epilogues(graph);
    fuse_relu_grads(graph);
  }
  if (graph.options.fusion != TENON_FUSION_OFF) fuse_elementwise(graph);
  make_dense(graph, rows);
  order_for_donations(graph, rows);
  const KernelRow* const batched = graph.device == nullptr ? nullptr : graph.device->batched_copy();
  if (graph.options.fusion != TENON_FUSION_OFF && batched != nullptr) merge_copies(graph, *batched);
  for (const Node& node : graph.nodes) {
    if (node.group != nullptr) node.group->settle(graph, node);
  }
}

std::vector<tenon_answer> answer_all(GraphModel& graph, const KernelRow* rows) {
  std::vector<tenon_answer> answers;
  answers.reserve(graph.nodes.size());
  for (Node& node : graph.nodes) answers.push_back(answer(graph, node, rows));
  // A yes is binding, so the copies that donations need are tried with the supported nodes.
  for (bool settled = graph.donations.empty(); !settled;) {
    GraphModel trial = graph;
    std::vector<Node> supported;
    for (const Node& node : graph.nodes) {
      if (answers[node.index].supported != 0) supported.push_back(node);
    }
    trial.nodes = std::move(supported);
    try {
      arrange(trial, rows);
      settled = true;
    } catch (const MissingCopy& missing) {
      answers[missing.node] = refusal(TENON_REASON_GRAPH, missing.what());
    }
  }
  return answers;
}

void place_values(Layout& layout) {
  GraphModel& graph = layout.graph;
  const auto value_count = static_cast<std::uint32_t>(graph.values.size());
  std::vector<std::uint32_t> first(value_count, none), last(value_count, 0), storage(value_count);
  for (std::uint32_t v = 0; v < value_count; ++v) storage[v] = v;
  const auto internal = [&](std::uint32_t root) { return graph.values[root].kind == TENON_VALUE_INTERNAL; };
  for (std::uint32_t s = 0; s < layout.steps.size(); ++s) {
    const Node& node = layout.steps[s].node;
    const auto touch = [&](std::uint32_t v) {
      if (v == none) return;
      const std::uint32_t root = graph.values[v].root;
      if (first[root] == none) first[root] = s;
      last[root] = s;
    };
    for (const std::uint32_t v : node.inputs) touch(v);
    for (const std::uint32_t v : node.outputs) touch(v);
    touch(node.bias);
    touch(node.residual);
  }

  // In place: an elementwise result reuses the storage of an operand whose last reader this is.
  const auto find = [&](std::uint32_t v) {
    while (storage[v] != v) v = storage[v] = storage[storage[v]];
    return v;
  };
  for (std::uint32_t s = 0; s < layout.steps.size(); ++s) {
    const Node& node = layout.steps[s].node;
    // A step over several tensors pairs each output with an input of its own, which only donations state.
    if (!node.row->kernel->traits.in_place || node.outputs.size() != 1 || node.outputs[0] == none || !internal(node.outputs[0])) continue;
    const Value& out = graph.values[node.outputs[0]];
    for (const std::uint32_t candidate : node.inputs) {
      if (candidate == none) continue;
      const std::uint32_t root = graph.values[candidate].root;
      if (!internal(root) || last[root] != s || !same_layout(graph.values[candidate], out)) continue;
      const bool all_match = std::all_of(node.inputs.begin(), node.inputs.end(), [&](std::uint32_t v) {
        return v == none || graph.values[v].root != root || same_layout(graph.values[v], out);
      });
      if (!all_match || (node.bias != none && graph.values[node.bias].root == root)) continue;
      if (node.residual != none && graph.values[node.residual].root == root) continue;
      storage[node.outputs[0]] = find(root);
      break;
    }
  }

  std::vector<Interval> intervals;
  std::vector<std::uint32_t> interval_of(value_count, none);
  for (std::uint32_t v = 0; v < value_count; ++v) {
    if (graph.values[v].root != v || !internal(v) || first[v] == none || graph.values[v].count == 0) continue;
    const std::uint32_t owner = find(v);
    if (interval_of[owner] == none) {
      interval_of[owner] = static_cast<std::uint32_t>(intervals.size());
      intervals.push_back({first[v], last[v], aligned_size(graph.values[v].size_bytes(), layout.alignment)});
    }
    Interval& interval = intervals[interval_of[owner]];
    interval.first = std::min(interval.first, first[v]);
    interval.last = std::max(interval.last, last[v]);
    interval_of[v] = interval_of[owner];
  }
  std::vector<std::uint32_t> scratch_of(layout.steps.size(), none);
  for (std::uint32_t s = 0; s < layout.steps.size(); ++s) {
    if (layout.steps[s].scratch_size == 0) continue;
    scratch_of[s] = static_cast<std::uint32_t>(intervals.size());
    intervals.push_back({s, s, aligned_size(layout.steps[s].scratch_size, layout.alignment)});
  }
  layout.workspace_size = assign_offsets(intervals);
  layout.locations.assign(value_count, {});
  for (std::uint32_t v = 0; v < value_count; ++v) {
    if (interval_of[v] != none) layout.locations[v] = {Location::Place::workspace, intervals[interval_of[v]].offset};
    if (graph.values[v].binding != none) layout.locations[v] = {Location::Place::binding, graph.values[v].binding};
  }
  for (std::uint32_t s = 0; s < layout.steps.size(); ++s) {
    if (scratch_of[s] != none) layout.steps[s].scratch_offset = intervals[scratch_of[s]].offset;
  }
}

}  // namespace tenon::sdk
