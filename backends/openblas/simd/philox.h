// SPDX-License-Identifier: Apache-2.0
// philox.h - the random bits of <tenon/sdk/random.h>, bit for bit, computed many blocks at a time, for one instruction set.
#if defined(TENON_OPENBLAS_PHILOX_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_OPENBLAS_PHILOX_H
#undef TENON_OPENBLAS_PHILOX_H
#else
#define TENON_OPENBLAS_PHILOX_H
#endif

#include <cstdint>

#include "simd/simd.h"

#include <tenon/sdk/random.h>

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {

// Blocks generated at a time: their 4 KiB stay in L1.
constexpr std::int64_t philox_blocks = 256;
constexpr std::int64_t philox_words = 4 * philox_blocks;

/// Writes the lanes of `count` blocks from `first` on to `words`: at least 4 * count of them, count <= philox_blocks. `words` is aligned to
/// 64 bytes.
HWY_INLINE void philox_lanes(const sdk::random::Source& source, std::int64_t first, std::int64_t count, std::uint32_t* words) {
#if HWY_TARGET == HWY_SCALAR
  for (std::int64_t b = 0; b < count; ++b) {
    const sdk::random::Lanes lanes = sdk::random::lanes_of(source, first + b);
    for (int j = 0; j < 4; ++j) words[4 * b + j] = lanes.x[j];
  }
#else
  // One block per 64-bit lane. Only the lower halves matter: the multiplication ignores the upper ones, which are masked off at the end.
  const Wide<std::uint64_t> d;
  const hn::Repartition<std::uint32_t, decltype(d)> halves;
  const auto multiply = [d, halves](auto c, std::uint64_t by)
                            HWY_ATTR { return hn::MulEven(hn::BitCast(halves, c), hn::BitCast(halves, hn::Set(d, by))); };
  for (std::int64_t b = 0; b < count; b += lanes(d)) {
    const auto block = hn::Add(hn::Iota(d, 0), hn::Set(d, static_cast<std::uint64_t>(first + b)));
    auto c0 = block;
    auto c1 = hn::ShiftRight<32>(block);
    auto c2 = hn::Set(d, source.stream);
    auto c3 = hn::Set(d, source.step);
    auto k0 = static_cast<std::uint32_t>(source.seed);
    auto k1 = static_cast<std::uint32_t>(source.seed >> 32);
    for (int round = 0; round < 10; ++round) {
      const auto p0 = multiply(c0, 0xD2511F53u);
      const auto p1 = multiply(c2, 0xCD9E8D57u);
      c0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p1), c1), hn::Set(d, k0));
      c1 = p1;
      c2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p0), c3), hn::Set(d, k1));
      c3 = p0;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    const auto low = hn::Set(d, 0xFFFFFFFFu);
    const auto pair0 = hn::Or(hn::And(c0, low), hn::ShiftLeft<32>(c1));
    const auto pair1 = hn::Or(hn::And(c2, low), hn::ShiftLeft<32>(c3));
    // The lower half of a pair is the first word: this code needs a little-endian machine, as all of Highway's targets are.
    hn::StoreInterleaved2(pair0, pair1, d, reinterpret_cast<std::uint64_t*>(words) + 2 * b);
  }
#endif
}

/// Calls body(words, offset, n) for elements [begin + offset, begin + offset + n), piece by piece up to end. `words` has `per_element`
/// lanes (1 or 2) for each element. begin is a multiple of 4.
template <class Body>
HWY_INLINE void for_each_lanes(const sdk::random::Source& source, std::int64_t begin, std::int64_t end, std::int64_t per_element,
                               const Body& body) {
  alignas(64) std::uint32_t words[philox_words];
  const std::int64_t step = philox_words / per_element;
  for (std::int64_t at = begin; at < end; at += step) {
    const std::int64_t n = HWY_MIN(step, end - at);
    philox_lanes(source, at * per_element / 4, (n * per_element + 3) / 4, words);
    body(words, at - begin, n);
  }
}

/// The mask of lanes in which a Bernoulli variable with this threshold is 1, for elements of T.
template <class T>
HWY_INLINE hn::Mask<Wide<T>> ones_of(const std::uint32_t* words, std::uint64_t threshold) {
  const Wide<T> d;
  if constexpr (sizeof(T) == 4) {
    const hn::RebindToUnsigned<Wide<T>> bits;
    if (threshold > 0xFFFFFFFFu) return hn::Eq(hn::Zero(d), hn::Zero(d));  // always 1
    return hn::RebindMask(d, hn::Lt(hn::LoadU(bits, words), hn::Set(bits, static_cast<std::uint32_t>(threshold))));
  } else {
    const hn::Rebind<std::int64_t, Wide<T>> bits;
    const hn::Rebind<std::uint32_t, Wide<T>> narrow;
    const hn::Rebind<std::uint64_t, Wide<T>> wide;
    const auto lane = hn::BitCast(bits, hn::PromoteTo(wide, hn::LoadU(narrow, words)));
    return hn::RebindMask(d, hn::Lt(lane, hn::Set(bits, static_cast<std::int64_t>(threshold))));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();
#endif
