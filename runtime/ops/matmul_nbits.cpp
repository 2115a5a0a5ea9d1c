// SPDX-License-Identifier: Apache-2.0
// ops/matmul_nbits.cpp - products with weights of 4 or 8 bits in blocks.
#include <fmt/format.h>

#include <algorithm>

#include <tenon/functions.h>

#include "graph/op.h"

namespace tenon {
namespace graph {
namespace {

void infer(Inference& at) {
  at.expect_inputs(3, 5);
  at.expect_floating(0);
  at.expect_same_dtype(0, 2);
  const auto& attributes = at.attributes.as<tenon_attributes_nbits>();
  const std::int64_t bits = attributes.bits, block_size = attributes.block_size;
  if (bits != 4 && bits != 8) at.fail(fmt::format("expected weights of 4 or 8 bits, got {}", bits));
  if (block_size < 16 || block_size > 0x7fffffff || (block_size & (block_size - 1)) != 0) {
    at.fail(fmt::format("expected a block_size that is a power of two of 16 or more, got {}", block_size));
  }
  const Shape &a = at.shape(0), &b = at.shape(1);
  if (a.rank() == 0 || a[a.rank() - 1] == 0) at.fail(fmt::format("expected rows (..., K) with elements, got {}", at.str(0)));
  const std::int64_t blocks = (a[a.rank() - 1] - 1) / block_size + 1, bytes = block_size * bits / 8;
  if (at.dtype(1) != DType::u8 || b.rank() != 3 || b[1] != blocks || b[2] != bytes) {
    at.fail(fmt::format("expected weights u8(N,{},{}) for {} in blocks of {} elements of {} bits, got {}", blocks, bytes, at.str(0),
                        block_size, bits, at.str(1)));
  }
  const std::int64_t n = b[0];
  if (at.shape(2) != Shape{n, blocks}) at.fail(fmt::format("expected scales ({},{}) for {}, got {}", n, blocks, at.str(1), at.str(2)));
  const std::int64_t zero_bytes = (blocks * bits + 7) / 8;
  if (at.has(3) && (at.dtype(3) != DType::u8 || at.shape(3) != Shape{n, zero_bytes})) {
    at.fail(fmt::format("expected zero_points u8({},{}) for {}, got {}", n, zero_bytes, at.str(1), at.str(3)));
  }
  if (at.has(4)) {
    at.expect_same_dtype(0, 4);
    if (at.shape(4) != Shape{n})
      at.fail(fmt::format("expected a bias ({}), one element for each row of {}, got {}", n, at.str(1), at.str(4)));
  }
  Shape y(a.dims().first(a.rank() - 1));
  y.push_back(n);
  at.output(at.dtype(0), y);
}

std::int64_t flops(const Graph& graph, const NodeInfo& node) {
  const Shape& a = graph.info(node.inputs[0]).shape;
  return 2 * a[a.rank() - 1] * graph.info(node.outputs[0]).shape.count();
}

}  // namespace

extern const OpRules rules_matmul_nbits;
const OpRules rules_matmul_nbits{
    "y = a w' + bias, w (N, K) with w[n, k] = (b[n, k] - zero_points[n, i]) scales[n, i], i = k / block_size. b and zero_points have "
    "`bits` "
    "bits for each element, the first in the lowest bits of a byte; elements of b from K on are not read. Absent zero points are 2^(bits - "
    "1). "
    "The op is com.microsoft's.",
    infer, PrecisionClass::fp32, flops};

}  // namespace graph

namespace ops {

Value matmul_nbits(Value a, const BlockQuantized& w, Value bias) {
  tenon_attributes_nbits attributes{};
  attributes.bits = static_cast<std::uint32_t>(std::clamp<std::int64_t>(w.bits, 0, 255));
  attributes.block_size = w.block_size;
  std::vector<Value> operands{a, w.q, w.scales};
  if (w.zero_points.present() || bias.present()) operands.push_back(w.zero_points);
  if (bias.present()) operands.push_back(bias);
  return graph::apply_op(TENON_OP_MatMulNBits, operands, Attributes::of(attributes));
}

}  // namespace ops
}  // namespace tenon
