// SPDX-License-Identifier: Apache-2.0
// The operands of a call: random values laid out in guarded memory, and their conversion to dense matrices.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <list>
#include <stdexcept>

#include <tenon/sdk/kernel.h>

#include "blas_dense.h"

namespace tenon::conformance::blas {

bool is_complex(tenon_dtype dtype) {
  return dtype == TENON_DTYPE_C64 || dtype == TENON_DTYPE_C128;
}
tenon_dtype real_of(tenon_dtype dtype) {
  return dtype == TENON_DTYPE_C64 ? tenon_dtype{TENON_DTYPE_F32} : dtype == TENON_DTYPE_C128 ? tenon_dtype{TENON_DTYPE_F64} : dtype;
}

namespace {

/// A setting as text.
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

}  // namespace

Trial::Trial(const Line& line, tenon_dtype dtype, std::uint32_t layout, TrialKind kind, std::uint64_t seed, std::vector<Setting> settings)
    : line_(line), dtype_(dtype), layout_(layout), kind_(kind), seed_(seed), settings_(std::move(settings)), random_(seed) {}

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
  draws_.push_back({name, value});
  return value;
}

Ref Trial::add(Operand operand) {
  operands_.push_back(std::move(operand));
  return operands_.size() - 1;
}

std::int64_t Trial::increment(const char* name, bool forward) {
  static constexpr std::int64_t all[] = {1, 3, -1, -3};
  std::int64_t value = all[random_.integer(0, forward ? 2 : 4)];
  if (kind_ == TrialKind::aliasing) {
    if (shared_increment_ == 0) shared_increment_ = value;
    value = shared_increment_;
  }
  drawn_ += fmt::format(" inc{}={}", name, value);
  return value;
}

std::int64_t Trial::padding() {
  static constexpr std::int64_t some[] = {0, 0, 1, 5};
  return kind_ == TrialKind::aliasing ? 1 : some[random_.integer(0, 4)];
}

Ref Trial::vector(const char* name, std::int64_t n, Access access) {
  return add({name, dtype_, {Place::Kind::vector, n, 1, increment(name, false)}, Meaning::nothing, access});
}
Ref Trial::forward_vector(const char* name, std::int64_t n, Access access) {
  return add({name, dtype_, {Place::Kind::vector, n, 1, increment(name, true)}, Meaning::nothing, access});
}
Ref Trial::matrix(const char* name, std::int64_t rows, std::int64_t columns, Access access) {
  const std::int64_t min_lead = std::max<std::int64_t>(1, layout_ == TENON_LAYOUT_ROW_MAJOR ? columns : rows), lead = min_lead + padding();
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

Trial::Scalar Trial::scalar(const char* name, bool real_only, TrialKind zero) {
  (zero == TrialKind::alpha_zero ? alpha_ : beta_) = true;
  const bool has_imaginary = complex() && !real_only;
  // The other scalar must not be 0 where NaN has to show, and where level 1 multiplies NaN by it.
  const bool other = kind_ == TrialKind::full || kind_ == TrialKind::nan || kind_ == TrialKind::infinite ||
                     (line_.level == 1 && kind_ == TrialKind::beta_zero);
  const std::int64_t choice = other ? 3 : random_.integer(0, 4);
  Number value = choice == 0 ? 0 : 1;
  if (choice >= 2) {
    // Exact in f32.
    const auto part = [&] { return static_cast<long double>(random_.integer(16, 64) * (random_.integer(0, 2) == 0 ? 1 : -1)) / 64; };
    const long double re = part();
    value = {re, has_imaginary ? part() : 0};
  }
  if (kind_ == zero) value = 0;
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
  if (kind_ != TrialKind::aliasing) return;
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

/// Whether the definition reads the operand, given alpha and beta.
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

/// Places and fills every operand. Bytes that belong to no element get `poison`, so that reads of them show. Operands are aligned to
/// `alignment` bytes and to their element's size, and no more.
void Trial::lay_out(unsigned char poison, std::uint64_t alignment) {
  std::uint64_t end = 0;
  for (Operand& operand : operands_) operand.capacity = operand.place.extent();
  for (const Operand& operand : operands_) {
    if (operand.inside == one) continue;
    Operand& other = operands_[operand.inside];
    other.capacity = std::max(other.capacity, operand.start + operand.place.extent());
  }
  for (Operand& operand : operands_) {
    if (operand.inside != one) continue;
    const auto size = static_cast<std::uint64_t>(sdk::size_of(operand.dtype));
    const auto skew = operand.number ? 0 : static_cast<std::uint64_t>(random_.integer(0, 4));
    const std::uint64_t step = std::max(alignment, size), block = std::max<std::uint64_t>(64, alignment);
    operand.origin = (end + guard_size + block - 1) / block * block + skew * step;
    end = operand.origin + static_cast<std::uint64_t>(operand.capacity) * size;
  }
  for (Operand& operand : operands_) {
    if (operand.inside == one) continue;
    const Operand& other = operands_[operand.inside];
    operand.origin = other.origin + static_cast<std::uint64_t>(operand.start * sdk::size_of(operand.dtype));
  }
  content_.assign(end + guard_size, poison);

  const bool not_read_is_nan = kind_ == TrialKind::alpha_zero || kind_ == TrialKind::beta_zero;
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
  if ((kind_ != TrialKind::nan && kind_ != TrialKind::infinite) || candidates.empty()) return;
  const Operand& chosen = operands_[candidates[static_cast<std::size_t>(random_.integer(0, static_cast<std::int64_t>(candidates.size())))]];
  for (;;) {
    const std::int64_t i = random_.integer(0, chosen.place.rows), j = random_.integer(0, chosen.place.columns);
    const std::int64_t at = chosen.place.at(i, j);
    if (at < 0) continue;
    put(chosen, at, kind_ == TrialKind::nan ? nan : std::numeric_limits<long double>::infinity());
    drawn_ += fmt::format(" {} at ({},{}) of {}", kind_ == TrialKind::nan ? "NaN" : "Inf", i, j, chosen.name);
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
        result.stored[e] = 1;
        continue;
      }
      if (at < 0 && (operand.meaning == Meaning::symmetric || operand.meaning == Meaning::hermitian)) {
        at = place.at(j, i);
        mirrored = true;
      }
      if (at < 0) continue;
      const Number value = get(operand, at, after);
      result.stored[e] = 1;
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

// ---------------------------------------------------------------- Trial: the call

/// The fields of a record by their names.
class Fields {
 public:
  Fields(const Trial& trial, const Whereabouts& at) : trial_(trial), at_(at) {}

  std::int64_t integer(const char* name) const {
    if (std::strcmp(name, "layout") == 0) return trial_.layout_;
    for (const auto* settings : {&trial_.settings_, &trial_.draws_}) {
      for (const Setting& setting : *settings) {
        if (std::strcmp(setting.name, name) == 0) return setting.value;
      }
    }
    const char* const operand = std::strncmp(name, "inc", 3) == 0 ? name + 3 : std::strncmp(name, "ld", 2) == 0 ? name + 2 : "";
    for (const Trial::Operand& o : trial_.operands_) {
      if (o.name == operand) return o.place.step;
    }
    return 0;
  }
  std::uint64_t address(const char* name) const {
    for (const Trial::Operand& operand : trial_.operands_) {
      if (operand.name == name) return address_of(operand);
    }
    return 0;
  }
  tenon_scalar number(const char* name) const {
    const std::uint64_t address = this->address(name);
    return {address, address == 0 ? 0 : at_.on_device, 0};
  }
  const std::uint64_t* list(const char* name) {
    std::vector<std::uint64_t>& addresses = lists_.emplace_back();
    for (const Trial::Operand& operand : trial_.operands_) {
      if (operand.name == name) addresses.push_back(address_of(operand));
    }
    return addresses.data();
  }

 private:
  std::uint64_t address_of(const Trial::Operand& operand) const {
    if (operand.number && at_.on_device == 0) return reinterpret_cast<std::uintptr_t>(at_.host + operand.origin);
    if (trial_.kind_ == TrialKind::nothing && (trial_.untouched_ || operand.place.extent() == 0)) return 0;
    return at_.base + operand.origin;
  }
  const Trial& trial_;
  const Whereabouts& at_;
  std::list<std::vector<std::uint64_t>> lists_;
};

namespace {

#define TENON_BLAS_ARGS(signature, fields)                                                                                      \
  tenon_status submit_##signature(const void* slot, const tenon_blas_call& call, Fields& of, bool longer, tenon_error* error) { \
    struct {                                                                                                                    \
      tenon_blas_##signature##_args args;                                                                                       \
      unsigned char unknown[32];                                                                                                \
    } sent;                                                                                                                     \
    std::memset(static_cast<void*>(&sent), 0xFF, sizeof sent);                                                                  \
    tenon_blas_##signature##_args& args = sent.args;                                                                            \
    args.struct_size = longer ? sizeof sent : sizeof args;                                                                      \
    fields return reinterpret_cast<tenon_blas_##signature##_fn>(const_cast<void*>(slot))(&call, &args, error);                  \
  }
#define TENON_FLAG(name) args.name = static_cast<std::uint32_t>(of.integer(#name));
#define TENON_SIZE(name) args.name = of.integer(#name);
#define TENON_IN(name) args.name = of.address(#name);
#define TENON_OUT(name) args.name = of.address(#name);
#define TENON_LIST(name) args.name = of.list(#name);
#define TENON_SCALAR(name) args.name = of.number(#name);
#define TENON_REAL_SCALAR(name) args.name = of.number(#name);
#define TENON_NUMBERS(name) args.name = of.number(#name);
#define TENON_REAL_NUMBER(name) args.name = of.number(#name);
#define TENON_RESULT(name) args.name = of.number(#name);
#define TENON_RESERVED args.reserved = 0;
#include <tenon/blas_args.def>

}  // namespace

tenon_status Trial::submit(const void* slot, const tenon_blas_call& call, const Whereabouts& at, bool longer, tenon_error* error) const {
  Fields of(*this, at);
  const char* const name = line_.signature;
#define TENON_BLAS_ARGS(signature, fields) \
  if (std::strcmp(name, #signature) == 0) return submit_##signature(slot, call, of, longer, error);
#include <tenon/blas_args.def>
  throw std::logic_error(std::string(line_.routine) + ": unknown signature");
}

}  // namespace tenon::conformance::blas
