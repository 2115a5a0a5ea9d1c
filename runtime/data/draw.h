// SPDX-License-Identifier: Apache-2.0
// data/draw.h - random numbers on the host: those of one sample, and those that the random ops give in f64.
#pragma once

#include <tenon/sdk/random.h>

#include <cstdint>
#include <vector>

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

/// The elements of RandomUniform of f64 with this key and stream.
inline std::vector<double> draw_uniform(std::int64_t count, std::uint64_t seed, std::uint64_t step, std::uint32_t stream, double low,
                                        double high) {
  std::vector<double> values(static_cast<std::size_t>(count));
  sdk::random::fill_uniform(values.data(), 0, count, {seed, step, stream}, low, high);
  return values;
}
/// The elements of RandomNormal of f64, with mean 0 and deviation 1.
inline std::vector<double> draw_normal(std::int64_t count, std::uint64_t seed, std::uint64_t step, std::uint32_t stream) {
  std::vector<double> values(static_cast<std::size_t>(count));
  sdk::random::fill_normal(values.data(), 0, count, {seed, step, stream}, 0, 1);
  return values;
}

}  // namespace tenon::data
