// SPDX-License-Identifier: Apache-2.0
// integer_matmul.h - products of stacks of matrices of 8-bit integers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <tenon/sdk/kernel.h>

#include "quantize/integer_products.h"

namespace tenon::openblas {

/// The functions of the kernels' traits; `at` says which operands are matrices and zero points, and what the result is.
std::size_t integer_matmul_scratch(const sdk::Call& call, const IntegerOperands& at);
std::size_t integer_matmul_pack_size(const sdk::Call& call, const IntegerOperands& at, std::uint32_t input);
void pack_integer_matmul(const sdk::Call& call, const IntegerOperands& at, void* out_packed);

/// y = (a - a_zero_point) (b - b_zero_point), modulo 2^32, with the call's epilogue, or its requantisation. y has elements.
///
/// Shapes  as of matmul; a_zero_point (), or (m) if y is not requantised; b_zero_point () or (n); absent ones are 0.
void integer_matmul(const sdk::Call& call, const IntegerOperands& at);

template <const IntegerOperands& at>
inline constexpr sdk::Traits integer_matmul_traits{
    .epilogue = !at.requantised,
    .residual = !at.requantised,
    .activations = sdk::all_activations,
    .scratch = [](const sdk::Call& call) { return integer_matmul_scratch(call, at); },
    .pack_size = [](const sdk::Call& call, std::uint32_t input) { return integer_matmul_pack_size(call, at, input); },
    .pack = [](const sdk::Call& call, std::uint32_t, void* out_packed) { pack_integer_matmul(call, at, out_packed); },
    .pack_form = [](const sdk::Call&, std::uint32_t) -> std::string { return "integer panels"; },
    .dequantize = !at.requantised};

}  // namespace tenon::openblas
