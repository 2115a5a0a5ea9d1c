// SPDX-License-Identifier: Apache-2.0
// The cuda backend's reductions by several blocks, on the emulation: combined by the last block, or by a second kernel.
#include "backends/cuda/kernel/last_block.cuh"

#include <doctest/doctest.h>

#include <vector>

#include "backends/cuda/reduce/reduction.cuh"
#include "cuda_testing.h"

namespace tenon::cuda {
namespace {

/// y = the sums of x (rows, columns) along one axis, of small integers: exact in any order.
struct Sums {
  std::int64_t rows, columns;
  std::uint32_t axis;

  std::vector<float> values() const {
    std::vector<float> x(static_cast<std::size_t>(rows * columns));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 7 % 5);
    return x;
  }
  std::vector<float> expected() const {
    std::vector<float> sums(static_cast<std::size_t>(axis == 0 ? columns : rows), 0);
    const std::vector<float> x = values();
    for (std::size_t i = 0; i < x.size(); ++i)
      sums[axis == 0 ? i % static_cast<std::size_t>(columns) : i / static_cast<std::size_t>(columns)] += x[i];
    return sums;
  }
  ReductionPlan plan() const {
    const std::int64_t shape[] = {rows, columns}, strides[] = {columns, 1};
    return plan_reduction(shape, strides, 2, 1u << axis, pack_width<float>);
  }
};

bool combines_in_one(Stream& stream, const ReductionPlan& plan) {
  const int lines = plan.columns ? plan.lanes * plan.width : reduction_threads / plan.lanes;
  return last_block(stream, plan.tiles, lines, plan.splits, reduction_threads).counters != nullptr;
}

TEST_CASE("cuda last block: sums by several blocks are those of one, again and again, and in recordings") {
  Device device{sdk::Host(), 0};
  Stream stream{device};
  bool in_one = false, by_another = false;
  for (const Sums& sums : std::vector<Sums>{{1, 70000, 1}, {3, 9001, 1}, {9000, 8, 0}, {5000, 24, 0}, {9000, 132, 0}}) {
    CAPTURE(sums.rows);
    const ReductionPlan plan = sums.plan();
    REQUIRE(plan.splits > 1);
    (combines_in_one(stream, plan) ? in_one : by_another) = true;
    const std::vector<float> expected = sums.expected(), poison(expected.size(), -1.0f);
    DeviceBuffer x(device, stream, sums.values()), y(device, stream, poison),
        scratch(device, stream, static_cast<std::size_t>(plan.partials()) * 24);
    const auto run = [&] { reduce(stream, Sum<float>{}, Values<float>{x.at<float>()}, plan, y.at<float>(), scratch.at<void>()); };
    for (int i = 0; i < 2; ++i) {
      run();
      CHECK(y.read<float>(expected.size()) == expected);
      y.write(poison);
    }
    stream.begin_capture();
    run();
    run();
    const auto capture = stream.end_capture();
    for (int i = 0; i < 2; ++i) {
      capture->replay(stream);
      CHECK(y.read<float>(expected.size()) == expected);
      y.write(poison);
    }
  }
  CHECK(in_one);
  CHECK(by_another);
}

TEST_CASE("cuda last block: a stream and its recording have counters of their own, all 0 between kernels") {
  Device device{sdk::Host(), 0};
  Stream stream{device};
  const unsigned* const own = block_counters(stream);
  CHECK(own == block_counters(stream));
  stream.begin_capture();
  const unsigned* const recorded = block_counters(stream);
  CHECK(recorded != own);
  const auto capture = stream.end_capture();
  CHECK(own == block_counters(stream));
  const Sums sums{1, 70000, 1};
  const ReductionPlan plan = sums.plan();
  DeviceBuffer x(device, stream, sums.values()), y(device, stream, std::size_t{4}),
      scratch(device, stream, static_cast<std::size_t>(plan.partials()) * 24);
  reduce(stream, Sum<float>{}, Values<float>{x.at<float>()}, plan, y.at<float>(), scratch.at<void>());
  std::vector<unsigned> counters(BlockCounters::count, 1u);
  device.copy({sizeof(tenon_copy), TENON_COPY_DEVICE_TO_HOST, reinterpret_cast<std::uintptr_t>(counters.data()),
               reinterpret_cast<std::uintptr_t>(own), counters.size() * sizeof(unsigned), nullptr, 0, 0},
              stream);
  stream.synchronize();
  CHECK(counters == std::vector<unsigned>(BlockCounters::count, 0u));
}

}  // namespace
}  // namespace tenon::cuda
