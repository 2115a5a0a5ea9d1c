// SPDX-License-Identifier: Apache-2.0
// channel_padding.h - images and filters of few channels of 2 bytes, copied to pixels of 8 channels, and back.
#pragma once

#include <cstdint>

#include "device/device.h"

namespace tenon::cuda {

constexpr std::int64_t padded_pixel_channels = 8;  ///< 16 bytes

/// (outer, channels, area) of 2 bytes each, dense at any alignment, next to (outer, area, 8), aligned to 16 bytes. An image with channels
/// last is (pixels, channels, 1), filters are (K, C, R S).
struct FewChannels {
  std::int64_t outer = 0, channels = 0, area = 1;
};
/// padded = narrow, and zeros in the channels that narrow does not have, which are at least one.
void pad_channels(Stream& stream, const FewChannels& shape, const void* narrow, void* padded);
/// narrow = the first channels of padded.
void unpad_channels(Stream& stream, const FewChannels& shape, const void* padded, void* narrow);

}  // namespace tenon::cuda
