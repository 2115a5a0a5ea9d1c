// SPDX-License-Identifier: Apache-2.0
// The order of an epoch, against values that another implementation (Python integers) computed from the specification.
#include "data/shuffle.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <vector>

using tenon::data::shuffle;

namespace {
std::vector<std::int64_t> order_of(std::size_t size, std::uint64_t seed, std::uint64_t epoch) {
  std::vector<std::int64_t> order(size);
  shuffle(order, seed, epoch);
  return order;
}
}  // namespace

TEST_CASE("shuffle: small orders are the specified ones") {
  CHECK(order_of(10, 42, 3) == std::vector<std::int64_t>{4, 2, 8, 6, 9, 0, 5, 7, 3, 1});
  CHECK(order_of(10, 42, 4) == std::vector<std::int64_t>{8, 2, 1, 7, 0, 3, 6, 9, 4, 5});
  CHECK(order_of(10, (std::uint64_t{1} << 40) + 42, 3) == std::vector<std::int64_t>{5, 3, 6, 4, 1, 8, 7, 0, 9, 2});
  CHECK(order_of(0, 42, 3).empty());
  CHECK(order_of(1, 42, 3) == std::vector<std::int64_t>{0});
}

TEST_CASE("shuffle: an order of 60000 is the specified one, and a permutation") {
  std::vector<std::int64_t> order = order_of(60000, 7, 1);
  CHECK(std::vector<std::int64_t>(order.begin(), order.begin() + 8) ==
        std::vector<std::int64_t>{32146, 57324, 16889, 31883, 24619, 2090, 33709, 9558});
  CHECK(std::vector<std::int64_t>(order.end() - 4, order.end()) == std::vector<std::int64_t>{55575, 38782, 34459, 25975});
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < order.size(); ++i) sum = (sum + static_cast<std::int64_t>(i) * order[i]) % 1000000007;
  CHECK(sum == 234872691);
  std::sort(order.begin(), order.end());
  for (std::size_t i = 0; i < order.size(); ++i) REQUIRE(order[i] == static_cast<std::int64_t>(i));
}

TEST_CASE("shuffle: every position is equally likely") {
  constexpr int rounds = 6000;
  std::vector<int> taken(36);
  for (std::uint64_t epoch = 0; epoch < rounds; ++epoch) {
    const auto order = order_of(6, 1, epoch);
    for (std::size_t i = 0; i < 6; ++i) ++taken[i * 6 + static_cast<std::size_t>(order[i])];
  }
  // 1000 expected with a standard deviation of 29: five deviations
  for (const int count : taken) CHECK(std::abs(count - 1000) < 145);
}

TEST_CASE("shuffle: a buffer keeps samples near their position, and every sample occurs once") {
  std::vector<std::int64_t> order(1000), whole(1000);
  for (const std::int64_t buffer : {1, 2, 10, 999, 1000, 5000}) {
    CAPTURE(buffer);
    tenon::data::shuffle_windowed(order, buffer, 42, 3);
    std::vector<std::int64_t> sorted = order;
    std::sort(sorted.begin(), sorted.end());
    std::iota(whole.begin(), whole.end(), 0);
    CHECK(sorted == whole);
    // A sample cannot be drawn before it enters the buffer.
    for (std::size_t i = 0; i < order.size(); ++i) REQUIRE(order[i] < static_cast<std::int64_t>(i) + buffer);
    if (buffer == 1) CHECK(order == whole);
    if (buffer > 1) CHECK(order != whole);
    std::vector<std::int64_t> again(1000), other(1000);
    tenon::data::shuffle_windowed(again, buffer, 42, 3);
    tenon::data::shuffle_windowed(other, buffer, 42, 4);
    CHECK(again == order);
    if (buffer > 1) CHECK(other != order);
  }
  std::vector<std::int64_t> one(1), none;
  tenon::data::shuffle_windowed(one, 5, 1, 1);
  CHECK(one[0] == 0);
  tenon::data::shuffle_windowed(none, 5, 1, 1);
}

TEST_CASE("shuffle: the windowed order is that of a buffer refilled sample by sample") {
  // The slot of a draw is free, but only samples of the buffer can be drawn, and after n draws the buffer is empty.
  constexpr std::int64_t size = 60, buffer = 7;
  std::vector<std::int64_t> order(size);
  std::vector<int> first(size);
  for (std::uint64_t epoch = 0; epoch < 3000; ++epoch) {
    tenon::data::shuffle_windowed(order, buffer, 9, epoch);
    ++first[static_cast<std::size_t>(order[0])];
  }
  for (std::int64_t i = 0; i < size; ++i) {
    const int count = first[static_cast<std::size_t>(i)];
    if (i < buffer) {
      CHECK(count > 330);  // 3000 / 7 within five deviations of 19
      CHECK(count < 525);
    } else {
      CHECK(count == 0);
    }
  }
}
