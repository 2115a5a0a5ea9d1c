// SPDX-License-Identifier: Apache-2.0
// random_operand.h - operands of convolutions that are measured: GPUs multiply zeros faster than other numbers, since they take less power.
#pragma once

#include <cstdint>

#include "device/device.h"

namespace tenon::cuda {

/// Fills memory of a floating dtype with numbers from -1 to 1, on the stream.
void fill_with_numbers(Stream& stream, tenon_dtype dtype, std::int64_t count, void* memory);

}  // namespace tenon::cuda
