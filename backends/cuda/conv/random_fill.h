// SPDX-License-Identifier: Apache-2.0
// random_fill.h - operands of convolutions that are measured: with zeros a GPU draws less power, so that its clock is higher.
#pragma once

#include <cstdint>

#include "device/device.h"

namespace tenon::cuda {

/// Fills memory of a floating dtype with numbers from -1 to 1, on the stream. The seed has 24 bits.
void fill_random(Stream& stream, tenon_dtype dtype, std::int64_t count, std::uint32_t seed, void* memory);

}  // namespace tenon::cuda
