// SPDX-License-Identifier: Apache-2.0
// data/image_file.h - reads an image file, and lists those in a folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tenon/tensor.h>

namespace tenon::data {

/// The endings of image files, for messages.
inline constexpr const char* image_endings = ".jpg, .jpeg, .png, .pgm, .ppm or .npy";
/// True for a file that read_image reads, by its ending, ignoring case.
bool is_image_file(const std::string& path);
/// The images in a folder, sorted by the bytes of their names. Hidden files and folders are left out, and other files with one warning that
/// counts and names them.
/// Errors  the folder cannot be read.
std::vector<std::string> images_in(const std::string& folder);

/// Reads a greyscale or colour image as u8(channels, height, width): JPEG, PNG (16 bits are truncated to 8, transparency is ignored),
/// binary PGM and PPM of 8 bits, NumPy u8 (H,W) or (C,H,W).
Tensor read_image(const std::string& path);
/// The same for JPEG. An image with an orientation in its EXIF data is read as it is stored.
Tensor read_jpeg(const std::string& path);

// Shared by the formats.

/// Fails if an image of this size is beyond Limit::image_pixels.
void check_pixels(const std::string& path, std::int64_t width, std::int64_t height);
/// Converts interleaved pixels to planes.
Tensor planes_of(const std::uint8_t* pixels, std::int64_t channels, std::int64_t height, std::int64_t width);

}  // namespace tenon::data
