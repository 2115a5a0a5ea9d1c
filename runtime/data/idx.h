// SPDX-License-Identifier: Apache-2.0
// data/idx.h - the IDX format of the MNIST files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <tenon/tensor.h>

namespace tenon::data {

inline constexpr std::uint32_t magic_of_images = 2051;  ///< u8, 3 dimensions
inline constexpr std::uint32_t magic_of_labels = 2049;  ///< u8, 1 dimension

/// load_idx; with `expected_magic`, any other kind of IDX file is an error.
Tensor read_idx(const std::string& path, std::optional<std::uint32_t> expected_magic);

}  // namespace tenon::data
