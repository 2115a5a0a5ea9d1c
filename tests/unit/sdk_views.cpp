// SPDX-License-Identifier: Apache-2.0
// Shape ops become views if their readers accept the strides; otherwise copies are made.
#include "sdk_testing.h"

#include <cmath>

namespace tenon::sdk_test {
namespace {

const Floats counting{1, -2, 3, -4, 5, -6};
const Floats transposed_counting{1, -4, -2, 5, 3, -6};

TEST_CASE("sdk: an internal Reshape, Flatten, Transpose or Expand is free if its readers accept any strides") {
  Net net;
  const auto x = net.input({6}), a = net.internal({2, 3}), b = net.internal({3, 2}), c = net.internal({2, 3, 2}), d = net.internal({1, 6});
  const auto y = net.output({2, 3, 2}), z = net.output({1, 6});
  net.node(TENON_OP_Reshape, {x}, {a});
  net.node(TENON_OP_Transpose, {a}, {b}, axes({1, 0}));
  net.node(TENON_OP_Expand, {b}, {c});
  net.node(TENON_OP_Neg, {c}, {y});
  net.node(TENON_OP_Flatten, {x}, {d}, axis(0));
  net.node(TENON_OP_Tanh, {d}, {z});  // needs dense operands, and this view is dense
  Run run(net);
  CHECK(run.info.kernel_count == 2);
  CHECK(run.info.workspace_size_bytes == 0);
  run({{x, counting}});
  CHECK(run.get(y) == Floats{-1, 4, 2, -5, -3, 6, -1, 4, 2, -5, -3, 6});
}

TEST_CASE("sdk: one reader that expects dense operands keeps the Transpose") {
  Net net;
  const auto x = net.input({2, 3}), t = net.internal({3, 2}), y = net.output({3, 2}), z = net.output({3, 2});
  net.node(TENON_OP_Transpose, {x}, {t}, axes({1, 0}));
  net.node(TENON_OP_Neg, {t}, {y});
  net.node(TENON_OP_Tanh, {t}, {z});
  Run run(net);
  CHECK(run.info.kernel_count == 3);
  run({{x, counting}});
  CHECK(run.get(y)[1] == 4);
  CHECK(run.get(z)[1] == std::tanh(-4.0f));
}

TEST_CASE("sdk: a Reshape of a view is free if strides describe it") {
  const Floats many{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23};
  const Floats expected{0, 6, 12, 18, 1, 7, 13, 19, 2, 8, 14, 20, 3, 9, 15, 21, 4, 10, 16, 22, 5, 11, 17, 23};  // (6, 4) of (4, 6)
  for (const Shape& shape : {Shape{6, 4}, Shape{6, 1, 4}, Shape{1, 6, 4, 1}, Shape{2, 3, 4}, Shape{3, 2, 2, 2}, Shape{3, 1, 2, 4}}) {
    Net net;
    const auto x = net.input({4, 6}), t = net.internal({6, 4}), r = net.internal(shape), y = net.output(shape);
    net.node(TENON_OP_Transpose, {x}, {t}, axes({1, 0}));
    net.node(TENON_OP_Reshape, {t}, {r});
    net.node(TENON_OP_Neg, {r}, {y});
    Run run(net);
    CHECK(run.info.kernel_count == 1);
    run({{x, many}});
    for (std::size_t i = 0; i < many.size(); ++i) CHECK(run.get(y)[i] == -expected[i]);
  }
  Net net;  // dimensions that a transpose left next to each other are joined
  const auto x = net.input({2, 3, 4}), t = net.internal({4, 2, 3}), r = net.internal({4, 6}), y = net.output({4, 6});
  net.node(TENON_OP_Transpose, {x}, {t}, axes({2, 0, 1}));
  net.node(TENON_OP_Reshape, {t}, {r});
  net.node(TENON_OP_Neg, {r}, {y});
  Run run(net);
  CHECK(run.info.kernel_count == 1);
  run({{x, many}});
  CHECK(run.get(y)[7] == -5);
}

TEST_CASE("sdk: a Reshape of a transposed view copies") {
  Net net;
  const auto x = net.input({2, 3}), t = net.internal({3, 2}), r = net.internal({6}), y = net.output({6});
  net.node(TENON_OP_Transpose, {x}, {t}, axes({1, 0}));
  net.node(TENON_OP_Reshape, {t}, {r});
  net.node(TENON_OP_Neg, {r}, {y});
  Run run(net);
  CHECK(run.info.kernel_count == 2);
  run({{x, transposed_counting}});
  CHECK(run.get(y) == Floats{-1, -5, 4, -3, 2, 6});
}

TEST_CASE("sdk: outputs are materialised, whatever op makes them") {
  for (const bool constant : {false, true}) {
    Net net;
    const auto x = constant ? net.constant({2, 3}, counting) : net.parameter({2, 3});
    const auto y = net.output({3, 2}), z = net.output({6}), e = net.output({2, 2, 3}), f = net.output({1, 6});
    net.node(TENON_OP_Transpose, {x}, {y}, axes({1, 0}));
    net.node(TENON_OP_Reshape, {x}, {z});
    net.node(TENON_OP_Expand, {x}, {e});
    net.node(TENON_OP_Flatten, {y}, {f}, axis(0));
    Run run(net);
    CHECK(run.info.kernel_count == 4);
    if (!constant) run.set(x, counting);
    run();
    CHECK(run.get(y) == transposed_counting);
    CHECK(run.get(z) == counting);
    CHECK(run.get(e) == Floats{1, -2, 3, -4, 5, -6, 1, -2, 3, -4, 5, -6});
    CHECK(run.get(f) == transposed_counting);
  }
}

TEST_CASE("sdk: views of constants and parameters are read in place") {
  Net net;
  const auto c = net.constant({2, 3}, counting), p = net.parameter({2, 3});
  const auto tc = net.internal({3, 2}), tp = net.internal({3, 2}), y = net.output({3, 2});
  net.node(TENON_OP_Transpose, {c}, {tc}, axes({1, 0}));
  net.node(TENON_OP_Transpose, {p}, {tp}, axes({1, 0}));
  net.node(TENON_OP_Sub, {tc, tp}, {y});
  Run run(net);
  CHECK(run.info.kernel_count == 1);
  CHECK(run.info.packed_size_bytes == 24);
  run({{p, Floats(6, 1.0f)}});
  CHECK(run.get(y) == Floats{0, -5, -3, 4, 2, -7});
}

TEST_CASE("sdk: an internal value lives until its last view is read") {
  Net net;
  const auto x = net.input({6}), a = net.internal({6}), v = net.internal({2, 3}), b = net.internal({6}), c = net.internal({6});
  const auto y = net.output({6}), z = net.output({2, 3});
  net.node(TENON_OP_Neg, {x}, {a});
  net.node(TENON_OP_Reshape, {a}, {v});
  net.node(TENON_OP_Neg, {a}, {b});  // may not reuse a's storage: v is read later
  net.node(TENON_OP_Relu, {b}, {c});
  net.node(TENON_OP_Neg, {c}, {y});
  net.node(TENON_OP_Neg, {v}, {z});
  Run run(net);
  CHECK(run.info.workspace_size_bytes == 128);
  run({{x, counting}});
  CHECK(run.get(z) == counting);
  CHECK(run.get(y) == Floats{-1, 0, -3, 0, -5, 0});
}

TEST_CASE("sdk: a result does not overwrite an operand that is also read transposed") {
  Net net;
  const auto x = net.input({2, 2}), a = net.internal({2, 2}), t = net.internal({2, 2}), s = net.internal({2, 2}), y = net.output({2, 2});
  net.node(TENON_OP_Neg, {x}, {a});
  net.node(TENON_OP_Transpose, {a}, {t}, axes({1, 0}));
  net.node(TENON_OP_Add, {a, t}, {s});
  net.node(TENON_OP_Neg, {s}, {y});
  Run run(net);
  CHECK(run.info.workspace_size_bytes == 128);
  run({{x, {1, 2, 3, 4}}});
  CHECK(run.get(y) == Floats{2, 5, 5, 8});
}

TEST_CASE("sdk: chains of elementwise ops work in one block") {
  Net net;
  const auto x = net.input({6});
  auto v = x;
  for (int i = 0; i < 10; ++i) {
    const auto next = net.internal({6});
    net.node(TENON_OP_Neg, {v}, {next});
    v = next;
  }
  const auto y = net.output({6});
  net.node(TENON_OP_Neg, {v}, {y});
  Run run(net);
  CHECK(run.info.workspace_size_bytes == 64);
  run({{x, counting}});
  CHECK(run.get(y) == Floats{-1, 2, -3, 4, -5, 6});
}

TEST_CASE("sdk: a strided operand is copied once for all kernels that need it dense") {
  Net net;
  const auto x = net.input({2, 3}, {1, 2}), y = net.output({2, 3}), z = net.output({2, 3}), n = net.output({2, 3});
  net.node(TENON_OP_Tanh, {x}, {y});
  net.node(TENON_OP_Softmax, {x}, {z}, axis(1));
  net.node(TENON_OP_Neg, {x}, {n});
  Run run(net);
  CHECK(run.info.kernel_count == 4);
  run({{x, counting}});
  CHECK(run.get(y)[1] == std::tanh(-2.0f));
  CHECK(run.get(n) == Floats{-1, 2, -3, 4, -5, 6});
}

TEST_CASE("sdk: without a copy kernel strides are rejected with the reason for strides") {
  Session session(1, query_dense);
  Net net;
  const auto x = net.input({2, 3}, {1, 2}), y = net.output({2, 3}), z = net.output({2, 3}), t = net.internal({3, 2}),
             w = net.output({3, 2});
  net.node(TENON_OP_Tanh, {x}, {y});
  net.node(TENON_OP_Neg, {x}, {z});
  net.node(TENON_OP_Transpose, {z}, {t}, axes({1, 0}));
  net.node(TENON_OP_Tanh, {t}, {w});
  ErrorText error;
  tenon_answer answers[4] = {};
  const tenon_plan_options given = options();
  REQUIRE(session.table->supports(session.device, &net.abi_graph(), &given, answers, sizeof answers[0], error) == TENON_OK);
  CHECK(answers[0].supported == 0);
  CHECK(answers[0].reason == TENON_REASON_STRIDES);
  CHECK(std::string(answers[0].text) == "Tanh: takes dense f32 operands only");
  CHECK(answers[1].supported == 1);
  CHECK(answers[2].supported == 1);  // its own kernel makes the copy
  CHECK(answers[3].supported == 1);

  net.nodes[0].op = TENON_OP_Neg;
  Run run(session, net);
  run({{x, counting}});
  CHECK(run.get(w)[1] == std::tanh(4.0f));
}

TEST_CASE("sdk: strides of dimensions of size 1 do not matter") {
  Session session(1, query_dense);
  Net net;
  const auto x = net.input({1, 6, 1}, {99, 1, -7}), y = net.output({1, 6, 1});
  net.node(TENON_OP_Tanh, {x}, {y});
  Run run(session, net);
  CHECK(run.info.kernel_count == 1);
  run({{x, counting}});
  CHECK(run.get(y)[5] == std::tanh(-6.0f));
}

TEST_CASE("sdk: a shape op with mismatched shapes is rejected") {
  Session session;
  const auto refused = [&](Net& net) {
    ErrorText error;
    tenon_answer answer{};
    const tenon_plan_options given = options();
    REQUIRE(session.table->supports(session.device, &net.abi_graph(), &given, &answer, sizeof answer, error) == TENON_OK);
    CHECK(answer.reason == TENON_REASON_SHAPE);
    CHECK(std::strlen(answer.text) > 0);
    tenon_plan* plan = nullptr;
    CHECK(session.table->plan_create(session.device, &net.abi_graph(), &given, &plan, error) == TENON_UNSUPPORTED);
    return answer.supported == 0;
  };
  Net fewer, bigger, twice, outside, rank, narrow, other_type;
  fewer.node(TENON_OP_Reshape, {fewer.input({6})}, {fewer.output({5})});
  CHECK(refused(fewer));
  bigger.node(TENON_OP_Flatten, {bigger.input({6})}, {bigger.output({2, 6})}, axis(0));
  CHECK(refused(bigger));
  twice.node(TENON_OP_Transpose, {twice.input({2, 3})}, {twice.output({3, 3})}, axes({1, 1}));
  CHECK(refused(twice));
  outside.node(TENON_OP_Transpose, {outside.input({2, 3})}, {outside.output({3, 2})}, axes({7, 0}));
  CHECK(refused(outside));
  rank.node(TENON_OP_Expand, {rank.input({1, 3})}, {rank.output({3})});
  CHECK(refused(rank));
  narrow.node(TENON_OP_Expand, {narrow.input({2, 3})}, {narrow.output({4, 3})});
  CHECK(refused(narrow));
}

}  // namespace
}  // namespace tenon::sdk_test
