// SPDX-License-Identifier: Apache-2.0
// Devices that make several copies at once: which copies of a plan become one kernel.
#include "sdk_testing.h"

namespace tenon::sdk_test {
namespace {

const Floats counting{1, -2, 3, -4, 5, -6};

/// A run on the device whose copies are batched: `kernels` kernel calls. Checks its outputs against those of the graph evaluated node by
/// node.
void check(Net& net, int kernels, const std::map<std::uint32_t, Floats>& inputs) {
  Session session(1, query_copying);
  Run run(session, net);
  for (const auto& [value, data] : inputs) run.set(value, data);
  probe.kernels = 0;
  run();
  CHECK(probe.kernels == kernels);
  const auto expected = evaluate(net, inputs);
  for (std::uint32_t v = 0; v < net.values.size(); ++v) {
    if (net.values[v].kind == TENON_VALUE_OUTPUT) CHECK(run.get(v) == expected[v]);
  }
}

TEST_CASE("sdk: copies are one kernel, before the first reader of one of them") {
  Net net;
  const auto x = net.input({6}), y = net.input({2, 3}), z = net.internal({6}), copy_of_z = net.output({2, 3}),
             copy_of_x = net.output({3, 2}), copy_of_y = net.output({6}), last = net.output({6});
  net.node(TENON_OP_Reshape, {x}, {copy_of_x});
  net.node(TENON_OP_Tanh, {x}, {z});
  net.node(TENON_OP_Reshape, {y}, {copy_of_y});
  net.node(TENON_OP_Reshape, {z}, {copy_of_z});
  net.node(TENON_OP_Softmax, {copy_of_y}, {last}, axis(0));
  check(net, 3, {{x, counting}, {y, Floats(6, 2.0f)}});
}

TEST_CASE("sdk: a copy that reads another copy is not made with it") {
  Net net;
  const auto x = net.input({6}), y = net.output({2, 3}), z = net.output({3, 2}), other = net.output({6});
  net.node(TENON_OP_Reshape, {x}, {y});
  net.node(TENON_OP_Reshape, {y}, {z});
  net.node(TENON_OP_Reshape, {x}, {other});
  check(net, 2, {{x, counting}});
}

TEST_CASE("sdk: a copy over a donated input is not made with one that reads it") {
  Net net;
  const auto x = net.input({6}), y = net.input({6}), old = net.output({2, 3}), fresh = net.output({6}), other = net.output({3, 2});
  net.node(TENON_OP_Reshape, {x}, {old});
  net.node(TENON_OP_Reshape, {y}, {fresh});
  net.node(TENON_OP_Reshape, {y}, {other});
  net.donate(x, fresh);
  check(net, 2, {{x, counting}, {y, Floats(6, 7.0f)}});
}

TEST_CASE("sdk: dense copies of several operands with strides are one kernel") {
  Net net;
  const auto x = net.input({2, 3}, {1, 2}), y = net.input({2, 3}, {1, 2}), p = net.output({2, 3}), q = net.output({2, 3});
  net.node(TENON_OP_Tanh, {x}, {p});
  net.node(TENON_OP_Tanh, {y}, {q});
  Session session(1, query_copying);
  CHECK(Run(session, net, options(TENON_FUSION_OFF)).info.kernel_count == 4);
  check(net, 4, {{x, counting}, {y, Floats(6, 0.5f)}});  // each copy has a reader before the next
  Net sum;
  const auto a = sum.input({2, 3}, {1, 2}), b = sum.input({2, 3}, {1, 2}), u = sum.output({6}), v = sum.output({3, 2});
  sum.node(TENON_OP_Reshape, {a}, {u});
  sum.node(TENON_OP_Reshape, {b}, {v});
  check(sum, 1, {{a, counting}, {b, Floats(6, 0.5f)}});
}

TEST_CASE("sdk: transpositions are copies, and are made with others") {
  Net net;
  const auto x = net.input({2, 3}), y = net.input({2, 3}), p = net.output({3, 2}), q = net.output({3, 2}), r = net.output({6});
  net.node(TENON_OP_Transpose, {x}, {p}, axes({1, 0}));
  net.node(TENON_OP_Reshape, {x}, {r});
  net.node(TENON_OP_Transpose, {y}, {q}, axes({1, 0}));
  check(net, 1, {{x, counting}, {y, Floats{0, 1, 2, 3, 4, 5}}});
  Net one;
  const auto a = one.input({2, 3}), b = one.output({3, 2});
  one.node(TENON_OP_Transpose, {a}, {b}, axes({1, 0}));
  check(one, 1, {{a, counting}});
}

TEST_CASE("sdk: a large value is not kept for a copy to an output that waits") {
  constexpr std::int64_t count = 32 * 1024;  // 128 KiB
  Net net;
  const auto x = net.input({count});
  for (int i = 0; i < 4; ++i) {
    const auto y = net.internal({count});
    net.node(TENON_OP_Tanh, {x}, {y});
    net.node(TENON_OP_Reshape, {y}, {net.output({2, count / 2})});
  }
  Session session(1, query_copying);
  const Run run(session, net);
  CHECK(run.info.kernel_count == 8);
  CHECK(run.info.workspace_size_bytes < 2 * count * sizeof(float));
}

TEST_CASE("sdk: the options disable batched copies") {
  Net net;
  const auto x = net.input({6}), y = net.output({2, 3}), z = net.output({3, 2});
  net.node(TENON_OP_Reshape, {x}, {y});
  net.node(TENON_OP_Reshape, {x}, {z});
  Session session(1, query_copying);
  for (const bool together : {false, true}) {
    Run run(session, net, options(together ? TENON_FUSION_FULL : TENON_FUSION_OFF));
    CHECK(run.info.kernel_count == (together ? 1 : 2));
    probe.kernels = 0;
    run();
    CHECK(probe.kernels == (together ? 1 : 2));
  }
}

TEST_CASE("sdk: a device's kernel for copies that cannot run several is not used") {
  Net net;
  const auto x = net.input({6});
  for (int i = 0; i < 2; ++i) net.node(TENON_OP_Reshape, {x}, {net.output({2, 3})});
  probe.copies_one_by_one = true;
  check(net, 2, {{x, counting}});
  probe.copies_one_by_one = false;
}

TEST_CASE("sdk: each copy that is made with others has a record of its own") {
  Net net;
  const auto x = net.input({2, 3}), y = net.output({3, 2}), z = net.output({6});
  net.node(TENON_OP_Reshape, {x}, {z});
  net.node(TENON_OP_Transpose, {x}, {y}, axes({1, 0}));
  Session session(1, query_copying);
  const Run run(session, net);
  tenon_profile_record records[2] = {};
  std::uint32_t count = 0;
  ErrorText error;
  REQUIRE(session.table->profile->read(run.plan, 0, records, sizeof records[0], 2, &count, error) == TENON_OK);
  CHECK(count == 2);
  CHECK(std::string(records[0].algorithm) == "Reshape");
  CHECK(std::string(records[1].algorithm) == "Transpose (joined)");
  CHECK(records[1].node == 1);
}

}  // namespace
}  // namespace tenon::sdk_test
