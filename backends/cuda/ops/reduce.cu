// SPDX-License-Identifier: Apache-2.0
// Reductions over any set of axes.
#include <cmath>

#include "reduce/reduction.cuh"

namespace tenon::cuda {
namespace {

template <class T>
struct SumOfMagnitudes : Sum<T> {
  __device__ T lift(T x) const { return std::abs(x); }
};

template <class T>
struct SumOfSquares : Sum<T> {
  __device__ T lift(T x) const { return x * x; }
};

/// The product; 1 without terms.
template <class T>
struct Product {
  using Partial = Wide<T>;
  using Result = T;
  __device__ Partial nothing() const { return 1; }
  __device__ Partial lift(T x) const { return widen(x); }
  __device__ Partial combine(Partial a, Partial b) const { return a * b; }
  __device__ T finish(Partial a, std::int64_t) const { return narrow<T>(a); }
};

/// The term that beats all others; NaN beats all. `refuse_empty` ensures that there is one.
template <class T, class Better, bool largest>
struct Best {
  using Partial = T;
  using Result = T;
  using Limits = std::numeric_limits<T>;
  __device__ T nothing() const {
    constexpr T high = Limits::has_infinity ? Limits::infinity() : Limits::max();
    constexpr T low = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    return largest ? low : high;
  }
  __device__ T lift(T x) const { return x; }
  __device__ T combine(T a, T b) const { return Better{}(a, b); }
  __device__ T finish(T a, std::int64_t) const { return a; }
};
template <class T>
using Largest = Best<T, functions::Max, true>;
template <class T>
using Smallest = Best<T, functions::Min, false>;

/// Squares of terms in three ranges of magnitude, each scaled to stay in the range of T.
template <class T>
struct Squares {
  T small, medium, large;
};

/// The thresholds for small and large terms, and their scale factors: powers of two.
template <class T>
struct Scales;
template <>
struct Scales<float> {
  static constexpr float small = 0x1p-63f, large = 0x1p52f, of_small = 0x1p75f, of_large = 0x1p-76f;
};
template <>
struct Scales<double> {
  static constexpr double small = 0x1p-511, large = 0x1p486, of_small = 0x1p537, of_large = 0x1p-538;
};

/// sqrt(sum x^2), in range wherever the result is.
///
/// Source  Blue: A portable Fortran program to find the Euclidean norm of a vector (1978); Anderson: Algorithm 978, Safe scaling in
///         the level 1 BLAS (2017), for the thresholds and for NaN.
template <class T>
struct Norm {
  using Partial = Squares<T>;
  using Result = T;
  using Scale = Scales<T>;

  __device__ Partial nothing() const { return {T(0), T(0), T(0)}; }
  __device__ Partial lift(T x) const {
    const T size = std::abs(x);
    const bool is_small = size<Scale::small, is_large = size> Scale::large;
    const T scaled = is_small ? x * Scale::of_small : is_large ? x * Scale::of_large : x;
    const T square = scaled * scaled;
    return {is_small ? square : T(0), is_small || is_large ? T(0) : square, is_large ? square : T(0)};
  }
  __device__ Partial combine(Partial a, Partial b) const { return {a.small + b.small, a.medium + b.medium, a.large + b.large}; }
  __device__ T finish(Partial a, std::int64_t) const {
    const bool has_medium = !(a.medium <= 0);  // or NaN
    if (a.large > 0) {                         // compared to which the small ones are negligible
      const T medium = has_medium ? a.medium * Scale::of_large * Scale::of_large : T(0);
      return std::sqrt(a.large + medium) / Scale::of_large;
    }
    if (a.small > 0) {
      if (!has_medium) return std::sqrt(a.small) / Scale::of_small;
      const T x = std::sqrt(a.small) / Scale::of_small, y = std::sqrt(a.medium);
      const T less = x < y ? x : y, more = x < y ? y : x;
      return y != y ? y : more * std::sqrt(1 + (less / more) * (less / more));
    }
    return std::sqrt(a.medium);
  }
};

/// m + log(sum exp(x - m)), m = max x; -inf without terms.
template <class T>
struct LogSumExp : SumOfExponentials<T> {
  using Result = T;
  __device__ T finish(Exponentials<T> a, std::int64_t) const {
    return std::isfinite(a.row_max) ? a.row_max + std::log(a.total) : a.row_max;
  }
};

/// What an op computes in: elements of 16 bits in f32, others as they are.
template <class T>
using Arithmetic = std::conditional_t<is_narrow<T>, float, T>;

/// An op over the compute type of elements T, with the result rounded to them.
template <class Op, class T>
struct Rounded : Op {
  using Result = T;
  __device__ T finish(const typename Op::Partial& a, std::int64_t terms) const { return narrow<T>(Op::finish(a, terms)); }
};

std::uint32_t axes_of(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_axes>();
  std::uint32_t axes = attributes.count == 0 ? ~0u : 0u;
  for (std::uint32_t i = 0; i < attributes.count; ++i) axes |= 1u << attributes.axes[i];
  return axes;
}

template <class Op, class T>
void reduce(const sdk::Call& call) {
  const sdk::Operand& x = call.inputs[0];
  const T* from = call.input<T>(0);
  const ReductionPlan plan = plan_reduction(x.shape, x.strides, x.rank, axes_of(call), aligned_width<T>(from));
  if constexpr (is_narrow<T>) {
    cuda::reduce(stream_of(call), Rounded<Op, T>{}, WideValues<T>{from}, plan, call.output<T>(0), call.scratch);
  } else {
    cuda::reduce(stream_of(call), Op{}, Values<T>{from}, plan, call.output<T>(0), call.scratch);
  }
}

std::size_t scratch(const sdk::Call& call) {
  const sdk::Operand& x = call.inputs[0];
  return scratch_of(x.shape, x.strides, x.rank, axes_of(call), x.dtype);
}
const char* refuse_empty(const sdk::Call& call) {
  return call.inputs[0].count == 0 && call.outputs[0].count > 0 ? "the axes are empty; expected at least one element" : nullptr;
}

constexpr sdk::Traits traits{.strided = true, .scratch = scratch};
constexpr sdk::Traits choosing{.strided = true, .scratch = scratch, .refuse = refuse_empty};

}  // namespace

/// Registers y = Op of x over the axes, for the listed types.
///
/// Attributes  axes: ascending, none means all. keepdims changes only the shape of y.
#define TENON_REDUCTION(stem, Op, traits, ...) \
  template <class T>                           \
  static void stem(const sdk::Call& call) {    \
    reduce<Op<Arithmetic<T>>, T>(call);        \
  }                                            \
  TENON_KERNEL_WITH(stem, traits, __VA_ARGS__)
TENON_REDUCTION(reduce_sum, Sum, traits, sdk::Half, sdk::BFloat16, float, double, std::int32_t, std::int64_t)
TENON_REDUCTION(reduce_mean, Mean, traits, sdk::Half, sdk::BFloat16, float, double)
TENON_REDUCTION(reduce_max, Largest, choosing, sdk::Half, sdk::BFloat16, float, double, std::int32_t, std::int64_t)
TENON_REDUCTION(reduce_min, Smallest, choosing, sdk::Half, sdk::BFloat16, float, double, std::int32_t, std::int64_t)
TENON_REDUCTION(reduce_prod, Product, traits, float, double, std::int32_t, std::int64_t)
TENON_REDUCTION(reduce_l1, SumOfMagnitudes, traits, float, double)
TENON_REDUCTION(reduce_l2, Norm, traits, float, double)
TENON_REDUCTION(reduce_sum_square, SumOfSquares, traits, float, double)
TENON_REDUCTION(reduce_log_sum_exp, LogSumExp, traits, float, double)
#undef TENON_REDUCTION
}  // namespace tenon::cuda
