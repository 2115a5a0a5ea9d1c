// SPDX-License-Identifier: Apache-2.0
// split.h - common parts of the BLAS routines: checks of sizes against OpenBLAS's integers, pieces of vectors, work for several threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>

#include <tenon/sdk/blas.h>
#include <tenon/sdk/error.h>
#include <tenon/sdk/rounding.h>

#include "gemm/tiling.h"

namespace tenon::openblas {

/// An argument that is passed to OpenBLAS as an int.
struct Size {
  const char* name;
  std::int64_t value;
};
inline constexpr std::int64_t largest_int = std::numeric_limits<int>::max();

[[noreturn]] void refuse_sizes(const char* routine, const Size* sizes, std::size_t count);

/// Throws TENON_UNSUPPORTED for the first size beyond int.
template <std::size_t count>
inline void check_sizes(const char* routine, const Size (&sizes)[count]) {
  bool fits = true;
  for (const Size& size : sizes) fits &= size.value <= largest_int && size.value >= -largest_int;
  if (!fits) [[unlikely]]
    refuse_sizes(routine, sizes, count);
}

/// The offset of a vector's first element from its address, which OpenBLAS computes in int.
inline std::int64_t offset_of_first(std::int64_t n, std::int64_t inc) {
  return inc < 0 && n > 0 ? (n - 1) * -inc : 0;
}

inline int to_int(std::int64_t size) {
  return static_cast<int>(size);
}

/// The address of element 0 of a vector.
template <class T>
T* first(T* x, std::int64_t n, std::int64_t inc) {
  return x + offset_of_first(n, inc);
}

/// Elements [begin, end) of a vector of n, with the same increment.
template <class T>
T* slice(T* x, std::int64_t n, std::int64_t inc, std::int64_t begin, std::int64_t end) {
  return inc < 0 ? x + (n - end) * -inc : x + begin * inc;
}

/// a b, without the special cases for infinities of C's Annex G.
template <class T>
T times(T a, T b) {
  if constexpr (sdk::is_complex<T>) {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  } else {
    return a * b;
  }
}
template <class T>
T conjugate(T a) {
  if constexpr (sdk::is_complex<T>) {
    return std::conj(a);
  } else {
    return a;
  }
}
template <class T>
sdk::Real<T> real_part(T a) {
  if constexpr (sdk::is_complex<T>) {
    return a.real();
  } else {
    return a;
  }
}

inline bool is_transposed(std::uint32_t trans) {
  return trans == TENON_TRANS || trans == TENON_CONJ_TRANS;
}
/// The transposition that gives the same operand when its matrix is read in the other layout.
inline std::uint32_t in_other_layout(std::uint32_t trans) {
  switch (trans) {
    case TENON_NO_TRANS:
      return TENON_TRANS;
    case TENON_TRANS:
      return TENON_NO_TRANS;
    case TENON_CONJ_TRANS:
      return TENON_CONJ_NO_TRANS;
    default:
      return TENON_CONJ_TRANS;
  }
}
inline std::uint32_t other_triangle(std::uint32_t uplo) {
  return uplo == TENON_UPPER ? TENON_LOWER : TENON_UPPER;
}
inline std::uint32_t other_side(std::uint32_t side) {
  return side == TENON_LEFT ? TENON_RIGHT : TENON_LEFT;
}

/// The largest number of pieces, whose partial results are on the stack.
inline constexpr std::int64_t max_pieces = 64;

/// The threads that one call may be divided among. A deterministic call is divided as for a fixed number of them, since the order of its
/// sums follows from the pieces.
class Threads {
 public:
  template <class P>
  explicit Threads(const P& p) : host_(p.host), deterministic_(p.deterministic) {}
  std::int64_t count() const { return deterministic_ ? 16 : host_.thread_count(); }
  template <class Body>
  void parallel_for(std::int64_t count, std::int64_t grain, const Body& body) const {
    host_.parallel_for(count, grain, body);
  }

 private:
  const sdk::Host& host_;
  const bool deterministic_;
};

/// The smallest number of bytes of a matrix worth handing to a thread that reads them once, or only scales, adds or copies them.
inline constexpr double smallest_matrix_piece = 524288;

/// The number of pieces for `work`, each of at least `smallest`; 1, without a call to the host, if there is little work.
inline std::int64_t piece_count(const Threads& threads, double work, double smallest) {
  if (work < 2 * smallest) return 1;
  const double most = static_cast<double>(std::min(threads.count(), max_pieces));
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::min(most, work / smallest)));
}

/// Calls body(piece, begin, end) over [0, count) in about `pieces` pieces whose edges are multiples of `tile`. Returns their number.
template <class Body>
std::int64_t for_pieces(const Threads& threads, std::int64_t count, std::int64_t pieces, std::int64_t tile, const Body& body) {
  if (pieces <= 1) {
    body(std::int64_t{0}, std::int64_t{0}, count);
    return 1;
  }
  const std::int64_t step = sdk::round_up(sdk::ceil_div(count, pieces), tile);
  const std::int64_t step_count = sdk::ceil_div(count, step);
  threads.parallel_for(step_count, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t piece = begin; piece < end; ++piece) body(piece, piece * step, std::min(count, (piece + 1) * step));
  });
  return step_count;
}

/// The first line of a piece of a triangle whose line j has j + 1 elements. All pieces have about the same number of elements.
inline std::int64_t triangle_edge(std::int64_t n, std::int64_t pieces, std::int64_t piece, std::int64_t tile) {
  if (piece >= pieces) return n;
  const double share = std::sqrt(static_cast<double>(piece) / static_cast<double>(pieces));
  return std::min(n, static_cast<std::int64_t>(share * static_cast<double>(n)) / tile * tile);
}

/// Calls body(begin, end) over the lines of such a triangle; with `from_end`, line j has n - j elements.
template <class Body>
void for_triangle(const Threads& threads, std::int64_t n, bool from_end, std::int64_t pieces, std::int64_t tile, const Body& body) {
  if (pieces <= 1) {
    body(std::int64_t{0}, n);
    return;
  }
  threads.parallel_for(pieces, 1, [&](std::int64_t first_piece, std::int64_t end_piece) {
    for (std::int64_t piece = first_piece; piece < end_piece; ++piece) {
      const std::int64_t begin = triangle_edge(n, pieces, piece, tile);
      const std::int64_t end = triangle_edge(n, pieces, piece + 1, tile);
      if (begin >= end) continue;
      from_end ? body(n - end, n - begin) : body(begin, end);
    }
  });
}

}  // namespace tenon::openblas
