// SPDX-License-Identifier: Apache-2.0
// bench/layer_times.h - the time of each layer of a net, summed from those of its kernels.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tenon/program.h>

namespace tenon::bench {

struct LayerTime {
  std::string name;
  double flops = 0, bytes = 0, ns = 0;
  std::optional<double> min_ns = 0;  ///< sum of the lower bounds of its kernels; empty if a roof is unknown
};

/// The layer of a node: the longest layer name that is a prefix of its name.
std::string layer_of(std::string node, const std::vector<std::string>& layers);

/// The kernels of a run and the time of each in nanoseconds, by layer. As in `tenon explain --roofline`, the work of a kernel that is
/// joined to the launch before is that launch's, and so is its layer. `min_ns` is the lower bound of the time of (FLOP, bytes).
std::vector<LayerTime> sum_layers(std::span<const Program::KernelTime> kernels, std::span<const double> ns,
                                  const std::vector<std::string>& layers,
                                  const std::function<std::optional<double>(double, double)>& min_ns);

}  // namespace tenon::bench
