// SPDX-License-Identifier: Apache-2.0
// bench/kernel_samples.h - times of a program's kernels on the device, from its profile.
#pragma once

#include <span>
#include <vector>

#include <tenon/program.h>

#include "bench/harness.h"

namespace tenon::bench {

/// Times of the kernels and of the layout conversions at the borders of plans, for single runs.
struct KernelSamples {
  Samples own;
  std::vector<double> border_ns;
};

/// Profiles `runs` runs, after three that are not counted. It leaves profiling off.
KernelSamples profile_kernels(Program& program, std::span<const Tensor> inputs, int runs);

}  // namespace tenon::bench
