// SPDX-License-Identifier: Apache-2.0
// Executing plans: odd shapes, threads, allocations, and what happens when a kernel fails.
#include "malloc_counter.h"
#include "sdk_testing.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include <tenon/sdk/host.h>
#include <tenon/sdk/kernel.h>

namespace tenon::sdk_test {
namespace {

const Floats counting{1, -2, 3, -4, 5, -6};

TEST_CASE("sdk: a scalar has rank 0, one element and no strides") {
  Net net;
  const auto x = net.input({}), c = net.constant({}, {3}), a = net.internal({}), t = net.internal({}), y = net.output({}),
             e = net.output({2, 2});
  net.node(TENON_OP_Add, {x, c}, {a});
  net.node(TENON_OP_Transpose, {a}, {t}, axes({}));
  net.node(TENON_OP_Tanh, {t}, {y});
  net.node(TENON_OP_Expand, {a}, {e});
  Run run(net);
  run({{x, {-3}}});
  CHECK(run.get(y) == Floats{0});
  CHECK(run.get(e) == Floats(4, 0.0f));
}

TEST_CASE("sdk: values without elements need no address and no storage") {
  Net net;
  const auto x = net.input({0, 3}), c = net.constant({0, 3}, {}), a = net.internal({0, 3}), t = net.internal({3, 0}),
             y = net.output({3, 0}), s = net.output({3}), z = net.output({0, 3});
  net.node(TENON_OP_Add, {x, c}, {a});
  net.node(TENON_OP_Transpose, {a}, {t}, axes({1, 0}));
  net.node(TENON_OP_Softmax, {t}, {y}, axis(1));
  net.node(TENON_OP_ReduceSum, {a}, {s}, axes({0}));
  net.node(TENON_OP_Tanh, {x}, {z});
  net.donate(x, z);
  Run run(net);
  for (const std::uint32_t v : {x, y, z}) run.addresses[net.values[v].binding] = 0;
  CHECK(run.info.workspace_size_bytes == 0);
  run();
  CHECK(run.get(s) == Floats(3, 0.0f));
}

TEST_CASE("sdk: an empty shape with other huge dimensions does not overflow") {
  Net net;
  const std::int64_t huge = std::int64_t{1} << 30;
  const auto x = net.input({0, huge}), y = net.output({0, huge});
  net.node(TENON_OP_Neg, {x}, {y});
  Run run(net);
  run();
}

TEST_CASE("sdk: a graph without nodes is a plan") {
  Net net;
  Run run(net);
  CHECK(run.info.kernel_count == 0);
  CHECK(run.info.workspace_size_bytes == 0);
  run.workspace = 0;
  run();
}

TEST_CASE("sdk: scratch memory is aligned, inside the workspace, and exclusive to a call") {
  Net net;
  const auto x = net.input({2, 21}), a = net.internal({2, 21}), b = net.internal({2, 21}), y = net.output({2, 21});
  net.node(TENON_OP_Neg, {x}, {a});
  net.node(TENON_OP_Softmax, {a}, {b}, axis(1));
  net.node(TENON_OP_Add, {a, b}, {y});
  Run run(net);
  Floats data(42);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i % 5);
  run({{x, data}});
  CHECK_FALSE(probe.bad_scratch);
  CHECK(probe.scratch_at >= run.workspace);
  CHECK(probe.scratch_at + 84 <= run.workspace + run.info.workspace_size_bytes);
  CHECK(run.info.workspace_size_bytes == 2 * 192 + 128);
  CHECK(run.get(y) == evaluate(net, {{x, data}})[y]);
}

TEST_CASE("sdk: each execution works in the workspace it is given") {
  Net net;
  const auto x = net.input({2, 3}), a = net.internal({2, 3}), y = net.output({2, 3});
  net.node(TENON_OP_Tanh, {x}, {a});
  net.node(TENON_OP_Softmax, {a}, {y}, axis(1));
  Run run(net);
  run({{x, counting}});
  const Floats expected = run.get(y);
  const std::uint64_t first = run.workspace;
  alignas(64) unsigned char other[256] = {};
  REQUIRE(run.info.workspace_size_bytes <= sizeof other);
  run.workspace = reinterpret_cast<std::uintptr_t>(other);
  run();  // poisons the first
  CHECK(run.get(y) == expected);
  CHECK(probe.scratch_at >= run.workspace);
  CHECK(probe.scratch_at < run.workspace + sizeof other);
  run.workspace = first;
  std::memset(other, 0, sizeof other);
  run();
  CHECK(run.get(y) == expected);
  CHECK(std::all_of(other, other + sizeof other, [](unsigned char byte) { return byte == 0; }));
}

TEST_CASE("sdk: an output may be read by later nodes and is unchanged") {
  Net net;
  const auto x = net.input({6}), y = net.output({6}), z = net.output({6});
  net.node(TENON_OP_Neg, {x}, {y});
  net.node(TENON_OP_Relu, {y}, {z});
  Run run(net);
  run({{x, counting}});
  CHECK(run.get(y) == Floats{-1, 2, -3, 4, -5, 6});
  CHECK(run.get(z) == Floats{0, 2, 0, 4, 0, 6});
}

TEST_CASE("sdk: optional operands may be absent") {
  for (const bool weights : {false, true}) {
    for (const bool log_prob : {false, true}) {
      Net net;
      const auto scores = net.input({2, 3}), labels = net.input({2}, {}, TENON_DTYPE_I64), w = net.input({3});
      const auto loss = net.output({}), extra = net.output({2, 3});
      net.node(TENON_OP_SoftmaxCrossEntropyLoss, {scores, labels, weights ? w : TENON_NO_INDEX}, {loss, log_prob ? extra : TENON_NO_INDEX},
               tenon_attributes_cross_entropy{sizeof(tenon_attributes_cross_entropy), TENON_REDUCTION_SUM, 0, 0, 0});
      if (!log_prob) net.node(TENON_OP_Neg, {scores}, {extra});
      if (!weights) net.nodes[0].inputs.pop_back();  // a trailing operand may be left out
      Run run(net);
      run({{scores, counting}, {w, {50, 0, 0}}});
      CHECK(run.get(loss) == Floats{weights ? 47.0f : -3.0f});
      CHECK(run.get(extra) == (log_prob ? Floats(6, 7.0f) : Floats{-1, 2, -3, 4, -5, 6}));
    }
  }
}

TEST_CASE("sdk: four threads execute one plan in separate workspaces") {
  Session session(2);
  Net net;
  const auto x = net.input({8, 16}), w = net.parameter({16, 16}), h = net.internal({8, 16}), a = net.internal({8, 16}),
             s = net.internal({8, 16}), t = net.internal({16, 8}), y = net.output({16, 8});
  net.node(TENON_OP_Gemm, {x, w}, {h}, gemm_attributes());
  net.node(TENON_OP_Relu, {h}, {a});
  net.node(TENON_OP_Softmax, {a}, {s}, axis(1));
  net.node(TENON_OP_Transpose, {s}, {t}, axes({1, 0}));
  net.node(TENON_OP_Neg, {t}, {y});
  Run run(session, net);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0}, ready{0};
  for (int thread_index = 0; thread_index < 4; ++thread_index) {
    threads.emplace_back([&, thread_index] {
      Floats in(128), weights(256), out(128);
      for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>((i * 7 + static_cast<std::size_t>(thread_index)) % 5) - 2;
      for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i % 3) - 1;
      const Floats expected = evaluate(net, {{x, in}, {w, weights}})[y];
      std::vector<unsigned char> storage(run.info.workspace_size_bytes + 64);
      const std::uint64_t workspace = (reinterpret_cast<std::uintptr_t>(storage.data()) + 63) / 64 * 64;
      std::uint64_t addresses[3];
      addresses[net.values[x].binding] = reinterpret_cast<std::uintptr_t>(in.data());
      addresses[net.values[w].binding] = reinterpret_cast<std::uintptr_t>(weights.data());
      addresses[net.values[y].binding] = reinterpret_cast<std::uintptr_t>(out.data());
      const tenon_bindings bindings{.struct_size = sizeof bindings, .address_count = 3, .addresses = addresses, .parameters_epoch = 5};
      for (++ready; ready < 4;) std::this_thread::yield();  // start together, or they might run one after another
      for (int i = 0; i < 500; ++i) {
        std::fill(out.begin(), out.end(), std::numeric_limits<float>::quiet_NaN());
        if (session.table->plan_execute(run.plan, &bindings, workspace, session.stream, nullptr) != TENON_OK) ++wrong;
        if (out != expected) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

#ifndef TENON_MALLOC_IS_TAKEN
TEST_CASE("sdk: executing a plan allocates nothing") {
  Net net;
  const auto x = net.input({2, 3}), w = net.parameter({3, 4}), b = net.constant({4}, {1, 2, 3, 4}), h = net.internal({2, 4}),
             a = net.internal({2, 4}), y = net.output({2, 4});
  net.node(TENON_OP_Gemm, {x, w}, {h}, gemm_attributes());
  net.node(TENON_OP_Add, {h, b}, {a});
  net.node(TENON_OP_Softmax, {a}, {y}, axis(1));
  Run run(net);
  run.set(x, counting);
  const long before = allocations.load();
  REQUIRE(before > 0);
  for (int i = 0; i < 5; ++i) {
    run.epoch = static_cast<std::uint64_t>(i / 2);  // packing again allocates nothing either
    if (run.execute() != TENON_OK) FAIL("plan_execute failed");
  }
  CHECK(allocations.load() == before);
}
#endif

TEST_CASE("sdk: an exception of a kernel becomes a status, a text and a node, and the plan stays usable") {
  Session session(3);
  Net net;
  const auto x = net.input({6}), a = net.internal({6}), y = net.output({6}), z = net.output({6});
  net.node(TENON_OP_Neg, {x}, {a});
  net.node(TENON_OP_Div, {a, x}, {y});
  net.node(TENON_OP_Neg, {y}, {z});
  Run run(session, net);
  run.set(x, counting);
  struct Case {
    int how;
    tenon_status status;
    const char* text;
  };
  for (const Case& c : {Case{1, TENON_CANCELLED, "div: stopped"}, Case{2, TENON_INTERNAL, "div: runtime trouble"},
                        Case{3, TENON_INTERNAL, "an exception of unknown type"}, Case{4, TENON_OUT_OF_MEMORY, "out of host memory"},
                        Case{5, TENON_INTERNAL, "div: a range failed"}}) {
    for (const bool profiled : {false, true}) {
      CAPTURE(c.how);
      ErrorText error;
      run.execution_id = profiled ? 1 : 0;
      probe.fail_div = c.how;
      CHECK(run.execute(error) == c.status);
      CHECK(error.status() == c.status);
      CHECK(error.node_id() == net.nodes[1].id);
      CHECK(error.text() == c.text);
      CHECK(run.execute(nullptr) == c.status);
      probe.fail_div = 0;
      run();
      CHECK(run.get(z) == Floats(6, 1.0f));
    }
  }
}

TEST_CASE("sdk: an execution asks between its kernels whether to go on, up to the first one that writes a donated output") {
  tenon_plan_options separate = options();
  separate.fusion = TENON_FUSION_OFF;
  Session session;
  Net net;
  const auto x = net.input({6}), p = net.input({6}), a = net.internal({6}), b = net.internal({6});
  const auto updated = net.output({6}), y = net.output({6});
  net.node(TENON_OP_Neg, {x}, {a});
  net.node(TENON_OP_Neg, {a}, {b});
  net.node(TENON_OP_Add, {p, b}, {updated});
  net.node(TENON_OP_Neg, {b}, {y});
  net.donate(p, updated);
  Run run(session, net, separate);
  const tenon_run context{sizeof context, 0, 0, 0, nullptr};
  run.run = &context;
  const Floats before(6, 7);
  for (int number = 1; number <= 4; ++number) {
    CAPTURE(number);
    run.set(x, counting);
    run.set(p, before);
    session.host.questions = 0;
    session.host.cancel_from = number;
    for (const std::uint64_t id : {0, 1}) {  // measured or not
      session.host.questions = 0;
      run.execution_id = id;
      if (number == 4) run.set(p, before);
      ErrorText error;
      const tenon_status status = run.execute(error);
      if (number == 4) {
        CHECK(status == TENON_OK);
        CHECK(session.host.questions == 3);
        CHECK(run.get(updated)[1] == 7 + counting[1]);
        CHECK(run.get(y)[1] == -counting[1]);
      } else {
        CHECK(status == TENON_CANCELLED);
        CHECK(session.host.questions == number);
        CHECK(error.node_id() == net.nodes[static_cast<std::size_t>(number - 1)].id);
        CHECK(error.text() == (number == 3 ? "plan_execute: cancelled before Add" : "plan_execute: cancelled before Neg"));
        CHECK(run.get(p) == before);
      }
    }
  }
  run.run = nullptr;
  session.host.questions = 0;
  run();
  CHECK(session.host.questions == 0);
}

TEST_CASE("sdk: invalid bindings and workspaces are rejected by name") {
  Session session;
  Net net;
  const auto x = net.input({6}), a = net.internal({6}), y = net.output({6});
  net.node(TENON_OP_Tanh, {x}, {a});
  net.node(TENON_OP_Neg, {a}, {y});
  Run run(session, net);
  run.set(x, counting);
  const auto refused = [&](const tenon_bindings& bindings, std::uint64_t workspace, const char* part) {
    ErrorText error;
    CHECK(session.table->plan_execute(run.plan, &bindings, workspace, session.stream, error) == TENON_INVALID_ARGUMENT);
    CHECK_MESSAGE(error.says(part), error.text());
    CHECK(error.node_id() == 0);
  };
  tenon_bindings bindings = run.bindings();
  bindings.address_count = 1;
  refused(bindings, run.workspace, "expected 2 addresses, got 1");
  refused(run.bindings(), 0, "workspace");
  refused(run.bindings(), run.workspace + 4, "workspace");
  run.addresses[1] = 0;
  refused(run.bindings(), run.workspace, "address 1");
  run.addresses[1] = run.addresses[0];
  run();  // still usable
}

TEST_CASE("sdk: options reach the kernels; a shorter struct of options means defaults") {
  Session session;
  Net net;
  const auto x = net.input({6}), y = net.output({6});
  net.node(TENON_OP_Sigmoid, {x}, {y});
  tenon_plan_options given = options();
  given.math = TENON_MATH_TF32;
  given.deterministic = 1;
  {
    Run run(session, net, given);
    run();
    CHECK(probe.math == TENON_MATH_TF32);
    CHECK(probe.deterministic == 1);
  }
  given.struct_size = offsetof(tenon_plan_options, deterministic);
  {
    Run run(session, net, given);
    run();
    CHECK(probe.math == TENON_MATH_TF32);
    CHECK(probe.deterministic == 0);
  }
  given.struct_size = 0;
  Run run(session, net, given);
  run();
  CHECK(probe.math == TENON_MATH_STRICT);
}

TEST_CASE("sdk: unknown newer options are rejected by supports and by plan_create") {
  Session session;
  Net net;
  const auto x = net.input({6}), y = net.output({6});
  net.node(TENON_OP_Neg, {x}, {y});
  tenon_plan_options given = options();
  given.math = 77;
  ErrorText error;
  tenon_answer answer{};
  REQUIRE(session.table->supports(session.device, &net.abi_graph(), &given, &answer, sizeof answer, error) == TENON_OK);
  CHECK(answer.supported == 0);
  CHECK(answer.reason == TENON_REASON_OPTIONS);
  tenon_plan* plan = nullptr;
  CHECK(session.table->plan_create(session.device, &net.abi_graph(), &given, &plan, error) == TENON_UNSUPPORTED);
  CHECK(error.says("math 77"));
}

TEST_CASE("sdk: parallel_for rethrows the first exception after every range is done") {
  TestHost table(4);
  const sdk::Host host(table.table());
  std::atomic<int> ranges{0};
  CHECK_THROWS_AS(host.parallel_for(400, 100,
                                    [&](std::int64_t, std::int64_t) {
                                      ++ranges;
                                      throw sdk::Error(TENON_CANCELLED, "all of them");
                                    }),
                  sdk::Error);
  CHECK(ranges == 4);
  CHECK_THROWS_AS(host.parallel_for(1, 100, [](std::int64_t, std::int64_t) { throw 1; }), int);  // inline
  std::vector<std::atomic<int>> hits(1000);
  host.parallel_for(1000, 0, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) ++hits[static_cast<std::size_t>(i)];
  });
  for (const auto& hit : hits) REQUIRE(hit == 1);
  host.parallel_for(0, 1, [](std::int64_t, std::int64_t) { FAIL("called for nothing"); });
}

}  // namespace
}  // namespace tenon::sdk_test
