// SPDX-License-Identifier: Apache-2.0
// onnx/rules/shape.cpp - ops that rearrange, repeat, join, split and select elements.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <tenon/functions.h>

#include "onnx/rules.h"
#include "onnx/rules/dtypes.h"
#include "onnx/rules/random_key.h"
#include "onnx/rules/scatter.h"
#include "onnx/rules/selection.h"
#include "onnx/rules/shapes.h"

namespace tenon::onnx {
namespace {

using Integers = std::vector<std::int64_t>;

/// Lists that are attributes in early opsets, where an empty list is the same as none, and operands in later ones. Nothing: absent.
std::optional<Integers> listed(const Node& node, const char* attribute) {
  const Integers& list = node.integers(attribute);
  return list.empty() ? std::nullopt : std::optional(list);
}
std::optional<Integers> listed(Node& node, std::size_t operand) {
  return node.has_input(operand) ? std::optional(node.known_integers(operand)) : std::nullopt;
}

/// Operands that hold integers and have the dtype of the data, which the first opset declares floating.
Integers integers_of_numbers(Node& node, std::size_t operand) {
  Integers integers;
  for (const double number : node.known_numbers(operand)) {
    if (!(std::abs(number) < 0x1p53) || number != std::trunc(number))
      node.fail(fmt::format("operand {}: expected integers, got {}", operand, number));
    integers.push_back(static_cast<std::int64_t>(number));
  }
  return integers;
}

/// Operand 0, with what is known of it.
void pass_on(Node& node) {
  node.output(0, node.operand(0));
}

void output_reshaped(Node& node, const Shape& shape) {
  if (shape == tensor_shape(node, 0)) return pass_on(node);
  node.output(0, ops::reshape(node.input(0), shape));
}

/// `copies_zeros`: a size of 0 stands for that of the operand.
void reshape(Node& node, Integers sizes, bool copies_zeros) {
  const Shape from = tensor_shape(node, 0);
  std::int64_t known = 1;
  std::optional<std::size_t> open;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0 && copies_zeros) {
      if (i >= from.rank())
        node.fail(fmt::format("size {} of the shape is 0, which copies that of the operand, but this has shape {}", i, from.str()));
      sizes[i] = from[i];
    }
    if (sizes[i] == -1) {
      if (open) node.fail("expected at most one size of -1, got more");
      open = i;
    } else {
      if (sizes[i] < 0) node.fail(fmt::format("expected sizes of 0 or more, or one of -1, got {}", sizes[i]));
      known = product_of(node, known, sizes[i]);
    }
  }
  if (open) {
    if (known == 0) node.fail("the size of -1 cannot be inferred next to a size of 0");
    sizes[*open] = from.count() / known;
    known *= sizes[*open];
  }
  const Shape shape = shape_of(node, sizes);
  if (known != from.count())
    node.fail(fmt::format("expected a shape for the {} elements of {}, got {}", from.count(), from.str(), shape.str()));
  output_reshaped(node, shape);
}

void flatten(Node& node) {
  const Shape x = tensor_shape(node, 0);
  const auto rank = static_cast<std::int64_t>(x.rank());
  std::int64_t axis = node.integer("axis", 1);
  if (axis < -rank || axis > rank) node.fail(fmt::format("expected an axis in [-{0}, {0}], got {1}", rank, axis));
  if (axis < 0) axis += rank;
  std::int64_t rows = 1, columns = 1;
  for (std::int64_t i = 0; i < rank; ++i) (i < axis ? rows : columns) *= x[static_cast<std::size_t>(i)];
  output_reshaped(node, {rows, columns});
}

/// No axes: all of size 1.
void squeeze(Node& node, const std::optional<Integers>& axes) {
  const Shape x = tensor_shape(node, 0);
  std::array<bool, Shape::max_rank> removed{};
  for (std::size_t i = 0; i < x.rank(); ++i) removed[i] = !axes && x[i] == 1;
  for (const std::int64_t axis : axes.value_or(Integers())) {
    const auto i = static_cast<std::size_t>(node.resolve_axis(axis, node.rank(0)));
    if (x[i] != 1) node.fail(fmt::format("expected a size of 1 at axis {} of {}, got {}", axis, x.str(), x[i]));
    removed[i] = true;
  }
  Shape rest;
  for (std::size_t i = 0; i < x.rank(); ++i) {
    if (!removed[i]) rest.push_back(x[i]);
  }
  output_reshaped(node, rest);
}

/// `axes` are those of the result.
void unsqueeze(Node& node, const Integers& axes) {
  const Shape x = tensor_shape(node, 0);
  const std::size_t rank = x.rank() + axes.size();
  if (rank > Shape::max_rank) node.unsupported(fmt::format("expected a result of at most {} dimensions, got {}", Shape::max_rank, rank));
  std::array<bool, Shape::max_rank> added{};
  for (const std::int64_t axis : axes) {
    bool& seen = added[static_cast<std::size_t>(node.resolve_axis(axis, static_cast<std::int64_t>(rank)))];
    if (seen) node.fail(fmt::format("expected axes that differ, got {} twice", axis));
    seen = true;
  }
  Shape wider;
  for (std::size_t i = 0, next = 0; i < rank; ++i) wider.push_back(added[i] ? 1 : x[next++]);
  output_reshaped(node, wider);
}

void unsqueeze_by_attribute(Node& node) {
  if (!node.has("axes")) node.fail("expected the attribute 'axes', got none of this name");
  unsqueeze(node, node.integers("axes"));
}

void transpose(Node& node) {
  const Integers& axes = node.integers("perm");
  bool changes = axes.size() != tensor_shape(node, 0).rank();
  for (std::size_t i = 0; i < axes.size(); ++i) changes = changes || axes[i] != static_cast<std::int64_t>(i);
  if (!changes) return pass_on(node);
  node.output(0, ops::transpose(node.input(0), axes));
}

/// Sizes of 1 of either shape broadcast.
void expand(Node& node) {
  const Shape x = tensor_shape(node, 0), shape = broadcast(x, shape_of(node, node.known_integers(1)));
  if (shape == x) return pass_on(node);
  node.output(0, ops::expand(node.input(0), shape));
}

void tile(Node& node, const Integers& repeats) {
  if (repeats.size() == tensor_shape(node, 0).rank() && std::all_of(repeats.begin(), repeats.end(), [](std::int64_t n) { return n == 1; }))
    return pass_on(node);
  node.output(0, ops::tile(node.input(0), repeats));
}

void tile_axis(Node& node) {
  const Integers tiles = integers_of_numbers(node, 1), axis = integers_of_numbers(node, 2);
  if (tiles.size() != 1 || axis.size() != 1)
    node.fail(fmt::format("expected one count and one axis, got {} and {}", tiles.size(), axis.size()));
  Integers repeats(tensor_shape(node, 0).rank(), 1);
  repeats[static_cast<std::size_t>(node.resolve_axis(axis[0], node.rank(0)))] = tiles[0];
  tile(node, repeats);
}

void concat(Node& node, std::int64_t axis) {
  if (node.input_count() == 0) node.fail("expected at least one operand, got none");
  axis = node.resolve_axis(axis, static_cast<std::int64_t>(tensor_shape(node, 0).rank()));
  if (node.input_count() == 1) return pass_on(node);
  node.output(0, ops::concat(node.inputs(), axis));
}

/// No sizes: equal ones. From opset 18 on the last ones may be smaller.
void split(Node& node, const std::optional<Integers>& sizes) {
  const Shape x = tensor_shape(node, 0);
  const std::int64_t axis = node.resolve_axis(node.integer("axis", 0), node.rank(0));
  const std::int64_t size = x[static_cast<std::size_t>(axis)];
  const std::size_t parts = node.output_count();
  if (parts == 0) return;
  if (node.has("num_outputs") && node.integer("num_outputs") != static_cast<std::int64_t>(parts))
    node.fail(fmt::format("expected num_outputs to be the number of results, {}, got {}", parts, node.integer("num_outputs")));
  Integers lengths = sizes.value_or(Integers());
  if (!sizes) {
    const auto count = static_cast<std::int64_t>(parts);
    if (size % count != 0 && node.opset() < 18)
      node.fail(fmt::format("expected axis {} of {} to be divisible by the number of results, got {}", axis, x.str(), count));
    const std::int64_t most = size / count + (size % count == 0 ? 0 : 1);
    for (std::int64_t rest = size; lengths.size() < parts; rest -= lengths.back()) lengths.push_back(std::min(most, rest));
  }
  if (lengths.size() < parts) node.fail(fmt::format("expected a size for each of the {} results, got {}", parts, lengths.size()));
  if (lengths == Integers{size}) return pass_on(node);
  const std::vector<Value> results = ops::split(node.input(0), lengths, axis);
  for (std::size_t i = 0; i < parts; ++i) node.output(i, results[i]);
}

void split_by_operand_or_attribute(Node& node) {
  split(node, node.has_input(1) ? std::optional(integers_of_numbers(node, 1)) : listed(node, "split"));
}

/// Also of an empty optional, which is an absent operand.
void identity(Node& node) {
  if (node.has_input(0)) pass_on(node);
}

/// The sizes of an image (N, C, H, W) and the attribute `blocksize`.
std::pair<Shape, std::int64_t> image_and_block(const Node& node) {
  const Shape x = tensor_shape(node, 0);
  const std::int64_t block = node.integer("blocksize");
  if (x.rank() != 4) node.fail(fmt::format("expected an operand (N, C, H, W), got {}", x.str()));
  if (block < 1) node.fail(fmt::format("expected a blocksize of 1 or more, got {}", block));
  return {x, block};
}

/// True for the mode DCR (depth, column, row), where the channels with blocks in them are (block, block, channels); false for CRD, where
/// they are (channels, block, block).
bool blocks_are_first(const Node& node) {
  const std::string_view mode = node.text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") node.fail(fmt::format("attribute 'mode': expected DCR or CRD, got {}", mode));
  return mode == "DCR";
}

void depth_to_space(Node& node) {
  const auto [x, block] = image_and_block(node);
  const std::int64_t area = product_of(node, block, block);
  if (x[1] % area != 0) node.fail(fmt::format("expected a number of channels divisible by {}, got {}", area, x[1]));
  const std::int64_t n = x[0], depth = x[1] / area, h = x[2], w = x[3];
  const bool depth_last = blocks_are_first(node);
  const Value blocks = ops::reshape(node.input(0), depth_last ? Shape{n, block, block, depth, h, w} : Shape{n, depth, block, block, h, w});
  const Value moved = ops::transpose(blocks, depth_last ? Integers{0, 3, 4, 1, 5, 2} : Integers{0, 1, 4, 2, 5, 3});
  node.output(0, ops::reshape(moved, Shape{n, depth, product_of(node, h, block), product_of(node, w, block)}));
}

void space_to_depth(Node& node) {
  const auto [x, block] = image_and_block(node);
  if (x[2] % block != 0 || x[3] % block != 0) node.fail(fmt::format("expected an image of sizes divisible by {}, got {}", block, x.str()));
  const std::int64_t n = x[0], c = x[1], h = x[2] / block, w = x[3] / block;
  const Value blocks = ops::reshape(node.input(0), Shape{n, c, h, block, w, block});
  const Value moved = ops::transpose(blocks, blocks_are_first(node) ? Integers{0, 3, 5, 1, 2, 4} : Integers{0, 1, 3, 5, 2, 4});
  node.output(0, ops::reshape(moved, Shape{n, product_of(node, c, product_of(node, block, block)), h, w}));
}

void trilu(Node& node) {
  const Shape x = tensor_shape(node, 0);
  if (x.rank() < 2) node.fail(fmt::format("expected an operand of rank 2 or more, got {}", x.str()));
  const std::int64_t k = node.has_input(1) ? node.known_integer(1) : 0;
  const Diagonals which = node.flag("upper", true) ? Diagonals::from : Diagonals::up_to;
  const Value kept = node.value_of(diagonals(node, x[x.rank() - 2], x[x.rank() - 1], which, k));
  node.output(0, ops::where(kept, node.input(0), node.scalar(node.dtype(0), 0)));
}

/// The operand and a mask of ones.
void keep_all(Node& node, DType mask) {
  pass_on(node);
  if (node.needs_output(1)) node.output(1, filled(node, Tensor::full(mask, {}, 1), tensor_shape(node, 0)));
}

/// Drops elements at random. Key and stream determine which, so that ones go where elements do.
void drop(Node& node, double ratio, DType mask) {
  if (ratio == 0) return keep_all(node, mask);
  if (!(ratio > 0 && ratio < 1)) node.fail(fmt::format("expected a ratio in [0, 1), got {}", ratio));
  const Value x = node.input(0), key = node.mode() == nullptr ? random_key(node) : node.key();
  const std::uint32_t stream = random_stream(node);
  node.output(0, ops::dropout(x, key, ratio, stream));
  if (!node.needs_output(1)) return;
  const Value ones = node.value_of(filled(node, Tensor::full(x.dtype(), {}, 1), x.shape()));
  node.output(1, cast_to(ops::cast(ops::dropout(ones, key, ratio, stream), DType::boolean), mask));
}

/// Whether a dropout drops: `stated` is what its node says.
bool drops(const Node& node, bool stated) {
  return node.mode() == nullptr ? stated : node.mode()->training;
}

/// Versions that have no mode: they drop in training steps alone.
void dropout_without_mode(Node& node, DType mask) {
  drops(node, false) ? drop(node, node.number("ratio", 0.5), mask) : keep_all(node, mask);
}

void dropout_with_is_test(Node& node) {
  if (!drops(node, !node.flag("is_test"))) return keep_all(node, node.dtype(0));
  drop(node, node.number("ratio", 0.5), node.dtype(0));
}

void dropout(Node& node) {
  if (!drops(node, node.has_input(2) && node.known_integer(2) != 0)) return keep_all(node, DType::boolean);
  drop(node, node.has_input(1) ? node.known_number(1) : 0.5, DType::boolean);
}

/// Cuts or pads each axis equally on both sides; an odd element is cut or added at the end.
void center_crop_pad(Node& node) {
  Value x = node.input(0);
  const Shape from = x.shape();
  const Integers sizes = node.known_integers(1);
  Integers axes = node.integers("axes");
  if (axes.empty()) {
    axes.resize(from.rank());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (axes.size() != sizes.size()) node.fail(fmt::format("expected a size for each of {} axes, got {}", axes.size(), sizes.size()));
  std::vector<std::pair<std::int64_t, std::int64_t>> padding(from.rank());
  std::array<bool, Shape::max_rank> seen{};
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t axis = node.resolve_axis(axes[i], node.rank(0)), size = sizes[i];
    const auto a = static_cast<std::size_t>(axis);
    if (std::exchange(seen[a], true)) node.fail(fmt::format("expected axes that differ, got {} twice", axes[i]));
    if (size < 0) node.fail(fmt::format("expected sizes of 0 or more, got {}", size));
    const std::int64_t change = size - from[a];
    if (change < 0) x = ops::slice(x, axis, -change / 2, -change / 2 + size);
    if (change > 0) padding[a] = {change / 2, change - change / 2};
  }
  const bool pads = std::any_of(padding.begin(), padding.end(), [](const auto& width) { return width.second > 0; });
  node.output(0, pads ? ops::pad(x, padding) : x);
}

/// The cache with `update` in place of the positions from `begin` on.
Value replaced(Value cache, Value update, std::int64_t axis, std::int64_t begin) {
  const auto i = static_cast<std::size_t>(axis);
  const std::int64_t size = cache.shape()[i], end = begin + update.shape()[i];
  std::vector<Value> parts;
  if (begin > 0) parts.push_back(ops::slice(cache, axis, 0, begin));
  parts.push_back(update);
  if (end < size) parts.push_back(ops::slice(cache, axis, end, size));
  return ops::concat(parts, axis);
}

/// Writes `update` (B, ..., S, ...) into a cache (B, ..., L, ...) from a position on that each sample has for itself.
void tensor_scatter(Node& node) {
  const Value cache = node.input(0), update = node.input(1);
  const Shape from = cache.shape(), part = update.shape();
  const std::int64_t axis = node.resolve_axis(node.integer("axis", -2), node.rank(0));
  const auto a = static_cast<std::size_t>(axis);
  const std::string_view mode = node.text("mode", "linear");
  if (mode != "linear" && mode != "circular") node.fail(fmt::format("attribute 'mode': expected linear or circular, got {}", mode));
  if (axis == 0) node.fail("expected an axis other than 0, which is that of the samples");
  bool fits = part.rank() == from.rank();
  for (std::size_t i = 0; fits && i < from.rank(); ++i) fits = i == a ? part[i] <= from[i] : part[i] == from[i];
  if (!fits)
    node.fail(fmt::format("expected an update of the sizes of the cache {}, or less at axis {}, got {}", from.str(), axis, part.str()));
  const std::int64_t length = from[a], steps = part[a];
  if (part.count() == 0) return pass_on(node);
  if (!node.has_input(2)) return node.output(0, replaced(cache, update, axis, 0));
  if (tensor_shape(node, 2) != Shape{from[0]}) node.fail(fmt::format("expected write_indices ({}), got {}", from[0], node.shape(2).str()));
  if (node.known_if_constant(2).defined()) {
    const Integers begins = node.known_integers(2);
    const auto [least, most] = std::minmax_element(begins.begin(), begins.end());
    if (*least == *most && *least >= 0 && *least <= length - steps) return node.output(0, replaced(cache, update, axis, *least));
  }
  const Value begins = ops::reshape(cast_to(node.input(2), DType::i64), Shape{from[0], 1});
  Value places = ops::add(begins, node.constant(counting_tensor(node, 0, steps).reshape({1, steps})));
  if (mode == "circular") {
    const Value turn = node.constant(Tensor::scalar(length));
    places = ops::sub(places, ops::mul(ops::div(places, turn), turn));
  }
  node.output(0, updated_by_sample(node, cache, places, update, axis));
}

}  // namespace

const std::vector<Rule>& shape_rules() {
  static const std::vector<Rule> rules = {
      {"CenterCropPad", 18, center_crop_pad},
      {"Compress", 9, compress},
      {"Concat", 1, [](Node& node) { concat(node, node.integer("axis", 1)); }},
      {"Concat", 4, [](Node& node) { concat(node, node.integer("axis")); }},
      {"DepthToSpace", 1, depth_to_space},
      {"Dropout", 1, dropout_with_is_test},
      {"Dropout", 7, [](Node& node) { dropout_without_mode(node, node.dtype(0)); }},
      {"Dropout", 10, [](Node& node) { dropout_without_mode(node, DType::boolean); }},
      {"Dropout", 12, dropout},
      {"Expand", 8, expand},
      {"Flatten", 1, flatten},
      {"Identity", 1, identity},
      {"NonZero", 9, non_zero},
      {"Reshape", 1, [](Node& node) { reshape(node, node.integers("shape"), true); }},
      {"Reshape", 5, [](Node& node) { reshape(node, node.known_integers(1), true); }},
      {"Reshape", 14, [](Node& node) { reshape(node, node.known_integers(1), !node.flag("allowzero")); }},
      {"SpaceToDepth", 1, space_to_depth},
      {"Split", 1, split_by_operand_or_attribute},
      {"Split", 2, [](Node& node) { split(node, listed(node, "split")); }},
      {"Split", 13, [](Node& node) { split(node, listed(node, 1)); }},
      {"Squeeze", 1, [](Node& node) { squeeze(node, listed(node, "axes")); }},
      {"Squeeze", 13, [](Node& node) { squeeze(node, listed(node, 1)); }},
      {"TensorScatter", 24, tensor_scatter},
      {"Tile", 1, tile_axis},
      {"Tile", 6, [](Node& node) { tile(node, node.known_integers(1)); }},
      {"Transpose", 1, transpose},
      {"Trilu", 14, trilu},
      {"Unique", 11, unique},
      {"Unsqueeze", 1, unsqueeze_by_attribute},
      {"Unsqueeze", 13, [](Node& node) { unsqueeze(node, node.known_integers(1)); }},
  };
  return rules;
}

}  // namespace tenon::onnx
