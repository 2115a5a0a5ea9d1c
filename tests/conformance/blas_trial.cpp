// What a call is given, and whether what came of it is right. The algebra that makes the checks valid:
//
// Sums of products. C = sum alpha A B + beta C: |error| <= c (terms + 4) epsilon (|alpha| |A| |B| + |beta| |C|) for each element, with
//   |z| = |re z| + |im z|. Any order of summation keeps that with c = 1 for real numbers (Higham, Accuracy and Stability, 3.5). c is 2 for
//   another rounding of alpha and beta, and 8 for complex numbers, whose products may be formed of three real ones, which is stable only in
//   that norm (23.2.4).
// Large products. C v = alpha A (B v) + beta (C v) for vectors v of random signs (Freivalds): wrong elements of a row cancel in all of them
//   with probability 2^-vectors at most, and one alone never does. The bound is the sum of the elements' bounds along a row, so this sees
//   what is grossly wrong anywhere; some rows and columns, the first and last among them, are held to the elements' own bounds. Where only
//   a triangle of an unsymmetric C exists there are no products with vectors, but more rows and columns.
// Solves. op(A) X = alpha B by its residual: |op(A) X - alpha B| <= c (n + 4) epsilon |op(A)| |X|, which any stable substitution keeps
//   whatever the condition (8.5), and products with inverted blocks keep because the triangles are well conditioned.
#include "blas.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include <tenon/sdk/kernel.h>

namespace tenon::conformance::blas {

bool is_complex(tenon_dtype dtype) {
  return dtype == TENON_DTYPE_C64 || dtype == TENON_DTYPE_C128;
}
tenon_dtype real_of(tenon_dtype dtype) {
  return dtype == TENON_DTYPE_C64 ? tenon_dtype{TENON_DTYPE_F32} : dtype == TENON_DTYPE_C128 ? tenon_dtype{TENON_DTYPE_F64} : dtype;
}

namespace {

constexpr std::uint64_t guard_size = 64;

/// |re| + |im|.
long double magnitude(Number z) {
  return std::fabs(z.real()) + std::fabs(z.imag());
}
bool is_nan(Number z) {
  return std::isnan(z.real()) || std::isnan(z.imag());
}
/// Without the recovery of infinities that std::complex's own product has.
Number product(Number a, Number b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

std::string str(Number z, bool complex) {
  const auto re = static_cast<double>(z.real()), im = static_cast<double>(z.imag());
  return complex ? fmt::format("({:.17g},{:.17g})", re, im) : fmt::format("{:.17g}", re);
}

/// A setting as people write it.
std::string word_for(std::int64_t value) {
  switch (value) {
    case TENON_LAYOUT_ROW_MAJOR:
      return "row";
    case TENON_LAYOUT_COLUMN_MAJOR:
      return "column";
    case TENON_NO_TRANS:
      return "none";
    case TENON_TRANS:
      return "trans";
    case TENON_CONJ_TRANS:
      return "conj_trans";
    case TENON_CONJ_NO_TRANS:
      return "conj";
    case TENON_UPPER:
      return "upper";
    case TENON_LOWER:
      return "lower";
    case TENON_NON_UNIT:
      return "non_unit";
    case TENON_UNIT:
      return "unit";
    case TENON_LEFT:
      return "left";
    case TENON_RIGHT:
      return "right";
    default:
      return fmt::format("{}", value);
  }
}

Dense transformed(Dense from, std::uint32_t op) {
  if (op == TENON_CONJ_TRANS || op == TENON_CONJ_NO_TRANS) {
    for (long double& im : from.im) im = -im;
  }
  if (!transposes(op)) return from;
  if (from.rows > 1 && from.columns > 1) {
    const auto turn = [&](auto& values) {
      auto turned = values;
      for (std::int64_t i = 0; i < from.rows; ++i) {
        for (std::int64_t j = 0; j < from.columns; ++j) {
          turned[static_cast<std::size_t>(j * from.rows + i)] = values[static_cast<std::size_t>(i * from.columns + j)];
        }
      }
      values = std::move(turned);
    };
    turn(from.re);
    if (!from.im.empty()) turn(from.im);
    turn(from.there);
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
    result.there[to] = 1;
  }
  return result;
}

/// sum over k of a(i, k) b(k, j), and of magnitudes.
void add_products(const Dense& a, const Dense& b, std::int64_t i, std::int64_t j, Number& sum, long double& size) {
  long double re = 0, im = 0;
  const bool complex = !a.im.empty() || !b.im.empty();
  for (std::int64_t k = 0; k < a.columns; ++k) {
    const auto x = static_cast<std::size_t>(i * a.columns + k), y = static_cast<std::size_t>(k * b.columns + j);
    if (a.there[x] == 0 || b.there[y] == 0) continue;
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

/// A v, and |A| |v|.
struct Column {
  std::vector<Number> value;
  std::vector<long double> size;
};
Column times(const Dense& a, const Column& v) {
  Column result{std::vector<Number>(static_cast<std::size_t>(a.rows)), std::vector<long double>(static_cast<std::size_t>(a.rows))};
  for (std::int64_t i = 0; i < a.rows; ++i) {
    Number sum = 0;
    long double size = 0;
    for (std::int64_t k = 0; k < a.columns; ++k) {
      const auto e = static_cast<std::size_t>(i * a.columns + k), from = static_cast<std::size_t>(k);
      if (a.there[e] == 0) continue;
      const Number value = a.at(i, k);
      sum += product(value, v.value[from]);
      size += magnitude(value) * v.size[from];
    }
    result.value[static_cast<std::size_t>(i)] = sum;
    result.size[static_cast<std::size_t>(i)] = size;
  }
  return result;
}

/// X with A X = B, A triangular.
Dense substitute(const Dense& a, Dense b) {
  bool lower = false;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t j = 0; j < i; ++j) lower = lower || a.there[static_cast<std::size_t>(i * a.columns + j)] != 0;
  }
  b.im.resize(b.re.size());
  for (std::int64_t step = 0; step < a.rows; ++step) {
    const std::int64_t i = lower ? step : a.rows - 1 - step;
    for (std::int64_t j = 0; j < b.columns; ++j) {
      Number sum = b.at(i, j);
      for (std::int64_t k = 0; k < a.rows; ++k) {
        if (k != i && a.there[static_cast<std::size_t>(i * a.columns + k)] != 0) sum -= product(a.at(i, k), b.at(k, j));
      }
      sum /= a.at(i, i);
      b.re[static_cast<std::size_t>(i * b.columns + j)] = sum.real();
      b.im[static_cast<std::size_t>(i * b.columns + j)] = sum.imag();
    }
  }
  return b;
}

}  // namespace

namespace {
bool within(Number want, Number got, long double bound) {
  if (is_nan(want)) return is_nan(got);
  if (std::isinf(magnitude(want))) return want == got;
  return magnitude(want - got) <= bound;
}
}  // namespace

std::string compare(const std::string& where, Number want, Number got, long double bound) {
  if (within(want, got, bound)) return {};
  const auto wrong = [&](const char* what) { return fmt::format("{}: wanted {}, got {}{}", where, str(want, true), str(got, true), what); };
  if (is_nan(want)) return wrong(": a NaN is lost");
  if (std::isinf(magnitude(want))) return wrong(": an infinity is lost");
  return wrong("") +
         fmt::format("; error {:.3g}, at most {:.3g} allowed", static_cast<double>(magnitude(want - got)), static_cast<double>(bound));
}

// ---------------------------------------------------------------- Place

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

// ---------------------------------------------------------------- Trial: what is asked for

Trial::Trial(const Line& line, tenon_dtype dtype, std::uint32_t layout, Twist twist, std::uint64_t seed, std::vector<Setting> settings)
    : line_(line), dtype_(dtype), layout_(layout), twist_(twist), seed_(seed), settings_(std::move(settings)), random_(seed) {}

bool Trial::is(const char* routine) const {
  return std::strcmp(line_.routine, routine) == 0;
}

std::int64_t Trial::size(const char* name) const {
  for (const Setting& setting : settings_) {
    if (std::strcmp(setting.name, name) == 0) return setting.value;
  }
  throw std::logic_error(fmt::format("{}: no size or flag '{}'", line_.routine, name));
}

std::int64_t Trial::draw(const char* name, const std::vector<std::int64_t>& from) {
  const std::int64_t value = from[static_cast<std::size_t>(random_.integer(0, static_cast<std::int64_t>(from.size())))];
  drawn_ += fmt::format(" {}={}", name, value);
  return value;
}

Ref Trial::add(Operand operand) {
  operands_.push_back(std::move(operand));
  return operands_.size() - 1;
}

std::int64_t Trial::increment(const char* name, bool forward) {
  static constexpr std::int64_t all[] = {1, 3, -1, -3};
  std::int64_t value = all[random_.integer(0, forward ? 2 : 4)];
  if (twist_ == Twist::aliasing) {
    if (shared_increment_ == 0) shared_increment_ = value;
    value = shared_increment_;
  }
  drawn_ += fmt::format(" inc{}={}", name, value);
  return value;
}

std::int64_t Trial::padding() {
  static constexpr std::int64_t some[] = {0, 0, 1, 5};
  return twist_ == Twist::aliasing ? 1 : some[random_.integer(0, 4)];
}

Ref Trial::vector(const char* name, std::int64_t n, Access access) {
  return add({name, dtype_, {Place::Kind::vector, n, 1, increment(name, false)}, Meaning::nothing, access});
}
Ref Trial::forward_vector(const char* name, std::int64_t n, Access access) {
  return add({name, dtype_, {Place::Kind::vector, n, 1, increment(name, true)}, Meaning::nothing, access});
}
Ref Trial::matrix(const char* name, std::int64_t rows, std::int64_t columns, Access access) {
  const std::int64_t least = std::max<std::int64_t>(1, layout_ == TENON_LAYOUT_ROW_MAJOR ? columns : rows), lead = least + padding();
  drawn_ += fmt::format(" ld{}={}", name, lead);
  return add({name, dtype_, {Place::Kind::full, rows, columns, lead, 0, 0, layout_}, Meaning::nothing, access});
}
Ref Trial::band(const char* name, std::int64_t rows, std::int64_t columns, std::int64_t below, std::int64_t above) {
  const std::int64_t lead = below + above + 1 + padding();
  drawn_ += fmt::format(" ld{}={}", name, lead);
  return add({name, dtype_, {Place::Kind::band, rows, columns, lead, below, above, layout_}});
}
Ref Trial::triangle(const char* name, std::int64_t n, std::uint32_t uplo, Meaning meaning, Storage storage, std::int64_t k, Access access) {
  Ref operand = 0;
  if (storage == Storage::full) {
    operand = matrix(name, n, n, access);
  } else if (storage == Storage::band) {
    operand = band(name, n, n, uplo == TENON_LOWER ? k : 0, uplo == TENON_UPPER ? k : 0);
  } else {
    operand = add({name, dtype_, {Place::Kind::packed, n, n, 1, 0, 0, layout_}, Meaning::nothing, access});
  }
  operands_[operand].place.triangle = uplo;
  operands_[operand].place.no_diagonal = meaning == Meaning::unit;
  operands_[operand].meaning = meaning;
  return operand;
}

Ref Trial::another(Ref like) {
  Operand operand = operands_[like];
  operand.inside = one;
  return add(std::move(operand));
}

Ref Trial::numbers(const char* name, const std::vector<Number>& values, tenon_dtype dtype, Access access) {
  Operand operand{name, dtype, {Place::Kind::vector, static_cast<std::int64_t>(values.size()), 1}, Meaning::nothing, access};
  operand.number = true;
  operand.given = values;
  return add(std::move(operand));
}

Trial::Scalar Trial::scalar(const char* name, bool real_only, Twist zero) {
  (zero == Twist::alpha_zero ? alpha_ : beta_) = true;
  const bool has_imaginary = complex() && !real_only;
  // The other number counts where NaN is to show, and where level 1 multiplies NaN by whatever it is.
  const bool other =
      twist_ == Twist::full || twist_ == Twist::nan || twist_ == Twist::infinite || (line_.level == 1 && twist_ == Twist::beta_zero);
  const std::int64_t choice = other ? 3 : random_.integer(0, 4);
  Number value = choice == 0 ? 0 : 1;
  if (choice >= 2) {
    // Exact in f32.
    const auto part = [&] { return static_cast<long double>(random_.integer(16, 64) * (random_.integer(0, 2) == 0 ? 1 : -1)) / 64; };
    const long double re = part();
    value = {re, has_imaginary ? part() : 0};
  }
  if (twist_ == zero) value = 0;
  drawn_ += fmt::format(" {}={}", name, str(value, has_imaginary));
  return {numbers(name, {value}, real_only ? real_of(dtype_) : dtype_), value};
}

void Trial::scale(Ref operand, long double factor) {
  operands_[operand].scale = factor;
}
void Trial::fill(Ref operand, const std::vector<Number>& values) {
  operands_[operand].given = values;
}
void Trial::condition(Ref operand) {
  operands_[operand].conditioned = true;
}

void Trial::may_share(Ref operand, Ref other) {
  if (twist_ != Twist::aliasing) return;
  const Place &a = operands_[operand].place, &b = operands_[other].place;
  if (a.rows != b.rows || a.columns != b.columns || a.step != b.step) return;
  shares_ = true;
  drawn_ += fmt::format(" {} in {}'s memory", operands_[operand].name, operands_[other].name);
  put_inside(operand, other, 0);
}
void Trial::put_inside(Ref operand, Ref other, std::int64_t elements) {
  operands_[operand].inside = other;
  operands_[operand].start = elements;
}

void Trial::equals(Ref result, std::vector<Term> terms, Number beta, double epsilon) {
  equations_.push_back({result, std::move(terms), beta, epsilon});
}
void Trial::same(Ref result, Ref source) {
  equations_.push_back({result, {{1, {source}}}, 0, 0, true});
}
void Trial::solves(Ref b, Factor a, bool left, Number alpha) {
  const Factor x{b, TENON_NO_TRANS, false, true};
  equations_.push_back({b, {left ? Term{1, a, x} : Term{1, x, a}}, alpha, 0, false, true});
}

std::string Trial::describe() const {
  std::string text = line_.routine;
  if (layout_ != 0) text += " " + word_for(layout_);
  for (const Setting& setting : settings_) {
    const bool is_flag = setting.value > 100 && setting.value < 150 && std::strlen(setting.name) > 1;
    text += fmt::format(" {}={}", setting.name, is_flag ? word_for(setting.value) : fmt::format("{}", setting.value));
  }
  return text + drawn_ + fmt::format(", numbers of seed {}", seed_);
}

// ---------------------------------------------------------------- Trial: bytes

void Trial::put(const Operand& operand, std::int64_t place, Number value) {
  unsigned char* to = content_.data() + operand.origin + static_cast<std::uint64_t>(place * sdk::size_of(operand.dtype));
  const auto write = [&](auto part, std::size_t index) { std::memcpy(to + index * sizeof part, &part, sizeof part); };
  switch (operand.dtype) {
    case TENON_DTYPE_F32:
    case TENON_DTYPE_C64:
      write(static_cast<float>(value.real()), 0);
      if (operand.dtype == TENON_DTYPE_C64) write(static_cast<float>(value.imag()), 1);
      break;
    case TENON_DTYPE_I64:
      write(static_cast<std::int64_t>(value.real()), 0);
      break;
    default:
      write(static_cast<double>(value.real()), 0);
      if (operand.dtype == TENON_DTYPE_C128) write(static_cast<double>(value.imag()), 1);
  }
}

Number Trial::get(const Operand& operand, std::int64_t place, bool after) const {
  const unsigned char* from =
      (after ? after_ : content_).data() + operand.origin + static_cast<std::uint64_t>(place * sdk::size_of(operand.dtype));
  const auto read = [&](auto part, std::size_t index) {
    std::memcpy(&part, from + index * sizeof part, sizeof part);
    return static_cast<long double>(part);
  };
  switch (operand.dtype) {
    case TENON_DTYPE_F32:
      return read(float{}, 0);
    case TENON_DTYPE_C64:
      return {read(float{}, 0), read(float{}, 1)};
    case TENON_DTYPE_I64:
      return read(std::int64_t{}, 0);
    case TENON_DTYPE_C128:
      return {read(double{}, 0), read(double{}, 1)};
    default:
      return read(double{}, 0);
  }
}

/// The definition reads it, given alpha and beta.
bool Trial::needed(Ref operand) const {
  for (const Equation& equation : equations_) {
    if (equation.solve && equation.beta == Number(0)) continue;
    if (equation.result == operand && equation.beta != Number(0)) return true;
    for (const Term& term : equation.terms) {
      const bool read = (term.left.operand == operand && !term.left.after) || (term.right.operand == operand && !term.right.after);
      if (read && term.coefficient != Number(0)) return true;
    }
  }
  return equations_.empty();
}

/// Places and fills every operand. What is no element of one gets `poison`, so that reading it shows.
void Trial::lay_out(unsigned char poison) {
  std::uint64_t end = 0;
  for (Operand& operand : operands_) operand.room = operand.place.extent();
  for (const Operand& operand : operands_) {
    if (operand.inside == one) continue;
    Operand& other = operands_[operand.inside];
    other.room = std::max(other.room, operand.start + operand.place.extent());
  }
  for (Operand& operand : operands_) {
    if (operand.inside != one) continue;
    const auto size = static_cast<std::uint64_t>(sdk::size_of(operand.dtype));
    // As aligned as an element has to be, and no more.
    const auto skew = operand.number ? 0 : static_cast<std::uint64_t>(random_.integer(0, 4));
    operand.origin = (end + guard_size + 63) / 64 * 64 + skew * size;
    end = operand.origin + static_cast<std::uint64_t>(operand.room) * size;
  }
  for (Operand& operand : operands_) {
    if (operand.inside == one) continue;
    const Operand& other = operands_[operand.inside];
    operand.origin = other.origin + static_cast<std::uint64_t>(operand.start * sdk::size_of(operand.dtype));
  }
  content_.assign(end + guard_size, poison);

  const bool not_read_is_nan = twist_ == Twist::alpha_zero || twist_ == Twist::beta_zero;
  constexpr long double nan = std::numeric_limits<long double>::quiet_NaN();
  std::vector<Ref> candidates;  // for a NaN or an infinity
  for (Ref ref = 0; ref < operands_.size(); ++ref) {
    const Operand& operand = operands_[ref];
    if (operand.access == Access::write) continue;
    const Place& place = operand.place;
    const bool unread = not_read_is_nan && !operand.number && !needed(ref);
    const bool complex_values = is_complex(operand.dtype);
    std::int64_t stored = 0;
    for (std::int64_t i = 0; i < place.rows; ++i) {
      for (std::int64_t j = 0; j < place.columns; ++j) {
        const std::int64_t at = place.at(i, j);
        if (at < 0) continue;
        ++stored;
        if (!operand.given.empty()) {
          put(operand, at, operand.given[static_cast<std::size_t>(i)]);
          continue;
        }
        const auto part = [&] { return static_cast<long double>(random_.uniform(-1, 1)); };
        Number value = part();
        if (complex_values) value.imag(part());
        value *= operand.scale;
        if (operand.conditioned) {
          value /= static_cast<long double>(place.rows);
          if (i == j) value += value.real() < 0 ? -2.5L : 2.5L;
        }
        put(operand, at, unread ? Number{nan, nan} : value);
      }
    }
    if (stored > 0 && !operand.number) candidates.push_back(ref);
  }
  if ((twist_ != Twist::nan && twist_ != Twist::infinite) || candidates.empty()) return;
  const Operand& chosen = operands_[candidates[static_cast<std::size_t>(random_.integer(0, static_cast<std::int64_t>(candidates.size())))]];
  for (;;) {
    const std::int64_t i = random_.integer(0, chosen.place.rows), j = random_.integer(0, chosen.place.columns);
    const std::int64_t at = chosen.place.at(i, j);
    if (at < 0) continue;
    put(chosen, at, twist_ == Twist::nan ? nan : std::numeric_limits<long double>::infinity());
    drawn_ += fmt::format(" {} at ({},{}) of {}", twist_ == Twist::nan ? "NaN" : "Inf", i, j, chosen.name);
    break;
  }
}

Dense Trial::dense(Ref ref, bool after) const {
  const Operand& operand = operands_[ref];
  const Place& place = operand.place;
  const auto count = static_cast<std::size_t>(place.rows * place.columns);
  const bool complex_values = is_complex(operand.dtype);
  Dense result{place.rows, place.columns, std::vector<long double>(count), std::vector<long double>(complex_values ? count : 0),
               std::vector<char>(count)};
  std::size_t e = 0;
  for (std::int64_t i = 0; i < place.rows; ++i) {
    for (std::int64_t j = 0; j < place.columns; ++j, ++e) {
      std::int64_t at = place.at(i, j);
      bool mirrored = false;
      if (at < 0 && operand.meaning == Meaning::unit && i == j) {
        result.re[e] = 1;
        result.there[e] = 1;
        continue;
      }
      if (at < 0 && (operand.meaning == Meaning::symmetric || operand.meaning == Meaning::hermitian)) {
        at = place.at(j, i);
        mirrored = true;
      }
      if (at < 0) continue;
      const Number value = get(operand, at, after);
      result.there[e] = 1;
      result.re[e] = value.real();
      if (!complex_values) continue;
      const bool hermitian = operand.meaning == Meaning::hermitian;
      result.im[e] = hermitian && i == j ? 0 : hermitian && mirrored ? -value.imag() : value.imag();
    }
  }
  return result;
}

Dense Trial::before(const Factor& factor) const {
  Dense result = dense(factor.operand, factor.after);
  if (factor.diagonal) result = diagonal_of(result);
  return transformed(std::move(result), factor.op);
}
Dense Trial::after(Ref operand) const {
  return dense(operand, true);
}

// ---------------------------------------------------------------- Trial: the verdict

std::string Trial::damage() const {
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
    const std::uint64_t end = operand.origin + static_cast<std::uint64_t>(operand.room) * size;
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
                           operand.access == Access::read ? "which is only read" : "though nothing is to be done");
      }
    }
    return fmt::format("wrote into memory of {} that holds none of its elements, {} elements from its start", operand.name, element);
  }
  return fmt::format("wrote behind an operand (byte {} of what is under guard)", byte);
}

std::string Trial::difference(const Trial& other) const {
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

std::string Trial::judge() const {
  if (std::string text = damage(); !text.empty()) return text;
  if (untouched_) return {};
  for (const Equation& equation : equations_) {
    std::string text = twist_ == Twist::nan || twist_ == Twist::infinite ? judge_nan(equation) : judge(equation);
    if (!text.empty()) return text;
  }
  return holds_ ? holds_(*this) : "";
}

/// Left and right of each term that counts.
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

/// Element (i, j) of the terms' sum, and of magnitudes.
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

std::string Trial::judge(const Equation& equation) const {
  const Operand& result = operands_[equation.result];
  const double step = equation.epsilon != 0 ? equation.epsilon : epsilon(real_of(dtype_));
  const double c = complex() ? 8 : 2;
  const Dense after = dense(equation.result, true);
  if (equation.solve && equation.beta == Number(0)) {  // X = 0, whatever A holds
    for (std::int64_t i = 0; i < after.rows; ++i) {
      for (std::int64_t j = 0; j < after.columns; ++j) {
        const std::string text = compare(fmt::format("element ({},{}) of {}", i, j, result.name), 0, after.at(i, j), 0);
        if (!text.empty()) return text;
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
  if (std::string text = judge_diagonal(equation); !text.empty()) return text;

  const bool whole = result.place.triangle == 0 || result.meaning != Meaning::nothing;
  const bool large = after.rows * after.columns * inner > 500000 && after.columns > 8 && inner > 8;
  std::set<std::int64_t> rows, columns;  // of a large product, those that are worked out
  if (large) {
    Random random(seed_ ^ 0x2545f491u);
    rows = {0, after.rows - 1};
    columns = {0, after.columns - 1};
    for (int i = whole ? 3 : 10; i > 0; --i) {
      rows.insert(random.integer(0, after.rows));
      columns.insert(random.integer(0, after.columns));
    }
    if (whole) {
      if (std::string text = judge_by_vectors(equation, factors, step * static_cast<double>(count + 4), c); !text.empty()) return text;
    }
  }

  Dense was;
  if (equation.beta != Number(0)) was = dense(equation.result, false);
  std::int64_t wrong = 0;
  std::string first;
  for (std::int64_t i = 0; i < after.rows; ++i) {
    for (std::int64_t j = 0; j < after.columns; ++j) {
      if (large && rows.count(i) == 0 && columns.count(j) == 0) continue;
      if (result.place.at(i, j) < 0) continue;
      long double size = 0;
      Number want = sum_at(equation, factors, i, j, size);
      Number got = after.at(i, j);
      if (equation.beta != Number(0)) {
        const Number scaled = scaled_by(equation.beta, was.at(i, j));
        if (equation.solve) {
          got = want;  // op(A) X is held against alpha B
          want = scaled;
        } else {
          want += scaled;
          size += magnitude(equation.beta) * magnitude(was.at(i, j));
        }
      }
      const tenon_dtype type = real_of(result.dtype);
      const long double bound =
          equation.exact ? 0 : c * static_cast<double>(count + 4) * (step * size + smallest(type)) + epsilon(type) * magnitude(want);
      if (within(want, got, bound)) continue;
      if (wrong++ > 0) continue;
      const char* what = equation.solve ? "op(A) X against alpha " : "";
      first = compare(fmt::format("element ({},{}) of {}{}", i, j, what, result.name), want, got, bound);
    }
  }
  return wrong == 0 ? "" : fmt::format("{}; {} elements are wrong", first, wrong);
}

/// Freivalds: rows of C v instead of elements of C.
std::string Trial::judge_by_vectors(const Equation& equation, const std::vector<Dense>& factors, double epsilon_of_sum, double c) const {
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
    Column got = times(after, v), want{std::vector<Number>(got.value.size()), std::vector<long double>(got.value.size())};
    for (std::size_t t = 0; t < equation.terms.size(); ++t) {
      const Term& term = equation.terms[t];
      if (term.coefficient == Number(0)) continue;
      const Column part = times(factors[2 * t], term.right.operand == one ? v : times(factors[2 * t + 1], v));
      for (std::size_t i = 0; i < want.value.size(); ++i) {
        want.value[i] += product(term.coefficient, part.value[i]);
        want.size[i] += magnitude(term.coefficient) * part.size[i];
      }
    }
    if (equation.beta != Number(0)) {
      const Column part = times(was, v);
      for (std::size_t i = 0; i < want.value.size(); ++i) {
        const Number scaled = product(equation.beta, part.value[i]);
        if (equation.solve) {
          got.value[i] = want.value[i];
          want.value[i] = scaled;
        } else {
          want.value[i] += scaled;
          want.size[i] += magnitude(equation.beta) * part.size[i];
        }
      }
    }
    for (std::size_t i = 0; i < want.value.size(); ++i) {
      const long double bound = c * epsilon_of_sum * want.size[i];
      if (within(want.value[i], got.value[i], bound)) continue;
      std::string text =
          compare(fmt::format("row {} of {} times a vector of signs{}", i, result.name, equation.solve ? " (op(A) X against alpha B)" : ""),
                  want.value[i], got.value[i], bound);
      if (!text.empty()) return text;
    }
  }
  return {};
}

/// Every result that depends on the NaN is one; a result that depends on an infinity alone is that infinity.
std::string Trial::judge_nan(const Equation& equation) const {
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
      Number want = 0;
      if (equation.solve) {
        want = solution.at(i, j);
      } else {
        long double ignored = 0;
        want = sum_at(equation, factors, i, j, ignored);
        if (equation.beta != Number(0)) want += scaled_by(equation.beta, was.at(i, j));
      }
      if (!is_nan(want) && !(twist_ == Twist::infinite && std::isinf(magnitude(want)))) continue;
      const std::string text = compare(fmt::format("element ({},{}) of {}", i, j, result.name), want, after.at(i, j), 0);
      if (!text.empty()) return text;
    }
  }
  return {};
}

/// A Hermitian result's diagonal is real. Where the reference has nothing to do (C = C), it may have been left as it was.
std::string Trial::judge_diagonal(const Equation& equation) const {
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

std::uint64_t Wire::operator[](Ref ref) const {
  if (ref == one) return 0;
  const Trial::Operand& operand = trial->operands_[ref];
  if (operand.number && on_device == 0) return reinterpret_cast<std::uintptr_t>(host + operand.origin);
  if (trial->twist_ == Twist::nothing && (trial->untouched_ || operand.place.extent() == 0)) return 0;
  return base + operand.origin;
}

}  // namespace tenon::conformance::blas
