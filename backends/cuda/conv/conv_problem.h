// SPDX-License-Identifier: Apache-2.0
// conv_problem.h - a convolution as cuDNN gets it: everything that the choice of an engine depends on.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>

#include <tenon/sdk/kernel.h>

#include "conv/conv_shape.h"

namespace tenon::cuda {

/// Of addresses, only the alignment matters.
struct ConvProblem {
  ConvDirection direction = ConvDirection::forward;
  tenon_dtype dtype = TENON_DTYPE_NONE;
  std::uint32_t math = TENON_MATH_STRICT;
  bool deterministic = false;
  bool channels_last = false;  ///< of images and filters
  bool bias = false;           ///< added to the result by the engine if it can: ConvPlan::adds
  bool residual = false;
  std::uint32_t alignment_bytes = 16;  ///< of every operand
  std::size_t workspace_limit = 0;
  ConvShape shape;

  /// Bytes of the image; of the filters.
  std::size_t image_bytes() const;
  std::size_t filter_bytes() const;
  auto operator<=>(const ConvProblem&) const = default;
};
/// The channels of the image and the filters that cuDNN gets: those of the shape, or, for fewer than 8 of 16 bits with channels last, 8, of
/// which the last are zeros. Without that, cuDNN pads them itself, and in most of its engines more slowly.
///
/// Only without groups; if the results have a multiple of 8 channels too, because otherwise cuDNN pads these; and if the padded image is
/// within the workspace limit. Not for data gradients and not for tf32: asked about an H200, the heuristics of cuDNN 9.14 propose engines
/// that transpose the operands, with 8 or 4 channels as well.
std::int64_t padded_channels(const ConvProblem& problem);
/// "conv_input_grad of f32 x (...), ..., channels last".
std::string text_of(const ConvProblem& problem);

}  // namespace tenon::cuda
