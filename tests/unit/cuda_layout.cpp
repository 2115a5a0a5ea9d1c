// SPDX-License-Identifier: Apache-2.0
// The cuda backend's layouts: dimensions of operands are merged as far as possible.
#include "backends/cuda/kernel/layout.h"

#include <doctest/doctest.h>

#include <random>

namespace tenon::cuda {
namespace {

TEST_CASE("cuda layout: dense operands merge into one dimension") {
  const std::int64_t shape[] = {2, 3, 4};
  const auto layout = collapse<2>(shape, 3, {{{12, 4, 1}, {12, 4, 1}}});
  CHECK(layout.count == 24);
  CHECK(layout.rank == 1);
  CHECK(layout.sizes[0] == 24);
  CHECK(is_dense(layout, 0));
  CHECK(!is_scalar(layout, 1));
}

TEST_CASE("cuda layout: a bias over rows keeps two dimensions, a scalar adds none") {
  const std::int64_t shape[] = {5, 1, 7};
  const auto layout = collapse<3>(shape, 3, {{{7, 7, 1}, {0, 0, 1}, {0, 0, 0}}});
  CHECK(layout.rank == 2);
  CHECK(is_dense(layout, 0));
  CHECK(!is_dense(layout, 1));
  CHECK(is_scalar(layout, 2));
  CHECK(layout.strides[1][0] == 0);
  CHECK(layout.strides[1][1] == 1);
}

TEST_CASE("cuda layout: no elements, one element") {
  const std::int64_t none[] = {3, 0};
  CHECK(collapse<1>(none, 2, {{{0, 1}}}).count == 0);
  const std::int64_t one[] = {1, 1};
  const auto layout = collapse<1>(one, 2, {{{9, 9}}});
  CHECK(layout.rank == 0);
  CHECK(layout.count == 1);
  CHECK(is_scalar(layout, 0));
  CHECK(is_dense(layout, 0));
}

TEST_CASE("cuda layout: merging keeps the offset of every element") {
  std::mt19937 random(5);
  for (int trial = 0; trial < 200; ++trial) {
    const std::uint32_t rank = 1 + random() % 4;
    std::int64_t shape[TENON_MAX_RANK];
    std::array<sdk::Strides, 2> strides{};
    std::int64_t dense = 1;
    for (std::uint32_t d = rank; d-- > 0;) {
      shape[d] = 1 + random() % 3;
      strides[0][d] = dense;
      strides[1][d] = std::array<std::int64_t, 4>{0, dense, -dense, 2 * dense}[random() % 4];
      dense *= shape[d];
    }
    const auto layout = collapse<2>(shape, rank, strides);
    sdk::for_each_element<2>(shape, rank, strides, [&](std::int64_t i, const auto& at) {
      std::int64_t rest = i, found[2] = {0, 0};
      for (int d = layout.rank; d-- > 0;) {
        for (int k = 0; k < 2; ++k) found[k] += rest % layout.sizes[d] * layout.strides[k][d];
        rest /= layout.sizes[d];
      }
      CHECK(found[0] == at[0]);
      CHECK(found[1] == at[1]);
    });
  }
}

}  // namespace
}  // namespace tenon::cuda
