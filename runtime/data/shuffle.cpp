// SPDX-License-Identifier: Apache-2.0
// data/shuffle.cpp - the order of an epoch.
#include "data/shuffle.h"

#include <tenon/sdk/random.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "data/streams.h"

namespace tenon::data {
namespace {

/// floor(a * b / 2^64)
std::uint64_t high_product(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t a_low = a & 0xffffffffu, a_high = a >> 32, b_low = b & 0xffffffffu, b_high = b >> 32;
  const std::uint64_t middle = a_high * b_low + (a_low * b_low >> 32);
  const std::uint64_t other = a_low * b_high + (middle & 0xffffffffu);
  return a_high * b_high + (middle >> 32) + (other >> 32);
}

/// Calls step(d, r_d) for each d except the last.
template <class Step>
void for_each_draw(std::size_t size, std::uint64_t seed, std::uint64_t epoch, Step&& step) {
  const sdk::random::Source source{seed, epoch, stream_of_shuffle};
  sdk::random::Lanes lanes{};
  for (std::size_t d = 0; d + 1 < size; ++d) {
    const std::size_t half = d % 2;
    if (half == 0) lanes = sdk::random::lanes_of(source, static_cast<std::int64_t>(d / 2));
    step(d, std::uint64_t{lanes.x[2 * half + 1]} << 32 | lanes.x[2 * half]);
  }
}

}  // namespace

void shuffle(std::span<std::int64_t> out_order, std::uint64_t seed, std::uint64_t epoch) {
  std::iota(out_order.begin(), out_order.end(), std::int64_t{0});
  for_each_draw(out_order.size(), seed, epoch, [&](std::size_t d, std::uint64_t bits) {
    const std::size_t i = out_order.size() - 1 - d;
    std::swap(out_order[i], out_order[static_cast<std::size_t>(high_product(bits, i + 1))]);
  });
}

void shuffle_windowed(std::span<std::int64_t> out_order, std::int64_t buffer, std::uint64_t seed, std::uint64_t epoch) {
  std::iota(out_order.begin(), out_order.end(), std::int64_t{0});
  for_each_draw(out_order.size(), seed, epoch, [&](std::size_t d, std::uint64_t bits) {
    const std::uint64_t window = std::min<std::uint64_t>(static_cast<std::uint64_t>(buffer), out_order.size() - d);
    std::swap(out_order[d], out_order[d + static_cast<std::size_t>(high_product(bits, window))]);
  });
}

}  // namespace tenon::data
