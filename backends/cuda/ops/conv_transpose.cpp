// SPDX-License-Identifier: Apache-2.0
// ops/conv_transpose.cpp - the transpose of a convolution: its data gradient, with a bias and an epilogue.
#include "conv/convolutions.h"
#include "kernel/layout.h"

namespace tenon::cuda {
namespace {

constexpr std::uint32_t filters = 1;  // the operand that may be packed

/// The operands of the convolution that maps y to x.
ConvOperands operands_of(const sdk::Call& call) {
  return {ConvDirection::data_gradient, &call.outputs[0], &call.inputs[filters], &call.inputs[0],
          call.has_input(2) ? &call.inputs[2] : nullptr};
}

std::size_t scratch(const sdk::Call& call) {
  return convolution_scratch(call, operands_of(call));
}
std::size_t pack_size(const sdk::Call& call, std::uint32_t input) {
  return input == filters ? packed_filter_bytes(call, operands_of(call)) : 0;
}
void pack(const sdk::Call& call, std::uint32_t, void* out_packed) {
  pack_filter(call, operands_of(call), out_packed);
}
std::string pack_form(const sdk::Call& call, std::uint32_t) {
  return filter_form(call, operands_of(call));
}

template <class T>
void conv_transpose(const sdk::Call& call) {
  convolve(call, operands_of(call));
}

constexpr sdk::Traits traits{.epilogue = true,
                             .residual = true,
                             .channels_last = {.inputs = 1, .outputs = 1},
                             .channels_last_when = images_last,
                             .scratch = scratch,
                             .pack_size = pack_size,
                             .pack = pack,
                             .pack_form = pack_form,
                             .pack_donated = false};

}  // namespace

TENON_KERNEL_WITH(conv_transpose, traits, sdk::Half, sdk::BFloat16, float, double)

}  // namespace tenon::cuda
