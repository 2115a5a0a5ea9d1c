// SPDX-License-Identifier: Apache-2.0
// nvtx.h - ranges for NVIDIA's profilers. Host side.
#pragma once

#include <tenon/sdk/kernel_markers.h>

namespace tenon::cuda {

/// Ranges that Nsight Systems and Nsight Compute show on the thread's line. Without such a tool a range is a call through a pointer.
const sdk::KernelMarkers& nvtx_markers();

}  // namespace tenon::cuda
