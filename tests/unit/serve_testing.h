// SPDX-License-Identifier: Apache-2.0
// serve_testing.h - a model that tests of the batcher control.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <tenon/batcher.h>

#include "testing.h"

namespace tenon::test {

/// An f32 tensor (samples, 1) with these elements.
inline Tensor rows(const std::vector<float>& values) {
  return Tensor::of<float>(values, {static_cast<std::int64_t>(values.size()), 1});
}

/// What one thread sends and another one waits for. std::binary_semaphore of libstdc++ loses wake-ups where the system has no futex.
class Signal {
 public:
  void send() {
    const std::lock_guard lock(mutex_);
    ++sent_;
    changed_.notify_one();
  }
  void receive() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return sent_ > 0; });
    --sent_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int sent_ = 0;
};

/// A function y = 2 x that keeps the inputs of its calls, fails on negative elements, and can be held in a call.
/// Threads  any.
class ControlledModel {
 public:
  /// The function for a batcher; it refers to this object.
  Batcher::Function function() {
    return [this](const NamedTensors& inputs) { return call(inputs); };
  }
  /// The next call waits for release().
  void hold() {
    const std::lock_guard lock(mutex_);
    held_ = true;
  }
  /// Waits until the held call has begun.
  void wait_for_call() { begun_.receive(); }
  void release() { released_.send(); }

  /// The elements of x in each call so far.
  std::vector<std::vector<float>> calls() const {
    const std::lock_guard lock(mutex_);
    return calls_;
  }

 private:
  NamedTensors call(const NamedTensors& inputs) {
    Tensor y = inputs.at("x").to(DType::f32).contiguous().to_host();
    const std::vector<float> x = y.to_vector<float>();
    bool held = false;
    {
      const std::lock_guard lock(mutex_);
      calls_.push_back(x);
      held = std::exchange(held_, false);
    }
    if (held) {
      begun_.send();
      released_.receive();
    }
    for (std::int64_t i = 0; i < y.count(); ++i) {
      if (x[static_cast<std::size_t>(i)] < 0) throw std::runtime_error("a negative element");
      y.data<float>()[i] = 2 * x[static_cast<std::size_t>(i)];
    }
    return {{"y", y}};
  }

  mutable std::mutex mutex_;
  bool held_ = false;
  std::vector<std::vector<float>> calls_;
  Signal begun_, released_;
};

/// A batcher whose first batch, of the element 0, is held, so that later requests wait until release().
class HeldBatcher {
 public:
  explicit HeldBatcher(const BatcherOptions& options) : batcher(std::make_unique<Batcher>(model.function(), options)) {
    model.hold();
    // A deadline closer than twice the long delays of the tests, so that the request does not wait for others.
    first = batcher->submit({{"x", rows({0})}}, {.deadline = std::chrono::steady_clock::now() + std::chrono::minutes(5)});
    model.wait_for_call();
  }
  std::future<NamedTensors> submit(const std::vector<float>& values, const RequestOptions& options = {}) const {
    return batcher->submit({{"x", rows(values)}}, options);
  }
  /// The calls after that of the held batch, once all requests are done.
  std::vector<std::vector<float>> calls_after_release() {
    model.release();
    batcher->close();
    std::vector<std::vector<float>> calls = model.calls();
    calls.erase(calls.begin());
    return calls;
  }

  ControlledModel model;
  std::unique_ptr<Batcher> batcher;
  std::future<NamedTensors> first;
};

/// The elements of y.
inline std::vector<float> result_of(std::future<NamedTensors>& future) {
  return floats(future.get().at("y"));
}

/// The Error that a request ended with.
struct Failure {
  Status status = Status::ok;
  std::string text = "no error";
};
inline Failure error_of(std::future<NamedTensors>& future) {
  try {
    static_cast<void>(future.get());
  } catch (const Error& error) {
    return {error.status(), error.what()};
  }
  return {};
}

}  // namespace tenon::test
