// SPDX-License-Identifier: Apache-2.0
// Batches and training together: the order of events, failures that reach fit, and early ends.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "data_testing.h"
#include "testing.h"

namespace tenon::test {
namespace {

/// A log such as "read 3 begins", "train 2 ends", in one order under a mutex. No clock is used.
class Events {
 public:
  void add(const std::string& what) {
    const std::lock_guard lock(mutex_);
    events_.push_back(what);
    changed_.notify_all();
  }
  /// False if it does not come within a minute; only a failing test waits that long.
  bool wait_for(const std::string& what) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::minutes(1),
                             [&] { return std::find(events_.begin(), events_.end(), what) != events_.end(); });
  }
  /// The index of an event that must occur once.
  std::int64_t place(const std::string& what) {
    const std::lock_guard lock(mutex_);
    CHECK_MESSAGE(std::count(events_.begin(), events_.end(), what) == 1, what);
    return std::find(events_.begin(), events_.end(), what) - events_.begin();
  }
  bool has(const std::string& what) {
    const std::lock_guard lock(mutex_);
    return std::find(events_.begin(), events_.end(), what) != events_.end();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> events_;
};

std::string read_event(std::int64_t batch, const char* what) {
  return "read " + std::to_string(batch) + " " + what;
}
std::string train_event(std::int64_t batch, const char* what) {
  return "train " + std::to_string(batch) + " " + what;
}

/// x = (i, 1), y = 3 i + 1, unshuffled in batches of `batch_size`; logs each batch that is read.
class Recorded final : public Dataset {
 public:
  Recorded(std::int64_t size, std::int64_t batch_size, Events* events)
      : Dataset({DType::f32, {2}}, {DType::f32, {1}}), size_(size), batch_size_(batch_size), events_(events) {}
  const std::string& name() const override { return name_; }
  std::int64_t size() const override { return size_; }
  void gather(std::span<const std::int64_t> indices, std::span<Tensor> inputs, std::span<Tensor> targets) const override {
    const std::int64_t batch = indices[0] / batch_size_;
    if (events_ != nullptr) events_->add(read_event(batch, "begins"));
    for (std::size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] == fails_at) throw std::runtime_error("recorded: the picture is torn");
      inputs[0].data<float>()[2 * i] = static_cast<float>(indices[i]) / static_cast<float>(size_);
      inputs[0].data<float>()[2 * i + 1] = 1;
      targets[0].data<float>()[i] = 3 * inputs[0].data<float>()[2 * i] + 1;
    }
    if (events_ != nullptr) events_->add(read_event(batch, "ends"));
  }
  std::int64_t fails_at = -1;

 private:
  const std::string name_ = "recorded";
  const std::int64_t size_, batch_size_;
  Events* events_;
};

Model line_model(const Context& context) {
  Model model({layers::Dense{1}});
  model.compile(context, {.loss = {.loss = Loss::mse}});
  return model;
}

/// Runs a function at the end of each batch.
struct AtBatchEnd final : Callback {
  explicit AtBatchEnd(std::function<void(std::int64_t)> what) : action(std::move(what)) {}
  void batch_end(std::int64_t batch, const Logs&, const BatchResult&) override { action(batch); }
  std::function<void(std::int64_t)> action;
};

}  // namespace

TEST_CASE("prefetch: batch n + 1 is read while n is in use, up to the depth of the ring") {
  for (const int workers : {1, 2, 4}) {
    for (const int prefetch : {1, 3}) {
      CAPTURE(workers);
      CAPTURE(prefetch);
      Events events;
      constexpr std::int64_t count = 12;
      const auto data = std::make_shared<Recorded>(4 * count, 4, &events);
      Batches batches(data, {.batch_size = 4, .shuffle = false, .workers = workers, .prefetch = prefetch});
      batches.start(0);
      for (std::int64_t n = 0; n < count; ++n) {
        REQUIRE(batches.next() != nullptr);
        events.add(train_event(n, "begins"));
        // Training does not end before the next batches are read: if reading waited for training, this would deadlock.
        for (std::int64_t ahead = n + 1; ahead <= std::min(n + prefetch, count - 1); ++ahead) {
          REQUIRE(events.wait_for(read_event(ahead, "ends")));
        }
        CHECK_FALSE(events.has(read_event(n + prefetch + 1, "begins")));  // its memory is that of the batch in use
        events.add(train_event(n, "ends"));
      }
      CHECK(batches.next() == nullptr);
      for (std::int64_t n = 0; n + 1 < count; ++n) {
        CHECK(events.place(read_event(n + 1, "ends")) < events.place(train_event(n, "ends")));
        CHECK(events.place(read_event(n, "ends")) < events.place(train_event(n, "begins")));
      }
      for (std::int64_t n = 0; n + prefetch + 1 < count; ++n) {
        CHECK(events.place(train_event(n, "ends")) < events.place(read_event(n + prefetch + 1, "begins")));
      }
    }
  }
}

TEST_CASE("prefetch: without workers each batch is read on request") {
  Events events;
  Batches batches(std::make_shared<Recorded>(12, 4, &events), {.batch_size = 4, .shuffle = false, .workers = 0});
  batches.start(0);
  for (std::int64_t n = 0; n < 3; ++n) {
    CHECK_FALSE(events.has(read_event(n, "begins")));
    REQUIRE(batches.next() != nullptr);
    CHECK(events.has(read_event(n, "ends")));
  }
}

TEST_CASE_FIXTURE(OnOpenblas, "prefetch: fit trains on a batch while the next ones are read") {
  Events events;
  Model model = line_model(context);
  // The end of a batch, before fit requests the next one: all that has been read by then was read ahead.
  AtBatchEnd wait([&](std::int64_t n) {
    for (std::int64_t ahead = n + 1; ahead <= std::min<std::int64_t>(n + 2, 9); ++ahead) CHECK(events.wait_for(read_event(ahead, "ends")));
  });
  FitOptions options{.batch_size = 4, .shuffle = false, .callbacks = {&wait}};
  model.fit(std::make_shared<Recorded>(40, 4, &events), options);
  CHECK(model.step() == 10);
}

TEST_CASE_FIXTURE(OnOpenblas, "prefetch: an exception of a worker reaches fit with sample, batch and epoch, and the model is unchanged") {
  for (const int workers : {0, 1, 4}) {
    const auto data = std::make_shared<Recorded>(40, 4, nullptr);
    data->fails_at = 22;
    Model model = line_model(context);
    FitOptions options{.batch_size = 4, .shuffle = false, .workers = workers};
    CHECK_ERROR_CONTAINS("recorded: the picture is torn (sample 22, batch 6 of 10, epoch 1)", model.fit(data, options));
    CHECK(model.step() == 5);
    data->fails_at = -1;
    CHECK_NOTHROW(model.fit(data, options));
  }
}

TEST_CASE_FIXTURE(OnOpenblas, "prefetch: order and training are the same for any number of workers") {
  std::vector<double> expected;
  for (const int workers : {0, 1, 2, 4}) {
    Model model = line_model(context);
    std::vector<double> losses;
    FitOptions options{.batch_size = 5, .epochs = 3, .workers = workers};
    for (const EpochLogs& epoch : model.fit(std::make_shared<Recorded>(103, 5, nullptr), options)) losses.push_back(epoch.logs[0].second);
    if (workers == 0) expected = losses;
    CHECK(losses == expected);
  }
}

TEST_CASE_FIXTURE(OnOpenblas, "prefetch: fit may be left early many times without a deadlock") {
  Model model = line_model(context);
  for (std::int64_t round = 0; round < 60; ++round) {
    AtBatchEnd leave([&](std::int64_t n) {
      if (n == round % 7) throw Error("enough");
    });
    FitOptions options{.batch_size = 4, .epochs = 1000, .workers = static_cast<int>(round % 5), .callbacks = {&leave}};
    CHECK_ERROR_CONTAINS("enough", model.fit(std::make_shared<Recorded>(40, 4, nullptr), options));
  }
}

TEST_CASE("prefetch: batches may be destroyed or restarted at any moment") {
  for (int round = 0; round < 300; ++round) {
    const auto data = std::make_shared<Recorded>(64, 4, nullptr);
    if (round % 3 == 0) data->fails_at = round % 64;
    Batches batches(data, {.batch_size = 4, .seed = 1, .workers = 1 + round % 4, .prefetch = 1 + round % 3});
    for (int start = 0; start < 3; ++start) {
      batches.start(static_cast<std::uint64_t>(start));
      try {
        for (int n = 0; n < round % 6; ++n) (void)batches.next();
      } catch (const Error&) {
      }
    }
  }
}

TEST_CASE_FIXTURE(OnOpenblas, "augment: fit trains on augmented samples, evaluate uses the originals") {
  /// Counts which of the two gather functions was used.
  class Watched final : public Dataset {
   public:
    Watched() : Dataset({DType::f32, {2}}, {DType::f32, {1}}) {}
    const std::string& name() const override { return name_; }
    std::int64_t size() const override { return 8; }
    void gather(std::span<const std::int64_t>, std::span<Tensor> inputs, std::span<Tensor> targets) const override {
      ++plain;
      fill(inputs[0], targets[0]);
    }
    void gather_augmented(std::span<const std::int64_t>, std::uint64_t epoch, std::span<Tensor> inputs,
                          std::span<Tensor> targets) const override {
      changed += 1 + static_cast<int>(100 * epoch);
      fill(inputs[0], targets[0]);
    }
    mutable std::atomic<int> plain{0}, changed{0};

   private:
    static void fill(Tensor& x, Tensor& y) {
      std::fill_n(x.data<float>(), x.count(), 1.0f);
      std::fill_n(y.data<float>(), y.count(), 1.0f);
    }
    const std::string name_ = "watched";
  };
  Model model = line_model(context);
  const auto data = std::make_shared<Watched>();
  model.fit(data, {.batch_size = 4, .epochs = 2});
  CHECK(data->plain == 0);
  CHECK(data->changed == 4 + 200);  // two batches each of epoch 0 and of epoch 1
  model.evaluate(data, 4);
  CHECK(data->plain == 2);
}

}  // namespace tenon::test
