// SPDX-License-Identifier: Apache-2.0
// Exporting to ONNX, op by op: a graph that is written, read and run again computes what it computed before.
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <set>
#include <span>

#include <tenon/functions.h>

#include "graph/op.h"
#include "onnx/export/rules.h"
#include "onnx_testing.h"

using namespace tenon;
using namespace tenon::test;

namespace {

using Values = std::vector<Value>;

const std::vector<DType> floating = {DType::f32, DType::f64, DType::f16, DType::bf16};
const std::vector<DType> numbers = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64};
const std::vector<DType> all = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8,  DType::i16,    DType::i32,
                                DType::i64, DType::u8,  DType::u16, DType::u32,  DType::u64, DType::boolean};

/// A graph whose results are its outputs. Attributes that are numbers are ones that f32 holds, as ONNX does. Inputs named positive* and
/// label* have elements of that kind.
struct Case {
  const char* name;
  std::function<Values(Graph& graph, DType dtype)> build;
  std::vector<DType> dtypes = floating;
};

/// Numbers in [-2, 2), or [0.5, 2) for positive*; integers -2 to 1, or 0 and 1 for label* and unsigned ones, 1 and 2 for positive*.
Tensor elements(const ValueInfo& input, std::mt19937_64& random) {
  const bool positive = input.name.starts_with("positive");
  const bool label = input.name.starts_with("label") || input.dtype == DType::boolean || name_of(input.dtype)[0] == 'u';
  Tensor wide = Tensor::empty(DType::f64, input.shape);
  auto* element = wide.data<double>();
  for (std::int64_t i = 0; i < wide.count(); ++i) {
    const double unit = std::uniform_real_distribution<double>(0, 1)(random);
    if (is_floating(input.dtype)) {
      element[i] = positive ? 0.5 + 1.5 * unit : 4 * unit - 2;
    } else {
      element[i] = positive ? 1 + std::floor(2 * unit) : (label ? std::floor(2 * unit) : std::floor(4 * unit) - 2);
    }
  }
  return wide.to(input.dtype);
}

/// Equal, or within 16 epsilon of the dtype, of the element or of 1: an op that becomes several is rounded a few times more.
void check_close(const Tensor& expected, const Tensor& got) {
  REQUIRE(got.dtype() == expected.dtype());
  REQUIRE(got.shape() == expected.shape());
  const std::vector<double> a = expected.to(DType::f64).to_vector<double>(), b = got.to(DType::f64).to_vector<double>();
  const double epsilon = is_floating(expected.dtype()) ? 16 * epsilon_of(expected.dtype()) : 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool same =
        a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])) || std::fabs(a[i] - b[i]) <= epsilon * std::max(1.0, std::fabs(a[i]));
    if (!same) CAPTURE(i);
    if (!same) CHECK(a[i] == b[i]);
    if (!same) return;
  }
}

Value input(Graph& graph, const char* name, DType dtype, const Shape& shape) {
  return graph.input(name, dtype, shape);
}

Value apply(tenon_op op, const Values& inputs, const Attributes& attributes = {}, const NodeOptions& options = {}) {
  return graph::apply_op(op, inputs, attributes, options);
}

Case unary(const char* name, Value (*function)(Value), const std::vector<DType>& dtypes = floating, const char* of = "x") {
  return {name, [=](Graph& g, DType t) { return Values{function(input(g, of, t, {2, 3}))}; }, dtypes};
}
Case binary(const char* name, Value (*function)(Value, Value), const std::vector<DType>& dtypes, const char* a = "x") {
  return {name, [=](Graph& g, DType t) { return Values{function(input(g, a, t, {2, 3}), input(g, "positive", t, {3}))}; }, dtypes};
}
Case reduction(tenon_op op, const std::vector<DType>& dtypes) {
  return {op_name(op),
          [=](Graph& g, DType t) {
            const Value x = input(g, "x", t, {2, 3, 4});
            return Values{apply(op, {x}, graph::axes_attributes("reduction", {0, 2}, true)),
                          apply(op, {x}, graph::axes_attributes("reduction", {1})), apply(op, {x}, graph::axes_attributes("reduction", {})),
                          apply(op, {input(g, "scalar", t, {})}, graph::axes_attributes("reduction", {}))};
          },
          dtypes};
}
Case windows(const char* name, ops::WindowOptions options) {
  return {name, [=](Graph& g, DType t) {
            const Value x = input(g, "x", t, {2, 3, 6, 7});
            const auto [y, indices] = ops::max_pool_with_indices(x, {3, 2}, options);
            ops::WindowOptions undilated = options;
            undilated.dilations = {};
            return Values{y, indices, ops::average_pool(x, {3, 2}, undilated, true), ops::average_pool(x, {3, 2}, undilated, false)};
          }};
}
Case recurrent(const char* name, ops::Direction direction, bool states, std::int64_t gates,
               std::function<Values(Value x, const ops::RecurrentValues& values)> function) {
  return {name, [=](Graph& g, DType t) {
            const std::int64_t d = direction == ops::Direction::both ? 2 : 1;
            ops::RecurrentValues values{.w = input(g, "w", t, {d, gates * 3, 2}), .r = input(g, "r", t, {d, gates * 3, 3})};
            if (states) {
              values.b = input(g, "b", t, {d, 2 * gates * 3});
              values.h0 = input(g, "h0", t, {d, 2, 3});
              if (gates == 4) values.c0 = input(g, "c0", t, {d, 2, 3});
            }
            return function(input(g, "x", t, {4, 2, 2}), values);
          }};
}
Values results(const ops::RecurrentResult& result) {
  return result.c.present() ? Values{result.y, result.h, result.c} : Values{result.y, result.h};
}

Case attention(const char* name, std::int64_t groups, bool mask, bool causal) {
  return {name, [=](Graph& g, DType t) {
            return Values{ops::attention(input(g, "q", t, {2, 4, 3, 8}), input(g, "k", t, {2, groups, 5, 8}),
                                         input(g, "v", t, {2, groups, 5, 6}),
                                         {.mask = mask ? input(g, "mask", t, {2, 1, 3, 5}) : Value(), .causal = causal})};
          }};
}

std::vector<Case> make_cases() {
  std::vector<Case> cases;
#define TENON_CASE(op, function) \
  cases.push_back(unary(#op, ops::function, TENON_OP_##op == TENON_OP_Not ? std::vector{DType::boolean} : floating, "positive"));
  TENON_UNARY_FUNCTIONS(TENON_CASE)
#undef TENON_CASE
#define TENON_CASE(op, function) \
  cases.push_back(binary(#op, ops::function, TENON_OP_##op == TENON_OP_Pow ? floating : numbers, "positive_x"));
  TENON_BINARY_FUNCTIONS(TENON_CASE)
#undef TENON_CASE
#define TENON_CASE(op, function)                                                                                        \
  cases.push_back(binary(#op, ops::function,                                                                            \
                         TENON_OP_##op == TENON_OP_And || TENON_OP_##op == TENON_OP_Or || TENON_OP_##op == TENON_OP_Xor \
                             ? std::vector{DType::boolean}                                                              \
                             : all));
  TENON_BINARY_BOOL_FUNCTIONS(TENON_CASE)
#undef TENON_CASE
  for (const tenon_op op : {TENON_OP_ReduceSum, TENON_OP_ReduceMax, TENON_OP_ReduceMin, TENON_OP_ReduceProd}) {
    cases.push_back(reduction(op, numbers));
  }
  for (const tenon_op op :
       {TENON_OP_ReduceMean, TENON_OP_ReduceL1, TENON_OP_ReduceL2, TENON_OP_ReduceSumSquare, TENON_OP_ReduceLogSumExp}) {
    cases.push_back(reduction(op, floating));
  }
  const std::vector<Case> others = {
      unary("Neg of integers", ops::neg, {DType::i32, DType::i64}),
      unary("Abs and Sign of integers", [](Value x) { return ops::add(ops::abs(x), ops::sign(x)); }, {DType::i32, DType::i64}),
      unary("functions below 0",
            [](Value x) {
              return ops::add(ops::add(ops::expm1(x), ops::silu(x)), ops::add(ops::add(ops::gelu(x), ops::mish(x)), ops::relu(x)));
            }),
      {"Where",
       [](Graph& g, DType t) {
         return Values{ops::where(input(g, "c", DType::boolean, {2, 1}), input(g, "a", t, {2, 3}), input(g, "b", t, {3}))};
       },
       all},
      {"Clip",
       [](Graph& g, DType t) {
         const Value x = input(g, "x", t, {2, 3});
         return Values{ops::clip(x, -0.5, 0.75), ops::clip(x, 0, HUGE_VAL), ops::clip(x, -HUGE_VAL, 0), ops::clip(x, 1, -1),
                       ops::clip(x, -1e30, 1e30)};
       },
       numbers},
      {"activations with a number",
       [](Graph& g, DType t) {
         const Value x = input(g, "x", t, {2, 3});
         return Values{ops::leaky_relu(x, 0.25), ops::elu(x, 0.75), ops::gelu(x), ops::gelu(x, true)};
       }},
      {"Cast",
       [](Graph& g, DType t) {
         const Value x = input(g, "positive", t, {2, 3});
         Values results;
         for (const DType to : all) results.push_back(ops::cast(x, to));
         return results;
       },
       all},
      {"ArgMax and ArgMin",
       [](Graph& g, DType t) {
         const Value x = input(g, "x", t, {2, 3, 4});
         return Values{ops::arg_max(x, 1), ops::arg_min(x, -1, true)};
       },
       numbers},
      {"shapes",
       [](Graph& g, DType t) {
         const Value x = input(g, "x", t, {2, 3, 4}), empty = input(g, "empty", t, {0, 3});
         return Values{ops::reshape(x, Shape{4, 6}),
                       ops::reshape(x, Shape{24}),
                       ops::reshape(empty, Shape{3, 0}),
                       ops::flatten(x, 2),
                       ops::flatten(x, 0),
                       ops::transpose(x, {2, 0, 1}),
                       ops::expand(ops::reshape(x, Shape{2, 1, 12}), {2, 5, 12}),
                       ops::expand(x, {2, 2, 3, 4})};
       },
       all},
      {"slices",
       [](Graph& g, DType t) {
         const Value x = input(g, "x", t, {5, 6});
         return Values{ops::slice(x, 0, 1, 4), ops::slice(x, 1, 0, 6, 2), ops::flip(x, {0, 1}), ops::slice(x, 1, 4, 0, -3),
                       ops::slice(x, 0, 2, 2)};
       },
       all},
      {"Pad",
       [](Graph& g, DType t) {
         const Value x = input(g, "x", t, {3, 4});
         return Values{ops::pad(x, {{1, 2}, {0, 1}}, 1), ops::pad(x, {{1, 2}, {3, 0}}, 0, ops::PadMode::reflect),
                       ops::pad(x, {{0, 2}, {4, 1}}, 0, ops::PadMode::edge)};
       },
       all},
      {"Concat and Split",
       [](Graph& g, DType t) {
         const Value x = input(g, "x", t, {3, 4});
         const Values parts = ops::split(x, {1, 0, 3}, 1);
         return Values{parts[0], parts[2], ops::concat({x, parts[0], x}, 1)};
       },
       all},
      {"Gather and ScatterElements",
       [](Graph& g, DType t) {
         const Value x = input(g, "x", t, {2, 3}), i = input(g, "i", DType::i64, {2, 2}), j = input(g, "j", DType::i32, {2, 2});
         return Values{ops::gather(x, i, 1), ops::gather(x, j, 0), ops::gather_elements(x, i, 1),
                       ops::scatter_elements(x, g.constant(Tensor::of<std::int64_t>({0, -1, 2, 1}, {2, 2})), input(g, "u", t, {2, 2}), 1)};
       },
       all},
      {"ScatterElements with a reduction",
       [](Graph& g, DType t) {
         const Value x = input(g, "x", t, {2, 3}), i = input(g, "i", DType::i64, {2, 2}), u = input(g, "u", t, {2, 2});
         return Values{ops::scatter_elements(x, i, u, 1, ops::ScatterReduction::add),
                       ops::scatter_elements(x, i, u, 0, ops::ScatterReduction::mul)};
       },
       numbers},
      {"ScatterAdd",
       [](Graph& g, DType t) {
         const Value x = input(g, "x", t, {2, 3, 4}), i = input(g, "i", DType::i64, {2, 5}), j = input(g, "j", DType::i32, {});
         return Values{ops::scatter_add(x, i, input(g, "u0", t, {2, 5, 3, 4}), 0),
                       ops::scatter_add(x, i, input(g, "u1", t, {2, 2, 5, 4}), 1), ops::scatter_add(x, j, input(g, "u2", t, {2, 3}), 2)};
       },
       numbers},
      {"ScatterSlices",
       [](Graph& g, DType t) {
         const Value x = input(g, "x", t, {3, 2, 4}), i = g.constant(Tensor::of<std::int64_t>({0, -1}, {2}));
         return Values{ops::scatter_slices(x, i, input(g, "u0", t, {2, 2, 4}), 0),
                       ops::scatter_slices(x, i, input(g, "u1", t, {3, 2, 2}), 2),
                       ops::scatter_slices(x, input(g, "j", DType::i32, {}), input(g, "u2", t, {3, 4}), 1)};
       },
       all},
      {"ScatterSlices with a reduction",
       [](Graph& g, DType t) {
         const Value x = input(g, "x", t, {3, 2, 4}), i = input(g, "i", DType::i64, {2}), u = input(g, "u", t, {3, 2, 4});
         return Values{ops::scatter_slices(x, i, u, 1, ops::ScatterReduction::add),
                       ops::scatter_slices(x, i, u, 1, ops::ScatterReduction::mul)};
       },
       numbers},
      {"OneHot",
       [](Graph& g, DType t) {
         return Values{ops::one_hot(input(g, "i", DType::i64, {2, 3}), 2, t), ops::one_hot(input(g, "j", DType::i32, {3}), 1, t, 1, 0, 0)};
       },
       all},
      {"TopK",
       [](Graph& g, DType t) {
         const auto [values, indices] = ops::top_k(input(g, "x", t, {3, 5}), 2);
         const auto [small, places] = ops::top_k(input(g, "y", t, {3, 5}), 3, 0, false);
         return Values{values, indices, small, places};
       },
       numbers},
      {"CumSum",
       [](Graph& g, DType t) {
         const Value x = input(g, "x", t, {3, 5});
         return Values{ops::cum_sum(x), ops::cum_sum(x, 1, true), ops::cum_sum(x, 1, false, true)};
       },
       numbers},
      {"MatMul",
       [](Graph& g, DType t) {
         return Values{ops::matmul(input(g, "a", t, {2, 3, 4}), input(g, "b", t, {4, 2})),
                       ops::matmul(input(g, "u", t, {4}), input(g, "v", t, {4}))};
       }},
      {"Gemm",
       [](Graph& g, DType t) {
         const Value a = input(g, "a", t, {3, 4}), b = input(g, "b", t, {4, 2}), c = input(g, "c", t, {2});
         return Values{ops::gemm(a, b), ops::gemm(a, b, c, {.alpha = 0.5, .beta = 2}), ops::gemm(a, b, c, {.beta = 0}),
                       ops::gemm(b, a, {}, {.trans_a = true, .trans_b = true})};
       }},
      {"QuantizeLinear and DequantizeLinear",
       [](Graph& g, DType t) {
         const Value x = input(g, "x", t, {2, 3, 4}), scale = input(g, "positive", t, {}), scales = input(g, "positives", t, {3, 1});
         const Value all_scales = input(g, "positive_each", t, {2, 3, 4});
         const Value zero = input(g, "z", DType::i8, {}), zeros = input(g, "label", DType::u8, {3, 1});
         const Value q = input(g, "q", DType::i8, {2, 3, 4}), sums = input(g, "sums", DType::i32, {2, 3, 4});
         return Values{ops::quantize_linear(x, scale, zero, DType::i8),
                       ops::quantize_linear(x, scales, zeros),
                       ops::quantize_linear(x, scales, {}, DType::i8),
                       ops::quantize_linear(x, scale, {}, DType::i16),
                       ops::quantize_linear(x, all_scales, {}, DType::u16),
                       ops::dequantize_linear(q, scale, zero),
                       ops::dequantize_linear(q, scales),
                       ops::dequantize_linear(q, all_scales),
                       ops::dequantize_linear(sums, scale)};
       }},
      {"DynamicQuantizeLinear",
       [](Graph& g, DType t) {
         const auto [q, scale, zero_point] = ops::dynamic_quantize_linear(input(g, "x", t, {2, 3}));
         return Values{q, scale, zero_point};
       },
       {DType::f32}},
      {"MatMulInteger and ConvInteger",
       [](Graph& g, DType t) {
         const Value a = input(g, "a", t, {3, 4}), b = input(g, "label_b", DType::u8, {4, 2}), w = input(g, "w", DType::i8, {6, 2, 3, 2});
         const Value x = input(g, "x", t, {2, 4, 6, 7}), zero = input(g, "z", t, {}), zeros = input(g, "label", DType::u8, {2});
         ops::ConvOptions options;
         options.strides = {2, 1}, options.padding = {{1, 0}, {2, 1}}, options.groups = 2;
         return Values{ops::matmul_integer(a, b), ops::matmul_integer(a, b, zero), ops::matmul_integer(a, b, {}, zeros),
                       ops::conv_integer(x, w, {}, {}, options),
                       ops::conv_integer(x, w, zero, input(g, "w_zeros", DType::i8, {6}), options)};
       },
       {DType::u8, DType::i8}},
      {"QLinearMatMul and QLinearConv",
       [](Graph& g, DType t) {
         const Value a = input(g, "a", t, {3, 4}), b = input(g, "label_b", DType::u8, {4, 2}), w = input(g, "w", DType::i8, {6, 2, 3, 2});
         const Value x = input(g, "x", t, {2, 4, 6, 7}), zero = input(g, "z", t, {}), scale = input(g, "positive", DType::f32, {});
         const Value y_zero = input(g, "y_z", DType::i8, {}), byte_zero = input(g, "label", DType::u8, {});
         const ops::Quantized columns{b, input(g, "positive_b", DType::f32, {2}), input(g, "label_z", DType::u8, {2})};
         const ops::Quantized filters{w, input(g, "positive_w", DType::f32, {6}), input(g, "w_z", DType::i8, {6})};
         const ops::Quantized one_scale{w, scale, input(g, "w_z0", DType::i8, {})};
         ops::ConvOptions options;
         options.strides = {2, 1}, options.padding = {{1, 0}, {2, 1}}, options.groups = 2;
         return Values{ops::qlinear_matmul({a, scale, zero}, columns, scale, y_zero),
                       ops::qlinear_conv({x, scale, zero}, filters, scale, byte_zero, input(g, "bias", DType::i32, {6}), options),
                       ops::qlinear_conv({x, scale, zero}, one_scale, scale, y_zero, {}, options)};
       },
       {DType::u8, DType::i8}},
      {"MatMulNBits",
       [](Graph& g, DType t) {
         const Value a = input(g, "a", t, {2, 3, 40}), q = input(g, "label_q", DType::u8, {5, 3, 8}), bias = input(g, "b", t, {5});
         const ops::BlockQuantized nibbles{q, input(g, "s", t, {5, 3}), input(g, "label_z", DType::u8, {5, 2}), 4, 16};
         const ops::BlockQuantized bytes{input(g, "label_p", DType::u8, {5, 2, 32}), input(g, "r", t, {5, 2}), {}, 8, 32};
         return Values{ops::matmul_nbits(a, nibbles), ops::matmul_nbits(a, nibbles, bias), ops::matmul_nbits(a, bytes),
                       ops::matmul_nbits(a, bytes, bias)};
       }},
      {"Conv",
       [](Graph& g, DType t) {
         const Value x = input(g, "x", t, {2, 4, 6, 7}), line = input(g, "line", t, {2, 4, 9});
         ops::ConvOptions options;
         options.strides = {2, 1}, options.dilations = {1, 2}, options.padding = {{1, 0}, {2, 1}}, options.groups = 2;
         return Values{ops::conv(x, input(g, "w", t, {6, 2, 3, 2}), input(g, "b", t, {6}), options),
                       ops::conv1d(line, input(g, "w1", t, {3, 4, 3}))};
       }},
      {"ConvTranspose",
       [](Graph& g, DType t) {
         const Value x = input(g, "x", t, {2, 4, 5, 3}), w = input(g, "w", t, {4, 3, 3, 2});
         ops::ConvOptions options;
         options.strides = {3, 2}, options.padding = {{1, 0}, {0, 1}}, options.groups = 2;
         const Value y = ops::conv_transpose(x, w, input(g, "b", t, {6}), options, {2, 1});
         tenon_attributes_conv plain{
             .struct_size = 0, .groups = 1, .strides = {2, 2, 1}, .dilations = {1, 1, 1}, .pads_before = {}, .pads_after = {}};
         return Values{y, ops::conv_input_grad(x, input(g, "v", t, {4, 2, 3, 2}), {2, 2, 12, 6}, plain)};
       }},
      {"Im2Col and Col2Im",
       [](Graph& g, DType t) {
         ops::WindowOptions options;
         options.strides = {2, 1}, options.dilations = {1, 2}, options.padding = {{1, 0}, {2, 1}};
         const Value columns = ops::im2col(input(g, "x", t, {2, 3, 5, 6}), {3, 2}, options);
         return Values{columns, ops::col2im(columns, {5, 6}, {3, 2}, options), ops::im2col(input(g, "line", t, {2, 3, 7}), {2})};
       },
       numbers},
      windows("pools", {}),
      windows("pools with padding", {.strides = {2, 1}, .dilations = {1, 2}, .padding = {{1, 1}, {0, 1}}}),
      windows("pools with a last, partial window", {.strides = {2, 2}, .dilations = {}, .padding = {{1, 0}, {1, 1}}, .ceil_mode = true}),
      {"Resize",
       [](Graph& g, DType t) {
         const Value x = input(g, "x", t, {2, 3, 4, 5});
         return Values{ops::upsample(x, {2, 3}),
                       ops::upsample(x, {2, 2}, ops::ResizeMode::linear),
                       ops::resize(x, {7, 3}),
                       ops::resize(x, {3, 9}, {.mode = ops::ResizeMode::linear, .coordinates = ops::Coordinates::align_corners}),
                       ops::resize(x, {6, 7}, {.coordinates = ops::Coordinates::asymmetric, .rounding = ops::NearestRounding::floor}),
                       ops::resize(x, {6, 7}, {.mode = ops::ResizeMode::linear, .coordinates = ops::Coordinates::pytorch_half_pixel})};
       }},
      {"BatchNormalization",
       [](Graph& g, DType t) {
         const DType s = graph::accumulation_dtype(t);
         const auto statistic = [&](const char* name) { return input(g, name, s, {3}); };
         const Value scale = statistic("scale"), bias = statistic("bias"), mean = statistic("mean"), variance = statistic("positive");
         return Values{ops::batch_norm(input(g, "x", t, {2, 3, 4, 5}), scale, bias, mean, variance, {.epsilon = 0x1p-10}),
                       ops::batch_norm(input(g, "last", t, {2, 4, 5, 3}), scale, bias, mean, variance, {.epsilon = 0x1p-10, .axis = 3}),
                       ops::batch_norm(input(g, "flat", t, {2, 3}), scale, bias, mean, variance, {.epsilon = 0x1p-10})};
       }},
      {"LayerNormalization",
       [](Graph& g, DType t) {
         const Value x = input(g, "x", t, {2, 3, 8}), scale = input(g, "scale", t, {8}), bias = input(g, "bias", t, {8});
         return Values{ops::layer_norm(x, scale, bias, -1, 1e-3), ops::layer_norm(x), ops::layer_norm(x, input(g, "s", t, {3, 8}), {}, 1)};
       }},
      {"RMSNormalization",
       [](Graph& g, DType t) {
         const Value x = input(g, "x", t, {2, 3, 8});
         return Values{ops::rms_norm(x, input(g, "scale", t, {8}), -1, 1e-3), ops::rms_norm(x, {}, 1)};
       }},
      {"statistics of norms",
       [](Graph& g, DType t) {
         const Value x = input(g, "x", t, {2, 3, 8});
         const Attributes attributes =
             Attributes::of(tenon_attributes_layer_norm{.struct_size = 0, .reserved = 0, .axis = 2, .epsilon = 1e-5});
         const Values layer = g.apply(TENON_OP_LayerNormalization, {x}, attributes),
                      rms = g.apply(TENON_OP_RMSNormalization, {x}, attributes);
         return Values{layer[0], layer[1], layer[2], rms[0], rms[1]};
       }},
      {"LRN",
       [](Graph& g, DType t) {
         return Values{ops::lrn(input(g, "x", t, {2, 6, 3, 3}), 3, 0.5, 0.75, 2)};
       }},
      recurrent("RNN", ops::Direction::forward, false, 1, [](Value x, const ops::RecurrentValues& v) { return results(ops::rnn(x, v)); }),
      recurrent(
          "RNN with relu in both directions", ops::Direction::both, true, 1,
          [](Value x, const ops::RecurrentValues& v) { return results(ops::rnn(x, v, ops::Direction::both, ops::RnnActivation::relu)); }),
      recurrent("GRU", ops::Direction::forward, true, 3, [](Value x, const ops::RecurrentValues& v) { return results(ops::gru(x, v)); }),
      recurrent("GRU backwards, reset first", ops::Direction::reverse, false, 3,
                [](Value x, const ops::RecurrentValues& v) { return results(ops::gru(x, v, ops::Direction::reverse, false)); }),
      recurrent("LSTM", ops::Direction::forward, false, 4, [](Value x, const ops::RecurrentValues& v) { return results(ops::lstm(x, v)); }),
      recurrent("LSTM in both directions", ops::Direction::both, true, 4,
                [](Value x, const ops::RecurrentValues& v) { return results(ops::lstm(x, v, ops::Direction::both)); }),
      recurrent("LSTM, the last state only", ops::Direction::forward, true, 4,
                [](Value x, const ops::RecurrentValues& v) { return Values{ops::lstm(x, v).h}; }),
      attention("Attention", 4, false, false),
      attention("Attention with a mask", 4, true, false),
      attention("causal Attention", 4, false, true),
      attention("causal Attention of shared keys with a mask", 2, true, true),
      {"Softmax",
       [](Graph& g, DType t) {
         const Value x = input(g, "x", t, {2, 3, 4});
         return Values{ops::softmax(x), ops::softmax(x, 0), ops::log_softmax(x, 1)};
       }},
      {"SoftmaxCrossEntropyLoss",
       [](Graph& g, DType t) {
         const Value x = input(g, "x", t, {4, 3}), labels = input(g, "label", DType::i64, {4});
         const Value images = input(g, "images", t, {4, 3, 2}), pixels = input(g, "label_pixels", DType::i32, {4, 2});
         return Values{
             ops::softmax_cross_entropy(x, labels),
             ops::softmax_cross_entropy(x, labels, {.reduction = ops::Reduction::none, .ignore_index = 1}),
             ops::softmax_cross_entropy(images, pixels, {.reduction = ops::Reduction::sum, .weights = input(g, "positive", t, {3})})};
       }},
  };
  cases.insert(cases.end(), others.begin(), others.end());
  return cases;
}

const std::vector<Case>& cases() {
  static const std::vector<Case> list = make_cases();
  return list;
}

/// The graph of a case.
Graph graph_of(const Case& which, DType dtype) {
  Graph graph;
  std::size_t i = 0;
  for (const Value& result : which.build(graph, dtype)) graph.output("y" + std::to_string(i++), result);
  return graph;
}

Tensor no_parameters(const std::string& name) {
  throw Error("no parameter " + name);
}

void check_round_trip(const OnnxFiles& files, const Context& context, const Case& which, DType dtype, std::int64_t opset) {
  CAPTURE(std::string(which.name));
  CAPTURE(std::string(name_of(dtype)));
  CAPTURE(opset);
  const Graph graph = graph_of(which, dtype);
  std::mt19937_64 random(7);
  std::vector<Tensor> inputs;
  onnx::NamedTensors named;
  for (const ValueInfo& value : graph.values()) {
    if (value.kind == ValueKind::input) named[value.name] = inputs.emplace_back(elements(value, random));
  }
  Program program(context, graph);
  const std::vector<Tensor> expected = program.run(std::span<const Tensor>(inputs));
  const std::string path = files.write({});
  onnx::export_graph(path, graph, no_parameters, {.opset = opset});
  onnx::Model model = onnx::Model::load(path, context);
  const std::vector<Tensor>& results = model.run(named);
  REQUIRE(results.size() == expected.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    CAPTURE(i);
    check_close(expected[i].to_host(), results[i].to_host());
  }
}

}  // namespace

TEST_CASE_FIXTURE(OnReference, "onnx export: a graph of each op computes the same when it is imported again") {
  const OnnxFiles files;
  for (const Case& which : cases()) {
    for (const DType dtype : which.dtypes) {
      for (const std::int64_t opset : {17, 18, 20, 23}) {
        // What opsets have in common is exported once in dtypes that are not floating.
        if (is_floating(dtype) || opset == 17) check_round_trip(files, context, which, dtype, opset);
      }
    }
  }
}

TEST_CASE("onnx export: each op is exported, and then tested, or refused with a reason") {
  std::set<tenon_op> tested;
  for (const Case& which : cases()) {
    const Graph graph = graph_of(which, which.dtypes[0]);
    for (const NodeInfo& node : graph.nodes()) tested.insert(node.op);
  }
#define TENON_OP(id, name, ...)                                                                                                           \
  {                                                                                                                                       \
    const bool exported = onnx::exporting::find_rule(TENON_OP_##name) != nullptr;                                                         \
    const char* refusal = onnx::exporting::refusal_of(TENON_OP_##name);                                                                   \
    CHECK_MESSAGE(exported == (refusal == nullptr), #name);                                                                               \
    CHECK_MESSAGE((refusal == nullptr || std::string_view(refusal) != "ONNX has no such operator"), #name " has no rule and no refusal"); \
    CHECK_MESSAGE(exported == tested.contains(TENON_OP_##name), #name);                                                                   \
  }
#include <tenon/ops.def>
#undef TENON_OP
}

TEST_CASE_FIXTURE(OnReference, "onnx export: extrema of scattered updates are exported from opset 18 on") {
  const OnnxFiles files;
  const Case which{"ScatterElements and ScatterSlices", [](Graph& g, DType t) {
                     const Value x = input(g, "x", t, {2, 3}), i = input(g, "i", DType::i64, {2, 2}), j = input(g, "j", DType::i64, {4});
                     const Value u = input(g, "u", t, {2, 2}), v = input(g, "v", t, {2, 4});
                     return Values{ops::scatter_elements(x, i, u, 1, ops::ScatterReduction::max),
                                   ops::scatter_slices(x, j, v, 1, ops::ScatterReduction::min)};
                   }};
  for (const DType dtype : numbers) check_round_trip(files, context, which, dtype, 18);
  CHECK(message_of([&] {
          onnx::export_graph(files.write({}), graph_of(which, DType::f32), no_parameters, {.opset = 17});
        }).find("from opset 18 on") != std::string::npos);
}

TEST_CASE_FIXTURE(OnReference, "onnx export: e^x - 1 and log(1 + x) are accurate where x is small, and right where results are infinite") {
  const OnnxFiles files;
  Graph graph;
  const Value x = graph.input("x", DType::f32, {8});
  graph.output("expm1", ops::expm1(x));
  graph.output("log1p", ops::log1p(x));
  const std::string path = files.write({});
  onnx::export_graph(path, graph, no_parameters);
  onnx::Model model = onnx::Model::load(path, context);
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> values = {1e-30F, -1e-7F, 3e-4F, 0.9F, -1, 50, infinity, 0};
  const std::vector<Tensor>& results = model.run({{"x", Tensor::of(values, {8})}});
  const std::vector<float> expm1 = floats(results[0]), log1p = floats(results[1]);
  for (std::size_t i = 0; i < values.size(); ++i) {
    CAPTURE(values[i]);
    const float e = std::expm1(values[i]), l = std::log1p(values[i]);
    CHECK((expm1[i] == e || std::fabs(expm1[i] - e) <= 1e-6F * std::fabs(e)));
    CHECK((log1p[i] == l || std::fabs(log1p[i] - l) <= 1e-6F * std::fabs(l)));
  }
}
