// SPDX-License-Identifier: Apache-2.0
#include "cli/roofs.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "cli/measuring_threads.h"
#include "platform/machine.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace tenon::cli {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Independent chains of multiply-adds: latency times units is at most 10 on current processors.
constexpr int chains = 12;

/// A loop of `rounds` multiply-adds on each chain, and the number of operations in one round of all chains.
struct Loop {
  void (*run)(std::int64_t rounds) = nullptr;
  double flops_per_round = 0;
};

/// Keeps the compiler from removing an unused result.
template <class T>
void keep(const T& value) {
  asm volatile("" : : "r"(&value) : "memory");
}

// A macro, because intrinsics do not work in templates across target attributes.
#define TENON_BENCH_LOOP(name, attribute, vector, set, fma) \
  attribute void name(std::int64_t rounds) {                \
    vector x[chains];                                       \
    for (int i = 0; i < chains; ++i) x[i] = set(1);         \
    const vector a = set(0.999F), b = set(0.001F);          \
    for (std::int64_t r = 0; r < rounds; ++r) {             \
      for (int i = 0; i < chains; ++i) x[i] = fma;          \
    }                                                       \
    keep(x);                                                \
  }

#if defined(__x86_64__)
#define TENON_BENCH_AVX2 __attribute__((target("avx2,fma")))
#define TENON_BENCH_AVX512 __attribute__((target("avx512f")))
TENON_BENCH_LOOP(avx2_f32, TENON_BENCH_AVX2, __m256, _mm256_set1_ps, _mm256_fmadd_ps(x[i], a, b))
TENON_BENCH_LOOP(avx2_f64, TENON_BENCH_AVX2, __m256d, _mm256_set1_pd, _mm256_fmadd_pd(x[i], a, b))
TENON_BENCH_LOOP(avx512_f32, TENON_BENCH_AVX512, __m512, _mm512_set1_ps, _mm512_fmadd_ps(x[i], a, b))
TENON_BENCH_LOOP(avx512_f64, TENON_BENCH_AVX512, __m512d, _mm512_set1_pd, _mm512_fmadd_pd(x[i], a, b))

// Likewise, with sums that have other elements than the operands. `dot` depends on x[i], else the compiler would compute parts of it once.
#define TENON_BENCH_DOT(name, attribute, sums, zero, operands, one, dot) \
  attribute void name(std::int64_t rounds) {                             \
    sums x[chains];                                                      \
    for (int i = 0; i < chains; ++i) x[i] = zero();                      \
    const operands a = (operands)one;                                    \
    for (std::int64_t r = 0; r < rounds; ++r) {                          \
      for (int i = 0; i < chains; ++i) x[i] = dot;                       \
    }                                                                    \
    keep(x);                                                             \
  }
#define TENON_BENCH_AVX512BW __attribute__((target("avx512f,avx512bw")))
#define TENON_BENCH_AVX512_BF16 __attribute__((target("avx512f,avx512bf16")))
#define TENON_BENCH_AVX512_VNNI __attribute__((target("avx512f,avx512vnni")))
#define TENON_BENCH_AVX_VNNI __attribute__((target("avx2,avxvnni")))
constexpr short one_bf16 = 0x3F80;
TENON_BENCH_DOT(avx512_bf16, TENON_BENCH_AVX512_BF16, __m512, _mm512_setzero_ps, __m512bh, _mm512_set1_epi16(one_bf16),
                _mm512_dpbf16_ps(x[i], a, a))
TENON_BENCH_DOT(avx512_vnni, TENON_BENCH_AVX512_VNNI, __m512i, _mm512_setzero_si512, __m512i, _mm512_set1_epi8(1),
                _mm512_dpbusd_epi32(x[i], a, a))
TENON_BENCH_DOT(avx_vnni, TENON_BENCH_AVX_VNNI, __m256i, _mm256_setzero_si256, __m256i, _mm256_set1_epi8(1),
                _mm256_dpbusd_avx_epi32(x[i], a, a))
// Without an instruction for products of bytes (vpmaddubsw saturates its sums), they are products of 16 bits.
TENON_BENCH_DOT(avx512_i16, TENON_BENCH_AVX512BW, __m512i, _mm512_setzero_si512, __m512i, _mm512_set1_epi16(1),
                _mm512_add_epi32(x[i], _mm512_madd_epi16(x[i], a)))
TENON_BENCH_DOT(avx2_i16, TENON_BENCH_AVX2, __m256i, _mm256_setzero_si256, __m256i, _mm256_set1_epi16(1),
                _mm256_add_epi32(x[i], _mm256_madd_epi16(x[i], a)))
#elif defined(__aarch64__)
TENON_BENCH_LOOP(neon_f32, , float32x4_t, vdupq_n_f32, vfmaq_f32(b, x[i], a))
TENON_BENCH_LOOP(neon_f64, , float64x2_t, vdupq_n_f64, vfmaq_f64(b, x[i], a))
#endif

#if defined(__x86_64__)
/// Whether the system lists this feature of the processor. Compilers do not know all of them by name.
bool has_feature(std::string_view name) {
  std::istringstream features(platform::processor_features());
  for (std::string feature; features >> feature;) {
    if (feature == name) return true;
  }
  return false;
}
#endif

/// `products` is the number of multiply-adds of one instruction or, without one, of a sequence.
Loop loop_of(void (*run)(std::int64_t), int products) {
  return {run, 2.0 * products * chains};
}

Loop best_loop(DType dtype) {
#if defined(__x86_64__)
  const bool avx512 = __builtin_cpu_supports("avx512f") != 0;
  const bool avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  const bool amx = has_feature("amx_tile");
  switch (dtype) {
    case DType::f64:
      return avx512 ? loop_of(avx512_f64, 8) : avx2 ? loop_of(avx2_f64, 4) : Loop{};
    case DType::f32:
      return avx512 ? loop_of(avx512_f32, 16) : avx2 ? loop_of(avx2_f32, 8) : Loop{};
    case DType::bf16:
      if (amx) return {};
      return avx512 && has_feature("avx512_bf16") ? loop_of(avx512_bf16, 32) : best_loop(DType::f32);
    case DType::i8:
      if (amx) return {};
      if (avx512 && has_feature("avx512_vnni")) return loop_of(avx512_vnni, 64);
      if (avx2 && has_feature("avx_vnni")) return loop_of(avx_vnni, 32);
      if (avx512 && __builtin_cpu_supports("avx512bw") != 0) return loop_of(avx512_i16, 32);
      return avx2 ? loop_of(avx2_i16, 16) : Loop{};
    default:
      return {};
  }
#elif defined(__aarch64__)
  if (dtype == DType::f64) return loop_of(neon_f64, 2);
  if (dtype == DType::f32 || dtype == DType::bf16) return loop_of(neon_f32, 4);
  return {};
#else
  static_cast<void>(dtype);
  return {};
#endif
}

}  // namespace

std::optional<double> peak_gflops(DType dtype, int threads) {
  const Loop loop = best_loop(dtype);
  if (loop.run == nullptr) return std::nullopt;
  // Tries of half a millisecond: some of them run undisturbed even on a busy machine.
  constexpr std::int64_t rounds = 200'000;
  constexpr int tries = 300;
  MeasuringThreads all(threads);
  std::vector<double> best(static_cast<std::size_t>(all.count()), 1e300);
  all.run([&](int thread) {
    double& mine = best[static_cast<std::size_t>(thread)];
    for (int i = 0; i < tries; ++i) {
      const auto begin = Clock::now();
      loop.run(rounds);
      mine = std::min(mine, seconds_since(begin));
    }
  });
  double rate = 0;
  for (const double seconds : best) rate += loop.flops_per_round * static_cast<double>(rounds) / seconds;
  return rate / 1e9;
}

}  // namespace tenon::cli
