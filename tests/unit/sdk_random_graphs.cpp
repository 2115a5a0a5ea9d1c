// SPDX-License-Identifier: Apache-2.0
// Random graphs against an evaluator that never reuses memory: results have the same bits with any views, donations, fusion and memory
// planning.
#include "sdk_testing.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include <tenon/sdk/memory_plan.h>
#include <tenon/sdk/rounding.h>

namespace tenon::sdk_test {
namespace {

class Generator {
 public:
  explicit Generator(std::uint32_t seed) : random_(seed) {}

  Net make() {
    const int sources = pick(1, 4);
    for (int i = 0; i < sources; ++i) add_source();
    const int steps = pick(1, 25);
    for (int i = 0; i < steps; ++i) add_node();
    if (std::none_of(net_.values.begin(), net_.values.end(), [](const Net::Value& v) { return v.kind == TENON_VALUE_OUTPUT; })) {
      const std::uint32_t x = any();
      net_.node(TENON_OP_Neg, {x}, {net_.output(shape(x))});
    }
    donate();
    return std::move(net_);
  }

  /// Small integers and a half, so that many values are equal and NaN and infinity arise only from products.
  Floats data(std::int64_t count) {
    Floats values(static_cast<std::size_t>(count));
    for (float& v : values) v = static_cast<float>(pick(-4, 4)) / 2;
    return values;
  }

 private:
  int pick(int lowest, int highest) { return std::uniform_int_distribution<int>(lowest, highest)(random_); }
  bool chance(int percent) { return pick(1, 100) <= percent; }
  std::uint32_t any() { return static_cast<std::uint32_t>(pick(0, static_cast<int>(net_.values.size()) - 1)); }
  const Shape& shape(std::uint32_t v) const { return net_.values[v].shape; }
  std::uint32_t result(Shape shape) { return chance(25) ? net_.output(std::move(shape)) : net_.internal(std::move(shape)); }

  Shape random_shape() {
    if (chance(30)) return {3, 4};  // often the same, so that operands, donations and storage match
    if (chance(30)) return {3, 3};  // also the shape of its transpose
    Shape shape(static_cast<std::size_t>(pick(0, 4)));
    for (std::int64_t& size : shape) size = chance(5) ? 0 : pick(1, 4);
    return shape;
  }

  /// Permuted, reversed or repeating strides of a separate buffer.
  Strides random_strides(const Shape& shape, bool donatable) {
    std::vector<std::size_t> order(shape.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), random_);
    Strides strides(shape.size());
    std::int64_t stride = 1;
    for (const std::size_t d : order) {
      strides[d] = stride;
      stride *= std::max<std::int64_t>(shape[d], 1);
      if (!donatable && chance(15)) strides[d] = 0;
      if (!donatable && chance(15)) strides[d] = -strides[d];
      if (!donatable && chance(15)) stride += 3;
    }
    return strides;
  }

  void add_source() {
    const Shape shape = random_shape();
    switch (pick(0, 4)) {
      case 0:
        net_.constant(shape, data(Net::Value{TENON_VALUE_CONSTANT, shape, {}, TENON_DTYPE_F32, {}}.count()));
        break;
      case 1:
        net_.parameter(shape);
        break;
      case 2: {
        const bool donatable = chance(50);
        const std::uint32_t v = net_.input(shape, random_strides(shape, donatable));
        if (!donatable) fixed_.push_back(v);
        break;
      }
      default:
        net_.input(shape);
        break;
    }
  }

  void unary(tenon_op op, std::uint32_t x) { net_.node(op, {x}, {result(shape(x))}); }

  void add_node() {
    const std::uint32_t x = any();
    const Shape from = shape(x);
    switch (pick(0, 12)) {
      case 0:
        return unary(TENON_OP_Neg, x);
      case 1:
        return unary(TENON_OP_Relu, x);
      case 2:
        return unary(TENON_OP_Tanh, x);
      case 3:
        if (from.empty()) return unary(TENON_OP_Neg, x);
        return net_.node(TENON_OP_Softmax, {x}, {result(from)}, axis(static_cast<std::int64_t>(from.size()) - 1));
      case 4:
      case 5:
      case 6: {
        static constexpr tenon_op ops[] = {TENON_OP_Add, TENON_OP_Sub, TENON_OP_Mul};
        std::uint32_t other = any();
        Shape joint;
        for (int attempt = 0; attempt < 8 && !joins(from, shape(other), joint); ++attempt) other = any();
        if (!joins(from, shape(other), joint)) {
          other = x;
          joint = from;
        }
        if (chance(50)) return net_.node(ops[pick(0, 2)], {x, other}, {result(joint)});
        return net_.node(ops[pick(0, 2)], {other, x}, {result(joint)});
      }
      case 7: {
        Shape to;
        std::int64_t rest = net_.values[x].count();
        if (rest == 0) {
          to = from;
          if (to.size() < 6) to.insert(to.begin() + pick(0, static_cast<int>(to.size())), 1);
        } else {
          for (const std::int64_t size : {2, 3, 4, 2}) {
            if (rest % size == 0 && chance(60)) to.insert(to.begin() + pick(0, static_cast<int>(to.size())), size), rest /= size;
            if (chance(15)) to.push_back(1);
          }
          if (rest != 1) to.push_back(rest);
        }
        return net_.node(TENON_OP_Reshape, {x}, {result(to)});
      }
      case 8: {
        const int at = pick(0, static_cast<int>(from.size()));
        Shape to{1, 1};
        for (int d = 0; d < static_cast<int>(from.size()); ++d) to[d < at ? 0 : 1] *= from[static_cast<std::size_t>(d)];
        return net_.node(TENON_OP_Flatten, {x}, {result(to)}, axis(at));
      }
      case 9: {
        tenon_attributes_axes perm = axes({});
        perm.count = static_cast<std::uint32_t>(from.size());
        std::iota(perm.axes, perm.axes + perm.count, std::int64_t{0});
        std::shuffle(perm.axes, perm.axes + perm.count, random_);
        Shape to(from.size());
        for (std::size_t d = 0; d < to.size(); ++d) to[d] = from[static_cast<std::size_t>(perm.axes[d])];
        return net_.node(TENON_OP_Transpose, {x}, {result(to)}, perm);
      }
      case 10: {
        Shape to = from;
        for (std::int64_t& size : to) {
          if (size == 1 && chance(60)) size = pick(1, 3);
        }
        while (to.size() < 5 && chance(30)) to.insert(to.begin(), pick(1, 3));
        return net_.node(TENON_OP_Expand, {x}, {result(to)});
      }
      case 11: {
        tenon_attributes_axes reduced = axes({}, chance(50));
        Shape to;
        for (std::size_t d = 0; d < from.size(); ++d) {
          const bool gone = chance(40);
          if (gone) reduced.axes[reduced.count++] = static_cast<std::int64_t>(d);
          if (!gone) to.push_back(from[d]);
          if (gone && reduced.keepdims != 0) to.push_back(1);
        }
        return net_.node(TENON_OP_ReduceSum, {x}, {result(to)}, reduced);
      }
      default: {  // a layer: product, mostly with bias and activation
        if (from.size() != 2) return unary(TENON_OP_Neg, x);
        const std::int64_t n = pick(1, 4);
        const Shape weights{from[1], n}, to{from[0], n};
        const std::uint32_t w = chance(50) ? net_.parameter(weights) : net_.constant(weights, data(from[1] * n));
        std::uint32_t y = result(to);
        if (chance(50)) {
          net_.node(TENON_OP_Gemm, {x, w}, {y}, gemm_attributes());
        } else {
          net_.node(TENON_OP_MatMul, {x, w}, {y});
        }
        if (chance(70)) {
          std::uint32_t bias = chance(50) ? net_.input({n}) : net_.constant({n}, data(n));
          if (chance(40)) {
            const std::uint32_t made = net_.internal({n});
            net_.node(TENON_OP_Neg, {bias}, {made});
            if (chance(50)) std::swap(net_.nodes[net_.nodes.size() - 2], net_.nodes.back());  // before the product
            bias = made;
          }
          const std::uint32_t sum = result(to);
          net_.node(TENON_OP_Add, chance(50) ? std::vector{y, bias} : std::vector{bias, y}, {sum});
          y = sum;
        }
        static constexpr tenon_op activations[] = {TENON_OP_Relu, TENON_OP_Sigmoid, TENON_OP_Tanh};
        if (chance(70)) net_.node(activations[pick(0, 2)], {y}, {result(to)});
        return;
      }
    }
  }

  static bool joins(const Shape& a, const Shape& b, Shape& joint) {
    joint.assign(std::max(a.size(), b.size()), 1);
    for (std::size_t d = 0; d < joint.size(); ++d) {
      const std::int64_t p = d < a.size() ? a[a.size() - 1 - d] : 1, q = d < b.size() ? b[b.size() - 1 - d] : 1;
      if (p != q && p != 1 && q != 1) return false;
      joint[joint.size() - 1 - d] = p == 1 ? q : p;
    }
    return true;
  }

  void donate() {
    std::vector<bool> taken(net_.values.size(), false);
    for (const std::uint32_t v : fixed_) taken[v] = true;
    for (std::uint32_t out = 0; out < net_.values.size(); ++out) {
      if (net_.values[out].kind != TENON_VALUE_OUTPUT || !chance(70)) continue;
      for (std::uint32_t in = 0; in < net_.values.size(); ++in) {
        const Net::Value& value = net_.values[in];
        if ((value.kind != TENON_VALUE_INPUT && value.kind != TENON_VALUE_PARAMETER) || taken[in]) continue;
        if (value.count() != net_.values[out].count() || chance(20)) continue;
        taken[in] = true;
        net_.donate(in, out);
        break;
      }
    }
  }

  std::mt19937 random_;
  Net net_;
  std::vector<std::uint32_t> fixed_;  ///< inputs that are not donated
};

bool same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) || a == b;
}

/// Runs a graph twice and compares every output; what was not donated must be unchanged.
void check_graph(Session& session, Generator& generator, Net& net, std::uint32_t fusion) {
  Run run(session, net, options(fusion));
  for (int round = 0; round < 2; ++round) {
    std::map<std::uint32_t, Floats> bound;
    for (std::uint32_t v = 0; v < net.values.size(); ++v) {
      const Net::Value& value = net.values[v];
      if (value.kind != TENON_VALUE_INPUT && value.kind != TENON_VALUE_PARAMETER) continue;
      run.set(v, generator.data(value.count()));
      bound[v] = run.get(v);  // repeating strides change the elements
    }
    run.epoch = static_cast<std::uint64_t>(round) + 10;
    run();
    const std::vector<Floats> expected = evaluate(net, bound);
    std::vector<bool> donated(net.values.size(), false);
    for (const tenon_donation& d : net.donations) donated[d.input] = true;
    for (std::uint32_t v = 0; v < net.values.size(); ++v) {
      const std::uint32_t kind = net.values[v].kind;
      const bool source = kind == TENON_VALUE_INPUT || kind == TENON_VALUE_PARAMETER;
      if (!(source && !donated[v]) && kind != TENON_VALUE_OUTPUT) continue;
      const Floats got = run.get(v);
      for (std::size_t i = 0; i < got.size(); ++i) {
        if (same(got[i], expected[v][i])) continue;
        CAPTURE(v);
        CAPTURE(i);
        CAPTURE(round);
        REQUIRE(got[i] == expected[v][i]);
      }
    }
  }
}

TEST_CASE("sdk: random graphs have the results of their definition, with and without fusion and donations") {
  Session session;
  for (std::uint32_t seed = 1; seed <= 3000; ++seed) {
    CAPTURE(seed);
    Generator generator(seed);
    Net net = generator.make();
    check_graph(session, generator, net, TENON_FUSION_FULL);
    check_graph(session, generator, net, TENON_FUSION_OFF);
  }
}

TEST_CASE("sdk: without donations and strides the workspace is at most the sum of the internal values and the largest scratch") {
  std::uint64_t planned = 0, naive_total = 0;
  for (std::uint32_t seed = 1; seed <= 500; ++seed) {
    CAPTURE(seed);
    Generator generator(seed);
    Net net = generator.make();
    net.donations.clear();
    for (Net::Value& value : net.values) value.strides.clear();
    const Run run(net);
    std::uint64_t naive = 64;  // the largest scratch: a row of softmax
    for (const Net::Value& value : net.values) {
      if (value.kind == TENON_VALUE_INTERNAL) naive += sdk::aligned_size(static_cast<std::uint64_t>(value.count()) * sizeof(float));
    }
    CHECK(run.info.workspace_size_bytes <= naive);
    planned += run.info.workspace_size_bytes;
    naive_total += naive;
  }
  CHECK(planned < naive_total / 2);
}

TEST_CASE("sdk: blocks that are live at the same step never overlap, and need at most their sum") {
  for (std::uint32_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto pick = [&](std::uint32_t lowest, std::uint32_t highest) {
      return std::uniform_int_distribution<std::uint32_t>(lowest, highest)(random);
    };
    std::vector<sdk::Interval> blocks(pick(0, 40));
    std::uint64_t sum = 0, peak = 0;
    for (sdk::Interval& block : blocks) {
      block.first = pick(0, 20);
      block.last = block.first + pick(0, 6);
      block.size = 64 * std::uint64_t{pick(1, 30)};
      sum += block.size;
    }
    const std::uint64_t total = sdk::assign_offsets(blocks);
    for (std::uint32_t step = 0; step <= 26; ++step) {
      std::uint64_t alive = 0;
      for (const sdk::Interval& a : blocks) {
        if (a.first <= step && step <= a.last) alive += a.size;
      }
      peak = std::max(peak, alive);
    }
    CHECK(total <= sum);
    CHECK(total >= peak);
    for (std::size_t a = 0; a < blocks.size(); ++a) {
      CHECK(blocks[a].offset % 64 == 0);
      CHECK(blocks[a].offset + blocks[a].size <= total);
      for (std::size_t b = 0; b < a; ++b) {
        const bool together = blocks[a].first <= blocks[b].last && blocks[b].first <= blocks[a].last;
        const bool apart = blocks[a].offset + blocks[a].size <= blocks[b].offset || blocks[b].offset + blocks[b].size <= blocks[a].offset;
        CHECK((!together || apart));
      }
    }
  }
}

}  // namespace
}  // namespace tenon::sdk_test
