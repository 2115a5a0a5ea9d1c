// SPDX-License-Identifier: Apache-2.0
// tenon/tensor_functions.h - the functions of tenon/functions.h and tenon/elementwise_functions.h on
// tensors, computed at once:
//
//   const Tensor x = Tensor::of<float>({-1, 2}, {1, 2}).to(context.default_device());
//   const Tensor y = tenon::relu(x) + b;
//   const auto [values, indices] = tenon::top_k(tenon::softmax(y), 2);
//   const Tensor mean = tenon::reduce_mean(y, {0}, true);
//
// Parameters, default arguments and formulas are those of the function in tenon::ops, with Tensor
// in place of Value, also in lists, pairs and structs. An undefined Tensor is an absent operand.
//
// Operands  on one device, of one context, which must still exist; views may have any strides.
// Results   new dense tensors on that device.
// Programs  a call builds a graph of the function's nodes and runs its program. The context keeps
//           the programs of the last 256 different graphs, those of Context::apply included: equal
//           dtypes, shapes and attributes use the same one. A loop over the same few functions is
//           faster as one Program, which fuses them.
// Errors    an operand in host memory, or on another device than the first; those of the function
//           and of Program.
// Threads   any; calls on one context run one after another.
// Host      concat and stack also take tensors that are all in host memory.
// Not here  functions that register updates of a graph: batch_norm_train and the optimizer steps.
//           tenon::equal compares whole tensors (tensor.h); elements: tenon::immediate::equal.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <tenon/api.h>
#include <tenon/elementwise_functions.h>
#include <tenon/functions.h>
#include <tenon/graph.h>
#include <tenon/tensor.h>

namespace tenon {
namespace immediate {

/// One call of a function: its graph, operands and results. For the functions below.
class TENON_API Call {
 public:
  /// `function` is its name in error messages; it must outlive the call.
  explicit Call(const char* function) : function_(function) {}
  /// The operand as an input of the graph.
  Value operand(const Tensor& x);
  /// Declares a result.
  void result(Value value);
  /// Computes the results.
  void run();
  /// A computed result; undefined for an absent value.
  Tensor tensor(Value value) const;

 private:
  const char* function_;
  Graph graph_;
  std::vector<Tensor> operands_, results_;
};

namespace detail {

template <class T>
concept Operand = std::same_as<T, Value> || std::same_as<T, Tensor>;

/// A copy of x with f of each Value or Tensor in it.
template <class T, class F>
auto map(const T& x, const F& f) {
  if constexpr (Operand<T>) {
    return f(x);
  } else if constexpr (requires { x.map(f); }) {
    return x.map(f);
  } else {
    return x;
  }
}
template <Operand T, class F>
auto map(const std::vector<T>& x, const F& f) {
  std::vector<decltype(f(x[0]))> results;
  for (const T& element : x) results.push_back(f(element));
  return results;
}
template <Operand T, class F>
auto map(const std::pair<T, T>& x, const F& f) {
  return std::pair{f(x.first), f(x.second)};
}

/// The type with Tensor in place of Value.
template <class T>
using OnTensors =
    decltype(map(std::declval<const T&>(), std::declval<Tensor (*const&)(const Value&)>()));

template <std::size_t i, class... List>
struct Nth {};
/// Element 0 of a list of types.
template <class First, class... Rest>
struct Nth<0, First, Rest...> {
  using type = First;  ///< the element
};
template <std::size_t i, class First, class... Rest>
struct Nth<i, First, Rest...> : Nth<i - 1, Rest...> {};

template <class Function>
struct Signature;
/// The types of a graph function on tensors.
template <class R, class... Parameters>
struct Signature<R(Parameters...)> {
  using Result = OnTensors<R>;  ///< of its result
  /// Of its parameter i, as declared.
  template <std::size_t i>
  using Parameter = typename Nth<i, Parameters...>::type;
};
template <class Function>
using Result = typename Signature<Function>::Result;
/// Parameter i of a graph function, and of its counterpart on tensors.
template <class Function, std::size_t i>
using Given = typename Signature<Function>::template Parameter<i>;
template <class Function, std::size_t i>
using Taken = const OnTensors<std::remove_cvref_t<Given<Function, i>>>&;

template <class Function, class... Arguments>
auto call(const char* name, const Function& function, const Arguments&... arguments) {
  Call call(name);
  const auto operand = [&](const Tensor& x) { return call.operand(x); };
  const std::tuple<decltype(map(arguments, operand))...> values{map(arguments, operand)...};
  const auto results = std::apply(function, values);
  map(results, [&](const Value& value) {
    call.result(value);
    return value;
  });
  call.run();
  return map(results, [&](const Value& value) { return call.tensor(value); });
}

}  // namespace detail

// clang-format off
/// Each function of tenon/functions.h that has one signature and updates nothing.
#define TENON_TENSOR_FUNCTIONS(X)                                                                  \
  X(not_equal) X(where) X(relu6) X(clip) X(square) X(cube) X(leaky_relu) X(elu) X(gelu) X(selu)    \
  X(hard_swish) X(prelu) X(glu) X(cast)                                                            \
  X(reduce_sum) X(reduce_mean) X(reduce_max) X(reduce_min) X(reduce_prod) X(reduce_sum_square)     \
  X(reduce_log_sum_exp) X(norm) X(variance) X(arg_max) X(arg_min)                                  \
  X(flatten) X(transpose) X(expand) X(squeeze) X(unsqueeze) X(slice) X(flip) X(split) X(tile)      \
  X(pad)                                                                                           \
  X(gather) X(gather_elements) X(scatter_elements) X(scatter_add) X(scatter_slices) X(one_hot)     \
  X(embedding)                                                                                     \
  X(matmul) X(gemm) X(outer) X(einsum)                                                             \
  X(conv) X(conv1d) X(conv2d) X(conv_transpose) X(conv_input_grad) X(conv_weight_grad)             \
  X(im2col) X(col2im) X(max_pool) X(max_pool_with_indices) X(average_pool) X(sum_pool) X(lp_pool)  \
  X(global_average_pool) X(global_max_pool) X(adaptive_average_pool) X(adaptive_max_pool)          \
  X(resize) X(upsample)                                                                            \
  X(batch_norm) X(layer_norm) X(rms_norm) X(group_norm) X(instance_norm) X(lrn)                    \
  X(rnn) X(gru) X(lstm) X(attention) X(rotary_embedding) X(top_k) X(cum_sum)                       \
  X(quantize_linear) X(dequantize_linear) X(dynamic_quantize_linear) X(matmul_integer)             \
  X(conv_integer) X(qlinear_matmul) X(qlinear_conv) X(matmul_nbits)                                \
  X(softmax) X(log_softmax) X(softmax_cross_entropy) X(mse) X(half_mse) X(mae) X(huber)            \
  X(binary_cross_entropy) X(categorical_cross_entropy) X(nll) X(kl_divergence) X(neg_mean_prod)    \
  X(ctc_loss)                                                                                      \
  X(random_uniform) X(random_normal) X(random_bernoulli) X(random_permutation) X(dropout)

#define TENON_APPLY(name, ...) \
  detail::call(#name, [](const auto&... arguments) { return ops::name(arguments...); }, __VA_ARGS__)
/// The overload with the first of the parameters, if the graph function has defaults for the rest.
/// The parameters have the types of the graph function's, not deduced ones, so that braces work:
/// reduce_sum(x, {0, 1}).
#define TENON_OVERLOAD(name, given, taken, ...)                          \
  template <class F = decltype(ops::name)>                               \
    requires requires given { ops::name(__VA_ARGS__); }                  \
  detail::Result<F> name taken { return TENON_APPLY(name, __VA_ARGS__); }
#define TENON_GIVEN(i) detail::Given<F, i> p##i
#define TENON_TAKEN(i) detail::Taken<F, i> p##i
#define TENON_FIRST_2(X) X(0), X(1)
#define TENON_FIRST_3(X) TENON_FIRST_2(X), X(2)
#define TENON_FIRST_4(X) TENON_FIRST_3(X), X(3)
#define TENON_FIRST_5(X) TENON_FIRST_4(X), X(4)
#define TENON_FIRST_6(X) TENON_FIRST_5(X), X(5)
#define TENON_FUNCTION(name)                                                                                              \
  TENON_OVERLOAD(name, (TENON_GIVEN(0)), (TENON_TAKEN(0)), p0)                                                            \
  TENON_OVERLOAD(name, (TENON_FIRST_2(TENON_GIVEN)), (TENON_FIRST_2(TENON_TAKEN)), p0, p1)                                \
  TENON_OVERLOAD(name, (TENON_FIRST_3(TENON_GIVEN)), (TENON_FIRST_3(TENON_TAKEN)), p0, p1, p2)                            \
  TENON_OVERLOAD(name, (TENON_FIRST_4(TENON_GIVEN)), (TENON_FIRST_4(TENON_TAKEN)), p0, p1, p2, p3)                        \
  TENON_OVERLOAD(name, (TENON_FIRST_5(TENON_GIVEN)), (TENON_FIRST_5(TENON_TAKEN)), p0, p1, p2, p3, p4)                    \
  TENON_OVERLOAD(name, (TENON_FIRST_6(TENON_GIVEN)), (TENON_FIRST_6(TENON_TAKEN)), p0, p1, p2, p3, p4, p5)
#define TENON_ELEMENTWISE_FUNCTION(op, name) TENON_FUNCTION(name)
/// Those of two operands, of which the second may be a number.
#define TENON_BINARY_FUNCTION(op, name)                                                             \
  inline Tensor name(const Tensor& a, const Tensor& b) { return TENON_APPLY(name, a, b); }           \
  inline Tensor name(const Tensor& a, double b) { return TENON_APPLY(name, a, b); }

TENON_TENSOR_FUNCTIONS(TENON_FUNCTION)
TENON_UNARY_FUNCTIONS(TENON_ELEMENTWISE_FUNCTION)
TENON_BINARY_BOOL_FUNCTIONS(TENON_ELEMENTWISE_FUNCTION)
TENON_BINARY_FUNCTIONS(TENON_BINARY_FUNCTION)
// clang-format on

inline Tensor reshape(const Tensor& x, const Shape& shape) {
  return TENON_APPLY(reshape, x, shape);
}
inline Tensor reshape(const Tensor& x, std::span<const std::int64_t> dims) {
  return TENON_APPLY(reshape, x, dims);
}
inline Tensor reshape(const Tensor& x, std::initializer_list<std::int64_t> dims) {
  return TENON_APPLY(reshape, x, dims);
}
inline Tensor tensordot(const Tensor& a, const Tensor& b, const std::vector<std::int64_t>& axes_a,
                        const std::vector<std::int64_t>& axes_b) {
  return TENON_APPLY(tensordot, a, b, axes_a, axes_b);
}
inline Tensor tensordot(const Tensor& a, const Tensor& b, std::int64_t axes = 2) {
  return TENON_APPLY(tensordot, a, b, axes);
}
/// Of at least one tensor, all in host memory or all on one device.
TENON_API Tensor concat(const std::vector<Tensor>& tensors, std::int64_t axis);
TENON_API Tensor stack(const std::vector<Tensor>& tensors, std::int64_t axis = 0);
/// The quotients of a number and the elements.
inline Tensor div(double a, const Tensor& b) {
  return TENON_APPLY(div, a, b);
}

#undef TENON_BINARY_FUNCTION
#undef TENON_ELEMENTWISE_FUNCTION
#undef TENON_FUNCTION
#undef TENON_FIRST_6
#undef TENON_FIRST_5
#undef TENON_FIRST_4
#undef TENON_FIRST_3
#undef TENON_FIRST_2
#undef TENON_TAKEN
#undef TENON_GIVEN
#undef TENON_OVERLOAD
#undef TENON_APPLY

}  // namespace immediate

using namespace immediate;  // tenon::relu(x)

// Elementwise with NumPy broadcasting.
inline Tensor operator+(const Tensor& a, const Tensor& b) {
  return immediate::add(a, b);
}
inline Tensor operator+(const Tensor& a, double b) {
  return immediate::add(a, b);
}
inline Tensor operator-(const Tensor& a, const Tensor& b) {
  return immediate::sub(a, b);
}
inline Tensor operator-(const Tensor& a, double b) {
  return immediate::sub(a, b);
}
inline Tensor operator*(const Tensor& a, const Tensor& b) {
  return immediate::mul(a, b);
}
inline Tensor operator*(const Tensor& a, double b) {
  return immediate::mul(a, b);
}
inline Tensor operator/(const Tensor& a, const Tensor& b) {
  return immediate::div(a, b);
}
inline Tensor operator/(const Tensor& a, double b) {
  return immediate::div(a, b);
}
inline Tensor operator-(const Tensor& x) {
  return immediate::neg(x);
}
inline Tensor operator+(double a, const Tensor& b) {
  return b + a;
}
inline Tensor operator-(double a, const Tensor& b) {
  return -b + a;
}
inline Tensor operator*(double a, const Tensor& b) {
  return b * a;
}
inline Tensor operator/(double a, const Tensor& b) {
  return immediate::div(a, b);
}

}  // namespace tenon
