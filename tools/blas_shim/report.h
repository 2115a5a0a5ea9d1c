// SPDX-License-Identifier: Apache-2.0
// report.h - error reports as in the reference BLAS: xerbla_ and cblas_xerbla, which a program may define itself.
#pragma once

#include <cstddef>

#include <tenon/backend.h>

#define SHIM_EXPORT extern "C" TENON_EXPORT

/// `name` is padded with blanks to 6 letters.
SHIM_EXPORT void xerbla_(const char* name, const int* position, std::size_t name_length);
/// `position` is that of the CBLAS interface; see RowMajorStrg.
SHIM_EXPORT void cblas_xerbla(int position, const char* name, const char* format, ...);
/// Nonzero while a row-major call is reported: positions are then those of the equivalent Fortran call of the reference, with m and n, kl
/// and ku, A and B, x and y exchanged, and cblas_xerbla exchanges them back.
SHIM_EXPORT int RowMajorStrg;
/// Exported by the reference; not used here.
SHIM_EXPORT int CBLAS_CallFromC;

namespace tenon::shim {

/// Saves the exception being handled for the report. The report happens outside the handler, because a program's own xerbla_ may not
/// return.
void keep_failure() noexcept;

/// Sets the text that the default xerbla_ prints after its line; NULL for none.
void set_xerbla_detail(const char* text);
/// Converts a position of a row-major CBLAS call to that of the reference's Fortran call, and back.
int exchanged(const char* name, int position);

/// Reports the saved failure if it is about an argument, otherwise ends the program. `name`: "dgemv".
struct Fortran {
  static void report(const char* name, bool row_major);
};
/// The same. `name`: "cblas_dgemv".
struct Cblas {
  static void report(const char* name, bool row_major);
};

}  // namespace tenon::shim
