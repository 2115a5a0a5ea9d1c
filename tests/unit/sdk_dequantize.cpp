// SPDX-License-Identifier: Apache-2.0
// Traits::dequantize: the nodes after a product of integers as its epilogue.
#include "sdk_testing.h"

#include <tenon/sdk/backend.h>

#include <algorithm>
#include <cmath>

namespace tenon::sdk_test {

extern const sdk::Kernel kernel_relu;

namespace integers {
namespace {

/// (m, 1) times (1, n), and its epilogue.
template <class T>
void matmul_integer(const sdk::Call& call) {
  ++probe.kernels;
  const std::int64_t m = call.inputs[0].shape[0], n = call.inputs[1].shape[1];
  const sdk::Epilogue& e = call.epilogue;
  for (std::int64_t i = 0; i < m * n; ++i) {
    const std::int32_t sum = call.input<T>(0)[i / n] * call.input<std::int8_t>(1)[i % n];
    if (e.scale == nullptr) {
      call.output<std::int32_t>(0)[i] = sum;
      continue;
    }
    float y = static_cast<float>(sum) * e.scale->as<const float>()[e.scale->count == 1 ? 0 : i % n];
    if (e.bias != nullptr) y += e.bias->as<const float>()[i % n];
    if (e.residual != nullptr) y += e.residual->as<const float>()[i];
    if (e.activation == sdk::Activation::relu) y = std::max(y, 0.0f);
    if (e.y_scale == nullptr) {
      call.output<float>(0)[i] = y;
    } else {
      const int zero = e.y_zero_point == nullptr ? 0 : *e.y_zero_point->as<const std::uint8_t>();
      call.output<std::uint8_t>(0)[i] =
          static_cast<std::uint8_t>(std::nearbyint(y / *e.y_scale->as<const float>()) + static_cast<float>(zero));
    }
  }
}
template <class T>
void add(const sdk::Call& call) {
  ++probe.kernels;
  const std::int64_t count = call.inputs[1].count;
  for (std::int64_t i = 0; i < call.outputs[0].count; ++i) call.output<T>(0)[i] = call.input<T>(0)[i] + call.input<T>(1)[i % count];
}
template <class T>
void dequantize_linear(const sdk::Call& call) {
  ++probe.kernels;
  const std::int64_t count = call.inputs[1].count;
  for (std::int64_t i = 0; i < call.outputs[0].count; ++i) {
    const std::int32_t zero = call.has_input(2) ? call.input<std::int32_t>(2)[0] : 0;
    call.output<T>(0)[i] = static_cast<T>(call.input<std::int32_t>(0)[i] - zero) * call.input<T>(1)[i % count];
  }
}
template <class T>
void quantize_linear(const sdk::Call& call) {
  ++probe.kernels;
  for (std::int64_t i = 0; i < call.outputs[0].count; ++i) {
    const int zero = call.has_input(2) ? call.input<std::uint8_t>(2)[0] : 0;
    call.output<std::uint8_t>(0)[i] =
        static_cast<std::uint8_t>(std::nearbyint(call.input<T>(0)[i] / call.input<T>(1)[0]) + static_cast<T>(zero));
  }
}

}  // namespace
TENON_KERNEL_WITH(matmul_integer, (sdk::Traits{.epilogue = true, .residual = true, .dequantize = true}), std::uint8_t)
TENON_KERNEL(add, float, std::int32_t)
TENON_KERNEL(dequantize_linear, float)
TENON_KERNEL(quantize_linear, float)
}  // namespace integers

namespace {

constexpr sdk::KernelRow rows[] = {
    {TENON_OP_Add, 14, 0, &integers::kernel_add},
    {TENON_OP_Relu, 14, 0, &kernel_relu},
    {TENON_OP_DequantizeLinear, 21, 1, &integers::kernel_dequantize_linear},
    {TENON_OP_QuantizeLinear, 21, 0, &integers::kernel_quantize_linear},
    {TENON_OP_MatMulInteger, 10, 0, &integers::kernel_matmul_integer},
    {TENON_OP_NONE, 0, 0, nullptr},
};
const sdk::BackendSpec& spec() {
  static constexpr sdk::BackendSpec integral{"integral", "1", "tests", "products of integers", nullptr, 1, 0, {}, [](sdk::Host host) {
                                               return sdk::make_cpu_backend(host, "products of integers");
                                             }};
  return integral;
}
constexpr tenon_backend_query_fn query = sdk::query<spec, rows>;

/// a (2, 1) times b (1, 3), and the values after it.
struct Product {
  Net net;
  std::uint32_t a, b, sums;
  std::vector<std::pair<std::uint32_t, Floats>> given;

  explicit Product(std::uint32_t kind = TENON_VALUE_INTERNAL) {
    a = net.input({2, 1}, {}, TENON_DTYPE_U8);
    b = net.input({1, 3}, {}, TENON_DTYPE_I8);
    sums = kind == TENON_VALUE_INTERNAL ? net.internal({2, 3}, TENON_DTYPE_I32) : net.output({2, 3}, TENON_DTYPE_I32);
    net.node(TENON_OP_MatMulInteger, {a, b}, {sums});
  }
  std::uint32_t floats(const Shape& shape, const Floats& values) {
    given.emplace_back(net.input(shape), values);
    return given.back().first;
  }
  std::uint32_t next(bool last, tenon_dtype dtype = TENON_DTYPE_F32) {
    return last ? net.output({2, 3}, dtype) : net.internal({2, 3}, dtype);
  }
  std::uint32_t dequantize(const Shape& shape, const Floats& scale, bool last = false, std::uint32_t centre = TENON_NO_INDEX) {
    const auto y = next(last);
    std::vector<std::uint32_t> operands{sums, floats(shape, scale)};
    if (centre != TENON_NO_INDEX) operands.push_back(centre);
    net.node(TENON_OP_DequantizeLinear, operands, {y});
    return y;
  }
  std::uint32_t quantize(std::uint32_t x, const Shape& shape, const Floats& scale) {
    const auto y = next(true, TENON_DTYPE_U8), zero = net.input({}, {}, TENON_DTYPE_U8);
    zero_point = zero;
    tenon_attributes_cast to{.struct_size = sizeof to, .to = TENON_DTYPE_U8};
    net.node(TENON_OP_QuantizeLinear, {x, floats(shape, scale), zero}, {y}, to);
    return y;
  }
  std::uint32_t zero_point = TENON_NO_INDEX;
};

/// Runs with a = 3, 5 and b = 1, -2, 4 in as many kernels.
struct ProductRun {
  Session session{1, query};
  Run run;
  ProductRun(Product& product, std::uint32_t kernels) : run(session, product.net) {
    CHECK(run.info.kernel_count == kernels);
    for (int i = 0; i < 2; ++i) run.data<std::uint8_t>(product.a)[i] = static_cast<std::uint8_t>(3 + 2 * i);
    const std::int8_t b[] = {1, -2, 4};
    std::copy_n(b, 3, run.data<std::int8_t>(product.b));
    for (const auto& [value, data] : product.given) run.set(value, data);
    if (product.zero_point != TENON_NO_INDEX) *run.data<std::uint8_t>(product.zero_point) = 100;
    run();
  }
};

TEST_CASE("sdk: a product of integers is dequantised, continued and quantised in one call") {
  Product product;
  const auto wide = product.dequantize({3}, {0.5f, 1, 2}), biased = product.next(false), sum = product.next(false),
             active = product.next(false);
  product.net.node(TENON_OP_Add, {wide, product.floats({3}, {1, 2, 3})}, {biased});
  product.net.node(TENON_OP_Add, {biased, product.floats({2, 3}, {0, 1, 2, 3, 4, 5})}, {sum});
  product.net.node(TENON_OP_Relu, {sum}, {active});
  const auto y = product.quantize(active, {}, {0.5f});
  ProductRun done(product, 1);
  const std::uint8_t expected[] = {105, 100, 158, 113, 100, 196};  // 2.5, -3, 29, 6.5, -4, 48
  for (int i = 0; i < 6; ++i) CHECK(done.run.data<std::uint8_t>(y)[i] == expected[i]);
}

TEST_CASE("sdk: a dequantised product may be the plan's result") {
  Product product;
  const auto y = product.dequantize({}, {0.5f}, true);
  ProductRun done(product, 1);
  CHECK(done.run.get(y) == Floats{1.5f, -3, 6, 2.5f, -5, 10});
}

TEST_CASE("sdk: sums of integers are not continued by other nodes") {
  Product product;
  const auto bias = product.net.input({3}, {}, TENON_DTYPE_I32), sum = product.next(true, TENON_DTYPE_I32);
  product.net.node(TENON_OP_Add, {product.sums, bias}, {sum});
  Session session(1, query);
  Run run(session, product.net);
  CHECK(run.info.kernel_count == 2);
}

TEST_CASE("sdk: sums that are read elsewhere, or by other scales or with a zero point, are dequantised by a kernel of their own") {
  Product result(TENON_VALUE_OUTPUT);
  auto y = result.dequantize({}, {0.5f}, true);
  CHECK(ProductRun(result, 2).run.get(y) == Floats{1.5f, -3, 6, 2.5f, -5, 10});

  Product each;  // a scale for each element
  y = each.dequantize({2, 3}, {1, 1, 1, 2, 2, 2}, true);
  CHECK(ProductRun(each, 2).run.get(y) == Floats{3, -6, 12, 10, -20, 40});

  Product centred;
  const auto zero = centred.net.input({}, {}, TENON_DTYPE_I32);
  y = centred.dequantize({}, {1}, true, zero);
  Session session(1, query);
  Run run(session, centred.net);
  CHECK(run.info.kernel_count == 2);
}

TEST_CASE("sdk: a result with several scales is quantised by a kernel of its own") {
  Product product;
  const auto wide = product.dequantize({}, {1});
  product.quantize(wide, {3}, {0.5f, 0.5f, 0.5f});
  Session session(1, query);
  Run run(session, product.net);
  CHECK(run.info.kernel_count == 2);
}

}  // namespace
}  // namespace tenon::sdk_test
