// SPDX-License-Identifier: Apache-2.0
// conv_device.h - the choice of an engine for each convolution, and running it.
//
// An engine is chosen when a backend plan is created, where the scratch memory of a call is computed: nothing is created while work is
// recorded. The same problem gets the same engine as long as the device is open.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

#include "conv/conv_engines.h"
#include "libraries/plan_cache.h"

namespace tenon::cuda {

/// The key under which the host caches a choice: problem, selection method, device and library.
std::string cache_key(const ConvProblem& problem, bool measured, const std::string& device_name, int compute_capability,
                      std::size_t cudnn_version);

/// Addresses of the operands; NULL for absent ones.
struct ConvPointers {
  void* x = nullptr;
  void* w = nullptr;
  void* y = nullptr;
  const void* bias = nullptr;
  const void* residual = nullptr;
};

/// The engine choices of a device.
///
/// Threads  any
class ConvDevice {
 public:
  explicit ConvDevice(Device& device);

  /// The plan of a problem; the first call chooses it.
  /// Errors  UNSUPPORTED: the user named an engine that cannot run it.
  const ConvPlan& choose(const ConvProblem& problem);
  /// The cached plan; NULL if there is none.
  const ConvPlan* find(const ConvProblem& problem) const { return plans_.find(problem); }
  /// Enqueues the plan on the stream. `workspace` has plan.workspace_bytes() bytes, aligned to 256.
  void run(Stream& stream, const ConvPlan& plan, const ConvPointers& pointers, void* workspace);

 private:
  ConvPlan chosen(const ConvProblem& problem);

  Device& device_;
  const Cudnn& functions_;
  std::string name_;
  PlanCache<ConvProblem, ConvPlan> plans_;
  std::mutex running_;  ///< cuDNN does not document plans as thread-safe
};

}  // namespace tenon::cuda
