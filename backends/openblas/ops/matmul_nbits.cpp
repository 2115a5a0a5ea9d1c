// SPDX-License-Identifier: Apache-2.0
// ops/matmul_nbits.cpp - products with weights of 4 or 8 bits in blocks: the packing of weights, scales and zero points.
#include <string>

#include <tenon/sdk/scratch_arena.h>

#include "quantize/block_quantized.h"

namespace tenon::openblas {
namespace {

constexpr std::uint32_t weights = 1, scales = 2, zero_points = 3;

BlockWeights sizes_of(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_nbits>();
  const sdk::Operand &a = call.inputs[0], &b = call.inputs[weights];
  return {b.shape[0], a.shape[a.rank - 1], b.shape[1], attributes.block_size, static_cast<int>(attributes.bits)};
}

std::int64_t rows_of(const sdk::Call& call) {
  return call.inputs[0].count / call.inputs[0].shape[call.inputs[0].rank - 1];
}

bool is_packed(const sdk::Call& call, std::uint32_t input) {
  return call.packed != nullptr && call.packed[input] != nullptr;
}

std::int64_t packed_bytes(const sdk::Call& call, std::uint32_t input) {
  if (!call.has_input(input)) return 0;
  const BlockWeights w = sizes_of(call);
  switch (input) {
    case weights:
      return w.weight_bytes();
    case scales:
      return w.parameters() * sdk::size_of(call.inputs[scales].dtype);
    case zero_points:
      return w.parameters();
    default:
      return 0;
  }
}

std::size_t pack_size(const sdk::Call& call, std::uint32_t input) {
  return static_cast<std::size_t>(packed_bytes(call, input));
}

void pack(const sdk::Call& call, std::uint32_t input, void* out_packed) {
  const BlockWeights w = sizes_of(call);
  switch (input) {
    case weights:
      return pack_block_weights(call.host, w, call.input<std::uint8_t>(weights), static_cast<std::uint8_t*>(out_packed));
    case scales:
      if (call.inputs[scales].dtype == TENON_DTYPE_F64) {
        return pack_block_scales(w, call.input<double>(scales), static_cast<double*>(out_packed));
      }
      return pack_block_scales(w, call.input<float>(scales), static_cast<float*>(out_packed));
    default:
      return pack_block_zero_points(w, call.input<std::uint8_t>(zero_points), static_cast<std::uint8_t*>(out_packed));
  }
}

std::string pack_form(const sdk::Call& call, std::uint32_t) {
  const BlockWeights w = sizes_of(call);
  return "panels of " + std::to_string(w.bits) + " bits, " + std::to_string(w.k) + " in blocks of " + std::to_string(w.block_size);
}

/// Operands of the weights that were not packed ahead, and the product's own scratch memory.
template <class T>
struct Scratch {
  char* packed[4] = {};
  T* product = nullptr;

  Scratch(sdk::ScratchArena& arena, const sdk::Call& call) {
    for (const std::uint32_t input : {weights, scales, zero_points}) {
      if (call.has_input(input) && !is_packed(call, input)) packed[input] = arena.allocate<char>(packed_bytes(call, input));
    }
    product = arena.allocate<T>(block_product_scratch<T>(call.host, sizes_of(call), rows_of(call)));
  }
};

std::size_t scratch(const sdk::Call& call) {
  sdk::ScratchArena arena(nullptr);
  if (call.inputs[0].dtype == TENON_DTYPE_F64) {
    Scratch<double>(arena, call);
  } else {
    Scratch<float>(arena, call);
  }
  return arena.required_bytes();
}

/// y = a w' + bias, w[n, k] = (b[n, k] - zero_points[n, i]) scales[n, i], i = k / block_size
template <class T>
void matmul_nbits(const sdk::Call& call) {
  if (call.outputs[0].count == 0) return;
  sdk::ScratchArena arena(call.scratch);
  const Scratch<T> memory(arena, call);
  const auto packed = [&](std::uint32_t input) -> const void* {
    if (!call.has_input(input)) return nullptr;
    if (is_packed(call, input)) return call.packed[input];
    pack(call, input, memory.packed[input]);
    return memory.packed[input];
  };
  BlockProduct<T> product;
  product.sizes = sizes_of(call);
  product.rows = rows_of(call);
  product.a = call.input<T>(0);
  product.weights = static_cast<const std::uint8_t*>(packed(weights));
  product.scales = static_cast<const T*>(packed(scales));
  product.zero_points = static_cast<const std::uint8_t*>(packed(zero_points));
  product.bias = call.has_input(4) ? call.input<T>(4) : nullptr;
  product.y = call.output<T>(0);
  multiply_block_quantized<T>(call.host, product, memory.product);
}

}  // namespace

TENON_KERNEL_WITH(matmul_nbits, (sdk::Traits{.scratch = scratch, .pack_size = pack_size, .pack = pack, .pack_form = pack_form}), float,
                  double)

}  // namespace tenon::openblas
