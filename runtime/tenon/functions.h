// SPDX-License-Identifier: Apache-2.0
// tenon/functions.h - ops as functions on values of a graph. Names are the stems of tenon/ops.def;
// the comments of composites state what they consist of. tenon/elementwise_functions.h declares
// elementwise ops without attributes. tenon/tensor_functions.h applies the functions of both files
// to tensors; its list names each function of this one.
// Threads  those of Graph.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tenon/api.h>
#include <tenon/elementwise_functions.h>
#include <tenon/graph.h>

namespace tenon::ops {

TENON_API Value not_equal(Value a, Value b);               ///< Not of Equal
TENON_API Value div(double a, Value b);                    ///< a is a constant of b's dtype
TENON_API Value where(Value condition, Value a, Value b);  ///< condition ? a : b, broadcast
TENON_API Value relu6(Value x);                            ///< Clip to [0, 6]
/// NaN propagates; derivative 1 in [low, high], 0 outside
TENON_API Value clip(Value x, double low, double high);
TENON_API Value square(Value x);  ///< Mul(x, x)
TENON_API Value cube(Value x);    ///< Mul(Mul(x, x), x)
TENON_API Value leaky_relu(Value x, double alpha = 0.01);
TENON_API Value elu(Value x, double alpha = 1);
TENON_API Value gelu(Value x, bool approximate_tanh = false);
TENON_API Value selu(Value x);        ///< s x where x > 0, else s alpha (e^x - 1), as in PyTorch
TENON_API Value hard_swish(Value x);  ///< x relu6(x + 3) / 6; derivative 0 at -3, 1 at 3
/// x where x > 0, else slope x; the slope broadcasts. Its derivative at 0 is that of slope x.
TENON_API Value prelu(Value x, Value slope);
/// The first half along the axis times the sigmoid of the second. Errors: an odd dimension.
TENON_API Value glu(Value x, std::int64_t axis = -1);
/// float to integer truncates and saturates, NaN becomes 0; to bool is x != 0
TENON_API Value cast(Value x, DType to);

/// Reductions over `axes` (negative ones count from the end); empty: over all axes.
TENON_API Value reduce_sum(Value x, const std::vector<std::int64_t>& axes = {},
                           bool keepdims = false);
TENON_API Value reduce_mean(Value x, const std::vector<std::int64_t>& axes = {},
                            bool keepdims = false);
TENON_API Value reduce_max(Value x, const std::vector<std::int64_t>& axes = {},
                           bool keepdims = false);  ///< NaN propagates; ties share the gradient
TENON_API Value reduce_min(Value x, const std::vector<std::int64_t>& axes = {},
                           bool keepdims = false);
TENON_API Value reduce_prod(Value x, const std::vector<std::int64_t>& axes = {},
                            bool keepdims = false);
TENON_API Value reduce_sum_square(Value x, const std::vector<std::int64_t>& axes = {},
                                  bool keepdims = false);
TENON_API Value reduce_log_sum_exp(Value x, const std::vector<std::int64_t>& axes = {},
                                   bool keepdims = false);
/// (sum |x|^p)^(1/p): 1 and 2 are ops of their own, infinity gives the largest |x|. Errors: p <= 0.
TENON_API Value norm(Value x, double p = 2, const std::vector<std::int64_t>& axes = {},
                     bool keepdims = false);
/// mean((x - mean)^2), or the sum divided by n - 1 if `unbiased`; computed in two passes.
TENON_API Value variance(Value x, const std::vector<std::int64_t>& axes = {}, bool keepdims = false,
                         bool unbiased = false);
/// Index of the largest element along `axis` as i64; the first in case of a tie.
TENON_API Value arg_max(Value x, std::int64_t axis, bool keepdims = false);
TENON_API Value arg_min(Value x, std::int64_t axis, bool keepdims = false);

TENON_API Value reshape(Value x, const Shape& shape);  ///< same count
/// The same with at most one dimension of -1, which is inferred from the count.
TENON_API Value reshape(Value x, std::span<const std::int64_t> dims);
TENON_API Value reshape(Value x, std::initializer_list<std::int64_t> dims);
/// (d0 ... d[axis-1], d[axis] ...)
TENON_API Value flatten(Value x, std::int64_t axis = 1);
/// empty: reverse the axes
TENON_API Value transpose(Value x, const std::vector<std::int64_t>& permutation = {});
/// broadcast to `shape`
TENON_API Value expand(Value x, const Shape& shape);

/// empty: every dimension of size 1
TENON_API Value squeeze(Value x, const std::vector<std::int64_t>& axes = {});
/// `axes` are those of the result
TENON_API Value unsqueeze(Value x, const std::vector<std::int64_t>& axes);
/// Elements begin, begin + step, ... before `end` of one axis, as Python slices (negative counts
/// from the end, out of range is clipped).
TENON_API Value slice(Value x, std::int64_t axis, std::int64_t begin, std::int64_t end,
                      std::int64_t step = 1);
TENON_API Value flip(Value x, const std::vector<std::int64_t>& axes);
TENON_API Value concat(const std::vector<Value>& values, std::int64_t axis);
TENON_API Value stack(const std::vector<Value>& values, std::int64_t axis = 0);
TENON_API std::vector<Value> split(Value x, const std::vector<std::int64_t>& sizes,
                                   std::int64_t axis);
/// one repeat count per dimension
TENON_API Value tile(Value x, const std::vector<std::int64_t>& repeats);
enum class PadMode : std::uint32_t {
  constant = TENON_PAD_CONSTANT,
  reflect = TENON_PAD_REFLECT,
  edge = TENON_PAD_EDGE
};
/// `widths` holds (before, after) per dimension.
TENON_API Value pad(Value x, const std::vector<std::pair<std::int64_t, std::int64_t>>& widths,
                    double value = 0, PadMode mode = PadMode::constant);

/// Indices are i32 or i64 in [-n, n); otherwise the program fails and names the index.
/// slices of x along `axis`, arranged in the shape of `indices`
TENON_API Value gather(Value x, Value indices, std::int64_t axis = 0);
/// y[i, j] = x[indices[i, j], j] for axis 0
TENON_API Value gather_elements(Value x, Value indices, std::int64_t axis = 0);
enum class ScatterReduction : std::uint32_t {
  none = TENON_SCATTER_NONE,
  add = TENON_SCATTER_ADD,
  mul = TENON_SCATTER_MUL,
  max = TENON_SCATTER_MAX,
  min = TENON_SCATTER_MIN
};
/// x with x[indices[i, j], j] = updates[i, j] for axis 0, or reduced with the update.
TENON_API Value scatter_elements(Value x, Value indices, Value updates, std::int64_t axis = 0,
                                 ScatterReduction reduction = ScatterReduction::none);
/// x with slice k of updates added to slice indices[k] along `axis`: the transpose of gather.
TENON_API Value scatter_add(Value x, Value indices, Value updates, std::int64_t axis = 0);
/// x with slice k of updates in the place of slice indices[k] along `axis`, or reduced with it; of
/// several updates of a slice the last one replaces.
TENON_API Value scatter_slices(Value x, Value indices, Value updates, std::int64_t axis = 0,
                               ScatterReduction reduction = ScatterReduction::none);
/// `on` where the index equals the position along the new axis, else `off`; an index outside
/// [-depth, depth) gives only `off`.
TENON_API Value one_hot(Value indices, std::int64_t depth, DType dtype, double off = 0,
                        double on = 1, std::int64_t axis = -1);
/// Gather along axis 0 of weights (rows, n)
TENON_API Value embedding(Value weights, Value indices);

/// (..., m, k) x (..., k, n), batch dimensions broadcast; 1-D operands as in NumPy
TENON_API Value matmul(Value a, Value b);
/// Options of gemm.
struct GemmOptions {
  bool trans_a = false, trans_b = false;
  double alpha = 1, beta = 1;
};
/// alpha op(a) op(b) + beta c; a, b rank 2, c (may be absent) broadcasts to (m, n).
TENON_API Value gemm(Value a, Value b, Value c = {}, const GemmOptions& options = {});

TENON_API Value outer(Value a, Value b);  ///< (m) x (n) -> (m, n)
/// Sums over pairs of axes: axes_a[i] of a with axes_b[i] of b. A product of transposed views,
/// without copies if BLAS can read them.
TENON_API Value tensordot(Value a, Value b, const std::vector<std::int64_t>& axes_a,
                          const std::vector<std::int64_t>& axes_b);
/// the last `axes` of a with the first of b
TENON_API Value tensordot(Value a, Value b, std::int64_t axes = 2);
/// NumPy's einsum: "ij,jk->ik", "bij,bkj->bik"; "ii->i" is a diagonal, "..." stands for any number
/// of dimensions. Operands are multiplied from left to right. As in PyTorch, a result without "..."
/// is the sum over its dimensions.
TENON_API Value einsum(const std::string& equation, const std::vector<Value>& operands);

/// Windows over images x (N, C, d...) with one or two spatial dimensions d. Lists have one entry
/// per spatial dimension; the comments give the default for an empty list.
struct WindowOptions {
  std::vector<std::int64_t> strides;                           ///< conv: 1; pools: the kernel
  std::vector<std::int64_t> dilations;                         ///< 1
  std::vector<std::pair<std::int64_t, std::int64_t>> padding;  ///< (before, after): 0
  /// instead of `padding`: ceil(d / stride) results, an odd element of padding at the end (ONNX's
  /// SAME_UPPER)
  bool same = false;
  bool ceil_mode = false;      ///< pools: include a last, partial window
  bool channels_last = false;  ///< x and the result are (N, d..., C)
};
/// Options of conv.
struct ConvOptions : WindowOptions {
  std::int64_t groups = 1;
};
/// Cross-correlation of x (N, C, d...) with w (O, C / groups, k...) plus an optional b (O).
TENON_API Value conv(Value x, Value w, Value b = {}, const ConvOptions& options = {});
TENON_API Value conv1d(Value x, Value w, Value b = {},
                       /// conv of (N, C, L), or of (N, C, 1, L) with w (O, C, K)
                       const ConvOptions& options = {});
/// conv of (N, C, H, W)
TENON_API Value conv2d(Value x, Value w, Value b = {}, const ConvOptions& options = {});
/// The transpose of conv: x (N, C, d...) with w (C, O / groups, k...). Adds `output_padding`
/// elements at the end, fewer than the stride.
TENON_API Value conv_transpose(Value x, Value w, Value b = {}, const ConvOptions& options = {},
                               const std::vector<std::int64_t>& output_padding = {});
/// The gradients of conv, for x of shape `x_shape` and w of shape `w_shape`.
TENON_API Value conv_input_grad(Value dy, Value w, const Shape& x_shape,
                                const tenon_attributes_conv& attributes);
TENON_API Value conv_weight_grad(Value dy, Value x, const Shape& w_shape,
                                 const tenon_attributes_conv& attributes);
/// The windows of x (N, C, d...) as columns: (N, C * product of kernel, windows), channels
/// outermost.
TENON_API Value im2col(Value x, const std::vector<std::int64_t>& kernel,
                       const WindowOptions& options = {});
/// The transpose of im2col: adds overlapping elements, in an image of spatial sizes `sizes`.
TENON_API Value col2im(Value columns, const std::vector<std::int64_t>& sizes,
                       const std::vector<std::int64_t>& kernel, const WindowOptions& options = {});

/// Pools over windows of x (N, C, d...). max_pool: padding is never the maximum, NaN is.
TENON_API Value max_pool(Value x, const std::vector<std::int64_t>& kernel,
                         const WindowOptions& options = {});
/// (y, indices): the position of each maximum, counted from the start of x; the first in case of a
/// tie.
TENON_API std::pair<Value, Value> max_pool_with_indices(Value x,
                                                        const std::vector<std::int64_t>& kernel,
                                                        const WindowOptions& options = {});
TENON_API Value average_pool(Value x, const std::vector<std::int64_t>& kernel,
                             const WindowOptions& options = {}, bool count_include_pad = true);
/// ReduceMean over the spatial dimensions
/// The sum of each window; padding and, with ceil_mode, what a window has beyond it are zeros.
TENON_API Value sum_pool(Value x, const std::vector<std::int64_t>& kernel,
                         const WindowOptions& options = {});
/// (sum |x|^p)^(1/p) of each window; derivative 0 where all are 0. Errors: p < 1.
TENON_API Value lp_pool(Value x, const std::vector<std::int64_t>& kernel, double p = 2,
                        const WindowOptions& options = {});
TENON_API Value global_average_pool(Value x, bool keepdims = true);
TENON_API Value global_max_pool(Value x, bool keepdims = true);  ///< ReduceMax over them
/// `sizes` results per spatial dimension, result i the mean of floor(i d / s) ... ceil((i + 1) d /
/// s) - 1. average_pool if the sizes divide. A result depends on the elements of its window only,
/// also where others are NaN or infinite.
TENON_API Value adaptive_average_pool(Value x, const std::vector<std::int64_t>& sizes);
/// The maxima of the same windows; NaN wins.
TENON_API Value adaptive_max_pool(Value x, const std::vector<std::int64_t>& sizes);

enum class ResizeMode : std::uint32_t {
  nearest = TENON_RESIZE_NEAREST,
  linear = TENON_RESIZE_LINEAR
};
enum class Coordinates : std::uint32_t {
  half_pixel = TENON_COORDINATES_HALF_PIXEL,
  asymmetric = TENON_COORDINATES_ASYMMETRIC,
  align_corners = TENON_COORDINATES_ALIGN_CORNERS,
  pytorch_half_pixel = TENON_COORDINATES_PYTORCH_HALF_PIXEL
};
enum class NearestRounding : std::uint32_t {
  prefer_floor = TENON_ROUND_PREFER_FLOOR,
  prefer_ceil = TENON_ROUND_PREFER_CEIL,
  floor = TENON_ROUND_FLOOR,
  ceil = TENON_ROUND_CEIL
};
/// Options of resize.
struct ResizeOptions {
  ResizeMode mode = ResizeMode::nearest;
  Coordinates coordinates = Coordinates::half_pixel;
  NearestRounding rounding = NearestRounding::prefer_floor;
};
/// x resized to the given spatial sizes; scales are the quotients of the sizes.
TENON_API Value resize(Value x, const std::vector<std::int64_t>& sizes,
                       const ResizeOptions& options = {});
/// Multiplies the spatial sizes by `factors`: nearest repeats each pixel, linear interpolates
/// between centres (bilinear for images).
TENON_API Value upsample(Value x, const std::vector<std::int64_t>& factors,
                         ResizeMode mode = ResizeMode::nearest);

/// Batch normalisation of x (N, C, ...) per channel; scale, bias, mean and variance are (C).
struct BatchNormOptions {
  double momentum = 0.1;  ///< running = (1 - momentum) running + momentum batch
  double epsilon = 1e-5;
  std::int64_t axis = 1;  ///< channel axis
  bool biased = false;    ///< running variance without the factor n / (n - 1), as in Keras
  /// Treats each element of a sample as a channel: scale, bias and statistics have the shape of x
  /// without its first dimension.
  bool per_activation = false;
};
/// Evaluation, with the given statistics.
TENON_API Value batch_norm(Value x, Value scale, Value bias, Value mean, Value variance,
                           const BatchNormOptions& options = {});
/// Training, with the batch statistics; registers the updates of the running statistics, which are
/// parameters.
TENON_API Value batch_norm_train(Value x, Value scale, Value bias, Value running_mean,
                                 Value running_variance, const BatchNormOptions& options = {});
/// (x - mean) / sqrt(variance + epsilon) * scale + bias over the dimensions from `axis` on; scale
/// and bias have their shape or are absent.
TENON_API Value layer_norm(Value x, Value scale = {}, Value bias = {}, std::int64_t axis = -1,
                           double epsilon = 1e-5);
/// x / sqrt(mean(x^2) + epsilon) * scale.
TENON_API Value rms_norm(Value x, Value scale = {}, std::int64_t axis = -1, double epsilon = 1e-5);
/// layer_norm of each of `groups` groups of channels of x (N, C, ...), then scale and bias (C) per
/// channel.
TENON_API Value group_norm(Value x, std::int64_t groups, Value scale = {}, Value bias = {},
                           double epsilon = 1e-5);
TENON_API Value instance_norm(Value x, Value scale = {}, Value bias = {},
                              double epsilon = 1e-5);  ///< group_norm with one channel per group
/// Local response normalisation over `size` neighbouring channels, as defined by
/// tenon_attributes_lrn.
TENON_API Value lrn(Value x, std::int64_t size, double alpha = 1e-4, double beta = 0.75,
                    double bias = 1);

enum class Direction : std::uint32_t {
  forward = TENON_DIRECTION_FORWARD,
  reverse = TENON_DIRECTION_REVERSE,
  both = TENON_DIRECTION_BOTH
};
enum class RnnActivation : std::uint32_t { tanh = TENON_RNN_TANH, relu = TENON_RNN_RELU };
/// Operands of rnn, gru and lstm, with x (T, B, I): w (D, G H, I), r (D, G H, H), b (D, 2 G H) or
/// absent, h0 and c0 (D, B, H) or absent for zeros. D is 2 for both directions, else 1. Gates in
/// ONNX's order: LSTM i o f c, GRU z r h.
template <class T>
struct BasicRecurrentValues {
  T w = {}, r = {}, b = {}, h0 = {}, c0 = {};
  /// The same with f of each operand. Here and below, for the runtime's own use.
  template <class F>
  auto map(const F& f) const {
    return BasicRecurrentValues<decltype(f(w))>{f(w), f(r), f(b), f(h0), f(c0)};
  }
};
using RecurrentValues = BasicRecurrentValues<Value>;
/// Results of rnn, gru and lstm.
template <class T>
struct BasicRecurrentResult {
  T y;  ///< (T, D, B, H)
  T h;  ///< (D, B, H), after the last step
  T c;  ///< lstm only
  /// A copy with f applied to each member.
  template <class F>
  auto map(const F& f) const {
    return BasicRecurrentResult<decltype(f(y))>{f(y), f(h), f(c)};
  }
};
using RecurrentResult = BasicRecurrentResult<Value>;
TENON_API RecurrentResult rnn(Value x, const RecurrentValues& values,
                              Direction direction = Direction::forward,
                              RnnActivation activation = RnnActivation::tanh);
/// linear_before_reset: h' = tanh(x w + bw + r (h u + bu)), as in PyTorch and cuDNN; else tanh(x w
/// + (r h) u + b).
TENON_API RecurrentResult gru(Value x, const RecurrentValues& values,
                              Direction direction = Direction::forward,
                              bool linear_before_reset = true);
TENON_API RecurrentResult lstm(Value x, const RecurrentValues& values,
                               Direction direction = Direction::forward);

/// Options of attention.
template <class T>
struct BasicAttentionOptions {
  /// added to the scores, broadcast to (B, H, S, L); may be absent
  T mask = {};
  bool causal = false;               ///< query s attends to keys l <= s
  std::optional<double> scale = {};  ///< default: 1 / sqrt(D)
  /// A copy with f applied to `mask`.
  template <class F>
  auto map(const F& f) const {
    return BasicAttentionOptions<decltype(f(mask))>{f(mask), causal, scale};
  }
};
using AttentionOptions = BasicAttentionOptions<Value>;
/// softmax(scale q k' + mask) v: q (B, H, S, D), k (B, G, L, D), v (B, G, L, E), G a divisor of H.
TENON_API Value attention(Value q, Value k, Value v, const AttentionOptions& options = {});
/// Rotates pairs of elements of the last dimension of x (..., S, D) by the angles whose cosines and
/// sines (S, D / 2) are given: element i with i + D / 2, or 2 i with 2 i + 1 if interleaved.
TENON_API Value rotary_embedding(Value x, Value cosines, Value sines, bool interleaved = false);

/// (values, indices) of the k largest or smallest elements along `axis`, in order; the smaller
/// index first in case of a tie.
TENON_API std::pair<Value, Value> top_k(Value x, std::int64_t k, std::int64_t axis = -1,
                                        bool largest = true);
TENON_API Value cum_sum(Value x, std::int64_t axis = 0, bool exclusive = false,
                        bool reverse = false);

/// q = saturate(round(x / scale) + zero_point) in `to`, one of
/// i8, u8, i16 and u16; ties are rounded to even. scale has the dtype of x, zero_point the dtype
/// `to` or is absent for 0; both broadcast to x.
TENON_API Value quantize_linear(Value x, Value scale, Value zero_point = {}, DType to = DType::u8);
/// (q - zero_point) scale, in the dtype of scale. zero_point has the dtype of q or is absent for 0;
/// both broadcast to q.
TENON_API Value dequantize_linear(Value q, Value scale, Value zero_point = {});
/// Results of dynamic_quantize_linear: q has the shape of x, the others are scalars.
template <class T>
struct BasicDynamicQuantization {
  T q, scale, zero_point;
  /// A copy with f applied to each member.
  template <class F>
  auto map(const F& f) const {
    return BasicDynamicQuantization<decltype(f(q))>{f(q), f(scale), f(zero_point)};
  }
};
using DynamicQuantization = BasicDynamicQuantization<Value>;
/// Quantises x (f32) to u8, with the scale and zero point that map its range, extended to 0, to
/// [0, 255].
TENON_API DynamicQuantization dynamic_quantize_linear(Value x);
/// matmul of a - a_zero_point and b - b_zero_point, of i8 or u8, as exact sums in i32. Zero points
/// have the dtypes of their operands: a_zero_point is a scalar or (m), b_zero_point a scalar or (n).
TENON_API Value matmul_integer(Value a, Value b, Value a_zero_point = {}, Value b_zero_point = {});
/// conv of x - x_zero_point and w - w_zero_point likewise; x_zero_point is a scalar, w_zero_point a
/// scalar or (O).
TENON_API Value conv_integer(Value x, Value w, Value x_zero_point = {}, Value w_zero_point = {},
                             const ConvOptions& options = {});

/// Integers with what they stand for: (q - zero_point) scale. All members are present.
template <class T>
struct BasicQuantized {
  T q, scale, zero_point;
  /// A copy with f applied to each member.
  template <class F>
  auto map(const F& f) const {
    return BasicQuantized<decltype(f(q))>{f(q), f(scale), f(zero_point)};
  }
};
using Quantized = BasicQuantized<Value>;
/// The product of a and b, of i8 or u8, quantised: saturate(round(f32(sum) factor) + y_zero_point)
/// of the exact sums of matmul_integer, factor = a.scale b.scale / y_scale. The result has the dtype
/// of y_zero_point. Scales are of f32. Scale and zero point of b are scalars or (n), others scalars.
TENON_API Value qlinear_matmul(const Quantized& a, const Quantized& b, Value y_scale,
                               Value y_zero_point);
/// The same of the sums of conv_integer and a bias (O) of i32, which may be absent; scale and zero
/// point of w are scalars or (O).
TENON_API Value qlinear_conv(const Quantized& x, const Quantized& w, Value y_scale,
                             Value y_zero_point, Value bias = {}, const ConvOptions& options = {});
/// A matrix (N, K) of integers of `bits` bits, whose rows are blocks of block_size elements: block i
/// of row n stands for (q - zero_points[n, i]) scales[n, i].
template <class T>
struct BasicBlockQuantized {
  T q;       ///< u8 (N, blocks, block_size bits / 8), the first element in the lowest bits
  T scales;  ///< (N, blocks)
  T zero_points = {};     ///< u8 (N, ceil(blocks bits / 8)), packed like q; absent: 2^(bits - 1)
  std::int64_t bits = 4;  ///< 4 or 8
  std::int64_t block_size = 32;  ///< a power of two of 16 or more
  /// A copy with f applied to the operands.
  template <class F>
  auto map(const F& f) const {
    return BasicBlockQuantized<decltype(f(q))>{f(q), f(scales), f(zero_points), bits, block_size};
  }
};
using BlockQuantized = BasicBlockQuantized<Value>;
/// a w' + bias: a (..., K), scales and bias (N) of the dtype of a; bias may be absent.
TENON_API Value matmul_nbits(Value a, const BlockQuantized& w, Value bias = {});

TENON_API Value softmax(Value x, std::int64_t axis = -1);
TENON_API Value log_softmax(Value x, std::int64_t axis = -1);

enum class Reduction : std::uint32_t {
  none = TENON_REDUCTION_NONE,
  mean = TENON_REDUCTION_MEAN,
  sum = TENON_REDUCTION_SUM
};
/// Options of softmax_cross_entropy.
template <class T>
struct BasicCrossEntropyOptions {
  Reduction reduction = Reduction::mean;
  std::optional<std::int64_t> ignore_index = {};
  T weights = {};  ///< (classes), may be absent
  /// A copy with f applied to `weights`.
  template <class F>
  auto map(const F& f) const {
    return BasicCrossEntropyOptions<decltype(f(weights))>{reduction, ignore_index, f(weights)};
  }
};
using CrossEntropyOptions = BasicCrossEntropyOptions<Value>;
/// -log softmax(scores)[label], reduced. scores (N, C, ...), labels (N, ...) of i32 or i64.
TENON_API Value softmax_cross_entropy(Value scores, Value labels,
                                      const CrossEntropyOptions& options = {});

/// Losses over all elements of y and a target of the same shape, each composed of listed ops. Their
/// comments give the mean; Reduction::none gives the losses of the elements, or of the samples where
/// a loss sums over classes, and Reduction::sum their sum.
TENON_API Value mse(Value y, Value target, Reduction reduction = Reduction::mean);  ///< (y - t)^2
/// (y - t)^2 / 2, of which the mean is sum / batch: Caffe's EuclideanLoss
TENON_API Value half_mse(Value y, Value target, Reduction reduction = Reduction::mean);
TENON_API Value mae(Value y, Value target, Reduction reduction = Reduction::mean);  ///< |y - t|
/// e^2/2 for |e| <= delta, else delta (|e| - delta/2)
TENON_API Value huber(Value y, Value target, double delta = 1,
                      Reduction reduction = Reduction::mean);
/// -t log(y) - (1-t) log(1-y); y is clipped to [1e-7, 1 - 1e-7] unless it is logits.
TENON_API Value binary_cross_entropy(Value y, Value target, bool from_logits = false,
                                     Reduction reduction = Reduction::mean);
/// -sum(t log y) over the last axis; y is clipped to [1e-7, 1] unless it is logits.
TENON_API Value categorical_cross_entropy(Value y, Value target, bool from_logits = false,
                                          Reduction reduction = Reduction::mean);
/// -log_probabilities[label], 0 for ignored labels, which the mean does not count; shapes (N, C) and
/// (N). A label outside [0, C) that is not ignored is an error of the run.
TENON_API Value nll(Value log_probabilities, Value labels,
                    std::optional<std::int64_t> ignore_index = {},
                    Reduction reduction = Reduction::mean);
/// sum(t (log t - log y)) over the last axis; both are clipped to [1e-7, 1] before the logarithm. y
/// may be given as log-probabilities.
TENON_API Value kl_divergence(Value y, Value target, bool log_probabilities = false,
                              Reduction reduction = Reduction::mean);
/// -y t, as in Gorgonia's examples
TENON_API Value neg_mean_prod(Value y, Value target, Reduction reduction = Reduction::mean);

/// Options of ctc_loss.
struct CtcOptions {
  std::int64_t blank = 0;  ///< the class that stands for no label
  /// mean: of the losses, each divided by the length of its labels, as in PyTorch
  Reduction reduction = Reduction::mean;
  bool zero_infinity = false;  ///< labels that do not fit the input have loss 0 instead of infinity
};
/// Connectionist temporal classification: -log of the probability of all paths that become the
/// labels when equal neighbours are merged and blanks removed. log_probabilities (N, T, C), as from
/// log_softmax; labels (N, S) of i32 or i64, no blanks. The lengths (N), of the labels' dtype, say
/// how many steps and labels of a sample count, or are absent: all. What is behind them is not read.
/// Labels that do not fit have gradient 0. The graph grows with T.
/// Source  Graves et al. (2006).
TENON_API Value ctc_loss(Value log_probabilities, Value labels, Value input_lengths = {},
                         Value label_lengths = {}, const CtcOptions& options = {});

/// Random values. `key` is u64[2] = (seed, step); `stream` separates consumers of one key.
TENON_API Value random_uniform(Value key, DType dtype, const Shape& shape, std::uint32_t stream,
                               double low = 0, double high = 1);
TENON_API Value random_normal(Value key, DType dtype, const Shape& shape, std::uint32_t stream,
                              double mean = 0, double deviation = 1);
TENON_API Value random_bernoulli(Value key, DType dtype, const Shape& shape, std::uint32_t stream,
                                 double probability);
/// 0..n-1 in random order, as i64.
TENON_API Value random_permutation(Value key, std::int64_t n, std::uint32_t stream);
/// x * mask / (1 - p) with a mask drawn from Bernoulli(1 - p) by key and stream; 0 <= p < 1. p = 0
/// returns x itself.
TENON_API Value dropout(Value x, Value key, double p, std::uint32_t stream);

/// One optimizer step for all parameters: adds the node and registers the updates of parameters and
/// state. Gradients and state have the parameters' order, shapes and dtype. State consists of
/// parameters too: sgd one per parameter if momentum != 0, adam two (m0, v0, m1, v1, ...), rmsprop
/// one. lr is an f64 or f32 scalar; step is an i64 scalar that counts from 1.
TENON_API void sgd_step(const std::vector<Value>& parameters, const std::vector<Value>& gradients,
                        const std::vector<Value>& state, Value lr,
                        const tenon_attributes_sgd& attributes);
TENON_API void adam_step(const std::vector<Value>& parameters, const std::vector<Value>& gradients,
                         const std::vector<Value>& state, Value lr, Value step,
                         const tenon_attributes_adam& attributes);
/// State: three per parameter (m, v, the largest v so far).
TENON_API void amsgrad_step(const std::vector<Value>& parameters,
                            const std::vector<Value>& gradients, const std::vector<Value>& state,
                            Value lr, Value step, const tenon_attributes_adam& attributes);
TENON_API void adagrad_step(const std::vector<Value>& parameters,
                            const std::vector<Value>& gradients, const std::vector<Value>& state,
                            Value lr, const tenon_attributes_adagrad& attributes);
/// State: two per parameter (mean of g^2, mean of updates^2).
TENON_API void adadelta_step(const std::vector<Value>& parameters,
                             const std::vector<Value>& gradients, const std::vector<Value>& state,
                             Value lr, const tenon_attributes_adadelta& attributes);
TENON_API void rmsprop_step(const std::vector<Value>& parameters,
                            const std::vector<Value>& gradients, const std::vector<Value>& state,
                            Value lr, const tenon_attributes_rmsprop& attributes);

}  // namespace tenon::ops

namespace tenon {
// Elementwise with broadcasting; a number is a constant of the other operand's dtype.
inline Value operator+(Value a, Value b) {
  return ops::add(a, b);
}
inline Value operator+(Value a, double b) {
  return ops::add(a, b);
}
inline Value operator+(double a, Value b) {
  return ops::add(b, a);
}
inline Value operator-(Value a, Value b) {
  return ops::sub(a, b);
}
inline Value operator-(Value a, double b) {
  return ops::sub(a, b);
}
inline Value operator-(double a, Value b) {
  return ops::add(ops::neg(b), a);
}
inline Value operator*(Value a, Value b) {
  return ops::mul(a, b);
}
inline Value operator*(Value a, double b) {
  return ops::mul(a, b);
}
inline Value operator*(double a, Value b) {
  return ops::mul(b, a);
}
inline Value operator/(Value a, Value b) {
  return ops::div(a, b);
}
inline Value operator/(Value a, double b) {
  return ops::div(a, b);
}
inline Value operator/(double a, Value b) {
  return ops::div(a, b);
}
inline Value operator-(Value x) {
  return ops::neg(x);
}
}  // namespace tenon
