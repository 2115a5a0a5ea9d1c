// SPDX-License-Identifier: Apache-2.0
// Checks of the results of a call. The algebra that makes them valid:
//
// Sums of products. C = sum alpha A B + beta C: |error| <= c (terms + 4) epsilon (|alpha| |A| |B| + |beta| |C|) for each element, with
//   |z| = |re z| + |im z|. Any order of summation keeps that with c = 1 for real numbers (Higham, Accuracy and Stability, 3.5). c is 2 for
//   another rounding of alpha and beta, and 8 for complex numbers, whose products may be formed of three real ones, which is stable only in
//   that norm (23.2.4).
// Large products. C v = alpha A (B v) + beta (C v) for vectors v of random signs (Freivalds): wrong elements of a row cancel in all of them
//   with probability 2^-vectors at most, and a single one never does. The bound is the sum of the elements' bounds along a row, so this
//   finds gross errors anywhere; some rows and columns, including the first and last, are held to the elements' own bounds. Where only
//   a triangle of an unsymmetric C exists there are no products with vectors, but more rows and columns.
// Solves. op(A) X = alpha B by its residual: |op(A) X - alpha B| <= c (n + 4) epsilon |op(A)| |X|, which any stable substitution keeps
//   whatever the condition (8.5), and products with inverted blocks keep because the triangles are well conditioned.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include <tenon/sdk/kernel.h>

#include "blas_dense.h"
#include "text/counted.h"

namespace tenon::conformance::blas {

Wrong Trial::damage() const {
  std::vector<unsigned char> allowed = content_;
  if (!untouched_) {
    for (const Operand& operand : operands_) {
      if (operand.access == Access::read) continue;
      const auto size = static_cast<std::uint64_t>(sdk::size_of(operand.dtype));
      for (std::int64_t i = 0; i < operand.place.rows; ++i) {
        for (std::int64_t j = 0; j < operand.place.columns; ++j) {
          const std::int64_t at = operand.place.at(i, j);
          if (at < 0) continue;
          const std::uint64_t from = operand.origin + static_cast<std::uint64_t>(at) * size;
          std::memcpy(allowed.data() + from, after_.data() + from, size);
        }
      }
    }
  }
  if (allowed == after_) return {};
  const auto byte = static_cast<std::uint64_t>(std::mismatch(allowed.begin(), allowed.end(), after_.begin()).first - allowed.begin());
  for (const Operand& operand : operands_) {
    const auto size = static_cast<std::uint64_t>(sdk::size_of(operand.dtype));
    const std::uint64_t end = operand.origin + static_cast<std::uint64_t>(operand.capacity) * size;
    if (operand.inside != one || byte >= end) continue;
    if (byte < operand.origin) {
      if (operand.origin - byte <= guard_size) return fmt::format("wrote {} bytes before {}", operand.origin - byte, operand.name);
      continue;
    }
    const std::uint64_t element = (byte - operand.origin) / size;
    for (std::int64_t i = 0; i < operand.place.rows; ++i) {
      for (std::int64_t j = 0; j < operand.place.columns; ++j) {
        if (operand.place.at(i, j) != static_cast<std::int64_t>(element)) continue;
        return fmt::format("changed element ({},{}) of {}, {}", i, j, operand.name,
                           operand.access == Access::read ? "which is only read" : "though nothing may be written");
      }
    }
    return fmt::format("wrote into memory of {} that holds none of its elements, {} elements from its start", operand.name, element);
  }
  return fmt::format("wrote past the end of an operand (byte {} of the guarded memory)", byte);
}

Wrong Trial::difference(const Trial& other) const {
  for (Ref ref = 0; ref < operands_.size(); ++ref) {
    const Operand &a = operands_[ref], &b = other.operands_[ref];
    if (a.access == Access::read) continue;
    const auto size = static_cast<std::uint64_t>(sdk::size_of(a.dtype));
    for (std::int64_t i = 0; i < a.place.rows; ++i) {
      for (std::int64_t j = 0; j < a.place.columns; ++j) {
        const std::int64_t at = a.place.at(i, j);
        if (at < 0) continue;
        const std::uint64_t offset = static_cast<std::uint64_t>(at) * size;
        if (std::memcmp(after_.data() + a.origin + offset, other.after_.data() + b.origin + offset, size) == 0) continue;
        return fmt::format("element ({},{}) of {} was {}, then {}", i, j, a.name, str(get(a, at, true), is_complex(a.dtype)),
                           str(other.get(b, at, true), is_complex(a.dtype)));
      }
    }
  }
  return {};
}

Wrong Trial::judge() const {
  if (Wrong found = damage(); !found.empty()) return found;
  if (untouched_) return {};
  for (const Equation& equation : equations_) {
    Wrong found = kind_ == TrialKind::nan || kind_ == TrialKind::infinite ? judge_nan(equation) : judge(equation);
    if (!found.empty()) return found;
  }
  return holds_ ? holds_(*this) : Wrong();
}

/// The left and right factors of each term with a nonzero coefficient.
std::vector<Dense> Trial::factors_of(const Equation& equation) const {
  std::vector<Dense> factors;
  for (const Term& term : equation.terms) {
    const bool counts = term.coefficient != Number(0);
    factors.push_back(counts && term.left.operand != one ? before(term.left) : Dense{});
    factors.push_back(counts && term.right.operand != one ? before(term.right) : Dense{});
  }
  return factors;
}

/// coefficient * value; a real number has no imaginary part that an infinity could make NaN.
Number Trial::scaled_by(Number coefficient, Number value) const {
  return complex() ? product(coefficient, value) : coefficient.real() * value.real();
}

/// Element (i, j) of the sum of the terms; the sum of their magnitudes is added to `out_size`.
Number Trial::sum_at(const Equation& equation, const std::vector<Dense>& factors, std::int64_t i, std::int64_t j,
                     long double& out_size) const {
  Number total = 0;
  for (std::size_t t = 0; t < equation.terms.size(); ++t) {
    const Term& term = equation.terms[t];
    if (term.coefficient == Number(0)) continue;
    Number sum = 1;
    long double size = 1;
    if (term.right.operand != one) {
      size = 0;
      add_products(factors[2 * t], factors[2 * t + 1], i, j, sum, size);
    } else if (term.left.operand != one) {
      sum = factors[2 * t].at(i, j);
      size = magnitude(sum);
    }
    total += scaled_by(term.coefficient, sum);
    out_size += magnitude(term.coefficient) * size;
  }
  return total;
}

Wrong Trial::judge(const Equation& equation) const {
  const Operand& result = operands_[equation.result];
  const double step = std::max(rounding_, equation.epsilon != 0 ? equation.epsilon : epsilon(real_of(dtype_)));
  const double c = complex() ? 8 : 2;
  const Dense after = dense(equation.result, true);
  if (equation.solve && equation.beta == Number(0)) {  // X = 0, whatever A holds
    for (std::int64_t i = 0; i < after.rows; ++i) {
      for (std::int64_t j = 0; j < after.columns; ++j) {
        const Wrong found = compare(fmt::format("element ({},{}) of {}", i, j, result.name), 0, after.at(i, j), 0);
        if (!found.empty()) return found;
      }
    }
    return {};
  }
  const std::vector<Dense> factors = factors_of(equation);
  std::int64_t count = 0, inner = 1;
  for (std::size_t t = 0; t < equation.terms.size(); ++t) {
    const Term& term = equation.terms[t];
    count += term.right.operand == one || term.left.diagonal || term.right.diagonal ? 1 : factors[2 * t].columns;
    if (term.right.operand != one) inner = std::max(inner, factors[2 * t].columns);
  }
  if (Wrong found = judge_diagonal(equation); !found.empty()) return found;

  const bool whole = result.place.triangle == 0 || result.meaning != Meaning::nothing;
  const bool large = after.rows * after.columns * inner > 500000 && after.columns > 8 && inner > 8;
  std::set<std::int64_t> rows, columns;  // of a large product: those that are computed element by element
  if (large) {
    Random random(seed_ ^ 0x2545f491u);
    rows = {0, after.rows - 1};
    columns = {0, after.columns - 1};
    for (int i = whole ? 3 : 10; i > 0; --i) {
      rows.insert(random.integer(0, after.rows));
      columns.insert(random.integer(0, after.columns));
    }
    if (whole) {
      if (Wrong found = judge_by_vectors(equation, factors, step * static_cast<double>(count + 4), c); !found.empty()) return found;
    }
  }

  Dense was;
  if (equation.beta != Number(0)) was = dense(equation.result, false);
  std::int64_t wrong = 0;
  Wrong first;
  for (std::int64_t i = 0; i < after.rows; ++i) {
    for (std::int64_t j = 0; j < after.columns; ++j) {
      if (large && rows.count(i) == 0 && columns.count(j) == 0) continue;
      if (result.place.at(i, j) < 0) continue;
      long double size = 0;
      Number expected = sum_at(equation, factors, i, j, size);
      Number got = after.at(i, j);
      if (equation.beta != Number(0)) {
        const Number scaled = scaled_by(equation.beta, was.at(i, j));
        if (equation.solve) {
          got = expected;  // op(A) X is compared with alpha B
          expected = scaled;
        } else {
          expected += scaled;
          size += magnitude(equation.beta) * magnitude(was.at(i, j));
        }
      }
      const tenon_dtype type = real_of(result.dtype);
      const long double bound =
          equation.exact ? 0 : c * static_cast<double>(count + 4) * (step * size + smallest(type)) + epsilon(type) * magnitude(expected);
      if (within(expected, got, bound)) continue;
      if (wrong++ > 0) continue;
      const char* what = equation.solve ? "op(A) X against alpha " : "";
      first = compare(fmt::format("element ({},{}) of {}{}", i, j, what, result.name), expected, got, bound);
    }
  }
  if (wrong > 0) first.text += fmt::format("; {} wrong", counted(wrong, "element is", "elements are"));
  return first;
}

/// Freivalds: rows of C v instead of elements of C.
Wrong Trial::judge_by_vectors(const Equation& equation, const std::vector<Dense>& factors, double epsilon_of_sum, double c) const {
  constexpr int vectors = 3;
  const Operand& result = operands_[equation.result];
  const Dense after = dense(equation.result, true);
  Dense was;
  if (equation.beta != Number(0)) was = dense(equation.result, false);
  Random signs(seed_ ^ 0x5bd1e995u);
  for (int round = 0; round < vectors; ++round) {
    Column v{std::vector<Number>(static_cast<std::size_t>(after.columns)),
             std::vector<long double>(static_cast<std::size_t>(after.columns), 1)};
    for (Number& sign : v.value) sign = (signs.bits() & 1) != 0 ? 1 : -1;
    Column got = times(after, v), expected{std::vector<Number>(got.value.size()), std::vector<long double>(got.value.size())};
    for (std::size_t t = 0; t < equation.terms.size(); ++t) {
      const Term& term = equation.terms[t];
      if (term.coefficient == Number(0)) continue;
      const Column part = times(factors[2 * t], term.right.operand == one ? v : times(factors[2 * t + 1], v));
      for (std::size_t i = 0; i < expected.value.size(); ++i) {
        expected.value[i] += product(term.coefficient, part.value[i]);
        expected.size[i] += magnitude(term.coefficient) * part.size[i];
      }
    }
    if (equation.beta != Number(0)) {
      const Column part = times(was, v);
      for (std::size_t i = 0; i < expected.value.size(); ++i) {
        const Number scaled = product(equation.beta, part.value[i]);
        if (equation.solve) {
          got.value[i] = expected.value[i];
          expected.value[i] = scaled;
        } else {
          expected.value[i] += scaled;
          expected.size[i] += magnitude(equation.beta) * part.size[i];
        }
      }
    }
    for (std::size_t i = 0; i < expected.value.size(); ++i) {
      const long double bound = c * epsilon_of_sum * expected.size[i];
      if (within(expected.value[i], got.value[i], bound)) continue;
      Wrong found =
          compare(fmt::format("row {} of {} times a vector of signs{}", i, result.name, equation.solve ? " (op(A) X against alpha B)" : ""),
                  expected.value[i], got.value[i], bound);
      if (!found.empty()) return found;
    }
  }
  return {};
}

/// Every result that depends on the NaN is NaN; a result that depends on an infinity and no NaN is that infinity.
Wrong Trial::judge_nan(const Equation& equation) const {
  const Operand& result = operands_[equation.result];
  const Dense after = dense(equation.result, true);
  const Dense was = dense(equation.result, false);
  const std::vector<Dense> factors = factors_of(equation);
  Dense solution;
  if (equation.solve) {
    const Term& term = equation.terms[0];
    const bool left = !term.left.after;
    const Dense a = before(left ? term.left : term.right);
    // X A = B is A' X' = B'.
    solution = left ? substitute(a, was) : transformed(substitute(transformed(a, TENON_TRANS), transformed(was, TENON_TRANS)), TENON_TRANS);
  }
  for (std::int64_t i = 0; i < after.rows; ++i) {
    for (std::int64_t j = 0; j < after.columns; ++j) {
      if (result.place.at(i, j) < 0) continue;
      Number expected = 0;
      if (equation.solve) {
        expected = solution.at(i, j);
      } else {
        long double ignored = 0;
        expected = sum_at(equation, factors, i, j, ignored);
        if (equation.beta != Number(0)) expected += scaled_by(equation.beta, was.at(i, j));
      }
      if (!is_nan(expected) && !(kind_ == TrialKind::infinite && std::isinf(magnitude(expected)))) continue;
      const Wrong found = compare(fmt::format("element ({},{}) of {}", i, j, result.name), expected, after.at(i, j), 0);
      if (!found.empty()) return found;
    }
  }
  return {};
}

/// The diagonal of a Hermitian result is real. If the definition has nothing to do (C = C), the diagonal may be unchanged.
Wrong Trial::judge_diagonal(const Equation& equation) const {
  const Operand& result = operands_[equation.result];
  if (result.meaning != Meaning::hermitian) return {};
  bool idle = equation.beta == Number(1);
  for (const Term& term : equation.terms) {
    const Place& place = operands_[term.left.operand].place;
    idle = idle && (term.coefficient == Number(0) || (transposes(term.left.op) ? place.rows : place.columns) == 0);
  }
  for (std::int64_t i = 0; i < result.place.rows; ++i) {
    const std::int64_t at = result.place.at(i, i);
    const long double im = get(result, at, true).imag();
    if (im == 0 || (idle && im == get(result, at, false).imag())) continue;
    return fmt::format("element ({},{}) of {} has the imaginary part {:.9g}: a Hermitian diagonal is real", i, i, result.name,
                       static_cast<double>(im));
  }
  return {};
}

}  // namespace tenon::conformance::blas
