// SPDX-License-Identifier: Apache-2.0
#include "norm/line_norm.h"

#include "simd/foreach_target.h"

#include <algorithm>
#include <cmath>

#include "even_grain.h"
#include "simd/partial_vectors.h"

#ifndef TENON_OPENBLAS_LINE_NORM_CODE
#define TENON_OPENBLAS_LINE_NORM_CODE
namespace tenon::openblas {
namespace {

/// Lines that the gradient processes together: they are read twice, the second time from the cache.
constexpr std::int64_t line_block = 16;

/// The coefficients of a line's gradient: x' = (x - mean) rstd, dx = rstd g + (by_normal x' + constant).
template <class T>
struct LineCoefficients {
  T mean, rstd, by_normal, constant;
};

/// Columns [begin, end) of lines that are `stride` elements apart.
struct Columns {
  std::int64_t lines, stride, begin, end;
};

}  // namespace
}  // namespace tenon::openblas
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

struct TwoSums {
  double first = 0, second = 0;
};

/// Two sums over i < n. terms(i, m, first, second) adds the terms of elements [i, i + m) to two vectors. Blocks of 48 vectors are summed in
/// T, their sums in f64.
template <class T, class Terms>
HWY_INLINE TwoSums sums(std::int64_t n, const Terms& terms) {
  const Wide<T> d;
  const std::int64_t step = lanes(d), block = 48 * step;
  TwoSums total;
  for (std::int64_t begin = 0; begin < n; begin += block) {
    const std::int64_t end = HWY_MIN(n, begin + block);
    auto a0 = hn::Zero(d), a1 = a0, a2 = a0, b0 = a0, b1 = a0, b2 = a0;
    std::int64_t i = begin;
    for (; i + 3 * step <= end; i += 3 * step) {
      terms(i, step, a0, b0);
      terms(i + step, step, a1, b1);
      terms(i + 2 * step, step, a2, b2);
    }
    for (; i < end; i += step) terms(i, HWY_MIN(step, end - i), a0, b0);
    total.first += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a0, a1), a2))));
    total.second += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(b0, b1), b2))));
  }
  return total;
}

/// y = ((x - centre) rstd + shift) scale + bias
template <class T, bool scaled, bool biased>
HWY_INLINE void write_line(const T* x, const T* scale, const T* bias, T* y, std::int64_t n, T centre, T rstd, T shift) {
  const Wide<T> d;
  const auto c = hn::Set(d, centre), by = hn::Set(d, rstd), s = hn::Set(d, shift);
  across<T>(n, [&](std::int64_t i, std::int64_t m) HWY_ATTR {
    auto v = hn::MulAdd(hn::Sub(load(d, x + i, m), c), by, s);
    if constexpr (scaled && biased) v = hn::MulAdd(v, load(d, scale + i, m), load(d, bias + i, m));
    if constexpr (scaled && !biased) v = hn::Mul(v, load(d, scale + i, m));
    if constexpr (!scaled && biased) v = hn::Add(v, load(d, bias + i, m));
    store(v, d, y + i, m);
  });
}

/// Computes the mean in one pass, and in a second one the squared distances from it and the mean's rounding error.
///
/// Source  Chan, Golub, LeVeque: Algorithms for Computing the Sample Variance (1983), the corrected two-pass algorithm.
template <class T>
void line(bool centred, double epsilon, const T* x, const T* scale, const T* bias, T* y, std::int64_t n, T* out_mean, T* out_rstd) {
  using V = hn::Vec<Wide<T>>;
  const Wide<T> d;
  const auto count = static_cast<double>(n);
  // compute the mean
  T centre = 0;
  if (centred) {
    const TwoSums sum =
        sums<T>(n, [&](std::int64_t i, std::int64_t m, V& first, V&) HWY_ATTR { first = hn::Add(first, load(d, x + i, m)); });
    centre = static_cast<T>(sum.first / count);
  }
  // compute the variance
  const TwoSums of = sums<T>(n, [&](std::int64_t i, std::int64_t m, V& first, V& second) HWY_ATTR {
    const V distance = hn::Sub(load(d, x + i, m, centre), hn::Set(d, centre));
    first = hn::Add(first, distance);
    second = hn::MulAdd(distance, distance, second);
  });
  const double off = centred ? of.first / count : 0;  // the rounding error of the mean; NaN if x has an infinity
  const double squares = of.second / count - off * off;
  const double rstd = 1 / std::sqrt((squares < 0 ? 0 : squares) + epsilon);  // NaN propagates
  if (out_mean != nullptr) *out_mean = static_cast<T>(static_cast<double>(centre) + (std::isfinite(off) ? off : 0));
  if (out_rstd != nullptr) *out_rstd = static_cast<T>(rstd);
  // normalise
  const auto by = static_cast<T>(rstd), shift = static_cast<T>(-off * rstd);
  if (scale != nullptr && bias != nullptr) {
    write_line<T, true, true>(x, scale, bias, y, n, centre, by, shift);
  } else if (scale != nullptr) {
    write_line<T, true, false>(x, scale, bias, y, n, centre, by, shift);
  } else if (bias != nullptr) {
    write_line<T, false, true>(x, scale, bias, y, n, centre, by, shift);
  } else {
    write_line<T, false, false>(x, scale, bias, y, n, centre, by, shift);
  }
}

/// The coefficients of dx from mean(g) and mean(g x') of a line.
template <class T>
LineCoefficients<T> coefficients(bool centred, const T* dy, const T* x, const T* scale, std::int64_t n, T mean, T rstd) {
  using V = hn::Vec<Wide<T>>;
  const Wide<T> d;
  const auto centre = hn::Set(d, mean);
  const TwoSums of = sums<T>(n, [&](std::int64_t i, std::int64_t m, V& first, V& second) HWY_ATTR {
    V g = load(d, dy + i, m);
    if (scale != nullptr) g = hn::Mul(g, load(d, scale + i, m));
    first = hn::Add(first, g);
    second = hn::MulAdd(g, hn::Sub(load(d, x + i, m), centre), second);
  });
  const auto count = static_cast<double>(n);
  const auto by = static_cast<double>(rstd);
  return {mean, rstd, static_cast<T>(-by * by * (of.second / count)), static_cast<T>(centred ? -by * (of.first / count) : 0)};
}

/// out[j] += v, lane by lane, for n lanes.
template <class T>
HWY_INLINE void add_to(double* out, hn::Vec<Wide<T>> v, std::int64_t n) {
  HWY_ALIGN T buffer[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(v, Wide<T>(), buffer);
  const Wide<double> d;
  std::int64_t j = 0;
  for (; j + lanes(d) <= n; j += lanes(d)) {
    if constexpr (sizeof(T) == sizeof(double)) {
      hn::StoreU(hn::Add(hn::LoadU(d, out + j), hn::Load(d, buffer + j)), d, out + j);
    } else {
      hn::StoreU(hn::Add(hn::LoadU(d, out + j), hn::PromoteTo(d, hn::LoadU(hn::Rebind<T, Wide<double>>(), buffer + j))), d, out + j);
    }
  }
  for (; j < n; ++j) out[j] += static_cast<double>(buffer[j]);
}

/// The sums of dy x' and dy for a vector of columns.
template <class V>
struct ColumnSums {
  V product, sum;
};

/// Computes dx of n elements of a line and adds their terms to the column sums.
template <class T, class V>
HWY_INLINE void element(const T* dy, const T* x, V scale, T* dx, std::int64_t n, const LineCoefficients<T>& of, ColumnSums<V>& sums) {
  const Wide<T> d;
  const V rstd = hn::Set(d, of.rstd), g = load(d, dy, n);
  const V normal = hn::Mul(hn::Sub(load(d, x, n), hn::Set(d, of.mean)), rstd);
  sums.product = hn::MulAdd(g, normal, sums.product);
  sums.sum = hn::Add(sums.sum, g);
  const V rest = hn::MulAdd(normal, hn::Set(d, of.by_normal), hn::Set(d, of.constant));
  store(hn::MulAdd(hn::Mul(g, scale), rstd, rest), d, dx, n);
}

/// Computes dx, and adds to the column sums of dy x' and dy, for up to line_block lines; two vectors of columns at a time.
template <class T>
void gradient(const T* dy, const T* x, const T* scale, T* dx, const Columns& at, const LineCoefficients<T>* of, double* dscale,
              double* dbias) {
  using V = hn::Vec<Wide<T>>;
  const Wide<T> d;
  const std::int64_t step = lanes(d), lines = at.lines, stride = at.stride, end = at.end;
  const V one = hn::Set(d, 1);
  const auto add = [&](std::int64_t j, const ColumnSums<V>& sums, std::int64_t n) HWY_ATTR {
    if (dscale != nullptr) add_to<T>(dscale + j, sums.product, n);
    if (dbias != nullptr) add_to<T>(dbias + j, sums.sum, n);
  };
  std::int64_t j = at.begin;
  for (; j + 2 * step <= end; j += 2 * step) {
    const V scale0 = scale == nullptr ? one : hn::LoadU(d, scale + j), scale1 = scale == nullptr ? one : hn::LoadU(d, scale + j + step);
    ColumnSums<V> sums0{hn::Zero(d), hn::Zero(d)}, sums1 = sums0;
    for (std::int64_t i = 0, place = j; i < lines; ++i, place += stride) {
      element(dy + place, x + place, scale0, dx + place, step, of[i], sums0);
      element(dy + place + step, x + place + step, scale1, dx + place + step, step, of[i], sums1);
    }
    add(j, sums0, step);
    add(j + step, sums1, step);
  }
  for (; j < end; j += step) {
    const std::int64_t n = HWY_MIN(step, end - j);
    const V by = scale == nullptr ? one : load(d, scale + j, n);
    ColumnSums<V> sums{hn::Zero(d), hn::Zero(d)};
    for (std::int64_t i = 0, place = j; i < lines; ++i, place += stride) element(dy + place, x + place, by, dx + place, n, of[i], sums);
    add(j, sums, n);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {
namespace {

// Elements worth a thread of their own: about 20 us.
constexpr std::int64_t grain = 32 * 1024;

sdk::Rows lines_of(const sdk::Call& call, std::uint32_t x) {
  const sdk::AxisView view = sdk::around_axis(call.inputs[x], call.attr<tenon_attributes_layer_norm>().axis);
  return {view.outer, view.n * view.inner};
}

/// How the gradient is divided. Short lines: into parts of the lines, each with its own column sums. Long lines: first the coefficients of
/// every line, then strips of columns over all lines. It depends only on the shape, so the bits do not depend on the number of threads.
struct GradientPlan {
  bool strips;
  std::int64_t parts;

  explicit GradientPlan(const sdk::Rows& lines)
      : strips(lines.n >= 8192), parts(strips ? 1 : std::clamp<std::int64_t>(lines.rows / (2 * line_block), 1, 32)) {}
};

}  // namespace

template <class T>
void normalise_lines(const sdk::Call& call, Centre centre, const T* x, const T* scale, const T* bias, T* y, T* mean, T* rstd) {
  const sdk::Rows lines = lines_of(call, 0);
  const double epsilon = call.attr<tenon_attributes_layer_norm>().epsilon;
  const auto normalise = TENON_DISPATCH(line<T>);
  if (lines.n == 0) return;
  const std::int64_t lines_of_grain = even_grain(call.host, lines.rows, std::max<std::int64_t>(1, grain / lines.n));
  call.host.parallel_for(lines.rows, lines_of_grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      normalise(centre == Centre::mean, epsilon, x + i * lines.n, scale, bias, y + i * lines.n, lines.n,
                mean == nullptr ? nullptr : mean + i, rstd == nullptr ? nullptr : rstd + i);
    }
  });
}

std::size_t line_gradient_scratch(const sdk::Call& call, std::uint32_t x) {
  const sdk::Rows lines = lines_of(call, x);
  const GradientPlan plan(lines);
  const auto coefficients = plan.strips ? static_cast<std::size_t>(lines.rows) * sizeof(LineCoefficients<double>) : 0;
  return static_cast<std::size_t>(2 * plan.parts * lines.n) * sizeof(double) + coefficients;
}

template <class T>
void line_gradient(const sdk::Call& call, Centre centre, const T* dy, const T* x, const T* scale, const T* mean, const T* rstd, T* dx,
                   T* dscale, T* dbias) {
  const sdk::Rows lines = lines_of(call, 1);
  const GradientPlan plan(lines);
  const bool centred = centre == Centre::mean;
  const auto gradient_of = TENON_DISPATCH(gradient<T>);
  double* const sums = static_cast<double*>(call.scratch);  // per part: the sums of dscale, then those of dbias
  const std::int64_t length = lines.n, count = lines.rows;
  const auto coefficients_of = [&](std::int64_t i) {
    return TENON_DISPATCH(coefficients<T>)(centred, dy + i * length, x + i * length, scale, length, centred ? mean[i] : T{0}, rstd[i]);
  };
  std::fill_n(sums, 2 * plan.parts * length, 0.0);
  if (plan.strips) {
    auto* const coefficients = reinterpret_cast<LineCoefficients<T>*>(sums + 2 * length);
    call.host.parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) coefficients[i] = coefficients_of(i);
    });
    constexpr std::int64_t strip = 512;
    call.host.parallel_for((length + strip - 1) / strip, std::max<std::int64_t>(1, grain / (strip * std::max<std::int64_t>(1, count))),
                           [&](std::int64_t begin, std::int64_t end) {
                             for (std::int64_t i = 0; i < count; i += line_block) {
                               const Columns columns{std::min(line_block, count - i), length, begin * strip, std::min(length, end * strip)};
                               gradient_of(dy + i * length, x + i * length, scale, dx + i * length, columns, coefficients + i,
                                           dscale == nullptr ? nullptr : sums, dbias == nullptr ? nullptr : sums + length);
                             }
                           });
  } else {
    call.host.parallel_for(plan.parts, 1, [&](std::int64_t begin, std::int64_t end) {
      LineCoefficients<T> coefficients[line_block];
      for (std::int64_t part = begin; part < end; ++part) {
        double* const own = sums + 2 * part * length;
        const std::int64_t stop = count * (part + 1) / plan.parts;
        for (std::int64_t i = count * part / plan.parts; i < stop; i += line_block) {
          const Columns columns{std::min(line_block, stop - i), length, 0, length};
          for (std::int64_t k = 0; k < columns.lines; ++k) coefficients[k] = coefficients_of(i + k);
          gradient_of(dy + i * length, x + i * length, scale, dx + i * length, columns, coefficients, dscale == nullptr ? nullptr : own,
                      dbias == nullptr ? nullptr : own + length);
        }
      }
    });
  }
  const auto gather = [&](T* out, std::int64_t which) {
    for (std::int64_t j = 0; out != nullptr && j < length; ++j) {
      double total = 0;
      for (std::int64_t part = 0; part < plan.parts; ++part) total += sums[(2 * part + which) * length + j];
      out[j] = static_cast<T>(total);
    }
  };
  gather(dscale, 0);
  gather(dbias, 1);
}

TENON_INSTANTIATE_FLOATS(normalise_lines)
TENON_INSTANTIATE_FLOATS(line_gradient)

}  // namespace tenon::openblas
#endif
