// SPDX-License-Identifier: Apache-2.0
// Copying batches to a device with separate memory: synchronization, and its effect on training.
#include "train/datasets/feed.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <thread>

#include "reel_device.h"

namespace tenon::test {
namespace {

using What = Reel::Note::What;

/// x = (i, 1), y = 3 i + 1.
class Line final : public Dataset {
 public:
  explicit Line(std::int64_t size, bool weighted = false) : Dataset({DType::f32, {2}}, {DType::f32, {1}}), size_(size) {
    if (!weighted) return;
    weights_ = Tensor::empty(DType::f32, {size});
    for (std::int64_t i = 0; i < size; ++i) weights_.data<float>()[i] = static_cast<float>(i % 3);
  }
  const std::string& name() const override { return name_; }
  std::int64_t size() const override { return size_; }
  Tensor sample_weights() const override { return weights_; }
  void gather(std::span<const std::int64_t> indices, std::span<Tensor> inputs, std::span<Tensor> targets) const override {
    check_batch(indices, inputs, targets);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] == fails_at) throw std::runtime_error("line: it is bent");
      inputs[0].data<float>()[2 * i] = static_cast<float>(indices[i]) / static_cast<float>(size_);
      inputs[0].data<float>()[2 * i + 1] = 1;
      targets[0].data<float>()[i] = 3 * inputs[0].data<float>()[2 * i] + 1;
    }
  }
  std::int64_t fails_at = -1;

 private:
  const std::string name_ = "line";
  const std::int64_t size_;
  Tensor weights_;
};

constexpr std::int64_t batch_size = 4;
constexpr std::uint64_t x_bytes = batch_size * 2 * sizeof(float);

Model line_model(const Context& context) {
  Model model({layers::Dense{1}});
  CompileOptions options;
  options.loss.loss = Loss::mse;
  options.optimizer.kind = OptimizerDefinition::Kind::sgd;  // with sgd no other copy has the size of x
  model.compile(context, options);
  model.build({2});
  return model;
}

FitOptions fit_options(int workers, std::int64_t epochs = 1) {
  return {.batch_size = batch_size, .epochs = epochs, .workers = workers};
}

struct AtBatchEnd final : Callback {
  explicit AtBatchEnd(std::function<void(std::int64_t)> what) : action(std::move(what)) {}
  void batch_end(std::int64_t batch, const Logs&, const BatchResult&) override { action(batch); }
  std::function<void(std::int64_t)> action;
};

/// Copies of x so far. Called with Reel's mutex.
std::int64_t copies_of_x() {
  return std::ranges::count_if(Reel::notes,
                               [](const Reel::Note& note) { return note.what == What::uploaded && note.size_bytes == x_bytes; });
}

struct Fitted {
  std::vector<double> losses;
  std::vector<float> weights;
  bool operator==(const Fitted&) const = default;
};

Fitted fit(const Context& context, const std::shared_ptr<const Dataset>& data, const FitOptions& options) {
  Model model = line_model(context);
  Fitted result;
  for (const EpochLogs& epoch : model.fit(data, options)) {
    for (const auto& [name, value] : epoch.logs) result.losses.push_back(value);
  }
  for (const auto& [name, tensor] : model.parameters().all()) {
    const std::vector<float> values = floats(tensor);
    result.weights.insert(result.weights.end(), values.begin(), values.end());
  }
  return result;
}

}  // namespace

TEST_CASE_FIXTURE(OnReel, "feed: the copy of batch n + 1 is submitted while step n runs") {
  Model model = line_model(context);
  Reel::reset();
  std::int64_t step = 0;
  Reel::before_execution = [&] {
    // The step does not continue before the next batch is copied: if the copy waited for the step, this would deadlock.
    std::unique_lock lock(Reel::mutex);
    CHECK(Reel::changed.wait_for(lock, std::chrono::minutes(1), [&] { return copies_of_x() >= std::min<std::int64_t>(step + 2, 10); }));
    CHECK(copies_of_x() <= step + 3);  // the last one at most into the buffer of this step, for which the device waits
    ++step;
  };
  model.fit(std::make_shared<Line>(10 * batch_size), fit_options(1));
  CHECK(step == 10);
}

TEST_CASE_FIXTURE(OnReel, "feed: a step waits for the copy of its batch, a copy for the step that read its buffer before") {
  Model model = line_model(context);
  Reel::reset();
  model.fit(std::make_shared<Line>(10 * batch_size), fit_options(2, 3));
  std::vector<std::size_t> copies, steps;
  for (std::size_t i = 0; i < Reel::notes.size(); ++i) {
    const Reel::Note& note = Reel::notes[i];
    if (note.what == What::executed) steps.push_back(i);
    if (note.what == What::uploaded && note.size_bytes == x_bytes) copies.push_back(i);
  }
  REQUIRE(copies.size() == 30);
  REQUIRE(steps.size() == 30);
  const void* const copying = Reel::notes[copies[0]].stream;
  /// True if an event is recorded on one stream after `first` and waited for on the other before `second`.
  const auto ordered = [&](std::size_t first, std::size_t second, bool copy_first) {
    std::set<std::uint64_t> marked;
    for (std::size_t i = first; i < second; ++i) {
      const Reel::Note& note = Reel::notes[i];
      const bool on_copying = note.stream == copying;
      if (note.what == What::marked && on_copying == copy_first) marked.insert(note.event);
      if (note.what == What::waited && on_copying != copy_first && marked.contains(note.event)) return true;
    }
    return false;
  };
  for (std::size_t n = 0; n < 30; ++n) {
    CAPTURE(n);
    CHECK(ordered(copies[n], steps[n], true));
    CHECK(Reel::notes[copies[n]].stream == copying);
    if (n >= 2) CHECK(ordered(steps[n - 2], copies[n], false));
    if (n >= 2) CHECK(Reel::notes[copies[n]].address == Reel::notes[copies[n - 2]].address);
    if (n >= 1) CHECK(Reel::notes[copies[n]].address != Reel::notes[copies[n - 1]].address);
  }
}

TEST_CASE("feed: training matches that of batches read one by one, bit for bit, with a smaller last batch and sample weights") {
  for (const auto& [capture, weighted] : {std::pair{Capture::off, false}, {Capture::automatic, false}, {Capture::automatic, true}}) {
    const auto data = std::make_shared<Line>(10 * batch_size + 3, weighted);
    Config config = test_config();
    config.capture = capture;
    const Context context = with_reel(config);
    FitOptions options = fit_options(0, 3);
    options.validation = std::make_shared<Line>(7);
    const Fitted serial = fit(context, data, options);
    for (const int workers : {1, 3}) {
      for (const bool pinned : {true, false}) {
        options.workers = workers;
        options.pinned = pinned;
        CHECK(fit(context, data, options) == serial);
      }
    }
    CHECK(fit(Context(test_config()), data, options) == serial);  // the reference backend, which copies nothing
    options = fit_options(2, 3);
    options.validation = std::make_shared<Line>(7);
    options.accumulate = 3;
    const Fitted summed = fit(context, data, options);
    options.workers = 0;
    CHECK(fit(context, data, options) == summed);
  }
}

TEST_CASE_FIXTURE(OnReel, "feed: steps are replayed, with a recording for each of the two buffers, from one fit to the next") {
  Model model = line_model(context);
  const auto data = std::make_shared<Line>(9 * batch_size);  // an odd number: epochs begin with the buffer that they end with
  model.fit(data, fit_options(1, 3));
  CHECK(Reel::recorded == 2);
  CHECK(Reel::replayed == 3 * 9 - 4);
  model.fit(data, fit_options(2, 5));
  CHECK(Reel::recorded == 2);
  CHECK(Reel::replayed == 5 * 9 - 4);
}

TEST_CASE_FIXTURE(OnReel, "feed: evaluating in the middle of an epoch disturbs nothing") {
  const auto data = std::make_shared<Line>(10 * batch_size);
  const Fitted undisturbed = fit(context, data, fit_options(1, 2));
  Model model = line_model(context);
  AtBatchEnd evaluate([&](std::int64_t) { model.evaluate(data, batch_size); });
  FitOptions options = fit_options(1, 2);
  options.callbacks = {&evaluate};
  Fitted disturbed;
  for (const EpochLogs& epoch : model.fit(data, options)) disturbed.losses.push_back(epoch.logs[0].second);
  CHECK(disturbed.losses == undisturbed.losses);
}

TEST_CASE_FIXTURE(OnReel, "feed: batches are read into pinned memory if enabled and available") {
  const auto data = std::make_shared<Line>(10 * batch_size);
  FitOptions options = fit_options(1);
  options.prefetch = 3;
  const Fitted pinned = fit(context, data, options);
  CHECK(Reel::pinned == 2 * (3 + 1) + 1);  // x and y of the batches read ahead and of the one being copied, and scalars of the steps
  Reel::pinned = 0;
  Reel::no_pinned = true;
  CHECK(fit(context, data, options) == pinned);
  Reel::no_pinned = false;
  options.pinned = false;
  CHECK(fit(context, data, options) == pinned);
  CHECK(Reel::pinned == 1);
}

TEST_CASE_FIXTURE(OnReel, "feed: an exception of a reader reaches fit with its batch, after the steps before it") {
  for (const int workers : {1, 4}) {
    const auto data = std::make_shared<Line>(10 * batch_size);
    data->fails_at = 22;
    Model model = line_model(context);
    FitOptions options = fit_options(workers);
    options.shuffle = false;
    const std::string text = message_of([&] { model.fit(data, options); });
    CHECK(contains(text, "line: it is bent (sample 22, batch 6 of 10, epoch 1)"));
    CHECK(model.step() == 5);
    data->fails_at = -1;
    CHECK_NOTHROW(model.fit(data, options));
    CHECK(model.step() == 10);
  }
}

TEST_CASE_FIXTURE(OnReel, "feed: a copy that fails reaches fit, and the model can be fitted further") {
  Model model = line_model(context);
  const auto data = std::make_shared<Line>(10 * batch_size);
  model.fit(data, fit_options(1));
  Reel::copies_left = 12;
  const std::string text = message_of([&] { model.fit(data, fit_options(1, 2)); });
  CHECK(contains(text, "device 'reel:0'"));
  CHECK(contains(text, "a copy of "));
  const std::int64_t step = model.step();
  CHECK(step < 20);
  model.fit(data, fit_options(1, 2));
  CHECK(model.step() == 20);
}

TEST_CASE_FIXTURE(OnReel, "feed: fit may be left early many times without a deadlock") {
  Model model = line_model(context);
  for (std::int64_t round = 0; round < 60; ++round) {
    AtBatchEnd leave([&](std::int64_t n) {
      if (n != round % 7) return;
      if (round % 2 == 0) throw Error("enough");
      model.stop("enough");
    });
    FitOptions options = fit_options(1 + static_cast<int>(round % 4), 1000);
    options.callbacks = {&leave};
    const std::string text = message_of([&] { model.fit(std::make_shared<Line>(10 * batch_size), options); });
    CHECK(contains(text, "enough") == (round % 2 == 0));
  }
}

TEST_CASE_FIXTURE(OnReel, "feed: it may be destroyed or restarted at any moment") {
  train::FeedBuffers buffers;
  for (int round = 0; round < 200; ++round) {
    const auto data = std::make_shared<Line>(64);
    if (round % 3 == 0) data->fails_at = round % 64;
    train::FeedOptions options;
    options.batches = {.batch_size = batch_size, .seed = 1, .workers = 1 + round % 3, .prefetch = 1 + round % 3};
    options.device = context.default_device();
    train::Feed feed(data, options, buffers);
    for (int start = 0; start < 3; ++start) {
      feed.start(static_cast<std::uint64_t>(start));
      try {
        for (int n = 0; n < round % 6; ++n) (void)feed.next();
      } catch (const Error&) {
      }
    }
  }
}

TEST_CASE_FIXTURE(OnReel, "feed: it gives each batch once, in order, from the start position, then none; an error is repeated") {
  train::FeedBuffers buffers;
  const auto data = std::make_shared<Line>(22);
  train::FeedOptions options;
  options.batches = {.batch_size = batch_size, .shuffle = false, .workers = 2};
  options.device = context.default_device();
  train::Feed feed(data, options, buffers);
  CHECK_ERROR_CONTAINS("call start() first", (void)feed.next());
  for (const std::int64_t first : {0, 3, 6}) {
    feed.start(0, first);
    for (std::int64_t n = first; n < 6; ++n) {
      const Batch* const batch = feed.next();
      REQUIRE(batch != nullptr);
      CHECK(batch->index == n);
      CHECK_FALSE(batch->x().on_host());
      CHECK(batch->x().shape() == Shape{n == 5 ? 2 : 4, 2});
      CHECK(batch->indices[0] == 4 * n);
      CHECK(floats(batch->x())[0] == static_cast<float>(4 * n) / 22);
      CHECK(floats(batch->y())[0] == 3 * (static_cast<float>(4 * n) / 22) + 1);
    }
    CHECK(feed.next() == nullptr);
    CHECK(feed.next() == nullptr);
  }
  data->fails_at = 0;
  feed.start(1);
  for (int i = 0; i < 3; ++i) CHECK_ERROR_CONTAINS("it is bent", (void)feed.next());
  data->fails_at = -1;
  feed.start(1);
  CHECK(feed.next() != nullptr);
}

TEST_CASE_FIXTURE(OnReference, "feed: where the device uses the host's memory, or several devices read a batch, nothing is copied ahead") {
  train::FeedBuffers buffers;
  train::FeedOptions options;
  options.batches = {.batch_size = batch_size};
  options.device = context.default_device();
  train::Feed feed(std::make_shared<Line>(16), options, buffers);
  feed.start(0);
  CHECK(feed.next()->x().on_host());
  CHECK(buffers.inputs[0].empty());

  const Context far = with_reel(test_config());
  std::vector<LayerDefinition> layers{layers::Dense{3}, layers::Dense{1}};
  layers[1].device = "reference:0";
  Model model(layers);
  model.compile(far, {.loss = {.loss = Loss::mse}});
  model.build({2});
  Reel::reset();
  model.fit(std::make_shared<Line>(16), fit_options(1));
  CHECK(Reel::pinned == 0);
}

}  // namespace tenon::test
