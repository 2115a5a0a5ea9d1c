// SPDX-License-Identifier: Apache-2.0
// Random small graphs, as a backend's fusion, ordering, packing and memory planning have to take them: values with several readers, one
// value as both operands, columns and rows added to squares, transpositions that are not their own inverse, shared constants, donations of
// nothing, failures behind fused nodes. Their numbers are small integers, whose sums are exact.
#include <algorithm>
#include <cmath>

#include "small_graph.h"

namespace tenon::conformance {
namespace {

/// The largest magnitude that a value may have, so that everything is exact in f32.
constexpr double max_magnitude = 1 << 22;

/// Draws graphs from the ops that a backend has.
class GraphDrawer {
 public:
  GraphDrawer(const CaseContext& context, std::uint64_t seed)
      : random_(seed), builder_(kind(), random_.bits()), has_([&context](tenon_op op) {
          return (context.device.capability(op, line_of(op).version) & TENON_DTYPE_BIT(TENON_DTYPE_F32)) != 0;
        }) {}

  Net draw() {
    constexpr std::int64_t sizes[] = {1, 3, 4, 8, 17};
    n_ = sizes[random_.integer(1, 5)];
    m_ = random_.integer(0, 2) == 0 ? n_ : sizes[random_.integer(0, 5)];
    add_source({n_, m_}, false);
    const std::int64_t nodes = random_.integer(2, 11);
    for (int attempt = 0; attempt < 40 && static_cast<std::int64_t>(builder_.net.nodes.size()) < nodes; ++attempt) add_node();
    return finished();
  }

 private:
  struct Known {
    std::uint32_t value;
    Dims shape;
    double magnitude;
    bool computed;
    int readers = 0;
  };

  std::uint32_t kind() {
    constexpr std::uint32_t kinds[] = {TENON_VALUE_CONSTANT, TENON_VALUE_PARAMETER, TENON_VALUE_INPUT};
    return kinds[random_.integer(0, 3)];
  }
  Known& add_source(const Dims& shape, bool weight) {
    known_.push_back({weight ? builder_.weight(shape) : builder_.input(shape), shape, 4, false});
    return known_.back();
  }
  /// The index of a known value with this shape; one time in three, and if there is none, a new weight.
  std::size_t find(const Dims& shape) {
    std::vector<std::size_t> fitting;
    for (std::size_t i = 0; i < known_.size(); ++i) {
      if (known_[i].shape == shape) fitting.push_back(i);
    }
    if (!fitting.empty() && random_.integer(0, 3) != 0)
      return fitting[static_cast<std::size_t>(random_.integer(0, static_cast<std::int64_t>(fitting.size())))];
    add_source(shape, true);
    return known_.size() - 1;
  }
  std::size_t any() {
    // Preferably the latest value, so that chains arise.
    const auto count = static_cast<std::int64_t>(known_.size());
    return static_cast<std::size_t>(random_.integer(0, 2) == 0 ? count - 1 : random_.integer(0, count));
  }
  std::uint32_t computed(const Dims& shape, double magnitude) {
    const std::uint32_t value = builder_.internal(shape);
    known_.push_back({value, shape, magnitude, true});
    return value;
  }

  void add_node() {
    const std::size_t a = any();
    const Dims shape = known_[a].shape;
    switch (random_.integer(0, 4)) {
      case 0:
        if (!has_(TENON_OP_Relu)) return;
        ++known_[a].readers;
        return builder_.relu(known_[a].value, computed(shape, known_[a].magnitude));
      case 1:
        return add_sum(a);
      case 2:
        return add_product(a);
      default:
        return add_transposition(a);
    }
  }
  void add_sum(std::size_t a) {
    if (!has_(TENON_OP_Add)) return;
    const Dims shape = known_[a].shape;
    Dims other = shape;
    std::size_t b = a;  // one value as both operands
    const std::int64_t form = random_.integer(0, 6);
    if (form == 1) other.back() = 1;        // a column
    if (form == 2) other = {shape.back()};  // a row
    if (form == 3) other = {1};
    if (form != 0) b = find(other);
    const double magnitude = known_[a].magnitude + known_[b].magnitude;
    if (magnitude > max_magnitude) return;
    ++known_[a].readers, ++known_[b].readers;
    const std::uint32_t left = known_[a].value, right = known_[b].value;
    const bool swapped = random_.integer(0, 2) == 0;
    builder_.add(swapped ? right : left, swapped ? left : right, computed(shape, magnitude));
  }
  void add_product(std::size_t a) {
    const Dims shape = known_[a].shape;
    if (!has_(TENON_OP_MatMul) || shape.size() != 2) return;
    const bool square = shape[0] == shape[1];
    const std::size_t b = square && random_.integer(0, 3) == 0 ? a : find({shape[1], random_.integer(0, 2) == 0 ? n_ : m_});
    const double magnitude = known_[a].magnitude * known_[b].magnitude * static_cast<double>(shape[1]);
    if (magnitude > max_magnitude) return;
    ++known_[a].readers, ++known_[b].readers;
    const std::uint32_t left = known_[a].value, right = known_[b].value;
    builder_.product(left, right, computed({shape[0], known_[b].shape[1]}, magnitude));
  }
  void add_transposition(std::size_t a) {
    if (!has_(TENON_OP_Transpose)) return;
    if (random_.integer(0, 3) == 0) a = find({2, n_, 3});
    const Dims shape = known_[a].shape;
    if (shape.size() < 2) return;
    const Dims turns[] = {{1, 2, 0}, {2, 0, 1}, {0, 2, 1}};
    const Dims permutation = shape.size() == 2 ? Dims{1, 0} : turns[random_.integer(0, 3)];
    Dims to;
    for (const std::int64_t axis : permutation) to.push_back(shape[static_cast<std::size_t>(axis)]);
    ++known_[a].readers;
    builder_.transpose(known_[a].value, permutation, computed(to, known_[a].magnitude));
  }

  /// What nothing reads is an output, and some of what is read, too.
  Net finished() {
    for (const Known& known : known_) {
      if (known.computed && (known.readers == 0 || random_.integer(0, 4) == 0)) builder_.net.values[known.value].kind = TENON_VALUE_OUTPUT;
    }
    return std::move(builder_.net);
  }

  Random random_;
  GraphBuilder builder_;
  std::function<bool(tenon_op)> has_;
  std::vector<Known> known_;
  std::int64_t n_ = 1, m_ = 1;
};

std::string describe(const Net& net) {
  std::string text;
  for (const Net::Node& node : net.nodes) {
    text += fmt::format("{}%{} = {}(", text.empty() ? "" : ", ", node.outputs[0], line_of(node.op).name);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const std::uint32_t v = node.inputs[i];
      constexpr const char* kinds[] = {"", "input ", "", "parameter ", "constant "};
      text += fmt::format("{}{}%{}{}", i == 0 ? "" : ", ", kinds[net.values[v].kind], v, str(net.values[v].shape));
    }
    text += ")";
  }
  return text;
}

/// Results in several executions and epochs, with other inputs and parameters in each; the host's memory stays the same.
void expect_right(const CaseContext& context, Net net, PlanOptions options) {
  const std::string where = fmt::format("fusion {}: {}", options.fusion, describe(net));
  const Plan plan(context.device, net, options);
  expect_ready(plan);
  Plan::Bindings bindings(plan, 0xFF);
  Net now = net;
  std::int64_t blocks = 0;
  for (int round = 0; round < 5; ++round) {
    expect_exact(reference_outputs(now), bindings.execute(static_cast<std::uint64_t>(1 + round)),
                 fmt::format("{}, epoch {}", where, 1 + round));
    if (round == 1) blocks = context.device.host().live_blocks();
    for (std::uint32_t v = 0; v < now.values.size(); ++v) {
      Net::Value& value = now.values[v];
      if (value.kind != TENON_VALUE_INPUT && value.kind != TENON_VALUE_PARAMETER) continue;
      for (std::int64_t i = 0; i < value.array.count(); ++i) value.array.set(i, -value.array.at(i));
      bindings.set(v, value.array);
    }
  }
  const std::int64_t more = context.device.host().live_blocks() - blocks;
  if (more > 0) fail(fmt::format("{}: three executions in new epochs left {} more blocks of host memory", where, more));
}

void random_graphs(CaseContext& context) {
  require_graphs(context);
  const int count = effort() == Effort::small ? 150 : effort() == Effort::usual ? 500 : 20000;
  int checked = 0;
  for (int i = 0; i < count; ++i) {
    const Net net = GraphDrawer(context, seed_for(context.seed, fmt::format("random graph {}", i))).draw();
    if (net.nodes.size() < 2) continue;
    constexpr std::uint32_t settings[] = {TENON_FUSION_FULL, TENON_FUSION_FULL, TENON_FUSION_ELEMENTWISE, TENON_FUSION_OFF};
    expect_right(context, net, {.fusion = settings[i % 4]});
    ++checked;
  }
  if (checked == 0) throw NotRun("not offered: the capability table has neither Add nor MatMul for f32");
}

/// A node that fails behind nodes that may have been fused is named by its index in the caller's graph.
void failing_node(CaseContext& context) {
  require_graphs(context);
  require_ops(context, {TENON_OP_Gather, TENON_OP_Relu, TENON_OP_Add});
  const bool multiplies =
      (context.device.capability(TENON_OP_MatMul, line_of(TENON_OP_MatMul).version) & TENON_DTYPE_BIT(TENON_DTYPE_F32)) != 0;
  for (const bool product : {false, true}) {
    if (product && !multiplies) continue;
    for (int links = 1; links <= 4; ++links) {
      GraphBuilder s(TENON_VALUE_CONSTANT);
      std::uint32_t x = s.input({8, 8});
      const auto w = s.weight({8, 8}), b = s.weight({8});
      const auto next = [&] { return s.internal({8, 8}); };
      if (product) {
        const auto y = next();
        s.product(x, w, y);
        x = y;
      }
      for (int link = 0; link < links; ++link) {
        const auto y = next();
        if (link % 2 == 0) {
          s.add(x, b, y);
        } else {
          s.relu(x, y);
        }
        x = y;
      }
      Array bad(TENON_DTYPE_I64, {4});
      bad.put<std::int64_t>(2, 1234);
      const std::uint32_t indices = s.net.input(bad), rows = s.net.internal(TENON_DTYPE_F32, {4, 8});
      const auto culprit = static_cast<std::uint32_t>(s.net.nodes.size());
      const tenon_attributes_axis attributes{.struct_size = sizeof attributes};
      s.net.node(TENON_OP_Gather, line_of(TENON_OP_Gather).version, &attributes, {x, indices}, {rows});
      s.relu(rows, s.output({4, 8}));
      const Plan plan(context.device, s.net);
      expect_ready(plan);
      const Outcome outcome = plan.run();
      if (outcome.ok()) fail("index 1234 of 8: expected INVALID_ARGUMENT, got OK");
      if (outcome.node_id != plan.id_of(culprit))
        fail(fmt::format("index 1234 of 8 behind {} nodes: expected node {} in tenon_error.node_id, got {}: {}", culprit,
                         plan.id_of(culprit), outcome.node_id, outcome.text));
    }
  }
}

}  // namespace

std::vector<Case> core_random_graph_cases() {
  return core_cases({
      {"plan/random_graphs", random_graphs},
      {"plan/failing_node", failing_node},
  });
}

}  // namespace tenon::conformance
