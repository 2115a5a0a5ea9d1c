// SPDX-License-Identifier: Apache-2.0
// Softmax, its logarithm, and their gradients, along one axis. Rows of up to 8192 elements are read once and held in registers; longer
// ones, and other axes than the last, need a reduction first.
#include <cmath>

#include <tenon/sdk/rounding.h>

#include "kernel/pack.cuh"
#include "reduce/rows.cuh"

namespace tenon::cuda {
namespace {

/// row_max and total of a line; total is NaN where row_max is not finite.
template <class T>
struct Normalizer : SumOfExponentials<T> {
  using Result = Exponentials<T>;
  __device__ Result finish(Exponentials<T> a, std::int64_t) const {
    return {a.row_max, std::isfinite(a.row_max) ? a.total : std::numeric_limits<T>::quiet_NaN()};
  }
};

// Each op, over the compute type T of its elements S, has the result for elements `a` and `b` of the first and second operand, given the
// reduced values of the line; the reduction of a line; and both at once for a row in registers, in place of `a`.

/// Of ops whose lines are reduced to a maximum and a sum of exponentials.
template <class T>
struct OfExponentials {
  using Line = Exponentials<T>;
  template <class S>
  static void lines_of(Stream& stream, const ReductionPlan& plan, const S* a, const S*, Line* out_lines, void* partials) {
    reduce(stream, Normalizer<T>{}, WideValues<S>{a}, plan, out_lines, partials);
  }
  static constexpr int inputs = 1;
  static constexpr T missing = -std::numeric_limits<T>::infinity();
};

/// y = exp(x - max x) / sum exp(x - max x)
template <class T>
struct Softmax : OfExponentials<T> {
  using Line = typename OfExponentials<T>::Line;
  __device__ T operator()(T x, T, Line line) const { return std::exp(x - line.row_max) / line.total; }

  template <int E>
  __device__ void of_row(T (&x)[E], const T (&)[E], int lanes) const {
    const T scale = 1 / exponentials_of_row(x, lanes).total;  // the total is in [1, n]
#pragma unroll
    for (int e = 0; e < E; ++e) x[e] *= scale;
  }
};

/// y = x - max x - log(sum exp(x - max x))
template <class T>
struct LogSoftmax : OfExponentials<T> {
  using Line = typename OfExponentials<T>::Line;
  __device__ T operator()(T x, T, Line line) const { return x - line.row_max - std::log(line.total); }

  template <int E>
  __device__ void of_row(T (&x)[E], const T (&)[E], int lanes) const {
    T of_exponentials[E];
#pragma unroll
    for (int e = 0; e < E; ++e) of_exponentials[e] = x[e];
    const Line line = exponentials_of_row(of_exponentials, lanes);
    const T log_total = std::log(line.total);
#pragma unroll
    for (int e = 0; e < E; ++e) x[e] = x[e] - line.row_max - log_total;
  }
};

/// dx = y (dy - sum(dy y))
template <class T>
struct SoftmaxGrad {
  using Line = T;
  template <class S>
  static void lines_of(Stream& stream, const ReductionPlan& plan, const S* a, const S* b, Line* out_lines, void* partials) {
    reduce(stream, Sum<T>{}, Products<S>{a, b}, plan, out_lines, partials);
  }
  static constexpr int inputs = 2;
  static constexpr T missing = 0;
  __device__ T operator()(T dy, T y, T dot) const { return y * (dy - dot); }

  template <int E>
  __device__ void of_row(T (&dy)[E], const T (&y)[E], int lanes) const {
    T dot = 0;
#pragma unroll
    for (int e = 0; e < E; ++e) dot += dy[e] * y[e];
    dot = combine_lanes(Sum<T>{}, dot, lanes);
#pragma unroll
    for (int e = 0; e < E; ++e) dy[e] = (*this)(dy[e], y[e], dot);
  }
};

/// dx = dy - exp(y) sum(dy)
template <class T>
struct LogSoftmaxGrad {
  using Line = T;
  template <class S>
  static void lines_of(Stream& stream, const ReductionPlan& plan, const S* a, const S*, Line* out_lines, void* partials) {
    reduce(stream, Sum<T>{}, WideValues<S>{a}, plan, out_lines, partials);
  }
  static constexpr int inputs = 2;
  static constexpr T missing = 0;
  __device__ T operator()(T dy, T y, T total) const { return dy - std::exp(y) * total; }

  template <int E>
  __device__ void of_row(T (&dy)[E], const T (&y)[E], int lanes) const {
    T total = 0;
#pragma unroll
    for (int e = 0; e < E; ++e) total += dy[e];
    total = combine_lanes(Sum<T>{}, total, lanes);
#pragma unroll
    for (int e = 0; e < E; ++e) dy[e] = (*this)(dy[e], y[e], total);
  }
};

/// y may be a or b: a row is read before it is written.
template <class T, class F, int E>
__global__ void __launch_bounds__(reduction_threads)
    rows_in_registers(F f, std::int64_t rows, std::int64_t n, int lanes, bool packs, const T* a, const T* b, T* y) {
  const int at_once = reduction_threads / lanes;
  const RowPart<T, E> part{n, lanes, static_cast<int>(threadIdx.x) % lanes, packs};
  for (std::int64_t first = std::int64_t{blockIdx.x} * at_once; first < rows; first += std::int64_t{gridDim.x} * at_once) {
    const std::int64_t row = first + static_cast<int>(threadIdx.x) / lanes;
    const bool exists = row < rows;  // else the thread takes part with an existing row
    const std::int64_t start = (exists ? row : first) * n;
    Wide<T> x[E], other[E] = {};
    part.read(a + start, F::missing, x);
    if constexpr (F::inputs == 2) part.read(b + start, F::missing, other);
    f.of_row(x, other, lanes);
    if (exists) part.write(y + start, x);
  }
}

/// y = f(a, b, line), for V neighbours at once; lines are those of the shape (outer, n, inner).
template <class T, class F, int V>
__global__ void elements(F f, std::int64_t packs, std::int64_t n, std::int64_t inner, const typename F::Line* lines, const T* a, const T* b,
                         T* y) {
  for (std::int64_t p = thread_index(); p < packs; p += thread_count()) {
    const std::int64_t above = quotient(p * V, inner), outer = quotient(above, n);
    const std::int64_t line = outer * inner + (p * V - above * inner);
    const Pack<T, V> x = pack_at<V>(a + p * V);
    Pack<T, V> other = x, result;
    if constexpr (F::inputs == 2) other = pack_at<V>(b + p * V);
#pragma unroll
    for (int v = 0; v < V; ++v) {
      result.at[v] = narrow<T>(f(widen(x.at[v]), widen(other.at[v]), lines[inner == 1 ? line : line + v]));
    }
    store_pack<V>(y + p * V, result);
  }
}

AxisLines axis_of(const sdk::Call& call) {
  return AxisLines(call.inputs[0], call.attr<tenon_attributes_axis>().axis);
}

/// The values of lines are stored before the partial results.
std::size_t bytes_of_lines(const AxisLines& axis) {
  constexpr std::size_t partial_bytes = sizeof(Exponentials<double>);
  return sdk::aligned_size(static_cast<std::size_t>(axis.lines()) * partial_bytes);
}
std::size_t scratch(const sdk::Call& call) {
  const AxisLines axis = axis_of(call);
  if (axis.fits_registers()) return 0;
  return bytes_of_lines(axis) + axis.scratch(call.inputs[0].dtype);
}

template <class T, class F>
void along_axis(const sdk::Call& call, const F& f) {
  const AxisLines axis = axis_of(call);
  const auto [outer, n, inner] = axis.shape;
  if (outer * n * inner == 0) return;
  Stream& stream = stream_of(call);
  const T* a = call.input<T>(0);
  const T* b = F::inputs == 2 ? call.input<T>(1) : a;
  T* y = call.output<T>(0);
  constexpr int V = pack_width<T>;
  const int widest = aligned_width<T>(a, b, y);
  if (axis.fits_registers()) {
    const RowPlan plan = plan_rows(n);
    const bool packs = widest > 1 && n % widest == 0;
    const auto kernel = plan.elements == 4    ? rows_in_registers<T, F, 4>
                        : plan.elements == 8  ? rows_in_registers<T, F, 8>
                        : plan.elements == 16 ? rows_in_registers<T, F, 16>
                                              : rows_in_registers<T, F, 32>;
    launch(stream, rows_geometry(plan, outer), kernel, f, outer, n, plan.lanes, packs, a, b, y);
    return;
  }
  auto* const lines = static_cast<typename F::Line*>(call.scratch);
  void* const partials = static_cast<char*>(call.scratch) + bytes_of_lines(axis);
  const ReductionPlan plan = axis.plan(aligned_width<T>(a, b));
  F::lines_of(stream, plan, a, b, lines, partials);
  const bool packs = widest > 1 && (inner == 1 ? n : inner) % widest == 0;
  const std::int64_t count = outer * n * inner / (packs ? V : 1);
  launch_over(stream, count, packs ? elements<T, F, V> : elements<T, F, 1>, f, count, n, inner, lines, a, b, y);
}

/// y = exp(x - max x) / sum exp(x - max x), along the axis.
///
/// Shapes  x, y dense; y may be x. An axis of size 0 writes nothing.
/// Source  Goodfellow, Bengio, Courville: Deep Learning (2016), section 4.1 (why the maximum is subtracted).
template <class T>
void softmax(const sdk::Call& call) {
  along_axis<T>(call, Softmax<Wide<T>>{});
}

/// dx may be dy or y.
template <class T>
void softmax_grad(const sdk::Call& call) {
  along_axis<T>(call, SoftmaxGrad<Wide<T>>{});
}

template <class T>
void log_softmax(const sdk::Call& call) {
  along_axis<T>(call, LogSoftmax<Wide<T>>{});
}

/// dx may be dy or y.
template <class T>
void log_softmax_grad(const sdk::Call& call) {
  along_axis<T>(call, LogSoftmaxGrad<Wide<T>>{});
}

constexpr sdk::Traits traits{.in_place = true, .scratch = scratch};

}  // namespace
TENON_KERNEL_WITH(softmax, traits, sdk::Half, sdk::BFloat16, float, double)
TENON_KERNEL_WITH(softmax_grad, traits, sdk::Half, sdk::BFloat16, float, double)
TENON_KERNEL_WITH(log_softmax, traits, sdk::Half, sdk::BFloat16, float, double)
TENON_KERNEL_WITH(log_softmax_grad, traits, sdk::Half, sdk::BFloat16, float, double)
}  // namespace tenon::cuda
