// report.h - how the reference BLAS says that a call failed: xerbla_, cblas_xerbla, which a program may bring itself.
#pragma once

#include <cstddef>

#define SHIM_EXPORT extern "C" __attribute__((visibility("default")))

/// The name is padded with blanks to 6 letters. Position 0: no argument is wrong; what is, stands on stderr.
SHIM_EXPORT void xerbla_(const char* name, const int* position, std::size_t name_length);
/// The position in CBLAS's interface; see RowMajorStrg.
SHIM_EXPORT void cblas_xerbla(int position, const char* name, const char* format, ...);
/// True while a row-major call is reported: positions are then those of the Fortran call that the reference makes of it, with m and n, kl
/// and ku, A and B, x and y exchanged, and cblas_xerbla exchanges them back.
extern "C" __attribute__((visibility("default"))) int RowMajorStrg;
/// Of the reference's; not used here.
extern "C" __attribute__((visibility("default"))) int CBLAS_CallFromC;

namespace tenon::shim {

/// Keeps the exception that is being handled for the report that follows, outside of the handler: what the program brings for xerbla_ may
/// not return.
void keep_failure() noexcept;

/// What the default xerbla_ adds to its line. NULL: the call is not ours.
void add_to_xerbla(const char* sentence);
/// A position of a row-major CBLAS call as the reference's Fortran call has it, and the reverse.
int exchanged(const char* name, int position);

/// Reports what was kept. `name`: "dgemv".
struct Fortran {
  static void report(const char* name, bool row_major);
};
/// `name`: "cblas_dgemv".
struct Cblas {
  static void report(const char* name, bool row_major);
};

}  // namespace tenon::shim
