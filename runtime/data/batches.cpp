// SPDX-License-Identifier: Apache-2.0
// data/batches.cpp - the batches of an epoch, loaded ahead by worker threads into a ring of slots.
#include <algorithm>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <new>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include <tenon/data.h>

#include "data/shuffle.h"

namespace tenon {
namespace {

/// Batches from this size on are worth several threads: about 2 us of copying.
constexpr std::int64_t min_bytes_of_parts = 32 * 1024;

/// Rows of a batch that are gathered by one thread.
struct Part {
  std::int64_t begin = 0, end = 0;
  std::vector<Tensor> inputs, targets;
};

std::vector<Part> parts_of(const std::vector<Tensor>& inputs, const std::vector<Tensor>& targets, std::int64_t rows, int count) {
  std::vector<Part> parts(static_cast<std::size_t>(std::min<std::int64_t>(count, rows)));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Part& part = parts[i];
    const auto n = static_cast<std::int64_t>(parts.size()), k = static_cast<std::int64_t>(i);
    part.begin = k * rows / n;
    part.end = (k + 1) * rows / n;
    for (const Tensor& tensor : inputs) part.inputs.push_back(tensor.slice(0, part.begin, part.end));
    for (const Tensor& tensor : targets) part.targets.push_back(tensor.slice(0, part.begin, part.end));
  }
  return parts;
}

/// Whether next() gathers by BatchOptions::run_parts instead of a worker.
bool uses_parts(const Dataset& data, const BatchOptions& options) {
  return options.run_parts && options.workers == 1 && data.is_in_memory();
}

/// Memory of one batch in flight. Batch b always goes to slot b mod slots, so no queue is needed.
struct Slot {
  Batch batch;
  std::vector<Tensor> inputs, targets;            ///< a full batch
  std::vector<Tensor> inputs_last, targets_last;  ///< their first rows, for the last batch
  std::vector<Part> parts, parts_last;            ///< likewise; empty: one thread gathers a batch
  Tensor weights, weights_last;                   ///< likewise; undefined: the samples have none
  std::exception_ptr failure;
  bool filled = false;
};

/// Bytes of a full batch.
std::int64_t bytes_of(const Slot& slot) {
  std::int64_t bytes = 0;
  for (const auto* tensors : {&slot.inputs, &slot.targets}) {
    for (const Tensor& tensor : *tensors) bytes += tensor.count() * size_of(tensor.dtype());
  }
  return bytes;
}

void check(const Dataset& data, const BatchOptions& options) {
  const auto reject = [&](const std::string& expected, std::int64_t got) {
    throw Error(data.name() + ": expected " + expected + ", got " + std::to_string(got));
  };
  if (data.size() < 1) reject("at least 1 sample", data.size());
  if (const Tensor weights = data.sample_weights(); weights.defined()) {
    const bool fits = weights.dtype() == DType::f32 && weights.shape() == Shape{data.size()} && weights.on_host() && weights.is_dense();
    if (!fits)
      throw Error(data.name() + ": expected sample weights f32(" + std::to_string(data.size()) + ") in host memory, got " + weights.str());
  }
  if (options.batch_size < 1) reject("a batch size of at least 1", options.batch_size);
  if (options.workers < 0 || options.workers > 256) reject("0 to 256 data workers", options.workers);
  if (options.workers > 0 && (options.prefetch < 1 || options.prefetch > 4096)) reject("1 to 4096 batches of prefetch", options.prefetch);
  if (options.shuffle_buffer < 0) reject("a shuffle buffer of at least 1 sample, or 0 for all", options.shuffle_buffer);
  if (options.drop_last && data.size() < options.batch_size) {
    reject("at least one batch of " + std::to_string(options.batch_size) + " samples, since drop_last drops a smaller one", data.size());
  }
}

}  // namespace

struct Batches::State {
  State(std::shared_ptr<const Dataset> data_set, const BatchOptions& batch_options)
      : data(std::move(data_set)),
        sample_weights(data->sample_weights()),
        options(batch_options),
        workers(uses_parts(*data, batch_options) ? 0 : batch_options.workers) {
    const std::int64_t size = data->size();
    count = options.drop_last ? size / options.batch_size : (size + options.batch_size - 1) / options.batch_size;
    order.resize(static_cast<std::size_t>(size));
    std::iota(order.begin(), order.end(), std::int64_t{0});
    const std::int64_t rows = part_of(std::min(options.batch_size, size)).size();
    const std::int64_t last_rows = part_of(std::min(size, count * options.batch_size) - (count - 1) * options.batch_size).size();
    // The consumer holds one slot while the workers fill `prefetch` others.
    slots.resize(workers > 0 ? static_cast<std::size_t>(options.prefetch) + 1 : 1);
    for (Slot& slot : slots) {
      for (const SampleType& type : data->inputs()) slot.inputs.push_back(allocate(type, rows));
      for (const SampleType& type : data->targets()) slot.targets.push_back(allocate(type, rows));
      for (const Tensor& tensor : slot.inputs) slot.inputs_last.push_back(tensor.slice(0, 0, last_rows));
      for (const Tensor& tensor : slot.targets) slot.targets_last.push_back(tensor.slice(0, 0, last_rows));
      slot.batch.inputs = slot.inputs;  // their memory is used again
      slot.batch.targets = slot.targets;
      if (uses_parts(*data, options) && bytes_of(slot) >= min_bytes_of_parts && options.gather_parts > 1) {
        slot.parts = parts_of(slot.inputs, slot.targets, rows, options.gather_parts);
        slot.parts_last = parts_of(slot.inputs_last, slot.targets_last, last_rows, options.gather_parts);
      }
      if (!sample_weights.defined()) continue;
      slot.weights = allocate({DType::f32, {}, "sample weights"}, rows);
      slot.weights_last = slot.weights.slice(0, 0, last_rows);
    }
    threads.reserve(static_cast<std::size_t>(workers));
  }

  ~State() {
    {
      const std::lock_guard lock(mutex);
      quit = true;
    }
    work.notify_all();
    for (std::thread& thread : threads) thread.join();
  }

  Tensor allocate(const SampleType& sample, std::int64_t rows) const {
    const Shape shape = sample.shape.with_batch(rows);
    if (!options.allocate) return Tensor::empty(sample.dtype, shape);
    Tensor made = options.allocate(sample.dtype, shape);
    if (made.defined() && made.on_host() && made.is_dense() && made.dtype() == sample.dtype && made.shape() == shape) return made;
    throw Error(data->name() + ": expected dense " + name_of(sample.dtype) + shape.str() + " in host memory for " + sample.name +
                " from the batches' allocate, got " + (made.defined() ? made.str() : std::string("an undefined tensor")));
  }

  /// The samples of a batch that are gathered.
  struct Rows {
    std::int64_t begin, end;
    std::int64_t size() const { return end - begin; }
  };
  Rows part_of(std::int64_t samples) const {
    if (!options.part) return {0, samples};
    const auto [begin, end] = options.part(samples);
    if (begin >= 0 && begin < end && end <= samples) return {begin, end};
    throw Error(data->name() + ": expected BatchOptions::part to give at least one of " + std::to_string(samples) + " samples, got [" +
                std::to_string(begin) + ", " + std::to_string(end) + ")");
  }

  Slot& slot_of(std::int64_t index) { return slots[static_cast<std::size_t>(index) % slots.size()]; }

  void fill(std::int64_t index) {
    Slot& slot = slot_of(index);
    const std::int64_t first = index * options.batch_size;
    const std::int64_t whole = std::min(options.batch_size, data->size() - first);
    const Rows part = part_of(whole);
    const std::int64_t begin = first + part.begin, end = first + part.end;
    const bool last = index == count - 1;
    slot.batch.whole = options.part ? whole : 0;
    slot.batch.index = index;
    slot.batch.inputs = last ? slot.inputs_last : slot.inputs;
    slot.batch.targets = last ? slot.targets_last : slot.targets;
    slot.batch.sample_weights = last ? slot.weights_last : slot.weights;
    slot.batch.indices =
        std::span<const std::int64_t>(order).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
    if (sample_weights.defined()) {
      const float* const of_sample = sample_weights.data<float>();
      float* const weights = slot.batch.sample_weights.data<float>();
      std::transform(slot.batch.indices.begin(), slot.batch.indices.end(), weights, [&](std::int64_t i) { return of_sample[i]; });
    }
    try {
      std::vector<Part>& parts = last ? slot.parts_last : slot.parts;
      if (parts.empty()) {
        gather(slot.batch.indices, slot.batch.inputs, slot.batch.targets);
      } else {
        gather_parts(slot.batch.indices, parts);
      }
    } catch (...) {
      rethrow_named(slot.batch);
    }
  }

  void gather(std::span<const std::int64_t> indices, std::span<Tensor> inputs, std::span<Tensor> targets) const {
    if (options.augment)
      data->gather_augmented(indices, epoch, inputs, targets);
    else
      data->gather(indices, inputs, targets);
  }

  /// Gathers all parts of a batch and throws the failure of one of them, if there are any.
  void gather_parts(std::span<const std::int64_t> indices, std::vector<Part>& parts) const {
    std::mutex failure_mutex;
    std::exception_ptr failure;
    const auto gather_part = [&](int i) {
      Part& part = parts[static_cast<std::size_t>(i)];
      try {
        gather(indices.subspan(static_cast<std::size_t>(part.begin), static_cast<std::size_t>(part.end - part.begin)), part.inputs,
               part.targets);
      } catch (...) {
        const std::lock_guard lock(failure_mutex);
        failure = std::current_exception();
      }
    };
    options.run_parts(static_cast<int>(parts.size()), std::ref(gather_part));
    if (failure) std::rethrow_exception(failure);
  }

  /// Rethrows the current exception with its position: samples are loaded one by one to find the first that fails.
  [[noreturn]] void rethrow_named(Batch& batch) const {
    std::string sample;
    for (std::size_t i = 0; i < batch.indices.size() && sample.empty(); ++i) {
      const auto row = static_cast<std::int64_t>(i);
      try {
        std::vector<Tensor> inputs = batch.inputs, targets = batch.targets;
        for (auto* tensors : {&inputs, &targets}) {
          for (Tensor& tensor : *tensors) tensor = tensor.slice(0, row, row + 1);
        }
        gather(batch.indices.subspan(i, 1), inputs, targets);
      } catch (...) {
        sample = "sample " + std::to_string(batch.indices[i]) + ", ";
      }
    }
    const std::string place = " (" + sample + "batch " + std::to_string(batch.index + 1) + " of " + std::to_string(count) + ", epoch " +
                              std::to_string(epoch + 1) + ")";
    try {
      throw;
    } catch (const Error& error) {
      throw Error(error.status(), error.what() + place);
    } catch (const std::bad_alloc&) {
      throw Error(Status::out_of_memory, data->name() + ": out of memory" + place);
    } catch (const std::exception& error) {
      throw Error(Status::internal, error.what() + place);
    }
  }

  bool claimable() const { return running && next_claim < count && next_claim < released + static_cast<std::int64_t>(slots.size()); }

  /// The loop of a worker: claims the next batch, fills its slot and notifies the consumer.
  void worker_loop() {
    std::unique_lock lock(mutex);
    for (;;) {
      work.wait(lock, [&] { return quit || claimable(); });
      if (quit) return;
      const std::int64_t index = next_claim++;
      ++busy;
      lock.unlock();
      std::exception_ptr failure;
      try {
        fill(index);
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      --busy;
      slot_of(index).failure = std::move(failure);
      slot_of(index).filled = true;
      done.notify_all();
    }
  }

  void start(std::uint64_t new_epoch, std::int64_t first_batch) {
    std::unique_lock lock(mutex);
    running = false;
    done.wait(lock, [&] { return busy == 0; });  // wait for batches of the previous epoch
    epoch = new_epoch;
    if (options.shuffle && options.shuffle_buffer > 0)
      data::shuffle_windowed(order, options.shuffle_buffer, options.seed, epoch);
    else if (options.shuffle)
      data::shuffle(order, options.seed, epoch);
    for (Slot& slot : slots) {
      slot.filled = false;
      slot.failure = nullptr;
    }
    released = next_claim = next_out = first_batch;
    running = started = true;
    work.notify_all();
  }

  const Batch* next() {
    std::unique_lock lock(mutex);
    if (released < next_out) {  // the consumer is done with the batch it held
      slot_of(released).filled = false;
      ++released;
      work.notify_one();
    }
    if (next_out == count) return nullptr;
    Slot& slot = slot_of(next_out);
    if (workers == 0) {
      fill(next_out);
    } else {
      done.wait(lock, [&] { return slot.filled; });
      if (slot.failure) std::rethrow_exception(slot.failure);
    }
    ++next_out;
    return &slot.batch;
  }

  const std::shared_ptr<const Dataset> data;
  const Tensor sample_weights;  ///< of all samples; undefined: they have none
  const BatchOptions options;
  const int workers;
  std::int64_t count = 0;
  std::vector<std::int64_t> order;  ///< written only by start(), while no worker is busy
  std::uint64_t epoch = 0;          ///< written only by start(), like order
  std::vector<Slot> slots;

  std::mutex mutex;  ///< guards the members below; the worker that claimed a slot owns its batch until `filled`, then the consumer
  std::condition_variable work, done;
  std::int64_t next_claim = 0;  ///< first batch that no worker has claimed
  std::int64_t next_out = 0;    ///< first batch that the consumer has not seen
  std::int64_t released = 0;    ///< first batch whose slot is in use: next_out, or one less while the consumer holds a batch
  int busy = 0;
  bool running = false, started = false, quit = false;

  std::vector<std::thread> threads;
};

Batches::Batches(std::shared_ptr<const Dataset> data, const BatchOptions& options) {
  if (!data) throw Error("Batches: expected a data set, got none");
  check(*data, options);
  state_ = std::make_unique<State>(std::move(data), options);
  State* state = state_.get();
  for (int i = 0; i < state->workers; ++i) state->threads.emplace_back([state] { state->worker_loop(); });
}

Batches::~Batches() = default;

std::int64_t Batches::count() const {
  return state_->count;
}

const Dataset& Batches::data() const {
  return *state_->data;
}

void Batches::start(std::uint64_t epoch, std::int64_t first_batch) {
  if (first_batch < 0 || first_batch > state_->count) {
    throw Error(state_->data->name() + ": expected to start at batch 0 to " + std::to_string(state_->count) + ", got " +
                std::to_string(first_batch));
  }
  state_->start(epoch, first_batch);
}

const Batch* Batches::next() {
  if (!state_->started) throw Error(state_->data->name() + ": next() without an epoch; call start() first");
  return state_->next();
}

}  // namespace tenon
