// SPDX-License-Identifier: Apache-2.0
// conv_bands.h - convolutions of bf16 by tile registers (Intel AMX) that read the pixels of each tap where they lie in a padded copy of
// some lines of the image, a band, instead of rows that are gathered for all taps.
#pragma once

#include <cstddef>

#include <tenon/sdk/kernel.h>

#include "conv/conv_direct.h"

namespace tenon::openblas {

/// Channels of a part of a band: the elements of a row of a tile. Rows of packed weights are in the order (c / 32, taps, c % 32), so that
/// the pixels of 32 channels stay in L1 for all taps.
inline constexpr std::int64_t band_channels = 32;

/// Whether this convolution of bf16 reads bands, and needs weights in the order for them: of several taps, and lines that are much wider
/// than the kernel. It depends on the shape and the processor only, as the order of additions does.
bool reads_bands(const DirectConv& conv);

std::size_t bands_scratch(const DirectConv& conv, const sdk::Host& host);
void bands_conv(const DirectConv& conv, const DirectOperands<sdk::BFloat16>& operands, const sdk::Host& host, char* scratch);

}  // namespace tenon::openblas
