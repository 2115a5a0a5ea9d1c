// SPDX-License-Identifier: Apache-2.0
// cli/roofline_report.h - kernels with their times, next to the peaks of their device: their sums, tables and JSON.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <tenon/trace.h>

#include "cli/peaks.h"

namespace tenon::cli {

/// The work of some kernels in one step: floating-point operations, bytes of memory traffic, and the shortest measured time.
struct Work {
  std::string name;       ///< the layer and its part ("dense_1 gradient"), the op of a group, or the node
  std::string op;         ///< the node's op; empty for a group
  std::string algorithm;  ///< the node's kernel; empty for a group
  std::string device;
  std::uint64_t kernels = 0, flops = 0, size_bytes = 0;
  std::uint64_t joined = 0;                      ///< kernels that run in the launches of `kernels`, whose times and work include them
  std::uint64_t duration_ns = 0;                 ///< expected instead of measured, if the peaks are another device's
  std::optional<double> min_ns = {};             ///< lower bound of the time by the roof; of a group, the sum of its kernels'
  double memory_ns = 0;                          ///< the part of `min_ns` that is of memory-bound kernels
  std::size_t group = 0;                         ///< of a kernel: its index in the groups until complete() sorts these
  std::map<DType, std::uint64_t> flops_of = {};  ///< of `flops`, by the dtype whose peak they are compared with

  /// Operations per byte.
  double intensity() const { return size_bytes == 0 ? 0 : static_cast<double>(flops) / static_cast<double>(size_bytes); }
  /// "memory" or "compute", by what determines most of `min_ns`; null if that is not known.
  const char* bound() const;
  /// `min_ns` in percent of the time.
  std::optional<double> percent_of_roof() const;
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

  /// The time of all kernels.
  std::uint64_t duration_ns() const;
  /// The part of the time of all kernels that the work takes, in percent.
  double share(const Work& work) const;
};

/// The dtype whose peak bounds the arithmetic of a kernel with these operands in a model of that dtype.
DType peak_dtype_of(DType operands, DType model);
/// The name of a kernel: that of the backend, with " (inserted)" if it computes no node, but converts an operand or a result of one.
std::string name_of(const Trace::Kernel& kernel);
/// Adds kernels to `out_roofline`, whose dtype and `expected` are set, and sums them by what `group_of` gives. Returns the dtypes whose
/// peaks they are compared with.
std::set<DType> add_kernels(std::span<const Trace::Kernel> kernels, const std::function<std::string(const Trace::Kernel&)>& group_of,
                            Roofline& out_roofline);
/// Computes the lower bounds of all times, and the times themselves if they are expected ones, once the roofs are known; then sorts.
void complete(Roofline& out_roofline);

/// Names are shortened for lines of at most so many characters; 0: of any length.
std::string as_text(const Roofline& roofline, std::size_t columns_of_terminal = 0);
nlohmann::ordered_json to_json(const Roofline& roofline);

}  // namespace tenon::cli
