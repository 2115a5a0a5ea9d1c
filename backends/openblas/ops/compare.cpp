// ops/compare.cpp - equal, with NumPy broadcasting. Plain loops: the compiler's own vectors reach the speed of the memory.
#include "walk.h"

namespace tenon::openblas {
namespace {

// Elements worth a thread of their own: about 20 us from the second cache.
constexpr std::int64_t grain = 128 * 1024;

/// y = a == b; a NaN equals nothing, -0 equals 0.
template <class T>
void equal(const sdk::Call& call) {
  elementwise<T, bool, 2>(call, grain, 0b11, [](const Stretch<T, 2>& s, bool* y, std::int64_t n) {
    if (s.scalars == 0) {
      for (std::int64_t i = 0; i < n; ++i) y[i] = s.x[0][i] == s.x[1][i];
      return;
    }
    const T one = s.scalars == 1 ? *s.x[0] : *s.x[1];
    const T* const others = s.scalars == 1 ? s.x[1] : s.x[0];
    for (std::int64_t i = 0; i < n; ++i) y[i] = others[i] == one;
  });
}

}  // namespace

TENON_KERNEL_WITH(equal, (sdk::Traits{.strided = true}), float, double, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
                  std::uint16_t, std::uint32_t, std::uint64_t, bool)

}  // namespace tenon::openblas
