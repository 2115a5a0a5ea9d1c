// SPDX-License-Identifier: Apache-2.0
// simd/subnormals.h - subnormal numbers as zero, where they cost more than they are worth.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace tenon::openblas {

/// While it lives, subnormal operands and results of the calling thread's vector code are zero, if `applies`; then the thread's mode is
/// what it was. An operation with a subnormal operand takes a hundred times as long on Intel's processors.
class SubnormalsAreZero {
 public:
  explicit SubnormalsAreZero(bool applies) : applies_(applies) {
    if (applies_) set(before_ = get(), true);
  }
  ~SubnormalsAreZero() {
    if (applies_) set(before_, false);
  }
  SubnormalsAreZero(const SubnormalsAreZero&) = delete;
  SubnormalsAreZero& operator=(const SubnormalsAreZero&) = delete;

 private:
#if defined(__x86_64__)
  static constexpr std::uint64_t bits = 1u << 15 | 1u << 6;  // flush to zero, denormals are zero
  static std::uint64_t get() {
    return _mm_getcsr();
  }
  static void set(std::uint64_t mode, bool zero) {
    _mm_setcsr(static_cast<unsigned>(zero ? mode | bits : mode));
  }
#elif defined(__aarch64__)
  static constexpr std::uint64_t bits = std::uint64_t{1} << 24;  // FZ
  static std::uint64_t get() {
    std::uint64_t mode;
    asm volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
  }
  static void set(std::uint64_t mode, bool zero) {
    asm volatile("msr fpcr, %0" : : "r"(zero ? mode | bits : mode));
  }
#else
  static std::uint64_t get() {
    return 0;
  }
  static void set(std::uint64_t, bool) {}
#endif
  const bool applies_;
  std::uint64_t before_ = 0;
};

}  // namespace tenon::openblas
