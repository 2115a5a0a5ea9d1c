// ops/reduce.cpp - sums and means over any axes, carried in f64.
#include "instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/reduce.cpp"
#include <hwy/foreach_target.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "simd.h"
#include "walk.h"

#ifndef TENON_OPENBLAS_REDUCE_SIZES
#define TENON_OPENBLAS_REDUCE_SIZES
namespace tenon::openblas {
namespace {
// Columns summed at a time: as many as four registers of the widest kind hold in f64.
constexpr std::int64_t strip = 32;
}  // namespace
}  // namespace tenon::openblas
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

using Doubles = Wide<double>;

/// n elements (all lanes if n is not less than their number), as f64; zeros in the lanes behind.
HWY_INLINE hn::Vec<Doubles> load_doubles(Doubles d, const double* p, std::int64_t n) {
  return n < lanes(d) ? load_first(d, p, n) : hn::LoadU(d, p);
}
HWY_INLINE hn::Vec<Doubles> load_doubles(Doubles d, const float* p, std::int64_t n) {
  const hn::Rebind<float, Doubles> narrow;
  return hn::PromoteTo(d, n < lanes(d) ? load_first(narrow, p, n) : hn::LoadU(narrow, p));
}

/// The sum of n adjacent elements. Halves are summed apart, so that the error grows with the depth and not with n.
template <class T>
double sum_row(const T* x, std::int64_t n) {
  constexpr std::int64_t leaf = 4096;
  if (n > leaf) {
    const std::int64_t half = n / 2 / strip * strip;
    return sum_row(x, half) + sum_row(x + half, n - half);
  }
  const Doubles d;
  const std::int64_t step = lanes(d);
  auto s0 = hn::Zero(d), s1 = hn::Zero(d), s2 = hn::Zero(d), s3 = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + 4 * step <= n; i += 4 * step) {
    s0 = hn::Add(s0, load_doubles(d, x + i, step));
    s1 = hn::Add(s1, load_doubles(d, x + i + step, step));
    s2 = hn::Add(s2, load_doubles(d, x + i + 2 * step, step));
    s3 = hn::Add(s3, load_doubles(d, x + i + 3 * step, step));
  }
  for (; i < n; i += step) s0 = hn::Add(s0, load_doubles(d, x + i, n - i));
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
}

/// out[j] = sum of x[i * stride + j] over i < rows, for j < columns <= strip.
template <class T>
void sum_columns(const T* x, std::int64_t rows, std::int64_t stride, std::int64_t columns, double* out) {
  constexpr std::int64_t leaf = 256;
  if (rows > leaf) {
    double below[strip];
    sum_columns(x, rows / 2, stride, columns, out);
    sum_columns(x + rows / 2 * stride, rows - rows / 2, stride, columns, below);
    for (std::int64_t j = 0; j < columns; ++j) out[j] += below[j];
    return;
  }
  const Doubles d;
  const std::int64_t step = lanes(d);
  std::int64_t j = 0;
  for (; j + 4 * step <= columns; j += 4 * step) {
    auto s0 = hn::Zero(d), s1 = hn::Zero(d), s2 = hn::Zero(d), s3 = hn::Zero(d);
    for (std::int64_t i = 0; i < rows; ++i) {
      const T* row = x + i * stride + j;
      s0 = hn::Add(s0, load_doubles(d, row, step));
      s1 = hn::Add(s1, load_doubles(d, row + step, step));
      s2 = hn::Add(s2, load_doubles(d, row + 2 * step, step));
      s3 = hn::Add(s3, load_doubles(d, row + 3 * step, step));
    }
    hn::StoreU(s0, d, out + j);
    hn::StoreU(s1, d, out + j + step);
    hn::StoreU(s2, d, out + j + 2 * step);
    hn::StoreU(s3, d, out + j + 3 * step);
  }
  for (; j < columns; j += step) {
    const std::int64_t n = columns - j;
    auto s0 = hn::Zero(d), s1 = hn::Zero(d);
    std::int64_t i = 0;
    for (; i + 2 <= rows; i += 2) {
      s0 = hn::Add(s0, load_doubles(d, x + i * stride + j, n));
      s1 = hn::Add(s1, load_doubles(d, x + (i + 1) * stride + j, n));
    }
    if (i < rows) s0 = hn::Add(s0, load_doubles(d, x + i * stride + j, n));
    s0 = hn::Add(s0, s1);
    if (n < step) {
      store_first(s0, d, out + j, n);
    } else {
      hn::StoreU(s0, d, out + j);
    }
  }
}

}  // namespace

double sum_row_f32(const float* x, std::int64_t n) {
  return sum_row(x, n);
}
double sum_row_f64(const double* x, std::int64_t n) {
  return sum_row(x, n);
}
void sum_columns_f32(const float* x, std::int64_t rows, std::int64_t stride, std::int64_t columns, double* out) {
  sum_columns(x, rows, stride, columns, out);
}
void sum_columns_f64(const double* x, std::int64_t rows, std::int64_t stride, std::int64_t columns, double* out) {
  sum_columns(x, rows, stride, columns, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {
namespace {

// Elements to sum that are worth a thread of their own: about 20 us.
constexpr std::int64_t grain = 128 * 1024;
// A reduction with fewer results than this, over enough elements, is cut into parts of the reduced elements; at most so many of them.
constexpr std::int64_t few_tasks = 16;
constexpr std::int64_t most_parts = 32;

double sum_row(const float* x, std::int64_t n) {
  return TENON_BEST(sum_row_f32)(x, n);
}
double sum_row(const double* x, std::int64_t n) {
  return TENON_BEST(sum_row_f64)(x, n);
}
void sum_columns(const float* x, std::int64_t rows, std::int64_t stride, std::int64_t columns, double* out) {
  TENON_BEST(sum_columns_f32)(x, rows, stride, columns, out);
}
void sum_columns(const double* x, std::int64_t rows, std::int64_t stride, std::int64_t columns, double* out) {
  TENON_BEST(sum_columns_f64)(x, rows, stride, columns, out);
}

/// A sum of sums: what each addition rounds off is added up apart (Neumaier). Vector code has made the terms, so this one may be slow.
class Total {
 public:
  void add(double x) {
    const double next = sum_ + x;
    lost_ += std::fabs(sum_) >= std::fabs(x) ? (sum_ - next) + x : (x - next) + sum_;
    sum_ = next;
  }
  double value() const { return std::isfinite(sum_) ? sum_ + lost_ : sum_; }  // beside an infinity `lost_` is NaN

 private:
  double sum_ = 0;
  double lost_ = 0;
};

/// Dimensions of x, neighbours merged where strides allow it; a dimension of one element is left out.
Walk<1> dimensions_of(const sdk::Operand& x, const tenon_attributes_axes& attributes, bool reduced) {
  Walk<1> out;
  std::uint32_t rank = 0;
  std::uint32_t next = 0;  // axes are ascending
  for (std::uint32_t i = 0; i < x.rank; ++i) {
    const bool listed = next < attributes.count && attributes.axes[next] == static_cast<std::int64_t>(i);
    if (listed) ++next;
    out.count *= (listed || attributes.count == 0) == reduced ? x.shape[i] : 1;
    if ((listed || attributes.count == 0) != reduced || x.shape[i] == 1) continue;
    if (rank > 0 && out.strides[0][rank - 1] == x.strides[i] * x.shape[i]) {
      out.shape[rank - 1] *= x.shape[i];
    } else {
      out.shape[rank++] = x.shape[i];
    }
    out.strides[0][rank - 1] = x.strides[i];
  }
  out.rank = std::max<std::uint32_t>(rank, 1);
  return out;
}

/// Takes a dimension out.
Walk<1> without(const Walk<1>& dimensions, std::uint32_t taken) {
  Walk<1> out;
  std::uint32_t rank = 0;
  for (std::uint32_t i = 0; i < dimensions.rank; ++i) {
    if (i == taken) continue;
    out.shape[rank] = dimensions.shape[i];
    out.strides[0][rank++] = dimensions.strides[0][i];
    out.count *= dimensions.shape[i];
  }
  out.rank = std::max<std::uint32_t>(rank, 1);
  return out;
}

/// How a reduction is carried out; a matter of shapes and strides alone, so that its bits do not depend on the threads.
struct Method {
  Walk<1> kept;
  Walk<1> reduced;
  bool by_columns;      // vectors along the last kept dimension, else along a reduced one
  std::uint32_t inner;  // the reduced dimension that the vector code walks
  std::uint32_t cut;    // the reduced dimension that is cut into parts
  std::int64_t tasks;   // rows to sum, or strips of columns
  std::int64_t parts;   // 1: each result is summed in one go
};

Method method_of(const sdk::Call& call) {
  const sdk::Operand& x = call.inputs[0];
  const auto& attributes = call.attr<tenon_attributes_axes>();
  Method m{dimensions_of(x, attributes, false), dimensions_of(x, attributes, true), false, 0, 0, 1, 1};
  const std::int64_t width = m.kept.shape[m.kept.rank - 1];
  m.by_columns = m.kept.run_stride(0) == 1 && width > 1;
  m.inner = m.reduced.rank - 1;
  for (std::uint32_t i = 0; i < m.reduced.rank; ++i) {
    if (!m.by_columns && m.reduced.strides[0][i] == 1) m.inner = i;
    if (m.reduced.shape[i] > m.reduced.shape[m.cut]) m.cut = i;
  }
  m.tasks = m.kept.count;
  if (m.by_columns && width > 0) m.tasks = m.kept.count / width * ((width + strip - 1) / strip);
  if (m.tasks > 0 && m.tasks < few_tasks && x.count >= 2 * grain) {
    m.parts = std::clamp<std::int64_t>(x.count / m.tasks / grain, 1, std::min(most_parts, m.reduced.shape[m.cut]));
  }
  return m;
}

template <class T>
class Reduction {
 public:
  Reduction(const Method& method, const T* x) : m_(method), x_(x) {
    // Where parts are cut apart, the inner dimension may be the one that is cut.
    part_size_ = (m_.reduced.shape[m_.cut] + m_.parts - 1) / m_.parts;
  }

  /// Sums of one part for tasks [begin, end): store(result, sum).
  template <class Store>
  void run(std::int64_t part, std::int64_t begin, std::int64_t end, const Store& store) const {
    Walk<1> reduced = m_.reduced;
    const std::int64_t first = std::min(part * part_size_, reduced.shape[m_.cut]);
    reduced.shape[m_.cut] = std::min(part_size_, reduced.shape[m_.cut] - first);
    const T* x = x_ + first * reduced.strides[0][m_.cut];
    const std::int64_t n = reduced.shape[m_.inner];
    const std::int64_t step = reduced.strides[0][m_.inner];
    const Walk<1> outer = without(reduced, m_.inner);
    if (m_.by_columns) {
      sum_strips(x, outer, n, step, begin, end, store);
    } else {
      sum_rows(x, outer, n, step, begin, end, store);
    }
  }

 private:
  template <class Body>
  static void for_each_outer(const Walk<1>& outer, const Body& body) {
    for_each_run(outer, 0, outer.count, [&](const std::array<std::int64_t, 1>& at, std::int64_t, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) body(at[0] + i * outer.run_stride(0));
    });
  }

  template <class Store>
  void sum_rows(const T* x, const Walk<1>& outer, std::int64_t n, std::int64_t step, std::int64_t begin, std::int64_t end,
                const Store& store) const {
    for_each_run(m_.kept, begin, end, [&](const std::array<std::int64_t, 1>& from, std::int64_t at, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) {
        const T* row = x + from[0] + i * m_.kept.run_stride(0);
        Total total;
        for_each_outer(outer, [&](std::int64_t offset) {
          if (step == 1) {
            total.add(sum_row(row + offset, n));
          } else {
            for (std::int64_t j = 0; j < n; ++j) total.add(static_cast<double>(row[offset + j * step]));
          }
        });
        store(at + i, total.value());
      }
    });
  }

  template <class Store>
  void sum_strips(const T* x, const Walk<1>& outer, std::int64_t n, std::int64_t step, std::int64_t begin, std::int64_t end,
                  const Store& store) const {
    const std::int64_t width = m_.kept.shape[m_.kept.rank - 1];
    const std::int64_t strips = (width + strip - 1) / strip;
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t result = task / strips * width + task % strips * strip;
      const std::int64_t columns = std::min(strip, width - task % strips * strip);
      const T* corner = x + m_.kept.offsets(result)[0];
      std::array<Total, strip> totals;
      for_each_outer(outer, [&](std::int64_t offset) {
        double sums[strip];
        sum_columns(corner + offset, n, step, columns, sums);
        for (std::int64_t j = 0; j < columns; ++j) totals[j].add(sums[j]);
      });
      for (std::int64_t j = 0; j < columns; ++j) store(result + j, totals[j].value());
    }
  }

  const Method& m_;
  const T* x_;
  std::int64_t part_size_;
};

/// y = finish(sum) for each result; the sum of nothing is 0.
template <class T, class Finish>
void reduce(const sdk::Call& call, const Finish& finish) {
  const Method method = method_of(call);
  T* const y = call.output<T>(0);
  const std::int64_t results = call.outputs[0].count;
  if (results == 0) return;
  if (method.reduced.count == 0) {
    std::fill_n(y, results, static_cast<T>(finish(0.0)));
    return;
  }
  const Reduction<T> reduction(method, call.input<T>(0));
  const std::int64_t task_size = call.inputs[0].count / method.tasks;
  if (method.parts == 1) {
    call.host.parallel_for(method.tasks, std::max<std::int64_t>(1, grain / task_size), [&](std::int64_t begin, std::int64_t end) {
      reduction.run(0, begin, end, [&](std::int64_t i, double sum) { y[i] = static_cast<T>(finish(sum)); });
    });
    return;
  }
  double* const sums = static_cast<double*>(call.scratch);
  call.host.parallel_for(method.parts, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t part = begin; part < end; ++part) {
      reduction.run(part, 0, method.tasks, [&](std::int64_t i, double sum) { sums[part * results + i] = sum; });
    }
  });
  for (std::int64_t i = 0; i < results; ++i) {
    Total total;
    for (std::int64_t part = 0; part < method.parts; ++part) total.add(sums[part * results + i]);
    y[i] = static_cast<T>(finish(total.value()));
  }
}

std::size_t scratch(const sdk::Call& call) {
  const Method method = method_of(call);
  return method.parts == 1 ? 0 : static_cast<std::size_t>(method.parts * call.outputs[0].count) * sizeof(double);
}

/// y = sum of x over the axes, over all if none is given
template <class T>
void reduce_sum(const sdk::Call& call) {
  reduce<T>(call, [](double sum) { return sum; });
}

/// y = mean of x over the axes, over all if none is given; the mean of nothing is NaN
template <class T>
void reduce_mean(const sdk::Call& call) {
  const auto terms = static_cast<double>(dimensions_of(call.inputs[0], call.attr<tenon_attributes_axes>(), true).count);
  reduce<T>(call, [terms](double sum) { return terms == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / terms; });
}

constexpr sdk::Traits traits{.strided = true, .scratch = scratch};

}  // namespace

TENON_KERNEL_WITH(reduce_sum, traits, float, double)
TENON_KERNEL_WITH(reduce_mean, traits, float, double)

}  // namespace tenon::openblas
#endif
