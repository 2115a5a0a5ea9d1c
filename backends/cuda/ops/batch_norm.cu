// SPDX-License-Identifier: Apache-2.0
// Batch normalisation, with given statistics and with those of the batch, and its gradient: a reduction of each channel and a pass over all
// elements.
#include <cmath>

#include "elementwise/epilogue.cuh"
#include "kernel/dispatch.h"
#include "norm/channels.cuh"

namespace tenon::cuda {
namespace {

/// y = (x - centre) factor + offset
template <class W>
struct Affine {
  W centre, factor, offset;
};

/// Inference: mean and variance are given.
template <class W>
struct Given {
  const W *scale, *bias, *mean, *variance;
  W epsilon;

  __device__ Affine<W> operator()(std::int64_t c) const { return {mean[c], scale[c] / std::sqrt(variance[c] + epsilon), bias[c]}; }
};

/// y may be x.
template <class T>
struct Normalise {
  using Element = T;
  static constexpr Traversal traversal = Traversal::any;
  using Params = Affine<Wide<T>>;
  template <int V>
  struct Packs {
    Pack<T, V> x, residual;
  };

  const T* x;
  T* y;
  Given<Wide<T>> given;
  const Params* made;  ///< NULL: from `given`
  ElementEpilogue<T> epilogue;

  __device__ Params params(std::int64_t c) const { return made == nullptr ? given(c) : made[c]; }
  template <int V>
  __device__ Packs<V> read(std::int64_t at, std::int64_t) const {
    return {pack_at<V>(x + at), epilogue.template read<V>(at)};
  }
  template <int V>
  __device__ Wide<T> value(const Params& by, const Packs<V>& packs, int v, std::int64_t at) const {
    return epilogue((widen(packs.x.at[v]) - by.centre) * by.factor + by.offset, packs.residual.at[v], at + v);
  }
};

template <class T>
Normalise<T> normalise(const sdk::Call& call, const Given<Wide<T>>& given, const Affine<Wide<T>>* made) {
  return {call.input<T>(0), call.output<T>(0), given, made, element_epilogue<T>(call)};
}
template <class T>
int width_of(const Normalise<T>& pass) {
  return channel_width<T>(pass.x, pass.y, pass.epilogue.residual);
}

Channels channels_of(const sdk::Call& call, std::uint32_t x) {
  return channels_around(call, call.inputs[x], call.attr<tenon_attributes_batch_norm>().axis);
}

/// y = (x - mean) / sqrt(var + epsilon) scale + bias, all per channel.
///
/// Shapes  x, y dense, of rank 2 or more; y may be x.
/// Dtypes  with f16 and bf16 the per-channel operands are f32.
template <class T>
void batch_norm(const sdk::Call& call) {
  using W = Wide<T>;
  const auto epsilon = static_cast<W>(call.attr<tenon_attributes_batch_norm>().epsilon);
  const auto pass = normalise<T>(call, {call.input<W>(1), call.input<W>(2), call.input<W>(3), call.input<W>(4), epsilon}, nullptr);
  over_channels(stream_of(call), pass, channels_of(call, 0), width_of(pass));
}

/// Running statistics may be updated in place: a thread reads those of its channel first.
template <class T>
struct TrainStatistics : Moments<T> {
  using W = Wide<T>;
  const T* x;
  const W *scale, *bias, *running_mean, *running_variance;
  W *new_mean, *new_variance, *saved_mean, *saved_inverse_std;
  Affine<W>* made;
  std::int64_t inner;
  W n, epsilon, momentum;
  bool biased;

  __device__ W base(std::int64_t c) const { return this->origin(x[c * inner]); }
  __device__ void finish(std::int64_t c, const Distances<W>& of) const {
    const W origin = base(c), mean = origin + of.mean, variance = of.squares / n, inverse_std = 1 / std::sqrt(variance + epsilon);
    new_mean[c] = (1 - momentum) * running_mean[c] + momentum * mean;
    new_variance[c] = (1 - momentum) * running_variance[c] + momentum * (biased ? variance : of.squares / (n - 1));
    saved_mean[c] = mean;
    saved_inverse_std[c] = inverse_std;
    // x - mean is exact near the mean; the rounding error of the mean goes into the offset.
    const W factor = inverse_std * scale[c], rest = (origin - mean) + of.mean;
    made[c] = {mean, factor, bias[c] - rest * factor};
  }
};

/// The same with mean and variance of the n elements of each channel, and
/// running = (1 - momentum) running + momentum (mean, or variance n / (n - 1); the variance itself if `biased`).
///
/// Source  Ioffe, Szegedy: Batch Normalization (2015), algorithms 1 and 2.
template <class T>
void batch_norm_train(const sdk::Call& call) {
  using Op = TrainStatistics<T>;
  using W = Wide<T>;
  const Channels at = channels_of(call, 0);
  const auto& attributes = call.attr<tenon_attributes_batch_norm>();
  const T* const x = call.input<T>(0);
  auto* const made = static_cast<Affine<W>*>(call.scratch);
  auto* const partials = reinterpret_cast<typename Op::Partial*>(static_cast<std::byte*>(call.scratch) + buffer_bytes<Affine<W>>(at.count));
  const Op op{{},
              x,
              call.input<W>(1),
              call.input<W>(2),
              call.input<W>(3),
              call.input<W>(4),
              call.output<W>(1),
              call.output<W>(2),
              call.output<W>(3),
              call.output<W>(4),
              made,
              at.inner,
              static_cast<W>(at.of_each()),
              static_cast<W>(attributes.epsilon),
              static_cast<W>(attributes.momentum),
              attributes.biased != 0};
  const auto pass = normalise<T>(call, {}, made);
  reduce_and_pass(stream_of(call), op, {x, nullptr}, at, channel_width<T>(x), partials, pass, width_of(pass));
}

/// dx = factor dy + slope (x - mean) + offset
template <class W>
struct GradientCoefficients {
  W mean, factor, slope, offset;
};

template <class T, bool after_relu>
struct GradientSums : AddsUp<T> {
  using W = Wide<T>;
  using Base = W;
  static constexpr int operands = 2;
  static constexpr bool relu_grad = after_relu;
  const W *scale, *mean, *inverse_std;
  W *dscale, *dbias;
  GradientCoefficients<W>* made;
  W n;

  __device__ W base(std::int64_t c) const { return mean[c]; }
  template <int N>
  __device__ void take(TwoSums<W>& total, const typename AddsUp<T>::Step&, W mean_of, const W (&dy)[N], const W (&x)[N], int terms) const {
    W distance[N];
#pragma unroll
    for (int i = 0; i < N; ++i) distance[i] = x[i] - mean_of;
    add_products(total, dy, distance, terms);
  }
  __device__ void finish(std::int64_t c, const TwoSums<W>& of) const {
    const W to_normal = inverse_std[c], factor = scale[c] * to_normal, product = of.product * to_normal;
    dscale[c] = product;
    dbias[c] = of.sum;
    made[c] = {base(c), factor, -factor * to_normal * (product / n), -factor * (of.sum / n)};
  }
};

/// a: dy; b: x; y: dx.
template <class T, bool after_relu>
struct Gradient {
  using Element = T;
  using Operands = ChannelOperands<GradientSums<T, after_relu>>;
  static constexpr Traversal traversal = Traversal::any;
  using Params = GradientCoefficients<Wide<T>>;
  template <int V>
  using Packs = typename Operands::template Packs<V>;

  Operands operands;
  T* y;
  const Params* made;

  __device__ Params params(std::int64_t c) const { return made[c]; }
  template <int V>
  __device__ Packs<V> read(std::int64_t at, std::int64_t) const {
    Packs<V> packs;
    operands.template read<V>(at, packs);
    return packs;
  }
  template <int V>
  __device__ Wide<T> value(const Params& by, const Packs<V>& packs, int v, std::int64_t) const {
    return by.factor * Operands::first(packs, v) + (by.slope * (widen(packs.b.at[v]) - by.mean) + by.offset);
  }
};

template <class T, bool after_relu>
void gradient(const sdk::Call& call) {
  using Op = GradientSums<T, after_relu>;
  using W = Wide<T>;
  const Channels at = channels_of(call, 1);
  const ChannelOperands<Op> operands{call.input<T>(0), call.input<T>(1), after_relu ? call.input<T>(5) : nullptr};
  T* const dx = call.output<T>(0);
  auto* const made = static_cast<GradientCoefficients<W>*>(call.scratch);
  auto* const partials =
      reinterpret_cast<typename Op::Partial*>(static_cast<std::byte*>(call.scratch) + buffer_bytes<GradientCoefficients<W>>(at.count));
  const Op op{
      {}, call.input<W>(2), call.input<W>(3), call.input<W>(4), call.output<W>(1), call.output<W>(2), made, static_cast<W>(at.of_each())};
  const Gradient<T, after_relu> pass{operands, dx, made};
  reduce_and_pass(stream_of(call), op, operands, at, channel_width<T>(operands.a, operands.b, operands.y), partials, pass,
                  channel_width<T>(operands.a, operands.b, operands.y, dx));
}

/// With x' = (x - mean) inverse_std: dbias = sum(dy), dscale = sum(dy x'), dx = scale inverse_std / n (n dy - dbias - x' dscale).
template <class T>
void batch_norm_train_grad(const sdk::Call& call) {
  call.has_input(5) ? gradient<T, true>(call) : gradient<T, false>(call);
}

template <class T>
std::size_t train_scratch_of(const Channels& at) {
  using W = Wide<T>;
  return buffer_bytes<Affine<W>>(at.count) + buffer_bytes<Distances<W>>(partials_of(at, channel_pack<T>));
}
template <class T>
std::size_t grad_scratch_of(const Channels& at) {
  using W = Wide<T>;
  return buffer_bytes<GradientCoefficients<W>>(at.count) + buffer_bytes<TwoSums<W>>(partials_of(at, channel_pack<T>));
}
std::size_t train_scratch(const sdk::Call& call) {
  return dispatch_floating(call.inputs[0].dtype, [&]<class T>() { return train_scratch_of<T>(channels_of(call, 0)); });
}
std::size_t grad_scratch(const sdk::Call& call) {
  return dispatch_floating(call.inputs[1].dtype, [&]<class T>() { return grad_scratch_of<T>(channels_of(call, 1)); });
}

constexpr sdk::Traits given_traits{.in_place = true,
                                   .epilogue = true,
                                   .residual = true,
                                   .channels_last = {.inputs = 0b1, .outputs = 0b1},
                                   .channels_last_when = images_last};
constexpr sdk::Traits train_traits{.in_place = true,
                                   .epilogue = true,
                                   .residual = true,
                                   .channels_last = {.inputs = 0b1, .outputs = 0b1},
                                   .channels_last_when = images_last,
                                   .scratch = train_scratch};
constexpr sdk::Traits grad_traits{
    .channels_last = {.inputs = 0b11, .outputs = 0b1}, .channels_last_when = images_last, .scratch = grad_scratch, .relu_grad = true};

}  // namespace
TENON_KERNEL_WITH(batch_norm, given_traits, sdk::Half, sdk::BFloat16, float, double)
TENON_KERNEL_WITH(batch_norm_train, train_traits, sdk::Half, sdk::BFloat16, float, double)
TENON_KERNEL_WITH(batch_norm_train_grad, grad_traits, sdk::Half, sdk::BFloat16, float, double)
}  // namespace tenon::cuda
