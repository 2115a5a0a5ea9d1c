// SPDX-License-Identifier: Apache-2.0
// ops/conv.cpp - convolution and its gradients by image and filters: the three directions of convolutions.h.
#include "conv/convolutions.h"
#include "kernel/layout.h"

namespace tenon::cuda {
namespace {

constexpr std::uint32_t filters = 1;  // the operand that may be packed, in conv and conv_input_grad

ConvOperands of_conv(const sdk::Call& call) {
  return {ConvDirection::forward, &call.inputs[0], &call.inputs[filters], &call.outputs[0], call.has_input(2) ? &call.inputs[2] : nullptr};
}
ConvOperands of_input_grad(const sdk::Call& call) {
  return {ConvDirection::data_gradient, &call.outputs[0], &call.inputs[filters], &call.inputs[0], nullptr};
}
ConvOperands of_weight_grad(const sdk::Call& call) {
  return {ConvDirection::filter_gradient, &call.inputs[1], &call.outputs[0], &call.inputs[0], nullptr};
}

template <ConvOperands (*operands)(const sdk::Call&)>
std::size_t scratch(const sdk::Call& call) {
  return convolution_scratch(call, operands(call));
}
template <ConvOperands (*operands)(const sdk::Call&)>
std::size_t pack_size(const sdk::Call& call, std::uint32_t input) {
  return input == filters ? packed_filter_bytes(call, operands(call)) : 0;
}
template <ConvOperands (*operands)(const sdk::Call&)>
void pack(const sdk::Call& call, std::uint32_t, void* out_packed) {
  pack_filter(call, operands(call), out_packed);
}
template <ConvOperands (*operands)(const sdk::Call&)>
std::string pack_form(const sdk::Call& call, std::uint32_t) {
  return filter_form(call, operands(call));
}

template <class T>
void conv(const sdk::Call& call) {
  convolve(call, of_conv(call));
}
template <class T>
void conv_input_grad(const sdk::Call& call) {
  convolve(call, of_input_grad(call));
}
template <class T>
void conv_weight_grad(const sdk::Call& call) {
  convolve(call, of_weight_grad(call));
}

constexpr sdk::Traits conv_traits{.epilogue = true,
                                  .residual = true,
                                  .channels_last = {.inputs = 1, .outputs = 1},
                                  .channels_last_when = images_last,
                                  .scratch = scratch<of_conv>,
                                  .pack_size = pack_size<of_conv>,
                                  .pack = pack<of_conv>,
                                  .pack_form = pack_form<of_conv>,
                                  .pack_donated = false};
constexpr sdk::Traits input_grad_traits{.channels_last = {.inputs = 1, .outputs = 1},
                                        .channels_last_when = images_last,
                                        .scratch = scratch<of_input_grad>,
                                        .pack_size = pack_size<of_input_grad>,
                                        .pack = pack<of_input_grad>,
                                        .pack_form = pack_form<of_input_grad>,
                                        .pack_donated = false};
constexpr sdk::Traits weight_grad_traits{
    .channels_last = {.inputs = 3}, .channels_last_when = images_last, .scratch = scratch<of_weight_grad>};

}  // namespace

TENON_KERNEL_WITH(conv, conv_traits, sdk::Half, sdk::BFloat16, float, double)
TENON_KERNEL_WITH(conv_input_grad, input_grad_traits, sdk::Half, sdk::BFloat16, float, double)
TENON_KERNEL_WITH(conv_weight_grad, weight_grad_traits, sdk::Half, sdk::BFloat16, float, double)

}  // namespace tenon::cuda
