// SPDX-License-Identifier: Apache-2.0
// Donations: an output takes the storage of an input, after every read of it.
#include "sdk_testing.h"

namespace tenon::sdk_test {
namespace {

const Floats counting{1, -2, 3, -4, 5, -6};

TEST_CASE("sdk: readers of a donated input run before its writer, in any listed order") {
  Net net;
  const auto x = net.input({6}), y = net.output({6}), z = net.output({6});
  net.node(TENON_OP_Neg, {x}, {y});
  net.node(TENON_OP_Relu, {x}, {z});
  net.donate(x, y);
  Run run(net);
  CHECK(run.info.kernel_count == 2);
  run({{x, counting}});
  CHECK(run.get(y) == Floats{-1, 2, -3, 4, -5, 6});
  CHECK(run.get(z) == Floats{1, 0, 3, 0, 5, 0});
}

TEST_CASE("sdk: a writer that may work in place reads the donated input without a copy") {
  Net net;
  const auto x = net.input({6}), y = net.output({6});
  net.node(TENON_OP_Add, {x, x}, {y});
  net.donate(x, y);
  Run run(net);
  CHECK(run.info.kernel_count == 1);
  CHECK(run.info.workspace_size_bytes == 0);
  run({{x, counting}});
  CHECK(run.get(y) == Floats{2, -4, 6, -8, 10, -12});
}

TEST_CASE("sdk: a writer that may not work in place reads a copy") {
  Net net;
  const auto x = net.input({2, 3}), y = net.output({2, 3});
  net.node(TENON_OP_Sub, {x, x}, {y});
  net.donate(x, y);
  Run run(net);
  CHECK(run.info.kernel_count == 2);
  CHECK(run.info.workspace_size_bytes == 64);
  run({{x, counting}});
  CHECK(run.get(y) == Floats(6, 0.0f));
}

TEST_CASE("sdk: a reader that waits for the writer's result reads a copy") {
  Net net;
  const auto x = net.input({6}), y = net.output({6}), z = net.output({6});
  net.node(TENON_OP_Neg, {x}, {y});
  net.node(TENON_OP_Mul, {x, y}, {z});
  net.donate(x, y);
  Run run(net);
  CHECK(run.info.kernel_count == 3);
  run({{x, counting}});
  CHECK(run.get(z) == Floats{-1, -4, -9, -16, -25, -36});
}

TEST_CASE("sdk: two donations that swap their inputs cost one copy") {
  Net net;
  const auto a = net.input({6}), b = net.input({6}), p = net.output({6}), q = net.output({6});
  net.node(TENON_OP_Neg, {b}, {p});
  net.node(TENON_OP_Neg, {a}, {q});
  net.donate(a, p);
  net.donate(b, q);
  Run run(net);
  CHECK(run.info.kernel_count == 3);
  run({{a, counting}, {b, Floats(6, 7.0f)}});
  CHECK(run.get(p) == Floats(6, -7.0f));
  CHECK(run.get(q) == Floats{-1, 2, -3, 4, -5, 6});
}

TEST_CASE("sdk: a donation that ordering can honour costs no copy when another cannot be") {
  Net net;
  const auto a = net.input({6}), b = net.input({6});
  const auto new_b = net.output({6}), late = net.internal({6}), new_a = net.output({6}), other = net.output({6});
  net.node(TENON_OP_Neg, {b}, {new_b});
  net.node(TENON_OP_Add, {b, new_b}, {late});  // reads b, and depends on its writer
  net.node(TENON_OP_Add, {a, late}, {new_a});
  net.node(TENON_OP_Mul, {a, late}, {other});
  net.donate(a, new_a);
  net.donate(b, new_b);
  Run run(net);
  CHECK(run.info.kernel_count == 4);  // late and other are one kernel
  run({{a, counting}, {b, Floats(6, 3.0f)}});
  CHECK(run.get(new_a) == counting);
  CHECK(run.get(new_b) == Floats(6, -3.0f));
  CHECK(run.get(other) == Floats(6, 0.0f));
}

TEST_CASE("sdk: views of a donated input are read before it is written") {
  Net net;
  const auto x = net.input({2, 3}), turned = net.internal({3, 2}), y = net.output({2, 3}), z = net.output({3, 2});
  net.node(TENON_OP_Transpose, {x}, {turned}, axes({1, 0}));
  net.node(TENON_OP_Neg, {x}, {y});
  net.node(TENON_OP_Relu, {turned}, {z});
  net.donate(x, y);
  Run run(net);
  CHECK(run.info.kernel_count == 2);
  run({{x, counting}});
  CHECK(run.get(y) == Floats{-1, 2, -3, 4, -5, 6});
  CHECK(run.get(z) == Floats{1, 0, 0, 5, 3, 0});
}

TEST_CASE("sdk: a writer works in place through a view of the same layout, and on a copy through any other") {
  Session session;
  Net flat;
  const auto x = flat.input({2, 3}), row = flat.internal({6}), y = flat.output({6});
  flat.node(TENON_OP_Reshape, {x}, {row});
  flat.node(TENON_OP_Neg, {row}, {y});
  flat.donate(x, y);
  Run in_place(session, flat);
  CHECK(in_place.info.kernel_count == 1);
  in_place({{x, counting}});
  CHECK(in_place.get(y) == Floats{-1, 2, -3, 4, -5, 6});

  Net turned;
  const auto a = turned.input({2, 2}), t = turned.internal({2, 2}), b = turned.output({2, 2});
  turned.node(TENON_OP_Transpose, {a}, {t}, axes({1, 0}));
  turned.node(TENON_OP_Neg, {t}, {b});
  turned.donate(a, b);
  Run copied(session, turned);
  CHECK(copied.info.kernel_count == 2);
  copied({{a, {1, 2, 3, 4}}});
  CHECK(copied.get(b) == Floats{-1, -3, -2, -4});
}

TEST_CASE("sdk: a donated input with gaps or permuted axes is read right, also through views and copies") {
  for (const bool conflict : {false, true}) {
    Net net;
    const auto x = net.input({2, 3}, {1, 2});
    const auto turned = net.internal({3, 2}), y = net.output({2, 3}), z = net.output({3, 2});
    net.node(TENON_OP_Transpose, {x}, {turned}, axes({1, 0}));
    net.node(TENON_OP_Neg, {x}, {y});
    if (conflict) {
      const auto back = net.internal({3, 2});
      net.node(TENON_OP_Transpose, {y}, {back}, axes({1, 0}));
      net.node(TENON_OP_Sub, {turned, back}, {z});
    } else {
      net.node(TENON_OP_Relu, {turned}, {z});
    }
    net.donate(x, y);
    Run run(net);
    run({{x, counting}});
    CHECK(run.get(y) == Floats{-1, 2, -3, 4, -5, 6});
    CHECK(run.get(z) == (conflict ? Floats{2, -8, -4, 10, 6, -12} : Floats{1, 0, 0, 5, 3, 0}));
  }
}

TEST_CASE("sdk: a step over several tensors updates each in place without a copy") {
  Net net;
  const auto lr = net.input({}, {}, TENON_DTYPE_F64);
  std::vector<std::uint32_t> inputs{lr}, outputs, old, next;
  for (int group = 0; group < 3; ++group) {
    const auto w = net.parameter({6}), g = net.input({6}), v = net.input({6});
    inputs.insert(inputs.end(), {w, g, v});
    old.insert(old.end(), {w, v});
  }
  for (int i = 0; i < 6; ++i) {
    outputs.push_back(net.output({6}));
    net.donate(old[static_cast<std::size_t>(i)], outputs.back());
  }
  net.node(TENON_OP_SgdStep, inputs, outputs, sgd_attributes(0.5));
  Run run(net);
  CHECK(run.info.kernel_count == 1);
  CHECK(run.info.workspace_size_bytes == 0);
  *run.data<double>(lr) = 2;
  for (std::size_t group = 0; group < 3; ++group) {
    run.set(inputs[1 + 3 * group], counting);                              // w
    run.set(inputs[2 + 3 * group], Floats(6, static_cast<float>(group)));  // g
    run.set(inputs[3 + 3 * group], Floats(6, 2.0f));                       // v
  }
  run();
  for (std::size_t group = 0; group < 3; ++group) {
    const float step = 1.0f + static_cast<float>(group);
    CHECK(run.get(outputs[2 * group + 1]) == Floats(6, step));
    CHECK(run.get(outputs[2 * group])[0] == 1 - 2 * step);
  }
}

TEST_CASE("sdk: a step over several tensors reads a copy of an input that another tensor's result overwrites") {
  Net net;
  const auto lr = net.input({}, {}, TENON_DTYPE_F64);
  const auto w0 = net.parameter({6}), g0 = net.input({6}), w1 = net.parameter({6}), g1 = net.input({6});
  const auto new0 = net.output({6}), new1 = net.output({6});
  net.node(TENON_OP_SgdStep, {lr, w0, g0, w1, g1}, {new0, new1}, sgd_attributes());
  net.donate(w0, new1);
  net.donate(g0, new0);
  Run run(net);
  CHECK(run.info.kernel_count == 3);
  *run.data<double>(lr) = 1;
  run({{w0, counting}, {g0, Floats(6, 1.0f)}, {w1, Floats(6, 10.0f)}, {g1, Floats(6, 4.0f)}});
  CHECK(run.get(new0) == Floats{0, -3, 2, -5, 4, -7});
  CHECK(run.get(new1) == Floats(6, 6.0f));
}

TEST_CASE("sdk: a donated output may be read later, also through a view") {
  Net net;
  const auto x = net.input({2, 3}), y = net.output({2, 3}), t = net.internal({3, 2}), z = net.output({3, 2}), n = net.output({2, 3});
  net.node(TENON_OP_Neg, {x}, {y});
  net.node(TENON_OP_Transpose, {y}, {t}, axes({1, 0}));
  net.node(TENON_OP_Relu, {t}, {z});
  net.node(TENON_OP_Neg, {y}, {n});
  net.donate(x, y);
  Run run(net);
  CHECK(run.info.kernel_count == 3);
  run({{x, counting}});
  CHECK(run.get(y) == Floats{-1, 2, -3, 4, -5, 6});
  CHECK(run.get(z) == Floats{0, 4, 2, 0, 0, 6});
  CHECK(run.get(n) == counting);
}

TEST_CASE("sdk: an output that does not depend on the donated input may take its storage") {
  Net net;
  const auto x = net.input({6}), other = net.input({6}), y = net.output({6}), z = net.output({6});
  net.node(TENON_OP_Tanh, {other}, {y});
  net.node(TENON_OP_Neg, {x}, {z});
  net.donate(x, y);
  Run run(net);
  CHECK(run.info.kernel_count == 2);
  run({{x, counting}, {other, Floats(6, 0.0f)}});
  CHECK(run.get(y) == Floats(6, 0.0f));
  CHECK(run.get(z) == Floats{-1, 2, -3, 4, -5, 6});
}

TEST_CASE("sdk: a donation that needs a copy is rejected if the backend has no copy kernel") {
  Session session(1, query_dense);
  Net net;
  const auto x = net.input({6}), y = net.output({6}), z = net.output({6});
  net.node(TENON_OP_Tanh, {x}, {y});
  net.node(TENON_OP_Neg, {x}, {z});
  net.donate(x, y);
  ErrorText error;
  tenon_answer answers[2] = {};
  const tenon_plan_options given = options();
  REQUIRE(session.table->supports(session.device, &net.abi_graph(), &given, answers, sizeof answers[0], error) == TENON_OK);
  CHECK(answers[0].supported == 0);
  CHECK(answers[0].reason == TENON_REASON_GRAPH);
  CHECK(answers[1].supported == 1);
  tenon_plan* plan = nullptr;
  CHECK(session.table->plan_create(session.device, &net.abi_graph(), &given, &plan, error) == TENON_UNSUPPORTED);
  CHECK(plan == nullptr);

  net.nodes[0].op = TENON_OP_Neg;  // works in place, so nothing is copied
  REQUIRE(session.table->supports(session.device, &net.abi_graph(), &given, answers, sizeof answers[0], error) == TENON_OK);
  CHECK(answers[0].supported == 1);
  const Run run(session, net);
  CHECK(run.info.kernel_count == 2);
}

}  // namespace
}  // namespace tenon::sdk_test
