// SPDX-License-Identifier: Apache-2.0
// carry.h - copies the operands of a call to a device whose memory the host cannot address, and the results back.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include <tenon/blas.h>
#include <tenon/tensor.h>

#include "blas/check.h"
#include "place.h"

namespace tenon::shim {

/// The device copies of a call's operands. An operand's pointer is replaced by the address of its copy.
class Carrier {
 public:
  explicit Carrier(const Device& device) : device_(device) {}
  template <class T>
  void in(const T*& operand, std::int64_t count) {
    operand = static_cast<const T*>(carry_over(const_cast<T*>(operand), count * std::int64_t{sizeof(T)}, true, false));
  }
  template <class T>
  void inout(T*& operand, std::int64_t count) {
    operand = static_cast<T*>(carry_over(operand, count * std::int64_t{sizeof(T)}, true, true));
  }
  /// The routine writes every element, so the old values are not copied.
  template <class T>
  void out(T*& operand, std::int64_t count) {
    operand = static_cast<T*>(carry_over(operand, count * std::int64_t{sizeof(T)}, false, true));
  }
  /// Copies the results back after the routine.
  void copy_back();

 private:
  struct Piece {
    Tensor host, device;
    bool copy_out;
  };
  void* carry_over(void* host, std::int64_t size_bytes, bool copy_in, bool copy_out);

  const Device& device_;
  std::vector<Piece> pieces_;
};

/// Number of elements that an operand spans.
inline std::int64_t vector(std::int64_t n, std::int64_t increment) {
  return n == 0 ? 0 : (n - 1) * std::abs(increment) + 1;
}
inline std::int64_t lines(std::int64_t count, std::int64_t lead, std::int64_t length) {
  return count == 0 || length == 0 ? 0 : (count - 1) * lead + length;
}
inline std::int64_t matrix(blas::Layout layout, std::int64_t rows, std::int64_t columns, std::int64_t lead) {
  return layout == blas::Layout::row_major ? lines(rows, lead, columns) : lines(columns, lead, rows);
}
inline std::int64_t matrix(blas::Layout layout, blas::Op op, std::int64_t rows, std::int64_t columns, std::int64_t lead) {
  const bool plain = op == blas::Op::none || op == blas::Op::conj;
  return plain ? matrix(layout, rows, columns, lead) : matrix(layout, columns, rows, lead);
}
inline std::int64_t packed(std::int64_t n) {
  return n * (n + 1) / 2;
}
/// A matrix of order n: packed (lead 0), banded with k off-diagonals, or full.
inline std::int64_t square(blas::Routine routine, std::int64_t n, std::int64_t k, std::int64_t lead) {
  using blas::Routine;
  switch (routine) {
    case Routine::spmv:
    case Routine::hpmv:
    case Routine::tpmv:
    case Routine::tpsv:
    case Routine::spr:
    case Routine::hpr:
    case Routine::spr2:
    case Routine::hpr2:
      return packed(n);
    case Routine::sbmv:
    case Routine::hbmv:
    case Routine::tbmv:
    case Routine::tbsv:
      return lines(n, lead, k + 1);
    default:
      return lines(n, lead, n);
  }
}

// One overload for each signature class of the reference BLAS.
template <class T>
void carry(Carrier&, blas::Routine, blas::arguments::rotg<T>&) {}  // all arguments are scalars
template <class T>
void carry(Carrier&, blas::Routine, blas::arguments::rotmg<T>&) {}
template <class T>
void carry(Carrier& carrier, blas::Routine, blas::arguments::rot<T>& p) {
  carrier.inout(p.x, vector(p.n, p.incx));
  carrier.inout(p.y, vector(p.n, p.incy));
}
template <class T>
void carry(Carrier& carrier, blas::Routine, blas::arguments::rotm<T>& p) {
  carrier.inout(p.x, vector(p.n, p.incx));
  carrier.inout(p.y, vector(p.n, p.incy));
}
template <class T>
void carry(Carrier& carrier, blas::Routine routine, blas::arguments::xy<T>& p) {
  if (routine == blas::Routine::swap) {
    carrier.inout(p.x, vector(p.n, p.incx));
    carrier.inout(p.y, vector(p.n, p.incy));
  } else {
    const T* x = p.x;
    carrier.in(x, vector(p.n, p.incx));
    p.x = const_cast<T*>(x);  // copy reads it
    std::abs(p.incy) == 1 ? carrier.out(p.y, p.n) : carrier.inout(p.y, vector(p.n, p.incy));
  }
}
template <class T>
void carry(Carrier& carrier, blas::Routine, blas::arguments::scal<T>& p) {
  carrier.inout(p.x, vector(p.n, p.incx));
}
template <class T>
void carry(Carrier& carrier, blas::Routine, blas::arguments::axpy<T>& p) {
  carrier.in(p.x, vector(p.n, p.incx));
  carrier.inout(p.y, vector(p.n, p.incy));
}
template <class T>
void carry(Carrier& carrier, blas::Routine, blas::arguments::dot<T>& p) {
  carrier.in(p.x, vector(p.n, p.incx));
  carrier.in(p.y, vector(p.n, p.incy));
}
template <class T>
void carry(Carrier& carrier, blas::Routine, blas::arguments::reduce<T>& p) {
  carrier.in(p.x, vector(p.n, p.incx));
}
template <class T>
void carry(Carrier& carrier, blas::Routine routine, blas::arguments::gemv<T>& p) {
  const bool plain = p.trans == blas::Op::none || p.trans == blas::Op::conj;
  const std::int64_t band = p.kl + p.ku + 1;
  carrier.in(p.a, routine == blas::Routine::gemv ? matrix(p.layout, p.m, p.n, p.lda)
                                                 : lines(p.layout == blas::Layout::row_major ? p.m : p.n, p.lda, band));
  carrier.in(p.x, vector(plain ? p.n : p.m, p.incx));
  carrier.inout(p.y, vector(plain ? p.m : p.n, p.incy));
}
template <class T>
void carry(Carrier& carrier, blas::Routine routine, blas::arguments::symv<T>& p) {
  carrier.in(p.a, square(routine, p.n, p.k, p.lda));
  carrier.in(p.x, vector(p.n, p.incx));
  carrier.inout(p.y, vector(p.n, p.incy));
}
template <class T>
void carry(Carrier& carrier, blas::Routine routine, blas::arguments::trmv<T>& p) {
  carrier.in(p.a, square(routine, p.n, p.k, p.lda));
  carrier.inout(p.x, vector(p.n, p.incx));
}
template <class T>
void carry(Carrier& carrier, blas::Routine, blas::arguments::ger<T>& p) {
  carrier.in(p.x, vector(p.m, p.incx));
  carrier.in(p.y, vector(p.n, p.incy));
  carrier.inout(p.a, matrix(p.layout, p.m, p.n, p.lda));
}
template <class T>
void carry(Carrier& carrier, blas::Routine routine, blas::arguments::syr<T>& p) {
  carrier.in(p.x, vector(p.n, p.incx));
  carrier.in(p.y, vector(p.n, p.incy));
  carrier.inout(p.a, square(routine, p.n, 0, p.lda));
}
template <class T>
void carry(Carrier& carrier, blas::Routine, blas::arguments::gemm<T>& p) {
  carrier.in(p.a, matrix(p.layout, p.trans_a, p.m, p.k, p.lda));
  carrier.in(p.b, matrix(p.layout, p.trans_b, p.k, p.n, p.ldb));
  const bool gaps = p.ldc != (p.layout == blas::Layout::row_major ? p.n : p.m);
  const bool fresh = !gaps && !blas::may_differ(p.beta, T(0));
  fresh ? carrier.out(p.c, p.m * p.n) : carrier.inout(p.c, matrix(p.layout, p.m, p.n, p.ldc));
}
template <class T>
void carry(Carrier& carrier, blas::Routine, blas::arguments::symm<T>& p) {
  const std::int64_t order = p.side == blas::Side::left ? p.m : p.n;
  carrier.in(p.a, matrix(p.layout, order, order, p.lda));
  carrier.in(p.b, matrix(p.layout, p.m, p.n, p.ldb));
  carrier.inout(p.c, matrix(p.layout, p.m, p.n, p.ldc));
}
template <class T>
void carry(Carrier& carrier, blas::Routine, blas::arguments::syrk<T>& p) {
  carrier.in(p.a, matrix(p.layout, p.trans, p.n, p.k, p.lda));
  carrier.in(p.b, matrix(p.layout, p.trans, p.n, p.k, p.ldb));
  carrier.inout(p.c, matrix(p.layout, p.n, p.n, p.ldc));
}
template <class T>
void carry(Carrier& carrier, blas::Routine, blas::arguments::trmm<T>& p) {
  const std::int64_t order = p.side == blas::Side::left ? p.m : p.n;
  carrier.in(p.a, matrix(p.layout, order, order, p.lda));
  carrier.inout(p.b, matrix(p.layout, p.m, p.n, p.ldb));
}

/// Checks before it copies: sizes and leading dimensions that are wrong would have it read where nothing is.
template <class Arguments>
[[gnu::noinline]] void call_with_copies(const Place& here, blas::Routine routine, void (*function)(const blas::Queue&, const Arguments&),
                                        const Arguments& given) {
  if (!blas::validate(routine, given)) return;
  Carrier carrier(here.device);
  Arguments copies = given;
  carry(carrier, routine, copies);
  function(here.queue, copies);
  here.queue.synchronize();
  carrier.copy_back();
}

}  // namespace tenon::shim
