// SPDX-License-Identifier: Apache-2.0
// machine_code.h - whether the kernels of this build can run on a device.
#pragma once

#include "device/device.h"

namespace tenon::cuda {

/// Errors  INCOMPATIBLE if the build has neither machine code for the device nor PTX that its driver translates, with the remedy.
void check_machine_code(Device& device);

}  // namespace tenon::cuda
