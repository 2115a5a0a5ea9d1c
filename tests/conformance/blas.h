// SPDX-License-Identifier: Apache-2.0
// blas.h - the description of a signature class of blas.def that a file of blas/ gives: its flags and sizes, its arguments, and its result
// by definition. From that the harness (blas.cpp, blas_trial.cpp, blas_verdict.cpp) makes cases for every routine and dtype of the list.
//
// The kit has its own oracle, so that every backend is judged, including reference: each matrix is read from the same bytes that the
// backend gets, expanded to a dense one of long double with op applied, and the definition, a sum of products, is evaluated on those.
#pragma once

#include <complex>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <tenon/backend.h>

#include "array.h"

namespace tenon::conformance::blas {

using Number = std::complex<long double>;

/// A line of blas.def.
struct Line {
  const char* routine;
  int level;
  const char* signature;
  const char* dtypes;    ///< "sdcz"
  std::uint64_t offset;  ///< offset of the slot in tenon_blas_table; its dtypes follow
};
const std::vector<Line>& lines();

bool is_complex(tenon_dtype dtype);
/// f32 for f32 and c64, f64 for f64 and c128.
tenon_dtype real_of(tenon_dtype dtype);
inline bool transposes(std::uint32_t op) {
  return op == TENON_TRANS || op == TENON_CONJ_TRANS;
}
inline const std::vector<std::uint32_t> all_ops{TENON_NO_TRANS, TENON_TRANS, TENON_CONJ_TRANS, TENON_CONJ_NO_TRANS};
inline const std::vector<std::uint32_t> both_triangles{TENON_UPPER, TENON_LOWER};
inline const std::vector<std::uint32_t> both_sides{TENON_LEFT, TENON_RIGHT};
inline const std::vector<std::uint32_t> both_diagonals{TENON_NON_UNIT, TENON_UNIT};

/// Where element (i, j) of an operand lies, in elements from its start.
struct Place {
  enum class Kind { vector, full, band, packed };
  Kind kind = Kind::vector;
  std::int64_t rows = 0, columns = 0;
  std::int64_t step = 1;              ///< increment or leading dimension
  std::int64_t below = 0, above = 0;  ///< band: diagonals stored below and above the main one
  std::uint32_t layout = TENON_LAYOUT_ROW_MAJOR;
  std::uint32_t triangle = 0;  ///< TENON_UPPER, TENON_LOWER; 0: the whole matrix
  bool no_diagonal = false;    ///< a unit triangle's diagonal is not referenced

  /// -1: not stored.
  std::int64_t at(std::int64_t i, std::int64_t j) const;
  /// Number of elements from the first element to the end of the last line.
  std::int64_t extent() const;
};

/// The values of elements that are not stored.
enum class Meaning {
  nothing,    ///< zeros, which take no part in a sum
  symmetric,  ///< the stored triangle, mirrored
  hermitian,  ///< mirrored and conjugated; imaginary parts of the diagonal are 0 on input, and set to 0 on output
  unit        ///< ones on the diagonal
};
enum class Access { read, update, write };
enum class Storage { full, band, packed };

/// An operand of a trial.
using Ref = std::size_t;
inline constexpr Ref one = ~Ref{0};  ///< not an operand: the factor 1

struct Factor {
  Ref operand;
  std::uint32_t op = TENON_NO_TRANS;
  bool diagonal = false;  ///< the vector as a diagonal matrix
  bool after = false;     ///< its value after the call: the solution of an equation
};
/// coefficient * left * right.
struct Term {
  Number coefficient;
  Factor left;
  Factor right = {one};
};

/// A matrix of long double. `stored` is false for implied zeros: no product is formed with them, not even with NaN.
struct Dense {
  std::int64_t rows = 0, columns = 0;
  std::vector<long double> re, im;
  std::vector<char> stored;
  Number at(std::int64_t i, std::int64_t j = 0) const {
    const auto e = static_cast<std::size_t>(i * columns + j);
    return {re[e], im.empty() ? 0 : im[e]};
  }
};

/// Where the operands of a call are.
struct Whereabouts {
  std::uint64_t base;       ///< address of the device's copy
  unsigned char* host;      ///< the host's copy
  std::uint32_t on_device;  ///< whether numbers are in device memory
};

/// What a trial checks in addition to correct values.
enum class TrialKind {
  none,
  full,        ///< alpha and beta are neither 0 nor 1: every operand counts
  beta_zero,   ///< beta = 0, and NaN in what it multiplies
  alpha_zero,  ///< alpha = 0, and NaN in what it multiplies
  nothing,     ///< a size is 0; addresses of operands that are not accessed are NULL
  nan,         ///< a NaN somewhere in an operand
  infinite,    ///< an infinity somewhere in an operand
  aliasing     ///< two operands in the same memory
};

struct Setting {
  const char* name;
  std::int64_t value;
};

/// One call: operands in guarded memory, numbers, and the expected results by definition. A signature's `build` makes one.
class Trial {
 public:
  Trial(const Line& line, tenon_dtype dtype, std::uint32_t layout, TrialKind kind, std::uint64_t seed, std::vector<Setting> settings);

  // Parameters.
  bool is(const char* routine) const;
  tenon_dtype dtype() const { return dtype_; }
  bool complex() const { return is_complex(dtype_); }
  TrialKind kind() const { return kind_; }
  std::int64_t size(const char* name) const;
  std::uint32_t flag(const char* name) const { return static_cast<std::uint32_t>(size(name)); }
  Random& random() { return random_; }
  /// Draws one of these values, which reports name.
  std::int64_t draw(const char* name, const std::vector<std::int64_t>& from);

  // Operands. Increments, leading dimensions and values are random.
  Ref vector(const char* name, std::int64_t n, Access access = Access::read);
  /// With an increment above 0.
  Ref forward_vector(const char* name, std::int64_t n, Access access = Access::read);
  Ref matrix(const char* name, std::int64_t rows, std::int64_t columns, Access access = Access::read);
  Ref band(const char* name, std::int64_t rows, std::int64_t columns, std::int64_t below, std::int64_t above);
  /// One triangle of an (n, n) matrix. `k` is for Storage::band.
  Ref triangle(const char* name, std::int64_t n, std::uint32_t uplo, Meaning meaning, Storage storage = Storage::full, std::int64_t k = 0,
               Access access = Access::read);
  /// Another operand of the same shape and layout.
  Ref another(Ref like);
  std::int64_t extent(Ref operand) const { return operands_[operand].place.extent(); }
  /// Numbers in host or device memory, depending on the case.
  Ref numbers(const char* name, const std::vector<Number>& values, tenon_dtype dtype, Access access = Access::read);
  /// A number that the routine writes.
  Ref result(tenon_dtype dtype) { return numbers("result", {0}, dtype, Access::write); }
  /// 0, 1 or another; real_only: without an imaginary part, and of the real dtype.
  struct Scalar {
    Ref ref;
    Number value;
    operator Number() const { return value; }
  };
  Scalar alpha(bool real_only = false) { return scalar("alpha", real_only, TrialKind::alpha_zero); }
  Scalar beta(bool real_only = false) { return scalar("beta", real_only, TrialKind::beta_zero); }

  // Values of operands: uniform in [-1, 1] unless set here.
  void scale(Ref operand, long double factor);
  void fill(Ref operand, const std::vector<Number>& values);
  /// A diagonal of 2 to 3, and other elements of at most 1/n, so that a solve amplifies no errors.
  void condition(Ref operand);
  /// If both have the same layout, the aliasing cases put `operand` into the memory of `other`.
  void may_share(Ref operand, Ref other);
  /// Puts `operand` into the memory of `other`, `elements` after its start.
  void put_inside(Ref operand, Ref other, std::int64_t elements);

  // Expected results.
  /// result = sum of terms + beta * result. `epsilon`: rounding of a step, `rounding`: of the result; 0: those of the dtype.
  void equals(Ref result, std::vector<Term> terms, Number beta = 0, double epsilon = 0);
  /// The same numbers, bitwise except for the sign of a zero.
  void same(Ref result, Ref source);
  /// op(A) X = alpha B (left) or X op(A) = alpha B, X over B.
  void solves(Ref b, Factor a, bool left, Number alpha);
  /// If `condition`, nothing may be written.
  void untouched_if(bool condition) { untouched_ = condition; }
  /// Any other check on before() and after(); it returns an empty result if it holds.
  void expect(std::function<Wrong(const Trial&)> holds) { holds_ = std::move(holds); }
  /// An infinity of an operand makes the result infinite.
  void spreads_infinity() { spreads_infinity_ = true; }

  Dense before(const Factor& factor) const;
  Dense after(Ref operand) const;

  /// Calls a slot. Every field of the record gets what has its name: the flag or size, the operand, the number; lda and incx the step of
  /// the operand a or x. 0: there is none. `longer`: the record goes on with bytes that this header does not know.
  tenon_status submit(const void* slot, const tenon_blas_call& call, const Whereabouts& at, bool longer, tenon_error* error) const;
  /// Allows for operands that are rounded to a relative error of `step` each.
  void allow_rounding(double step) { rounding_ = step; }

  /// "trans=none m=3 n=7 lda=9 incx=-1 alpha=0.25", and the seed.
  std::string describe() const;
  /// Increments and leading dimensions: "lda=5 incx=-1".
  std::string steps() const { return drawn_.empty() ? "" : drawn_.substr(1); }

 private:
  friend class Stage;
  friend class Fields;
  struct Operand {
    std::string name;
    tenon_dtype dtype;
    Place place;
    Meaning meaning = Meaning::nothing;
    Access access = Access::read;
    bool number = false;  ///< made by numbers()
    bool conditioned = false;
    long double scale = 1;
    std::vector<Number> given = {};  ///< empty: drawn
    Ref inside = one;                ///< the operand whose memory it shares
    std::int64_t start = 0;          ///< elements from the start of `inside`
    std::int64_t capacity = 0;       ///< elements of its memory, for itself and the operands inside
    std::uint64_t origin = 0;        ///< bytes from the memory's start
  };
  struct Equation {
    Ref result;
    std::vector<Term> terms;
    Number beta;
    double epsilon = 0;
    bool exact = false;
    bool solve = false;  ///< the terms have to equal beta * the previous result
  };
  Ref add(Operand operand);
  Scalar scalar(const char* name, bool real_only, TrialKind zero);
  std::int64_t increment(const char* name, bool forward);
  std::int64_t padding();
  void lay_out(unsigned char poison, std::uint64_t alignment);
  void put(const Operand& operand, std::int64_t place, Number value);
  Number get(const Operand& operand, std::int64_t place, bool after) const;
  Dense dense(Ref operand, bool after) const;
  bool needed(Ref operand) const;
  bool has(TrialKind kind) const;
  std::vector<Dense> factors_of(const Equation& equation) const;
  Number scaled_by(Number coefficient, Number value) const;
  Number sum_at(const Equation& equation, const std::vector<Dense>& factors, std::int64_t i, std::int64_t j, long double& out_size) const;
  Wrong judge() const;
  Wrong judge(const Equation& equation) const;
  Wrong judge_by_vectors(const Equation& equation, const std::vector<Dense>& factors, double epsilon, double c) const;
  Wrong judge_nan(const Equation& equation) const;
  Wrong judge_diagonal(const Equation& equation) const;
  Wrong damage() const;
  Wrong difference(const Trial& other) const;

  const Line& line_;
  const tenon_dtype dtype_;
  const std::uint32_t layout_;
  const TrialKind kind_;
  const std::uint64_t seed_;
  std::vector<Setting> settings_;
  Random random_;
  std::int64_t shared_increment_ = 0;
  std::string drawn_;           ///< for reports
  std::vector<Setting> draws_;  ///< by draw()
  std::vector<Operand> operands_;
  std::vector<Equation> equations_;
  bool untouched_ = false, spreads_infinity_ = false, shares_ = false;
  bool alpha_ = false, beta_ = false;
  std::function<Wrong(const Trial&)> holds_;
  double rounding_ = 0;
  std::vector<unsigned char> content_, after_;
};

struct Flag {
  const char* name;
  std::vector<std::uint32_t> values;
};

/// Where bounds come from; the reference pages print it. blas_verdict.cpp has the algebra and its sources.
inline constexpr const char* why_products =
    "A sum of products: |error| <= c (terms + 4) epsilon (sum of |alpha| |A| |B| + |beta| |C|) for each element, which any order of "
    "summation "
    "keeps. c is 2, for another rounding of alpha and beta, and 8 for complex numbers, whose products may be formed of three real ones. "
    "Large "
    "results are held to it by products with vectors of random signs, and some of their rows and columns element by element.";
inline constexpr const char* why_products_and_solves =
    "Products: |error| <= c (terms + 4) epsilon (sum of |alpha| |A| |B|) for each element, c = 2, 8 for complex numbers. Solves by their "
    "residual: |op(A) X - alpha B| <= c (n + 4) epsilon |op(A)| |X|, which any stable substitution keeps whatever the condition.";

/// Everything the kit knows about a signature class.
struct Signature {
  std::vector<const char*> routines;  ///< of blas.def: a line whose routine is missing here has no case
  bool layouts = true;                ///< it has matrix operands
  std::vector<const char*> sizes;
  std::vector<Flag> (*flags)(const Line&, tenon_dtype) = nullptr;
  void (*build)(Trial&);
  const char* why = nullptr;  ///< where the bound of its results comes from
};

/// Empty if `got` equals `expected` within the bound; NaN needs NaN, an infinity the same infinity.
Wrong compare(const std::string& where, Number expected, Number got, long double bound);

/// Messages about routines of blas.def without a case or a reason for their bound.
std::vector<std::string> gaps();

/// All signatures with their names, in the order of blas.def; generated by the build.
std::vector<std::pair<std::string, Signature>> all_signatures();

}  // namespace tenon::conformance::blas
