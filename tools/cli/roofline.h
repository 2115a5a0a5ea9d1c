// SPDX-License-Identifier: Apache-2.0
// cli/roofline.h - measures how close each layer of a training step, or each op of a program, comes to the peak of the machine.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <tenon/trace.h>

#include "cli/peaks.h"
#include "cli/roofline_report.h"
#include "cli/train_run.h"

namespace tenon::cli {

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

}  // namespace tenon::cli
