// SPDX-License-Identifier: Apache-2.0
// Traits::quantized_attention: two products of integers and the softmax between them as one call.
#include "sdk_testing.h"

#include <tenon/sdk/backend.h>

#include <algorithm>

namespace tenon::sdk_test {
namespace attention_of_integers {
namespace {

/// What the last fused call was given.
struct Seen {
  float score_scale = 0, factor = 0, mask = 0, p_scale = 0, scale = 0, y_scale = 0;
  int p_zero_point = -1, v_zero_point = -1;
} seen;

template <class T>
void matmul_integer(const sdk::Call& call) {
  ++probe.kernels;
  if (call.input_count != sdk::attention_input::count) return;
  const auto number = [&](std::uint32_t i) { return call.has_input(i) ? *call.input<float>(i) : 0.0f; };
  const auto byte = [&](std::uint32_t i) { return call.has_input(i) ? int{*call.input<std::uint8_t>(i)} : -1; };
  seen = {number(sdk::attention_input::score_scale), number(sdk::attention_input::score_factor),
          number(sdk::attention_input::mask),        number(sdk::attention_input::p_scale),
          *call.epilogue.scale->as<const float>(),   call.epilogue.y_scale == nullptr ? 0.0f : *call.epilogue.y_scale->as<const float>(),
          byte(sdk::attention_input::p_zero_point),  byte(sdk::attention_input::v_zero_point)};
}
template <class T>
void nothing(const sdk::Call&) {
  ++probe.kernels;
}
/// Five queries are refused.
bool takes(const sdk::Call& call) {
  return call.inputs[0].shape[1] != 5;
}

}  // namespace
TENON_KERNEL_WITH(matmul_integer, (sdk::Traits{.epilogue = true, .dequantize = true, .quantized_attention = takes}), std::uint8_t)
struct kernel_of_nothing {
  template <class T>
  void operator()(const sdk::Call& call) const {
    nothing<T>(call);
  }
};
constinit const sdk::Kernel kernel_nothing = sdk::detail::kernel_of<kernel_of_nothing, float>({});
}  // namespace attention_of_integers

namespace {

using attention_of_integers::kernel_nothing;
using attention_of_integers::seen;

constexpr sdk::KernelRow rows[] = {
    {TENON_OP_Add, 14, 0, &kernel_nothing},
    {TENON_OP_Mul, 14, 0, &kernel_nothing},
    {TENON_OP_Softmax, 13, 0, &kernel_nothing},
    {TENON_OP_DequantizeLinear, 21, 1, &kernel_nothing},
    {TENON_OP_QuantizeLinear, 21, 0, &kernel_nothing},
    {TENON_OP_MatMulInteger, 10, 0, &attention_of_integers::kernel_matmul_integer},
    {TENON_OP_NONE, 0, 0, nullptr},
};
const sdk::BackendSpec& spec() {
  static constexpr sdk::BackendSpec attends{"attends", "1", "tests", "attention of integers", nullptr, 1, 0, {}, [](sdk::Host host) {
                                              return sdk::make_cpu_backend(host, "attention of integers");
                                            }};
  return attends;
}
constexpr tenon_backend_query_fn query = sdk::query<spec, rows>;

struct Chain {
  bool factor = true, mask = true, other_zero_point = false, other_reader = false, quantized = true;
  std::int64_t queries = 2, axis = 2, stacks_of_v = 1;

  std::uint32_t kernels(std::uint32_t fusion = TENON_FUSION_FULL) const {
    Net net;
    std::vector<std::pair<std::uint32_t, float>> given;
    const auto number = [&](float x) {
      given.emplace_back(net.input({}), x);
      return given.back().first;
    };
    const Shape scores{1, queries, 4};
    const auto q = net.input({1, queries, 3}, {}, TENON_DTYPE_U8), k = net.input({1, 3, 4}, {}, TENON_DTYPE_U8),
               v = net.input({stacks_of_v, 4, 6}, {}, TENON_DTYPE_U8), zero = net.input({}, {}, TENON_DTYPE_U8),
               other = net.input({}, {}, TENON_DTYPE_U8);
    const auto sums = net.internal(scores, TENON_DTYPE_I32);
    net.node(TENON_OP_MatMulInteger, {q, k}, {sums});
    auto last = net.internal(scores);
    net.node(TENON_OP_DequantizeLinear, {sums, number(0.5f)}, {last});
    if (factor) {
      const auto scaled = net.internal(scores);
      net.node(TENON_OP_Mul, {number(0.25f), last}, {scaled});
      last = scaled;
    }
    if (mask) {
      const auto masked = net.internal(scores), added = net.input({queries, 4});
      given.emplace_back(added, 7.0f);
      net.node(TENON_OP_Add, {last, added}, {masked});
      last = masked;
    }
    const auto weights = net.internal(scores), p = net.internal(scores, TENON_DTYPE_U8);
    tenon_attributes_axis along{.struct_size = sizeof along, .axis = axis};
    net.node(TENON_OP_Softmax, {last}, {weights}, along);
    tenon_attributes_cast to{.struct_size = sizeof to, .to = TENON_DTYPE_U8};
    net.node(TENON_OP_QuantizeLinear, {weights, number(0.125f), zero}, {p}, to);
    if (other_reader) net.node(TENON_OP_DequantizeLinear, {p, number(1)}, {net.output(scores)});
    const Shape result{stacks_of_v, queries, 6};
    const auto products = net.internal(result, TENON_DTYPE_I32);
    net.node(TENON_OP_MatMulInteger, {p, v, other_zero_point ? other : zero, other}, {products});
    const auto y = quantized ? net.internal(result) : net.output(result);
    net.node(TENON_OP_DequantizeLinear, {products, number(3)}, {y});
    if (quantized) net.node(TENON_OP_QuantizeLinear, {y, number(5)}, {net.output(result, TENON_DTYPE_U8)}, to);
    Session session(1, query);
    Run run(session, net, options(fusion));
    for (const auto& [value, x] : given) run.set(value, Floats(static_cast<std::size_t>(net.values[value].count()), x));
    *run.data<std::uint8_t>(zero) = 9;
    *run.data<std::uint8_t>(other) = 8;
    seen = {};
    run();
    return run.info.kernel_count;
  }
};

TEST_CASE("sdk: an attention of integers is one call with the operands of its nodes") {
  CHECK(Chain{}.kernels() == 1);
  CHECK(seen.score_scale == 0.5f);
  CHECK(seen.factor == 0.25f);
  CHECK(seen.mask == 7);
  CHECK(seen.p_scale == 0.125f);
  CHECK(seen.p_zero_point == 9);
  CHECK(seen.v_zero_point == 8);
  CHECK(seen.scale == 3);
  CHECK(seen.y_scale == 5);
  CHECK(Chain{.factor = false, .mask = false, .quantized = false}.kernels() == 1);
  CHECK(seen.score_scale == 0.5f);
  CHECK(seen.factor == 0);
  CHECK(seen.mask == 0);
  CHECK(seen.y_scale == 0);
}

TEST_CASE("sdk: other chains of products of integers and a softmax run as written") {
  CHECK(Chain{}.kernels(TENON_FUSION_OFF) == 9);
  // two products with their epilogues, and Mul, Add, Softmax and QuantizeLinear
  CHECK(Chain{.other_zero_point = true}.kernels() == 6);
  CHECK(Chain{.queries = 5}.kernels() == 6);
  CHECK(Chain{.axis = 1}.kernels() == 6);
  CHECK(Chain{.stacks_of_v = 2}.kernels() == 6);
  CHECK(Chain{.other_reader = true}.kernels() == 7);
  CHECK(seen.p_scale == 0);
}

}  // namespace
}  // namespace tenon::sdk_test
