// SPDX-License-Identifier: Apache-2.0
// data/draw.h - the random numbers of one sample.
#pragma once

#include <tenon/sdk/random.h>

#include <cstdint>

namespace tenon::data {

/// A sequence of Philox numbers. Each sample has its own key, so it does not depend on the number of samples or the thread.
class Draw {
 public:
  Draw(std::uint64_t seed, std::int64_t sample, std::uint32_t stream) : source_{seed, static_cast<std::uint64_t>(sample), stream} {}

  /// In [low, high); rounding may give high.
  float uniform(float low, float high) { return low + (high - low) * (static_cast<float>(bits() >> 8) * 0x1p-24f); }
  /// In [0, count).
  std::int64_t below(std::int64_t count) {
    return static_cast<std::int64_t>(std::uint64_t{bits()} * static_cast<std::uint64_t>(count) >> 32);
  }
  bool coin() { return (bits() & 1) != 0; }

 private:
  std::uint32_t bits() {
    if (lane_ == 4) {
      lanes_ = sdk::random::lanes_of(source_, block_++);
      lane_ = 0;
    }
    return lanes_.x[lane_++];
  }

  sdk::random::Source source_;
  sdk::random::Lanes lanes_{};
  std::int64_t block_ = 0;
  int lane_ = 4;
};

}  // namespace tenon::data
