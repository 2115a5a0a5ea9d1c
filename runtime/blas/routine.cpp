// The names of routines and of their arguments, and the error that names one of them.
#include <tenon/blas.h>

#include <string_view>
#include <utility>

namespace tenon::blas {
namespace {

/// Arguments in the order of the reference's Fortran interface, where it has one; extensions in the order of cuBLAS or BLIS.
struct Line {
  Routine routine;
  const char* arguments;
};
constexpr Line lines[] = {
    {Routine::rotg, "a b c s"},
    {Routine::rotmg, "d1 d2 x1 y1 param"},
    {Routine::rot, "n x incx y incy c s"},
    {Routine::rotm, "n x incx y incy param"},
    {Routine::swap, "n x incx y incy"},
    {Routine::scal, "n alpha x incx"},
    {Routine::rscal, "n alpha x incx"},
    {Routine::copy, "n x incx y incy"},
    {Routine::axpy, "n alpha x incx y incy"},
    {Routine::axpby, "n alpha x incx beta y incy"},
    {Routine::dot, "n x incx y incy"},
    {Routine::dotu, "n x incx y incy"},
    {Routine::dotc, "n x incx y incy"},
    {Routine::sdsdot, "n alpha x incx y incy"},
    {Routine::dsdot, "n x incx y incy"},
    {Routine::nrm2, "n x incx"},
    {Routine::asum, "n x incx"},
    {Routine::iamax, "n x incx"},
    {Routine::iamin, "n x incx"},
    {Routine::gemv, "trans m n alpha a lda x incx beta y incy"},
    {Routine::gbmv, "trans m n kl ku alpha a lda x incx beta y incy"},
    {Routine::symv, "uplo n alpha a lda x incx beta y incy"},
    {Routine::hemv, "uplo n alpha a lda x incx beta y incy"},
    {Routine::sbmv, "uplo n k alpha a lda x incx beta y incy"},
    {Routine::hbmv, "uplo n k alpha a lda x incx beta y incy"},
    {Routine::spmv, "uplo n alpha a x incx beta y incy"},
    {Routine::hpmv, "uplo n alpha a x incx beta y incy"},
    {Routine::trmv, "uplo trans diag n a lda x incx"},
    {Routine::tbmv, "uplo trans diag n k a lda x incx"},
    {Routine::tpmv, "uplo trans diag n a x incx"},
    {Routine::trsv, "uplo trans diag n a lda x incx"},
    {Routine::tbsv, "uplo trans diag n k a lda x incx"},
    {Routine::tpsv, "uplo trans diag n a x incx"},
    {Routine::ger, "m n alpha x incx y incy a lda"},
    {Routine::geru, "m n alpha x incx y incy a lda"},
    {Routine::gerc, "m n alpha x incx y incy a lda"},
    {Routine::syr, "uplo n alpha x incx a lda"},
    {Routine::her, "uplo n alpha x incx a lda"},
    {Routine::spr, "uplo n alpha x incx a"},
    {Routine::hpr, "uplo n alpha x incx a"},
    {Routine::syr2, "uplo n alpha x incx y incy a lda"},
    {Routine::her2, "uplo n alpha x incx y incy a lda"},
    {Routine::spr2, "uplo n alpha x incx y incy a"},
    {Routine::hpr2, "uplo n alpha x incx y incy a"},
    {Routine::gemm, "trans_a trans_b m n k alpha a lda b ldb beta c ldc"},
    {Routine::gemmt, "uplo trans_a trans_b n k alpha a lda b ldb beta c ldc"},
    {Routine::symm, "side uplo m n alpha a lda b ldb beta c ldc"},
    {Routine::hemm, "side uplo m n alpha a lda b ldb beta c ldc"},
    {Routine::syrk, "uplo trans n k alpha a lda beta c ldc"},
    {Routine::herk, "uplo trans n k alpha a lda beta c ldc"},
    {Routine::syr2k, "uplo trans n k alpha a lda b ldb beta c ldc"},
    {Routine::her2k, "uplo trans n k alpha a lda b ldb beta c ldc"},
    {Routine::trmm, "side uplo trans diag m n alpha a lda b ldb"},
    {Routine::trsm, "side uplo trans diag m n alpha a lda b ldb"},
    {Routine::geam, "trans_a trans_b m n alpha a lda beta b ldb c ldc"},
    {Routine::dgmm, "side m n a lda x incx c ldc"},
    {Routine::gemm_batched, "trans_a trans_b m n k alpha a lda b ldb beta c ldc batch"},
    {Routine::gemm_strided_batched, "trans_a trans_b m n k alpha a lda stride_a b ldb stride_b beta c ldc stride_c batch"},
};

constexpr bool has_line(Routine routine) {
  for (const Line& line : lines) {
    if (line.routine == routine) return true;
  }
  return false;
}
#define TENON_BLAS(id, routine, level, signature, dtypes) static_assert(has_line(Routine::routine), #routine " has no line above");
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

ArgumentError::ArgumentError(Routine routine, const char* argument, const std::string& text)
    : Error(Status::invalid_argument, sentence(routine, argument, text)),
      routine_(routine),
      argument_(argument),
      position_(position_of(routine, argument)) {}

}  // namespace tenon::blas
