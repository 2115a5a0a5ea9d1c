// SPDX-License-Identifier: Apache-2.0
// Which requests form a batch, and when: the queue is told what time it is.
#include <chrono>
#include <cstdint>
#include <stop_token>
#include <vector>

#include "serve/batch_queue.h"
#include "serve/wait_times.h"
#include "serve_testing.h"

namespace tenon::test {
namespace {

using serve::BatchQueue;
using serve::Clock;
using serve::Request;
using std::chrono::microseconds;

const Clock::time_point start{std::chrono::hours(1)};

/// A request that arrives some microseconds after the start.
Request request_at(std::int64_t us, std::int64_t samples = 1, DType dtype = DType::f32) {
  return {.inputs = {{"x", Tensor::zeros(dtype, {samples, 3})}}, .samples = samples, .arrival = start + microseconds(us)};
}

/// The samples of the requests of the next batch at that time.
std::vector<std::int64_t> take(BatchQueue& queue, std::int64_t us, bool flush = false) {
  std::vector<std::int64_t> samples;
  for (const Request& request : queue.take(start + microseconds(us), flush)) samples.push_back(request.samples);
  return samples;
}

using Samples = std::vector<std::int64_t>;

TEST_CASE("batch queue: a batch that is not full is ready once its oldest request has waited for the delay") {
  BatchQueue queue(8, microseconds(100));
  CHECK(!queue.next_ready().has_value());
  queue.push(request_at(0));
  queue.push(request_at(60));
  CHECK(queue.next_ready() == start + microseconds(100));
  CHECK(take(queue, 99).empty());
  CHECK(take(queue, 100) == Samples{1, 1});
  CHECK(queue.size() == 0);
}

TEST_CASE("batch queue: a full batch is ready at once, and the rest keeps its own delay") {
  BatchQueue queue(4, microseconds(100));
  for (const std::int64_t us : {0, 1, 2, 3, 4}) queue.push(request_at(us));
  CHECK(take(queue, 5) == Samples{1, 1, 1, 1});
  CHECK(take(queue, 5).empty());
  CHECK(queue.next_ready() == start + microseconds(104));
}

TEST_CASE("batch queue: a request that does not fit completes the batch before it and begins the next one") {
  BatchQueue queue(4, microseconds(100));
  queue.push(request_at(0, 3));
  CHECK(take(queue, 1).empty());
  queue.push(request_at(1, 2));
  queue.push(request_at(2, 1));
  CHECK(take(queue, 3) == Samples{3});
  CHECK(take(queue, 101) == Samples{2, 1});
}

TEST_CASE("batch queue: push tells whether a batch is ready earlier") {
  BatchQueue queue(3, microseconds(100));
  CHECK(queue.push(request_at(0)));   // the first
  CHECK(!queue.push(request_at(1)));  // joins the first
  CHECK(queue.push(request_at(2)));   // completes the batch
  CHECK(take(queue, 2) == Samples{1, 1, 1});
  CHECK(queue.push(request_at(3)));
  CHECK(!queue.push(request_at(4, 1, DType::f64)));
  Request urgent = request_at(5);
  urgent.deadline = urgent.arrival + microseconds(10);
  CHECK(queue.push(std::move(urgent)));
}

TEST_CASE("batch queue: without a delay, each batch has what is there") {
  BatchQueue queue(4, microseconds(0));
  queue.push(request_at(0));
  queue.push(request_at(1));
  CHECK(take(queue, 1) == Samples{1, 1});
}

TEST_CASE("batch queue: of two batches that are ready the one with the oldest request is first, and a full one does not wait for others") {
  BatchQueue queue(2, microseconds(100));
  queue.push(request_at(0, 1, DType::f64));
  queue.push(request_at(1));
  queue.push(request_at(2));
  CHECK(queue.take(start + microseconds(3), false).size() == 2);  // f32, full
  queue.push(request_at(4));
  queue.push(request_at(5));
  const std::vector<Request> oldest = queue.take(start + microseconds(100), false);
  REQUIRE(oldest.size() == 1);
  CHECK(oldest[0].inputs.at("x").dtype() == DType::f64);
}

TEST_CASE("batch queue: a request whose deadline is closer than twice the delay does not wait for others") {
  BatchQueue queue(8, microseconds(100));
  Request patient = request_at(0), urgent = request_at(1);
  patient.deadline = start + microseconds(200);
  urgent.deadline = urgent.arrival + microseconds(199);
  queue.push(std::move(patient));
  CHECK(take(queue, 1).empty());
  queue.push(std::move(urgent));
  CHECK(take(queue, 1) == Samples{1, 1});
}

TEST_CASE("batch queue: a flush makes all batches ready, in the order of their oldest requests") {
  BatchQueue queue(8, microseconds(100));
  queue.push(request_at(0, 2, DType::f64));
  queue.push(request_at(1, 3));
  CHECK(take(queue, 2, true) == Samples{2});
  CHECK(take(queue, 2, true) == Samples{3});
}

TEST_CASE(
    "batch queue: requests whose deadline is not in the future, or that were stopped, are dropped and leave their place in the batch") {
  BatchQueue queue(3, microseconds(100));
  std::stop_source stop;
  Request late = request_at(0), stopped = request_at(1);
  late.deadline = start + microseconds(50);
  stopped.stop = stop.get_token();
  queue.push(std::move(late));
  queue.push(std::move(stopped));
  queue.push(request_at(2));
  BatchQueue::Dropped before = queue.drop(start + microseconds(49));
  CHECK(before.expired.size() + before.cancelled.size() == 0);
  stop.request_stop();
  const BatchQueue::Dropped dropped = queue.drop(start + microseconds(50));
  CHECK(dropped.expired.size() == 1);
  CHECK(dropped.cancelled.size() == 1);
  CHECK(queue.size() == 1);
  CHECK(take(queue, 50).empty());
  CHECK(queue.next_ready() == start + microseconds(102));
}

TEST_CASE("batch queue: requests join if names, dtypes and shapes beyond the first axis are equal") {
  const NamedTensors x{{"x", Tensor::zeros(DType::f32, {1, 3})}};
  CHECK(serve::can_join(x, {{"x", Tensor::zeros(DType::f32, {5, 3})}}));
  CHECK(!serve::can_join(x, {{"y", Tensor::zeros(DType::f32, {1, 3})}}));
  CHECK(!serve::can_join(x, {{"x", Tensor::zeros(DType::f64, {1, 3})}}));
  CHECK(!serve::can_join(x, {{"x", Tensor::zeros(DType::f32, {1, 4})}}));
  CHECK(!serve::can_join(x, {{"x", Tensor::zeros(DType::f32, {1, 3, 1})}}));
  CHECK(!serve::can_join(x, {{"w", Tensor::zeros(DType::f32, {1, 3})}, {"x", Tensor::zeros(DType::f32, {1, 3})}}));
}

TEST_CASE("wait times: percentiles are those of the latest values") {
  serve::WaitTimes times;
  for (std::size_t i = 0; i < serve::WaitTimes::capacity; ++i) times.add(1e9);
  for (std::size_t i = 0; i < serve::WaitTimes::capacity; ++i) times.add(static_cast<double>(i));
  std::vector<double> us = times.us();
  std::ranges::sort(us);
  CHECK(serve::percentile(us, 0.5) == 2048);
  CHECK(serve::percentile(us, 1) == 4095);
  CHECK(serve::percentile({}, 0.5) == 0);
}

}  // namespace
}  // namespace tenon::test
