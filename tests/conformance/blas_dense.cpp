// SPDX-License-Identifier: Apache-2.0
#include "blas_dense.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <utility>

namespace tenon::conformance::blas {

long double magnitude(Number z) {
  return std::fabs(z.real()) + std::fabs(z.imag());
}
bool is_nan(Number z) {
  return std::isnan(z.real()) || std::isnan(z.imag());
}
Number product(Number a, Number b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

std::string str(Number z, bool complex) {
  const auto re = static_cast<double>(z.real()), im = static_cast<double>(z.imag());
  return complex ? fmt::format("({:.17g},{:.17g})", re, im) : fmt::format("{:.17g}", re);
}

Dense transformed(Dense from, std::uint32_t op) {
  if (op == TENON_CONJ_TRANS || op == TENON_CONJ_NO_TRANS) {
    for (long double& im : from.im) im = -im;
  }
  if (!transposes(op)) return from;
  if (from.rows > 1 && from.columns > 1) {
    const auto transpose = [&](auto& values) {
      auto transposed = values;
      for (std::int64_t i = 0; i < from.rows; ++i) {
        for (std::int64_t j = 0; j < from.columns; ++j) {
          transposed[static_cast<std::size_t>(j * from.rows + i)] = values[static_cast<std::size_t>(i * from.columns + j)];
        }
      }
      values = std::move(transposed);
    };
    transpose(from.re);
    if (!from.im.empty()) transpose(from.im);
    transpose(from.stored);
  }
  std::swap(from.rows, from.columns);
  return from;
}

Dense diagonal_of(const Dense& vector) {
  const std::int64_t n = vector.rows;
  const auto count = static_cast<std::size_t>(n * n);
  Dense result{n, n, std::vector<long double>(count), std::vector<long double>(vector.im.empty() ? 0 : count), std::vector<char>(count)};
  for (std::int64_t i = 0; i < n; ++i) {
    const auto to = static_cast<std::size_t>(i * n + i), from = static_cast<std::size_t>(i);
    result.re[to] = vector.re[from];
    if (!vector.im.empty()) result.im[to] = vector.im[from];
    result.stored[to] = 1;
  }
  return result;
}

void add_products(const Dense& a, const Dense& b, std::int64_t i, std::int64_t j, Number& sum, long double& size) {
  long double re = 0, im = 0;
  const bool complex = !a.im.empty() || !b.im.empty();
  for (std::int64_t k = 0; k < a.columns; ++k) {
    const auto x = static_cast<std::size_t>(i * a.columns + k), y = static_cast<std::size_t>(k * b.columns + j);
    if (a.stored[x] == 0 || b.stored[y] == 0) continue;
    if (complex) {
      const Number p = a.at(i, k), q = b.at(k, j), pq = product(p, q);
      re += pq.real();
      im += pq.imag();
      size += magnitude(p) * magnitude(q);
    } else {
      const long double pq = a.re[x] * b.re[y];
      re += pq;
      size += std::fabs(pq);
    }
  }
  sum = {re, im};
}

Column times(const Dense& a, const Column& v) {
  Column result{std::vector<Number>(static_cast<std::size_t>(a.rows)), std::vector<long double>(static_cast<std::size_t>(a.rows))};
  for (std::int64_t i = 0; i < a.rows; ++i) {
    Number sum = 0;
    long double size = 0;
    for (std::int64_t k = 0; k < a.columns; ++k) {
      const auto e = static_cast<std::size_t>(i * a.columns + k), from = static_cast<std::size_t>(k);
      if (a.stored[e] == 0) continue;
      const Number value = a.at(i, k);
      sum += product(value, v.value[from]);
      size += magnitude(value) * v.size[from];
    }
    result.value[static_cast<std::size_t>(i)] = sum;
    result.size[static_cast<std::size_t>(i)] = size;
  }
  return result;
}

Dense substitute(const Dense& a, Dense b) {
  bool lower = false;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t j = 0; j < i; ++j) lower = lower || a.stored[static_cast<std::size_t>(i * a.columns + j)] != 0;
  }
  b.im.resize(b.re.size());
  for (std::int64_t step = 0; step < a.rows; ++step) {
    const std::int64_t i = lower ? step : a.rows - 1 - step;
    for (std::int64_t j = 0; j < b.columns; ++j) {
      Number sum = b.at(i, j);
      for (std::int64_t k = 0; k < a.rows; ++k) {
        if (k != i && a.stored[static_cast<std::size_t>(i * a.columns + k)] != 0) sum -= product(a.at(i, k), b.at(k, j));
      }
      sum /= a.at(i, i);
      b.re[static_cast<std::size_t>(i * b.columns + j)] = sum.real();
      b.im[static_cast<std::size_t>(i * b.columns + j)] = sum.imag();
    }
  }
  return b;
}

bool within(Number expected, Number got, long double bound) {
  if (is_nan(expected)) return is_nan(got);
  if (std::isinf(magnitude(expected))) return expected == got;
  return magnitude(expected - got) <= bound;
}

Wrong compare(const std::string& where, Number expected, Number got, long double bound) {
  if (within(expected, got, bound)) return {};
  Facts facts;
  facts.element = where.substr(where.rfind("element ", 0) == 0 ? std::strlen("element ") : 0);
  facts.expected = str(expected, true);
  facts.got = str(got, true);
  const std::string text = fmt::format("{}: expected {}, got {}", where, facts.expected, facts.got);
  if (is_nan(expected)) return {text + ": a NaN is lost", facts};
  if (std::isinf(magnitude(expected))) return {text + ": an infinity is lost", facts};
  facts.error = fmt::format("{:.3g}", static_cast<double>(magnitude(expected - got)));
  facts.bound = fmt::format("{:.3g}", static_cast<double>(bound));
  return {fmt::format("{}; error {}, at most {} allowed", text, facts.error, facts.bound), facts};
}

std::int64_t Place::at(std::int64_t i, std::int64_t j) const {
  if (no_diagonal && i == j) return -1;
  if ((triangle == TENON_UPPER && j < i) || (triangle == TENON_LOWER && j > i)) return -1;
  const bool by_rows = layout == TENON_LAYOUT_ROW_MAJOR;
  switch (kind) {
    case Kind::vector:
      return step > 0 ? i * step : (rows - 1 - i) * -step;
    case Kind::full:
      return by_rows ? i * step + j : j * step + i;
    case Kind::band:
      if (j - i > above || i - j > below) return -1;
      return by_rows ? i * step + below + j - i : j * step + above + i - j;
    case Kind::packed: {
      const std::int64_t line = by_rows ? i : j, place = by_rows ? j : i;
      // Lines grow where they end on the diagonal, and shrink where they begin there.
      const bool grows = by_rows == (triangle == TENON_LOWER);
      return grows ? line * (line + 1) / 2 + place : line * rows - line * (line - 1) / 2 + place - line;
    }
  }
  return -1;
}

std::int64_t Place::extent() const {
  if (rows == 0 || columns == 0) return 0;
  const bool by_rows = layout == TENON_LAYOUT_ROW_MAJOR;
  const std::int64_t count = by_rows ? rows : columns, length = by_rows ? columns : rows;
  switch (kind) {
    case Kind::vector:
      return (rows - 1) * std::abs(step) + 1;
    case Kind::full:
      return (count - 1) * step + length;
    case Kind::band:
      return (count - 1) * step + below + above + 1;
    case Kind::packed:
      return rows * (rows + 1) / 2;
  }
  return 0;
}

}  // namespace tenon::conformance::blas
