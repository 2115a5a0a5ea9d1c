// SPDX-License-Identifier: Apache-2.0
// The cuda backend's reductions: the mapping of threads to results.
#include "backends/cuda/reduce/reduction_plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>
#include <string>
#include <vector>

namespace tenon::cuda {
namespace {

using Dims = std::vector<std::int64_t>;

Dims dense_strides(const Dims& shape) {
  Dims strides(shape.size(), 1);
  for (std::size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}
ReductionPlan plan_of(const Dims& shape, const Dims& strides, std::uint32_t axes, int widest = 4) {
  return plan_reduction(shape.data(), strides.data(), static_cast<std::uint32_t>(shape.size()), axes, widest);
}
ReductionPlan plan_of(const Dims& shape, std::uint32_t axes, int widest = 4) {
  return plan_of(shape, dense_strides(shape), axes, widest);
}

std::int64_t place(const Layout<1>& layout, std::int64_t i) {
  std::int64_t at = 0;
  for (int d = layout.rank; d-- > 0;) {
    at += i % layout.sizes[d] * layout.strides[0][d];
    i /= layout.sizes[d];
  }
  return at;
}

/// The offsets at which each line is read when the kernels follow the plan.
std::vector<std::vector<std::int64_t>> reads_of(const ReductionPlan& plan) {
  std::vector<std::vector<std::int64_t>> reads(static_cast<std::size_t>(plan.results));
  const std::int64_t step = plan.blocks() / plan.splits;
  for (std::int64_t block = 0; block < plan.blocks(); ++block) {
    const std::int64_t split = block % plan.splits, begin = split * plan.part, end = std::min(begin + plan.part, plan.reduced.count);
    for (std::int64_t tile = block / plan.splits; tile < plan.tiles; tile += step) {
      for (int thread = 0; thread < reduction_threads; ++thread) {
        const int lane = thread % plan.lanes, group = thread / plan.lanes, groups = reduction_threads / plan.lanes;
        if (plan.columns) {
          const std::int64_t column = tile * plan.lanes + lane;
          if (column >= plan.kept.count) continue;
          for (std::int64_t j = begin + group; j < end; j += groups) {
            for (int v = 0; v < plan.width; ++v) {
              reads[static_cast<std::size_t>(column * plan.width + v)].push_back(place(plan.kept, column) + place(plan.reduced, j) + v);
            }
          }
        } else {
          const std::int64_t line = tile * groups + group;
          if (line >= plan.results) continue;
          std::vector<std::int64_t>& own = reads[static_cast<std::size_t>(line)];
          const std::int64_t base = place(plan.kept, line);
          for (std::int64_t p = begin + lane; p < end; p += plan.lanes) {
            for (int v = 0; v < plan.width; ++v) own.push_back(base + place(plan.reduced, p) + v);
          }
          if (split != 0) continue;
          for (std::int64_t i = plan.terms - plan.tail + lane; i < plan.terms; i += plan.lanes) own.push_back(base + i);
        }
      }
    }
  }
  for (std::vector<std::int64_t>& line : reads) std::sort(line.begin(), line.end());
  return reads;
}

/// The offsets of each line, by definition.
std::vector<std::vector<std::int64_t>> terms_of(const Dims& shape, const Dims& strides, std::uint32_t axes) {
  std::map<Dims, std::vector<std::int64_t>> lines;  // by the index in the kept dimensions, in row-major order
  const std::int64_t count = std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  for (std::int64_t i = 0; i < count; ++i) {
    Dims kept;
    std::int64_t rest = i, at = 0;
    for (std::size_t d = shape.size(); d-- > 0; rest /= shape[d]) {
      at += rest % shape[d] * strides[d];
      if ((axes >> d & 1u) == 0) kept.insert(kept.begin(), rest % shape[d]);
    }
    lines[kept].push_back(at);
  }
  std::vector<std::vector<std::int64_t>> list;
  for (auto& [index, line] : lines) {
    std::sort(line.begin(), line.end());
    list.push_back(std::move(line));
  }
  return list;
}

}  // namespace

TEST_CASE("cuda reduction: every term of every line is read once") {
  const std::vector<Dims> shapes{{1},       {7},          {1027},      {70001},      {8, 10},   {3, 20011},
                                 {3001, 7}, {2, 3, 4, 5}, {5, 64, 48}, {4, 600, 12}, {40000, 2}};
  for (const Dims& shape : shapes) {
    for (std::uint32_t axes = 0; axes < 1u << shape.size(); ++axes) {
      for (const int widest : {1, 2, 4}) {
        CAPTURE(shape.size());
        CAPTURE(shape[0]);
        CAPTURE(axes);
        CAPTURE(widest);
        CHECK(reads_of(plan_of(shape, axes, widest)) == terms_of(shape, dense_strides(shape), axes));
      }
    }
  }
}

TEST_CASE("cuda reduction: any strides work") {
  const Dims shape{6, 40, 8};
  const std::vector<Dims> all{{320, 8, 1}, {1, 6, 240}, {0, 8, 1}, {320, -8, -1}, {640, 16, 2}, {324, 8, 1}, {321, 8, 1}, {0, 0, 0}};
  for (const Dims& strides : all) {
    for (std::uint32_t axes = 0; axes < 8; ++axes) {
      CAPTURE(strides[0]);
      CAPTURE(strides[1]);
      CAPTURE(axes);
      CHECK(reads_of(plan_of(shape, strides, axes)) == terms_of(shape, strides, axes));
    }
  }
}

TEST_CASE("cuda reduction: packs start at multiples of their size") {
  const std::vector<Dims> shapes{{1027}, {8, 12}, {8, 10}, {3, 20011}, {5, 64, 48}, {5, 63, 50}};
  for (const Dims& shape : shapes) {
    for (std::uint32_t axes = 1; axes < 1u << shape.size(); ++axes) {
      const ReductionPlan plan = plan_of(shape, axes);
      if (plan.width == 1) continue;
      for (std::int64_t i = 0; i < plan.kept.count; ++i) CHECK(place(plan.kept, i) % plan.width == 0);
      for (std::int64_t i = 0; i < plan.reduced.count; ++i) CHECK(place(plan.reduced, i) % plan.width == 0);
    }
  }
  CHECK(plan_of({8, 12}, 0b10u).width == 4);
  CHECK(plan_of({8, 10}, 0b10u).width == 1);  // the second row would start in the middle of a pack
  CHECK(plan_of({1027}, 1u).width == 4);
  CHECK(plan_of({1027}, 1u).tail == 3);
}

TEST_CASE("cuda reduction: rows are read along the row, columns across adjacent ones") {
  CHECK_FALSE(plan_of({1000, 1000}, 0b10u).columns);
  CHECK(plan_of({1000, 1000}, 0b01u).columns);
  CHECK_FALSE(plan_of({32, 64, 56, 56}, 0b1101u).columns);  // channels of images: runs of 56 x 56
  CHECK(plan_of({32, 56, 56, 64}, 0b0111u).columns);        // with channels last
}

TEST_CASE("cuda reduction: lines are split over blocks only if there are few results") {
  CHECK(plan_of({100'000'000}, 1u).blocks() >= 500);
  CHECK(plan_of({4, 25'000'000}, 0b10u).blocks() >= 500);
  CHECK(plan_of({25'000'000, 4}, 0b01u).blocks() >= 500);
  CHECK(plan_of({10'000'000, 64}, 0b01u).blocks() >= 500);
  CHECK(plan_of({100'000, 1000}, 0b10u).splits == 1);
  CHECK(plan_of({1000, 100'000}, 0b01u).splits == 1);
  CHECK(plan_of({1000}, 1u).splits == 1);  // a second kernel would cost more
}

TEST_CASE("cuda reduction: short lines do not take whole warps") {
  CHECK(plan_of({100'000, 4}, 0b10u).lanes == 1);
  CHECK(plan_of({100'000, 16}, 0b10u).lanes == 4);
  CHECK(plan_of({100'000, 100}, 0b10u).lanes == 32);
  CHECK(plan_of({100'000, 100'000}, 0b10u).lanes == reduction_threads);
}

TEST_CASE("cuda reduction: empty lines have results, no lines have none") {
  CHECK(plan_of({3, 0}, 0b10u).blocks() == 1);
  CHECK(plan_of({3, 0}, 0b10u).terms == 0);
  CHECK(plan_of({0, 3}, 0b10u).blocks() == 0);
}

TEST_CASE("cuda rows: the threads of a row hold all of it") {
  for (std::int64_t n = 0; n <= 8192; ++n) {
    const RowPlan plan = plan_rows(n);
    REQUIRE(plan.lanes * plan.elements >= n);
    REQUIRE((plan.elements == 4 || plan.elements == 8 || plan.elements == 16 || plan.elements == 32));
  }
  CHECK(plan_rows(10).lanes == 4);
  CHECK(plan_rows(1000).lanes == 64);
  CHECK(plan_rows(8193).elements == 0);
}

}  // namespace tenon::cuda
