// SPDX-License-Identifier: Apache-2.0
// Plans of thousands of nodes are made quickly and use a fraction of the memory of their values.
#include "sdk_testing.h"

#include <chrono>

namespace tenon::sdk_test {
namespace {

/// The graph of training a deep net: blocks of products with skips, then the backward pass with a sum of gradients at every skip, and at
/// the end one step over all weights, each updated in place.
struct Deep {
  static constexpr std::int64_t rows = 64, width = 16;
  Net net;
  std::uint64_t activation_bytes = 0;

  std::uint32_t made(tenon_op op, std::vector<std::uint32_t> inputs) {
    const auto y = net.internal({rows, width});
    activation_bytes += rows * width * sizeof(float);
    net.node(op, std::move(inputs), {y});
    return y;
  }

  explicit Deep(std::size_t blocks) {
    std::vector<std::uint32_t> weights, before, after, step{net.input({}, {}, TENON_DTYPE_F64)}, results;
    std::uint32_t x = net.input({rows, width});
    const auto bias = net.input({width});
    for (std::size_t b = 0; b < blocks; ++b) {
      weights.push_back(net.input({width, width}));
      before.push_back(x);
      const auto product = made(TENON_OP_MatMul, {x, weights.back()});
      const auto h = made(TENON_OP_Relu, {made(TENON_OP_Add, {product, bias})});
      x = made(TENON_OP_Relu, {made(TENON_OP_Add, {h, x})});
      after.push_back(x);
    }
    std::uint32_t dy = made(TENON_OP_Neg, {x});
    for (std::size_t b = blocks; b-- > 0;) {
      const auto masked = made(TENON_OP_Mul, {dy, after[b]});
      const auto transposed_w = net.internal({width, width}), transposed_x = net.internal({width, rows}), dw = net.internal({width, width});
      net.node(TENON_OP_Transpose, {weights[b]}, {transposed_w}, axes({1, 0}));
      net.node(TENON_OP_Transpose, {before[b]}, {transposed_x}, axes({1, 0}));
      net.node(TENON_OP_MatMul, {transposed_x, masked}, {dw});
      dy = made(TENON_OP_Add, {made(TENON_OP_MatMul, {masked, transposed_w}), masked});
      step.push_back(weights[b]);
      step.push_back(dw);
      results.push_back(net.output({width, width}));
      net.donate(weights[b], results.back());
    }
    net.node(TENON_OP_SgdStep, std::move(step), std::move(results), sgd_attributes());
  }
};

TEST_CASE("sdk: a plan of thousands of nodes is made quickly, and its memory is reused") {
  Deep deep(300);
  CHECK(deep.net.nodes.size() > 3000);
  const auto begin = std::chrono::steady_clock::now();
  const Run run(deep.net);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  CHECK(seconds < 2);  // far above what it takes, far below what anything quadratic would
  MESSAGE("planned " << deep.net.nodes.size() << " nodes in " << seconds << " s; workspace of " << run.info.workspace_size_bytes << " for "
                     << deep.activation_bytes << " bytes of activations");
  CHECK(run.info.workspace_size_bytes < deep.activation_bytes / 2);
}

}  // namespace
}  // namespace tenon::sdk_test
