// SPDX-License-Identifier: Apache-2.0
#include "conv/conv_measurement.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "conv/random_fill.h"

namespace tenon::cuda {
namespace {

/// Memory, a stream and events for the measurement of a problem.
class Bench {
 public:
  Bench(ConvDevice& convolutions, Device& device, const ConvProblem& problem, std::size_t workspace_bytes)
      : convolutions_(convolutions), device_(device), stream_(device) {
    const ConvShape& s = problem.shape;
    const std::int64_t result_count = problem.direction == ConvDirection::forward ? s.result_count() : s.image_count();
    try {
      pointers_.x = operand(problem.dtype, s.image_count());
      pointers_.w = operand(problem.dtype, s.filter_count());
      pointers_.y = operand(problem.dtype, s.result_count());
      if (problem.bias) pointers_.bias = operand(problem.dtype, std::max(s.channels, s.filters));
      if (problem.residual) pointers_.residual = operand(problem.dtype, result_count);
      workspace_ = allocate(workspace_bytes);
      for (cudaEvent_t& event : events_) device_.check(cudaEventCreate(&event), "cudaEventCreate");
    } catch (...) {
      release();
      throw;
    }
  }
  ~Bench() { release(); }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  /// The least of three times, in milliseconds.
  float time(const ConvPlan& plan) {
    convolutions_.run(stream_, plan, pointers_, workspace_);  // the first run loads code
    return std::min({time_once(plan), time_once(plan), time_once(plan)});
  }

 private:
  float time_once(const ConvPlan& plan) {
    constexpr int repeats = 5;
    device_.check(cudaEventRecord(events_[0], stream_.handle()), "cudaEventRecord");
    for (int repeat = 0; repeat < repeats; ++repeat) convolutions_.run(stream_, plan, pointers_, workspace_);
    device_.check(cudaEventRecord(events_[1], stream_.handle()), "cudaEventRecord");
    stream_.synchronize();
    float milliseconds = 0;
    device_.check(cudaEventElapsedTime(&milliseconds, events_[0], events_[1]), "cudaEventElapsedTime");
    return milliseconds;
  }
  void* allocate(std::size_t bytes) {
    if (bytes == 0) return nullptr;
    blocks_.emplace_back(device_.allocate(TENON_MEMORY_DEVICE, bytes), bytes);
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(blocks_.back().first));
  }
  void* operand(tenon_dtype dtype, std::int64_t count) {
    void* const memory = allocate(static_cast<std::size_t>(count * sdk::size_of(dtype)));
    fill_random(stream_, dtype, count, seed_++, memory);
    return memory;
  }
  void release() {
    cudaStreamSynchronize(stream_.handle());
    for (const auto& [address, bytes] : blocks_) device_.deallocate(TENON_MEMORY_DEVICE, address, bytes);
    for (cudaEvent_t event : events_) {
      if (event != nullptr) cudaEventDestroy(event);
    }
  }

  ConvDevice& convolutions_;
  Device& device_;
  Stream stream_;
  std::vector<std::pair<std::uint64_t, std::size_t>> blocks_;
  cudaEvent_t events_[2] = {};
  std::uint32_t seed_ = 0;
  ConvPointers pointers_;
  void* workspace_ = nullptr;
};

}  // namespace

std::optional<std::size_t> fastest_plan(ConvDevice& convolutions, Device& device, const ConvProblem& problem,
                                        std::span<const ConvPlan> plans) {
  const auto warn = [&](const std::string& what) {
    const std::string line = "cuda: " + text_of(problem) + ": " + what;
    device.host.log(TENON_LOG_WARNING, line.c_str());
  };
  std::size_t workspace_bytes = 0, best = 0;
  for (const ConvPlan& plan : plans) workspace_bytes = std::max(workspace_bytes, plan.plan->workspace_bytes());
  std::optional<Bench> bench;
  try {
    bench.emplace(convolutions, device, problem, workspace_bytes);
  } catch (const sdk::Error& error) {
    if (error.status() != TENON_OUT_OF_MEMORY) throw;
    warn(std::string("not measured, ") + error.what() + "; " + plans[0].engine.name() + " is used");
    return std::nullopt;
  }
  float best_time = std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < plans.size(); ++i) {
    try {
      const float time = bench->time(plans[i]);
      if (time >= best_time) continue;
      best_time = time;
      best = i;
    } catch (const sdk::Error& error) {  // an engine with a plan can still fail at execution
      if (device.is_lost()) throw;
      warn(plans[i].engine.name() + " is rejected, " + error.what());
    }
  }
  if (best_time == std::numeric_limits<float>::infinity()) {
    throw sdk::Error(TENON_VENDOR_ERROR, text_of(problem) + ": none of the " + std::to_string(plans.size()) +
                                             " measured engines runs (the log says why); backends.options.cuda.kernels: naive "
                                             "works without cuDNN");
  }
  return best;
}

}  // namespace tenon::cuda
