// SPDX-License-Identifier: Apache-2.0
// integer_depthwise_vnni.h - a line of a requantised depthwise convolution, by AVX-512 VNNI.
#pragma once

#include <cstdint>

#include "quantize/integer_depthwise_layout.h"
#include "quantize/integer_tiles.h"
#include "simd/x86.h"

#if TENON_X86

namespace tenon::openblas::vnni {

/// The lists of a requantisation in the order of channel_at, of whole chunks.
struct OrderedRequantisation {
  IntegerRequantisation by;  ///< without y; the sums begin with the bias
  bool small_factors;        ///< Requantiser::are_small

  OrderedRequantisation(const IntegerRequantisation& ordered, std::int64_t chunks);
};

/// One line of y. `weights` is the second part of the packed weights, `pixels` memory for the pixels of one position.
void depthwise_line(const DepthwiseLine& from, bool x_signed, const std::int8_t* weights, const OrderedRequantisation& by,
                    const std::uint8_t** pixels, std::uint8_t* y);

}  // namespace tenon::openblas::vnni

#endif
