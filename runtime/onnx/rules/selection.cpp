// SPDX-License-Identifier: Apache-2.0
// onnx/rules/selection.cpp - Compress, NonZero and Unique.
#include "onnx/rules/selection.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <type_traits>
#include <vector>

#include <tenon/functions.h>

#include "core/nonzero.h"
#include "onnx/rules/shapes.h"

namespace tenon::onnx {
namespace {

/// The elements of operand i, which determine the size of a result.
Tensor deciding_elements(Node& node, std::size_t i) {
  tensor_shape(node, i);
  return node.known_to_size(i).contiguous();
}

/// Which elements are not 0, one byte for each.
std::vector<std::uint8_t> flags_of(const Tensor& elements) {
  const Tensor flags = elements.to(DType::boolean);
  // The bytes of a bool tensor from a file may be other than 0 and 1.
  const auto* first = static_cast<const std::uint8_t*>(flags.raw());
  std::vector<std::uint8_t> result(first, first + flags.count());
  for (std::uint8_t& flag : result) flag = flag != 0 ? 1 : 0;
  return result;
}

/// Orders two rows of n elements, as < 0, 0 or > 0. NaN is the largest and equals itself, as in NumPy.
template <class T>
int compare(const T* a, const T* b, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    if (a[i] < b[i]) return -1;
    if (b[i] < a[i]) return 1;
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(a[i]) != std::isnan(b[i])) return std::isnan(a[i]) ? 1 : -1;
    }
  }
  return 0;
}

/// Equal rows of a matrix.
struct Groups {
  std::vector<std::int64_t> first;     ///< of each group: its first row
  std::vector<std::int64_t> count;     ///< of each group: its rows
  std::vector<std::int64_t> group_of;  ///< of each row
};

/// Groups the rows of a dense tensor of T, in the order of their elements or in that of their first rows.
template <class T>
Groups group_rows(const Tensor& rows, bool sorted) {
  const std::int64_t n = rows.shape()[0], width = n == 0 ? 0 : rows.count() / n;
  const T* elements = rows.data<T>();
  const auto order_of = [=](std::int64_t a, std::int64_t b) { return compare(elements + a * width, elements + b * width, width); };
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return order_of(a, b) < 0; });
  std::vector<std::vector<std::int64_t>> members;
  for (const std::int64_t row : order) {
    if (members.empty() || order_of(members.back()[0], row) != 0) members.emplace_back();
    members.back().push_back(row);
  }
  // The sort is stable: the first member of a group is its first row.
  if (!sorted) std::sort(members.begin(), members.end(), [](const auto& a, const auto& b) { return a[0] < b[0]; });
  Groups groups;
  groups.group_of.resize(order.size());
  for (const std::vector<std::int64_t>& rows_of_group : members) {
    for (const std::int64_t row : rows_of_group)
      groups.group_of[static_cast<std::size_t>(row)] = static_cast<std::int64_t>(groups.first.size());
    groups.first.push_back(rows_of_group[0]);
    groups.count.push_back(static_cast<std::int64_t>(rows_of_group.size()));
  }
  return groups;
}

Groups group_rows_of_any(const Tensor& rows, bool sorted) {
  if (is_floating(rows.dtype())) return group_rows<double>(rows.to(DType::f64), sorted);
  if (rows.dtype() == DType::u64) return group_rows<std::uint64_t>(rows, sorted);
  return group_rows<std::int64_t>(rows.to(DType::i64), sorted);
}

/// The given rows of a dense tensor.
Tensor rows_at(const Tensor& from, const std::vector<std::int64_t>& rows) {
  Shape shape = from.shape();
  const std::int64_t bytes = shape[0] == 0 ? 0 : from.size_bytes() / shape[0];
  shape.set(0, static_cast<std::int64_t>(rows.size()));
  Tensor result = Tensor::empty(from.dtype(), shape);
  auto* to = static_cast<std::byte*>(result.raw());
  for (const std::int64_t row : rows) {
    std::memcpy(to, static_cast<const std::byte*>(from.raw()) + row * bytes, static_cast<std::size_t>(bytes));
    to += bytes;
  }
  return result;
}

}  // namespace

void compress(Node& node) {
  const Tensor condition = deciding_elements(node, 1);
  if (condition.shape().rank() > 1) node.fail(fmt::format("expected a condition of rank 1, got {}", condition.str()));
  const Shape shape = tensor_shape(node, 0);
  const bool flat = !node.has("axis");
  const std::int64_t axis = flat ? 0 : node.resolve_axis(node.integer("axis"), node.rank(0));
  const std::int64_t size = flat ? shape.count() : shape[static_cast<std::size_t>(axis)];
  const std::vector<std::uint8_t> flags = flags_of(condition);
  std::vector<std::int64_t> places;
  for (std::size_t i = 0; i < flags.size(); ++i) {
    if (flags[i] != 0) places.push_back(static_cast<std::int64_t>(i));
  }
  if (!places.empty() && places.back() >= size)
    node.fail(fmt::format("expected a condition for at most {} elements, got one that is true at {}", size, places.back()));
  const Value x = flat ? ops::reshape(node.input(0), Shape{size}) : node.input(0);
  node.output(0, ops::gather(x, node.constant(Node::integers_tensor(places)), axis));
}

void non_zero(Node& node) {
  node.output(0, nonzero(deciding_elements(node, 0)));  // a scalar gives (0, n), unlike in NumPy
}

void unique(Node& node) {
  const Tensor x = deciding_elements(node, 0);
  const bool flat = !node.has("axis");
  std::vector<std::int64_t> to_front, back;
  if (!flat) {
    const std::int64_t rank = node.rank(0), axis = node.resolve_axis(node.integer("axis"), rank);
    to_front.push_back(axis);
    for (std::int64_t i = 0; i < rank; ++i) {
      if (i != axis) to_front.push_back(i);
      back.push_back(i == axis ? 0 : i < axis ? i + 1 : i);
    }
  }
  const Tensor rows = flat ? x.reshape({x.count()}) : x.permute(to_front).contiguous();
  check_listed(node, rows.shape()[0]);  // also of slices without elements
  const Groups groups = group_rows_of_any(rows, node.flag("sorted", true));
  const Tensor distinct = rows_at(rows, groups.first);
  node.output(0, flat ? distinct : distinct.permute(back).contiguous());
  node.output(1, Node::integers_tensor(groups.first));
  node.output(2, Node::integers_tensor(groups.group_of));
  node.output(3, Node::integers_tensor(groups.count));
}

}  // namespace tenon::onnx
