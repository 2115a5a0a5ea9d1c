// SPDX-License-Identifier: Apache-2.0
#include "device/nvtx.h"

#include <nvtx3/nvToolsExt.h>

namespace tenon::cuda {

const sdk::KernelMarkers& nvtx_markers() {
  static constexpr sdk::KernelMarkers markers{[](const char* name) { nvtxRangePushA(name); }, [] { nvtxRangePop(); }};
  return markers;
}

}  // namespace tenon::cuda
