// ops/permutation.cpp - random orders: numbers sorted by the words of <tenon/sdk/random.h>, the same bits on every backend.
#include "instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/permutation.cpp"
#include <hwy/foreach_target.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "philox.h"

#include <tenon/sdk/kernel.h>

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {

/// out[i] = word begin + i, for words [begin, end); begin is a multiple of 4.
void random_words(const sdk::random::Source& source, std::int64_t begin, std::int64_t end, std::uint64_t* out) {
  for_each_lanes(source, begin, end, 2, [&](const std::uint32_t* lanes, std::int64_t offset, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) out[offset + i] = std::uint64_t{lanes[2 * i + 1]} << 32 | lanes[2 * i];
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {
namespace {

/// An element's random word, and which element it is.
using Draw = std::pair<std::uint64_t, std::int64_t>;

// Words that are made, or sorted, at a time: enough for a thread of their own.
constexpr std::int64_t grain = 8 * 1024;
// Elements that meet in one bucket, on average. Words are uniform, so buckets of their first bits are about as long as one another.
constexpr std::int64_t bucket_size = 64;

/// Draws go into buckets by their first bits, and each bucket is sorted: their order is the order of all.
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
  Draw* const draws = static_cast<Draw*>(call.scratch);
  auto* const words = reinterpret_cast<std::uint64_t*>(draws + n);
  std::int64_t* const ends = reinterpret_cast<std::int64_t*>(words + n);  // one more than there are buckets

  call.host.parallel_for((n + 3) / 4, grain / 4, [&](std::int64_t begin, std::int64_t end) {
    TENON_BEST(random_words)(source, 4 * begin, std::min(4 * end, n), words + 4 * begin);
  });
  std::fill_n(ends, buckets.count() + 1, 0);
  for (std::int64_t i = 0; i < n; ++i) ++ends[buckets.of(words[i]) + 1];
  for (std::int64_t b = 0; b < buckets.count(); ++b) ends[b + 1] += ends[b];
  // Now ends[b] is where bucket b begins; each draw that comes in moves it on, until it is where the bucket ends.
  for (std::int64_t i = 0; i < n; ++i) draws[ends[buckets.of(words[i])]++] = {words[i], i};
  call.host.parallel_for(buckets.count(), grain / bucket_size, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) {
      const std::int64_t first = b == 0 ? 0 : ends[b - 1];
      std::sort(draws + first, draws + ends[b]);
      for (std::int64_t i = first; i < ends[b]; ++i) y[i] = draws[i].second;
    }
  });
}

std::size_t scratch(const sdk::Call& call) {
  const std::int64_t n = call.outputs[0].count;
  return static_cast<std::size_t>(n) * (sizeof(Draw) + sizeof(std::uint64_t)) +
         static_cast<std::size_t>(Buckets(n).count() + 1) * sizeof(std::int64_t);
}

}  // namespace

TENON_KERNEL_WITH(random_permutation, (sdk::Traits{.scratch = scratch}), std::int64_t)

}  // namespace tenon::openblas
#endif
