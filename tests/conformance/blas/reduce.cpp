// SPDX-License-Identifier: Apache-2.0
// nrm2: sqrt(sum |x|^2). asum: sum |re x| + |im x|. iamax, iamin: the first place of the largest or smallest |re x| + |im x|.
#include "blas.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace tenon::conformance::blas {
namespace {

enum Range : std::uint32_t { ordinary, huge, tiny, denormal, mixed, ties, with_nan };

const Number not_a_number(std::numeric_limits<long double>::quiet_NaN(), 0);

/// |re| + |im| as the dtype rounds it: which of two equal sums comes first depends on it.
template <class T>
std::int64_t extreme(const Dense& x, bool largest) {
  std::int64_t best = -1;
  T best_value = 0;
  for (std::int64_t i = 0; i < x.rows; ++i) {
    const T value = static_cast<T>(std::fabs(static_cast<T>(x.at(i).real())) + std::fabs(static_cast<T>(x.at(i).imag())));
    if (best >= 0 && (largest ? value <= best_value : value >= best_value)) continue;
    best = i;
    best_value = value;
  }
  return best;
}

Wrong judge(const Trial& t, Ref x, Ref result) {
  const Dense values = t.before({x});
  const Number got = t.after(result).at(0);
  const tenon_dtype type = real_of(t.dtype());
  if (t.is("iamax") || t.is("iamin")) {
    if (t.flag("range") == with_nan) {  // the index of any element
      const auto place = got.real();
      return values.rows == 0 ? compare("the index", -1, got, 0)
             : place >= 0 && place < static_cast<long double>(values.rows)
                 ? Wrong()
                 : Wrong(fmt::format("the index is {}, expected one of {} elements", place, values.rows));
    }
    const bool largest = t.is("iamax");
    const std::int64_t expected = type == TENON_DTYPE_F32 ? extreme<float>(values, largest) : extreme<double>(values, largest);
    return compare("the index", static_cast<long double>(expected), got, 0);
  }
  const bool squares = t.is("nrm2");
  long double sum = 0;
  for (std::int64_t i = 0; i < values.rows; ++i) {
    const Number z = values.at(i);
    sum += squares ? z.real() * z.real() + z.imag() * z.imag() : std::fabs(z.real()) + std::fabs(z.imag());
  }
  const long double expected = squares ? std::sqrt(sum) : sum;
  // 2 n terms without cancellation; scaling by powers of two keeps digits, another scaling costs two roundings each.
  const long double terms = 2 * static_cast<long double>(values.rows) + 4;
  return compare("the result", expected, got, 2 * terms * (epsilon(type) * expected + smallest(type)));
}

void build(Trial& t) {
  const std::int64_t n = t.size("n");
  const Ref x = t.forward_vector("x", n);
  const bool is_f32 = real_of(t.dtype()) == TENON_DTYPE_F32;
  const long double large = std::ldexp(1.0L, is_f32 ? 100 : 1000), small = std::ldexp(1.0L, is_f32 ? -120 : -1010);
  const std::uint32_t range = t.flag("range");
  if (range == huge) t.scale(x, large);
  if (range == tiny) t.scale(x, small);
  if (range == denormal) t.scale(x, std::ldexp(1.0L, is_f32 ? -140 : -1060));
  if (range == with_nan) {
    std::vector<Number> values(static_cast<std::size_t>(n), t.random().integer(0, 3) == 0 ? not_a_number : Number(1));
    if (n > 0) values[static_cast<std::size_t>(t.random().integer(0, n))] = not_a_number;
    t.fill(x, values);
  }
  if (range == mixed || range == ties) {
    std::vector<Number> values(static_cast<std::size_t>(n));
    for (Number& value : values) {
      const std::int64_t which = t.random().integer(0, 4);
      value = range == ties ? (which < 2    ? -0.75L
                               : which == 2 ? 0.75L
                                            : 0.5L)
              : which == 0  ? large
              : which == 1  ? -small
              : which == 2  ? 0
                            : 1;
    }
    t.fill(x, values);
  }
  const bool returns_index = t.is("iamax") || t.is("iamin");
  const Ref result = t.result(returns_index ? tenon_dtype{TENON_DTYPE_I64} : real_of(t.dtype()));
  t.expect([=](const Trial& trial) { return judge(trial, x, result); });
  if (!returns_index) t.spreads_infinity();
}

std::vector<Flag> flags(const Line& line, tenon_dtype) {
  const std::string routine = line.routine;
  if (routine == "nrm2") return {{"range", {ordinary, huge, tiny, denormal, mixed}}};
  if (routine == "asum") return {{"range", {ordinary, tiny, mixed}}};
  return {{"range", {ordinary, tiny, mixed, ties, with_nan}}};
}

}  // namespace

Signature signature_reduce() {
  return {.routines = {"nrm2", "asum", "iamax", "iamin"},
          .layouts = false,
          .sizes = {"n"},
          .flags = flags,
          .build = build,
          .why =
              "Terms without a sign do not cancel: nrm2 and asum are off by 2 (2 n + 4) epsilon of themselves, which allows a scaling that "
              "is not a power of two. iamax and iamin are right or wrong: |re| + |im| as the dtype rounds it says which of two is larger; "
              "of a vector with NaN any "
              "index is right."};
}

}  // namespace tenon::conformance::blas
