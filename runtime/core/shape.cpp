// SPDX-License-Identifier: Apache-2.0
// core/shape.cpp - dimensions, strides and broadcasting.
#include <tenon/shape.h>

#include <algorithm>

#include <tenon/error.h>

namespace tenon {
namespace {

constexpr std::int64_t max_count = std::int64_t{1} << 62;

std::string text_of(std::span<const std::int64_t> dims) {
  std::string text = "(";
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (i > 0) text += ',';
    text += std::to_string(dims[i]);
  }
  return text + ')';
}

/// The product with zeros counted as ones, so that the strides of an empty shape are in range too.
void check_extent(std::span<const std::int64_t> dims) {
  std::int64_t extent = 1;
  for (const std::int64_t size : dims) {
    if (size < 0) throw Error("shape " + text_of(dims) + ": expected sizes of 0 or more, got " + std::to_string(size));
    if (size > 0 && extent > max_count / size) {
      throw Error("shape " + text_of(dims) + ": expected at most 2^62 elements, got more");
    }
    extent *= std::max<std::int64_t>(size, 1);
  }
}

}  // namespace

Shape::Shape(std::span<const std::int64_t> dims) : rank_(dims.size()) {
  if (dims.size() > max_rank) {
    throw Error("shape " + text_of(dims) + ": expected at most 8 dimensions, got " + std::to_string(dims.size()));
  }
  check_extent(dims);
  std::copy(dims.begin(), dims.end(), dims_.begin());
}

void Shape::set(std::size_t i, std::int64_t size) {
  if (i >= rank_) throw Error("shape " + str() + ": dimension " + std::to_string(i) + " is out of range for rank " + std::to_string(rank_));
  Shape changed = *this;
  changed.dims_[i] = size;
  check_extent(changed.dims());
  *this = changed;
}

void Shape::push_back(std::int64_t size) {
  if (rank_ == max_rank)
    throw Error("shape " + str() + ": already has 8 dimensions, another one of size " + std::to_string(size) + " does not fit");
  Shape longer = *this;
  longer.dims_[longer.rank_++] = size;
  check_extent(longer.dims());
  *this = longer;
}

Shape Shape::with_batch(std::int64_t count) const {
  Shape batch{count};
  for (const std::int64_t size : *this) batch.push_back(size);
  return batch;
}

std::int64_t Shape::count() const {
  std::int64_t product = 1;
  for (std::size_t i = 0; i < rank_; ++i) product *= dims_[i];
  return product;
}

bool Shape::operator==(const Shape& other) const {
  return std::equal(begin(), end(), other.begin(), other.end());
}

std::string Shape::str() const {
  return text_of(dims());
}

std::array<std::int64_t, Shape::max_rank> dense_strides(const Shape& shape) {
  std::array<std::int64_t, Shape::max_rank> strides{};
  std::int64_t step = 1;
  for (std::size_t i = shape.rank(); i-- > 0;) {
    strides[i] = step;
    step *= std::max<std::int64_t>(shape[i], 1);
  }
  return strides;
}

Shape broadcast(const Shape& a, const Shape& b) {
  const std::size_t rank = std::max(a.rank(), b.rank());
  std::array<std::int64_t, Shape::max_rank> dims{};
  for (std::size_t i = 0; i < rank; ++i) {  // i counts from the last dimension
    const std::int64_t size_a = i < a.rank() ? a[a.rank() - 1 - i] : 1;
    const std::int64_t size_b = i < b.rank() ? b[b.rank() - 1 - i] : 1;
    if (size_a != size_b && size_a != 1 && size_b != 1) {
      throw Error("shapes " + a.str() + " and " + b.str() + " do not broadcast: sizes " + std::to_string(size_a) + " and " +
                  std::to_string(size_b) + " meet, expected equal sizes or a 1");
    }
    dims[rank - 1 - i] = size_a == 1 ? size_b : size_a;
  }
  return Shape(std::span<const std::int64_t>(dims.data(), rank));
}

std::int64_t resolve_axis(std::int64_t axis, std::size_t rank, const std::string& what) {
  const auto size = static_cast<std::int64_t>(rank);
  if (axis < -size || axis >= size) {
    const std::string expected =
        rank == 0 ? "a scalar has no axes" : "expected -" + std::to_string(size) + " to " + std::to_string(size - 1);
    throw Error(what + ": axis " + std::to_string(axis) + " is out of range for rank " + std::to_string(size) + ", " + expected);
  }
  return axis < 0 ? axis + size : axis;
}

}  // namespace tenon
