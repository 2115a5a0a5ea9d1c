// ops/binary.cpp - add, sub, mul, div with NumPy broadcasting, in vectors.
#include "instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/binary.cpp"
#include <hwy/foreach_target.h>

#include "simd.h"
#include "walk.h"

#ifndef TENON_OPENBLAS_BINARY_OPS
#define TENON_OPENBLAS_BINARY_OPS
namespace tenon::openblas {
namespace {
enum class BinaryOp { add, sub, mul, div };
}  // namespace
}  // namespace tenon::openblas
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

struct Add {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::Add(a, b);
  }
};
struct Sub {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::Sub(a, b);
  }
};
struct Mul {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::Mul(a, b);
  }
};
struct Div {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::Div(a, b);
  }
};

/// x -> op(x, b) and x -> op(a, x) for one element b or a.
template <class Op, class T>
struct WithRight {
  T b;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return Op{}(d, x, hn::Set(d, b));
  }
};
template <class Op, class T>
struct WithLeft {
  T a;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return Op{}(d, hn::Set(d, a), x);
  }
};

template <class Op, class T>
void run(const Stretch<T, 2>& s, T* y, std::int64_t n) {
  if (s.scalars == 1) return map(WithLeft<Op, T>{*s.x[0]}, s.x[1], y, n);
  if (s.scalars == 2) return map(WithRight<Op, T>{*s.x[1]}, s.x[0], y, n);
  map(Op{}, s.x[0], s.x[1], y, n);
}

template <class T>
void run(BinaryOp op, const Stretch<T, 2>& s, T* y, std::int64_t n) {
  switch (op) {
    case BinaryOp::add:
      return run<Add>(s, y, n);
    case BinaryOp::sub:
      return run<Sub>(s, y, n);
    case BinaryOp::mul:
      return run<Mul>(s, y, n);
    case BinaryOp::div:
      return run<Div>(s, y, n);
  }
}

}  // namespace

void binary_f32(BinaryOp op, const Stretch<float, 2>& s, float* y, std::int64_t n) {
  run(op, s, y, n);
}
void binary_f64(BinaryOp op, const Stretch<double, 2>& s, double* y, std::int64_t n) {
  run(op, s, y, n);
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {
namespace {

// Elements worth a thread of their own: about 20 us from the second cache.
constexpr std::int64_t grain = 128 * 1024;

void run(BinaryOp op, const Stretch<float, 2>& s, float* y, std::int64_t n) {
  TENON_BEST(binary_f32)(op, s, y, n);
}
void run(BinaryOp op, const Stretch<double, 2>& s, double* y, std::int64_t n) {
  TENON_BEST(binary_f64)(op, s, y, n);
}

template <class T>
void two_operands(const sdk::Call& call, BinaryOp op) {
  elementwise<T, T, 2>(call, grain, 0b11, [op](const Stretch<T, 2>& s, T* y, std::int64_t n) { run(op, s, y, n); });
}

/// y = a + b
template <class T>
void add(const sdk::Call& call) {
  two_operands<T>(call, BinaryOp::add);
}

/// y = a - b
template <class T>
void sub(const sdk::Call& call) {
  two_operands<T>(call, BinaryOp::sub);
}

/// y = a b, elementwise
template <class T>
void mul(const sdk::Call& call) {
  two_operands<T>(call, BinaryOp::mul);
}

/// y = a / b, as IEEE 754 has it
template <class T>
void div(const sdk::Call& call) {
  two_operands<T>(call, BinaryOp::div);
}

constexpr sdk::Traits traits{.strided = true, .in_place = true};

}  // namespace

TENON_KERNEL_WITH(add, traits, float, double)
TENON_KERNEL_WITH(sub, traits, float, double)
TENON_KERNEL_WITH(mul, traits, float, double)
TENON_KERNEL_WITH(div, traits, float, double)

}  // namespace tenon::openblas
#endif
