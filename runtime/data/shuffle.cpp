// data/shuffle.cpp - the order of an epoch.
#include "data/shuffle.h"

#include <tenon/sdk/random.h>

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

}  // namespace

void shuffle(std::span<std::int64_t> out_order, std::uint64_t seed, std::uint64_t epoch) {
  std::iota(out_order.begin(), out_order.end(), std::int64_t{0});
  const sdk::random::Source source{seed, epoch, stream_of_shuffle};
  sdk::random::Lanes lanes{};
  for (std::size_t d = 0; d + 1 < out_order.size(); ++d) {
    const std::size_t half = d % 2;
    if (half == 0) lanes = sdk::random::lanes_of(source, static_cast<std::int64_t>(d / 2));
    const std::uint64_t bits = std::uint64_t{lanes.x[2 * half + 1]} << 32 | lanes.x[2 * half];
    const std::size_t i = out_order.size() - 1 - d;
    std::swap(out_order[i], out_order[static_cast<std::size_t>(high_product(bits, i + 1))]);
  }
}

}  // namespace tenon::data
