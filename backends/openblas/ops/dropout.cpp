// SPDX-License-Identifier: Apache-2.0
// ops/dropout.cpp - dropout; applied to dy with the same key and stream, it is its own gradient.
#include "simd/foreach_target.h"

#include <algorithm>

#include "simd/philox.h"

#include <tenon/sdk/kernel.h>

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

/// Processes elements [begin, end); begin is a multiple of 4.
template <class T>
void drop(const T* x, T* y, std::int64_t begin, std::int64_t end, const sdk::random::Source& source, double p) {
  const Wide<T> d;
  const auto scale = hn::Set(d, sdk::random::dropout_scale<T>(p));
  const std::uint64_t threshold = sdk::random::bernoulli_threshold(p);
  for_each_lanes(source, begin, end, 1, [&](const std::uint32_t* words, std::int64_t offset, std::int64_t n) HWY_ATTR {
    const T* from = x + begin + offset;
    T* to = y + begin + offset;
    std::int64_t i = 0;
    for (; i + lanes(d) <= n; i += lanes(d)) {
      hn::StoreU(hn::IfThenZeroElse(ones_of<T>(words + i, threshold), hn::Mul(hn::LoadU(d, from + i), scale)), d, to + i);
    }
    if (i < n) {
      const auto kept = hn::Mul(load_first(d, from + i, n - i), scale);
      store_first(hn::IfThenZeroElse(ones_of<T>(words + i, threshold), kept), d, to + i, n - i);
    }
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {
namespace {

// Blocks of four elements worth a thread of their own: about 20 us.
constexpr std::int64_t grain = 8 * 1024;

/// y = 0 with probability p, else x / (1 - p); y may be x. The bits are those of <tenon/sdk/random.h>.
template <class T>
void dropout(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_random>();
  const std::uint64_t* const key = call.input<std::uint64_t>(1);
  const sdk::random::Source source{key[0], key[1], attributes.stream};
  const std::int64_t count = call.outputs[0].count;
  call.host.parallel_for((count + 3) / 4, grain, [&](std::int64_t begin, std::int64_t end) {
    TENON_DISPATCH(drop<T>)(call.input<T>(0), call.output<T>(0), 4 * begin, std::min(4 * end, count), source, attributes.a);
  });
}

}  // namespace

TENON_KERNEL_WITH(dropout, (sdk::Traits{.in_place = true}), float, double)

}  // namespace tenon::openblas
#endif
