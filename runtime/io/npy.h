// SPDX-License-Identifier: Apache-2.0
// io/npy.h - the .npy format, with a fully validated header.
//
// Source  NumPy: numpy/lib/format.py (NEP 1).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tenon/tensor.h>

namespace tenon::io {

/// Parses a .npy file or archive member. Aligned native-order elements are not copied: the tensor refers to `bytes`.
/// Errors  the text starts with `what`.
Tensor parse_npy(const std::string& what, std::shared_ptr<std::vector<std::uint8_t>> bytes);

/// The header of a row-major array, version 1.0, padded so that the elements start at a multiple of 64 bytes.
/// Errors  the format does not have the dtype.
std::string npy_header(const std::string& what, DType dtype, const Shape& shape);

}  // namespace tenon::io
