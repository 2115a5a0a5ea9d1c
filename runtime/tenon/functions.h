// tenon/functions.h - ops as functions on values of a graph. Names are the stems of tenon/ops.def; composites say what they are made of.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#include <tenon/graph.h>

namespace tenon::ops {

/// Elementwise with NumPy broadcasting; operands of one dtype.
Value add(Value a, Value b);
Value sub(Value a, Value b);
Value mul(Value a, Value b);
Value div(Value a, Value b);
Value equal(Value a, Value b);  ///< bool
/// With a scalar constant of the operand's dtype.
Value add(Value a, double b);
Value mul(Value a, double b);

Value neg(Value x);
Value relu(Value x);     ///< max(0, x); NaN propagates; derivative 0 at 0
Value sigmoid(Value x);  ///< 1 / (1 + exp(-x))
Value tanh(Value x);
Value cast(Value x, DType to);  ///< float to integer truncates and saturates, NaN becomes 0; to bool is x != 0

/// Over `axes` (negative count from the end); none: all of them.
Value reduce_sum(Value x, const std::vector<std::int64_t>& axes = {}, bool keepdims = false);
Value reduce_mean(Value x, const std::vector<std::int64_t>& axes = {}, bool keepdims = false);
/// Index of the largest along `axis` as i64; ties: the first.
Value arg_max(Value x, std::int64_t axis, bool keepdims = false);

Value reshape(Value x, const Shape& shape);  ///< same count
/// One dimension may be -1: what the count leaves for it.
Value reshape(Value x, std::span<const std::int64_t> dims);
Value reshape(Value x, std::initializer_list<std::int64_t> dims);
Value flatten(Value x, std::int64_t axis = 1);                                ///< (d0 ... d[axis-1], d[axis] ...)
Value transpose(Value x, const std::vector<std::int64_t>& permutation = {});  ///< none: reversed
Value expand(Value x, const Shape& shape);                                    ///< broadcast to `shape`

Value matmul(Value a, Value b);  ///< (..., m, k) x (..., k, n), batch dimensions broadcast; 1-D operands as in NumPy
struct GemmOptions {
  bool trans_a = false, trans_b = false;
  double alpha = 1, beta = 1;
};
/// alpha op(a) op(b) + beta c; a, b rank 2, c (may be absent) broadcasts to (m, n).
Value gemm(Value a, Value b, Value c = {}, const GemmOptions& options = {});

Value softmax(Value x, std::int64_t axis = -1);
Value log_softmax(Value x, std::int64_t axis = -1);

enum class Reduction : std::uint32_t { none = TENON_REDUCTION_NONE, mean = TENON_REDUCTION_MEAN, sum = TENON_REDUCTION_SUM };
struct CrossEntropyOptions {
  Reduction reduction = Reduction::mean;
  std::optional<std::int64_t> ignore_index;
  Value weights;  ///< (classes), may be absent
};
/// -log softmax(scores)[label], reduced. scores (N, C, ...), labels (N, ...) of i32 or i64.
Value softmax_cross_entropy(Value scores, Value labels, const CrossEntropyOptions& options = {});
/// mean((y - t)^2): Sub, Mul, ReduceMean.
Value mse(Value y, Value target);

/// Random values. `key` is u64[2] = (seed, step); `stream` separates consumers of one key.
Value random_uniform(Value key, DType dtype, const Shape& shape, std::uint32_t stream, double low = 0, double high = 1);
Value random_normal(Value key, DType dtype, const Shape& shape, std::uint32_t stream, double mean = 0, double deviation = 1);
Value random_bernoulli(Value key, DType dtype, const Shape& shape, std::uint32_t stream, double probability);
/// x * mask / (1 - p), mask Bernoulli(1 - p) of key and stream; 0 <= p < 1. p = 0 is x itself.
Value dropout(Value x, Value key, double p, std::uint32_t stream);

/// One optimizer step for all parameters at once: adds the node and registers the updates of parameters and state.
/// Gradients and state have the parameters' order, shapes and dtype. State is made of parameters too: sgd one for each if momentum != 0,
/// adam two (m0, v0, m1, v1, ...), rmsprop one. lr is an f64 scalar; step an i64 scalar that counts from 1.
void sgd_step(const std::vector<Value>& parameters, const std::vector<Value>& gradients, const std::vector<Value>& state, Value lr,
              const tenon_attributes_sgd& attributes);
void adam_step(const std::vector<Value>& parameters, const std::vector<Value>& gradients, const std::vector<Value>& state, Value lr,
               Value step, const tenon_attributes_adam& attributes);
void rmsprop_step(const std::vector<Value>& parameters, const std::vector<Value>& gradients, const std::vector<Value>& state, Value lr,
                  const tenon_attributes_rmsprop& attributes);

}  // namespace tenon::ops

namespace tenon {
inline Value operator+(Value a, Value b) {
  return ops::add(a, b);
}
inline Value operator-(Value a, Value b) {
  return ops::sub(a, b);
}
inline Value operator*(Value a, Value b) {
  return ops::mul(a, b);
}
inline Value operator/(Value a, Value b) {
  return ops::div(a, b);
}
inline Value operator-(Value x) {
  return ops::neg(x);
}
}  // namespace tenon
