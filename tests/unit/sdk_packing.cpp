// SPDX-License-Identifier: Apache-2.0
// Packed operands: constants are packed once, parameters when their epoch changes.
#include "sdk_testing.h"

#include <cstring>
#include <string>
#include <utility>

#include <tenon/sdk/backend.h>

namespace tenon::sdk_test {

extern const sdk::Kernel kernel_gemm, kernel_neg, kernel_reshape;

namespace {

const Floats left{1, 2, 3, 4, 5, 6}, right{1, 0, -1, 2, 1, 1, 0, -1, 2, 1, 3, -2};  // (2, 3) and (3, 4)
constexpr std::uint64_t packed_bytes = 13 * sizeof(float);

struct Product {
  Net net;
  std::uint32_t a, b, y;
  explicit Product(bool constant, std::int64_t rows = 2) {
    a = net.input({rows, 3});
    b = constant ? net.constant({3, 4}, right) : net.parameter({3, 4});
    y = net.output({rows, 4});
    net.node(TENON_OP_Gemm, {a, b}, {y}, gemm_attributes());
  }
  Floats expected(const Floats& weights) { return evaluate(net, {{a, left}, {b, weights}})[y]; }
};

/// The packed form of a value, and the packed value itself, by the slots of the pack block.
tenon_packing described(const Session& session, Net& net, std::uint32_t value) {
  std::vector<tenon_packing> packings(net.values.size());
  ErrorText error;
  const tenon_plan_options given = options();
  const tenon_status status =
      session.table->pack->describe(session.device, &net.abi_graph(), &given, packings.data(), sizeof(tenon_packing), error);
  REQUIRE_MESSAGE(status == TENON_OK, error.text());
  return packings[value];
}
struct Handle {
  Handle(const Session& in, Net& net, std::uint32_t value) : session(in) {
    ErrorText error;
    const tenon_plan_options given = options();
    REQUIRE_MESSAGE(session.table->pack->create(session.device, &net.abi_graph(), &given, &value, 1, &packed, error) == TENON_OK,
                    error.text());
  }
  ~Handle() { destroy(); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  void destroy() {
    if (packed != nullptr) session.table->pack->destroy(std::exchange(packed, nullptr));
  }
  const Session& session;
  tenon_packed* packed = nullptr;
};
/// The message of a plan_create that refuses.
std::string refusal(const Session& session, Net& net) {
  ErrorText error;
  tenon_plan* plan = nullptr;
  const tenon_plan_options given = options();
  CHECK(session.table->plan_create(session.device, &net.abi_graph(), &given, &plan, error) == TENON_INVALID_ARGUMENT);
  CHECK(plan == nullptr);
  return error.text();
}

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

// ---------------------------------------------------------------- converted before

std::uint16_t bf16(float x) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  return static_cast<std::uint16_t>(bits >> 16);
}
void set_bf16(Run& run, std::uint32_t value, const Floats& elements) {
  for (std::size_t i = 0; i < elements.size(); ++i) run.data<std::uint16_t>(value)[i] = bf16(elements[i]);
}
Floats get_bf16(Run& run, std::uint32_t value, std::size_t count) {
  Floats elements(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t bits = std::uint32_t{run.data<std::uint16_t>(value)[i]} << 16;
    std::memcpy(&elements[i], &bits, sizeof bits);
  }
  return elements;
}

/// Product in bf16, which the kernel of f32 computes between conversions. Its numbers are exact in bf16.
struct Bf16Product {
  Net net;
  std::uint32_t a, b, y;
  explicit Bf16Product(bool constant, std::int64_t rows = 2) {
    a = net.input({rows, 3}, {}, TENON_DTYPE_BF16);
    b = constant ? net.constant({3, 4}, {}) : net.parameter({3, 4});
    net.values[b].dtype = TENON_DTYPE_BF16;
    if (constant) {
      net.values[b].bytes.resize(2 * right.size());
      for (std::size_t i = 0; i < right.size(); ++i) {
        const std::uint16_t bits = bf16(right[i]);
        std::memcpy(net.values[b].bytes.data() + 2 * i, &bits, sizeof bits);
      }
    }
    y = net.output({rows, 4}, TENON_DTYPE_BF16);
    net.node(TENON_OP_Gemm, {a, b}, {y}, gemm_attributes());
  }
};

TEST_CASE("sdk: parameters of bf16 for a kernel of f32 are converted when they are packed, not in each execution") {
  Bf16Product product(false);
  Run run(product.net);
  CHECK(run.info.kernel_count == 3);  // the product between the conversions of a and y
  CHECK(run.info.packed_size_bytes == packed_bytes);
  CHECK(run.info.workspace_size_bytes == 128);  // a and y; b is converted in their memory
  set_bf16(run, product.a, left);
  const auto kernels_of = [&](const Floats& weights) {
    const int before = probe.kernels;
    set_bf16(run, product.b, weights);
    run();
    CHECK(get_bf16(run, product.y, 8) == Product(false).expected(weights));
    return probe.kernels - before;
  };
  CHECK(kernels_of(right) == 4);
  CHECK(kernels_of(right) == 3);
  CHECK(probe.packs == 1);
  run.epoch = 2;
  CHECK(kernels_of(Floats(12, 3.0f)) == 4);
  CHECK(kernels_of(Floats(12, 3.0f)) == 3);
  CHECK(probe.packs == 2);
}

TEST_CASE("sdk: a constant of bf16 for a kernel of f32 is converted and packed when the plan is made, and keeps no other copy") {
  Session session;
  Bf16Product product(true);
  Run run(session, product.net);
  CHECK(run.info.kernel_count == 3);
  CHECK(run.info.workspace_size_bytes == 128);
  CHECK(session.host.live_bytes == packed_bytes);
  set_bf16(run, product.a, left);
  const int before = probe.kernels;
  run();
  CHECK(get_bf16(run, product.y, 8) == Product(false).expected(right));
  CHECK(probe.kernels - before == 3);
  CHECK(probe.packs == 1);
}

TEST_CASE("sdk: weights whose conversion is also read as it is have both forms") {
  for (const bool is_constant : {false, true}) {
    CAPTURE(is_constant);
    Session session;
    Bf16Product product(is_constant);
    const auto negative = product.net.output({3, 4}, TENON_DTYPE_BF16);
    product.net.node(TENON_OP_Neg, {product.b}, {negative});
    Run run(session, product.net);
    CHECK(run.info.packed_size_bytes == 64 + 48);
    CHECK(session.host.live_bytes == 64 + 48);
    CHECK(run.info.kernel_count == 5);
    set_bf16(run, product.a, left);
    if (!is_constant) set_bf16(run, product.b, right);
    for (int i = 0; i < 2; ++i) {
      const int before = probe.kernels;
      run();
      CHECK(get_bf16(run, product.y, 8) == Product(false).expected(right));
      CHECK(get_bf16(run, negative, 12)[11] == 2);
      CHECK(probe.kernels - before == (i == 0 && !is_constant ? 6 : 5));
    }
    CHECK(probe.packs == 1);
  }
}

TEST_CASE("sdk: weights of bf16 for a kernel that packs nothing, and biases, are converted once") {
  Net net;
  const auto a = net.input({2, 3}, {}, TENON_DTYPE_BF16), b = net.parameter({3, 4}), bias = net.parameter({4});
  const auto product = net.internal({2, 4}, TENON_DTYPE_BF16), y = net.output({2, 4}, TENON_DTYPE_BF16);
  net.values[b].dtype = net.values[bias].dtype = TENON_DTYPE_BF16;
  net.node(TENON_OP_MatMul, {a, b}, {product});
  net.node(TENON_OP_Add, {product, bias}, {y});
  Run run(net);
  CHECK(run.info.kernel_count == 6);  // MatMul and Add, each between a conversion of its other operand and one of its result
  CHECK(run.info.packed_size_bytes == 48 + 16);
  CHECK(run.info.workspace_size_bytes == 128);
  set_bf16(run, a, left);
  const auto kernels_of = [&](const Floats& weights, float added) {
    const int before = probe.kernels;
    set_bf16(run, b, weights);
    set_bf16(run, bias, Floats(4, added));
    run();
    Floats expected = Product(false).expected(weights);
    for (float& element : expected) element += added;
    CHECK(get_bf16(run, y, 8) == expected);
    return probe.kernels - before;
  };
  CHECK(kernels_of(right, 1) == 8);
  CHECK(kernels_of(right, 1) == 6);
  run.epoch = 2;
  CHECK(kernels_of(Floats(12, 2.0f), 5) == 8);
  CHECK(kernels_of(Floats(12, 2.0f), 5) == 6);
}

TEST_CASE("sdk: a parameter of bf16 that the plan overwrites is converted in each execution") {
  Bf16Product product(false);
  const auto next = product.net.output({3, 4}, TENON_DTYPE_BF16);
  product.net.node(TENON_OP_Neg, {product.b}, {next});
  product.net.donate(product.b, next);
  Run run(product.net);
  CHECK(run.info.packed_size_bytes == 0);
  set_bf16(run, product.a, left);
  set_bf16(run, product.b, right);
  for (const float sign : {1.0f, -1.0f}) {  // in one epoch
    run();
    Floats expected = Product(false).expected(right);
    for (float& element : expected) element *= sign;
    CHECK(get_bf16(run, product.y, 8) == expected);
  }
}

TEST_CASE("sdk: plans share a copy of a converted parameter, which is not that of a parameter of f32") {
  Session session;
  Bf16Product small(false), large(false, 5);
  CHECK(std::string(described(session, small.net, small.b).key) == "parameter: Gemm-13 input 1 f32(3,4) of bf16(3,4) transposed");
  CHECK(std::string(described(session, large.net, large.b).key) == described(session, small.net, small.b).key);
  Handle handle(session, small.net, small.b);
  small.net.values[small.b].packed = large.net.values[large.b].packed = handle.packed;
  Run first(session, small.net), second(session, large.net);
  handle.destroy();
  CHECK(first.info.packed_size_bytes == 0);
  set_bf16(first, small.a, left);
  set_bf16(first, small.b, right);
  set_bf16(second, large.a, Floats(15, 2.0f));
  set_bf16(second, large.b, right);
  second();
  first();
  CHECK(probe.packs == 1);
  CHECK(get_bf16(first, small.y, 8) == Product(false).expected(right));
  CHECK(get_bf16(second, large.y, 4) == Floats{8, 4, 4, -2});  // twice the sums of the columns
}

// ---------------------------------------------------------------- shared by plans

TEST_CASE("sdk: plans of several batch sizes share a packed parameter: one copy, packed once in each epoch") {
  Session session;
  Product small(false), large(false, 5);
  CHECK(std::string(described(session, small.net, small.b).key) == "parameter: Gemm-13 input 1 f32(3,4) transposed");
  CHECK(std::string(described(session, large.net, large.b).key) == described(session, small.net, small.b).key);
  CHECK(described(session, small.net, small.b).size_bytes == packed_bytes);
  Handle handle(session, small.net, small.b);
  CHECK(session.host.live_bytes == packed_bytes);
  small.net.values[small.b].packed = large.net.values[large.b].packed = handle.packed;
  Run first(session, small.net), second(session, large.net);
  handle.destroy();
  CHECK(session.host.live_bytes == packed_bytes);
  CHECK(first.info.packed_size_bytes == 0);
  const Floats rows(15, 2.0f);
  first({{small.a, left}, {small.b, right}});
  second({{large.a, rows}, {large.b, right}});
  CHECK(probe.packs == 1);
  CHECK(first.get(small.y) == small.expected(right));
  CHECK(second.get(large.y) == evaluate(large.net, {{large.a, rows}, {large.b, right}})[large.y]);

  const Floats other(12, 3.0f);
  first.epoch = second.epoch = 2;
  second({{large.b, other}});
  first({{small.b, other}});
  CHECK(probe.packs == 2);
  CHECK(first.get(small.y) == small.expected(other));
}

TEST_CASE("sdk: a constant is packed when it is created, and never by the plans that share it") {
  Session session;
  Product product(true);
  Handle handle(session, product.net, product.b);
  CHECK(probe.packs == 1);
  product.net.values[product.b].packed = handle.packed;
  Run first(session, product.net), second(session, product.net);
  handle.destroy();
  CHECK(first.info.packed_size_bytes == 0);
  for (Run* run : {&first, &second}) {
    (*run)({{product.a, left}});
    CHECK(run->get(product.y) == product.expected(right));
  }
  CHECK(probe.packs == 1);
  CHECK(session.host.live_bytes == packed_bytes);
}

TEST_CASE("sdk: kernels that read a value in one form read one copy, whatever the order of the nodes") {
  Session session;
  const auto twice = [](bool swapped) {  // b is read as it is by two products, and transposed by a third
    Product product(false);
    const auto turned = product.net.internal({4, 3});
    product.net.node(TENON_OP_Transpose, {product.b}, {turned}, axes({1, 0}));
    const auto again = [&] { product.net.node(TENON_OP_Gemm, {product.a, product.b}, {product.net.output({2, 4})}, gemm_attributes()); };
    if (!swapped) again();
    product.net.node(TENON_OP_Gemm, {product.net.input({2, 4}), turned}, {product.net.output({2, 3})}, gemm_attributes());
    if (swapped) again();
    return product;
  };
  Product product = twice(false), other = twice(true);
  const tenon_packing packing = described(session, product.net, product.b);
  CHECK(packing.size_bytes == 64 + packed_bytes);
  CHECK(std::string(packing.key) == "parameter: Gemm-13 input 1 f32(3,4) transposed; Gemm-13 input 1 f32(4,3) strides (1,4) transposed");
  CHECK(std::string(described(session, other.net, other.b).key) == packing.key);
  Run run(session, product.net);
  run({{product.a, left}, {product.b, right}});
  CHECK(probe.packs == 2);
  CHECK(run.get(product.y) == Product(false).expected(right));
}

TEST_CASE("sdk: a key that would be too long ends in a digest of all of it") {
  Session session;
  const auto forms = [](const Shape& last) {
    Product product(false);
    for (const Shape& shape : {Shape{2, 6}, Shape{6, 2}, Shape{4, 3}, Shape{1, 12}, last}) {
      const auto view = product.net.internal(shape);
      product.net.node(TENON_OP_Reshape, {product.b}, {view});
      product.net.node(TENON_OP_Gemm, {product.net.input({2, shape[0]}), view}, {product.net.output({2, shape[1]})}, gemm_attributes());
    }
    const auto turned = product.net.internal({4, 3});
    product.net.node(TENON_OP_Transpose, {product.b}, {turned}, axes({1, 0}));
    product.net.node(TENON_OP_Gemm, {product.net.input({2, 4}), turned}, {product.net.output({2, 3})}, gemm_attributes());
    return product;
  };
  Product one = forms({12, 1}), same = forms({12, 1}), less = forms({1, 12});
  const std::string key = described(session, one.net, one.b).key;
  CHECK(key.size() == sizeof(tenon_packing::key) - 1);
  CHECK(key == described(session, same.net, same.b).key);
  CHECK(key != described(session, less.net, less.b).key);
}

TEST_CASE("sdk: what is not packed has no key and cannot be created; of a list all values are created, or none") {
  Session session;
  Product product(false);
  for (const std::uint32_t v : {product.a, product.y}) {
    CHECK(std::string(described(session, product.net, v).key).empty());
    CHECK(described(session, product.net, v).size_bytes == 0);
  }
  ErrorText error;
  const tenon_plan_options given = options();
  tenon_packed* handles[2] = {};
  const auto create = [&](const tenon_graph& graph, std::uint32_t value) {
    const std::uint32_t values[] = {product.b, value};
    return session.table->pack->create(session.device, &graph, &given, values, 2, handles, error);
  };
  for (const std::uint32_t v : {product.a, 99u}) {
    CHECK(create(product.net.abi_graph(), v) == TENON_INVALID_ARGUMENT);
    CHECK(error.says(("got value " + std::to_string(v) + " of 3").c_str()));
  }
  tenon_graph needy = product.net.abi_graph();
  needy.needs = TENON_NEEDS_TEST;
  CHECK(create(needy, product.b) == TENON_UNSUPPORTED);
  std::vector<tenon_packing> packings(product.net.values.size());
  const auto describe = [&](std::uint32_t stride) {
    return session.table->pack->describe(session.device, &needy, &given, packings.data(), stride, error);
  };
  CHECK(describe(sizeof(tenon_packing)) == TENON_UNSUPPORTED);
  needy.needs = 0;
  CHECK(describe(16) == TENON_INVALID_ARGUMENT);
  CHECK(error.says("expected forms of at least 248 bytes, got 16"));
  CHECK(handles[0] == nullptr);
  CHECK(session.host.live_blocks == 0);

  Session recorded(1, sdk::query<recorded_spec, recorded_rows>);
  CHECK_FALSE(std::string(described(recorded, product.net, product.b).key).empty());
  const auto next = product.net.output({3, 4});
  product.net.node(TENON_OP_Neg, {product.b}, {next});
  product.net.donate(product.b, next);  // its Gemm does not pack what the plan overwrites
  CHECK(std::string(described(recorded, product.net, product.b).key).empty());
  const Session small(1, query_dense);
  CHECK(small.table->pack == nullptr);
}

TEST_CASE("sdk: a plan refuses packed operands of another form, another device, for two values, or that it does not read packed") {
  Session session, elsewhere;
  Product product(false);
  Net wide;
  const auto a = wide.input({2, 3}), b = wide.parameter({3, 5}), y = wide.output({2, 5});
  wide.node(TENON_OP_Gemm, {a, b}, {y}, gemm_attributes());
  const Handle other(session, wide, b), far(elsewhere, product.net, product.b), fitting(session, product.net, product.b);
  const auto with = [&](tenon_packed* packed) {
    product.net.values[product.b].packed = packed;
    return refusal(session, product.net);
  };
  CHECK(with(other.packed) ==
        "plan_create: value 1: expected one packed as 'parameter: Gemm-13 input 1 f32(3,4) transposed', got "
        "'parameter: Gemm-13 input 1 f32(3,5) transposed'");
  CHECK(with(far.packed) ==
        "plan_create: value 1: expected one packed on this device, got 'parameter: Gemm-13 input 1 f32(3,4) transposed' of another device");

  Net unread;
  const auto x = unread.parameter({3, 4});
  unread.node(TENON_OP_Neg, {x}, {unread.output({3, 4})});
  unread.values[x].packed = fitting.packed;
  CHECK(refusal(session, unread).find("expected none packed, for the plan reads it as it is") != std::string::npos);

  product.net.values[product.b].packed = fitting.packed;
  const auto second = product.net.parameter({3, 4});
  product.net.node(TENON_OP_Gemm, {product.a, second}, {product.net.output({2, 4})}, gemm_attributes());
  product.net.values[second].packed = fitting.packed;
  CHECK(refusal(session, product.net) == "plan_create: expected a packed operand for each parameter, got one for two of them");
}

TEST_CASE("sdk: a packing that fails is repeated by whichever plan comes next") {
  Session session;
  Product product(false);
  const Handle handle(session, product.net, product.b);
  product.net.values[product.b].packed = handle.packed;
  Run first(session, product.net), second(session, product.net);
  for (Run* run : {&first, &second}) {
    run->set(product.a, left);
    run->set(product.b, right);
  }
  probe.fail_pack = true;
  ErrorText error;
  CHECK(first.execute(error) == TENON_INTERNAL);
  CHECK(error.node_id() == product.net.nodes[0].id);
  probe.fail_pack = false;
  second();
  CHECK(second.get(product.y) == product.expected(right));
}

/// y = a v + a w, with v and w in either order.
struct Sum {
  Net net;
  std::uint32_t a = net.input({2, 3}), v = 0, w = 0, y = 0;
  explicit Sum(bool swapped) {
    (swapped ? w : v) = net.parameter({3, 4});
    (swapped ? v : w) = net.parameter({3, 4});
    const auto av = net.internal({2, 4}), aw = net.internal({2, 4});
    y = net.output({2, 4});
    net.node(TENON_OP_Gemm, {a, swapped ? w : v}, {av}, gemm_attributes());
    net.node(TENON_OP_Gemm, {a, swapped ? v : w}, {aw}, gemm_attributes());
    net.node(TENON_OP_Add, {av, aw}, {y});
  }
};

TEST_CASE("sdk: threads whose plans share some of their parameters, under different epochs, do not mix them up and do not deadlock") {
  Session session;
  Sum one(false), other(true);
  Product part(false);
  const Handle v(session, one.net, one.v), w(session, one.net, one.w);
  for (Sum* sum : {&one, &other}) {
    sum->net.values[sum->v].packed = v.packed;
    sum->net.values[sum->w].packed = w.packed;
  }
  part.net.values[part.b].packed = w.packed;
  const Run first(session, one.net), second(session, other.net), third(session, part.net);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0}, ready{0};
  for (std::uint64_t t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      const std::uint64_t epoch = t / 3;
      const auto weight = static_cast<float>(epoch + 1);
      const bool sums = t % 3 < 2;
      const Sum& sum = t % 3 == 0 ? one : other;
      Floats a = left, values(12, weight), y(8);
      std::vector<unsigned char> memory(1024);
      const std::uint64_t workspace = (reinterpret_cast<std::uintptr_t>(memory.data()) + 63) / 64 * 64;
      std::vector<std::uint64_t> addresses(sums ? 4 : 3);
      const auto bind = [&](const Net& net, std::uint32_t value, Floats& bytes) {
        addresses[net.values[value].binding] = reinterpret_cast<std::uintptr_t>(bytes.data());
      };
      if (sums) {
        bind(sum.net, sum.a, a), bind(sum.net, sum.v, values), bind(sum.net, sum.w, values), bind(sum.net, sum.y, y);
      } else {
        bind(part.net, part.a, a), bind(part.net, part.b, values), bind(part.net, part.y, y);
      }
      const tenon_bindings bindings{.struct_size = sizeof bindings,
                                    .address_count = static_cast<std::uint32_t>(addresses.size()),
                                    .addresses = addresses.data(),
                                    .parameters_epoch = epoch};
      tenon_plan* const plan = !sums ? third.plan : t % 3 == 0 ? first.plan : second.plan;
      const float expected = (sums ? 2 : 1) * weight;
      for (++ready; ready < 6;) std::this_thread::yield();
      for (int i = 0; i < 1000; ++i) {
        if (session.table->plan_execute(plan, &bindings, workspace, session.stream, nullptr) != TENON_OK) ++wrong;
        if (y[0] != 6 * expected || y[7] != 15 * expected) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace tenon::sdk_test
