// SPDX-License-Identifier: Apache-2.0
// tenon/sdk/kernel_markers.h - ranges of a vendor's profiler around the kernels of a plan.
#pragma once

namespace tenon::sdk {

/// Functions of a profiler that mark the code of this thread up to the matching end, nested.
struct KernelMarkers {
  void (*begin)(const char* name);
  void (*end)();
};

/// From here on each kernel of a plan that is created is submitted within a range named
/// "<op> <node>", on all devices of this backend. Such plans refuse to be recorded, because a replay
/// would have no ranges. NULL: none, which is the default and costs nothing.
void set_kernel_markers(const KernelMarkers* markers);

}  // namespace tenon::sdk
