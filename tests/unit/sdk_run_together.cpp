// SPDX-License-Identifier: Apache-2.0
// Kernels that run several calls at once: which nodes of a plan run together, and the gradient of a relu as part of a product before it.
#include <tenon/sdk/kernel.h>

#include "sdk_testing.h"

namespace tenon::sdk_test {
namespace {

const Floats counting{1, -2, 3, -4, 5, -6}, square{1, 2, 3, -1, -2, -3, 4, 0, -5};

/// A run on the device whose products run together: `launches` kernel calls. Checks its outputs against those of the graph evaluated node
/// by node.
void check(Net& net, int launches, const std::map<std::uint32_t, Floats>& inputs, std::uint32_t fusion = TENON_FUSION_FULL) {
  Session session(1, query_together);
  Run run(session, net, options(fusion));
  for (const auto& [value, data] : inputs) run.set(value, data);
  probe.kernels = 0;
  run();
  CHECK(probe.kernels == launches);
  const auto expected = evaluate(net, inputs);
  for (std::uint32_t v = 0; v < net.values.size(); ++v) {
    if (net.values[v].kind == TENON_VALUE_OUTPUT) CHECK(run.get(v) == expected[v]);
  }
}

struct Products : Net {
  const std::uint32_t x = input({2, 3}), w = input({3, 3});
  const std::map<std::uint32_t, Floats> inputs{{x, counting}, {w, square}};
};

TEST_CASE_FIXTURE(Products, "sdk: products that do not depend on each other run together, across other nodes") {
  node(TENON_OP_MatMul, {x, w}, {output({2, 3})});
  const std::uint32_t other = output({2, 3});
  node(TENON_OP_Tanh, {x}, {other});
  node(TENON_OP_MatMul, {other, w}, {output({2, 3})});
  check(*this, 2, inputs);
  check(*this, 3, inputs, TENON_FUSION_OFF);
}

TEST_CASE_FIXTURE(Products, "sdk: a product that reads the result of another one runs after it, with later ones") {
  const std::uint32_t y = internal({2, 3}), z = internal({2, 3});
  node(TENON_OP_MatMul, {x, w}, {y});
  node(TENON_OP_MatMul, {y, w}, {output({2, 3})});
  node(TENON_OP_MatMul, {y, w}, {z});
  node(TENON_OP_Softmax, {z}, {output({2, 3})}, axis(1));
  check(*this, 3, inputs);
}

TEST_CASE_FIXTURE(Products, "sdk: a product that overwrites what another one reads does not run with it") {
  const std::uint32_t p = input({2, 3}), y = output({2, 3});
  node(TENON_OP_MatMul, {p, w}, {output({2, 3})});
  node(TENON_OP_MatMul, {x, w}, {y});
  donate(p, y);
  check(*this, 2, {{x, counting}, {w, square}, {p, Floats(6, 2.0f)}});
}

TEST_CASE_FIXTURE(Products, "sdk: products over what a step overwrites run before it") {
  const std::uint32_t next = output({2, 3});
  node(TENON_OP_MatMul, {x, w}, {output({2, 3})});
  node(TENON_OP_MatMul, {x, w}, {output({2, 3})});
  node(TENON_OP_Neg, {x}, {next});
  donate(x, next);
  check(*this, 2, inputs);
}

TEST_CASE("sdk: results of products that run together are not stored over their operands") {
  constexpr std::int64_t n = 8;
  Net net;
  const std::uint32_t x = net.input({n, n}), w = net.input({n, n});
  std::vector<std::uint32_t> results;
  for (int i = 0; i < 3; ++i) {  // run in the opposite order
    const std::uint32_t before = net.internal({n, n});
    results.push_back(net.internal({n, n}));
    net.node(TENON_OP_Tanh, {x}, {before});
    net.node(TENON_OP_MatMul, {before, w}, {results.back()});
  }
  for (const std::uint32_t result : results) net.node(TENON_OP_Softmax, {result}, {net.output({n, n})}, axis(1));
  Floats elements(n * n);
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<float>(i % 7) - 3;
  check(net, 7, {{x, elements}, {w, elements}});
}

TEST_CASE("sdk: calls that the kernel does not want to run together run in the graph's order") {
  Net net;
  const std::uint32_t x = net.input({1, 300}), w = net.input({300, 1});
  for (int i = 0; i < 2; ++i) net.node(TENON_OP_MatMul, {x, w}, {net.output({1, 1})});
  check(net, 2, {{x, Floats(300, 1.0f)}, {w, Floats(300, 2.0f)}});
}

TEST_CASE_FIXTURE(Products, "sdk: the sum of the rows that a product reads is part of it") {
  node(TENON_OP_ReduceSum, {w}, {output({3})}, axes({0}));
  node(TENON_OP_Gemm, {x, w}, {output({2, 3})}, gemm_attributes());
  check(*this, 1, inputs);
  check(*this, 2, inputs, TENON_FUSION_OFF);
}

TEST_CASE_FIXTURE(Products, "sdk: rows are summed by the product although it reads them in another shape") {
  const std::uint32_t rows = input({1, 3, 3}), flat = internal({3, 3});
  node(TENON_OP_Reshape, {rows}, {flat});
  node(TENON_OP_Gemm, {x, flat}, {output({2, 3})}, gemm_attributes());
  node(TENON_OP_ReduceSum, {rows}, {output({1, 1, 3})}, axes({0, 1}, true));
  check(*this, 1, {{x, counting}, {rows, square}});
}

TEST_CASE_FIXTURE(Products, "sdk: other sums, and those that the product needs, are not part of it") {
  const std::uint32_t sum = internal({3}), a = internal({2, 3});
  node(TENON_OP_ReduceSum, {w}, {output({3})}, axes({1}));
  node(TENON_OP_ReduceSum, {w}, {sum}, axes({0}));
  node(TENON_OP_Add, {x, sum}, {a});
  node(TENON_OP_Gemm, {a, w}, {output({2, 3})}, gemm_attributes());
  check(*this, 4, inputs);
  Products donated;
  const std::uint32_t old = donated.input({3}), fresh = donated.output({3});
  donated.node(TENON_OP_ReduceSum, {donated.w}, {fresh}, axes({0}));
  donated.node(TENON_OP_Gemm, {donated.x, donated.w}, {donated.output({2, 3})}, gemm_attributes());
  donated.donate(old, fresh);
  check(donated, 2, {{donated.x, counting}, {donated.w, square}, {old, Floats(3, 1.0f)}});
}

TEST_CASE_FIXTURE(Products, "sdk: each node that runs with others has a record of its own") {
  for (int i = 0; i < 2; ++i) node(TENON_OP_MatMul, {x, w}, {output({2, 3})});
  const std::uint32_t bias = input({3}), y = internal({2, 3}), sum = internal({2, 3});
  node(TENON_OP_MatMul, {x, w}, {y});
  node(TENON_OP_Add, {y, bias}, {sum});
  node(TENON_OP_Sigmoid, {sum}, {output({2, 3})});
  Session session(1, query_together);
  Run run(session, *this);
  CHECK(run.info.kernel_count == 1);
  run.execution_id = 1;
  run({{x, counting}, {w, square}, {bias, {1, 2, 3}}});
  tenon_profile_record records[3] = {};
  std::uint32_t count = 0;
  ErrorText error;
  REQUIRE(session.table->profile->read(run.plan, 1, records, sizeof records[0], 3, &count, error) == TENON_OK);
  CHECK(count == 3);
  CHECK(std::string(records[0].algorithm) == "MatMul");
  CHECK(std::string(records[2].algorithm) == "MatMul (joined)+bias+sigmoid");
  for (std::uint32_t i = 0; i < 3; ++i) CHECK(records[i].node == i);
}

TEST_CASE_FIXTURE(Products, "sdk: an error of nodes that run together is that of the first, and names the ops of the others") {
  for (int i = 0; i < 3; ++i) node(TENON_OP_MatMul, {x, w}, {output({2, 3})});
  Session session(1, query_together);
  Run run(session, *this);
  ErrorText error;
  probe.fail_together = true;
  CHECK(run.execute(error) == TENON_OUT_OF_MEMORY);
  probe.fail_together = false;
  CHECK(error.says("no room for products (in one launch with MatMul, MatMul)"));
  CHECK(error.node_id() == nodes[0].id);
}

TEST_CASE_FIXTURE(Products, "sdk: at most max_calls_together nodes run together") {
  for (std::uint32_t i = 0; i < sdk::max_calls_together + 1; ++i) node(TENON_OP_MatMul, {x, w}, {output({2, 3})});
  check(*this, 2, inputs);
}

TEST_CASE("sdk: nodes that wait do not keep more of the workspace than 16 MiB and the operands of one") {
  constexpr std::int64_t depth = 64, n = 32 * 1024, size_bytes = depth * n * 4;  // 8 MiB
  Net net;
  const std::uint32_t x = net.input({1, depth}), w = net.input({depth, n});
  for (int i = 0; i < 6; ++i) {
    const std::uint32_t before = net.internal({depth, n});
    net.node(TENON_OP_Tanh, {w}, {before});
    net.node(TENON_OP_MatMul, {x, before}, {net.output({1, n})});
  }
  Session session(1, query_together);
  const Run run(session, net);
  CHECK(run.info.kernel_count == 6 + 2);
  CHECK(run.info.workspace_size_bytes == 3 * size_bytes);
}

TEST_CASE_FIXTURE(Products, "sdk: kernels in place do not run together") {
  for (int i = 0; i < 2; ++i) node(TENON_OP_Sigmoid, {x}, {output({2, 3})});
  check(*this, 2, inputs);
}

TEST_CASE_FIXTURE(Products, "sdk: the gradient of a relu is part of the product whose result only it reads") {
  const Floats relus{1, 0, 2, 0, 0, 3};
  for (const bool is_read_twice : {false, true}) {
    for (const bool is_overwritten : {false, true}) {
      Products net;
      const std::uint32_t r = net.input({2, 3}), y = net.internal({2, 3}), dx = net.output({2, 3});
      net.node(TENON_OP_MatMul, {net.x, net.w}, {y});
      net.node(TENON_OP_ReluGrad, {y, r}, {dx});
      if (is_read_twice) net.node(TENON_OP_Tanh, {y}, {net.output({2, 3})});
      if (is_overwritten) net.donate(r, dx);
      const bool fuses = !is_read_twice && !is_overwritten;
      auto bound = net.inputs;
      bound[r] = relus;
      check(net, (fuses ? 1 : 2) + (is_read_twice ? 1 : 0), bound);
      check(net, 2 + (is_read_twice ? 1 : 0), bound, TENON_FUSION_OFF);
    }
  }
}

TEST_CASE_FIXTURE(Products, "sdk: a product without an epilogue does not take the gradient of a relu") {
  const std::uint32_t r = input({2, 3}), y = internal({2, 3});
  node(TENON_OP_Gemm, {x, w}, {y}, gemm_attributes());
  node(TENON_OP_ReluGrad, {y, r}, {output({2, 3})});
  check(*this, 2, {{x, counting}, {w, square}, {r, {1, 0, 2, 0, 0, 3}}});
}

}  // namespace
}  // namespace tenon::sdk_test
