// SPDX-License-Identifier: Apache-2.0
// panel_prefetch.h - panels that tiles fetch into L2 while they multiply those before.
#pragma once

#include <algorithm>
#include <cstdint>

#include <tenon/sdk/rounding.h>

namespace tenon::openblas {

/// Divides the bytes of the next panel among the tiles of a panel. Each tile fetches a line of the cache for each line of its panel.
class PanelPrefetch {
 public:
  /// What a tile fetches: `from`, and `step` bytes further on for each line.
  struct Cursor {
    const char* from;
    std::int64_t step;
  };

  /// `tiles` tiles of `lines` lines each fetch `bytes` from `next` on, or nothing if that is NULL.
  PanelPrefetch(const void* next, std::int64_t bytes, std::int64_t tiles, std::int64_t lines)
      : next_{static_cast<const char*>(next), std::max(min_step, sdk::ceil_div(bytes, std::max<std::int64_t>(1, tiles * lines)))},
        lines_(lines),
        left_(next == nullptr ? 0 : bytes) {}

  /// For the next tile; `used` is memory that it reads anyway, for one without anything to fetch.
  Cursor take(const void* used) {
    if (left_ <= 0) return {static_cast<const char*>(used), 0};
    const Cursor cursor = next_;
    const std::int64_t fetched = std::min(left_, next_.step * lines_);
    next_.from += fetched;
    left_ -= fetched;
    return cursor;
  }

 private:
  // Half a line of the cache: smaller steps repeat requests.
  static constexpr std::int64_t min_step = 32;

  Cursor next_;
  std::int64_t lines_, left_;
};

}  // namespace tenon::openblas
