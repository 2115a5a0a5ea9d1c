// SPDX-License-Identifier: Apache-2.0
// convolution.h - helpers that the families of convolutions share.
#pragma once

#include "op_family.h"

namespace tenon::conformance {

/// One convolution: x (batch, channels, sizes...), w (filters, channels / groups, kernel...), y (batch, filters, results...).
struct Convolution {
  std::int64_t batch, channels, filters;
  Dims sizes, kernel;
  Dims strides = {}, dilations = {}, before = {}, after = {};  ///< per spatial dimension; empty: 1, 1, 0, `before`
  std::int64_t groups = 1;

  Dims results() const;
  Dims x() const;
  Dims w() const;
  Dims y() const;
  AttributeBytes attributes() const;
  /// "groups=2,strides=(2,2),pads=(1,1)-(0,2)": the values that differ from the defaults.
  std::string label() const;
  /// Terms that each element of y, dx or dw sums.
  std::int64_t terms(tenon_op op) const;
  /// The convolution of a node of Conv, its gradients or ConvTranspose.
  static Convolution of(tenon_op op, const Variant& variant);
};

/// Adds `dims` spatial dimensions with kernels of at most `largest_kernel` taps, any strides, dilations and padding, and at most
/// `more_pixels` more pixels than the window needs.
void add_random_dimensions(Convolution& shape, std::size_t dims, std::int64_t largest_kernel, std::int64_t more_pixels, Random& random);

/// The bound of a result; see the definition.
Bound convolution_bound(const Convolution& shape, tenon_op op, tenon_dtype dtype);

template <tenon_op op>
inline constexpr Tolerance bound_of_convolution{
    "A sum of products of numbers up to 2, as a matrix product is: off by the root of the number of terms times epsilon times the sum of "
    "their "
    "magnitudes; a bias rounds once more. In f32 (and where f16 and bf16 are computed in it) 3x3 kernels of stride 1 may have the errors "
    "of "
    "the larger numbers that Winograd's algorithm works with; its other forms have to meet the bound of a product. With this algorithm an "
    "infinity may make results near it NaN; a NaN must reach all results that depend on it.",
    [](const Variant& variant, tenon_dtype dtype) -> Bound {
      Bound bound = convolution_bound(Convolution::of(op, variant), op, dtype);
      if ((op == TENON_OP_Conv || op == TENON_OP_ConvTranspose) && variant.inputs[2].present) bound.rounding = 2;
      return bound;
    }};

/// A variant of `op`, with those of x, w and y that are operands filled with numbers up to 2.
Variant variant_of(const Convolution& shape, tenon_op op, bool bias = false, Special special = Special::none);

}  // namespace tenon::conformance
