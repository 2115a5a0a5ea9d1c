// SPDX-License-Identifier: Apache-2.0
// onnx/rules/block_quantized.cpp - weights of 2, 4 or 8 bits with a scale for each block: MatMulNBits, or weights that are unpacked
// while the model is imported.
#include "onnx/rules/block_quantized.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <tenon/functions.h>

#include "onnx/rules/dtypes.h"
#include "onnx/rules/quantization.h"
#include "onnx/rules/shapes.h"

namespace tenon::onnx {
namespace {

/// The attribute bits: 2, 4 or 8.
int bits_of(const Node& node) {
  const std::int64_t bits = node.integer("bits", 4);
  if (bits != 2 && bits != 4 && bits != 8) {
    node.unsupported(fmt::format("expected weights of 2, 4 or 8 bits, got {}: quantise to 4 or 8 bits", bits));
  }
  return static_cast<int>(bits);
}

std::int64_t block_size_of(const Node& node, std::int64_t size) {
  if (size < 16 || size > 0x7fffffff || (size & (size - 1)) != 0) {
    node.fail(fmt::format("expected a block_size that is a power of two of 16 or more, got {}", size));
  }
  return size;
}

/// Element i of integers of `bits` bits, the first in the lowest bits of a byte.
unsigned element_at(const std::uint8_t* bytes, std::int64_t i, int bits) {
  const int per_byte = 8 / bits;
  const auto shift = static_cast<unsigned>(bits * static_cast<int>(i % per_byte));
  return (static_cast<unsigned>(bytes[i / per_byte]) >> shift) & ((1u << bits) - 1);
}

/// The rows of bytes (..., n) as rows of integers (..., size), size at most 8 / bits n.
Tensor unpacked(const Tensor& packed, int bits, std::int64_t size) {
  Shape shape = packed.shape();
  const std::int64_t bytes = shape[shape.rank() - 1];
  shape.set(shape.rank() - 1, size);
  Tensor result = Tensor::empty(DType::u8, shape);
  const std::int64_t rows = size == 0 ? 0 : result.count() / size;
  const auto* from = packed.data<std::uint8_t>();
  auto* to = result.data<std::uint8_t>();
  for (std::int64_t row = 0; row < rows; ++row, from += bytes) {
    for (std::int64_t i = 0; i < size; ++i) *to++ = static_cast<std::uint8_t>(element_at(from, i, bits));
  }
  return result;
}

/// Elements of a known operand as floats. Errors: another number of elements.
std::vector<float> known_floats(Node& node, std::size_t i, std::int64_t count) {
  const Tensor elements = node.known(i);
  if (elements.count() != count) node.fail(fmt::format("operand {}: expected {} elements, got {}", i, count, elements.str()));
  return elements.to(DType::f32).to_vector<float>();
}

/// The weights of a MatMulNBits: (N, K), each row in blocks.
struct PackedWeights {
  std::int64_t n, k, block_size, blocks;
  int bits;
};

/// The zero point of each block.
std::vector<float> zero_points_of(Node& node, const PackedWeights& w) {
  const std::int64_t count = product_of(node, w.n, w.blocks);
  if (!node.has_input(3)) return std::vector<float>(static_cast<std::size_t>(count), static_cast<float>(1 << (w.bits - 1)));
  if (node.dtype(3) != DType::u8) return known_floats(node, 3, count);
  const Tensor packed = node.known(3);
  const std::int64_t bytes = (w.blocks * w.bits + 7) / 8;
  if (packed.count() != w.n * bytes) {
    node.fail(fmt::format("expected packed zero points ({},{}), got {}", w.n, bytes, packed.str()));
  }
  const Tensor rows = unpacked(packed.contiguous().reshape({w.n, bytes}), w.bits, w.blocks);
  return rows.to(DType::f32).to_vector<float>();
}

/// The block whose scale element k of each row has.
std::vector<std::int64_t> groups_of(Node& node, const PackedWeights& w) {
  std::vector<std::int64_t> groups;
  if (node.has_input(4)) {
    groups = node.known_integers(4);
    if (static_cast<std::int64_t>(groups.size()) < w.k) {
      node.fail(fmt::format("expected g_idx of {} elements, got {}", w.k, groups.size()));
    }
    const bool inside = std::all_of(groups.begin(), groups.end(), [&](std::int64_t group) { return group >= 0 && group < w.blocks; });
    if (!inside) node.fail(fmt::format("expected g_idx of 0 to {}, got another block", w.blocks - 1));
  } else {
    for (std::int64_t k = 0; k < w.k; ++k) groups.push_back(k / w.block_size);
  }
  return groups;
}

/// (q - zero_point) scale as f32 (N, K).
Tensor dequantized(Node& node, const PackedWeights& w) {
  const std::int64_t row_bytes = product_of(node, w.blocks, w.block_size / 8 * w.bits);
  const Tensor packed = node.known(1);
  if (packed.dtype() != DType::u8 || packed.count() != product_of(node, w.n, row_bytes)) {
    node.fail(fmt::format("expected packed weights u8({},{},{}), got {}", w.n, w.blocks, w.block_size / 8 * w.bits, packed.str()));
  }
  const std::vector<float> scales = known_floats(node, 2, product_of(node, w.n, w.blocks)), zero_points = zero_points_of(node, w);
  const std::vector<std::int64_t> groups = groups_of(node, w);
  Tensor weights = Tensor::empty(DType::f32, {w.n, w.k});
  const auto* from = packed.data<std::uint8_t>();
  auto* to = weights.data<float>();
  for (std::int64_t n = 0; n < w.n; ++n, from += row_bytes) {
    for (std::int64_t k = 0; k < w.k; ++k) {
      const auto group = static_cast<std::size_t>(n * w.blocks + groups[static_cast<std::size_t>(k)]);
      *to++ = (static_cast<float>(element_at(from, k, w.bits)) - zero_points[group]) * scales[group];
    }
  }
  return weights;
}

/// Weights, scales, zero points and bias as MatMulNBits of Tenon takes them. Absent if it does not: weights of 2 bits, zero points that are
/// numbers, other groups.
Value product_of_blocks(Node& node, Value a, const PackedWeights& w) {
  if (w.bits == 2 || node.has_input(4) || node.dtype(1) != DType::u8) return {};
  if (!is_floating(a.dtype()) || node.dtype(2) != a.dtype() || (node.has_input(3) && node.dtype(3) != DType::u8)) return {};
  const std::int64_t bytes = w.block_size / 8 * w.bits, zero_bytes = (w.blocks * w.bits + 7) / 8;
  const auto shaped = [&](std::size_t i, const Shape& shape) {
    const Value operand = node.input(i);
    if (operand.shape().count() != shape.count()) {
      node.fail(fmt::format("operand {}: expected {} for weights ({},{}) in blocks of {}, got {}", i, shape.str(), w.n, w.k, w.block_size,
                            operand.shape().str()));
    }
    return operand.shape() == shape ? operand : ops::reshape(operand, shape);
  };
  ops::BlockQuantized weights{shaped(1, {w.n, w.blocks, bytes}), shaped(2, {w.n, w.blocks})};
  if (node.has_input(3)) weights.zero_points = shaped(3, {w.n, zero_bytes});
  weights.bits = w.bits;
  weights.block_size = w.block_size;
  return ops::matmul_nbits(a, weights, node.has_input(5) ? shaped(5, {w.n}) : Value());
}

}  // namespace

void matmul_nbits(Node& node) {
  const Value a = node.input(0);
  if (node.flag("weight_prepacked")) {
    node.unsupported("expected weights as ONNX Runtime's quantiser writes them, got weight_prepacked: export the model for the CPU");
  }
  PackedWeights w{node.integer("N"), node.integer("K"), block_size_of(node, node.integer("block_size")), 0, bits_of(node)};
  const Shape shape = a.shape();
  constexpr std::int64_t max_size = 0x7fffffff;
  if (w.n < 1 || w.n > max_size || w.k < 1 || w.k > max_size || shape.rank() == 0 || shape[shape.rank() - 1] != w.k) {
    node.fail(fmt::format("expected A (..., K) for weights (N, K) of ({},{}), got {}", w.n, w.k, shape.str()));
  }
  w.blocks = (w.k + w.block_size - 1) / w.block_size;
  const Value product = product_of_blocks(node, a, w);
  if (product.present()) return node.output(0, product);
  const Value weights = node.constant(dequantized(node, w).to(a.dtype()));
  const Value y = ops::matmul(a, ops::transpose(weights));
  node.output(0, node.has_input(5) ? ops::add(y, node.input(5)) : y);
}

void gather_block_quantized(Node& node) {
  const Shape shape = node.shape(0), scales_shape = node.shape(2);
  const std::size_t rank = shape.rank();
  if (rank == 0 || scales_shape.rank() != rank) {
    node.fail(fmt::format("expected data and scales of as many dimensions, got {} and {}", shape.str(), scales_shape.str()));
  }
  const DType dtype = node.dtype(0);
  if (dtype != DType::u8 && dtype != DType::i8) {
    node.fail(fmt::format("expected data of uint8, uint4 or int4, got {}", name_of(dtype)));
  }
  const auto dims = static_cast<std::int64_t>(rank);
  const std::int64_t axis = node.resolve_axis(node.integer("gather_axis", 0), dims);
  const std::int64_t along = node.resolve_axis(node.integer("quantize_axis", 1), dims);
  const std::int64_t block_size = block_size_of(node, node.integer("block_size", 128));
  const int bits = bits_of(node);

  Value data = node.input(0), zero_points = node.optional_input(3);
  const Value scales = node.input(2);
  if (dtype == DType::u8 && bits < 8 && along == dims - 1) {
    // Bytes hold several elements, but elements of the type uint4 come one by one. The scales say which of them these are; where both would
    // have as many, elements that need more bits do.
    const std::int64_t size = shape[rank - 1], whole = product_of(node, size, 8 / bits), blocks = scales_shape[rank - 1];
    const auto fits = [&](std::int64_t n) { return blocks == n / block_size + (n % block_size != 0 ? 1 : 0); };
    bool packed = fits(whole);
    if (packed && fits(size)) {
      const std::vector<std::uint8_t> elements = node.known(0).to_vector<std::uint8_t>();
      packed = std::any_of(elements.begin(), elements.end(), [&](std::uint8_t element) { return element >> bits != 0; });
    }
    if (packed) {
      data = node.constant(unpacked(node.known(0), bits, whole));
      if (zero_points.present()) {
        const Tensor bytes = node.known(3);
        if (bytes.dtype() != DType::u8 || bytes.shape().rank() != rank || bytes.shape()[rank - 1] < (blocks * bits + 7) / 8) {
          node.fail(fmt::format("expected packed zero points for scales {}, got {}", scales_shape.str(), bytes.str()));
        }
        zero_points = node.constant(unpacked(bytes, bits, blocks));
      } else {
        zero_points = node.scalar(DType::u8, 1 << (bits - 1));
      }
    }
  } else if (dtype == DType::u8 && bits == 8 && !zero_points.present()) {
    zero_points = node.scalar(DType::u8, 128);
  }

  const Value indices = node.input(1);
  const auto dequantized_rows = [&](Value rows, Value row_scales, Value row_zero_points, std::int64_t at) {
    const Quantization by{spread(node, row_scales, rows.shape(), at, block_size),
                          spread(node, row_zero_points, rows.shape(), at, block_size)};
    return cast_to(dequantize(rows, by), scales.dtype());
  };
  if (axis == along) return node.output(0, ops::gather(dequantized_rows(data, scales, zero_points, along), indices, axis));
  // Only the rows that are read are dequantised.
  const auto rows_of = [&](Value x) { return x.present() && x.shape().rank() > 0 ? ops::gather(x, indices, axis) : x; };
  const std::int64_t at = along < axis ? along : along + static_cast<std::int64_t>(indices.shape().rank()) - 1;
  node.output(0, dequantized_rows(rows_of(data), rows_of(scales), rows_of(zero_points), at));
}

}  // namespace tenon::onnx
