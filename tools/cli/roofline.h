// SPDX-License-Identifier: Apache-2.0
// cli/roofline.h - how close each layer of a training step, or each op of a program, comes to the peak of the machine.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include <tenon/trace.h>

#include "cli/peaks.h"
#include "cli/train_run.h"

namespace tenon::cli {

/// The work of some kernels in one step: floating-point operations, bytes of memory traffic, and the shortest measured time.
struct Work {
  std::string name;       ///< the layer and its part ("dense_1 gradient"), the op of a group, or the node
  std::string op;         ///< the node's op; empty for a group
  std::string algorithm;  ///< the node's kernel; empty for a group
  std::string device;
  std::uint64_t kernels = 0, flops = 0, size_bytes = 0;
  std::uint64_t duration_ns = 0;                 ///< expected instead of measured, if the peaks are another device's
  std::map<DType, std::uint64_t> flops_of = {};  ///< of `flops`, by the dtype whose peak they are compared with

  /// Operations per byte.
  double intensity() const { return size_bytes == 0 ? 0 : static_cast<double>(flops) / static_cast<double>(size_bytes); }
};

/// The peaks of a device: measured, which only those of CPUs are, or another device's that are known.
struct Roof {
  std::string device;
  std::map<DType, double> gflops;  ///< of the model's dtype and of those that kernels compute with; without those that are not measured
  double gb_per_s = 0;

  /// True if the peaks that the work is compared with are known.
  bool covers(const Work& work) const;
  /// Lower bound of the time of the work, in nanoseconds.
  double min_ns(const Work& work) const;
  /// True if memory, not arithmetic, determines that bound.
  bool is_memory_bound(const Work& work) const;

 private:
  double arithmetic_ns(const Work& work) const;
};

struct Roofline {
  std::string group;                  ///< what kernels are summed by: "layer", "op"
  DType dtype = DType::f32;           ///< of the model
  std::vector<Work> groups, kernels;  ///< the longest times first
  std::vector<Roof> roofs;
  std::uint64_t steps = 0;          ///< number of timed runs
  const Peaks* expected = nullptr;  ///< the device whose peaks the times are computed from; NULL: they are measured

  /// The part of the time of all kernels that the work takes, in percent.
  double share(const Work& work) const;
};

/// How the time of a kernel is found.
struct RooflineOptions {
  /// NULL: the shortest time of some runs on its own device. Else computed for a device with these peaks, which runs the same kernels one
  /// after the other: the longer one of its arithmetic and its memory traffic, and a launch. Caches are not counted.
  const Peaks* peaks = nullptr;
};

/// Calls `run` and sums kernels by what `group_of` gives. `dtype` is that of the model, whose peak kernels of dtypes without a peak of
/// their own are compared with.
Roofline measure_roofline(const Context& context, DType dtype, const std::string& group,
                          const std::function<std::string(const Trace::Kernel&)>& group_of, const std::function<void()>& run,
                          const RooflineOptions& options);
/// The same of training steps of the model on synthetic samples of that shape. The parameters of the model change.
Roofline measure_roofline(TrainingRun& run, std::int64_t batch_size, const RooflineOptions& options);
std::string as_text(const Roofline& roofline);
nlohmann::ordered_json to_json(const Roofline& roofline);

}  // namespace tenon::cli
