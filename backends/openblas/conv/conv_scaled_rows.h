// SPDX-License-Identifier: Apache-2.0
// conv_scaled_rows.h - rows of pixels times a factor of each channel, for the products of 1x1 convolutions with sdk::conv_input::scale.
#pragma once

#include <cstdint>

#include <tenon/sdk/kernel.h>

namespace tenon::openblas {

/// Writes pixels [begin, end) of the images x (..., channels), each times the factors of its image, scale (images, channels), rounded to T,
/// `step` elements apart. An image has `pixels` pixels. Instantiated for bf16, float and double.
template <class T>
void scale_rows(const T* x, const T* scale, std::int64_t channels, std::int64_t pixels, std::int64_t begin, std::int64_t end, T* out,
                std::int64_t step);

}  // namespace tenon::openblas
