// SPDX-License-Identifier: Apache-2.0
// The batcher with a function that the tests control: joining, padding, limits, errors and the end. serve_models.cpp has models.
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "serve_testing.h"

// The references to an exception are counted in libstdc++, which is not instrumented: ThreadSanitizer does not see that the thread which
// frees the result of a future does so after the others have read its exception.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
  return "race:std::__future_base::_Result_base::_Deleter::operator()";
}

namespace tenon::test {
namespace {

using Elements = std::vector<float>;
using Calls = std::vector<Elements>;
using std::chrono::steady_clock;

constexpr std::int64_t long_delay_us = 600'000'000;

TEST_CASE("batcher: requests that wait at the same time run as one call, and each gets its rows") {
  HeldBatcher held({.max_batch = 4, .max_delay_us = long_delay_us});
  std::future<NamedTensors> one = held.submit({1}), two = held.submit({2, 3}), three = held.submit({4});
  CHECK(held.calls_after_release() == Calls{{1, 2, 3, 4}});
  CHECK(result_of(held.first) == Elements{0});
  CHECK(result_of(one) == Elements{2});
  CHECK(result_of(two) == Elements{4, 6});
  CHECK(result_of(three) == Elements{8});
}

TEST_CASE("batcher: a full batch runs without a delay, and others follow in order of arrival") {
  HeldBatcher held({.max_batch = 2, .max_delay_us = long_delay_us});
  std::vector<std::future<NamedTensors>> results;
  for (const float x : {1.F, 2.F, 3.F, 4.F}) results.push_back(held.submit({x}));
  held.model.release();
  CHECK(result_of(results[3]) == Elements{8});  // the delay would not end before the test
  CHECK(held.model.calls() == Calls{{0}, {1, 2}, {3, 4}});
}

TEST_CASE("batcher: a request that no other joins runs once the delay is over") {
  ControlledModel model;
  Batcher batcher(model.function(), {.max_batch = 8, .max_delay_us = 100});
  CHECK(floats(batcher.run({{"x", rows({5})}}).at("y")) == Elements{10});
  CHECK(model.calls() == Calls{{5}});
  CHECK(batcher.counts().wait_max_us >= 100);
}

TEST_CASE("batcher: requests with other dtypes or shapes form batches of their own") {
  HeldBatcher held({.max_batch = 8, .max_delay_us = long_delay_us});
  std::future<NamedTensors> a = held.submit({1});
  std::future<NamedTensors> b = held.batcher->submit({{"x", rows({2}).to(DType::f64)}});
  std::future<NamedTensors> c = held.submit({3});
  std::future<NamedTensors> d = held.batcher->submit({{"x", Tensor::of<float>({4, 5}, {1, 2})}});
  CHECK(held.calls_after_release() == Calls{{1, 3}, {2}, {4, 5}});
  CHECK(result_of(c) == Elements{6});
  CHECK(result_of(b) == Elements{4});
  CHECK(result_of(d) == Elements{8, 10});
}

TEST_CASE("batcher: the function is called with allowed sizes only, and results of padding are dropped") {
  for (const BatchPadding padding : {BatchPadding::last_row, BatchPadding::zeros}) {
    HeldBatcher held({.max_batch = 6, .max_delay_us = long_delay_us, .padding = padding});
    CHECK(held.batcher->options().batch_sizes == std::vector<std::int64_t>{1, 2, 4, 6});
    std::vector<std::future<NamedTensors>> results;
    for (const float x : {1.F, 2.F, 3.F, 4.F, 5.F}) results.push_back(held.submit({x}));
    const float last = padding == BatchPadding::zeros ? 0 : 5;
    CHECK(held.calls_after_release() == Calls{{1, 2, 3, 4, 5, last}});
    CHECK(result_of(results[4]) == Elements{10});
    CHECK(held.batcher->counts().padding == 1);
    CHECK(held.batcher->counts().samples == 6);
  }
}

TEST_CASE("batcher: batch_sizes are those of the caller") {
  ControlledModel model;
  Batcher batcher(model.function(), {.max_batch = 3, .max_delay_us = 0, .batch_sizes = {4}});
  CHECK(floats(batcher.run({{"x", rows({1})}}).at("y")) == Elements{2});
  CHECK(model.calls() == Calls{{1, 1, 1, 1}});
}

TEST_CASE("batcher: strided inputs are joined, and one without company is as the caller passed it") {
  ControlledModel model;
  Batcher batcher(model.function(), {.max_batch = 4, .max_delay_us = 0});
  const Tensor table = Tensor::of<float>({1, 2, 3, 4}, {2, 2});
  CHECK(floats(batcher.run({{"x", table.narrow(1, 1, 1)}}).at("y")) == Elements{4, 8});
}

TEST_CASE("batcher: try_submit refuses a request while the queue is full, and counts it") {
  HeldBatcher held({.max_batch = 1, .max_queue = 2});
  std::future<NamedTensors> a = held.submit({1}), b = held.submit({2});
  CHECK(!held.batcher->try_submit({{"x", rows({3})}}).has_value());
  CHECK(held.batcher->counts().queued == 2);
  CHECK(held.batcher->counts().rejected == 1);
  held.model.release();
  CHECK(result_of(b) == Elements{4});
  std::optional<std::future<NamedTensors>> c = held.batcher->try_submit({{"x", rows({3})}});
  REQUIRE(c.has_value());
  CHECK(result_of(*c) == Elements{6});
}

TEST_CASE("batcher: submit waits until the queue has space") {
  HeldBatcher held({.max_batch = 1, .max_queue = 1});
  std::future<NamedTensors> a = held.submit({1});
  std::future<Elements> b = std::async(std::launch::async, [&held] {
    std::future<NamedTensors> result = held.submit({2});
    return result_of(result);
  });
  CHECK(held.batcher->counts().queued == 1);  // however far the other thread is
  held.model.release();
  CHECK(b.get() == Elements{4});
  CHECK(held.batcher->counts().rejected == 0);
}

TEST_CASE("batcher: a queue that is full does not wait for a full batch") {
  ControlledModel model;
  Batcher batcher(model.function(), {.max_batch = 8, .max_delay_us = long_delay_us, .max_queue = 2});
  std::future<NamedTensors> a = batcher.submit({{"x", rows({1})}}), b = batcher.submit({{"x", rows({2})}});
  CHECK(result_of(a) == Elements{2});
  CHECK(result_of(b) == Elements{4});
}

TEST_CASE("batcher: a request whose deadline passes in the queue is not run, and its error says so") {
  HeldBatcher held({.max_batch = 4, .max_delay_us = 0});
  const steady_clock::time_point deadline = steady_clock::now() + std::chrono::milliseconds(1);
  std::future<NamedTensors> late = held.submit({1}, {.deadline = deadline}), other = held.submit({2});
  while (steady_clock::now() < deadline) std::this_thread::sleep_until(deadline);  // MinGW sleeps whole milliseconds, rounded down
  CHECK(held.calls_after_release() == Calls{{2}});
  const Failure failure = error_of(late);
  CHECK(failure.status == Status::not_ready);
  CHECK_MESSAGE(contains(failure.text, "the deadline of the request has passed"), failure.text);
  CHECK(result_of(other) == Elements{4});
  CHECK(held.batcher->counts().expired == 1);
}

TEST_CASE("batcher: a request whose deadline has passed, or that was stopped, does not enter the queue") {
  std::stop_source stop;
  stop.request_stop();
  HeldBatcher held({.max_batch = 1, .max_queue = 1});
  std::future<NamedTensors> late = held.submit({1}, {.deadline = steady_clock::now()});
  std::future<NamedTensors> stopped = held.submit({1}, {.stop = stop.get_token()});
  std::optional<std::future<NamedTensors>> tried = held.batcher->try_submit({{"x", rows({1})}}, {.deadline = steady_clock::now()});
  CHECK(error_of(late).status == Status::not_ready);
  CHECK(error_of(stopped).status == Status::cancelled);
  CHECK(error_of(tried.value()).status == Status::not_ready);
  CHECK(held.calls_after_release().empty());
}

TEST_CASE("batcher: a submit that waits for space ends by its deadline or its stop token") {
  HeldBatcher held({.max_batch = 1, .max_queue = 1});
  std::future<NamedTensors> a = held.submit({1});
  std::future<NamedTensors> late = held.submit({2}, {.deadline = steady_clock::now() + std::chrono::milliseconds(1)});
  CHECK(error_of(late).status == Status::not_ready);
  std::stop_source stop;
  std::future<Status> stopped = std::async(std::launch::async, [&held, &stop] {
    std::future<NamedTensors> result = held.submit({3}, {.stop = stop.get_token()});
    return error_of(result).status;
  });
  stop.request_stop();
  CHECK(stopped.get() == Status::cancelled);
  CHECK(held.calls_after_release() == Calls{{1}});
}

TEST_CASE("batcher: a request that is stopped in the queue is not run") {
  HeldBatcher held({.max_batch = 4, .max_delay_us = 0});
  std::stop_source stop;
  std::future<NamedTensors> stopped = held.submit({1}, {.stop = stop.get_token()}), other = held.submit({2});
  stop.request_stop();
  CHECK(held.calls_after_release() == Calls{{2}});
  const Failure failure = error_of(stopped);
  CHECK(failure.status == Status::cancelled);
  CHECK_MESSAGE(contains(failure.text, "cancelled by its stop token"), failure.text);
  CHECK(held.batcher->counts().cancelled == 1);
}

TEST_CASE("batcher: an error reaches only the request that causes it") {
  HeldBatcher held({.max_batch = 4, .max_delay_us = long_delay_us});
  std::future<NamedTensors> a = held.submit({1}), bad = held.submit({-1}), c = held.submit({3});
  CHECK(held.calls_after_release() == Calls{{1, -1, 3, 3}, {1}, {-1}, {3}});
  CHECK(result_of(a) == Elements{2});
  CHECK_THROWS_WITH_AS(static_cast<void>(bad.get()), "a negative element", std::runtime_error);
  CHECK(result_of(c) == Elements{6});
  const BatcherCounts counts = held.batcher->counts();
  CHECK(counts.batches == 2);
  CHECK(counts.split_batches == 1);
  CHECK(counts.failed == 1);
  CHECK(counts.completed == 3);
}

TEST_CASE("batcher: an error of a batch of one request is not tried again") {
  ControlledModel model;
  Batcher batcher(model.function(), {.max_delay_us = 0});
  std::future<NamedTensors> bad = batcher.submit({{"x", rows({-1, 2})}});
  CHECK_THROWS_AS(static_cast<void>(bad.get()), std::runtime_error);
  CHECK(model.calls() == Calls{{-1, 2}});
  CHECK(floats(batcher.run({{"x", rows({1})}}).at("y")) == Elements{2});
}

TEST_CASE("batcher: an output without the batch as its first axis is an error that names it") {
  for (const Shape& shape : {Shape{}, Shape{3}, Shape{1, 2}}) {
    Batcher batcher(
        [&shape](const NamedTensors& inputs) {
          return NamedTensors{{"y", inputs.at("x")}, {"mean", Tensor::zeros(DType::f32, shape)}};
        },
        {.max_delay_us = 0});
    CHECK_ERROR("batcher: output 'mean' is f32" + shape.str() + ", expected the batch of 2 as its first axis",
                static_cast<void>(batcher.run({{"x", rows({1, 2})}})));
  }
}

TEST_CASE("batcher: the results of a request outlive the memory of the function") {
  Tensor memory = rows({0});
  const auto in_place = [&memory](const NamedTensors& inputs) {
    memory.copy_from(inputs.at("x"));
    return NamedTensors{{"y", memory}};
  };
  Batcher batcher(in_place, {.max_batch = 1});
  const NamedTensors one = batcher.run({{"x", rows({1})}}), two = batcher.run({{"x", rows({2})}});
  CHECK(floats(one.at("y")) == Elements{1});
  CHECK(floats(two.at("y")) == Elements{2});
}

TEST_CASE("batcher: the destructor refuses what waits and completes what runs") {
  HeldBatcher held({.max_batch = 1});
  std::future<NamedTensors> waiting = held.submit({1});
  std::thread destroyer([&held] { held.batcher.reset(); });
  const Failure failure = error_of(waiting);  // before the batch that runs has ended
  CHECK(failure.status == Status::cancelled);
  CHECK_MESSAGE(contains(failure.text, "destroyed while the request waited"), failure.text);
  held.model.release();
  destroyer.join();
  CHECK(result_of(held.first) == Elements{0});
  CHECK(held.model.calls() == Calls{{0}});
}

TEST_CASE("batcher: close runs what waits, and later requests are errors") {
  HeldBatcher held({.max_batch = 8, .max_delay_us = long_delay_us});
  std::future<NamedTensors> waiting = held.submit({1});
  CHECK(held.calls_after_release() == Calls{{1}});
  CHECK(result_of(waiting) == Elements{2});
  CHECK_ERROR_CONTAINS("expected a request before close()", static_cast<void>(held.submit({2})));
  CHECK_ERROR_CONTAINS("expected a request before close()", static_cast<void>(held.batcher->try_submit({{"x", rows({2})}})));
  held.batcher->close();
}

TEST_CASE("batcher: close ends a submit that waits for space") {
  HeldBatcher held({.max_batch = 1, .max_queue = 1});
  std::future<NamedTensors> a = held.submit({1});
  std::future<std::string> text =
      std::async(std::launch::async, [&held] { return message_of([&held] { static_cast<void>(held.submit({2})); }); });
  std::thread closer([&held] { held.batcher->close(); });
  CHECK(contains(text.get(), "expected a request before close()"));
  held.model.release();
  closer.join();
  CHECK(result_of(a) == Elements{2});
}

TEST_CASE("batcher: requests of many threads all get their own results, and the counts add up") {
  constexpr int threads = 8, requests = 100;
  ControlledModel model;
  Batcher batcher(model.function(), {.max_batch = 8, .max_delay_us = 50, .max_queue = 4});
  std::vector<int> wrong(threads, 0);
  {
    std::vector<std::jthread> clients;
    for (int t = 0; t < threads; ++t) {
      clients.emplace_back([&batcher, &wrong, t] {
        for (int i = 0; i < requests; ++i) {
          const auto x = static_cast<float>(t * requests + i);
          if (floats(batcher.run({{"x", rows({x})}}).at("y")) != Elements{2 * x}) ++wrong[static_cast<std::size_t>(t)];
        }
      });
    }
  }
  CHECK(wrong == std::vector<int>(threads, 0));
  const BatcherCounts counts = batcher.counts();
  CHECK(counts.requests == threads * requests);
  CHECK(counts.completed == threads * requests);
  CHECK(counts.samples == threads * requests);
  CHECK(counts.batches == model.calls().size());
  CHECK(counts.mean_batch() == doctest::Approx(static_cast<double>(counts.samples) / static_cast<double>(counts.batches)));
  CHECK(counts.queued == 0);
  CHECK(counts.wait_p50_us <= counts.wait_p90_us);
  CHECK(counts.wait_p90_us <= counts.wait_p99_us);
  CHECK(counts.wait_p99_us <= counts.wait_max_us);
}

TEST_CASE("batcher: invalid requests are errors of submit that name the input") {
  ControlledModel model;
  Batcher batcher(model.function(), {.max_batch = 2});
  const auto submit = [&batcher](NamedTensors inputs) { static_cast<void>(batcher.submit(std::move(inputs))); };
  CHECK_ERROR("batcher: expected a request with at least one input, got none", submit({}));
  CHECK_ERROR("batcher: input 'x' is an undefined tensor", submit({{"x", Tensor()}}));
  CHECK_ERROR("batcher: input 'x' is f32(), expected a first axis of samples", submit({{"x", Tensor::scalar(1.F)}}));
  CHECK_ERROR("batcher: input 'x' is f32(0,1), expected at least one sample", submit({{"x", rows({})}}));
  CHECK_ERROR("batcher: input 'y' is f32(2,1), expected 1 sample, as input 'x' has", submit({{"x", rows({1})}, {"y", rows({1, 2})}}));
  CHECK_ERROR("batcher: a request of 3 samples, expected at most 2 (max_batch): divide it into several requests",
              submit({{"x", rows({1, 2, 3})}}));
  CHECK(batcher.counts().requests == 0);
}

TEST_CASE("batcher: invalid options are errors that name the option") {
  ControlledModel model;
  const auto make = [&model](const BatcherOptions& options) { const Batcher batcher(model.function(), options); };
  CHECK_ERROR("batcher: max_batch: expected at least 1, got 0", make({.max_batch = 0}));
  CHECK_ERROR("batcher: max_delay_us: expected 0 to 1000000000, got -1", make({.max_delay_us = -1}));
  CHECK_ERROR("batcher: max_queue: expected at least 1, got 0", make({.max_queue = 0}));
  CHECK_ERROR("batcher: batch_sizes: expected sizes of at least 1 in ascending order, got 2, 2, 8", make({.batch_sizes = {2, 2, 8}}));
  CHECK_ERROR("batcher: batch_sizes: expected the last to be at least max_batch, 8, got 1, 4", make({.batch_sizes = {1, 4}}));
  CHECK_ERROR("batcher: expected a function that computes outputs, got none", const Batcher batcher(Batcher::Function{}));
}

}  // namespace
}  // namespace tenon::test
