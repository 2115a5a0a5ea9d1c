// SPDX-License-Identifier: Apache-2.0
// elementwise.h - helpers that the families of elementwise functions share.
#pragma once

#include <cstdint>
#include <vector>

#include "op_family.h"

namespace tenon::conformance {

inline constexpr Tolerance four_ulp{"4 ulp at most: an ulp is half an epsilon of the largest numbers that have it.", 2};

/// Shapes for functions of one operand.
inline std::vector<Dims> elementwise_shapes() {
  return {{}, {1}, {7}, {8, 10}, {2, 3, 5}, {2, 1, 3, 1, 2}, {0}, {3, 0, 2}, {sized(70003, 1003)}};
}

inline Variant of_shape(const Dims& shape, const Values& x, const AttributeBytes& attributes = {}, const std::string& label = "",
                        tenon_dtype y = TENON_DTYPE_NONE) {
  return {label, {operand(shape, x)}, {result(shape, y)}, attributes};
}

inline std::vector<Variant> of_every_shape(const Values& x, const AttributeBytes& attributes = {}, const std::string& label = "") {
  std::vector<Variant> variants;
  for (const Dims& shape : elementwise_shapes()) variants.push_back(of_shape(shape, x, attributes, label));
  return variants;
}

/// Golden values, x -> y elementwise.
inline Golden values_at(const std::string& name, std::vector<double> x, std::vector<double> y, std::vector<tenon_dtype> dtypes = {},
                        const AttributeBytes& attributes = {}) {
  const auto n = static_cast<std::int64_t>(x.size());
  return {name, of_shape({n}, {}, attributes), {std::move(x)}, {std::move(y)}, std::move(dtypes)};
}

/// Shapes that broadcast, from scalars to sizes that several threads share.
inline std::vector<std::pair<Dims, Dims>> broadcasting_shapes() {
  return {{{}, {}},
          {{1}, {1}},
          {{7}, {7}},
          {{3, 5}, {3, 5}},
          {{8, 10}, {10}},
          {{8, 10}, {8, 1}},
          {{6, 6}, {6}},  // as many elements along one axis as along the other
          {{6, 6}, {6, 1}},
          {{4, 4, 4}, {4, 1, 4}},
          {{5, 1}, {1, 7}},
          {{2, 3, 4}, {}},
          {{4}, {2, 3, 4}},
          {{2, 1, 3, 1}, {4, 1, 5}},
          {{0}, {0}},
          {{0, 4}, {4}},
          {{3, 0}, {1, 1}},
          {{sized(1003, 103), 17}, {17}},
          {{sized(70001, 1001)}, {sized(70001, 1001)}}};
}

inline std::vector<Variant> of_pairs(const Values& a, const Values& b, tenon_dtype y = TENON_DTYPE_NONE) {
  std::vector<Variant> variants;
  for (const auto& [left, right] : broadcasting_shapes()) {
    variants.push_back({"", {operand(left, a), operand(right, b)}, {result(broadcast(left, right), y)}});
  }
  return variants;
}

/// Elements of all magnitudes, including NaN and the infinities: equidistant bit patterns, each moved at random.
Array all_magnitudes(tenon_dtype dtype, std::uint64_t seed);

/// Compares an op on an operand of all magnitudes with the oracle in f64.
void check_magnitudes(CaseContext& context, tenon_op op, tenon_dtype dtype, const AttributeBytes& attributes, const Bound& bound);

/// The case "all_magnitudes" of an op with its bound and attributes.
template <tenon_op op, const Tolerance& bound, AttributeBytes (*attributes)() = nullptr>
Extra at_all_magnitudes(const char* name = "all_magnitudes") {
  return {name, [](CaseContext& context, tenon_dtype dtype) {
            if (!is_float(dtype)) return;
            Variant variant;
            if constexpr (attributes != nullptr) variant.attributes = attributes();
            check_magnitudes(context, op, dtype, variant.attributes, bound(variant, dtype));
          }};
}

}  // namespace tenon::conformance
