// SPDX-License-Identifier: Apache-2.0
// Epilogues of kernels with several results: they apply to the first result, the others are unchanged.
#include "sdk_testing.h"

#include <tenon/sdk/backend.h>

#include <algorithm>
#include <bit>
#include <type_traits>

namespace tenon::sdk_test {

extern const sdk::Kernel kernel_add, kernel_neg, kernel_relu, kernel_reshape, kernel_cast;

namespace {

float widened(float x) {
  return x;
}
float widened(sdk::BFloat16 x) {
  return std::bit_cast<float>(std::uint32_t{x.bits} << 16);
}
/// Converts a value that T represents exactly.
template <class T>
T narrowed(float x) {
  if constexpr (std::is_same_v<T, float>) {
    return x;
  } else {
    return {static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16)};
  }
}

/// y = x + scale, and the running statistics plus one: a stand-in for BatchNormTrain.
template <class T>
void norm(const sdk::Call& call) {
  ++probe.kernels;
  const sdk::Rows rows = sdk::as_rows(call.inputs[0]);
  for (std::int64_t i = 0; i < call.outputs[0].count; ++i) {
    float y = widened(call.input<T>(0)[i]) + call.input<float>(1)[i % rows.n];
    if (call.epilogue.bias != nullptr) y += widened(call.epilogue.bias->as<const T>()[i % rows.n]);
    if (call.epilogue.residual != nullptr) y += widened(call.epilogue.residual->as<const T>()[i]);
    if (call.epilogue.activation == sdk::Activation::relu) y = std::max(y, 0.0f);
    call.output<T>(0)[i] = narrowed<T>(y);
  }
  for (std::int64_t c = 0; c < rows.n; ++c) {
    call.output<float>(1)[c] = call.input<float>(3)[c] + 1;
    call.output<float>(2)[c] = call.input<float>(4)[c] + 1;
    call.output<float>(3)[c] = 10;
    call.output<float>(4)[c] = 20;
  }
}
}  // namespace

namespace several {
namespace {
template <class T>
void batch_norm_train(const sdk::Call& call) {
  norm<T>(call);
}
}  // namespace
TENON_KERNEL_WITH(batch_norm_train, (sdk::Traits{.in_place = true, .epilogue = true, .residual = true}), float, sdk::BFloat16)
}  // namespace several

namespace {

constexpr sdk::KernelRow rows[] = {
    {TENON_OP_Add, 14, 0, &kernel_add},   {TENON_OP_Neg, 13, 0, &kernel_neg},
    {TENON_OP_Relu, 14, 0, &kernel_relu}, {TENON_OP_Reshape, 14, 0, &kernel_reshape},
    {TENON_OP_Cast, 13, 0, &kernel_cast}, {TENON_OP_BatchNormTrain, 2, 0, &several::kernel_batch_norm_train},
    {TENON_OP_NONE, 0, 0, nullptr},
};
const sdk::BackendSpec& spec() {
  static constexpr sdk::BackendSpec several{"several", "1", "tests", "kernels with several results", nullptr, 1, 0, {}, [](sdk::Host host) {
                                              return sdk::make_cpu_backend(host, "kernels with several results");
                                            }};
  return several;
}
constexpr tenon_backend_query_fn query = sdk::query<spec, rows>;

/// One norm of (2, 3) with running statistics that are updated in place.
struct Norm {
  Net net;
  std::uint32_t x, scale, running[2], next[2], y, mean, inverse_std;

  explicit Norm(bool mean_is_read = false) {
    x = net.input({2, 3});
    scale = net.parameter({3});
    for (auto& v : running) v = net.parameter({3});
    for (auto& v : next) v = net.output({3});
    y = net.internal({2, 3});
    mean = mean_is_read ? net.internal({3}) : net.output({3});
    inverse_std = net.output({3});
    tenon_attributes_batch_norm attributes{.struct_size = sizeof attributes, .axis = 1};
    net.node(TENON_OP_BatchNormTrain, {x, scale, scale, running[0], running[1]}, {y, next[0], next[1], mean, inverse_std}, attributes);
    for (int i = 0; i < 2; ++i) net.donate(running[i], next[i]);
  }
};

/// Runs with x = 1, 2, ... -6, scale = 1, 2, 3 and running statistics from 5 and 7; checks the other results and returns the first.
Floats run_of(Norm& norm, std::uint32_t result, std::uint32_t kernels) {
  Session session(1, query);
  Run run(session, norm.net);
  CHECK(run.info.kernel_count == kernels);
  for (std::uint32_t v = 0; v < norm.net.values.size(); ++v) {
    if (norm.net.values[v].kind == TENON_VALUE_INPUT) run.set(v, {1, -2, 3, -4, 5, -6});
  }
  run.set(norm.scale, {1, 2, 3});
  run.set(norm.running[0], {5, 5, 5});
  run.set(norm.running[1], {7, 7, 7});
  run();
  CHECK(run.get(norm.next[0]) == Floats{6, 6, 6});
  CHECK(run.get(norm.next[1]) == Floats{8, 8, 8});
  CHECK(run.get(norm.inverse_std) == Floats{20, 20, 20});
  return run.get(result);
}

TEST_CASE("sdk: residual and activation after the first of several results are fused with it") {
  Norm norm;
  const auto residual = norm.net.input({2, 3}), sum = norm.net.internal({2, 3}), z = norm.net.output({2, 3});
  norm.net.node(TENON_OP_Add, {norm.y, residual}, {sum});
  norm.net.node(TENON_OP_Relu, {sum}, {z});
  CHECK(run_of(norm, z, 1) == Floats{3, 0, 9, 0, 12, 0});
}

TEST_CASE("sdk: ops after a 16-bit kernel are its epilogue, although they compute in f32 on their own") {
  Norm norm;
  Net& net = norm.net;
  const auto residual = net.input({2, 3}), sum = net.internal({2, 3}), z = net.output({2, 3});
  net.node(TENON_OP_Add, {residual, norm.y}, {sum});
  net.node(TENON_OP_Relu, {sum}, {z});
  for (const std::uint32_t v : {norm.x, norm.y, residual, sum, z}) net.values[v].dtype = TENON_DTYPE_BF16;
  for (const bool is_read : {false, true}) {
    if (is_read) {  // another reader, so its conversion stays
      const auto other = net.output({2, 3});
      net.values[other].dtype = TENON_DTYPE_BF16;
      net.node(TENON_OP_Neg, {residual}, {other});
    }
    Session session(1, query);
    Run run(session, net);
    CHECK(run.info.kernel_count == (is_read ? 4 : 1));  // conversion, negation, conversion
    for (const std::uint32_t v : {norm.x, residual}) {
      const float values[] = {1, -2, 3, -4, 5, -6};
      for (int i = 0; i < 6; ++i) run.data<std::uint16_t>(v)[i] = narrowed<sdk::BFloat16>(values[i]).bits;
    }
    run.set(norm.scale, {1, 2, 3});
    for (const std::uint32_t v : norm.running) run.set(v, {5, 5, 5});
    run();
    const float expected[] = {3, 0, 9, 0, 12, 0};
    for (int i = 0; i < 6; ++i) CHECK(widened(sdk::BFloat16{run.data<std::uint16_t>(z)[i]}) == expected[i]);
    CHECK(run.get(norm.next[0]) == Floats{6, 6, 6});
  }
}

TEST_CASE("sdk: an addend that depends on another result of the same kernel is not fused") {
  Norm norm(true);
  const auto negative = norm.net.internal({3}), z = norm.net.output({2, 3});
  norm.net.node(TENON_OP_Neg, {norm.mean}, {negative});
  norm.net.node(TENON_OP_Add, {norm.y, negative}, {z});
  CHECK(run_of(norm, z, 3) == Floats{-8, -10, -4, -13, -3, -13});
}

TEST_CASE("sdk: another result of a kernel is no bias of its first") {
  Norm norm(true);
  const auto z = norm.net.output({2, 3});
  norm.net.node(TENON_OP_Add, {norm.y, norm.mean}, {z});
  CHECK(run_of(norm, z, 2) == Floats{12, 10, 16, 7, 17, 7});
}

TEST_CASE("sdk: a conversion whose result is expected stays, although a residual is read before it") {
  Norm norm;
  Net& net = norm.net;
  const auto residual = net.input({2, 3}), wide = net.output({2, 3}), own = net.internal({2, 3}), sum = net.internal({2, 3}),
             z = net.output({2, 3});
  for (const std::uint32_t v : {norm.x, norm.y, residual, z}) net.values[v].dtype = TENON_DTYPE_BF16;
  tenon_attributes_cast to{.struct_size = sizeof to, .to = TENON_DTYPE_F32};
  net.node(TENON_OP_Cast, {residual}, {wide}, to);
  net.node(TENON_OP_Cast, {norm.y}, {own}, to);
  net.node(TENON_OP_Add, {own, wide}, {sum});
  to.to = TENON_DTYPE_BF16;
  net.node(TENON_OP_Cast, {sum}, {z}, to);
  Session session(1, query);
  Run run(session, net);
  for (int i = 0; i < 6; ++i) {
    run.data<std::uint16_t>(norm.x)[i] = 0;
    run.data<std::uint16_t>(residual)[i] = narrowed<sdk::BFloat16>(2).bits;
  }
  run.set(norm.scale, {1, 2, 3});
  for (const std::uint32_t v : norm.running) run.set(v, {5, 5, 5});
  run();
  CHECK(run.get(wide) == Floats(6, 2.0f));
  CHECK(widened(sdk::BFloat16{run.data<std::uint16_t>(z)[2]}) == 5);
}

TEST_CASE("sdk: an addend that a result of the same kernel overwrites is read before") {
  Norm norm;
  const auto z = norm.net.output({2, 3});
  norm.net.node(TENON_OP_Add, {norm.y, norm.running[0]}, {z});
  CHECK(run_of(norm, z, 2) == Floats{7, 5, 11, 2, 12, 2});  // a copy of the overwritten addend, and the norm
}

}  // namespace
}  // namespace tenon::sdk_test
