// SPDX-License-Identifier: Apache-2.0
#include "train/datasets/feed.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include <tenon/stream.h>

#include "exec/device_state.h"
#include "exec/host_services.h"
#include "train/datasets/datasets.h"

namespace tenon::train {
namespace {

bool has_separate_memory(const FeedOptions& options) {
  return options.device && !options.device->state()->host_addressable();
}

BatchOptions batch_options(const FeedOptions& options) {
  BatchOptions batches = options.batches;
  if (options.pinned && has_separate_memory(options)) batches.allocate = pinned_memory(*options.device);
  if (options.device && options.device->info().kind == DeviceKind::cpu) {
    exec::ThreadPool& pool = options.device->state()->loaded->services->pool();
    if (pool.budget() > 1 && pool.budget() >= exec::available_threads()) {
      batches.gather_parts = static_cast<int>(pool.budget());
      batches.run_parts = [&pool](int count, const std::function<void(int)>& body) {
        pool.parallel_for(
            count, 1,
            [](void* argument, std::int64_t begin, std::int64_t end) {
              for (std::int64_t i = begin; i < end; ++i) (*static_cast<const std::function<void(int)>*>(argument))(static_cast<int>(i));
            },
            const_cast<std::function<void(int)>*>(&body));
      };
    }
  }
  return batches;
}

/// Reallocates the buffer only if it does not fit.
void make_fit(Tensor& buffer, const Device& device, std::int64_t rows, const SampleType& sample) {
  const Shape shape = sample.shape.with_batch(rows);
  if (buffer.defined() && buffer.storage()->device == device.state() && buffer.dtype() == sample.dtype && buffer.shape() == shape) return;
  buffer = {};  // free the old memory first
  buffer = device.empty(sample.dtype, shape);
}

void make_fit(std::vector<Tensor>& buffers, const Device& device, std::int64_t rows, const std::vector<SampleType>& samples) {
  buffers.resize(samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) make_fit(buffers[i], device, rows, samples[i]);
}

Tensor first_rows(const Tensor& buffer, std::int64_t rows) {
  return buffer.shape()[0] == rows ? buffer : buffer.slice(0, 0, rows);
}

}  // namespace

/// A thread that copies batches to the device. Batch k of an epoch goes to buffer k mod 2.
class Feed::Copier {
 public:
  Copier(Batches& batches, const Device& device, std::int64_t rows, FeedBuffers& buffers)
      : batches_(batches),
        programs_(Stream::of_programs(device)),
        copies_(device),
        slots_{Slot(device, buffers, 0), Slot(device, buffers, 1)} {
    const bool weighted = batches.data().sample_weights().defined();
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      make_fit(buffers.inputs[i], device, rows, batches.data().inputs());
      make_fit(buffers.targets[i], device, rows, batches.data().targets());
      if (weighted) make_fit(buffers.sample_weights[i], device, rows, {DType::f32, {}});
    }
    thread_ = std::thread([this] { copy_loop(); });
  }

  ~Copier() {
    {
      const std::lock_guard lock(mutex_);
      quit_ = true;
    }
    work_.notify_all();
    thread_.join();
  }
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;

  void start(std::uint64_t epoch, std::int64_t first_batch) {
    std::unique_lock lock(mutex_);
    running_ = started_ = false;
    work_.notify_all();
    done_.wait(lock, [&] { return !busy_; });  // until then the thread may use batches_
    release();
    batches_.start(epoch, first_batch);
    for (Slot& slot : slots_) slot.failure = nullptr;
    given_ = taken_ = released_ = 0;
    running_ = started_ = true;
    work_.notify_all();
  }

  const Batch* next() {
    std::unique_lock lock(mutex_);
    if (!started_) return batches_.next();  // reports the missing start()
    release();
    done_.wait(lock, [&] { return taken_ < given_; });
    Slot& slot = slots_[taken_ % 2];
    if (slot.failure) std::rethrow_exception(slot.failure);
    if (slot.is_end) return nullptr;
    programs_.wait(slot.copied);
    ++taken_;
    return &slot.batch;
  }

 private:
  struct Slot {
    Slot(const Device& device, const FeedBuffers& buffers, std::size_t i)
        : inputs(buffers.inputs[i]),
          targets(buffers.targets[i]),
          sample_weights(buffers.sample_weights[i]),
          copied(device),
          consumed(device) {}
    const std::vector<Tensor>&inputs, &targets;
    const Tensor& sample_weights;
    Batch batch;
    Event copied;    ///< after the copy
    Event consumed;  ///< after the last step that read it
    bool is_end = false;
    std::exception_ptr failure;
  };

  /// Releases the slot that next() returned last: its step has been submitted to the device. The caller holds the mutex.
  void release() {
    if (released_ == taken_) return;
    slots_[released_ % 2].consumed.record(programs_);
    ++released_;
    work_.notify_all();
  }

  void copy_loop() {
    std::unique_lock lock(mutex_);
    for (;;) {
      work_.wait(lock, [&] { return quit_ || running_; });
      if (quit_) return;
      busy_ = true;
      lock.unlock();
      const Batch* batch = nullptr;
      std::exception_ptr failure;
      try {
        copies_.synchronize();  // batches_.next() lets the readers overwrite the previous batch
        batch = batches_.next();
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      work_.wait(lock, [&] { return quit_ || !running_ || given_ < released_ + 2; });
      if (running_ && !quit_) {
        Slot& slot = slots_[given_ % 2];
        lock.unlock();
        try {
          if (batch != nullptr) copy(*batch, slot);
        } catch (...) {
          failure = std::current_exception();
        }
        lock.lock();
        slot.is_end = batch == nullptr;
        slot.failure = std::move(failure);
        if (slot.is_end || slot.failure) running_ = false;  // until start()
        ++given_;
      }
      busy_ = false;
      done_.notify_all();
    }
  }

  void copy(const Batch& batch, Slot& slot) {
    const std::int64_t rows = batch.x().shape()[0];
    slot.batch.index = batch.index;
    slot.batch.indices = batch.indices;
    slot.batch.whole = batch.whole;
    copies_.wait(slot.consumed);
    const auto copy_all = [&](const std::vector<Tensor>& from, const std::vector<Tensor>& buffers, std::vector<Tensor>& to) {
      to.clear();
      for (std::size_t i = 0; i < from.size(); ++i) {
        to.push_back(first_rows(buffers[i], rows));
        copy_async(from[i], to.back(), copies_);
      }
    };
    copy_all(batch.inputs, slot.inputs, slot.batch.inputs);
    copy_all(batch.targets, slot.targets, slot.batch.targets);
    if (batch.sample_weights.defined()) {
      slot.batch.sample_weights = first_rows(slot.sample_weights, rows);
      copy_async(batch.sample_weights, slot.batch.sample_weights, copies_);
    }
    slot.copied.record(copies_);
  }

  Batches& batches_;  ///< owned by the thread while it is busy
  Stream programs_;   ///< used only by the caller
  Stream copies_;     ///< used only by the thread
  std::array<Slot, 2> slots_;

  std::mutex mutex_;  ///< guards the members below; the thread owns a slot until it is given, then the caller until it is released
  std::condition_variable work_, done_;
  std::uint64_t given_ = 0, taken_ = 0, released_ = 0;  ///< slots of this epoch: released_ <= taken_ <= given_ <= released_ + 2
  bool running_ = false, busy_ = false, started_ = false, quit_ = false;

  std::thread thread_;
};

Feed::Feed(std::shared_ptr<const Dataset> data, const FeedOptions& options, FeedBuffers& buffers)
    : batches_(std::move(data), batch_options(options)) {
  if (!has_separate_memory(options) || options.batches.workers == 0) return;
  const std::int64_t rows = std::min(options.batches.batch_size, batches_.data().size());
  copier_ = std::make_unique<Copier>(batches_, *options.device, rows, buffers);
}
Feed::~Feed() = default;

void Feed::start(std::uint64_t epoch, std::int64_t first_batch) {
  if (copier_ != nullptr) return copier_->start(epoch, first_batch);
  batches_.start(epoch, first_batch);
}

const Batch* Feed::next() {
  return copier_ != nullptr ? copier_->next() : batches_.next();
}

}  // namespace tenon::train
