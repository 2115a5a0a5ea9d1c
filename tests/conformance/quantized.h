// SPDX-License-Identifier: Apache-2.0
// quantized.h - helpers that the families of requantised products share.
#pragma once

#include <cmath>

#include "op_family.h"

namespace tenon::conformance {

inline constexpr tenon_dtype i8 = TENON_DTYPE_I8;
inline constexpr Tolerance requantised{
    "The sum of integers is exact, and each operation that makes an integer of it is rounded as IEEE 754 specifies."};

/// All integers of i8 or u8. `dtype` may stand for the dtype under test.
inline OperandSpec bytes(Dims shape, tenon_dtype dtype = TENON_DTYPE_NONE) {
  const Values values{.low = dtype == u8 ? 0.0 : -128.0, .high = dtype == u8 ? 256.0 : 128.0, .whole = true, .special = Special::all};
  return operand(std::move(shape), values, dtype);
}

/// What a requantised product is made of, besides its shape.
struct Requantised {
  tenon_dtype weights = i8, y = u8;
  bool per_line = false;   ///< scales and zero points of the weights are lists
  bool any_scale = false;  ///< scales of the weights are large, and in a case of its own infinite or NaN
  std::string label() const {
    return fmt::format("w={}/y={}{}{}", weights == i8 ? "i8" : "u8", y == i8 ? "i8" : "u8", per_line ? "/per_line" : "",
                       any_scale ? "/any_scale" : "");
  }
};

/// The eight operands: a, b, and the result with their scales and zero points. Scales are such that most results of sums of `terms` terms
/// are within the range of bytes.
inline std::vector<OperandSpec> requantised_operands(const Dims& a, const Dims& b, std::int64_t lines, std::int64_t terms,
                                                     const Requantised& form) {
  const Dims of_lines = form.per_line ? Dims{lines} : Dims{};
  const Values scales{.low = 0.5, .high = 1}, any_scale{.low = 0.5, .high = 1e10, .special = Special::not_small};
  const double usual = 80 * std::sqrt(static_cast<double>(terms) + 1);
  return {bytes(a),
          operand({}, scales, f32),
          bytes({}),
          bytes(b, form.weights),
          operand(of_lines, form.any_scale ? any_scale : scales, f32),
          bytes(of_lines, form.weights),
          operand({}, {.low = usual, .high = 2 * usual}, f32),
          operand({}, {.low = form.y == i8 ? -30.0 : 90.0, .high = form.y == i8 ? 30.0 : 160.0, .whole = true}, form.y)};
}

/// Runs random operands of a variant of `op` twice, with operand `weights` as an input and as a parameter, which may be packed ahead. Both
/// results have to agree with the oracle's, and with each other, within the bound.
void check_packed_weights(CaseContext& context, tenon_op op, std::uint32_t weights, const Variant& variant, tenon_dtype dtype,
                          std::uint64_t seed, const Bound& bound);

}  // namespace tenon::conformance
