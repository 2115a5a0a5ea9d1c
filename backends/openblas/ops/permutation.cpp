// SPDX-License-Identifier: Apache-2.0
// ops/permutation.cpp - random permutations: indices sorted by the words of <tenon/sdk/random.h>, equal on every backend.
#include "simd/foreach_target.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "simd/philox.h"

#include <tenon/sdk/kernel.h>

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

/// out[i] = the word of index begin + i, for words [begin, end); begin is a multiple of 4.
void random_words(const sdk::random::Source& source, std::int64_t begin, std::int64_t end, std::uint64_t* out) {
  for_each_lanes(source, begin, end, 2, [&](const std::uint32_t* lanes, std::int64_t offset, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) out[offset + i] = std::uint64_t{lanes[2 * i + 1]} << 32 | lanes[2 * i];
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {
namespace {

/// An element's random word and index.
using KeyedIndex = std::pair<std::uint64_t, std::int64_t>;

// Words worth a thread, for generating and for sorting.
constexpr std::int64_t grain = 8 * 1024;
// The average number of elements of a bucket. Words are uniform, so buckets by their leading bits have about equal sizes.
constexpr std::int64_t bucket_size = 64;

/// Elements are distributed into buckets by the leading bits of their words, and each bucket is sorted, which sorts all elements.
struct Buckets {
  explicit Buckets(std::int64_t n) : bits(static_cast<int>(std::bit_width(static_cast<std::uint64_t>(n / bucket_size)))) {}
  std::int64_t count() const { return std::int64_t{1} << bits; }
  std::int64_t of(std::uint64_t word) const { return bits == 0 ? 0 : static_cast<std::int64_t>(word >> (64 - bits)); }
  int bits;
};

/// y = 0 .. n-1 in ascending order of (word i, i)
template <class T>
void random_permutation(const sdk::Call& call) {
  const std::uint64_t* const key = call.input<std::uint64_t>(0);
  const sdk::random::Source source{key[0], key[1], call.attr<tenon_attributes_random>().stream};
  T* const y = call.output<T>(0);
  const std::int64_t n = call.outputs[0].count;
  if (n == 0) return;
  const Buckets buckets(n);
  KeyedIndex* const keys = static_cast<KeyedIndex*>(call.scratch);
  auto* const words = reinterpret_cast<std::uint64_t*>(keys + n);
  std::int64_t* const ends = reinterpret_cast<std::int64_t*>(words + n);  // buckets + 1 elements

  // generate the words
  call.host.parallel_for((n + 3) / 4, grain / 4, [&](std::int64_t begin, std::int64_t end) {
    TENON_DISPATCH(random_words)(source, 4 * begin, std::min(4 * end, n), words + 4 * begin);
  });
  // distribute the elements into buckets
  std::fill_n(ends, buckets.count() + 1, 0);
  for (std::int64_t i = 0; i < n; ++i) ++ends[buckets.of(words[i]) + 1];
  for (std::int64_t b = 0; b < buckets.count(); ++b) ends[b + 1] += ends[b];
  // ends[b] is now the beginning of bucket b; it advances with each insertion and is finally the bucket's end.
  for (std::int64_t i = 0; i < n; ++i) keys[ends[buckets.of(words[i])]++] = {words[i], i};
  // sort the buckets
  call.host.parallel_for(buckets.count(), grain / bucket_size, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) {
      const std::int64_t first = b == 0 ? 0 : ends[b - 1];
      std::sort(keys + first, keys + ends[b]);
      for (std::int64_t i = first; i < ends[b]; ++i) y[i] = keys[i].second;
    }
  });
}

std::size_t scratch(const sdk::Call& call) {
  const std::int64_t n = call.outputs[0].count;
  return static_cast<std::size_t>(n) * (sizeof(KeyedIndex) + sizeof(std::uint64_t)) +
         static_cast<std::size_t>(Buckets(n).count() + 1) * sizeof(std::int64_t);
}

}  // namespace

TENON_KERNEL_WITH(random_permutation, (sdk::Traits{.scratch = scratch}), std::int64_t)

}  // namespace tenon::openblas
#endif
