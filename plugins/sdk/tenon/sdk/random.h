// SPDX-License-Identifier: Apache-2.0
// tenon/sdk/random.h - random numbers with the same bits on every backend, machine and thread
// count: specification and code.
//
// Bits      Philox4x32-10 turns a counter (4 x u32) and a key (2 x u32) into a block of four 32-bit lanes x0..x3:
//             key     = (low32(seed), high32(seed))
//             counter = (low32(block), high32(block), stream, low32(step))
//           The key operand is u64[2] = {seed, step}. Element i of a tensor counts in row-major order.
// Uniform   f32: block i / 4, lane i % 4;           u = (x >> 8) * 2^-24.
//           f64: block i / 2, lanes 2j and 2j + 1 with j = i % 2;  u = (((x[2j+1] << 32) | x[2j]) >> 11) * 2^-53.
//           y = low + (high - low) * u, every operation in the output's type T, low and high rounded to T first. u < 1, yet the last
//           addition may round up to high.
// Bernoulli block i / 4, lane i % 4, whatever T is: y = 1 if x < floor(p * 2^32 + 1/2), compared as u64, else 0.
// Normal    block i / 4, whatever T is: lanes (0, 1) give elements 4b (cosine) and 4b + 1 (sine), lanes (2, 3) give 4b + 2 and 4b + 3.
//           Box-Muller in f64: u1 = (x_even + 1/2) * 2^-32, u2 = (x_odd + 1/2) * 2^-32,
//             z = sqrt(-2 log u1) * (cos, sin)(2 pi u2),  y = fma(deviation, z, mean), rounded to T.
//           log, cos and sin are the polynomials below, so the bits depend only on IEEE +, -, *, /, sqrt and fma.
//           A device that does not compute with f64 may differ from that y by 2^-16 (|mean| + |deviation|), before the rounding to T.
// Permute   word i = (x[2j+1] << 32) | x[2j] of block i / 2, j = i % 2: the 64 bits of which a uniform f64 takes the upper 53.
//           y = 0 .. n-1 in ascending order of (word i, i), words compared as u64.
// Dropout   drop = Bernoulli(p); y = drop ? 0 : x * T(1 / (1 - p)), the scale computed in f64 and rounded to T.
//
// Compile with contraction off (-ffp-contract=off; nvcc: --fmad=false): a fused multiply-add is
// written here, never inferred.
// Source: Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3 (2011).
// Box, Muller (1958).
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#define TENON_RANDOM_INLINE __host__ __device__ inline
#else
#define TENON_RANDOM_INLINE inline
#endif

namespace tenon::sdk::random {

struct Counter {
  std::uint32_t word[4];
};
struct Key {
  std::uint32_t word[2];
};
/// The 128 bits of one block.
struct Lanes {
  std::uint32_t x[4];
};

/// Philox4x32-10: ten rounds of two 32 x 32 -> 64 bit products, the key advanced by the golden
/// ratio and sqrt(3) - 1 between them.
TENON_RANDOM_INLINE Lanes philox(const Counter& counter, const Key& key) {
  std::uint32_t c0 = counter.word[0], c1 = counter.word[1], c2 = counter.word[2], c3 = counter.word[3];
  std::uint32_t k0 = key.word[0], k1 = key.word[1];
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c0;
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * c2;
    c0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<std::uint32_t>(p1);
    c2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<std::uint32_t>(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

/// The source of a consumer's bits: one key {seed, step}, one stream per consumer.
struct Source {
  std::uint64_t seed;
  std::uint64_t step;
  std::uint32_t stream;
};

TENON_RANDOM_INLINE Lanes lanes_of(const Source& source, std::int64_t block) {
  const auto b = static_cast<std::uint64_t>(block);
  return philox(
      {{static_cast<std::uint32_t>(b), static_cast<std::uint32_t>(b >> 32), source.stream, static_cast<std::uint32_t>(source.step)}},
      {{static_cast<std::uint32_t>(source.seed), static_cast<std::uint32_t>(source.seed >> 32)}});
}

/// Uniform elements of T per block: 4 f32, 2 f64. Bernoulli and normal have 4 for every type.
template <class T>
inline constexpr std::int64_t uniforms_per_block = sizeof(T) == 4 ? 4 : 2;

/// Element j of a block's uniforms in [0, 1), as f32 (j < 4).
TENON_RANDOM_INLINE float unit_f32(const Lanes& lanes, std::int64_t j) {
  return static_cast<float>(lanes.x[j] >> 8) * 0x1p-24f;
}
/// 64-bit word j of a block (j < 2).
TENON_RANDOM_INLINE std::uint64_t word(const Lanes& lanes, std::int64_t j) {
  return std::uint64_t{lanes.x[2 * j + 1]} << 32 | lanes.x[2 * j];
}
/// Word i of a source: the sort key of element i of a permutation.
TENON_RANDOM_INLINE std::uint64_t word_of(const Source& source, std::int64_t i) {
  return word(lanes_of(source, i / 2), i % 2);
}

/// Element j of a block's uniforms as f64 (j < 2).
TENON_RANDOM_INLINE double unit_f64(const Lanes& lanes, std::int64_t j) {
  return static_cast<double>(word(lanes, j) >> 11) * 0x1p-53;
}

template <class T>
TENON_RANDOM_INLINE T uniform(const Lanes& lanes, std::int64_t j, T low, T high) {
  if constexpr (sizeof(T) == 4) {
    return low + (high - low) * unit_f32(lanes, j);
  } else {
    return low + (high - low) * unit_f64(lanes, j);
  }
}

/// A lane below this threshold is a one, with probability p, 0 <= p <= 1.
TENON_RANDOM_INLINE std::uint64_t bernoulli_threshold(double p) {
  return static_cast<std::uint64_t>(p * 0x1p32 + 0.5);
}
TENON_RANDOM_INLINE bool bernoulli(const Lanes& lanes, std::int64_t j, std::uint64_t threshold) {
  return lanes.x[j] < threshold;
}

/// log u for a normal u > 0, within 2 ulp: u = 2^e m with m in [sqrt(1/2), sqrt(2)),
/// log m = 2 atanh((m - 1) / (m + 1)).
TENON_RANDOM_INLINE double log_fixed(double u) {
  std::uint64_t bits;
  std::memcpy(&bits, &u, sizeof bits);
  // Adding the difference between the bits of 1 and sqrt(1/2) carries into the exponent exactly
  // when the mantissa is above sqrt(2).
  bits += 0x3FF0000000000000u - 0x3FE6A09E667F3BCDu;
  const double e = static_cast<double>(static_cast<std::int64_t>(bits >> 52) - 1023);
  bits = (bits & 0x000FFFFFFFFFFFFFu) + 0x3FE6A09E667F3BCDu;
  double m;
  std::memcpy(&m, &bits, sizeof m);

  const double s = (m - 1.0) / (m + 1.0);  // |s| < 0.1716: the first term left out, s^24 / 25, is below 2e-20
  const double t = s * s;
  double p = 1.0 / 23.0;
  p = std::fma(p, t, 1.0 / 21.0);
  p = std::fma(p, t, 1.0 / 19.0);
  p = std::fma(p, t, 1.0 / 17.0);
  p = std::fma(p, t, 1.0 / 15.0);
  p = std::fma(p, t, 1.0 / 13.0);
  p = std::fma(p, t, 1.0 / 11.0);
  p = std::fma(p, t, 1.0 / 9.0);
  p = std::fma(p, t, 1.0 / 7.0);
  p = std::fma(p, t, 1.0 / 5.0);
  p = std::fma(p, t, 1.0 / 3.0);
  const double log_m = std::fma(2.0 * s * t, p, 2.0 * s);
  // ln 2 in two parts, so that its own rounding is not multiplied by e.
  return std::fma(e, 0x1.62e42feep-1, std::fma(e, 0x1.a39ef35793c76p-33, log_m));
}

struct Point {
  double cosine, sine;
};

/// cos and sin of 2 pi (x + 1/2) / 2^32: the angle's distance to the next quarter turn is exact in
/// integers and at most pi / 4.
TENON_RANDOM_INLINE Point on_circle(std::uint32_t x) {
  const std::uint64_t quarter = (std::uint64_t{x} + (1u << 29)) >> 30;
  const std::int64_t rest = static_cast<std::int64_t>(2 * std::uint64_t{x} + 1) - static_cast<std::int64_t>(quarter << 31);
  const double a = static_cast<double>(rest) * 0x1p-33 * 6.283185307179586;
  const double t = a * a;
  double s = 1.0 / 355687428096000.0;  // 1 / 17!; the first term left out is below 2e-19 of the result, for the cosine 3e-18
  s = std::fma(s, t, -1.0 / 1307674368000.0);
  s = std::fma(s, t, 1.0 / 6227020800.0);
  s = std::fma(s, t, -1.0 / 39916800.0);
  s = std::fma(s, t, 1.0 / 362880.0);
  s = std::fma(s, t, -1.0 / 5040.0);
  s = std::fma(s, t, 1.0 / 120.0);
  s = std::fma(s, t, -1.0 / 6.0);
  s = std::fma(s * t, a, a);
  double c = 1.0 / 20922789888000.0;  // 1 / 16!
  c = std::fma(c, t, -1.0 / 87178291200.0);
  c = std::fma(c, t, 1.0 / 479001600.0);
  c = std::fma(c, t, -1.0 / 3628800.0);
  c = std::fma(c, t, 1.0 / 40320.0);
  c = std::fma(c, t, -1.0 / 720.0);
  c = std::fma(c, t, 1.0 / 24.0);
  c = std::fma(c, t, -0.5);
  c = std::fma(c, t, 1.0);
  const bool swapped = (quarter & 1) != 0;
  const double cosine = swapped ? s : c;
  const double sine = swapped ? c : s;
  return {quarter == 1 || quarter == 2 ? -cosine : cosine, quarter == 2 || quarter == 3 ? -sine : sine};
}

/// Two independent standard normals from two lanes.
TENON_RANDOM_INLINE Point box_muller(std::uint32_t x_even, std::uint32_t x_odd) {
  const double u1 = (static_cast<double>(x_even) + 0.5) * 0x1p-32;
  const double radius = std::sqrt(-2.0 * log_fixed(u1));
  const Point p = on_circle(x_odd);
  return {radius * p.cosine, radius * p.sine};
}

/// The four standard normals of a block.
struct Normals {
  double z[4];
};
TENON_RANDOM_INLINE Normals normals(const Lanes& lanes) {
  const Point a = box_muller(lanes.x[0], lanes.x[1]);
  const Point b = box_muller(lanes.x[2], lanes.x[3]);
  return {{a.cosine, a.sine, b.cosine, b.sine}};
}

/// -log u for the u = (x + 1/2) 2^-32 of a lane, in f32: from 1 - u above 1/2, where u itself is too
/// close to 1 for an f32.
TENON_RANDOM_INLINE float minus_log_f32(std::uint32_t x) {
  const bool upper = x >= 0x80000000u;
  const float distance = (static_cast<float>(upper ? ~x : x) + 0.5f) * 0x1p-32f;
  return upper ? -std::log1p(-distance) : -std::log(distance);
}

/// The four standard normals of a block without f64, within 2^-16 of `normals`: for devices that do
/// not compute with f64.
struct NormalsF32 {
  float z[4];
};
TENON_RANDOM_INLINE NormalsF32 normals_f32(const Lanes& lanes) {
  NormalsF32 result;
  for (int i = 0; i < 4; i += 2) {
    const float radius = std::sqrt(2.0f * minus_log_f32(lanes.x[i]));
    const auto turn = static_cast<std::int32_t>(lanes.x[i + 1]);  // of 2^32, in [-1/2, 1/2)
    const float angle = (static_cast<float>(turn) + 0.5f) * 0x1p-32f * 6.2831853f;
    result.z[i] = radius * std::cos(angle);
    result.z[i + 1] = radius * std::sin(angle);
  }
  return result;
}

// Ranges: y points at element `begin`, elements [begin, end) are written. A range may begin and end
// inside a block, so a tensor split into any pieces has the same bits as the whole.

namespace detail {
/// body(block, from, to): the pieces of [begin, end) that lie in one block, as elements of that
/// block.
template <std::int64_t per_block, class Body>
void for_each_block(std::int64_t begin, std::int64_t end, Body&& body) {
  while (begin < end) {
    const std::int64_t block = begin / per_block;
    const std::int64_t first = block * per_block;
    const std::int64_t stop = end < first + per_block ? end : first + per_block;
    body(block, begin - first, stop - first);
    begin = stop;
  }
}
}  // namespace detail

template <class T>
void fill_uniform(T* y, std::int64_t begin, std::int64_t end, const Source& source, double low, double high) {
  const T lo = static_cast<T>(low), hi = static_cast<T>(high);
  detail::for_each_block<uniforms_per_block<T>>(begin, end, [&](std::int64_t block, std::int64_t from, std::int64_t to) {
    const Lanes lanes = lanes_of(source, block);
    for (std::int64_t j = from; j < to; ++j) *y++ = uniform(lanes, j, lo, hi);
  });
}

template <class T>
void fill_normal(T* y, std::int64_t begin, std::int64_t end, const Source& source, double mean, double deviation) {
  detail::for_each_block<4>(begin, end, [&](std::int64_t block, std::int64_t from, std::int64_t to) {
    const Normals n = normals(lanes_of(source, block));
    for (std::int64_t j = from; j < to; ++j) *y++ = static_cast<T>(std::fma(deviation, n.z[j], mean));
  });
}

template <class T>
void fill_bernoulli(T* y, std::int64_t begin, std::int64_t end, const Source& source, double p) {
  const std::uint64_t threshold = bernoulli_threshold(p);
  detail::for_each_block<4>(begin, end, [&](std::int64_t block, std::int64_t from, std::int64_t to) {
    const Lanes lanes = lanes_of(source, block);
    for (std::int64_t j = from; j < to; ++j) *y++ = bernoulli(lanes, j, threshold) ? T(1) : T(0);
  });
}

/// The factor of kept elements, 0 <= p < 1.
template <class T>
TENON_RANDOM_INLINE T dropout_scale(double p) {
  return static_cast<T>(1.0 / (1.0 - p));
}

/// x points at element `begin` too; y may be x.
template <class T>
void dropout(const T* x, T* y, std::int64_t begin, std::int64_t end, const Source& source, double p) {
  const std::uint64_t threshold = bernoulli_threshold(p);
  const T scale = dropout_scale<T>(p);
  detail::for_each_block<4>(begin, end, [&](std::int64_t block, std::int64_t from, std::int64_t to) {
    const Lanes lanes = lanes_of(source, block);
    for (std::int64_t j = from; j < to; ++j, ++x, ++y) *y = bernoulli(lanes, j, threshold) ? T(0) : *x * scale;
  });
}

}  // namespace tenon::sdk::random
