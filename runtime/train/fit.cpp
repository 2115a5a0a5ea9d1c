// SPDX-License-Identifier: Apache-2.0
// Model::fit: the loop over epochs and batches.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include <tenon/trace.h>

#include "core/log.h"
#include "train/agreement.h"
#include "train/binding.h"
#include "train/datasets/dataset_range.h"
#include "train/datasets/feed.h"
#include "train/datasets/source_batches.h"
#include "train/model_state.h"

namespace tenon {
namespace {

using Clock = std::chrono::steady_clock;

/// One call of fit.
class FitLoop {
 public:
  /// `types`: names and types of the inputs and targets of the batches.
  FitLoop(Model& model, Model::State& state, const Dataset& types, train::EpochBatches& batches, const FitOptions& options);
  ~FitLoop();
  FitLoop(const FitLoop&) = delete;
  FitLoop& operator=(const FitLoop&) = delete;
  History run();

 private:
  /// A batch whose results have not been read yet.
  struct Pending {
    std::int64_t index, samples;
    std::int64_t step;  ///< of the model, after this batch
    double rate;
  };

  bool stop_requested() const { return s_.session.how() == FitEnd::stopped; }
  /// Whether the fit ends here, on every process.
  bool stopping();
  /// Calls `body`; false if it was cancelled, for which FitOptions::run asked.
  template <class Body>
  bool completes(const Body& body) const;
  bool interrupted() const { return options_.run.stop.stop_requested(); }
  /// Runs one epoch; false if it was stopped early.
  bool epoch(EpochLogs& out_result);
  /// The batches of an epoch; false if they were stopped early.
  bool run_batches(EpochLogs& out_result);
  /// Trains on batch `index` of the epoch, whose results finish_batch reads. True: the device computes it, and another one may follow.
  bool step(const Batch& batch, std::int64_t index);
  /// Finishes batches until `left` are in flight. False: the fit was stopped.
  bool finish_batches(std::size_t left);
  /// Sets current_, and calls the callbacks.
  bool finish_batch();
  /// Adds current_ to the means.
  void count_batch(const Pending& batch);
  /// Calls `body`; after an error of it, the batches before it are finished first, and an error of theirs is thrown instead.
  template <class Body>
  void after_batches(const Body& body);
  /// Waits for the batches in flight after an error, and counts those whose steps were taken.
  void leave_batches() noexcept;
  /// False if mixed_float16 has skipped the step of current_ or not taken it yet: its loss may then be non-finite.
  bool expects_finite_loss() const { return current_.step_taken || !s_.setup.scales_loss(); }
  void check(const Pending& batch) const;
  template <class Call>
  void for_each_callback(const char* when, Call&& call);
  void begin();
  void show_means();

  Model& model_;
  Model::State& s_;
  const FitOptions& options_;
  train::BoundBatches bound_;
  train::EpochBatches& batches_;
  std::int64_t offset_ = 0;  ///< epochs of the model before the one that this fit shows as the first of all
  std::int64_t end_ = 0;     ///< epochs of the model after this fit
  std::int64_t count_ = 0;   ///< batches per epoch; 0: not known
  /// Each batch is a step that is submitted, and then finished.
  const bool submits_;
  /// A step is finished when the next one has been submitted, on a device that works by itself.
  const bool late_;
  std::vector<Pending> pending_;            ///< oldest first, at most two
  std::int64_t samples_ = 0, skipped_ = 0;  ///< samples and skipped batches of this epoch and fit
  train::RunningMeans means_;
  train::BatchMeans current_;   ///< the last finished batch
  std::vector<double> values_;  ///< of means_
  Logs running_;                ///< means_ as shown
  BatchResult last_;            ///< current_ as shown
};

/// Of all processes.
std::int64_t samples_of(const Batch& batch) {
  return batch.whole > 0 ? batch.whole : batch.x().shape()[0];
}

train::FeedOptions feed_options(const FitOptions& options, const Model::State& s) {
  train::FeedOptions feed;
  feed.batches.batch_size = options.batch_size;
  feed.batches.shuffle = options.shuffle;
  feed.batches.seed = s.setup.context->config().seed;
  feed.batches.workers = options.workers;
  feed.batches.prefetch = options.prefetch;
  feed.batches.shuffle_buffer = options.shuffle_buffer;
  feed.batches.augment = true;
  feed.device = s.setup.batch_device();
  feed.batches.part = s.setup.part_of_batches();
  feed.pinned = options.pinned;
  return feed;
}

FitLoop::FitLoop(Model& model, Model::State& state, const Dataset& types, train::EpochBatches& batches, const FitOptions& options)
    : model_(model),
      s_(state),
      options_(options),
      bound_(state.setup, types),
      batches_(batches),
      submits_(options.accumulate == 1 && state.pipeline == nullptr),
      late_(submits_ && batches.keeps_last_batch() && std::ranges::all_of(options.callbacks, &Callback::allows_late_batch_end)),
      running_(state.setup.empty_logs()),
      last_{.logs = running_} {
  if (options.initial_epoch) offset_ = s_.progress.saved().epoch - *options.initial_epoch;
  end_ = offset_ + (options.initial_epoch ? std::max(options.epochs, *options.initial_epoch) : options.epochs);
  count_ = batches_.count();
  if (options.steps_per_epoch > 0) {
    const std::int64_t wanted = options.steps_per_epoch * options.accumulate;
    count_ = count_ == 0 ? wanted : std::min(wanted, count_);
  }
  pending_.reserve(train::StepMemory::max_in_flight);  // a step that is submitted is remembered
  std::vector<std::string> names;
  for (const auto& [name, value] : running_) names.push_back(name);
  if (options.validation != nullptr || options.validation_batches != nullptr) {
    for (const auto& [name, value] : running_) names.push_back("val_" + name);
  }
  s_.progress.drop_accumulated();
  s_.session.begin(options.callbacks, {end_, end_ * ((count_ + options.accumulate - 1) / options.accumulate)}, std::move(names));
}

FitLoop::~FitLoop() {
  // The caller owns the callbacks and may destroy them before the model is saved.
  try {
    s_.progress.keep_callbacks(s_.callback_states());
  } catch (...) {
    s_.progress.keep_callbacks({});  // a checkpoint then has no callback states
  }
  s_.session.end();
}

template <class Call>
void FitLoop::for_each_callback(const char* when, Call&& call) {
  for (Callback* callback : s_.session.callbacks()) {
    const auto fail = [&](Status status, const char* what) {
      const train::SavedProgress at = s_.progress.saved();
      const std::string where = at.step > 0 ? fmt::format("; the model is at epoch {}, step {}", at.epoch + 1, at.step) : "";
      throw Error(status, fmt::format("callback {}, {}: {}{}", callback->name(), when, what, where));
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

void FitLoop::begin() {
  for (Callback* callback : s_.session.callbacks()) callback->attach(model_);
  for_each_callback("at the beginning", [&](Callback& callback) { callback.train_begin(options_.epochs, count_); });
  const std::map<std::string, CallbackState> states = s_.progress.take_resumed_callbacks();
  const std::vector<std::string> names = s_.session.callback_names();
  std::size_t i = 0;
  for_each_callback("restoring its state", [&](Callback& callback) {
    if (const auto found = states.find(names[i++]); found != states.end()) callback.restore(found->second);
  });
  s_.progress.set_batches(count_);
}

bool FitLoop::stopping() {
  const bool here = stop_requested() || interrupted();
  if (s_.setup.processes == nullptr) return here;
  const bool anywhere = s_.setup.processes->any(here);
  if (anywhere && !here)
    s_.session.stop(FitEnd::interrupted, fmt::format("another process stopped after step {}", s_.progress.saved().step));
  return anywhere;
}

void FitLoop::show_means() {
  means_.write(values_);
  s_.setup.write_logs(values_, running_);
}

template <class Body>
bool FitLoop::completes(const Body& body) const {
  try {
    body();
    return true;
  } catch (const Error& error) {
    if (error.status() != Status::cancelled || !interrupted()) throw;
    return false;
  }
}

bool FitLoop::step(const Batch& batch, std::int64_t index) {
  const std::int64_t steps = s_.progress.saved().step;
  RunOptions run = options_.run;
  // A step is completed once it has updated running statistics, and with other processes, which may be further.
  if (s_.progress.accumulated() > 0 || s_.setup.processes != nullptr) run.stop = {};
  try {
    const train::BatchTensors tensors = bound_(batch);
    if (submits_) return s_.submit_step(tensors, run);
    if (options_.accumulate == 1) {
      s_.train_batch(tensors, current_, run);
    } else {
      s_.backward(tensors, current_, run);
      run.stop = {};
      if (s_.progress.accumulated() == options_.accumulate || index + 1 == count_) current_.step_taken = s_.apply(run);
    }
    return false;
  } catch (...) {
    if (s_.progress.saved().step > steps) s_.progress.finish_batch(index + 1);  // the step was taken; only reading its results failed
    throw;
  }
}

void FitLoop::check(const Pending& batch) const {
  const double loss = current_.values[0];
  if (std::isfinite(loss) || stop_requested() || !expects_finite_loss()) return;
  throw Error(Status::internal,
              fmt::format("the loss is {} at epoch {}, step {} (batch {} of {}); try a smaller learning rate than {}, or find the first op "
                          "with check_numerics: all",
                          loss, s_.progress.saved().epoch - offset_ + 1, batch.step, batch.index + 1, count_, batch.rate));
}

void FitLoop::count_batch(const Pending& batch) {
  const bool counts = std::isfinite(current_.values[0]) || expects_finite_loss();
  if (counts) means_.add(current_.values, current_.weight);
  if (!counts) ++skipped_;
  samples_ += batch.samples;
  if (s_.progress.accumulated() == 0) s_.progress.finish_batch(batch.index + 1, means_);  // training is resumed after complete steps only
}

bool FitLoop::finish_batch() {
  const Pending batch = pending_.front();
  pending_.erase(pending_.begin());
  try {
    if (submits_ && !completes([&] { s_.finish_submitted(current_); })) return false;
  } catch (...) {
    if (s_.progress.saved().step >= batch.step) s_.progress.finish_batch(batch.index + 1);  // it was taken, with the smallest loss scale
    throw;
  }
  count_batch(batch);
  show_means();
  const bool shows_means = std::isfinite(current_.values[0]) || !expects_finite_loss();
  s_.setup.write_logs(current_.values, last_.logs);
  last_.weight = current_.weight;
  last_.step_taken = current_.step_taken;
  for_each_callback("after a batch",
                    [&](Callback& callback) { callback.batch_end(batch.index, shows_means ? running_ : last_.logs, last_); });
  check(batch);
  return true;
}

bool FitLoop::finish_batches(std::size_t left) {
  while (pending_.size() > left) {
    if (!finish_batch()) return false;
  }
  return true;
}

template <class Body>
void FitLoop::after_batches(const Body& body) {
  try {
    body();
  } catch (...) {
    finish_batches(0);
    throw;
  }
}

void FitLoop::leave_batches() noexcept {
  for (const Pending& batch : pending_) {
    if (s_.submitted.empty()) break;  // an error of the device has ended them
    try {
      s_.finish_submitted(current_);
      count_batch(batch);
    } catch (const std::exception& failure) {
      if (s_.progress.saved().step >= batch.step) s_.progress.finish_batch(batch.index + 1);
      log::debug("fit: after an error, step {}: {}", batch.step, failure.what());
    }
  }
  pending_.clear();
}

bool FitLoop::epoch(EpochLogs& out_result) {
  try {
    return run_batches(out_result);
  } catch (...) {
    leave_batches();
    throw;
  }
}

bool FitLoop::run_batches(EpochLogs& out_result) {
  const train::SavedProgress& now = s_.progress.saved();
  out_result.epoch = now.epoch - offset_;
  for_each_callback("at the beginning of an epoch", [&](Callback& callback) { callback.epoch_begin(out_result.epoch); });
  means_ = s_.progress.begin_means(running_.size());
  samples_ = skipped_ = 0;
  show_means();
  const auto begin = Clock::now();
  batches_.start(static_cast<std::uint64_t>(now.epoch), now.batch);
  for (;;) {
    const std::int64_t index = now.batch + s_.progress.accumulated() + static_cast<std::int64_t>(pending_.size());
    if (count_ > 0 && index >= count_) break;
    if (s_.progress.accumulated() == 0 && stopping()) {
      finish_batches(0);
      return false;
    }
    const Batch* batch = nullptr;
    {
      const TraceSpan span(*s_.setup.context, "wait for data");
      after_batches([&] { batch = batches_.next(); });
    }
    if (batch == nullptr) break;
    // A program for another size may have to be made, which waits for the device and would take an error of the step in flight for its own.
    if (!pending_.empty() && samples_of(*batch) != pending_.back().samples && !finish_batches(0)) return false;
    bool goes_on = false;
    if (!completes([&] { after_batches([&] { goes_on = step(*batch, index); }); })) return false;
    pending_.push_back({index, samples_of(*batch), now.step, s_.last_rate()});
    if (!finish_batches(late_ && goes_on ? 1 : 0)) return false;
  }
  if (!finish_batches(0)) return false;
  if (samples_ == 0 && now.batch == 0)
    throw Error(fmt::format("fit: expected at least 1 batch in epoch {}, got none", out_result.epoch + 1));
  // A source may end earlier than it said, or without having said when: what it gave makes the last step.
  if (const std::int64_t left = s_.progress.accumulated(); left > 0) {
    s_.apply({.threads = options_.run.threads, .priority = options_.run.priority});
    s_.progress.finish_batch(now.batch + left, means_);
  }
  out_result.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  out_result.samples = samples_;
  out_result.learning_rate = s_.last_rate();
  out_result.logs = running_;
  if (means_.weight == 0 && skipped_ > 0) {  // no batch counted: a mean of 0 must not become the best value
    for (auto& [name, value] : out_result.logs) value = std::numeric_limits<double>::quiet_NaN();
  }
  return true;
}

History FitLoop::run() {
  if (s_.setup.processes != nullptr) train::agree(s_, bound_.data(), options_);
  begin();
  History history;
  const train::SavedProgress& now = s_.progress.saved();
  while (now.epoch < end_ && !stopping()) {
    EpochLogs result;
    if (!epoch(result)) break;
    if (options_.validation != nullptr || options_.validation_batches != nullptr) {
      Logs validation;
      const bool complete = completes([&] {
        validation = options_.validation != nullptr ? s_.evaluate(options_.validation, options_.batch_size, options_.pinned, options_.run)
                                                    : s_.evaluate(*options_.validation_batches, options_.run);
      });
      if (!complete) break;
      for (const auto& [name, value] : validation) result.logs.emplace_back("val_" + name, value);
    }
    s_.progress.finish_epoch();
    s_.keep_gathered_state();
    for_each_callback("at the end of an epoch", [&](Callback& callback) { callback.epoch_end(result); });
    history.push_back(std::move(result));
  }
  if (now.epoch < end_) s_.session.stop(FitEnd::interrupted, fmt::format("stopped by request after step {}", now.step));
  if (s_.gathered_step != now.step) s_.keep_gathered_state();
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

void check_options(const FitOptions& options) {
  if (std::find(options.callbacks.begin(), options.callbacks.end(), nullptr) != options.callbacks.end())
    throw Error("fit: expected callbacks, got a null pointer among them");
  if (options.epochs < 0) throw Error(fmt::format("fit: epochs is {}, expected 0 or more", options.epochs));
  if (options.initial_epoch.value_or(0) < 0)
    throw Error(fmt::format("fit: initial_epoch is {}, expected 0 or more", *options.initial_epoch));
  if (options.accumulate < 1) throw Error(fmt::format("fit: accumulate is {}, expected 1 or more batches", options.accumulate));
  if (options.steps_per_epoch < 0) {
    throw Error(fmt::format("fit: steps_per_epoch is {}, expected 0 (the whole data set) or more", options.steps_per_epoch));
  }
  if (!(options.validation_split >= 0 && options.validation_split < 1)) {
    throw Error(fmt::format("fit: validation_split is {}, expected 0 <= validation_split < 1", options.validation_split));
  }
  const int validations = (options.validation != nullptr ? 1 : 0) + (options.validation_batches != nullptr ? 1 : 0);
  if (options.validation_split > 0 && validations > 0)
    throw Error("fit: validation and validation_split are both given; expected one of them");
  if (validations > 1) throw Error("fit: validation and validation_batches are both given; expected one of them");
}

}  // namespace

namespace {

/// Calls `fit`. An error ends all processes of a training: the others would wait for this one.
template <class Fit>
History together(const Model::State& state, const Fit& fit) {
  if (state.setup.processes == nullptr) return fit();
  try {
    return fit();
  } catch (const std::exception& failure) {
    state.setup.processes->abort(failure.what());
    throw;
  }
}

}  // namespace

History Model::fit(const std::shared_ptr<const Dataset>& data, const FitOptions& options) {
  State& s = state_of(state_);
  s.setup.need_context();
  return together(s, [&] {
    if (data == nullptr) throw Error("fit: expected a data set, got a null pointer");
    check_options(options);
    build_for(*data);
    s.setup.expect_micro_batches(std::min(options.batch_size, data->size()));
    const auto run = [&](const std::shared_ptr<const Dataset>& train, const FitOptions& with) {
      train::Feed feed(train, feed_options(with, s), s.session.training_buffers);
      return FitLoop(*this, s, *train, feed, with).run();
    };
    if (options.validation_split == 0) return run(data, options);
    FitOptions own = options;
    const auto [train, validation] = split(data, options.validation_split);
    own.validation = validation;
    return run(train, own);
  });
}

History Model::fit(BatchSource& batches, const FitOptions& options) {
  State& s = state_of(state_);
  s.setup.need_context();
  return together(s, [&] {
    check_options(options);
    if (options.validation_split > 0)
      throw Error("fit: validation_split divides samples; expected validation, or none, with a source of batches");
    const train::SourceTypes types(batches);
    build_for(types);
    train::SourceBatches source(batches);
    return FitLoop(*this, s, types, source, options).run();
  });
}

}  // namespace tenon
