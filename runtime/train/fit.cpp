// SPDX-License-Identifier: Apache-2.0
// Model: loops over data: fit, evaluate, predict, confusion matrix.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>

#include <tenon/trace.h>

#include "core/log.h"
#include "train/dataset_range.h"
#include "train/feed.h"
#include "train/model_state.h"

namespace tenon {
namespace {

using Clock = std::chrono::steady_clock;

/// One call of fit.
class FitRun {
 public:
  FitRun(Model& model, Model::State& state, std::shared_ptr<const Dataset> data, const FitOptions& options);
  ~FitRun();
  FitRun(const FitRun&) = delete;
  FitRun& operator=(const FitRun&) = delete;
  History run();

 private:
  bool stopping() const { return s_.stop_requested || interrupted(); }
  bool interrupted() const { return options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed); }
  /// Runs one epoch; false if it was stopped early.
  bool epoch(EpochLogs& out_result);
  /// Trains on batch `index` of the epoch.
  const Logs& step(const Batch& batch, std::int64_t index);
  void check(const Logs& logs, std::int64_t batch) const;
  template <class Call>
  void for_each_callback(const char* when, Call&& call);
  void begin();
  void show_means();

  Model& model_;
  Model::State& s_;
  const FitOptions& options_;
  train::Feed batches_;
  std::int64_t count_ = 0;  ///< batches per epoch
  train::RunningMeans means_;
  std::vector<double> current_;  ///< the current means
  Logs running_;                 ///< the current means as shown
};

bool names_devices(const std::vector<LayerDefinition>& layers) {
  return std::ranges::any_of(
      layers, [](const LayerDefinition& layer) { return !layer.device.empty() || std::ranges::any_of(layer.parts, names_devices); });
}

/// The device that reads x and y; empty if there may be several.
std::optional<Device> reader_of_batches(const Model::State& s) {
  if (!s.context->config().placement.empty()) return std::nullopt;  // placement rules may move the first node or the loss
  if (s.compiled.parallel_devices.size() > 1 || names_devices(s.definition.layers)) return std::nullopt;
  const std::string device = s.main_device();
  return device.empty() ? s.context->default_device() : s.context->device(device);
}

train::FeedOptions feed_options(const FitOptions& options, const Model::State& s) {
  train::FeedOptions feed;
  feed.batches.batch_size = options.batch_size;
  feed.batches.shuffle = options.shuffle;
  feed.batches.seed = s.context->config().seed;
  feed.batches.workers = options.workers;
  feed.batches.prefetch = options.prefetch;
  feed.batches.shuffle_buffer = options.shuffle_buffer;
  feed.batches.augment = true;
  feed.device = reader_of_batches(s);
  feed.pinned = options.pinned;
  return feed;
}

FitRun::FitRun(Model& model, Model::State& state, std::shared_ptr<const Dataset> data, const FitOptions& options)
    : model_(model),
      s_(state),
      options_(options),
      batches_(std::move(data), feed_options(options, state), state.training_buffers),
      current_(state.batch_logs.size()),
      running_(state.batch_logs) {
  count_ = batches_.count();
  if (options.steps_per_epoch > 0) count_ = std::min(options.steps_per_epoch * options.accumulate, count_);
  s_.fit_epochs = options.epochs;
  s_.fit_steps = options.epochs * ((count_ + options.accumulate - 1) / options.accumulate);
  s_.callbacks = options.callbacks;
  std::stable_partition(s_.callbacks.begin(), s_.callbacks.end(), [](const Callback* callback) { return !callback->runs_last(); });
  s_.stop_requested = false;
  s_.end = FitEnd::finished;
  s_.stop_reason.clear();
  s_.accumulated_batches = 0;
}

FitRun::~FitRun() {
  // The caller owns the callbacks and may destroy them before the model is saved.
  try {
    s_.callback_states = s_.callback_states_now();
  } catch (...) {
    s_.callback_states.clear();  // a checkpoint then has no callback states
  }
  s_.callbacks.clear();
  s_.fit_epochs = s_.fit_steps = 0;
}

template <class Call>
void FitRun::for_each_callback(const char* when, Call&& call) {
  for (Callback* callback : s_.callbacks) {
    const auto fail = [&](Status status, const char* what) {
      throw Error(status, fmt::format("callback {}, {}: {}; the model is at epoch {}, step {}, and can be saved or trained further",
                                      callback->name(), when, what, s_.epochs_done + 1, s_.step));
    };
    try {
      call(*callback);
    } catch (const Error& e) {
      fail(e.status(), e.what());
    } catch (const std::exception& e) {
      fail(Status::internal, e.what());
    } catch (...) {
      fail(Status::internal, "threw an object that is not a std::exception");
    }
  }
}

void FitRun::begin() {
  for (Callback* callback : s_.callbacks) callback->attach(model_);
  for_each_callback("at the beginning", [&](Callback& callback) { callback.train_begin(options_.epochs, count_); });
  const std::vector<std::string> keys = s_.callback_keys();
  std::size_t i = 0;
  for_each_callback("restoring its state", [&](Callback& callback) {
    const auto found = s_.callback_states.find(keys[i++]);
    if (found != s_.callback_states.end() && s_.resumed) callback.restore(found->second);
  });
  s_.resumed = false;
  if (s_.batches_done > 0 && s_.batches_per_epoch != count_) {
    log::warning("fit: epoch {} was interrupted after {} of {} batches but now has {}: the epoch restarts", s_.epochs_done + 1,
                 s_.batches_done, s_.batches_per_epoch, count_);
    s_.batches_done = 0;
  }
  s_.batches_per_epoch = count_;
}

void FitRun::show_means() {
  for (std::size_t i = 0; i < current_.size(); ++i) current_[i] = means_.mean(i);
  s_.finish(current_, running_);
}

const Logs& FitRun::step(const Batch& batch, std::int64_t index) {
  const std::int64_t steps = s_.step;
  try {
    if (options_.accumulate == 1) return model_.train_batch(batch.x, batch.y);
    const Logs& logs = model_.backward(batch.x, batch.y);
    if (s_.accumulated_batches == options_.accumulate || index + 1 == count_) model_.apply();
    return logs;
  } catch (...) {
    if (s_.step > steps) s_.batches_done = index + 1;  // the step was taken; only reading its results failed
    throw;
  }
}

void FitRun::check(const Logs& logs, std::int64_t batch) const {
  if (std::isfinite(logs[0].second) || s_.stop_requested || s_.allows_nonfinite_loss()) return;
  throw Error(Status::internal,
              fmt::format("the loss is {} at epoch {}, step {} (batch {} of {}); try a smaller learning rate than {}, or find the first op "
                          "with check_numerics: all",
                          logs[0].second, s_.epochs_done + 1, s_.step, batch + 1, count_, *s_.learning_rate.data<double>()));
}

bool FitRun::epoch(EpochLogs& out_result) {
  out_result.epoch = s_.epochs_done;
  for_each_callback("at the beginning of an epoch", [&](Callback& callback) { callback.epoch_begin(s_.epochs_done); });
  if (s_.batches_done == 0 || s_.means.sums.size() != running_.size()) s_.means.reset(running_.size());
  means_ = s_.means;
  std::int64_t samples = 0, skipped = 0;
  show_means();
  const auto begin = Clock::now();
  batches_.start(static_cast<std::uint64_t>(s_.epochs_done), s_.batches_done);
  while (s_.batches_done + s_.accumulated_batches < count_) {
    if (s_.accumulated_batches == 0 && stopping()) return false;
    const std::int64_t index = s_.batches_done + s_.accumulated_batches;
    const Batch* batch = nullptr;
    {
      const TraceSpan span(*s_.context, "wait for data");
      batch = batches_.next();
    }
    if (batch == nullptr) break;
    const Logs& logs = step(*batch, index);
    const bool counts = std::isfinite(logs[0].second) || !s_.allows_nonfinite_loss();
    if (counts) means_.add(s_.batch_means, s_.batch_weight);
    if (!counts) ++skipped;
    samples += batch->x.shape()[0];
    show_means();
    if (s_.accumulated_batches == 0) {  // training can only be resumed after a complete step
      s_.batches_done = index + 1;
      s_.means = means_;
    }
    const bool shown = std::isfinite(logs[0].second) || !counts;
    for_each_callback("after a batch", [&](Callback& callback) { callback.batch_end(index, shown ? running_ : logs); });
    check(logs, index);
  }
  out_result.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  out_result.samples = samples;
  out_result.learning_rate = *s_.learning_rate.data<double>();
  out_result.logs = running_;
  if (means_.weight == 0 && skipped > 0) {  // no batch counted: a mean of 0 must not become the best value
    for (auto& [name, value] : out_result.logs) value = std::numeric_limits<double>::quiet_NaN();
  }
  return true;
}

/// Empty if it was stopped.
std::optional<Logs> evaluate_on(Model& model, Model::State& s, const std::shared_ptr<const Dataset>& data, std::int64_t batch_size,
                                bool pinned, const std::atomic<bool>* stop) {
  train::FeedOptions options;
  options.batches.batch_size = batch_size;
  options.batches.shuffle = false;
  options.device = reader_of_batches(s);
  options.pinned = pinned;
  train::Feed batches(data, options, s.evaluation_buffers);
  train::RunningMeans means;
  means.reset(s.batch_logs.size());
  batches.start(0);
  while (const Batch* batch = batches.next()) {
    if (stop != nullptr && stop->load(std::memory_order_relaxed)) return std::nullopt;
    model.test_batch(batch->x, batch->y);
    means.add(s.batch_means, s.batch_weight);
  }
  std::vector<double> whole(s.batch_logs.size());
  for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = means.mean(i);
  Logs logs = s.batch_logs;
  s.finish(whole, logs);
  return logs;
}

History FitRun::run() {
  begin();
  History history;
  while (s_.epochs_done < options_.epochs && !stopping()) {
    EpochLogs result;
    if (!epoch(result)) break;
    if (options_.validation != nullptr) {
      const std::optional<Logs> validation =
          evaluate_on(model_, s_, options_.validation, options_.batch_size, options_.pinned, options_.stop);
      if (!validation) break;
      for (const auto& [name, value] : *validation) result.logs.emplace_back("val_" + name, value);
    }
    ++s_.epochs_done;
    s_.batches_done = 0;
    for_each_callback("at the end of an epoch", [&](Callback& callback) { callback.epoch_end(result); });
    history.push_back(std::move(result));
  }
  if (s_.stop_requested) {
    s_.end = FitEnd::stopped;
  } else if (s_.epochs_done < options_.epochs) {
    s_.end = FitEnd::interrupted;
    s_.stop_reason = fmt::format("stopped by request after step {}", s_.step);
  }
  for_each_callback("at the end", [](Callback& callback) { callback.train_end(); });
  return history;
}

/// Splits the fraction `part` off the end of the data: (training, validation).
std::pair<std::shared_ptr<const Dataset>, std::shared_ptr<const Dataset>> split(const std::shared_ptr<const Dataset>& data, double part) {
  const std::int64_t size = data->size();
  const auto kept = static_cast<std::int64_t>(static_cast<double>(size) * (1 - part));
  if (kept < 1 || kept >= size) throw Error(fmt::format("fit: validation_split {} of {} samples leaves one part empty", part, size));
  return {std::make_shared<train::DatasetRange>(data, 0, kept, data->name()),
          std::make_shared<train::DatasetRange>(data, kept, size, data->name() + " validation")};
}

}  // namespace

History Model::fit(const std::shared_ptr<const Dataset>& data, const FitOptions& options) {
  State& s = *state_;
  s.need_context();
  if (options.epochs < 0) throw Error(fmt::format("fit: epochs is {}, expected 0 or more", options.epochs));
  if (options.accumulate < 1) throw Error(fmt::format("fit: accumulate is {}, expected 1 or more batches", options.accumulate));
  if (!(options.validation_split >= 0 && options.validation_split < 1)) {
    throw Error(fmt::format("fit: validation_split is {}, expected 0 <= validation_split < 1", options.validation_split));
  }
  build(data->x_type().shape);
  if (options.validation_split == 0) return FitRun(*this, s, data, options).run();
  if (options.validation != nullptr) throw Error("fit: validation and validation_split are both given; expected one of them");
  FitOptions own = options;
  const auto [train, validation] = split(data, options.validation_split);
  own.validation = validation;
  return FitRun(*this, s, train, own).run();
}

Logs Model::evaluate(const std::shared_ptr<const Dataset>& data, std::int64_t batch_size) {
  State& s = *state_;
  s.need_context();
  build(data->x_type().shape);
  return *evaluate_on(*this, s, data, batch_size, true, nullptr);
}

Tensor Model::predict(const Tensor& x, std::int64_t batch_size) {
  State& s = *state_;
  s.need_context();
  if (x.shape().rank() == 0) throw Error("predict: x expects a batch axis, got a scalar");
  if (batch_size < 1) throw Error(fmt::format("predict: batch_size is {}, expected at least 1", batch_size));
  build(Shape(x.shape().dims().subspan(1)));
  const std::int64_t count = x.shape()[0];
  Tensor all;
  for (std::int64_t begin = 0; begin < count || !all.defined(); begin += batch_size) {
    const Tensor part = x.slice(0, begin, std::min(count, begin + batch_size));
    const std::array<Tensor, 1> inputs{part};
    const Tensor made = s.program(Phase::predict, part, nullptr).run(inputs).front().to_host();
    if (!all.defined()) {
      Shape shape = made.shape();
      shape.set(0, count);
      all = Tensor::empty(made.dtype(), shape);
    }
    if (made.size_bytes() > 0) {
      std::memcpy(static_cast<char*>(all.raw()) + begin * (made.size_bytes() / made.shape()[0]), made.raw(),
                  static_cast<std::size_t>(made.size_bytes()));
    }
  }
  return all;
}

Tensor Model::confusion_matrix(const std::shared_ptr<const Dataset>& data, std::int64_t batch_size) {
  State& s = *state_;
  s.need_context();
  build(data->x_type().shape);
  Batches batches(data, {.batch_size = batch_size, .shuffle = false});
  const std::int64_t classes = s.layers.back().output.count();
  Tensor matrix = Tensor::zeros(DType::i64, {classes, classes});
  std::int64_t* counts = matrix.data<std::int64_t>();
  batches.start(0);
  while (const Batch* batch = batches.next()) {
    const std::array<Tensor, 2> inputs{batch->x, batch->y};
    const std::vector<Tensor>& results = s.program(Phase::classes, batch->x, &batch->y).run(inputs);
    const Tensor host_labels = results[0].to_host(), host_classes = results[1].to_host();
    const auto* labels = host_labels.data<std::int64_t>();
    const auto* predicted = host_classes.data<std::int64_t>();
    for (std::int64_t i = 0; i < host_labels.count(); ++i) {
      if (s.compiled.loss.ignore_index && labels[i] == *s.compiled.loss.ignore_index) continue;
      if (labels[i] < 0 || labels[i] >= classes) {
        throw Error(fmt::format("confusion matrix: label {} at index {} of {} is out of range [0, {})", labels[i],
                                batch->indices[static_cast<std::size_t>(i)], data->name(), classes));
      }
      ++counts[labels[i] * classes + predicted[i]];
    }
  }
  return matrix;
}

}  // namespace tenon
