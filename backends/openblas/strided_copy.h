// strided_copy.h - elements from any strides into a dense row: transposes, broadcasts, gathers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <tenon/sdk/kernel.h>

namespace tenon::openblas {

/// y = x broadcast to the shape of y, which is dense. Only bytes move: `element_size` is 1, 2, 4, 8 or 16.
void copy_strided(const sdk::Host& host, const sdk::Operand& x, const sdk::Operand& y, std::size_t element_size);

/// The elements of x to those of y, of the same shape, each with strides of its own.
void copy_elements(const sdk::Host& host, const sdk::Operand& x, const sdk::Operand& y, std::size_t element_size);

/// The word that moves as many bytes as an element.
template <class T>
using WordOf =
    std::conditional_t<sizeof(T) == 1, std::uint8_t,
                       std::conditional_t<sizeof(T) == 2, std::uint16_t, std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;

/// x as a permuted view: dimension i of the result is dimension order[i] of x. The arrays are the caller's, TENON_MAX_RANK long.
sdk::Operand permuted(const sdk::Operand& x, const std::int64_t* order, std::int64_t* out_shape, std::int64_t* out_strides);

}  // namespace tenon::openblas
