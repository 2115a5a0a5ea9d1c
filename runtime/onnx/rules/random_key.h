// SPDX-License-Identifier: Apache-2.0
// onnx/rules/random_key.h - key and stream of the random ops of a node.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <tenon/graph.h>
#include <tenon/tensor.h>

#include "onnx/node.h"

namespace tenon::onnx {

/// The key (seed, step) of a node as u64[2]: its attribute `seed`, or a fixed one. It is a constant, so that every run draws the same
/// numbers, with and without a seed. ONNX leaves open which numbers a seed stands for: other runtimes draw others.
inline Value random_key(Node& node) {
  std::uint64_t seed = 0;
  if (node.has("seed")) {
    // Dropout has an integer, the other ops have a float.
    seed = node.op() == "Dropout" ? static_cast<std::uint64_t>(node.integer("seed"))
                                  : std::bit_cast<std::uint32_t>(static_cast<float>(node.number("seed")));
  }
  return node.constant(Tensor::of<std::uint64_t>({seed, 0}, {2}));
}

/// A stream that the node has for itself: a hash (FNV-1a) of the names of its results, and of its position in the graph, which differs
/// between the iterations of an unrolled loop and the calls of a function.
inline std::uint32_t random_stream(const Node& node) {
  std::uint32_t hash = 2166136261u;
  const auto add = [&hash](std::size_t byte) { hash = (hash ^ static_cast<std::uint32_t>(byte & 0xff)) * 16777619u; };
  for (const std::string_view name : node.record().outputs) {
    for (const char letter : name) add(static_cast<unsigned char>(letter));
    add(0);
  }
  for (std::size_t position = node.graph().nodes().size(); position > 0; position >>= 8) add(position);
  return hash;
}

}  // namespace tenon::onnx
