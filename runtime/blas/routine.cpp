// SPDX-License-Identifier: Apache-2.0
// Names and formulas of routines, names of their arguments, and ArgumentError.
#include <tenon/blas.h>

#include <string_view>
#include <utility>

namespace tenon::blas {
namespace {

/// Arguments in the order of the reference's Fortran interface if it has the routine, else in the order of cuBLAS or BLIS. In formulas x'
/// is the transpose of x, or its new value.
struct Line {
  Routine routine;
  const char* arguments;
  const char* formula;
};
constexpr Line lines[] = {
    {Routine::rotg, "a b c s",
     "[c s; -conj(s) c] [a; b] = [r; 0], c real, c^2 + |s|^2 = 1; a becomes r, and b, for real numbers, a z that encodes c and s"},
    {Routine::rotmg, "d1 d2 x1 y1 param",
     "H [x1; y1] = [x1'; 0] and H' diag(d1', d2') H = diag(d1, d2); param is the flag, h11, h21, h12, h22; d1 < 0 makes all of them 0"},
    {Routine::rot, "n x incx y incy c s", "x, y = c x + s y, c y - conj(s) x; c is real"},
    {Routine::rotm, "n x incx y incy param", "x, y = h11 x + h12 y, h21 x + h22 y; param is the flag, h11, h21, h12, h22"},
    {Routine::swap, "n x incx y incy", "x, y = y, x"},
    {Routine::scal, "n alpha x incx", "x = alpha x; 0 times NaN is NaN"},
    {Routine::rscal, "n alpha x incx", "x = alpha x, alpha real"},
    {Routine::copy, "n x incx y incy", "y = x"},
    {Routine::axpy, "n alpha x incx y incy", "y = alpha x + y"},
    {Routine::axpby, "n alpha x incx beta y incy", "y = alpha x + beta y"},
    {Routine::dot, "n x incx y incy", "result = x' y"},
    {Routine::dotu, "n x incx y incy", "result = x' y"},
    {Routine::dotc, "n x incx y incy", "result = conj(x)' y"},
    {Routine::sdsdot, "n alpha x incx y incy", "result = alpha + x' y, summed in f64, returned in f32"},
    {Routine::dsdot, "n x incx y incy", "result = x' y of f32, summed and returned in f64"},
    {Routine::nrm2, "n x incx", "result = sqrt(sum |x|^2), without intermediate overflow or underflow"},
    {Routine::asum, "n x incx", "result = sum of |re x| + |im x|"},
    {Routine::iamax, "n x incx", "result = the first i of the largest |re x[i]| + |im x[i]|, from 0; -1 for n = 0"},
    {Routine::iamin, "n x incx", "result = the first i of the smallest |re x[i]| + |im x[i]|, from 0; -1 for n = 0"},
    {Routine::gemv, "trans m n alpha a lda x incx beta y incy", "y = alpha op(A) x + beta y"},
    {Routine::gbmv, "trans m n kl ku alpha a lda x incx beta y incy",
     "y = alpha op(A) x + beta y, A with kl diagonals below and ku above the main one"},
    {Routine::symv, "uplo n alpha a lda x incx beta y incy", "y = alpha A x + beta y, A symmetric"},
    {Routine::hemv, "uplo n alpha a lda x incx beta y incy", "y = alpha A x + beta y, A Hermitian"},
    {Routine::sbmv, "uplo n k alpha a lda x incx beta y incy",
     "y = alpha A x + beta y, A symmetric with k diagonals on each side of the main one"},
    {Routine::hbmv, "uplo n k alpha a lda x incx beta y incy",
     "y = alpha A x + beta y, A Hermitian with k diagonals on each side of the main one"},
    {Routine::spmv, "uplo n alpha a x incx beta y incy", "y = alpha A x + beta y, A symmetric, packed"},
    {Routine::hpmv, "uplo n alpha a x incx beta y incy", "y = alpha A x + beta y, A Hermitian, packed"},
    {Routine::trmv, "uplo trans diag n a lda x incx", "x = op(A) x, A triangular"},
    {Routine::tbmv, "uplo trans diag n k a lda x incx", "x = op(A) x, A triangular with k off-diagonals"},
    {Routine::tpmv, "uplo trans diag n a x incx", "x = op(A) x, A triangular, packed"},
    {Routine::trsv, "uplo trans diag n a lda x incx", "op(A) x' = x, x' replaces x, A triangular"},
    {Routine::tbsv, "uplo trans diag n k a lda x incx", "op(A) x' = x, x' replaces x, A triangular with k off-diagonals"},
    {Routine::tpsv, "uplo trans diag n a x incx", "op(A) x' = x, x' replaces x, A triangular, packed"},
    {Routine::ger, "m n alpha x incx y incy a lda", "A = alpha x y' + A"},
    {Routine::geru, "m n alpha x incx y incy a lda", "A = alpha x y' + A"},
    {Routine::gerc, "m n alpha x incx y incy a lda", "A = alpha x conj(y)' + A"},
    {Routine::syr, "uplo n alpha x incx a lda", "A = alpha x x' + A, one triangle"},
    {Routine::her, "uplo n alpha x incx a lda", "A = alpha x conj(x)' + A, one triangle, alpha real"},
    {Routine::spr, "uplo n alpha x incx a", "A = alpha x x' + A, packed"},
    {Routine::hpr, "uplo n alpha x incx a", "A = alpha x conj(x)' + A, packed, alpha real"},
    {Routine::syr2, "uplo n alpha x incx y incy a lda", "A = alpha (x y' + y x') + A, one triangle"},
    {Routine::her2, "uplo n alpha x incx y incy a lda", "A = alpha x conj(y)' + conj(alpha) y conj(x)' + A, one triangle"},
    {Routine::spr2, "uplo n alpha x incx y incy a", "A = alpha (x y' + y x') + A, packed"},
    {Routine::hpr2, "uplo n alpha x incx y incy a", "A = alpha x conj(y)' + conj(alpha) y conj(x)' + A, packed"},
    {Routine::gemm, "trans_a trans_b m n k alpha a lda b ldb beta c ldc", "C = alpha op(A) op(B) + beta C"},
    {Routine::gemmt, "uplo trans_a trans_b n k alpha a lda b ldb beta c ldc", "C = alpha op(A) op(B) + beta C, one triangle of a square C"},
    {Routine::symm, "side uplo m n alpha a lda b ldb beta c ldc",
     "C = alpha A B + beta C (left) or alpha B A + beta C (right), A symmetric"},
    {Routine::hemm, "side uplo m n alpha a lda b ldb beta c ldc",
     "C = alpha A B + beta C (left) or alpha B A + beta C (right), A Hermitian"},
    {Routine::syrk, "uplo trans n k alpha a lda beta c ldc", "C = alpha A A' + beta C (trans none) or alpha A' A + beta C, one triangle"},
    {Routine::herk, "uplo trans n k alpha a lda beta c ldc",
     "C = alpha A conj(A)' + beta C (trans none) or alpha conj(A)' A + beta C, one triangle, alpha and beta real"},
    {Routine::syr2k, "uplo trans n k alpha a lda b ldb beta c ldc",
     "C = alpha (A B' + B A') + beta C (trans none) or alpha (A' B + B' A) + beta C, one triangle"},
    {Routine::her2k, "uplo trans n k alpha a lda b ldb beta c ldc",
     "C = alpha A conj(B)' + conj(alpha) B conj(A)' + beta C (trans none) or alpha conj(A)' B + conj(alpha) conj(B)' A + beta C, one "
     "triangle, beta real"},
    {Routine::trmm, "side uplo trans diag m n alpha a lda b ldb", "B = alpha op(A) B (left) or alpha B op(A) (right), A triangular"},
    {Routine::trsm, "side uplo trans diag m n alpha a lda b ldb",
     "op(A) X = alpha B (left) or X op(A) = alpha B (right), X replaces B, A triangular"},
    {Routine::geam, "trans_a trans_b m n alpha a lda beta b ldb c ldc", "C = alpha op(A) + beta op(B)"},
    {Routine::dgmm, "side m n a lda x incx c ldc", "C = diag(x) A (left) or A diag(x) (right)"},
    {Routine::gemm_batched, "trans_a trans_b m n k alpha a lda b ldb beta c ldc batch",
     "C = alpha op(A) op(B) + beta C for each of `batch` triples, given by host arrays of addresses"},
    {Routine::gemm_strided_batched, "trans_a trans_b m n k alpha a lda stride_a b ldb stride_b beta c ldc stride_c batch",
     "C = alpha op(A) op(B) + beta C for each of `batch` triples, strides (in elements) apart"},
};

constexpr bool has_line(Routine routine) {
  for (const Line& line : lines) {
    if (line.routine == routine) return true;
  }
  return false;
}
#define TENON_BLAS(id, routine, level, signature, dtypes) static_assert(has_line(Routine::routine), #routine " is missing above");
#include <tenon/blas.def>
#undef TENON_BLAS

int position_of(Routine routine, std::string_view argument) {
  std::string_view rest = arguments_of(routine);
  for (int position = 1; !rest.empty(); ++position) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    if (rest.substr(0, end) == argument) return position;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return 0;
}

std::string sentence(Routine routine, const char* argument, const std::string& text) {
  const int position = position_of(routine, argument);
  return std::string(name_of(routine)) + ": argument " + (position > 0 ? std::to_string(position) + ", " : "") + argument + ", " + text;
}

}  // namespace

const char* name_of(Routine routine) {
  switch (routine) {
#define TENON_BLAS(id, routine, level, signature, dtypes) \
  case Routine::routine:                                  \
    return #routine;
#include <tenon/blas.def>
#undef TENON_BLAS
  }
  return "?";
}

const char* arguments_of(Routine routine) {
  for (const Line& line : lines) {
    if (line.routine == routine) return line.arguments;
  }
  return "";
}

const char* formula_of(Routine routine) {
  for (const Line& line : lines) {
    if (line.routine == routine) return line.formula;
  }
  return "";
}

ArgumentError::ArgumentError(Routine routine, const char* argument, const std::string& text)
    : Error(Status::invalid_argument, sentence(routine, argument, text)),
      routine_(routine),
      argument_(argument),
      position_(position_of(routine, argument)) {}

}  // namespace tenon::blas
