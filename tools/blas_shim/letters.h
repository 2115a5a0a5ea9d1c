// SPDX-License-Identifier: Apache-2.0
// letters.h - parses the option arguments of programs. An invalid one becomes a value without an enumerator; the runtime then reports its
// position.
#pragma once

#include <tenon/blas.h>

namespace tenon::shim {

/// Options ignore case: 'n' is 'N'.
inline char upper_case(const char* letter) {
  return static_cast<char>(*letter & ~0x20);
}
template <class E>
E none_of() {
  return static_cast<E>(0);
}

// Fortran: the first letter of a string.
inline blas::Op op(const char* letter) {
  switch (upper_case(letter)) {
    case 'N':
      return blas::Op::none;
    case 'T':
      return blas::Op::trans;
    case 'C':
      return blas::Op::conj_trans;
    default:
      return none_of<blas::Op>();
  }
}
inline blas::Uplo uplo(const char* letter) {
  return upper_case(letter) == 'U' ? blas::Uplo::upper : upper_case(letter) == 'L' ? blas::Uplo::lower : none_of<blas::Uplo>();
}
inline blas::Diag diag(const char* letter) {
  return upper_case(letter) == 'N' ? blas::Diag::non_unit : upper_case(letter) == 'U' ? blas::Diag::unit : none_of<blas::Diag>();
}
inline blas::Side side(const char* letter) {
  return upper_case(letter) == 'L' ? blas::Side::left : upper_case(letter) == 'R' ? blas::Side::right : none_of<blas::Side>();
}

// CBLAS: its values are those of the plugin ABI.
inline blas::Layout layout(int value) {
  return static_cast<blas::Layout>(value);
}
inline blas::Op op(int value) {
  return static_cast<blas::Op>(value);
}
inline blas::Uplo uplo(int value) {
  return static_cast<blas::Uplo>(value);
}
inline blas::Diag diag(int value) {
  return static_cast<blas::Diag>(value);
}
inline blas::Side side(int value) {
  return static_cast<blas::Side>(value);
}

}  // namespace tenon::shim
