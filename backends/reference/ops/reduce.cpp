// SPDX-License-Identifier: Apache-2.0
// Reductions over any set of axes. Sums are accumulated in f64 with compensation for rounding errors.
#include <tenon/sdk/kernel.h>
#include <tenon/sdk/strided.h>

#include <array>
#include <cmath>
#include <limits>

#include "map.h"

namespace tenon::reference {
namespace {

/// A sum whose error does not grow with the number of terms: the rounding errors of the additions are summed separately.
/// Source  Ogita, Rump, Oishi: Accurate Sum and Dot Product (2005), Sum2.
class Sum {
 public:
  void add(double x) {
    const double next = total_ + x;
    const double x_seen = next - total_;
    compensation_ += (total_ - (next - x_seen)) + (x - x_seen);
    total_ = next;
  }
  double value() const {
    return std::isfinite(total_) ? total_ + compensation_ : total_;
  }  // with an infinite total, `compensation_` is NaN

 private:
  double total_ = 0, compensation_ = 0;
};

/// A subset of the dimensions of an operand.
struct Dimensions {
  std::uint32_t rank = 0;
  std::array<std::int64_t, TENON_MAX_RANK> shape{};
  sdk::Strides strides{};

  void append(std::int64_t size, std::int64_t stride) {
    shape[rank] = size;
    strides[rank++] = stride;
  }
};

/// The elements that are reduced to one result.
template <class T>
struct Line {
  const T* first;
  const Dimensions& dimensions;
  std::int64_t count;

  /// body(x) for each, floats as f64.
  template <class Body>
  void each(Body&& body) const {
    const std::array<sdk::Strides, 1> strides{dimensions.strides};
    sdk::for_each_element(dimensions.shape.data(), dimensions.rank, strides, [&](std::int64_t, const auto& at) {
      if constexpr (std::is_integral_v<T>) {
        body(first[at[0]]);
      } else {
        body(double{first[at[0]]});
      }
    });
  }
  /// The sum of f(x), in f64.
  template <class F>
  double sum(F&& f) const {
    Sum total;
    each([&](double x) { total.add(f(x)); });
    return total.value();
  }
};

/// y[kept] = of(the line x[kept, reduced])
template <class T, class Of>
void reduce(const sdk::Call& call, Of of) {
  const auto& attributes = call.attr<tenon_attributes_axes>();
  const sdk::Operand& x = call.inputs[0];
  Dimensions kept, reduced;
  std::uint32_t next = 0;  // axes are ascending
  std::int64_t terms = 1;
  for (std::uint32_t d = 0; d < x.rank; ++d) {
    const bool listed = next < attributes.count && attributes.axes[next] == d;
    if (listed) ++next;
    if (listed || attributes.count == 0) {
      reduced.append(x.shape[d], x.strides[d]);
      terms *= x.shape[d];
    } else {
      kept.append(x.shape[d], x.strides[d]);
    }
  }
  const T* from = call.input<T>(0);
  T* y = call.output<T>(0);
  const std::array<sdk::Strides, 1> outer{kept.strides};
  sdk::for_each_element(kept.shape.data(), kept.rank, outer, [&](std::int64_t i, const auto& at) {
    // an empty line has no start address
    y[i] = static_cast<T>(of(Line<T>{terms == 0 ? from : from + at[0], reduced, terms}));
  });
}

/// y = sum of x over the axes; 0 without terms. Integers wrap.
///
/// Attributes  axes: ascending, none means all. keepdims changes only the shape of y.
template <class T>
void reduce_sum(const sdk::Call& call) {
  reduce<T>(call, [](const Line<T>& line) {
    if constexpr (std::is_integral_v<T>) {
      Unsigned<T> total = 0;
      line.each([&](T x) { total += static_cast<Unsigned<T>>(x); });
      return total;
    } else {
      return line.sum([](double x) { return x; });
    }
  });
}

/// y = (sum of x over the axes) / (number of terms); NaN without terms. Attributes as for reduce_sum.
template <class T>
void reduce_mean(const sdk::Call& call) {
  reduce<T>(call, [](const Line<T>& line) { return line.sum([](double x) { return x; }) / static_cast<double>(line.count); });
}

/// y = the x that beats(x, every other one); NaN beats all. `refuse_empty` ensures that a line has elements.
template <class T, class Beats>
void choose(const sdk::Call& call, Beats beats) {
  reduce<T>(call, [beats](const Line<T>& line) {
    T best = *line.first;
    line.each([&](auto x) {
      if (x != x || beats(x, best)) best = static_cast<T>(x);
    });
    return best;
  });
}

/// y = largest x over the axes; NaN propagates. Attributes as for reduce_sum.
template <class T>
void reduce_max(const sdk::Call& call) {
  choose<T>(call, [](auto x, auto best) { return x > best; });
}

/// y = smallest x over the axes; NaN propagates. Attributes as for reduce_sum.
template <class T>
void reduce_min(const sdk::Call& call) {
  choose<T>(call, [](auto x, auto best) { return x < best; });
}

/// y = product of x over the axes; 1 without terms. Integers wrap. Attributes as for reduce_sum.
template <class T>
void reduce_prod(const sdk::Call& call) {
  reduce<T>(call, [](const Line<T>& line) {
    if constexpr (std::is_integral_v<T>) {
      Unsigned<T> product = 1;
      line.each([&](T x) { product *= static_cast<Unsigned<T>>(x); });
      return product;
    } else {
      double product = 1;
      line.each([&](double x) { product *= x; });
      return product;
    }
  });
}

/// y = sum |x| over the axes. Attributes as for reduce_sum.
template <class T>
void reduce_l1(const sdk::Call& call) {
  reduce<T>(call, [](const Line<T>& line) { return line.sum([](double x) { return std::fabs(x); }); });
}

/// y = sum x^2 over the axes. Attributes as for reduce_sum.
template <class T>
void reduce_sum_square(const sdk::Call& call) {
  reduce<T>(call, [](const Line<T>& line) { return line.sum([](double x) { return x * x; }); });
}

/// max |x| of a line; NaN if there is one.
template <class T>
double largest_magnitude(const Line<T>& line) {
  double largest = 0;
  line.each([&](double x) {
    if (x != x || std::fabs(x) > largest) largest = std::fabs(x);
  });
  return largest;
}

/// y = sqrt(sum x^2) over the axes. Squares are taken of x / 2^e, e the exponent of the largest: neither they nor their sum overflow or
/// underflow unless y does. Attributes as for reduce_sum.
template <class T>
void reduce_l2(const sdk::Call& call) {
  reduce<T>(call, [](const Line<T>& line) {
    const double largest = largest_magnitude(line);
    if (largest == 0 || !std::isfinite(largest)) return largest;
    const int exponent = std::ilogb(largest);
    const double squares = line.sum([&](double x) { return std::ldexp(x, -exponent) * std::ldexp(x, -exponent); });
    return std::ldexp(std::sqrt(squares), exponent);
  });
}

/// y = m + log(sum exp(x - m)) over the axes, m = max x; -inf without terms. The maximum is added to the logarithm, not inside it.
/// Attributes as for reduce_sum.
template <class T>
void reduce_log_sum_exp(const sdk::Call& call) {
  reduce<T>(call, [](const Line<T>& line) {
    double maximum = -std::numeric_limits<double>::infinity();
    line.each([&](double x) {
      if (x != x || x > maximum) maximum = x;
    });
    if (!std::isfinite(maximum)) return maximum;
    return maximum + std::log(line.sum([&](double x) { return std::exp(x - maximum); }));
  });
}

const char* refuse_empty(const sdk::Call& call) {
  return call.inputs[0].count == 0 && call.outputs[0].count > 0 ? "the axes are empty; expected at least one element" : nullptr;
}

constexpr sdk::Traits traits{.strided = true};
constexpr sdk::Traits choosing{.strided = true, .refuse = refuse_empty};

}  // namespace
TENON_KERNEL_WITH(reduce_sum, traits, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(reduce_mean, traits, float, double)
TENON_KERNEL_WITH(reduce_max, choosing, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(reduce_min, choosing, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(reduce_prod, traits, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(reduce_l1, traits, float, double)
TENON_KERNEL_WITH(reduce_l2, traits, float, double)
TENON_KERNEL_WITH(reduce_sum_square, traits, float, double)
TENON_KERNEL_WITH(reduce_log_sum_exp, traits, float, double)
}  // namespace tenon::reference
