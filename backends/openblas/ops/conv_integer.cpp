// SPDX-License-Identifier: Apache-2.0
// ops/conv_integer.cpp - convolution of 8-bit integers: the packing of weights, and scratch memory.
#include <string>

#include <tenon/sdk/rounding.h>

#include "quantize/integer_conv.h"

namespace tenon::openblas {
namespace {

constexpr std::uint32_t weights = 1;  // the operand that is packed

ConvGeometry geometry_of(const sdk::Call& call) {
  return conv_geometry(call.inputs[0], call.inputs[weights], call.outputs[0], call.attr<tenon_attributes_conv>());
}

bool is_packed(const sdk::Call& call) {
  return call.packed != nullptr && call.packed[weights] != nullptr;
}

std::size_t weight_bytes(const ConvGeometry& g) {
  return sdk::aligned_size(integer_conv_weight_bytes(g), sdk::block_alignment);
}

std::size_t scratch(const sdk::Call& call) {
  const ConvGeometry g = geometry_of(call);
  return integer_conv_scratch(g, call) + (is_packed(call) ? 0 : weight_bytes(g));
}

std::size_t pack_size(const sdk::Call& call, std::uint32_t input) {
  return input == weights ? weight_bytes(geometry_of(call)) : 0;
}

void pack(const sdk::Call& call, std::uint32_t, void* out_packed) {
  pack_integer_conv_weights(geometry_of(call), call.host, call.input<std::uint8_t>(weights), call.inputs[weights].dtype, out_packed);
}

std::string pack_form(const sdk::Call& call, std::uint32_t) {
  return integer_conv_form(geometry_of(call));
}

/// y = conv(x - x_zero_point, w - w_zero_point), modulo 2^32
///
/// Shapes  x and y channels last, w as in the graph; x_zero_point (), w_zero_point () or (O), or absent for 0.
template <class T>
void conv_integer(const sdk::Call& call) {
  if (call.outputs[0].count == 0) return;
  const ConvGeometry g = geometry_of(call);
  char* scratch = static_cast<char*>(call.scratch);
  const void* packed = is_packed(call) ? call.packed[weights] : scratch;
  if (!is_packed(call)) {
    pack(call, weights, scratch);
    scratch += weight_bytes(g);
  }
  integer_conv(g, call, packed, scratch);
}

}  // namespace

TENON_KERNEL_WITH(
    conv_integer,
    (sdk::Traits{
        .channels_last = {.inputs = 1, .outputs = 1}, .scratch = scratch, .pack_size = pack_size, .pack = pack, .pack_form = pack_form}),
    std::int8_t, std::uint8_t)

}  // namespace tenon::openblas
