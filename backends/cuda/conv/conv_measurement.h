// SPDX-License-Identifier: Apache-2.0
// conv_measurement.h - which of several cuDNN engines runs a convolution in the least time.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "conv/conv_device.h"

namespace tenon::cuda {

/// The index of the plan that takes the least time with operands of random numbers. None, and a warning, if the device has no memory for
/// them. Plans that fail to run are skipped with a warning.
///
/// Errors  VENDOR_ERROR: no plan runs.
std::optional<std::size_t> fastest_plan(ConvDevice& convolutions, Device& device, const ConvProblem& problem,
                                        std::span<const ConvPlan> plans);

}  // namespace tenon::cuda
