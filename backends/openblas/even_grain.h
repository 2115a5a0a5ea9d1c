// SPDX-License-Identifier: Apache-2.0
// even_grain.h - how a loop over elements or lines is divided so that each thread gets about as many.
#pragma once

#include <algorithm>
#include <cstdint>

#include <tenon/sdk/kernel.h>
#include <tenon/sdk/rounding.h>

namespace tenon::openblas {

/// The grain with which Host::parallel_for divides `count` elements evenly among as many threads as `grain` > 0 gives work to: a thread
/// gets whole grains, so one of two grains of 32k that divide 48k elements would have twice the work of the other. A multiple of `unit`,
/// or `grain`.
inline std::int64_t even_grain(const sdk::Host& host, std::int64_t count, std::int64_t grain, std::int64_t unit = 1) {
  const std::int64_t threads = std::min<std::int64_t>(host.thread_count(), sdk::ceil_div(count, grain));
  // A thread that is late leaves some grains to others. Where not all threads take part, more grains would be given to more threads.
  const std::int64_t grains_per_thread = threads < host.thread_count() ? 1 : 4;
  return threads <= 1 ? grain : std::min(grain, sdk::round_up(sdk::ceil_div(count, threads * grains_per_thread), unit));
}

}  // namespace tenon::openblas
