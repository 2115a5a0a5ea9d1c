// SPDX-License-Identifier: Apache-2.0
// integer_gather.h - rows of the im2col matrix of channels-last images of 8-bit integers.
#pragma once

#include <cstdint>

#include "conv/conv_geometry.h"

namespace tenon::openblas {

/// Gathers rows [begin, end) of the im2col matrix of one group, `step` bytes apart; `zero_point` stands for the padding. A run may be
/// written past its end, because the next one overwrites the excess.
void gather_integer_rows(const ConvGeometry& g, const std::uint8_t* x, std::int64_t group, std::uint8_t zero_point, std::int64_t begin,
                         std::int64_t end, std::int64_t step, std::uint8_t* out);

}  // namespace tenon::openblas
