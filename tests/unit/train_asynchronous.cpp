// SPDX-License-Identifier: Apache-2.0
// Training on a device that works by itself: fit submits the next step before it reads the results of one.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <stop_token>
#include <tuple>

#include "reel_device.h"
#include "temporary_folder.h"

namespace tenon::test {
namespace {

using What = Reel::Note::What;

constexpr std::int64_t batch_size = 4;

/// x = (i / size, 1), classes 0, 1, 2; one label may be out of range, one x infinite or large, and one sample unreadable.
class Classes final : public Dataset {
 public:
  explicit Classes(std::int64_t size) : Dataset({DType::f32, {2}}, {DType::i64, {}}), size_(size) {}
  const std::string& name() const override { return name_; }
  std::int64_t size() const override { return size_; }
  Tensor sample_weights() const override { return weights; }
  void gather(std::span<const std::int64_t> indices, std::span<Tensor> inputs, std::span<Tensor> targets) const override {
    check_batch(indices, inputs, targets);
    if (std::ranges::find(indices, unreadable_at) != indices.end()) throw std::runtime_error("a bad sector");
    for (std::size_t i = 0; i < indices.size(); ++i) {
      float& x = inputs[0].data<float>()[2 * i];
      x = static_cast<float>(indices[i]) / static_cast<float>(size_);
      if (indices[i] == infinite_at) x = std::numeric_limits<float>::infinity();
      if (indices[i] == large_at) x = 1000;
      inputs[0].data<float>()[2 * i + 1] = 1;
      targets[0].data<std::int64_t>()[i] = indices[i] == wrong_at ? 7 : indices[i] % 3;
    }
  }
  std::int64_t wrong_at = -1, infinite_at = -1, large_at = -1, unreadable_at = -1;
  Tensor weights;

 private:
  const std::string name_ = "classes";
  const std::int64_t size_;
};

/// Dropout, a schedule and Adam: steps with the wrong key, rate or index give other bits.
Model make_model(const Context& context) {
  Model model({layers::Dense{8, Activation::relu}, layers::Dropout{0.25}, layers::Dense{3, Activation::softmax}});
  CompileOptions options;
  options.loss.loss = Loss::sparse_categorical_crossentropy;
  options.metrics = {Metric::accuracy};
  options.optimizer.schedule.kind = Schedule::Kind::exponential;
  options.optimizer.schedule.gamma = 0.9;
  options.optimizer.schedule.per = Schedule::Per::step;
  model.compile(context, options);
  model.build({2});
  return model;
}

/// What a callback got after each batch, and the state of the model that it saw.
struct Seen {
  std::vector<std::int64_t> batches, steps;
  std::vector<Logs> means, results;
  std::vector<double> weights;
  std::vector<bool> taken;
  /// Without the steps, which may be further.
  auto values() const { return std::tie(batches, means, results, weights, taken); }
};
LambdaCallback watching(const Model& model, Seen& seen, bool late) {
  return LambdaCallback({.batch_end =
                             [&](std::int64_t batch, const Logs& logs, const BatchResult& result) {
                               seen.batches.push_back(batch);
                               seen.steps.push_back(model.step());
                               seen.means.push_back(logs);
                               seen.results.push_back(result.logs);
                               seen.weights.push_back(result.weight);
                               seen.taken.push_back(result.step_taken);
                             },
                         .late_batch_end = late});
}

struct Trained {
  Seen seen;
  std::vector<Logs> epochs;
  std::vector<float> parameters;
};
Trained train(const Context& context, const std::shared_ptr<const Dataset>& data, FitOptions options, bool late) {
  Model model = make_model(context);
  Trained result;
  LambdaCallback watch = watching(model, result.seen, late);
  options.callbacks.push_back(&watch);
  for (const EpochLogs& epoch : model.fit(data, options)) result.epochs.push_back(epoch.logs);
  for (const auto& [name, tensor] : model.parameters().all()) {
    const std::vector<float> values = floats(tensor.to_host().to(DType::f32));  // counters of the loss scale are i64
    result.parameters.insert(result.parameters.end(), values.begin(), values.end());
  }
  return result;
}

FitOptions fit_options(std::int64_t epochs = 1, int workers = 1) {
  return {.batch_size = batch_size, .epochs = epochs, .workers = workers};
}

/// The error of an epoch in the order of the data.
std::string error_of_fit(Model& model, const std::shared_ptr<const Dataset>& data, Seen& seen, bool late) {
  LambdaCallback watch = watching(model, seen, late);
  FitOptions options = fit_options();
  options.shuffle = false;
  options.callbacks = {&watch};
  return message_of([&] { model.fit(data, options); });
}

/// Waits until that many plans have been submitted. Called by the thread of a stream.
void wait_for_submissions(std::int64_t count) {
  static bool given_up = false;  // the first failure is enough: those after it would take as long
  std::unique_lock lock(Reel::mutex);
  const auto timeout = std::chrono::seconds(given_up ? 0 : 30);
  const bool submitted = Reel::changed.wait_for(lock, timeout, [&] { return Reel::count(What::executed) >= count; });
  given_up = given_up || !submitted;
  CHECK(submitted);
}

const void* stream_of_programs(const Context& context) {
  return context.default_device().state()->stream;
}

bool all_work_is_done() {
  const std::lock_guard lock(Reel::mutex);
  return Reel::executed == Reel::count(What::executed);
}

/// The position of the model agrees with its last step: nothing is in flight.
void check_can_be_used(Model& model, const std::shared_ptr<const Dataset>& data, std::int64_t step) {
  CHECK(all_work_is_done());
  CHECK(model.step() == step);
  const Logs before = model.evaluate(data, batch_size);
  model.fit(data, fit_options(model.epochs_done() + 2));
  CHECK(model.step() > step);
  CHECK(std::isfinite(before[0].second));
}

}  // namespace

TEST_CASE_FIXTURE(OnReel, "asynchronous training: a step computes while the next one is submitted, and not more than two are in flight") {
  Model model = make_model(context);
  Reel::reset();
  constexpr std::int64_t steps = 6;
  std::int64_t step = 0;
  Reel::before_execution = [&] {
    // A loop that waited for each step would submit no other one before this one has ended.
    const bool last_of_epoch = step % steps == steps - 1;
    wait_for_submissions(last_of_epoch ? step + 1 : step + 2);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const std::lock_guard lock(Reel::mutex);
    CHECK(Reel::count(What::executed) == (last_of_epoch ? step + 1 : step + 2));
    ++step;
  };
  model.fit(std::make_shared<Classes>(steps * batch_size), fit_options(3));
  CHECK(step == 3 * steps);
}

TEST_CASE_FIXTURE(OnReel, "asynchronous training: a batch_end that may read the model is called before the next step is submitted") {
  Model model = make_model(context);
  Reel::reset();
  Seen late, now;
  LambdaCallback may_be_late = watching(model, late, true), reads = watching(model, now, false);
  FitOptions options = fit_options();
  options.callbacks = {&may_be_late, &reads};
  LambdaCallback nothing_in_flight({.batch_end = [&](std::int64_t, const Logs&, const BatchResult&) { CHECK(all_work_is_done()); }});
  options.callbacks.push_back(&nothing_in_flight);
  model.fit(std::make_shared<Classes>(5 * batch_size), options);
  CHECK(now.steps == std::vector<std::int64_t>{1, 2, 3, 4, 5});
  CHECK(late.steps == now.steps);  // all wait as soon as one does
}

TEST_CASE("asynchronous training: callbacks get the same values, and the model the same bits, as when each step is waited for") {
  const auto data = std::make_shared<Classes>(7 * batch_size + 3);
  const auto weighted = std::make_shared<Classes>(data->size());
  std::vector<float> weights;
  for (std::int64_t i = 0; i < weighted->size(); ++i) weights.push_back(static_cast<float>(i % 3));
  weighted->weights = Tensor::of(weights, {weighted->size()});
  weighted->large_at = 11;  // its gradients overflow f16: the step is skipped
  const struct {
    Capture capture;
    Precision precision;
    std::shared_ptr<const Dataset> data;
  } cases[] = {
      {Capture::off, Precision::float32, data},
      {Capture::automatic, Precision::float32, data},
      {Capture::automatic, Precision::mixed_float16, weighted},
  };
  for (const auto& c : cases) {
    CAPTURE(static_cast<int>(c.capture));
    CAPTURE(std::string(name_of(c.precision)));
    for (const int workers : {1, 3, 0}) {  // without workers inputs come from host memory, and each step is waited for
      CAPTURE(workers);
      Config config = test_config();
      config.capture = c.capture;
      config.precision = c.precision;
      config.seed = 7;
      const Context context = with_reel(config);
      FitOptions options = fit_options(3, workers);
      options.validation = std::make_shared<Classes>(9);
      const Trained waiting = train(context, c.data, options, false);
      CHECK(waiting.seen.steps.back() == 24);
      CHECK((std::ranges::count(waiting.seen.taken, false) > 0) == (c.precision == Precision::mixed_float16));
      Reel::reset();
      // Each upload of scalars is done when the next step has been submitted: were their memory used again by then, the bits would differ.
      std::int64_t uploads = 0;
      if (workers > 0) {
        Reel::before_upload = [&](const void* stream) {
          if (stream != stream_of_programs(context)) return;
          const std::int64_t epoch = uploads / 8, step = uploads % 8;
          ++uploads;
          // An epoch has 8 steps, of which the last one, of another size, is submitted alone, and 3 batches of validation.
          if (step < 6) wait_for_submissions(epoch * (8 + 3) + step + 2);
        };
      }
      const Trained late = train(context, c.data, options, true);
      Reel::before_upload = nullptr;
      CHECK(late.seen.values() == waiting.seen.values());
      CHECK(late.epochs == waiting.epochs);
      CHECK(late.parameters == waiting.parameters);
      CHECK((late.seen.steps != waiting.seen.steps) == (workers > 0));
      const Context on_host(config);
      CHECK(train(on_host, c.data, options, true).parameters == waiting.parameters);
    }
  }
}

TEST_CASE_FIXTURE(OnReel, "asynchronous training: a step has an upload, a download and one wait of the host") {
  Model model = make_model(context);
  const auto data = std::make_shared<Classes>(10 * batch_size);
  model.fit(data, fit_options(1));
  Reel::reset();
  model.fit(data, fit_options(2));
  const auto on_programs = [&](What what) {
    return std::ranges::count_if(Reel::notes,
                                 [&](const Reel::Note& note) { return note.what == what && note.stream == stream_of_programs(context); });
  };
  CHECK(on_programs(What::executed) == 10);
  CHECK(on_programs(What::uploaded) == 10);    // key, learning rate and index
  CHECK(on_programs(What::downloaded) == 10);  // loss and accuracy
  CHECK(on_programs(What::event_synchronized) == 10);
  CHECK(on_programs(What::stream_synchronized) == 0);
  CHECK(on_programs(What::marked) <= 20);  // the end of the results, and that of the use of the batch
}

TEST_CASE_FIXTURE(OnReel, "asynchronous training: an error of the device names its node, and neither its step nor those after it count") {
  for (const bool late : {false, true}) {
    CAPTURE(late);
    const auto data = std::make_shared<Classes>(8 * batch_size);
    data->wrong_at = 3 * batch_size + 1;
    Model model = make_model(context);
    Seen seen;
    const std::string text = error_of_fit(model, data, seen, late);
    CHECK_MESSAGE(contains(text, "device 'reel:0', node '"), text);
    CHECK_MESSAGE(contains(text, "label 7 at index 1"), text);
    CHECK(seen.batches == std::vector<std::int64_t>{0, 1, 2});
    data->wrong_at = -1;
    check_can_be_used(model, data, 3);
  }
}

TEST_CASE_FIXTURE(OnReel, "asynchronous training: a loss that is not finite is reported with its step, and the one in flight counts") {
  for (const bool late : {false, true}) {
    CAPTURE(late);
    const auto data = std::make_shared<Classes>(8 * batch_size);
    data->infinite_at = 3 * batch_size + 1;
    Model model = make_model(context);
    Seen seen;
    const std::string text = error_of_fit(model, data, seen, late);
    CHECK_MESSAGE(contains(text, "at epoch 1, step 4 (batch 4 of 8); try a smaller learning rate than "), text);
    CHECK(seen.batches == std::vector<std::int64_t>{0, 1, 2, 3});
    CHECK(all_work_is_done());
    CHECK(model.step() == (late ? 5 : 4));
  }
}

TEST_CASE_FIXTURE(OnReel, "asynchronous training: an error of the next batch does not hide that of the step in flight") {
  for (const bool late : {false, true}) {
    CAPTURE(late);
    const auto data = std::make_shared<Classes>(8 * batch_size);
    data->infinite_at = 3 * batch_size + 1;
    data->unreadable_at = 4 * batch_size;
    Model model = make_model(context);
    Seen seen;
    const std::string text = error_of_fit(model, data, seen, late);
    CHECK_MESSAGE(contains(text, "at epoch 1, step 4 (batch 4 of 8)"), text);
    CHECK(model.step() == 4);
    data->infinite_at = -1;
    const std::string of_data = error_of_fit(model, data, seen, late);
    CHECK_MESSAGE(contains(of_data, "a bad sector"), of_data);
    CHECK(all_work_is_done());
  }
}

TEST_CASE_FIXTURE(OnReel, "asynchronous training: an error of the step before a smaller batch is its own") {
  const auto data = std::make_shared<Classes>(4 * batch_size + 3);
  data->wrong_at = 3 * batch_size + 2;
  Model model = make_model(context);
  FitOptions options = fit_options();
  options.shuffle = false;
  const std::string text = message_of([&] { model.fit(data, options); });
  CHECK_MESSAGE(contains(text, "device 'reel:0', node '"), text);
  CHECK_MESSAGE(contains(text, "label 7 at index 2"), text);
  data->wrong_at = -1;
  check_can_be_used(model, data, 3);
}

/// Batches of two tensors in the memory of the device, which each call of next() writes to.
class OnDevice final : public BatchSource {
 public:
  OnDevice(std::shared_ptr<const Dataset> data, const Device& device)
      : data_(std::move(data)),
        x_(device.empty(DType::f32, {batch_size, 2})),
        y_(device.empty(DType::i64, {batch_size})),
        copies_(device) {}
  const std::string& name() const override { return data_->name(); }
  const std::vector<SampleType>& inputs() const override { return data_->inputs(); }
  const std::vector<SampleType>& targets() const override { return data_->targets(); }
  void start(std::uint64_t) override { at_ = 0; }
  bool next(Batch& out_batch) override {
    if (at_ == data_->size()) return false;
    Tensor x = Tensor::empty(DType::f32, {batch_size, 2}), y = Tensor::empty(DType::i64, {batch_size});
    const std::vector<std::int64_t> indices{at_, at_ + 1, at_ + 2, at_ + 3};
    at_ += batch_size;
    data_->gather(indices, {&x, 1}, {&y, 1});
    ++calls;
    copy_async(x, x_, copies_);
    copy_async(y, y_, copies_);
    copies_.synchronize();
    out_batch.inputs = {x_};
    out_batch.targets = {y_};
    return true;
  }
  std::atomic<std::int64_t> calls = 0;

 private:
  std::shared_ptr<const Dataset> data_;
  Tensor x_, y_;
  Stream copies_;
  std::int64_t at_ = 0;
};

TEST_CASE_FIXTURE(OnReel, "asynchronous training: a source is asked for the next batch when the device has read the last one") {
  const auto data = std::make_shared<Classes>(6 * batch_size);
  FitOptions options = fit_options();
  options.shuffle = false;
  Model model = make_model(context), expected = make_model(context);
  expected.fit(data, options);
  OnDevice source(data, context.default_device());
  Reel::reset();
  std::int64_t step = 0;
  Reel::before_execution = [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    CHECK(source.calls == ++step);
  };
  model.fit(source, options);
  CHECK(step == 6);
  CHECK(floats(model.parameters().get("dense/kernel")) == floats(expected.parameters().get("dense/kernel")));
}

TEST_CASE_FIXTURE(OnReel, "asynchronous training: validation, ends of epochs and checkpoints find no step in flight") {
  const TemporaryFolder folder;
  const auto data = std::make_shared<Classes>(5 * batch_size);
  Model model = make_model(context);
  Checkpoint checkpoint({.directory = folder.path() + "/checkpoints"});
  int ends = 0;
  LambdaCallback at_ends({.epoch_begin = [&](std::int64_t) { CHECK(all_work_is_done()); },
                          .epoch_end =
                              [&](const EpochLogs& logs) {
                                ++ends;
                                CHECK(all_work_is_done());
                                CHECK(logs.samples == 5 * batch_size);
                                CHECK(model.step() == 5 * ends);
                              },
                          .train_end = [&] { CHECK(all_work_is_done()); }});
  CHECK(at_ends.allows_late_batch_end());
  CHECK(checkpoint.allows_late_batch_end());
  FitOptions options = fit_options(3);
  options.validation = data;
  options.callbacks = {&at_ends, &checkpoint};
  model.fit(data, options);
  CHECK(ends == 3);
  Model resumed = make_model(context);
  resumed.load(folder.path() + "/checkpoints/epoch-000003.yaml");
  CHECK(resumed.step() == 15);
  CHECK(resumed.evaluate(data, batch_size) == model.evaluate(data, batch_size));
}

TEST_CASE_FIXTURE(OnReel, "asynchronous training: a stop ends the fit after the step in flight, whose batch has its call") {
  const auto data = std::make_shared<Classes>(8 * batch_size);
  for (const bool late : {false, true}) {
    CAPTURE(late);
    Model model = make_model(context);
    std::vector<std::int64_t> batches;
    LambdaCallback stops({.batch_end =
                              [&](std::int64_t batch, const Logs&, const BatchResult&) {
                                batches.push_back(batch);
                                if (batch == 2) model.stop("enough");
                              },
                          .late_batch_end = late});
    FitOptions options = fit_options();
    options.callbacks = {&stops};
    model.fit(data, options);
    CHECK(model.fit_end() == FitEnd::stopped);
    CHECK(batches.back() == (late ? 3 : 2));
    CHECK(batches.size() == static_cast<std::size_t>(batches.back()) + 1);
    check_can_be_used(model, data, batches.back() + 1);
  }
}

TEST_CASE_FIXTURE(OnReel, "asynchronous training: a request to stop, and an exception of a callback, leave nothing in flight") {
  const auto data = std::make_shared<Classes>(8 * batch_size);
  for (std::int64_t at = 0; at < 8; ++at) {
    CAPTURE(at);
    for (const bool throws : {false, true}) {
      Model model = make_model(context);
      std::stop_source stop;
      std::int64_t calls = 0;
      LambdaCallback asks({.batch_end =
                               [&](std::int64_t batch, const Logs&, const BatchResult&) {
                                 ++calls;
                                 if (batch != at) return;
                                 if (throws) throw std::runtime_error("no more");
                                 stop.request_stop();
                               },
                           .late_batch_end = true});
      FitOptions options = fit_options();
      options.callbacks = {&asks};
      options.run.stop = stop.get_token();
      const std::string text = message_of([&] { model.fit(data, options); });
      CHECK(contains(text, "no more") == throws);
      const std::int64_t steps = std::min<std::int64_t>(at + 2, 8);
      CHECK(calls == (throws ? at + 1 : steps));
      check_can_be_used(model, data, steps);
    }
  }
}

TEST_CASE_FIXTURE(OnReel, "asynchronous training: train_batch and a fit take the same steps") {
  const auto data = std::make_shared<Classes>(3 * batch_size);
  FitOptions options = fit_options();
  options.shuffle = false;
  Model fitted = make_model(context), stepped = make_model(context);
  std::vector<double> losses;
  LambdaCallback watch({.batch_end = [&](std::int64_t, const Logs&, const BatchResult& result) { losses.push_back(result.loss()); },
                        .late_batch_end = true});
  options.callbacks = {&watch};
  fitted.fit(data, options);
  for (std::int64_t n = 0; n < 3; ++n) {
    Tensor x = Tensor::empty(DType::f32, {batch_size, 2}), y = Tensor::empty(DType::i64, {batch_size});
    const std::vector<std::int64_t> indices{4 * n, 4 * n + 1, 4 * n + 2, 4 * n + 3};
    data->gather(indices, {&x, 1}, {&y, 1});
    CHECK(stepped.train_batch(x, y).loss() == losses[static_cast<std::size_t>(n)]);
    CHECK(all_work_is_done());
    CHECK(stepped.step() == n + 1);
  }
  CHECK(floats(stepped.parameters().get("dense/kernel")) == floats(fitted.parameters().get("dense/kernel")));
}

}  // namespace tenon::test
