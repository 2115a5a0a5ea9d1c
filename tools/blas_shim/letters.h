// letters.h - options as programs write them. What none of them means becomes a value of no enumerator, which the core refuses by position.
#pragma once

#include <tenon/blas.h>

namespace tenon::shim {

/// 'n' and 'N' are one letter.
inline char upper_case(const char* letter) {
  return static_cast<char>(*letter & ~0x20);
}
template <class E>
E none_of() {
  return static_cast<E>(0);
}

// Fortran: the first letter of a text.
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

// CBLAS: its numbers are the socket's.
inline blas::Layout layout(int number) {
  return static_cast<blas::Layout>(number);
}
inline blas::Op op(int number) {
  return static_cast<blas::Op>(number);
}
inline blas::Uplo uplo(int number) {
  return static_cast<blas::Uplo>(number);
}
inline blas::Diag diag(int number) {
  return static_cast<blas::Diag>(number);
}
inline blas::Side side(int number) {
  return static_cast<blas::Side>(number);
}

}  // namespace tenon::shim
