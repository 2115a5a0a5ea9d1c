// SPDX-License-Identifier: Apache-2.0
// data/image_file.h - reads an image file.
#pragma once

#include <string>

#include <tenon/tensor.h>

namespace tenon::data {

/// True for the endings that read_image knows: .pgm, .ppm, .png, .npy, ignoring case.
bool is_image_file(const std::string& path);
/// Reads a grey or colour image as u8(channels, height, width): binary PGM and PPM of 8 bits, PNG (16 bits are truncated to 8, transparency
/// is ignored), NumPy u8 (H,W) or (C,H,W).
Tensor read_image(const std::string& path);

}  // namespace tenon::data
