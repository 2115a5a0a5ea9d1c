// SPDX-License-Identifier: Apache-2.0
// The batches of an epoch: order, reuse of memory, prefetching, failures and early ends.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include <tenon/data.h>

#include "data/shuffle.h"
#include "malloc_counter.h"
#include "testing.h"

using namespace tenon;
using namespace tenon::test;

namespace {

/// Sample i is x = (i, i + 0.5), y = i. Records which thread gathers what, can block and fail.
class ProbedData final : public Dataset {
 public:
  explicit ProbedData(std::int64_t size) : Dataset({DType::f32, {2}}, {DType::i64, {}}), size_(size) {}
  const std::string& name() const override { return name_; }
  std::int64_t size() const override { return size_; }
  void gather(std::span<const std::int64_t> indices, std::span<Tensor> inputs, std::span<Tensor> targets) const override {
    check_batch(indices, inputs, targets);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] == fails_at) throw Error("probe: sample " + std::to_string(indices[i]) + " is unreadable");
      inputs[0].data<float>()[2 * i] = static_cast<float>(indices[i]);
      inputs[0].data<float>()[2 * i + 1] = static_cast<float>(indices[i]) + 0.5f;
      targets[0].data<std::int64_t>()[i] = indices[i];
    }
    if (pause.count() > 0) std::this_thread::sleep_for(pause);
    const std::lock_guard lock(mutex_);
    ++gathered_;
    threads_.insert(std::this_thread::get_id());
    changed_.notify_all();
  }

  /// True once `count` batches have been gathered; false if that does not happen in ten seconds.
  bool wait_for(std::int64_t count) const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10), [&] { return gathered_ >= count; });
  }
  std::int64_t gathered() const {
    const std::lock_guard lock(mutex_);
    return gathered_;
  }
  std::set<std::thread::id> threads() const {
    const std::lock_guard lock(mutex_);
    return threads_;
  }

  bool is_in_memory() const override { return in_memory; }

  bool in_memory = false;
  std::int64_t fails_at = -1;
  std::chrono::milliseconds pause{0};

 private:
  const std::string name_ = "probe";
  const std::int64_t size_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable std::int64_t gathered_ = 0;
  mutable std::set<std::thread::id> threads_;
};

BatchOptions options_of(std::int64_t batch_size, int workers, int prefetch = 2) {
  return {.batch_size = batch_size, .seed = 42, .workers = workers, .prefetch = prefetch};
}

/// The labels of the rest of the epoch, after checking that x belongs to them.
std::vector<std::int64_t> drain(Batches& batches) {
  std::vector<std::int64_t> seen;
  while (const Batch* batch = batches.next()) {
    REQUIRE(batch->x().shape()[0] == batch->y().count());
    REQUIRE(static_cast<std::int64_t>(batch->indices.size()) == batch->y().count());
    for (std::int64_t i = 0; i < batch->y().count(); ++i) {
      const std::int64_t label = batch->y().data<std::int64_t>()[i];
      CHECK(batch->x().data<float>()[2 * i] == static_cast<float>(label));
      CHECK(batch->indices[static_cast<std::size_t>(i)] == label);
      seen.push_back(label);
    }
  }
  return seen;
}

std::vector<std::int64_t> shuffled(std::int64_t size, std::uint64_t seed, std::uint64_t epoch) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(size));
  data::shuffle(order, seed, epoch);
  return order;
}

std::string refusal_of(std::shared_ptr<const Dataset> data, const BatchOptions& options) {
  return message_of([&] { const Batches batches(std::move(data), options); });
}

}  // namespace

TEST_CASE("batches: the order depends on (seed, epoch), not on the number of workers") {
  for (const int workers : {0, 1, 2, 5}) {
    for (const int prefetch : {1, 2, 7}) {
      Batches batches(std::make_shared<ProbedData>(103), options_of(10, workers, prefetch));
      CHECK(batches.count() == 11);
      for (const std::uint64_t epoch : {0, 1, 0}) {
        batches.start(epoch);
        CHECK(drain(batches) == shuffled(103, 42, epoch));
        CHECK(batches.next() == nullptr);
      }
    }
  }
}

TEST_CASE("batches: without shuffling the order is that of the data set") {
  BatchOptions options = options_of(4, 1);
  options.shuffle = false;
  Batches batches(std::make_shared<ProbedData>(10), options);
  batches.start(5);
  std::vector<std::int64_t> message(10);
  std::iota(message.begin(), message.end(), 0);
  CHECK(drain(batches) == message);
}

TEST_CASE("batches: the last one is smaller, or dropped") {
  for (const int workers : {0, 1}) {
    BatchOptions options = options_of(4, workers);
    options.shuffle = false;
    std::vector<std::int64_t> sizes;
    const auto collect = [&] {
      sizes.clear();
      Batches batches(std::make_shared<ProbedData>(10), options);
      batches.start(0);
      while (const Batch* batch = batches.next()) {
        CHECK(batch->index == static_cast<std::int64_t>(sizes.size()));
        sizes.push_back(batch->x().shape()[0]);
      }
      return sizes;
    };
    CHECK(collect() == std::vector<std::int64_t>{4, 4, 2});
    options.drop_last = true;
    CHECK(collect() == std::vector<std::int64_t>{4, 4});
    options.drop_last = false;
    options.batch_size = 100;
    CHECK(collect() == std::vector<std::int64_t>{10});
    options.batch_size = 5;
    CHECK(collect() == std::vector<std::int64_t>{5, 5});
  }
}

TEST_CASE("batches: an epoch resumes where it stopped") {
  for (const int workers : {0, 1, 3}) {
    Batches batches(std::make_shared<ProbedData>(50), options_of(8, workers));
    const std::vector<std::int64_t> whole = shuffled(50, 42, 9);
    for (std::int64_t first = 0; first <= batches.count(); ++first) {
      batches.start(9, first);
      CHECK(drain(batches) == std::vector<std::int64_t>(whole.begin() + std::min<std::int64_t>(8 * first, 50), whole.end()));
    }
    CHECK_ERROR("probe: expected to start at batch 0 to 7, got 8", batches.start(9, 8));
    CHECK_ERROR("probe: expected to start at batch 0 to 7, got -1", batches.start(9, -1));
  }
}

TEST_CASE("batches: the next one is gathered while this one is in use") {
  const auto data = std::make_shared<ProbedData>(100);
  Batches batches(data, options_of(10, 1, 2));
  batches.start(0);
  REQUIRE(batches.next() != nullptr);
  CHECK(data->wait_for(3));  // the one in use and two ahead, though next() was called once
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(data->gathered() == 3);  // not more: the ring is bounded
  REQUIRE(batches.next() != nullptr);
  CHECK(data->wait_for(4));
  CHECK(data->threads().count(std::this_thread::get_id()) == 0);
}

TEST_CASE("batches: a batch in use is not overwritten") {
  Batches batches(std::make_shared<ProbedData>(200), options_of(5, 3, 3));
  batches.start(0);
  while (const Batch* batch = batches.next()) {
    const std::vector<std::int64_t> before(batch->y().data<std::int64_t>(), batch->y().data<std::int64_t>() + batch->y().count());
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    CHECK(std::equal(before.begin(), before.end(), batch->y().data<std::int64_t>()));
  }
}

TEST_CASE("batches: without workers the caller gathers") {
  const auto data = std::make_shared<ProbedData>(30);
  Batches batches(data, options_of(10, 0));
  batches.start(0);
  REQUIRE(batches.next() != nullptr);
  CHECK(data->gathered() == 1);
  CHECK(data->threads() == std::set<std::thread::id>{std::this_thread::get_id()});
}

/// Options with which next() gathers data in memory in four parts, each by a thread of its own.
BatchOptions in_parts(std::int64_t batch_size) {
  BatchOptions options = options_of(batch_size, 1);
  options.gather_parts = 4;
  options.run_parts = [](int count, const std::function<void(int)>& body) {
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) threads.emplace_back([&body, i] { body(i); });
    for (std::thread& thread : threads) thread.join();
  };
  return options;
}

TEST_CASE("batches: data in memory are gathered in parts by the threads that the caller offers, in the order of workers") {
  const auto data = std::make_shared<ProbedData>(10007);
  data->in_memory = true;
  Batches batches(data, in_parts(3000)), by_worker(std::make_shared<ProbedData>(10007), options_of(3000, 1));
  for (const std::uint64_t epoch : {0, 1}) {
    batches.start(epoch);
    by_worker.start(epoch);
    CHECK(drain(batches) == drain(by_worker));
  }
  CHECK(data->gathered() == 2 * 4 * 4);
  CHECK(data->threads().count(std::this_thread::get_id()) == 0);
}

TEST_CASE("batches: small batches in memory are gathered by the caller, other data by the worker") {
  for (const bool in_memory : {true, false}) {
    const auto data = std::make_shared<ProbedData>(30);
    data->in_memory = in_memory;
    Batches batches(data, in_parts(10));
    batches.start(0);
    CHECK(drain(batches).size() == 30);
    CHECK(data->gathered() == 3);
    CHECK(data->threads().count(std::this_thread::get_id()) == (in_memory ? 1 : 0));
  }
}

TEST_CASE("batches: without workers, and with several, nothing is gathered in parts") {
  for (const int workers : {0, 2}) {
    const auto data = std::make_shared<ProbedData>(9000);
    data->in_memory = true;
    BatchOptions options = in_parts(3000);
    options.workers = workers;
    Batches batches(data, options);
    batches.start(0);
    CHECK(drain(batches).size() == 9000);
    CHECK(data->gathered() == 3);
  }
}

TEST_CASE("batches: a failure in one part names the sample") {
  const auto data = std::make_shared<ProbedData>(9000);
  data->in_memory = true;
  data->fails_at = 5123;
  BatchOptions options = in_parts(3000);
  options.shuffle = false;
  Batches batches(data, options);
  batches.start(0);
  REQUIRE(batches.next() != nullptr);
  CHECK_ERROR("probe: sample 5123 is unreadable (sample 5123, batch 2 of 3, epoch 1)", batches.next());
  batches.start(1, 2);
  CHECK(drain(batches).size() == 3000);
}

TEST_CASE("batches: a failure reaches the consumer at its batch, and the next epoch is complete") {
  for (const int workers : {0, 1, 3}) {
    const auto data = std::make_shared<ProbedData>(40);
    data->fails_at = 25;
    BatchOptions options = options_of(10, workers);
    options.shuffle = false;
    Batches batches(data, options);
    batches.start(0);
    REQUIRE(batches.next() != nullptr);
    REQUIRE(batches.next() != nullptr);
    const char* message = "probe: sample 25 is unreadable (sample 25, batch 3 of 4, epoch 1)";
    CHECK_ERROR(message, batches.next());
    CHECK_ERROR(message, batches.next());
    batches.start(1, 3);
    CHECK(drain(batches).size() == 10);
  }
}

TEST_CASE("batches: a shuffle buffer keeps samples near their position, for any number of workers") {
  std::vector<std::int64_t> first;
  for (const int workers : {0, 1, 2, 4}) {
    BatchOptions options = options_of(7, workers);
    options.shuffle_buffer = 5;
    Batches batches(std::make_shared<ProbedData>(60), options);
    batches.start(2);
    const std::vector<std::int64_t> order = drain(batches);
    REQUIRE(order.size() == 60);
    for (std::size_t i = 0; i < order.size(); ++i) CHECK(order[i] < static_cast<std::int64_t>(i) + 5);
    if (workers == 0) first = order;
    CHECK(order == first);
  }
}

TEST_CASE("batches: memory may come from the caller and must fit") {
  BatchOptions options = options_of(10, 1, 2);
  int made = 0;
  options.allocate = [&](DType dtype, const Shape& shape) {
    ++made;
    return Tensor::empty(dtype, shape);
  };
  Batches batches(std::make_shared<ProbedData>(25), options);
  CHECK(made == 6);  // x and y of the batch in use and two ahead
  batches.start(0);
  CHECK(drain(batches).size() == 25);
  CHECK(made == 6);
  options.allocate = [](DType dtype, const Shape&) { return Tensor::empty(dtype, {3}); };
  CHECK(refusal_of(std::make_shared<ProbedData>(25), options) ==
        "probe: expected dense f32(10,2) in host memory for x from the batches' allocate, got f32(3)");
  options.allocate = [](DType, const Shape&) { return Tensor(); };
  CHECK(refusal_of(std::make_shared<ProbedData>(25), options) ==
        "probe: expected dense f32(10,2) in host memory for x from the batches' allocate, got an undefined tensor");
}

TEST_CASE("batches: an epoch may be left at any point, by destruction or by starting another") {
  for (const int workers : {0, 1, 4}) {
    for (int used = 0; used < 12; ++used) {
      const auto data = std::make_shared<ProbedData>(100);
      if (used % 3 == 0) data->pause = std::chrono::milliseconds(1);
      if (used % 4 == 1) data->fails_at = 7;
      Batches batches(data, options_of(10, workers, 1 + used % 3));
      for (int i = 0; i < used % 5; ++i) {
        batches.start(static_cast<std::uint64_t>(i));
        try {
          for (int b = 0; b < used; ++b) (void)batches.next();
        } catch (const Error&) {
        }
      }
    }
  }
}

TEST_CASE("batches: next without start is rejected") {
  Batches batches(std::make_shared<ProbedData>(10), options_of(2, 1));
  CHECK_ERROR("probe: next() without an epoch; call start() first", batches.next());
}

TEST_CASE("batches: invalid options are reported") {
  const auto data = std::make_shared<ProbedData>(10);
  CHECK(refusal_of(nullptr, {}) == "Batches: expected a data set, got none");
  CHECK(refusal_of(std::make_shared<ProbedData>(0), {}) == "probe: expected at least 1 sample, got 0");
  CHECK(refusal_of(data, options_of(0, 1)) == "probe: expected a batch size of at least 1, got 0");
  CHECK(refusal_of(data, options_of(1, -1)) == "probe: expected 0 to 256 data workers, got -1");
  CHECK(refusal_of(data, options_of(1, 1, 0)) == "probe: expected 1 to 4096 batches of prefetch, got 0");
  BatchOptions options = options_of(11, 1);
  options.shuffle_buffer = -1;
  CHECK(refusal_of(data, options) == "probe: expected a shuffle buffer of at least 1 sample, or 0 for all, got -1");
  options.shuffle_buffer = 0;
  options.drop_last = true;
  CHECK(refusal_of(data, options) == "probe: expected at least one batch of 11 samples, since drop_last drops a smaller one, got 10");
}

TEST_CASE("batches: memory is reused, start and next allocate nothing") {
#ifndef TENON_MALLOC_IS_TAKEN
  const Tensor x = Tensor::zeros(DType::u8, {1003, 28, 28}), y = Tensor::zeros(DType::i64, {1003});
  ArrayOptions array;
  array.scaling = Scaling::unit();
  array.num_classes = 10;
  for (const int workers : {0, 1, 2}) {
    Batches batches(std::make_shared<ArrayDataset>(x, y, array), options_of(100, workers));
    batches.start(0);
    REQUIRE(batches.next() != nullptr);
    std::int64_t seen = 0;
    const long before = allocations.load();
    for (std::uint64_t epoch = 1; epoch < 4; ++epoch) {
      batches.start(epoch);
      while (batches.next()) ++seen;
    }
    CHECK(allocations.load() == before);
    CHECK(seen == 33);
  }
#else
  MESSAGE("skipped, because the sanitizer has the allocator");
#endif
}
