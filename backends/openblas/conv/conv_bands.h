// SPDX-License-Identifier: Apache-2.0
// conv_bands.h - convolutions of bf16 by tile registers (Intel AMX) that read bands of the image (image_bands.h).
#pragma once

#include <cstddef>

#include <tenon/sdk/kernel.h>

#include "conv/image_bands.h"

namespace tenon::openblas {

/// Channels of a part of a band.
inline constexpr std::int64_t band_channels = band_pixel_bytes / static_cast<std::int64_t>(sizeof(sdk::BFloat16));

/// Whether this convolution of bf16 reads bands, and needs weights in the order for them. It depends on the shape and the instance only, as
/// the order of additions does.
bool reads_bands(const DirectConv& conv, const sdk::Host& host);

std::size_t bands_scratch(const DirectConv& conv, const sdk::Host& host);
void bands_conv(const DirectConv& conv, const DirectOperands<sdk::BFloat16>& operands, const sdk::Host& host, char* scratch);

}  // namespace tenon::openblas
