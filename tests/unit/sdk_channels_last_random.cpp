// SPDX-License-Identifier: Apache-2.0
// Images with channels last: random nets.
#include <cmath>
#include <random>
#include <utility>

#include "sdk_channels_last_testing.h"

namespace tenon::sdk_test {
namespace {

/// Generates random nets of image ops.
class Generator {
 public:
  explicit Generator(std::uint32_t seed) : random_(seed) {}

  Net make() {
    const bool flat = chance(25);
    const std::int64_t channels = pick(1, 3), h = pick(1, 3), w = pick(2, 4);
    const Shape shape = flat ? Shape{pick(1, 2), channels, w} : Shape{pick(1, 2), channels, h, w};
    for (int i = 0; i < 2; ++i) values_.push_back(chance(80) ? images_.net.input(shape) : images_.net.parameter(shape));
    if (chance(30)) values_.push_back(images_.net.input(shape, strides(shape)));
    const int steps = pick(2, 18);
    for (int i = 0; i < steps; ++i) add_node();
    bool has_output = false;
    for (const Net::Value& value : images_.net.values) has_output = has_output || value.kind == TENON_VALUE_OUTPUT;
    if (!has_output || chance(50)) values_.push_back(images_.apply(TENON_OP_Neg, {values_.back()}, true));
    donate();
    return std::move(images_.net);
  }

 private:
  int pick(int lowest, int highest) { return std::uniform_int_distribution<int>(lowest, highest)(random_); }
  bool chance(int percent) { return pick(1, 100) <= percent; }
  std::uint32_t any() {
    // Mostly recent values, so that chains occur.
    const int count = static_cast<int>(values_.size());
    return values_[static_cast<std::size_t>(chance(60) ? std::max(0, count - pick(1, 3)) : pick(0, count - 1))];
  }
  bool out() { return chance(12); }
  const Shape& shape(std::uint32_t v) const { return images_.net.values[v].shape; }
  static Strides strides(const Shape& shape) {  // the last dimension outermost
    Strides result(shape.size());
    std::int64_t stride = 1;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      result[d] = stride;
      stride *= shape[d];
    }
    return result;
  }
  std::uint32_t add(tenon_op op, std::vector<std::uint32_t> operands, Shape to) {
    const auto y = images_.result(std::move(to), out());
    images_.net.node(op, std::move(operands), {y});
    return y;
  }

  void add_node() {
    const std::uint32_t x = any();
    const Shape from = shape(x);
    const bool image = from.size() == 3 || from.size() == 4;
    Net& net = images_.net;
    switch (image ? pick(0, 14) : pick(3, 6)) {
      case 0:
      case 1:
      case 2:
        return values_.push_back(images_.conv(x, pick(1, 4), out()));
      case 3:
        return values_.push_back(images_.apply(TENON_OP_Relu, {x}, out()));
      case 4: {
        Shape small = from;
        for (std::int64_t& size : small) {
          if (chance(60)) size = 1;
        }
        while (!small.empty() && small.front() == 1 && chance(70)) small.erase(small.begin());
        const auto p = chance(50) ? net.input(small) : net.parameter(small);
        return values_.push_back(images_.apply(chance(60) ? TENON_OP_Add : TENON_OP_Mul, {x, p}, out()));
      }
      case 5: {
        static constexpr tenon_op ops[] = {TENON_OP_Add, TENON_OP_Sub, TENON_OP_Mul};
        std::uint32_t other = x;
        for (int i = 0; i < 6; ++i) {
          const std::uint32_t candidate = any();
          if (shape(candidate) == from && candidate != x) other = candidate;
        }
        return values_.push_back(images_.apply(ops[pick(0, 2)], {x, other}, out()));
      }
      case 6:
        return values_.push_back(images_.apply(TENON_OP_Tanh, {x}, out()));  // needs dense operands
      case 7:
        if (from.back() < 2) return;
        return values_.push_back(images_.max_pool(x, out()));
      case 8: {
        tenon_attributes_axes list = axes({}, chance(60));
        Shape to;
        for (std::size_t d = 0; d < from.size(); ++d) {
          const bool gone = chance(50);
          if (gone) list.axes[list.count++] = static_cast<std::int64_t>(d);
          if (!gone) to.push_back(from[d]);
          if (gone && list.keepdims != 0) to.push_back(1);
        }
        const auto y = images_.result(std::move(to), out());
        net.node(TENON_OP_ReduceSum, {x}, {y}, list);
        return values_.push_back(y);
      }
      case 9: {
        const auto axis_at = static_cast<std::size_t>(pick(0, static_cast<int>(from.size()) - 1));
        const std::uint32_t other = any();
        Shape expected = from, found = shape(other);
        if (found.size() != from.size()) return;
        expected[axis_at] = found[axis_at];
        if (expected != found) return;
        Shape to = from;
        to[axis_at] += found[axis_at];
        const auto y = images_.result(std::move(to), out());
        net.node(TENON_OP_Concat, {x, other}, {y}, axis(static_cast<std::int64_t>(axis_at)));
        return values_.push_back(y);
      }
      case 10: {
        const auto axis_at = static_cast<std::size_t>(pick(0, static_cast<int>(from.size()) - 1));
        if (from[axis_at] < 2) return;
        Shape a = from, b = from;
        a[axis_at] = 1;
        b[axis_at] -= 1;
        const auto first = images_.result(std::move(a), out()), second = images_.result(std::move(b), out());
        net.node(TENON_OP_Split, {x}, {first, second}, axis(static_cast<std::int64_t>(axis_at)));
        values_.push_back(first);
        return values_.push_back(second);
      }
      case 11: {
        tenon_attributes_pad attributes{.struct_size = sizeof attributes, .value = 1};
        Shape to = from;
        for (std::size_t d = 0; d < to.size(); ++d) {
          if (to[d] > 6) continue;
          attributes.before[d] = pick(0, 1);
          to[d] += attributes.before[d] + pick(0, 1);
        }
        const auto y = images_.result(std::move(to), out());
        net.node(TENON_OP_Pad, {x}, {y}, attributes);
        return values_.push_back(y);
      }
      case 12: {
        tenon_attributes_slice attributes{.struct_size = sizeof attributes};
        Shape to = from;
        for (std::size_t d = 0; d < to.size(); ++d) {
          attributes.starts[d] = pick(0, static_cast<int>(from[d]) - 1);
          attributes.steps[d] = chance(30) ? -1 : 1;
          to[d] = attributes.steps[d] > 0 ? from[d] - attributes.starts[d] : attributes.starts[d] + 1;
        }
        const auto y = images_.result(std::move(to), out());
        net.node(TENON_OP_Slice, {x}, {y}, attributes);
        return values_.push_back(y);
      }
      case 13: {
        const auto y = images_.result(from, out());
        net.node(TENON_OP_Softmax, {x}, {y}, axis(pick(0, static_cast<int>(from.size()) - 1)));
        return values_.push_back(y);
      }
      default: {
        Shape to = from;
        for (std::int64_t& size : to) {
          if (size == 1 && chance(60)) size = pick(1, 3);
        }
        return values_.push_back(add(TENON_OP_Expand, {x}, std::move(to)));
      }
    }
  }

  void donate() {
    Net& net = images_.net;
    std::vector<bool> taken(net.values.size(), false);
    for (std::uint32_t o = 0; o < net.values.size(); ++o) {
      if (net.values[o].kind != TENON_VALUE_OUTPUT || !chance(60)) continue;
      for (std::uint32_t i = 0; i < net.values.size(); ++i) {
        const Net::Value& value = net.values[i];
        const bool source = value.kind == TENON_VALUE_INPUT || value.kind == TENON_VALUE_PARAMETER;
        if (!source || taken[i] || value.count() != net.values[o].count()) continue;
        taken[i] = true;
        net.donate(i, o);
        break;
      }
    }
  }

  std::mt19937 random_;
  Images images_;
  std::vector<std::uint32_t> values_;
};

bool same_bits(const Floats& a, const Floats& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float p, float q) { return p == q || (std::isnan(p) && std::isnan(q)); });
}

TEST_CASE("sdk: random nets of images have the same results with channels last") {
  Session plain_session(1, query_plain), last_session(1, query_last), either_session(1, query_either);
  Session* const sessions[] = {&plain_session, &last_session, &either_session};
  for (std::uint32_t seed = 1; seed <= 2000; ++seed) {
    CAPTURE(seed);
    Net net = Generator(seed).make();
    for (const std::uint32_t fusion : {TENON_FUSION_FULL, TENON_FUSION_ELEMENTWISE, TENON_FUSION_OFF}) {
      CAPTURE(fusion);
      std::vector<Floats> results[3];
      for (std::size_t s = 0; s < 3; ++s) {
        Run run(*sessions[s], net, options(s > 0 ? fusion : std::uint32_t{TENON_FUSION_OFF}));
        for (std::uint32_t v = 0; v < net.values.size(); ++v) {
          const std::uint32_t kind = net.values[v].kind;
          if (kind == TENON_VALUE_INPUT || kind == TENON_VALUE_PARAMETER) run.set(v, some(net.values[v].count(), v + seed));
        }
        run();
        for (std::uint32_t v = 0; v < net.values.size(); ++v) {
          if (net.values[v].kind == TENON_VALUE_OUTPUT) results[s].push_back(run.get(v));
        }
      }
      for (const std::vector<Floats>& other : {results[1], results[2]}) {
        REQUIRE(results[0].size() == other.size());
        for (std::size_t i = 0; i < other.size(); ++i) REQUIRE(same_bits(results[0][i], other[i]));
      }
    }
  }
}

}  // namespace
}  // namespace tenon::sdk_test
