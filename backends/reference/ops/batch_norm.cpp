// SPDX-License-Identifier: Apache-2.0
// Normalisation of each channel: with given statistics, with those of the batch, and the gradient of the latter.
#include <tenon/sdk/kernel.h>

#include <cmath>

#include "statistics.h"

namespace tenon::reference {
namespace {

/// The elements of an operand by channel.
struct Channels {
  std::int64_t outer, count, inner;
  std::int64_t n;  ///< elements per channel

  explicit Channels(const sdk::Call& call, std::uint32_t x) {
    const sdk::AxisView view = sdk::around_axis(call.inputs[x], call.attr<tenon_attributes_batch_norm>().axis);
    outer = view.outer;
    count = view.n;
    inner = view.inner;
    n = outer * inner;
  }
  /// The offset of element i of channel c.
  std::int64_t at(std::int64_t c, std::int64_t i) const { return (i / inner * count + c) * inner + i % inner; }
};

/// y = (x - mean) / sqrt(var + epsilon) scale + bias, all per channel.
///
/// Shapes  x, y dense, of rank 2 or more; y may be x. The others (channels).
/// Dtypes  f32, f64; everything up to the final rounding is f64.
template <class T>
void batch_norm(const sdk::Call& call) {
  const Channels channels(call, 0);
  const double epsilon = call.attr<tenon_attributes_batch_norm>().epsilon;
  const T* x = call.input<T>(0);
  const T* scale = call.input<T>(1);
  const T* bias = call.input<T>(2);
  const T* mean = call.input<T>(3);
  const T* variance = call.input<T>(4);
  T* y = call.output<T>(0);
  for (std::int64_t c = 0; c < channels.count; ++c) {
    const double inverse_std = 1 / std::sqrt(double{variance[c]} + epsilon);
    for (std::int64_t i = 0; i < channels.n; ++i) {
      const std::int64_t at = channels.at(c, i);
      y[at] = static_cast<T>((double{x[at]} - double{mean[c]}) * inverse_std * double{scale[c]} + double{bias[c]});
    }
  }
}

/// The same with mean and variance of the n elements per channel channel, and
/// running = (1 - momentum) running + momentum (mean, or variance n / (n - 1); the variance itself if `biased`).
///
/// Shapes  the running statistics may be updated in place.
/// Source  Ioffe, Szegedy: Batch Normalization (2015), algorithms 1 and 2.
template <class T>
void batch_norm_train(const sdk::Call& call) {
  const Channels channels(call, 0);
  const auto& attributes = call.attr<tenon_attributes_batch_norm>();
  const T* x = call.input<T>(0);
  const T* scale = call.input<T>(1);
  const T* bias = call.input<T>(2);
  const T* running_mean = call.input<T>(3);
  const T* running_variance = call.input<T>(4);
  T* y = call.output<T>(0);
  T* new_mean = call.output<T>(1);
  T* new_variance = call.output<T>(2);
  T* saved_mean = call.output<T>(3);
  T* saved_inverse_std = call.output<T>(4);
  const auto n = static_cast<double>(channels.n);
  const double momentum = attributes.momentum;
  for (std::int64_t c = 0; c < channels.count; ++c) {
    const Statistics of(channels.n, [&](std::int64_t i) { return double{x[channels.at(c, i)]}; });
    const double inverse_std = of.inverse_std(attributes.epsilon);
    const double variance = attributes.biased != 0 ? of.variance : of.variance * (n / (n - 1));
    saved_mean[c] = static_cast<T>(of.mean);
    saved_inverse_std[c] = static_cast<T>(inverse_std);
    new_mean[c] = static_cast<T>((1 - momentum) * double{running_mean[c]} + momentum * of.mean);
    new_variance[c] = static_cast<T>((1 - momentum) * double{running_variance[c]} + momentum * variance);
    for (std::int64_t i = 0; i < channels.n; ++i) {
      const std::int64_t at = channels.at(c, i);
      y[at] = static_cast<T>((double{x[at]} - of.mean) * inverse_std * double{scale[c]} + double{bias[c]});
    }
  }
}

/// With x' = (x - mean) inverse_std: dbias = sum(dy), dscale = sum(dy x'), dx = scale inverse_std / n (n dy - dbias - x' dscale).
template <class T>
void batch_norm_train_grad(const sdk::Call& call) {
  const Channels channels(call, 1);
  const T* dy = call.input<T>(0);
  const T* x = call.input<T>(1);
  const T* scale = call.input<T>(2);
  const T* mean = call.input<T>(3);
  const T* inverse_std = call.input<T>(4);
  T* dx = call.output<T>(0);
  T* dscale = call.output<T>(1);
  T* dbias = call.output<T>(2);
  const auto n = static_cast<double>(channels.n);
  for (std::int64_t c = 0; c < channels.count; ++c) {
    const auto normal = [&](std::int64_t at) { return (double{x[at]} - double{mean[c]}) * double{inverse_std[c]}; };
    double sum = 0, product = 0;
    for (std::int64_t i = 0; i < channels.n; ++i) {
      const std::int64_t at = channels.at(c, i);
      sum += double{dy[at]};
      product += double{dy[at]} * normal(at);
    }
    dbias[c] = static_cast<T>(sum);
    dscale[c] = static_cast<T>(product);
    const double factor = double{scale[c]} * double{inverse_std[c]};
    for (std::int64_t i = 0; i < channels.n; ++i) {
      const std::int64_t at = channels.at(c, i);
      dx[at] = static_cast<T>(factor * (double{dy[at]} - sum / n - normal(at) * (product / n)));
    }
  }
}

}  // namespace
TENON_KERNEL_WITH(batch_norm, (sdk::Traits{.in_place = true}), float, double)
TENON_KERNEL_WITH(batch_norm_train, (sdk::Traits{.in_place = true}), float, double)
TENON_KERNEL(batch_norm_train_grad, float, double)
}  // namespace tenon::reference
