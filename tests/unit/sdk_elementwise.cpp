// SPDX-License-Identifier: Apache-2.0
// Chains of elementwise ops run as one kernel, piece by piece; f16 and bf16 use the kernels of f32.
#include "sdk_testing.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tenon::sdk_test {
namespace {

Floats ramp(std::int64_t n, float step = 0.25f) {
  Floats values(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = step * static_cast<float>(static_cast<int>(i % 37) - 18);
  return values;
}

/// Sets every input to a ramp, runs, compares every output with the definition.
void check_against_definition(Session& session, Net& net, std::uint32_t kernels, std::uint32_t fusion = TENON_FUSION_FULL) {
  Run run(session, net, options(fusion));
  CHECK(run.info.kernel_count == kernels);
  std::map<std::uint32_t, Floats> bound;
  for (std::uint32_t v = 0; v < net.values.size(); ++v) {
    if (net.values[v].kind != TENON_VALUE_INPUT) continue;
    run.set(v, ramp(net.values[v].count(), 0.25f + 0.5f * static_cast<float>(v)));
    bound[v] = run.get(v);
  }
  run();
  const std::vector<Floats> expected = evaluate(net, bound);
  for (std::uint32_t v = 0; v < net.values.size(); ++v) {
    if (net.values[v].kind == TENON_VALUE_OUTPUT) CHECK(run.get(v) == expected[v]);
  }
}

/// y = relu(-(a * b) + c), over shapes that broadcast.
Net chain(const Shape& a, const Shape& b, const Shape& c, const Shape& y) {
  Net net;
  const auto in_a = net.input(a), in_b = net.input(b), in_c = net.input(c);
  const auto product = net.internal(y), negated = net.internal(y), sum = net.internal(y);
  net.node(TENON_OP_Mul, {in_a, in_b}, {product});
  net.node(TENON_OP_Neg, {product}, {negated});
  net.node(TENON_OP_Add, {negated, in_c}, {sum});
  net.node(TENON_OP_Relu, {sum}, {net.output(y)});
  return net;
}

TEST_CASE("sdk: an elementwise chain is one kernel, with the same results if longer than a piece") {
  for (const std::uint32_t threads : {1u, 3u}) {
    Session session(threads);
    for (const std::int64_t n : {1, 7, 4096, 4097, 100003}) {
      Net net = chain({n}, {n}, {n}, {n});
      check_against_definition(session, net, 1);
    }
  }
}

TEST_CASE("sdk: a chain may broadcast scalars, rows and columns, and read transposed operands") {
  Session session(2);
  const Shape y{3, 50, 130};
  for (const Shape& b : {Shape{}, Shape{1}, Shape{130}, Shape{1, 130}, Shape{1, 1, 1}, Shape{3, 50, 130}, Shape{3, 50, 1}}) {
    CAPTURE(b.size());
    Net net = chain(y, b, b, y);
    check_against_definition(session, net, 1);
  }
  Net turned = chain({60, 70}, {60, 70}, {70}, {60, 70});
  turned.values[0].strides = {1, 60};
  turned.values[1].strides = {-70, -1};
  check_against_definition(session, turned, 1);
  // longer rows than a piece
  Net wide = chain({5, 9001}, {5, 1}, {9001}, {5, 9001});
  check_against_definition(session, wide, 1);
}

TEST_CASE("sdk: an operand that repeats in the middle keeps its node out of the chain") {
  Session session;
  Net net = chain({4, 1, 6}, {4, 5, 6}, {5, 1}, {4, 5, 6});
  // (4, 1, 6) and (5, 1) need more than two strides: Mul and Add are separate, and nothing else can be fused
  check_against_definition(session, net, 4);
}

TEST_CASE("sdk: fusion off runs each node separately, elementwise and full run one kernel") {
  Session session;
  Net net = chain({40}, {40}, {40}, {40});
  check_against_definition(session, net, 4, TENON_FUSION_OFF);
  check_against_definition(session, net, 1, TENON_FUSION_ELEMENTWISE);
  check_against_definition(session, net, 1, TENON_FUSION_FULL);
}

TEST_CASE("sdk: a value with other readers is stored, and the chain continues") {
  Session session;
  Net net;
  const auto x = net.input({5000});
  const auto a = net.output({5000}), b = net.internal({5000}), c = net.output({5000}), total = net.output({});
  net.node(TENON_OP_Neg, {x}, {a});
  net.node(TENON_OP_Relu, {a}, {b});
  net.node(TENON_OP_Mul, {b, a}, {c});
  net.node(TENON_OP_ReduceSum, {b}, {total}, axes({0}));
  check_against_definition(session, net, 2);
}

TEST_CASE("sdk: nodes that depend on each other through a third are not one kernel") {
  Session session;
  Net net;
  const auto x = net.input({6, 6});
  const auto a = net.internal({6, 6}), sum = net.internal({}), b = net.output({6, 6});
  net.node(TENON_OP_Neg, {x}, {a});
  net.node(TENON_OP_ReduceSum, {a}, {sum}, axes({0, 1}));
  net.node(TENON_OP_Add, {a, sum}, {b});
  check_against_definition(session, net, 3);
}

TEST_CASE("sdk: two chains that join are one kernel") {
  Session session;
  Net net;
  const auto x = net.input({300}), y = net.input({300});
  const auto a = net.internal({300}), b = net.internal({300}), c = net.internal({300}), d = net.internal({300});
  net.node(TENON_OP_Neg, {x}, {a});
  net.node(TENON_OP_Relu, {a}, {b});
  net.node(TENON_OP_Neg, {y}, {c});
  net.node(TENON_OP_Relu, {c}, {d});
  net.node(TENON_OP_Mul, {b, d}, {net.output({300})});
  check_against_definition(session, net, 1);
}

TEST_CASE("sdk: a chain of a hundred nodes is cut into kernels of a bounded size") {
  Net net;
  std::uint32_t x = net.input({1000});
  for (int i = 0; i < 100; ++i) {
    const auto y = i == 99 ? net.output({1000}) : net.internal({1000});
    net.node(TENON_OP_Neg, {x}, {y});
    x = y;
  }
  Run run(net);
  CHECK(run.info.kernel_count == 4);
  run({{0, ramp(1000)}});
  CHECK(run.get(x) == ramp(1000));
}

TEST_CASE("sdk: a profile has the nodes of a chain") {
  Session session;
  Net net = chain({40}, {40}, {40}, {40});
  Run run(session, net);
  for (std::uint32_t v = 0; v < 3; ++v) run.set(v, ramp(40));
  tenon_profile_record record{};
  std::uint32_t count = 0;
  ErrorText error;
  REQUIRE(session.table->profile->read(run.plan, 0, &record, sizeof record, 1, &count, error) == TENON_OK);
  CHECK(count == 1);
  CHECK(record.fused_count == 4);
  CHECK(std::string(record.algorithm) == "Mul+Neg+Add+Relu");
}

// ---------------------------------------------------------------- f16 and bf16 as storage

std::uint16_t bf16(float x) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  return static_cast<std::uint16_t>(bits >> 16);
}

TEST_CASE("sdk: without its own kernel, bf16 is computed in f32 between conversions") {
  Net net;
  const auto x = net.input({3}, {}, TENON_DTYPE_BF16), y = net.input({3}, {}, TENON_DTYPE_BF16);
  const auto product = net.internal({3}, TENON_DTYPE_BF16), sum = net.output({3}, TENON_DTYPE_BF16);
  net.node(TENON_OP_Mul, {x, y}, {product});
  net.node(TENON_OP_Add, {product, x}, {sum});
  Run run(net);
  const float a[3] = {1.5f, -2, 0.25f}, b[3] = {3, 0.5f, 1024};
  for (int i = 0; i < 3; ++i) {
    run.data<std::uint16_t>(x)[i] = bf16(a[i]);
    run.data<std::uint16_t>(y)[i] = bf16(b[i]);
  }
  run();
  for (int i = 0; i < 3; ++i) CHECK(run.data<std::uint16_t>(sum)[i] == bf16(a[i] * b[i] + a[i]));
}

TEST_CASE("sdk: what is stored as bf16 between two nodes is rounded to it") {
  Net net;
  const auto x = net.input({1}, {}, TENON_DTYPE_BF16), y = net.input({1}, {}, TENON_DTYPE_BF16);
  const auto sum = net.internal({1}, TENON_DTYPE_BF16), rest = net.output({1}, TENON_DTYPE_BF16);
  net.node(TENON_OP_Add, {x, y}, {sum});
  net.node(TENON_OP_Sub, {sum, x}, {rest});
  Run run(net);
  run.data<std::uint16_t>(x)[0] = bf16(256);
  run.data<std::uint16_t>(y)[0] = bf16(0.5f);
  run();
  CHECK(run.data<std::uint16_t>(rest)[0] == bf16(0));  // 256.5 is not representable with eight bits of mantissa
}

TEST_CASE("sdk: a dtype that goes through f32 is among the capabilities, one that cannot be converted is not") {
  const auto bit = [](tenon_op op, tenon_dtype dtype, tenon_backend_query_fn query) {
    tenon_backend_info info{.struct_size = sizeof info};
    const tenon_host_info host = host_info();
    REQUIRE(query(&host, &info) == TENON_OK);
    for (std::uint32_t i = 0; i < info.capability_count; ++i) {
      if (info.capabilities[i].op == op) return (info.capabilities[i].dtypes & TENON_DTYPE_BIT(dtype)) != 0;
    }
    return false;
  };
  CHECK(bit(TENON_OP_Mul, TENON_DTYPE_BF16, query_full));
  CHECK_FALSE(bit(TENON_OP_Mul, TENON_DTYPE_F16, query_full));
  CHECK_FALSE(bit(TENON_OP_Neg, TENON_DTYPE_BF16, query_small));  // no Cast there
}

}  // namespace
}  // namespace tenon::sdk_test
