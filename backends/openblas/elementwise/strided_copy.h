// SPDX-License-Identifier: Apache-2.0
// strided_copy.h - copies of strided tensors: transposes, broadcasts, gathers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <tenon/sdk/kernel.h>

namespace tenon::openblas {

/// y = x broadcast to the shape of y, which is dense. Elements are copied as bytes: `element_size` is 1, 2, 4, 8 or 16.
void copy_strided(const sdk::Host& host, const sdk::Operand& x, const sdk::Operand& y, std::size_t element_size);

/// y = x for operands of the same shape, each with its own strides.
void copy_elements(const sdk::Host& host, const sdk::Operand& x, const sdk::Operand& y, std::size_t element_size);

/// The unsigned integer of the same size as T.
template <class T>
using WordOf =
    std::conditional_t<sizeof(T) == 1, std::uint8_t,
                       std::conditional_t<sizeof(T) == 2, std::uint16_t, std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;

/// x as a permuted view: dimension i of the result is dimension order[i] of x. The caller provides the arrays, of TENON_MAX_RANK elements.
sdk::Operand permuted(const sdk::Operand& x, const std::int64_t* order, std::int64_t* out_shape, std::int64_t* out_strides);

}  // namespace tenon::openblas
