// SPDX-License-Identifier: Apache-2.0
// data/generated.h - shared code of the generated image sets.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <tenon/data.h>

#include "data/draw.h"

namespace tenon::data {

/// Generates one u8 image and returns its label in [0, 10).
using ImageMaker = std::function<std::int64_t(Draw& draw, std::uint8_t* out_pixels)>;

/// Errors  a count below 1 or above 2^32.
std::shared_ptr<const ArrayDataset> generate_images(const std::string& name, const Shape& image, std::uint32_t stream,
                                                    const GeneratedOptions& options, const ImageMaker& make);

/// Checks a count. Errors  as above; the text starts with `name`.
void check_count(const std::string& name, std::int64_t count);

}  // namespace tenon::data
