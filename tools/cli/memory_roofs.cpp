// SPDX-License-Identifier: Apache-2.0
#include "cli/memory_roofs.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <vector>

#include "cli/measuring_threads.h"
#include "core/host_memory.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tenon::cli {
namespace {

/// A range of elements that one thread works on.
struct Range {
  std::int64_t first, last;
  std::int64_t count() const { return last - first; }
};

struct FreeHost {
  void operator()(float* memory) const { free_host(memory); }
};
using Array = std::unique_ptr<float[], FreeHost>;

/// Each thread first writes the part that it works on later, so that its memory is next to the processor that the thread then ran on.
/// Threads may move.
Array make_array(std::int64_t count, float value, MeasuringThreads& threads, const std::function<Range(int)>& range_of) {
  constexpr std::uint64_t alignment = 64;
  Array array(static_cast<float*>(allocate_host(static_cast<std::uint64_t>(count) * sizeof(float), alignment, HostPages::huge)));
  if (array == nullptr) throw std::bad_alloc();
  threads.run([&](int thread) {
    const Range range = range_of(thread);
    std::fill(array.get() + range.first, array.get() + range.last, value);
  });
  return array;
}

constexpr int chains = 8;  // of additions, which are independent: a load per cycle does not wait for them

#if defined(__x86_64__)
// Macros, because intrinsics do not work in templates across target attributes. Returns how many elements were added. The addresses that
// are fetched ahead may be beyond the end: a prefetch of what is not mapped does nothing.
constexpr std::int64_t fetch_ahead_bytes = 512;
#define TENON_SUM_LOOP(name, features, vector, width, zero, load, add, store)                                   \
  __attribute__((target(features))) std::int64_t name(const float* values, std::int64_t count, float& total) {  \
    vector sums[chains];                                                                                        \
    for (auto& part : sums) part = zero();                                                                      \
    std::int64_t i = 0;                                                                                         \
    for (; i + chains * (width) <= count; i += chains * (width)) {                                              \
      for (int k = 0; k < chains; ++k) {                                                                        \
        _mm_prefetch(reinterpret_cast<const char*>(values + i + k * (width)) + fetch_ahead_bytes, _MM_HINT_T0); \
        sums[k] = add(sums[k], load(values + i + k * (width)));                                                 \
      }                                                                                                         \
    }                                                                                                           \
    float lanes[width];                                                                                         \
    for (const auto& part : sums) {                                                                             \
      store(lanes, part);                                                                                       \
      for (const float lane : lanes) total += lane;                                                             \
    }                                                                                                           \
    return i;                                                                                                   \
  }
TENON_SUM_LOOP(sum_avx512, "avx512f", __m512, 16, _mm512_setzero_ps, _mm512_loadu_ps, _mm512_add_ps, _mm512_storeu_ps)
TENON_SUM_LOOP(sum_avx, "avx", __m256, 8, _mm256_setzero_ps, _mm256_loadu_ps, _mm256_add_ps, _mm256_storeu_ps)
#endif

/// The same with the vectors of the compiler.
std::int64_t sum_portable(const float* values, std::int64_t count, float& total) {
  constexpr std::int64_t lanes = 4 * chains;
  float part[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    for (std::int64_t k = 0; k < lanes; ++k) part[k] += values[i + k];
  }
  for (const float value : part) total += value;
  return i;
}

}  // namespace

float sum(const float* values, std::int64_t count) {
  float total = 0;
  std::int64_t i = 0;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") != 0) {
    i = sum_avx512(values, count, total);
  } else if (__builtin_cpu_supports("avx") != 0) {
    i = sum_avx(values, count, total);
  } else {
    i = sum_portable(values, count, total);
  }
#else
  i = sum_portable(values, count, total);
#endif
  for (; i < count; ++i) total += values[i];
  return total;
}

double MemoryRoofs::peak() const {
  return std::max({copy, scale, add, triad, read});
}

MemoryRoofs memory_roofs(int thread_count, std::int64_t array_bytes) {
  MeasuringThreads threads(thread_count);
  const std::int64_t count = array_bytes / static_cast<std::int64_t>(sizeof(float));
  const auto range_of = [count, parts = threads.count()](int part) { return Range{count * part / parts, count * (part + 1) / parts}; };
  const Array a = make_array(count, 0, threads, range_of), b = make_array(count, 1, threads, range_of),
              c = make_array(count, 2, threads, range_of);
  const auto best_of = [&](int arrays, const std::function<void(int, Range)>& body) {
    constexpr int tries = 10;
    double best = std::numeric_limits<double>::max();
    for (int i = 0; i < tries; ++i) best = std::min(best, threads.run([&](int thread) { body(thread, range_of(thread)); }));
    return arrays * static_cast<double>(array_bytes) / best / 1e9;
  };
  float* const out = a.get();
  const float* const x = b.get();
  const float* const y = c.get();
  std::vector<float> sums(static_cast<std::size_t>(threads.count()));
  MemoryRoofs roofs;
  roofs.copy =
      best_of(2, [=](int, Range r) { std::memcpy(out + r.first, x + r.first, static_cast<std::size_t>(r.count()) * sizeof(float)); });
  roofs.scale = best_of(2, [=](int, Range r) {
    for (std::int64_t i = r.first; i < r.last; ++i) out[i] = 3.0F * x[i];
  });
  roofs.add = best_of(3, [=](int, Range r) {
    for (std::int64_t i = r.first; i < r.last; ++i) out[i] = x[i] + y[i];
  });
  roofs.triad = best_of(3, [=](int, Range r) {
    for (std::int64_t i = r.first; i < r.last; ++i) out[i] = x[i] + 3.0F * y[i];
  });
  // All three: of one array, a part of the size of the caches would still be there from the try before.
  roofs.read = best_of(3, [&](int thread, Range r) {
    for (const float* const array : {static_cast<const float*>(out), x, y})
      sums[static_cast<std::size_t>(thread)] += sum(array + r.first, r.count());
  });
  asm volatile("" : : "r"(out), "r"(sums.data()) : "memory");  // the results are used
  return roofs;
}

}  // namespace tenon::cli
