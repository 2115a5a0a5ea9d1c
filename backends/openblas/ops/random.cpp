// SPDX-License-Identifier: Apache-2.0
// ops/random.cpp - vectorised random tensors with the bits of <tenon/sdk/random.h>.
#include "simd/foreach_target.h"

#include <algorithm>

#include "simd/philox.h"

#include <tenon/sdk/kernel.h>

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

template <class V, class D, class T>
HWY_INLINE void put(V v, D d, T* y, std::int64_t n) {
  if (n < lanes(d)) {
    store_first(v, d, y, n);
  } else {
    hn::StoreU(v, d, y);
  }
}

/// y = low + (high - low) u; each operation is rounded, because contraction would change bits.
template <class T>
void uniform(T* y, std::int64_t begin, std::int64_t end, const sdk::random::Source& source, double a, double b) {
  const Wide<T> d;
  const auto low = hn::Set(d, static_cast<T>(a));
  const auto range = hn::Sub(hn::Set(d, static_cast<T>(b)), low);
  for_each_lanes(source, begin, end, sizeof(T) / 4, [&](const std::uint32_t* words, std::int64_t offset, std::int64_t n) HWY_ATTR {
    const hn::RebindToSigned<Wide<T>> integers;
    const hn::RebindToUnsigned<Wide<T>> bits;
    for (std::int64_t i = 0; i < n; i += lanes(d)) {
      const auto lane = hn::LoadU(bits, reinterpret_cast<const hwy::MakeUnsigned<T>*>(words) + i);
      const auto u = hn::ConvertTo(d, hn::BitCast(integers, hn::ShiftRight < sizeof(T) == 4 ? 8 : 11 > (lane)));
      const auto unit = hn::Mul(u, hn::Set(d, static_cast<T>(sizeof(T) == 4 ? 0x1p-24 : 0x1p-53)));
      put(hn::Add(low, hn::Mul(range, unit)), d, y + offset + i, n - i);
    }
  });
}

template <class T>
void bernoulli(T* y, std::int64_t begin, std::int64_t end, const sdk::random::Source& source, double p, double) {
  const Wide<T> d;
  const std::uint64_t threshold = sdk::random::bernoulli_threshold(p);
  for_each_lanes(source, begin, end, 1, [&](const std::uint32_t* words, std::int64_t offset, std::int64_t n) HWY_ATTR {
    for (std::int64_t i = 0; i < n; i += lanes(d)) {
      put(hn::IfThenElseZero(ones_of<T>(words + i, threshold), hn::Set(d, 1)), d, y + offset + i, n - i);
    }
  });
}

// The specification of the normal distribution's polynomials uses fused multiply-adds, which the other targets lack.
#if TENON_MASKED_MEMORY

using Doubles = Wide<double>;
using DoubleVector = hn::Vec<Doubles>;

/// ((c0 t + c1) t + c2) ...
HWY_INLINE DoubleVector polynomial(DoubleVector t, std::initializer_list<double> coefficients) {
  const Doubles d;
  auto c = coefficients.begin();
  auto p = hn::Set(d, *c);
  while (++c != coefficients.end()) p = hn::MulAdd(p, t, hn::Set(d, *c));
  return p;
}

/// sdk::random::log_fixed
HWY_INLINE DoubleVector log_fixed(DoubleVector u) {
  const Doubles d;
  const hn::RebindToUnsigned<Doubles> words;
  const hn::RebindToSigned<Doubles> integers;
  auto bits = hn::Add(hn::BitCast(words, u), hn::Set(words, 0x3FF0000000000000u - 0x3FE6A09E667F3BCDu));
  const auto e = hn::ConvertTo(d, hn::Sub(hn::BitCast(integers, hn::ShiftRight<52>(bits)), hn::Set(integers, 1023)));
  bits = hn::Add(hn::And(bits, hn::Set(words, 0x000FFFFFFFFFFFFFu)), hn::Set(words, 0x3FE6A09E667F3BCDu));
  const auto m = hn::BitCast(d, bits);
  const auto one = hn::Set(d, 1.0);
  const auto two = hn::Set(d, 2.0);
  const auto s = hn::Div(hn::Sub(m, one), hn::Add(m, one));
  const auto t = hn::Mul(s, s);
  const auto p = polynomial(
      t, {1.0 / 23.0, 1.0 / 21.0, 1.0 / 19.0, 1.0 / 17.0, 1.0 / 15.0, 1.0 / 13.0, 1.0 / 11.0, 1.0 / 9.0, 1.0 / 7.0, 1.0 / 5.0, 1.0 / 3.0});
  const auto log_m = hn::MulAdd(hn::Mul(hn::Mul(two, s), t), p, hn::Mul(two, s));
  return hn::MulAdd(e, hn::Set(d, 0x1.62e42feep-1), hn::MulAdd(e, hn::Set(d, 0x1.a39ef35793c76p-33), log_m));
}

/// sdk::random::on_circle of the lanes' lower halves; the upper halves are 0
HWY_INLINE void on_circle(hn::Vec<Wide<std::uint64_t>> x, DoubleVector& out_cosine, DoubleVector& out_sine) {
  const Doubles d;
  const Wide<std::uint64_t> words;
  const Wide<std::int64_t> integers;
  const auto quarter = hn::ShiftRight<30>(hn::Add(x, hn::Set(words, std::uint64_t{1} << 29)));
  const auto doubled = hn::Add(hn::ShiftLeft<1>(x), hn::Set(words, 1));
  const auto rest = hn::ConvertTo(d, hn::BitCast(integers, hn::Sub(doubled, hn::ShiftLeft<31>(quarter))));
  const auto a = hn::Mul(hn::Mul(rest, hn::Set(d, 0x1p-33)), hn::Set(d, 6.283185307179586));
  const auto t = hn::Mul(a, a);
  auto s = polynomial(t, {1.0 / 355687428096000.0, -1.0 / 1307674368000.0, 1.0 / 6227020800.0, -1.0 / 39916800.0, 1.0 / 362880.0,
                          -1.0 / 5040.0, 1.0 / 120.0, -1.0 / 6.0});
  s = hn::MulAdd(hn::Mul(s, t), a, a);
  const auto c = polynomial(t, {1.0 / 20922789888000.0, -1.0 / 87178291200.0, 1.0 / 479001600.0, -1.0 / 3628800.0, 1.0 / 40320.0,
                                -1.0 / 720.0, 1.0 / 24.0, -0.5, 1.0});
  const auto quarter_is = [&](std::uint64_t q) HWY_ATTR { return hn::RebindMask(d, hn::Eq(quarter, hn::Set(words, q))); };
  const auto swapped = hn::Or(quarter_is(1), quarter_is(3));
  const auto cosine = hn::IfThenElse(swapped, s, c);
  const auto sine = hn::IfThenElse(swapped, c, s);
  out_cosine = hn::IfThenElse(hn::Or(quarter_is(1), quarter_is(2)), hn::Neg(cosine), cosine);
  out_sine = hn::IfThenElse(hn::Or(quarter_is(2), quarter_is(3)), hn::Neg(sine), sine);
}

/// sdk::random::fill_normal: each pair of lanes gives two neighbouring elements.
template <class T>
void normal(T* y, std::int64_t begin, std::int64_t end, const sdk::random::Source& source, double mean, double deviation) {
  const Doubles d;
  const Wide<std::uint64_t> words64;
  const hn::Rebind<T, Doubles> narrow;
  const Wide<std::int64_t> integers;
  const auto half = hn::Set(d, 0.5);
  for_each_lanes(source, begin, end, 1, [&](const std::uint32_t* words, std::int64_t offset, std::int64_t n) HWY_ATTR {
    for (std::int64_t i = 0; i < n; i += 2 * lanes(d)) {
      const auto pair = hn::LoadU(words64, reinterpret_cast<const std::uint64_t*>(words) + i / 2);
      const auto x_even = hn::ConvertTo(d, hn::BitCast(integers, hn::And(pair, hn::Set(words64, 0xFFFFFFFFu))));
      const auto u1 = hn::Mul(hn::Add(x_even, half), hn::Set(d, 0x1p-32));
      const auto radius = hn::Sqrt(hn::Mul(hn::Set(d, -2.0), log_fixed(u1)));
      DoubleVector cosine, sine;
      on_circle(hn::ShiftRight<32>(pair), cosine, sine);
      const auto first = hn::MulAdd(hn::Set(d, deviation), hn::Mul(radius, cosine), hn::Set(d, mean));
      const auto second = hn::MulAdd(hn::Set(d, deviation), hn::Mul(radius, sine), hn::Set(d, mean));
      HWY_ALIGN T buffer[2 * HWY_MAX_BYTES / sizeof(double)];
      T* const to = n - i < 2 * lanes(d) ? buffer : y + offset + i;
      if constexpr (sizeof(T) == 4) {
        hn::StoreInterleaved2(hn::DemoteTo(narrow, first), hn::DemoteTo(narrow, second), narrow, to);
      } else {
        hn::StoreInterleaved2(first, second, narrow, to);
      }
      if (to == buffer) std::copy_n(buffer, n - i, y + offset + i);
    }
  });
}

#else

template <class T>
void normal(T* y, std::int64_t begin, std::int64_t end, const sdk::random::Source& source, double mean, double deviation) {
  sdk::random::fill_normal(y, begin, end, source, mean, deviation);
}

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {
namespace {

// Blocks of four elements worth a thread of their own, about 20 us; normals cost several times as much as the others.
constexpr std::int64_t cheap = 8 * 1024;
constexpr std::int64_t costly = 2 * 1024;

/// Calls loop(y, begin, end, source, a, b) for ranges of elements that begin at whole blocks of four.
template <class T>
void fill(const sdk::Call& call, std::int64_t grain,
          void (*loop)(T* y, std::int64_t begin, std::int64_t end, const sdk::random::Source& source, double a, double b)) {
  const auto& attributes = call.attr<tenon_attributes_random>();
  const std::uint64_t* const key = call.input<std::uint64_t>(0);
  const sdk::random::Source source{key[0], key[1], attributes.stream};
  const std::int64_t count = call.outputs[0].count;
  call.host.parallel_for((count + 3) / 4, grain, [&](std::int64_t begin, std::int64_t end) {
    loop(call.output<T>(0) + 4 * begin, 4 * begin, std::min(4 * end, count), source, attributes.a, attributes.b);
  });
}

/// y = low + (high - low) u, u uniform in [0, 1)
template <class T>
void random_uniform(const sdk::Call& call) {
  fill<T>(call, cheap, TENON_DISPATCH(uniform<T>));
}

/// y = mean + deviation z, z standard normal
template <class T>
void random_normal(const sdk::Call& call) {
  fill<T>(call, costly, TENON_DISPATCH(normal<T>));
}

/// y = 1 with probability p, else 0
template <class T>
void random_bernoulli(const sdk::Call& call) {
  fill<T>(call, cheap, TENON_DISPATCH(bernoulli<T>));
}

}  // namespace

TENON_KERNEL(random_uniform, float, double)
TENON_KERNEL(random_normal, float, double)
TENON_KERNEL(random_bernoulli, float, double)

}  // namespace tenon::openblas
#endif
