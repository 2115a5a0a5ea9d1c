// data/image_file.h - one picture of a file.
#pragma once

#include <string>

#include <tenon/tensor.h>

namespace tenon::data {

/// True for the endings that read_image knows: .pgm, .ppm, .png, .npy, in any case.
bool is_image_file(const std::string& path);
/// u8(channels, height, width) of a grey or coloured picture: binary PGM and PPM of 8 bits, PNG (16 bits are cut to 8, what is transparent
/// counts as opaque), NumPy's u8 (H,W) or (C,H,W).
/// Errors  name the file, what was wanted and what was got.
Tensor read_image(const std::string& path);

}  // namespace tenon::data
