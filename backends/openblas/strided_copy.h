// strided_copy.h - elements from any strides into a dense row: transposes, broadcasts, gathers.
#pragma once

#include <cstddef>

#include <tenon/sdk/kernel.h>

namespace tenon::openblas {

/// y = x broadcast to the shape of y, which is dense. Only bytes move: `element_size` is 1, 2, 4, 8 or 16.
void copy_strided(const sdk::Host& host, const sdk::Operand& x, const sdk::Operand& y, std::size_t element_size);

/// x as a permuted view: dimension i of the result is dimension order[i] of x. The arrays are the caller's, TENON_MAX_RANK long.
sdk::Operand permuted(const sdk::Operand& x, const std::int64_t* order, std::int64_t* out_shape, std::int64_t* out_strides);

}  // namespace tenon::openblas
