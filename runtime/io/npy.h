// io/npy.h - the .npy format, its header read with every claim checked.
//
// Source  NumPy: numpy/lib/format.py (NEP 1).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tenon/tensor.h>

namespace tenon::io {

/// The array of a whole .npy file or member. Single-byte elements, and wide ones that lie aligned, are not copied: the bytes' memory
/// becomes the tensor's.
/// Errors  the text starts with `what`.
Tensor parse_npy(const std::string& what, std::shared_ptr<std::vector<std::uint8_t>> bytes);

/// What stands before the elements of a row-major array, version 1.0, padded so that they start at a multiple of 64.
/// Errors  a dtype that the format does not have.
std::string npy_header(const std::string& what, DType dtype, const Shape& shape);

}  // namespace tenon::io
