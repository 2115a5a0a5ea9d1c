// SPDX-License-Identifier: Apache-2.0
// Local response normalisation over neighbouring channels, and the gradient; images of either layout. Overlapping reads of neighbours hit
// the L1 cache: neighbouring threads take neighbouring pixels with channels first, each with a run of channels, and neighbouring channels
// with channels last.
#include <cmath>

#include "kernel/image.cuh"

namespace tenon::cuda {
namespace {

/// Channels per thread where channels are not contiguous.
constexpr std::int64_t run = 8;

/// x as (outer, channels, inner), split into runs of channels.
struct Channels {
  std::int64_t channels, inner, runs, length, count;
  Divisor by_inner, by_runs;

  explicit Channels(const sdk::Call& call) {
    const sdk::Operand& x = call.inputs[0];
    const sdk::AxisView view = sdk::around_axis(x, call.channels_last ? std::int64_t{x.rank} - 1 : 1);
    channels = view.n;
    inner = view.inner;
    length = inner == 1 ? 1 : run;
    runs = (channels + length - 1) / length;
    count = view.outer * runs * inner;
    by_inner = Divisor(inner);
    by_runs = Divisor(runs);
  }
  /// body(pixel, c) for the channels of run i; pixel: the offset of channel 0.
  template <class Body>
  __device__ void for_each(std::int64_t i, const Body& body) const {
    const std::int64_t line = by_inner.quotient(i), outer = by_runs.quotient(line);
    const std::int64_t pixel = outer * channels * inner + (i - line * inner), first = (line - outer * runs) * length;
    const std::int64_t end = first + length < channels ? first + length : channels;
    for (std::int64_t c = first; c < end; ++c) body(pixel, c);
  }
  /// Sum of term(place) over the channels c - before ... c + after that exist.
  template <class A, class Term>
  __device__ A sum(std::int64_t pixel, std::int64_t c, std::int64_t before, std::int64_t after, const Term& term) const {
    const std::int64_t first = c < before ? 0 : c - before, last = channels - 1 - c < after ? channels - 1 : c + after;
    A total = 0;
    for (std::int64_t j = first; j <= last; ++j) total += term(pixel + j * inner);
    return total;
  }
};

/// The parameters of the formula; slope is alpha / size.
template <class A>
struct Formula {
  std::int64_t before, after;
  A slope, bias, beta;

  explicit Formula(const tenon_attributes_lrn& by)
      : before((by.size - 1) / 2),
        after(by.size / 2),
        slope(static_cast<A>(by.alpha / static_cast<double>(by.size))),
        bias(static_cast<A>(by.bias)),
        beta(static_cast<A>(by.beta)) {}
  /// bias + slope (sum of the squares in the window of channel c)
  template <class T>
  __device__ A base(const Channels& view, const T* x, std::int64_t pixel, std::int64_t c) const {
    return bias + slope * view.sum<A>(pixel, c, before, after, [x](std::int64_t at) {
      const A value = widen(x[at]);
      return value * value;
    });
  }
  /// b^-beta; beta = 3/4, as in every published net, has a fast path.
  __device__ A power(A b) const {
    if (beta != A(0.75)) return std::pow(b, -beta);
    const A root = rsqrt(b);
    return root * std::sqrt(root);
  }
};

template <class T>
__global__ void normalise(Channels view, Formula<Wide<T>> by, const T* x, T* y) {
  for (std::int64_t i = thread_index(); i < view.count; i += thread_count()) {
    view.for_each(i, [&](std::int64_t pixel, std::int64_t c) {
      const std::int64_t at = pixel + c * view.inner;
      y[at] = narrow<T>(widen(x[at]) * by.power(by.base(view, x, pixel, c)));
    });
  }
}

/// y = x / (bias + alpha / size (sum of x^2 over the channels c - floor((size - 1) / 2) ... c + ceil((size - 1) / 2)))^beta
///
/// Shapes  x, y (N, C, ...), or images with their channels last.
/// Source  Krizhevsky, Sutskever, Hinton: ImageNet Classification with Deep Convolutional Neural Networks (2012), section 3.3.
template <class T>
void lrn(const sdk::Call& call) {
  if (call.outputs[0].count == 0) return;
  const Channels view(call);
  launch_over(call, view.count, normalise<T>, view, Formula<Wide<T>>(call.attr<tenon_attributes_lrn>()), call.input<T>(0),
              call.output<T>(0));
}

/// terms = dy x d^(-beta - 1)
template <class T>
__global__ void make_terms(Channels view, Formula<Wide<T>> by, const T* dy, const T* x, Wide<T>* terms) {
  for (std::int64_t i = thread_index(); i < view.count; i += thread_count()) {
    view.for_each(i, [&](std::int64_t pixel, std::int64_t c) {
      const std::int64_t at = pixel + c * view.inner;
      const Wide<T> base = by.base(view, x, pixel, c);
      terms[at] = widen(dy[at]) * widen(x[at]) * by.power(base) / base;
    });
  }
}

/// dx = dy d^-beta - 2 beta slope x (sum of the terms whose windows hold the channel)
template <class T>
__global__ void gather_terms(Channels view, Formula<Wide<T>> by, const T* dy, const T* x, const Wide<T>* terms, T* dx) {
  using A = Wide<T>;
  for (std::int64_t i = thread_index(); i < view.count; i += thread_count()) {
    view.for_each(i, [&](std::int64_t pixel, std::int64_t c) {
      const std::int64_t at = pixel + c * view.inner;
      const A others = view.sum<A>(pixel, c, by.after, by.before, [terms](std::int64_t place) { return terms[place]; });
      const A own = widen(dy[at]) * by.power(by.base(view, x, pixel, c));
      dx[at] = narrow<T>(own - 2 * by.beta * by.slope * widen(x[at]) * others);
    });
  }
}

/// With d = bias + alpha / size sum x^2: dx = dy d^-beta - 2 alpha beta / size x (sum of dy x d^(-beta - 1) over the channels whose windows
/// hold this one).
template <class T>
void lrn_grad(const sdk::Call& call) {
  if (call.outputs[0].count == 0) return;
  const Channels view(call);
  const Formula<Wide<T>> by(call.attr<tenon_attributes_lrn>());
  auto* const terms = static_cast<Wide<T>*>(call.scratch);
  Stream& stream = stream_of(call);
  const Geometry geometry = grid_stride(stream.device(), view.count);
  launch(stream, geometry, make_terms<T>, view, by, call.input<T>(0), call.input<T>(1), terms);
  launch(stream, geometry, gather_terms<T>, view, by, call.input<T>(0), call.input<T>(1), terms, call.output<T>(0));
}
std::size_t scratch(const sdk::Call& call) {
  const sdk::Operand& x = call.inputs[1];
  return static_cast<std::size_t>(x.count) * (x.dtype == TENON_DTYPE_F64 ? sizeof(double) : sizeof(float));
}

}  // namespace
TENON_KERNEL_WITH(lrn, (sdk::Traits{.channels_last = {.inputs = 0b1, .outputs = 0b1}, .channels_last_when = images_last}), sdk::Half,
                  sdk::BFloat16, float, double)
TENON_KERNEL_WITH(lrn_grad,
                  (sdk::Traits{.channels_last = {.inputs = 0b11, .outputs = 0b1}, .channels_last_when = images_last, .scratch = scratch}),
                  sdk::Half, sdk::BFloat16, float, double)
}  // namespace tenon::cuda
