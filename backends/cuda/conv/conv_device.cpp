// SPDX-License-Identifier: Apache-2.0
#include "conv/conv_device.h"

#include <optional>
#include <utility>

#include "conv/conv_graph.h"
#include "conv/conv_measurement.h"
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
  std::optional<std::size_t> best = 0;
  if (options.measures) best = fastest_plan(*this, device_, problem, plans);
  ConvPlan& plan = plans[best.value_or(0)];
  log(plan, !options.measures ? "" : best ? ", the fastest" : ", not measured");
  if (best) device_.host.autotune_put(key.c_str(), plan.text());  // a later process measures what this one could not
  return std::move(plan);
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
