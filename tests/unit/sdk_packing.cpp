// SPDX-License-Identifier: Apache-2.0
// Packed operands: constants are packed once, parameters when their epoch changes.
#include "sdk_testing.h"

#include <tenon/sdk/backend.h>

namespace tenon::sdk_test {

extern const sdk::Kernel kernel_gemm, kernel_neg, kernel_reshape;

namespace {

const Floats left{1, 2, 3, 4, 5, 6}, right{1, 0, -1, 2, 1, 1, 0, -1, 2, 1, 3, -2};  // (2, 3) and (3, 4)
constexpr std::uint64_t packed_bytes = 13 * sizeof(float);

struct Product {
  Net net;
  std::uint32_t a, b, y;
  explicit Product(bool constant) {
    a = net.input({2, 3});
    b = constant ? net.constant({3, 4}, right) : net.parameter({3, 4});
    y = net.output({2, 4});
    net.node(TENON_OP_Gemm, {a, b}, {y}, gemm_attributes());
  }
  Floats expected(const Floats& weights) { return evaluate(net, {{a, left}, {b, weights}})[y]; }
};

TEST_CASE("sdk: a constant is packed when the plan is made, never again, and keeps no plain copy") {
  Session session;
  Product product(true);
  Run run(session, product.net);
  CHECK(probe.packs == 1);
  CHECK(run.info.packed_size_bytes == packed_bytes);
  CHECK(session.host.live_bytes == packed_bytes);
  run.set(product.a, left);
  for (std::uint64_t epoch : {1, 2, 3}) {
    run.epoch = epoch;
    run();
    CHECK(run.get(product.y) == product.expected(right));
  }
  CHECK(probe.packs == 1);
}

TEST_CASE("sdk: the device's statistics count the memory of plans") {
  Session session;
  const auto live = [&] {
    tenon_memory_stats stats{.struct_size = sizeof stats};
    REQUIRE(session.table->memory_stats(session.device, &stats, nullptr) == TENON_OK);
    return stats.live_size_bytes;
  };
  {
    Product product(true);
    const Run run(session, product.net);
    CHECK(live() == packed_bytes);
  }
  CHECK(live() == 0);
}

TEST_CASE("sdk: a constant that is also read unpacked has both forms") {
  Session session;
  Product product(true);
  product.net.node(TENON_OP_Neg, {product.b}, {product.net.output({3, 4})});
  Run run(session, product.net);
  CHECK(run.info.packed_size_bytes == packed_bytes + 48);
  CHECK(session.host.live_bytes == static_cast<std::int64_t>(packed_bytes + 48));
  run({{product.a, left}});
  CHECK(run.get(product.y) == product.expected(right));
  CHECK(run.get(static_cast<std::uint32_t>(product.net.values.size() - 1))[11] == 2);
}

TEST_CASE("sdk: a transposed view of a constant is packed as it is read") {
  Net net;
  const auto a = net.input({2, 3}), c = net.constant({4, 3}, right), b = net.internal({3, 4}), y = net.output({2, 4});
  net.node(TENON_OP_Transpose, {c}, {b}, axes({1, 0}));
  net.node(TENON_OP_Gemm, {a, b}, {y}, gemm_attributes());
  Run run(net);
  CHECK(run.info.kernel_count == 1);
  CHECK(run.info.packed_size_bytes == packed_bytes);
  run({{a, left}});
  CHECK(run.get(y) == evaluate(net, {{a, left}})[y]);
}

TEST_CASE("sdk: an unread constant takes no memory") {
  Session session;
  Net net;
  const auto x = net.input({6}), y = net.output({6});
  net.constant({6}, left);
  net.node(TENON_OP_Neg, {x}, {y});
  const std::int64_t before = session.host.allocations;
  const Run run(session, net);
  CHECK(run.info.packed_size_bytes == 0);
  CHECK(session.host.allocations == before);
}

TEST_CASE("sdk: a scratch size query marks operands that will be packed") {
  Session session;
  probe.unpacked_scratch = 640;
  const auto workspace = [&](Net net) { return Run(session, net).info.workspace_size_bytes; };
  CHECK(workspace(Product(true).net) == 0);
  CHECK(workspace(Product(false).net) == 0);
  Net net;
  const auto a = net.input({2, 3}), b = net.input({3, 4}), y = net.output({2, 4});
  net.node(TENON_OP_Gemm, {a, b}, {y}, gemm_attributes());
  CHECK(workspace(net) == 640);
}

TEST_CASE("sdk: parameters are packed at the first execution and whenever the epoch changes") {
  Product product(false);
  Run run(product.net);
  CHECK(probe.packs == 0);
  CHECK(run.info.packed_size_bytes == packed_bytes);
  run.set(product.a, left);
  run.set(product.b, right);
  run.epoch = ~std::uint64_t{0};  // any value may be the first
  run();
  CHECK(run.get(product.y) == product.expected(right));
  CHECK(probe.packs == 1);
  run();
  CHECK(probe.packs == 1);
  run.set(product.b, Floats(12, 1.0f));
  run.epoch = 0;
  run();
  CHECK(run.get(product.y) == product.expected(Floats(12, 1.0f)));
  CHECK(probe.packs == 2);
  run.set(product.b, right);
  run.epoch = 7;
  run();
  CHECK(run.get(product.y) == product.expected(right));
  CHECK(probe.packs == 3);
}

/// Gemm for a device that records: it does not pack operands that the plan overwrites.
const sdk::Kernel recorded_gemm = [] {
  sdk::Kernel kernel = kernel_gemm;
  kernel.traits.pack_donated = false;
  return kernel;
}();
constexpr sdk::KernelRow recorded_rows[] = {
    {TENON_OP_Gemm, 13, 0, &recorded_gemm},
    {TENON_OP_Neg, 13, 0, &kernel_neg},
    {TENON_OP_Reshape, 14, 0, &kernel_reshape},
    {TENON_OP_NONE, 0, 0, nullptr},
};
const sdk::BackendSpec& recorded_spec() {
  static constexpr sdk::BackendSpec spec{"recorded", "1", "tests", "packs what stays", nullptr, 1, 0, {}, [](sdk::Host host) {
                                           return sdk::make_cpu_backend(host, "packs what stays");
                                         }};
  return spec;
}

TEST_CASE("sdk: a parameter that the plan overwrites is packed in each epoch, or not at all if the kernel declines") {
  for (const bool packs : {true, false}) {
    for (const bool is_updated : {true, false}) {
      Session session(1, packs ? query_full : sdk::query<recorded_spec, recorded_rows>);
      Product product(false);
      if (is_updated) {
        const auto next = product.net.output({3, 4});
        product.net.node(TENON_OP_Neg, {product.b}, {next});
        product.net.donate(product.b, next);
      }
      const int before = probe.packs;
      Run run(session, product.net);
      run({{product.a, left}, {product.b, right}});
      CHECK(run.get(product.y) == product.expected(right));
      CHECK(probe.packs - before == (packs || !is_updated ? 1 : 0));
    }
  }
}

TEST_CASE("sdk: packing that fails in plan_create fails it without a leak") {
  Session session;
  Product product(true);
  product.net.node(TENON_OP_Neg, {product.b}, {product.net.output({3, 4})});
  probe.fail_pack = true;
  ErrorText error;
  tenon_plan* plan = nullptr;
  const tenon_plan_options given = options();
  CHECK(session.table->plan_create(session.device, &product.net.abi_graph(), &given, &plan, error) == TENON_INTERNAL);
  CHECK(error.text() == "gemm: cannot pack");
  CHECK(plan == nullptr);
  CHECK(session.host.live_blocks == 0);
}

TEST_CASE("sdk: packing that fails in execution reports the node and is repeated before the old epoch is used again") {
  Product product(false);
  product.net.nodes.insert(product.net.nodes.begin(), product.net.nodes[0]);
  product.net.nodes[0] = {TENON_OP_Neg, 13, {product.a}, {product.net.output({2, 3})}, {sizeof(tenon_attributes_none)}, 77};
  Run run(product.net);
  run({{product.a, left}, {product.b, right}});
  probe.fail_pack = true;
  run.set(product.b, Floats(12, 9.0f));
  run.epoch = 2;
  ErrorText error;
  CHECK(run.execute(error) == TENON_INTERNAL);
  CHECK(error.node_id() == product.net.nodes[1].id);
  CHECK(error.text() == "gemm: cannot pack");
  probe.fail_pack = false;
  run.set(product.b, right);
  run.epoch = 1;
  run();
  CHECK(run.get(product.y) == product.expected(right));
}

TEST_CASE("sdk: running out of memory in plan_create fails it without a leak") {
  Session session;
  Product product(true);
  const auto sum = product.net.output({2, 3});
  product.net.node(TENON_OP_Add, {product.a, product.net.constant({3}, {1, 2, 3})}, {sum});
  const tenon_plan_options given = options();
  int refusals = 0;
  for (int available = 0;; ++available) {
    session.host.allocations_left = available;
    ErrorText error;
    tenon_plan* plan = nullptr;
    const tenon_status status = session.table->plan_create(session.device, &product.net.abi_graph(), &given, &plan, error);
    session.host.allocations_left = -1;
    if (status == TENON_OK) {
      session.table->plan_destroy(plan);
      break;
    }
    ++refusals;
    CHECK(status == TENON_OUT_OF_MEMORY);
    CHECK(error.says("bytes"));
    CHECK(session.host.live_blocks == 0);
  }
  CHECK(refusals == 3);  // two constants and a packed one
}

TEST_CASE("sdk: threads that execute one plan under different epochs each compute with their own parameters") {
  Session session;
  Product product(false);
  Run run(session, product.net);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0}, ready{0};
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const std::uint64_t epoch = t / 2;  // two threads per epoch
      const auto weight = static_cast<float>(epoch + 1);
      Floats a = left, b(12, weight), y(8);
      std::vector<std::uint64_t> addresses(3);
      addresses[product.net.values[product.a].binding] = reinterpret_cast<std::uintptr_t>(a.data());
      addresses[product.net.values[product.b].binding] = reinterpret_cast<std::uintptr_t>(b.data());
      addresses[product.net.values[product.y].binding] = reinterpret_cast<std::uintptr_t>(y.data());
      const tenon_bindings bindings{
          .struct_size = sizeof bindings, .address_count = 3, .addresses = addresses.data(), .parameters_epoch = epoch};
      for (++ready; ready < 4;) std::this_thread::yield();  // all at once, or they are done one by one
      for (int i = 0; i < 2000; ++i) {
        if (session.table->plan_execute(run.plan, &bindings, 0, session.stream, nullptr) != TENON_OK) ++wrong;
        if (y[0] != 6 * weight || y[7] != 15 * weight) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace tenon::sdk_test
