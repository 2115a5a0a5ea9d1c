// SPDX-License-Identifier: Apache-2.0
// ops/conv_transpose.cpp - transposed convolution: the input gradient of a convolution, with a bias and an epilogue.
#include <algorithm>
#include <string>

#include "conv/conv_bias.h"
#include "conv/conv_depthwise.h"
#include "conv/conv_direct.h"
#include "conv/conv_direct_forms.h"
#include "conv/conv_geometry.h"

namespace tenon::openblas {
namespace {

constexpr std::uint32_t weights = 1;  // the operand that is packed

/// The geometry of the convolution from y to x: its channels are those of y, its out_channels those of x.
ConvGeometry geometry_of(const sdk::Call& call) {
  return conv_geometry(call.outputs[0], call.inputs[1], call.inputs[0], call.attr<tenon_attributes_conv>());
}

std::size_t element_size(const sdk::Call& call) {
  return with_product_type(call.inputs[0].dtype, []<class T>(T) { return sizeof(T); });
}

template <class T>
std::int64_t packed_elements(const ConvGeometry& g) {
  return g.depthwise() ? g.weights() : input_grad_elements<T>(g);
}

std::size_t packed_bytes(const sdk::Call& call) {
  const ConvGeometry g = geometry_of(call);
  return with_product_type(call.inputs[0].dtype, [&]<class T>(T) { return scratch_bytes(packed_elements<T>(g), sizeof(T)); });
}

std::size_t pack_size(const sdk::Call& call, std::uint32_t input) {
  return input == weights ? packed_bytes(call) : 0;
}

/// The weights that were packed ahead of the call; NULL if the call has to pack them into its scratch memory.
const void* packed_weights(const sdk::Call& call) {
  return call.packed == nullptr ? nullptr : call.packed[weights];
}

/// Packs the panels of each phase, group by group.
template <class T>
void pack_weights(const sdk::Host& host, const ConvGeometry& g, const T* w, T* out_packed) {
  g.depthwise() ? depthwise_weights(g, w, out_packed) : pack_input_grad(g, host, w, out_packed);
}

void pack(const sdk::Call& call, std::uint32_t, void* out_packed) {
  const ConvGeometry g = geometry_of(call);
  with_product_type(call.inputs[0].dtype,
                    [&]<class T>(T) { pack_weights(call.host, g, call.input<T>(weights), static_cast<T*>(out_packed)); });
}

std::string pack_form(const sdk::Call& call, std::uint32_t) {
  const ConvGeometry g = geometry_of(call);
  return g.depthwise() ? "depthwise" : input_grad_form(g, call.host);
}

/// The sum of two biases, weights that were not packed ahead, and the largest phase's scratch memory.
std::size_t scratch(const sdk::Call& call) {
  const ConvGeometry g = geometry_of(call);
  std::size_t bytes = 0;
  for (std::int64_t phase = 0; phase < input_grad_phases(g) && !g.depthwise(); ++phase) {
    bytes = std::max(bytes, direct_scratch(input_grad_conv(g, phase), call.host, element_size(call)));
  }
  if (packed_weights(call) == nullptr) bytes += packed_bytes(call);
  return bytes + scratch_bytes(g.channels, element_size(call));
}

/// y[n, o, i strides + k dilations - pads_before] += x[n, c, i...] w[c, o, k...], starting from b[o]
template <class T>
void conv_transpose(const sdk::Call& call) {
  if (call.outputs[0].count == 0) return;
  const ConvGeometry g = geometry_of(call);
  char* memory = static_cast<char*>(call.scratch);
  const T* const bias = bias_of(call, g.channels, reinterpret_cast<T*>(memory));
  memory += scratch_bytes(g.channels, sizeof(T));
  const T* packed = static_cast<const T*>(packed_weights(call));
  if (packed == nullptr) {
    pack_weights(call.host, g, call.input<T>(weights), reinterpret_cast<T*>(memory));
    packed = reinterpret_cast<const T*>(memory);
    memory += packed_bytes(call);
  }
  if (g.depthwise()) {
    depthwise_transpose(g, call, call.input<T>(0), packed, bias, call.output<T>(0));
    return;
  }
  DirectOperands<T> operands{call.input<T>(0), nullptr, call.output<T>(0), bias, nullptr, call.epilogue.activation};
  if (call.epilogue.residual != nullptr) operands.residual = call.epilogue.residual->as<const T>();
  for (std::int64_t phase = 0; phase < input_grad_phases(g); ++phase) {
    const DirectConv conv = input_grad_conv(g, phase);
    operands.panels = packed;
    direct_conv(conv, operands, call.host, memory);
    packed += direct_panel_elements<T>(conv);
  }
}

constexpr sdk::Traits traits{.epilogue = true,
                             .residual = true,
                             .activations = sdk::all_activations,
                             .channels_last = {.inputs = 1, .outputs = 1},
                             .scratch = scratch,
                             .pack_size = pack_size,
                             .pack = pack,
                             .pack_form = pack_form};

}  // namespace

TENON_KERNEL_WITH(conv_transpose, traits, sdk::BFloat16, float, double)

}  // namespace tenon::openblas
