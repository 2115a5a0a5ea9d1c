// SPDX-License-Identifier: Apache-2.0
#include "conv/conv_device.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "conv/conv_graph.h"
#include "conv/random_fill.h"
#include "device/options.h"

namespace tenon::cuda {
namespace {

constexpr std::size_t max_measured = 8;

}  // namespace

std::string cache_key(const ConvProblem& problem, bool measured, const std::string& device_name, int compute_capability,
                      std::size_t cudnn_version) {
  return text_of(problem) + "; workspace " + std::to_string(problem.workspace_limit) + (measured ? "; timed" : "; heuristic") + " on " +
         device_name + " " + std::to_string(compute_capability / 10) + "." + std::to_string(compute_capability % 10) + " by cuDNN " +
         std::to_string(cudnn_version);
}

ConvDevice::ConvDevice(Device& device) : device_(device), functions_(cudnn(device.host)) {
  cudaDeviceProp properties{};
  device_.check(cudaGetDeviceProperties(&properties, device_.index()), "cudaGetDeviceProperties");
  name_ = properties.name;
}

const ConvPlan& ConvDevice::choose(const ConvProblem& problem) {
  return plans_.get(problem, [this](const ConvProblem& unknown) { return chosen(unknown); });
}

ConvPlan ConvDevice::chosen(const ConvProblem& problem) {
  device_.enter();
  const OutsideOfRecordings outside;
  const Options& options = options_of(device_);
  const BorrowedHandle handle(device_);
  const GraphTarget target{handle.get(), nullptr};
  const auto log = [&](const ConvPlan& plan, const char* how) {
    const std::string line =
        "cuda: " + text_of(problem) + ": " + plan.text() + ", workspace " + mebibytes(plan.plan->workspace_bytes()) + how;
    device_.host.log(TENON_LOG_DEBUG, line.c_str());
  };
  if (options.engine) {
    ConvPlan plan = named_plan(functions_, target, problem, *options.engine);
    log(plan, ", as named");
    return plan;
  }
  const std::string key = cache_key(problem, options.measures, name_, device_.compute_capability(), functions_.cudnnGetVersion());
  if (const std::string kept = device_.host.autotune_get(key.c_str()); !kept.empty()) {
    if (std::optional<ConvPlan> plan = remembered_plan(functions_, target, problem, kept)) {
      log(*plan, ", as chosen before");
      return std::move(*plan);
    }
  }
  Rejections rejections;
  std::vector<ConvPlan> plans = acceptable_plans(functions_, target, problem, options.measures ? max_measured : 1, rejections);
  if (plans.empty()) {
    device_.check_context("cuDNN");  // a lost device reports no engines
    const std::string line =
        "cuda: " + text_of(problem) + ": no cuDNN engine runs it within a workspace of " + mebibytes(problem.workspace_limit) +
        " (backends.options.cuda.workspace_limit_mib), so a slow plain kernel runs it; rejected engines: " + rejections.text();
    device_.host.log(TENON_LOG_WARNING, line.c_str());
    return {};
  }
  ConvPlan best = options.measures ? fastest(problem, std::move(plans)) : std::move(plans[0]);
  log(best, options.measures ? ", the fastest" : "");
  device_.host.autotune_put(key.c_str(), best.text());
  return best;
}

ConvPlan ConvDevice::fastest(const ConvProblem& problem, std::vector<ConvPlan> plans) {
  /// Memory and a stream for the measurement.
  struct Bench {
    explicit Bench(Device& d) : device(d), stream(d) {}
    ~Bench() {
      cudaStreamSynchronize(stream.handle());
      for (const auto& [address, bytes] : blocks) device.deallocate(TENON_MEMORY_DEVICE, address, bytes);
      for (cudaEvent_t event : events) {
        if (event != nullptr) cudaEventDestroy(event);
      }
    }
    void* allocate(std::size_t bytes) {
      if (bytes == 0) return nullptr;
      blocks.emplace_back(device.allocate(TENON_MEMORY_DEVICE, bytes), bytes);
      return reinterpret_cast<void*>(static_cast<std::uintptr_t>(blocks.back().first));
    }
    void* operand(tenon_dtype dtype, std::int64_t count) {
      void* const memory = allocate(static_cast<std::size_t>(count * sdk::size_of(dtype)));
      fill_random(stream, dtype, count, seed++, memory);
      return memory;
    }
    Device& device;
    Stream stream;
    std::vector<std::pair<std::uint64_t, std::size_t>> blocks;
    cudaEvent_t events[2] = {};
    std::uint32_t seed = 0;
  };
  const ConvShape& s = problem.shape;
  const std::int64_t made = problem.direction == ConvDirection::forward ? s.result_count() : s.image_count();
  std::size_t workspace_bytes = 0, best = 0;
  for (const ConvPlan& plan : plans) workspace_bytes = std::max(workspace_bytes, plan.plan->workspace_bytes());
  try {
    Bench bench(device_);
    const auto operand = [&](std::int64_t count) { return bench.operand(problem.dtype, count); };
    const ConvPointers pointers{operand(s.image_count()), operand(s.filter_count()), operand(s.result_count()),
                                problem.bias ? operand(std::max(s.channels, s.filters)) : nullptr,
                                problem.residual ? operand(made) : nullptr};
    void* const workspace = bench.allocate(workspace_bytes);
    for (cudaEvent_t& event : bench.events) device_.check(cudaEventCreate(&event), "cudaEventCreate");
    const auto time = [&](const ConvPlan& plan) {
      constexpr int repeats = 5;
      device_.check(cudaEventRecord(bench.events[0], bench.stream.handle()), "cudaEventRecord");
      for (int repeat = 0; repeat < repeats; ++repeat) run(bench.stream, plan, pointers, workspace);
      device_.check(cudaEventRecord(bench.events[1], bench.stream.handle()), "cudaEventRecord");
      bench.stream.synchronize();
      float milliseconds = 0;
      device_.check(cudaEventElapsedTime(&milliseconds, bench.events[0], bench.events[1]), "cudaEventElapsedTime");
      return milliseconds;
    };
    float best_time = std::numeric_limits<float>::infinity();
    for (std::size_t i = 0; i < plans.size(); ++i) {
      try {
        run(bench.stream, plans[i], pointers, workspace);  // warm-up: the first run loads code
        const float fastest_of_three = std::min({time(plans[i]), time(plans[i]), time(plans[i])});
        if (fastest_of_three >= best_time) continue;
        best_time = fastest_of_three;
        best = i;
      } catch (const sdk::Error& error) {  // an engine with a plan can still fail at execution
        if (device_.is_lost()) throw;
        const std::string line = "cuda: " + text_of(problem) + ": " + plans[i].engine.name() + " is rejected, " + error.what();
        device_.host.log(TENON_LOG_WARNING, line.c_str());
      }
    }
    if (best_time == std::numeric_limits<float>::infinity()) {
      throw sdk::Error(TENON_VENDOR_ERROR, text_of(problem) + ": none of the " + std::to_string(plans.size()) +
                                               " measured engines runs (the log says why); backends.options.cuda.kernels: naive "
                                               "works without cuDNN");
    }
  } catch (const sdk::Error& error) {
    if (error.status() != TENON_OUT_OF_MEMORY) throw;
    const std::string line = "cuda: " + text_of(problem) + ": not measured, " + error.what() + "; " + plans[0].engine.name() + " is used";
    device_.host.log(TENON_LOG_WARNING, line.c_str());
    best = 0;
  }
  return std::move(plans[best]);
}

void ConvDevice::run(Stream& stream, const ConvPlan& plan, const ConvPointers& p, void* workspace) {
  device_.enter();
  std::vector<GraphPointer> pointers{{graph_x, p.x}, {graph_w, p.w}, {graph_y, p.y}};
  if (plan.adds && p.bias != nullptr) pointers.push_back({graph_bias, const_cast<void*>(p.bias)});
  if (plan.adds && p.residual != nullptr) pointers.push_back({graph_residual, const_cast<void*>(p.residual)});
  const CudnnStream& cudnn_stream = stream.attached.get<CudnnStream>(stream);
  const std::lock_guard lock(running_);
  check(device_, functions_, plan.plan->execute(cudnn_stream.handle, pointers, workspace), "BackendExecute");
}

}  // namespace tenon::cuda
