// SPDX-License-Identifier: Apache-2.0
// The thread of a batcher, and the calls that hand requests to it.
#include <tenon/batcher.h>

#include <fmt/core.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include <tenon/error.h>

#include "serve/batch.h"
#include "serve/batch_queue.h"
#include "serve/batcher_options.h"
#include "serve/request.h"
#include "serve/wait_times.h"

namespace tenon {
namespace {

using serve::Clock;
using serve::Request;

double us_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double, std::micro>(end - begin).count();
}

std::exception_ptr error_of(Status status, const std::string& text) {
  return std::make_exception_ptr(Error(status, text));
}

/// Of a request that arrived at `arrival`, or tried to.
std::exception_ptr expired(Clock::time_point arrival, Clock::time_point now) {
  return error_of(
      Status::not_ready,
      fmt::format("batcher: the deadline of the request has passed after it waited {:.0f} us; it was not run", us_between(arrival, now)));
}

std::exception_ptr stopped() {
  return error_of(Status::cancelled, "batcher: the request was cancelled by its stop token; it was not run");
}

/// What became of a request: outputs, or an error.
struct Outcome {
  NamedTensors outputs = {};
  std::exception_ptr error = nullptr;
};

}  // namespace

struct Batcher::State {
  const BatcherOptions options;
  const Function function;

  mutable std::mutex mutex;           ///< of all below, except the threads
  std::condition_variable changed;    ///< for the thread: a batch may be ready, or `closed`
  std::condition_variable_any space;  ///< for submit: the queue may have become shorter, or `closed`
  serve::BatchQueue queue;
  bool closed = false;
  BatcherCounts counts;
  serve::WaitTimes waits;

  std::mutex joining;  ///< of the call that joins the thread
  std::thread thread;

  State(Function f, const BatcherOptions& o)
      : options(serve::checked(o)), function(std::move(f)), queue(options.max_batch, std::chrono::microseconds(options.max_delay_us)) {
    if (!function) throw Error("batcher: expected a function that computes outputs, got none");
  }

  bool full() const { return queue.size() >= options.max_queue; }

  /// The body of the thread: until the batcher is closed and the queue is empty.
  void work() {
    std::unique_lock lock(mutex);
    for (;;) {
      const Clock::time_point now = Clock::now();
      if (serve::BatchQueue::Dropped dropped = queue.drop(now); !dropped.expired.empty() || !dropped.cancelled.empty()) {
        counts.expired += dropped.expired.size();
        counts.cancelled += dropped.cancelled.size();
        space.notify_all();
        lock.unlock();
        for (Request& request : dropped.expired) request.result.set_exception(expired(request.arrival, now));
        for (Request& request : dropped.cancelled) request.result.set_exception(stopped());
        dropped = {};  // frees the tensors without the lock
        lock.lock();
        continue;
      }
      std::vector<Request> batch = queue.take(now, closed || full());
      if (!batch.empty()) {
        for (const Request& request : batch) waits.add(us_between(request.arrival, now));
        space.notify_all();
        lock.unlock();
        run_batch(batch);
        batch.clear();
        lock.lock();
        continue;
      }
      if (closed) return;
      if (const auto ready = queue.next_ready()) {
        changed.wait_until(lock, *ready);
      } else {
        changed.wait(lock);
      }
    }
  }

  /// Runs requests that can join as one call of the function.
  std::vector<NamedTensors> call(std::span<const Request> requests) const {
    const std::int64_t size = serve::padded_size(serve::count_samples(requests), options.batch_sizes);
    const NamedTensors inputs = serve::join(requests, size, options.padding);
    return serve::split(function(inputs), requests, size);
  }

  /// The outcome of each request of a batch, in order. Sets `out_split` if they were run one by one.
  std::vector<Outcome> outcomes(std::span<const Request> batch, bool& out_split) const {
    std::vector<Outcome> outcomes(batch.size());
    const auto run = [&](std::size_t first, std::size_t count) {
      std::vector<NamedTensors> results = call(batch.subspan(first, count));
      for (std::size_t i = 0; i < count; ++i) outcomes[first + i].outputs = std::move(results[i]);
    };
    try {
      run(0, batch.size());
      return outcomes;
    } catch (const serve::NoBatchAxis& error) {
      for (Outcome& outcome : outcomes) outcome.error = error_of(error.status(), error.what());
      return outcomes;
    } catch (...) {
      if (batch.size() == 1) {
        outcomes[0].error = std::current_exception();
        return outcomes;
      }
    }
    out_split = true;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      try {
        run(i, 1);
      } catch (...) {
        outcomes[i].error = std::current_exception();
      }
    }
    return outcomes;
  }

  void run_batch(std::vector<Request>& batch) {
    bool split = false;
    std::vector<Outcome> results = outcomes(batch, split);
    const std::int64_t samples = serve::count_samples(batch);
    {
      const std::lock_guard lock(mutex);
      counts.batches += 1;
      counts.samples += static_cast<std::uint64_t>(samples);
      counts.padding += static_cast<std::uint64_t>(serve::padded_size(samples, options.batch_sizes) - samples);
      counts.split_batches += split ? 1 : 0;
      for (const Outcome& result : results) ++(result.error ? counts.failed : counts.completed);
    }
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (results[i].error) {
        batch[i].result.set_exception(std::move(results[i].error));
      } else {
        batch[i].result.set_value(std::move(results[i].outputs));
      }
    }
  }

  void require_open() const {
    if (closed) throw Error(Status::cancelled, "batcher: expected a request before close(), got one after it; it was not run");
  }

  /// Adds a request to the queue, which has space. Requires the lock.
  std::future<NamedTensors> push(Request request) {
    request.arrival = Clock::now();  // here, so that the queue is in the order of arrival
    ++counts.requests;
    std::future<NamedTensors> result = request.result.get_future();
    if (queue.push(std::move(request)) || full()) changed.notify_one();
    return result;
  }

  /// Ends a request that is not added to the queue. Requires the lock.
  std::future<NamedTensors> refuse(Request request, std::uint64_t& counter, std::exception_ptr error) {
    ++counts.requests;
    ++counter;
    request.result.set_exception(std::move(error));
    return request.result.get_future();
  }

  void close() {
    {
      const std::lock_guard lock(mutex);
      closed = true;
      changed.notify_all();
      space.notify_all();
    }
    const std::lock_guard lock(joining);
    if (thread.joinable()) thread.join();
  }
};

namespace {

Request make_request(NamedTensors inputs, const RequestOptions& options, std::int64_t max_batch) {
  const std::int64_t samples = serve::count_samples(inputs, max_batch);
  return {.inputs = std::move(inputs), .samples = samples, .arrival = Clock::now(), .deadline = options.deadline, .stop = options.stop};
}

Batcher::Function function_of(onnx::Model model, const RunOptions& run) {
  return [model = std::make_shared<onnx::Model>(std::move(model)), run](const NamedTensors& inputs) {
    const std::vector<Tensor>& results = model->run(inputs, run);
    NamedTensors outputs;
    for (std::size_t i = 0; i < results.size(); ++i) outputs.emplace(model->outputs()[i].name, results[i]);
    return outputs;
  };
}

Batcher::Function function_of(Model model, const RunOptions& run) {
  return [model = std::make_shared<Model>(std::move(model)), run](const NamedTensors& inputs) {
    return model->predict(inputs, inputs.begin()->second.shape()[0], run);
  };
}

/// The model, if its inputs have a batch axis for these options.
onnx::Model checked(onnx::Model model, const BatcherOptions& options) {
  serve::check_batch_axis(model, serve::checked(options).batch_sizes);
  return model;
}

}  // namespace

Batcher::Batcher(Function function, const BatcherOptions& options) : state_(std::make_unique<State>(std::move(function), options)) {
  state_->thread = std::thread([state = state_.get()] { state->work(); });
}

Batcher::Batcher(onnx::Model model, const BatcherOptions& options, const RunOptions& run)
    : Batcher(function_of(checked(std::move(model), options), run), options) {}

Batcher::Batcher(Model model, const BatcherOptions& options, const RunOptions& run)
    : Batcher(function_of(std::move(model), run), options) {}

Batcher::~Batcher() {
  std::vector<Request> waiting;
  {
    const std::lock_guard lock(state_->mutex);
    state_->closed = true;
    waiting = state_->queue.take_all();
    state_->counts.cancelled += waiting.size();
  }
  for (Request& request : waiting)
    request.result.set_exception(error_of(Status::cancelled, "batcher: it was destroyed while the request waited; it was not run"));
  state_->close();
}

std::future<NamedTensors> Batcher::submit(NamedTensors inputs, const RequestOptions& options) {
  State& s = *state_;
  Request request = make_request(std::move(inputs), options, s.options.max_batch);
  std::unique_lock lock(s.mutex);
  s.require_open();
  const auto may_enter = [&s] { return s.closed || !s.full(); };
  if (request.deadline == Clock::time_point::max()) {
    s.space.wait(lock, request.stop, may_enter);
  } else {
    s.space.wait_until(lock, request.stop, request.deadline, may_enter);
  }
  s.require_open();
  if (request.stop.stop_requested()) return s.refuse(std::move(request), s.counts.cancelled, stopped());
  const Clock::time_point now = Clock::now();
  if (request.deadline <= now) {
    const std::exception_ptr error = expired(request.arrival, now);
    return s.refuse(std::move(request), s.counts.expired, error);
  }
  return s.push(std::move(request));
}

std::optional<std::future<NamedTensors>> Batcher::try_submit(NamedTensors inputs, const RequestOptions& options) {
  State& s = *state_;
  Request request = make_request(std::move(inputs), options, s.options.max_batch);
  const std::lock_guard lock(s.mutex);
  s.require_open();
  if (request.stop.stop_requested()) return s.refuse(std::move(request), s.counts.cancelled, stopped());
  const Clock::time_point now = Clock::now();
  if (request.deadline <= now) {
    const std::exception_ptr error = expired(request.arrival, now);
    return s.refuse(std::move(request), s.counts.expired, error);
  }
  if (s.full()) {
    ++s.counts.rejected;
    return std::nullopt;
  }
  return s.push(std::move(request));
}

void Batcher::close() {
  state_->close();
}

BatcherCounts Batcher::counts() const {
  BatcherCounts counts;
  std::vector<double> waits;
  {
    const std::lock_guard lock(state_->mutex);
    counts = state_->counts;
    counts.queued = state_->queue.size();
    waits = state_->waits.us();
  }
  std::ranges::sort(waits);
  counts.wait_p50_us = serve::percentile(waits, 0.5);
  counts.wait_p90_us = serve::percentile(waits, 0.9);
  counts.wait_p99_us = serve::percentile(waits, 0.99);
  counts.wait_max_us = serve::percentile(waits, 1);
  return counts;
}

const BatcherOptions& Batcher::options() const {
  return state_->options;
}

}  // namespace tenon
