// SPDX-License-Identifier: Apache-2.0
#include "conv/conv_problem.h"

#include "conv/channel_padding.h"

namespace tenon::cuda {
namespace {

const char* name_of(ConvDirection direction) {
  switch (direction) {
    case ConvDirection::forward:
      return "conv";
    case ConvDirection::data_gradient:
      return "conv_input_grad";
    default:
      return "conv_weight_grad";
  }
}

}  // namespace

std::size_t ConvProblem::image_bytes() const {
  return static_cast<std::size_t>(shape.image_count() * sdk::size_of(dtype));
}

std::size_t ConvProblem::filter_bytes() const {
  return static_cast<std::size_t>(shape.filter_count() * sdk::size_of(dtype));
}

std::int64_t padded_channels(const ConvProblem& p) {
  constexpr std::int64_t full = padded_pixel_channels;
  const ConvShape& s = p.shape;
  const bool is_narrow = p.dtype == TENON_DTYPE_F16 || p.dtype == TENON_DTYPE_BF16;
  if (!p.channels_last || !is_narrow || p.direction == ConvDirection::data_gradient) return s.channels;
  if (s.groups != 1 || s.channels < 1 || s.channels >= full || s.filters % full != 0) return s.channels;
  ConvProblem padded = p;
  padded.shape.channels = full;
  return padded.image_bytes() <= p.workspace_limit ? full : s.channels;
}

std::string text_of(const ConvProblem& p) {
  return std::string(name_of(p.direction)) + " of " + sdk::name_of(p.dtype) + " " + text_of(p.shape) +
         (p.channels_last ? ", channels last" : "") + (p.bias ? ", bias" : "") + (p.residual ? ", residual" : "") +
         (p.math == TENON_MATH_STRICT ? ""
          : p.math == TENON_MATH_TF32 ? ", tf32"
                                      : ", math bf16") +
         (p.deterministic ? ", deterministic" : "") +
         (p.alignment_bytes < 16 ? ", operands aligned to " + std::to_string(p.alignment_bytes) : "");
}

}  // namespace tenon::cuda
